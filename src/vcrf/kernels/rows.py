"""Rows of one number a label inside flat arrays: added, gathered, multiplied, thresholded.

Each operation has a loop for sizes that are a few registers, see `kernels.registers`, and a plain one for others.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from vcrf.kernels._jit import inner_kernel
from vcrf.kernels.registers import DOUBLES, WIDEST, Emitter, Value, by_registers


def _add(emit: Emitter, offsets: list[Value]) -> None:
    source, target = emit.start(0), emit.start(2)
    values = emit.loads(source, offsets)
    emit.stores([emit.add(x, y) for x, y in zip(emit.loads(target, offsets), values, strict=True)], target, offsets)


def _add_times(emit: Emitter, offsets: list[Value]) -> None:
    source, factor, target = emit.start(0), emit.spread(emit.args[2]), emit.start(3)
    terms = [emit.times(factor, x) for x in emit.loads(source, offsets)]
    emit.stores([emit.add(x, y) for x, y in zip(emit.loads(target, offsets), terms, strict=True)], target, offsets)


def _gather(emit: Emitter, offsets: list[Value]) -> None:
    table, rows, n_rows, out, size = (
        emit.start(0, emit.index(0)),
        emit.start(1),
        emit.args[3],
        emit.start(4),
        emit.args[6],
    )

    def term(j: Value) -> list[Value]:
        row = emit.builder.zext(emit.read(rows, j), size.type)
        return emit.loads(emit.builder.gep(table, [emit.builder.mul(row, size)]), offsets)

    emit.stores(emit.sums(n_rows, term, len(offsets)), out, offsets)


def _multiply(emit: Emitter, offsets: list[Value]) -> None:
    x, y, factor, out = emit.start(0), emit.start(2), emit.spread(emit.args[4]), emit.start(5)
    pairs = zip(emit.loads(x, offsets), emit.loads(y, offsets), strict=True)
    emit.stores([emit.times(factor, emit.times(a, b)) for a, b in pairs], out, offsets)


def _step(emit: Emitter, offsets: list[Value]) -> Value:
    """The products stay in registers until they are multiplied, summed and written."""
    matrix, x, node, out = (emit.start(k) for k in (0, 2, 4, 6))
    found = emit.sums(emit.args[8], emit.combination(matrix, x, emit.index(1), offsets), len(offsets))
    values = [emit.times(total, z) for total, z in zip(found, emit.loads(node, offsets), strict=True)]
    emit.stores(values, out, offsets)
    return emit.total(values)


def _level(emit: Emitter, offsets: list[Value]) -> None:
    """The last register reads past the row: its lanes there count for nothing."""
    x, least, ends, out = emit.start(0), emit.spread(emit.args[2]), emit.start(3, emit.index(0)), emit.start(4)
    values = emit.loads(x, offsets)
    is_own = emit.first_lanes(emit.builder.sub(emit.args[6], offsets[-1]))
    values[-1] = emit.builder.select(
        is_own, values[-1], values[0] if len(values) > 1 else emit.spread(emit.read(x, emit.index(0)))
    )
    high = low = values[0]
    for value in values[1:]:
        high, low = emit.larger(value, high), emit.smaller(value, low)
    largest, smallest = emit.across(emit.larger, high), emit.across(emit.smaller, low)
    top = emit.spread(largest)
    emit.stores([emit.larger(emit.builder.fsub(value, top), least) for value in values], out, offsets)
    emit.builder.store(largest, emit.builder.gep(ends, [emit.index(0)]))
    emit.builder.store(smallest, emit.builder.gep(ends, [emit.index(1)]))


def _soften(emit: Emitter, offsets: list[Value]) -> None:
    builder, z, score, free = emit.builder, emit.start(0), emit.start(6), emit.start(8)
    limit, factor, near, square = (emit.spread(emit.args[k]) for k in range(2, 6))
    below = builder.fsub(emit.zero, limit)
    scores, squares = [], []
    for at in offsets:
        value = emit.load(z, at)
        excess = builder.fsub(value, emit.larger(emit.smaller(value, limit), below))
        scores.append(emit.add(emit.load(score, at), emit.times(factor, excess)))
        is_free = builder.fcmp_ordered(">", emit.larger(value, builder.fsub(emit.zero, value)), near)
        squares.append(emit.add(emit.load(free, at), builder.select(is_free, square, emit.zero)))
    emit.stores(scores, score, offsets)
    emit.stores(squares, free, offsets)


def _typed_add(_: Any, source: Any, s: Any, target: Any, t: Any, size: Any) -> Any:
    return types.void(source, s, target, t, size), by_registers(_add)


def _typed_add_times(_: Any, source: Any, s: Any, factor: Any, target: Any, t: Any, size: Any) -> Any:
    return types.void(source, s, factor, target, t, size), by_registers(_add_times)


def _typed_gather(_: Any, table: Any, rows: Any, first: Any, n_rows: Any, out: Any, o: Any, size: Any) -> Any:
    return types.void(table, rows, first, n_rows, out, o, size), by_registers(_gather)


def _typed_multiply(_: Any, x: Any, u: Any, y: Any, v: Any, factor: Any, out: Any, o: Any, size: Any) -> Any:
    return types.void(x, u, y, v, factor, out, o, size), by_registers(_multiply)


def _typed_step(
    _: Any, matrix: Any, m: Any, x: Any, u: Any, node: Any, v: Any, out: Any, o: Any, n_terms: Any, size: Any
) -> Any:
    kinds = (matrix, m, x, u, node, v, out, o, n_terms, size)
    return types.float64(*kinds), by_registers(_step, types.float64)


def _typed_level(_: Any, x: Any, u: Any, least: Any, ends: Any, out: Any, o: Any, n: Any, size: Any) -> Any:
    return types.void(x, u, least, ends, out, o, n, size), by_registers(_level)


def _typed_soften(
    _: Any, z: Any, o: Any, limit: Any, factor: Any, near: Any, square: Any, score: Any, at: Any, free: Any, f: Any,
    size: Any,
) -> Any:  # fmt: skip
    return types.void(z, o, limit, factor, near, square, score, at, free, f, size), by_registers(_soften)


# For compiled loops alone, and to be called where the loop is: another function around them would count references to
# its arrays each time, which costs more than all that they do. Indices are uint64.

# target[b] += source[b]: (source, first, target, first, size)
add_row: Any = intrinsic(_typed_add)
# target[b] += factor * source[b]: (source, first, factor, target, first, size)
add_times: Any = intrinsic(_typed_add_times)
# out[b] = sum of the rows of a table that rows[first], ... name: (table, rows, first, how many, out, first, size)
sum_rows: Any = intrinsic(_typed_gather)
# out[b] = factor * x[b] * y[b]: (x, first, y, first, factor, out, first, size)
multiply_rows: Any = intrinsic(_typed_multiply)
# score[b] += factor * sign(z) (|z| - limit)_+ and free[b] += square where |z| > near:
# (z, first, limit, factor, near, square, score, first, free, first, size)
soften_row: Any = intrinsic(_typed_soften)

# The rest is for padded rows of up to MOST numbers.
MOST = DOUBLES * WIDEST
# out[b] = node[b] * sum_a x[a] * matrix[a, b], returns the sum:
# (matrix, first, x, first, node, first, out, first, rows of the matrix, size)
step_row: Any = intrinsic(_typed_step)
# out[b] = max(x[b] - the largest, least), ends = (the largest, the smallest) of n numbers; what fills the row up is
# finite, and three numbers past the end of x are read: (x, first, least, ends, out, first, n, size)
level_row: Any = intrinsic(_typed_level)


@inner_kernel
def padded(size: int) -> int:
    """How far apart rows are that consist of whole registers; with more than a few there is nothing to fill up."""
    return -(-size // DOUBLES) * DOUBLES if size <= MOST else size
