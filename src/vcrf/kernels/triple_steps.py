"""One state of the triples' forward-backward, for `LANES` sentences in a register: see `kernels.triples`.

The sum over a list of states is kept in a register while the list is read, which compiled loops do not do by
themselves. All arrays are flat; element l of row s is at s * LANES + l.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# Sentences side by side: doubles in the widest registers there are; where they are narrower, several do.
LANES = 8

_I64, _I32 = ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_UNDEFINED = ir.Constant(_VECTOR, ir.Undefined)
_FIRST_LANE = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)


class _Rows:
    """Rows of lanes of the arguments of a call, by name."""

    def __init__(self, context: Any, builder: ir.IRBuilder, signature: Any, names: list[str], args: Any) -> None:
        self.builder, self.given, self.data = builder, dict(zip(names, args, strict=True)), {}
        for name, kind, value in zip(names, signature.args, args, strict=True):
            if isinstance(kind, types.Array):
                self.data[name] = context.make_array(kind)(context, builder, value).data

    def place(self, name: str, row: ir.Value) -> ir.Value:
        """Address of a row."""
        first = self.builder.mul(row, ir.Constant(_I64, LANES))
        return self.builder.bitcast(self.builder.gep(self.data[name], [first]), _VECTOR.as_pointer())

    def load(self, name: str, row: ir.Value) -> ir.Value:
        return self.builder.load(self.place(name, row), align=8)

    def store(self, name: str, row: ir.Value, value: ir.Value) -> None:
        self.builder.store(value, self.place(name, row), align=8)

    def add(self, name: str, row: ir.Value, value: ir.Value) -> None:
        self.store(name, row, self.builder.fadd(self.load(name, row), value))

    def entry(self, name: str, index: ir.Value) -> ir.Value:
        """A single element."""
        return self.builder.load(self.builder.gep(self.data[name], [index]))

    def spread(self, value: ir.Value) -> ir.Value:
        """The value in every lane."""
        one = self.builder.insert_element(_UNDEFINED, value, ir.Constant(_I32, 0))
        return self.builder.shuffle_vector(one, _UNDEFINED, _FIRST_LANE)

    def times_plus(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return self.builder.fadd(self.builder.fmul(a, b, flags=["contract"]), c, flags=["contract"])


def _sum_list(rows: _Rows, start: ir.Value, back: ir.Value | None) -> ir.Value:
    """Start + sum of coefficient * x[source] over the list; with `back`, counts of entry += x[source] * back."""
    builder = rows.builder
    first, last = rows.given["first"], rows.given["last"]
    entry = builder.block
    loop, done = builder.append_basic_block("list"), builder.append_basic_block("listed")
    builder.cbranch(builder.icmp_unsigned("<", first, last), loop, done)
    builder.position_at_end(loop)
    at, total = builder.phi(_I64), builder.phi(_VECTOR)
    x = rows.load("x", builder.zext(rows.entry("source", at), _I64))
    new = rows.times_plus(rows.spread(rows.entry("coefficient", at)), x, total)
    if back is not None:
        rows.store("counts", at, rows.times_plus(x, back, rows.load("counts", at)))
    after = builder.add(at, ir.Constant(_I64, 1))
    for phi, before, later in (at, first, after), (total, start, new):
        phi.add_incoming(before, entry)
        phi.add_incoming(later, loop)
    builder.cbranch(builder.icmp_unsigned("<", after, last), loop, done)
    builder.position_at_end(done)
    out = builder.phi(_VECTOR)
    out.add_incoming(start, entry)
    out.add_incoming(new, loop)
    return out


_LIST = ["coefficient", "source", "first", "last", "x", "base", "sums", "of_label"]


def _emit_left(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
    names = [*_LIST, "end", "factor", "node", "label", "state", "back", "totals", "total"]
    rows = _Rows(context, builder, signature, names, args)
    g = rows.given
    start = rows.times_plus(
        rows.spread(g["base"]), rows.load("sums", g["of_label"]), rows.load("end", ir.Constant(_I64, 0))
    )
    beta = _sum_list(rows, start, None)
    value = builder.fmul(builder.fmul(beta, rows.spread(g["factor"])), rows.load("node", g["label"]))
    rows.store("back", g["state"], value)
    rows.add("totals", g["total"], value)
    return context.get_dummy_value()


def _emit_right(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
    names = [
        *_LIST, "back", "here", "counts", "state", "of_states", "posterior", "label", "of_labels", "factor", "node",
        "node_at", "alpha", "totals",
    ]  # fmt: skip
    rows = _Rows(context, builder, signature, names, args)
    g = rows.given
    back = rows.load("back", g["here"])
    start = builder.fmul(rows.spread(g["base"]), rows.load("sums", g["of_label"]))
    entered = _sum_list(rows, start, back)
    posterior = builder.fmul(entered, back)
    rows.add("of_states", g["state"], posterior)
    rows.add("of_labels", g["label"], posterior)
    rows.store("posterior", g["state"], posterior)
    value = builder.fmul(builder.fmul(entered, rows.spread(g["factor"])), rows.load("node", g["node_at"]))
    rows.store("alpha", g["state"], value)
    rows.add("totals", g["label"], value)
    return context.get_dummy_value()


def _typed_left(
    _: Any, coefficient: Any, source: Any, first: Any, last: Any, x: Any, base: Any, sums: Any, of_label: Any,
    end: Any, factor: Any, node: Any, label: Any, state: Any, back: Any, totals: Any, total: Any,
) -> Any:  # fmt: skip
    args = (
        coefficient,
        source,
        first,
        last,
        x,
        base,
        sums,
        of_label,
        end,
        factor,
        node,
        label,
        state,
        back,
        totals,
        total,
    )
    return types.void(*args), _emit_left


def _typed_right(
    _: Any, coefficient: Any, source: Any, first: Any, last: Any, x: Any, base: Any, sums: Any, of_label: Any,
    back: Any, here: Any, counts: Any, state: Any, of_states: Any, posterior: Any, label: Any, of_labels: Any,
    factor: Any, node: Any, node_at: Any, alpha: Any, totals: Any,
) -> Any:  # fmt: skip
    args = (
        coefficient, source, first, last, x, base, sums, of_label, back, here, counts, state, of_states, posterior,
        label, of_labels, factor, node, node_at, alpha, totals,
    )  # fmt: skip
    return types.void(*args), _emit_right


def _emit_outer(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
    names = ["alpha", "row", "back", "first", "size", "inverse_weights", "counts", "squares", "place"]
    rows = _Rows(context, builder, signature, names, args)
    g, one = rows.given, ir.Constant(_I64, 1)
    alpha, inverse = rows.load("alpha", g["row"]), rows.load("inverse_weights", ir.Constant(_I64, 0))
    entry = builder.block
    loop, done = builder.append_basic_block("row"), builder.append_basic_block("end")
    builder.branch(loop)
    builder.position_at_end(loop)
    c = builder.phi(_I64)
    place = builder.add(g["place"], c)
    mass = builder.fmul(alpha, rows.load("back", builder.add(g["first"], c)))
    rows.add("counts", place, mass)
    rows.store("squares", place, rows.times_plus(mass, builder.fmul(mass, inverse), rows.load("squares", place)))
    after = builder.add(c, one)
    c.add_incoming(ir.Constant(_I64, 0), entry)
    c.add_incoming(after, loop)
    builder.cbranch(builder.icmp_unsigned("<", after, g["size"]), loop, done)
    builder.position_at_end(done)
    return context.get_dummy_value()


def _typed_outer(
    _: Any, alpha: Any, row: Any, back: Any, first: Any, size: Any, inverse_weights: Any, counts: Any, squares: Any,
    place: Any,
) -> Any:  # fmt: skip
    return types.void(alpha, row, back, first, size, inverse_weights, counts, squares, place), _emit_outer


left_state: Any = intrinsic(_typed_left)
outer_row: Any = intrinsic(_typed_outer)
right_state: Any = intrinsic(_typed_right)
