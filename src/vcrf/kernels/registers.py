"""Loops over the few numbers of a row, written for the compiler a register at a time.

A row has as many numbers as there are labels: too few for the loops that a compiler makes of plain ones, which take
several registers a turn and leave the rest to single numbers. Here the number of registers is known when a loop is
compiled, and there is a loop for each, up to `WIDEST`. If the width does not divide the size of a row, the last
register overlaps the one before: everything is read before anything is written, and what is written twice is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once_value, for_range_slice

WIDEST = 8  # registers in a row, with as many left for the rest
DOUBLES, FLOATS = 4, 8  # numbers in a register

_I64, _I32 = ir.IntType(64), ir.IntType(32)
_KINDS = {types.float64: (ir.DoubleType(), DOUBLES), types.float32: (ir.FloatType(), FLOATS)}
_MAY_FUSE = ["contract"]

Value = Any
_place_for: Any = alloca_once_value
_slices: Any = for_range_slice
Body = Callable[["Emitter", list[Value]], Value | None]


class Emitter:
    """Instructions on registers of the numbers that the first argument has."""

    def __init__(
        self, context: Any, builder: Any, signature: Any, args: Sequence[Value], lanes: int | None = None
    ) -> None:
        self.context, self.builder, self.signature, self.args = context, builder, signature, args
        self.number, self.lanes = _KINDS[signature.args[0].dtype]
        self.lanes = lanes or self.lanes
        self.vector = ir.VectorType(self.number, self.lanes)
        self.zero = ir.Constant(self.vector, [0.0] * self.lanes)
        self._zero_lanes = ir.Constant(ir.VectorType(_I32, self.lanes), [0] * self.lanes)
        self._bytes = 8 if isinstance(self.number, ir.DoubleType) else 4

    def index(self, value: int) -> Value:
        """An index."""
        return ir.Constant(_I64, value)

    def whole(self, size: Value) -> Value:
        """The part of a row that is whole registers."""
        return self.builder.and_(size, self.index(-self.lanes))

    def start(self, k: int, offset: Value | None = None) -> Value:
        """Address of the entry of array argument k that the argument after it, or `offset`, numbers."""
        array = self.context.make_array(self.signature.args[k])(self.context, self.builder, self.args[k])
        return self.builder.gep(array.data, [self.args[k + 1] if offset is None else offset])

    def read(self, pointer: Value, offset: Value) -> Value:
        """The number at pointer[offset]."""
        return self.builder.load(self.builder.gep(pointer, [offset]))

    def load(self, pointer: Value, offset: Value) -> Value:
        """The register that begins at pointer[offset]."""
        return self.builder.load(self._place(pointer, offset), align=self._bytes)

    def loads(self, pointer: Value, offsets: list[Value]) -> list[Value]:
        """All registers of a row."""
        return [self.load(pointer, at) for at in offsets]

    def stores(self, values: list[Value], pointer: Value, offsets: list[Value]) -> None:
        """Write all registers of a row."""
        for value, at in zip(values, offsets, strict=True):
            self.builder.store(value, self._place(pointer, at), align=self._bytes)

    def _place(self, pointer: Value, offset: Value) -> Value:
        return self.builder.bitcast(self.builder.gep(pointer, [offset]), self.vector.as_pointer())

    def spread(self, value: Value) -> Value:
        """A number in every lane."""
        undefined = ir.Constant(self.vector, ir.Undefined)
        one = self.builder.insert_element(undefined, value, ir.Constant(_I32, 0))
        return self.builder.shuffle_vector(one, undefined, self._zero_lanes)

    def add(self, x: Value, y: Value) -> Value:
        """Their sum."""
        return self.builder.fadd(x, y, flags=_MAY_FUSE)

    def times(self, x: Value, y: Value) -> Value:
        """Their product; with a sum it may be one instruction."""
        return self.builder.fmul(x, y, flags=_MAY_FUSE)

    def larger(self, x: Value, y: Value) -> Value:
        """The larger one."""
        return self.builder.select(self.builder.fcmp_ordered(">", x, y), x, y)

    def smaller(self, x: Value, y: Value) -> Value:
        """The smaller one."""
        return self.builder.select(self.builder.fcmp_ordered("<", x, y), x, y)

    def across(self, join: Callable[[Value, Value], Value], register: Value) -> Value:
        """The lanes of a register joined to a number, halves with each other."""
        lanes = [self.builder.extract_element(register, ir.Constant(_I32, k)) for k in range(self.lanes)]
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [join(lanes[k], lanes[k + half]) for k in range(half)]
        return lanes[0]

    def total(self, registers: list[Value]) -> Value:
        """The sum of a padded row."""
        whole = registers[0]
        for register in registers[1:]:
            whole = self.builder.fadd(whole, register)
        return self.across(self.builder.fadd, whole)

    def first_lanes(self, n: Value) -> Value:
        """Marks the first n lanes."""
        kind = ir.VectorType(_I64, self.lanes)
        undefined = ir.Constant(kind, ir.Undefined)
        one = self.builder.insert_element(undefined, n, ir.Constant(_I32, 0))
        bound = self.builder.shuffle_vector(one, undefined, self._zero_lanes)
        return self.builder.icmp_unsigned("<", ir.Constant(kind, list(range(self.lanes))), bound)

    def combination(self, matrix: Value, x: Value, step: Value, offsets: list[Value]) -> Callable[[Value], list[Value]]:
        """Terms x[j * step] * row j of the matrix, for `sums`."""

        def term(j: Value) -> list[Value]:
            factor = self.spread(self.read(x, self.builder.mul(j, step)))
            row = self.builder.gep(matrix, [self.builder.mul(j, self.args[-1])])
            return [self.times(factor, entries) for entries in self.loads(row, offsets)]

        return term

    def sums(self, n_terms: Value, term: Callable[[Value], list[Value]], n_registers: int) -> list[Value]:
        """Sums over j < n_terms of the registers term(j), which are products; few registers take two terms a turn.

        One sum waits for the one before: with two of each the processor always has something to do.
        """
        n_sets = 2 if n_registers <= 5 else 1
        builder = self.builder
        entry, loop = builder.block, builder.append_basic_block("loop")
        rest, last, end = (builder.append_basic_block(name) for name in ("rest", "last", "end_of_sums"))
        n_even = builder.and_(n_terms, self.index(-2)) if n_sets == 2 else n_terms
        zeros = [self.zero] * (n_sets * n_registers)
        builder.cbranch(builder.icmp_unsigned(">", n_even, self.index(0)), loop, rest)

        builder.position_at_end(loop)
        j = builder.phi(_I64)
        before = [builder.phi(self.vector) for _ in zeros]
        terms = [x for k in range(n_sets) for x in term(builder.add(j, self.index(k)) if k else j)]
        after = [self.add(total, x) for total, x in zip(before, terms, strict=True)]
        following = builder.add(j, self.index(n_sets))
        j.add_incoming(self.index(0), entry)
        j.add_incoming(following, builder.block)
        _come(before, [(zeros, entry), (after, builder.block)])
        from_loop = builder.block
        builder.cbranch(builder.icmp_unsigned("<", following, n_even), loop, rest)

        builder.position_at_end(rest)
        found = [builder.phi(self.vector) for _ in zeros]
        _come(found, [(zeros, entry), (after, from_loop)])
        builder.cbranch(builder.icmp_unsigned("<", n_even, n_terms), last, end)

        builder.position_at_end(last)
        more = [self.add(total, x) for total, x in zip(found, term(n_even), strict=False)] + found[n_registers:]
        from_last = builder.block
        builder.branch(end)

        builder.position_at_end(end)
        all_of_them = [builder.phi(self.vector) for _ in zeros]
        _come(all_of_them, [(found, rest), (more, from_last)])
        if n_sets == 1:
            return all_of_them
        return [self.add(x, y) for x, y in zip(all_of_them[:n_registers], all_of_them[n_registers:], strict=True)]


def _come(phis: list[Value], sources: list[tuple[list[Value], Value]]) -> None:
    for values, block in sources:
        for phi, value in zip(phis, values, strict=True):
            phi.add_incoming(value, block)


def by_registers(body: Body, result: Any = types.void) -> Any:
    """What numba asks of an intrinsic: code for each number of registers; the last argument is the size of a row.

    Rows of other sizes are done one register after another, and what is left number by number, if the body says the
    same of every place in a row: it does unless it has a result.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emitter, size = Emitter(context, builder, signature, args), args[-1]
        zero = ir.Constant(emitter.number, 0.0)
        found = None if result == types.void else _place_for(builder, zero)
        others, end = builder.append_basic_block("others"), builder.append_basic_block("end")
        n_registers = builder.udiv(builder.add(size, emitter.index(emitter.lanes - 1)), emitter.index(emitter.lanes))
        fits = builder.icmp_unsigned(">=", size, emitter.index(emitter.lanes))
        cases = builder.switch(builder.select(fits, n_registers, emitter.index(0)), others)
        for n in range(1, WIDEST + 1):
            block = builder.append_basic_block(f"registers{n}")
            cases.add_case(emitter.index(n), block)
            builder.position_at_end(block)
            offsets = [emitter.index(emitter.lanes * k) for k in range(n - 1)]
            value = body(emitter, [*offsets, builder.sub(size, emitter.index(emitter.lanes))])
            if found is not None:
                builder.store(value, found)
            builder.branch(end)
        builder.position_at_end(others)
        if found is None:
            with _slices(builder, emitter.index(0), emitter.whole(size), emitter.index(emitter.lanes), inc=True) as (
                at,
                _,
            ):
                body(emitter, [at])
            single = Emitter(context, builder, signature, args, lanes=1)
            with _slices(builder, emitter.whole(size), size, emitter.index(1), inc=True) as (at, _):
                body(single, [at])
        builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value() if found is None else builder.load(found)

    return emit
