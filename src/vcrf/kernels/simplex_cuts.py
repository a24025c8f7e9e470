"""Multipliers of the label sequences of one sentence: kernels of `solvers.simplex_cuts`.

A sentence has n sequences. Row k of the CSR (row_ptr, columns, values) is d_k, intercept[k] is a_k; sequence 0 is the
truth, with an empty row and intercept 0. gram[k, l] = d_k.S d_l, S the diagonal `scale`: the weights are
w = -S sum_k lam_k d_k over all sentences. `gram`, `columns` and `values` may have room for more.
"""

from __future__ import annotations

from vcrf.kernels._jit import kernel
from vcrf.types import Floats, Ints, UInts32


@kernel
def add_gram_row(
    row_ptr: Ints, columns: UInts32, values: Floats, scale: Floats, k: int, spread: Floats, gram: Floats
) -> None:
    """Set row and column k of the Gram matrix, up to k. `spread` are zeros, one a feature, and so they are left."""
    for e in range(row_ptr[k], row_ptr[k + 1]):
        spread[columns[e]] = scale[columns[e]] * values[e]
    for other in range(k + 1):
        product = 0.0
        for e in range(row_ptr[other], row_ptr[other + 1]):
            product += spread[columns[e]] * values[e]
        gram[k, other] = product
        gram[other, k] = product
    for e in range(row_ptr[k], row_ptr[k + 1]):
        spread[columns[e]] = 0.0


@kernel
def add_weights(row_ptr: Ints, columns: UInts32, values: Floats, shares: Floats, scale: Floats, w: Floats) -> None:
    """Subtract S sum_k shares_k d_k from the weights."""
    for k in range(len(shares)):
        if shares[k] != 0.0:
            for e in range(row_ptr[k], row_ptr[k + 1]):
                w[columns[e]] -= scale[columns[e]] * shares[k] * values[e]


@kernel
def ascend_sentence(
    row_ptr: Ints, columns: UInts32, values: Floats, intercept: Floats, gram: Floats, scale: Floats, lam: Floats,
    w: Floats, n_steps: int, enough: float,
) -> float:  # fmt: skip
    """Pairwise steps on the multipliers, each to the best point; w follows. Returns the gap that there was.

    A step takes from the sequence worth the least, of those with a multiplier, and gives to the one worth the most.
    They end where the sentence's gap, sum(lam) max_k value_k - sum_k lam_k value_k, is a share `enough` of what it was.
    """
    n = len(intercept)
    worth, change = intercept.copy(), -lam
    for k in range(n):
        for e in range(row_ptr[k], row_ptr[k + 1]):
            worth[k] += w[columns[e]] * values[e]
    total = lam.sum()
    before = -1.0
    for _ in range(n_steps):
        up, down, mean = 0, -1, 0.0
        for k in range(n):
            if worth[k] > worth[up]:
                up = k
            if lam[k] > 0.0:
                mean += lam[k] * worth[k]
                if down < 0 or worth[k] < worth[down]:
                    down = k
        gap = max(total * worth[up] - mean, 0.0)
        if before < 0.0:
            before = gap
        if down < 0 or worth[up] <= worth[down] or gap <= enough * before:
            break
        gain = worth[up] - worth[down]
        curvature = gram[up, up] + gram[down, down] - 2.0 * gram[up, down]
        if gain < lam[down] * curvature:
            step = gain / curvature
            lam[down] -= step
        else:
            step = lam[down]
            lam[down] = 0.0
        lam[up] += step
        for k in range(n):
            worth[k] -= step * (gram[k, up] - gram[k, down])
    change += lam
    add_weights(row_ptr, columns, values, change, scale, w)
    return before
