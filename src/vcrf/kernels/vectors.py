"""Combinations of the rows of a matrix, four sums to a register: the step of forward-backward.

out[i] = sum_j matrix[j, i] * x[j]. The sums of all i are kept in registers while j runs, see `kernels.registers`.
`dots` does the same with the matrix the other way round, for any number of labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from vcrf.kernels._jit import fast_kernel, inner_fast_kernel
from vcrf.kernels.registers import DOUBLES, Emitter, Value, by_registers
from vcrf.kernels.registers import WIDEST as REGISTERS
from vcrf.types import Floats

WIDTH = DOUBLES
WIDEST = DOUBLES * REGISTERS


def _products(emit: Emitter, offsets: list[Value]) -> None:
    matrix, x, n_terms = emit.start(0), emit.start(2), emit.args[6]
    found = emit.sums(n_terms, emit.combination(matrix, x, emit.index(1), offsets), len(offsets))
    emit.stores(found, emit.start(4), offsets)


def _outer(emit: Emitter, offsets: list[Value]) -> None:
    rows, x, out = emit.start(0), emit.start(2), emit.start(7)
    step, n_terms, weight = emit.args[4], emit.args[5], emit.spread(emit.args[6])
    found = emit.sums(n_terms, emit.combination(rows, x, step, offsets), len(offsets))
    found = [emit.times(weight, total) for total in found]
    emit.stores([emit.add(x, y) for x, y in zip(emit.loads(out, offsets), found, strict=True)], out, offsets)


def _typed_products(_: Any, matrix: Any, m: Any, x: Any, u: Any, out: Any, o: Any, n_terms: Any, size: Any) -> Any:
    return types.void(matrix, m, x, u, out, o, n_terms, size), by_registers(_products)


def _typed_outer(
    _: Any, rows: Any, r: Any, x: Any, u: Any, step: Any, n_terms: Any, weight: Any, out: Any, o: Any, size: Any
) -> Any:
    return types.void(rows, r, x, u, step, n_terms, weight, out, o, size), by_registers(_outer)


# For compiled loops alone, see `kernels.rows`; indices are uint64.

# out[b] = sum_j x[j] * matrix[j, b]: (matrix, first, x, first, out, first, rows of the matrix, size)
combine_rows: Any = intrinsic(_typed_products)
# out[b] += weight * sum_j x[j * step] * rows[j, b]:
# (rows, first, x, first, step, how many, weight, out, first, size)
add_combination: Any = intrinsic(_typed_outer)


@fast_kernel
def products(matrix: Floats, first: int, x: Floats, x_first: int, out: Floats, out_first: int, size: int) -> None:
    """out[i] = sum_j matrix[j, i] * x[j], all three inside flat arrays; fast for sizes up to WIDEST."""
    n = np.uint64(size)
    combine_rows(matrix, np.uint64(first), x, np.uint64(x_first), out, np.uint64(out_first), n, n)


@inner_fast_kernel
def dots(matrix: Floats, first: int, x: Floats, x_first: int, out: Floats, out_first: int, size: int) -> None:
    """out[i] = sum_j matrix[i, j] * x[j], all three inside flat arrays; long rows share the loads of x by four.

    Flat arrays and unsigned indices: views and wrap-around checks would cost more than the products.
    """
    n = np.uint64(size)
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    m, u, o = np.uint64(first), np.uint64(x_first), np.uint64(out_first)
    i = np.uint64(0)
    while n > np.uint64(16) and i + four <= n:
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        m1, m2, m3 = m + n, m + n + n, m + n + n + n
        for j in range(n):
            z = x[u + j]
            s0 += z * matrix[m + j]
            s1 += z * matrix[m1 + j]
            s2 += z * matrix[m2 + j]
            s3 += z * matrix[m3 + j]
        out[o + i] = s0
        out[o + i + one] = s1
        out[o + i + two] = s2
        out[o + i + three] = s3
        i += four
        m = m3 + n
    while i < n:
        s = 0.0
        for j in range(n):
            s += x[u + j] * matrix[m + j]
        out[o + i] = s
        i += one
        m += n
