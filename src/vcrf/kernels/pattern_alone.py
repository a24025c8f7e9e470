"""The sums of `kernels.pattern_lanes` where there is one lane: a sentence tagged alone, or a Hessian's.

Loops over one lane, and products with matrices of one column, take twice as long.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel
from vcrf.kernels.patterns import CANCELS
from vcrf.types import Floats, Ints, UInts32


@inner_fast_kernel
def sum_row_alone(
    n_labels: int, fail: Ints, arc_ptr: Ints, up: UInts32, arc_state: UInts32, long_pairs: UInts32, factor: Floats,
    matrix: Floats, back: Floats, at: int, extra: Floats, beta: Floats,
) -> bool:  # fmt: skip
    """What `sum_rows` writes to beta; False where digits are lost, and nothing is to be used."""
    n, here, one = np.uint64(n_labels), np.uint64(at), np.uint64(1)
    for a in range(n):
        total = 0.0
        for b in range(n):
            total += matrix[a, b] * back[here + b]
        beta[a] = total
    for i in range(len(long_pairs)):
        pair = np.uint64(long_pairs[i])
        beta[pair // n] += factor[pair] * back[here + np.uint64(arc_state[pair])]
    for a in range(n):
        shorter = beta[a]
        beta[a] = shorter + extra[a]
        if not beta[a] >= CANCELS * (shorter + abs(extra[a])):
            return False
    for p in range(n, np.uint64(len(fail))):
        shorter = beta[np.uint64(fail[p])]
        total = shorter + extra[p]
        for arc in range(np.uint64(arc_ptr[p]), np.uint64(arc_ptr[p + one])):
            old = np.uint64(up[arc])
            own, other = np.uint64(arc_state[arc]), np.uint64(arc_state[old])
            total += factor[arc] * back[here + own] - factor[old] * back[here + other]
        beta[p] = total
        if not total >= CANCELS * (shorter + abs(extra[p])):
            return False
    return True


@inner_fast_kernel
def take_arcs_alone(
    n_labels: int, fail: Ints, arc_ptr: Ints, up: UInts32, arc_state: UInts32, long_pairs: UInts32, factor: Floats,
    matrix: Floats, alpha: Floats, back: Floats, at: int, new: Floats, pair_counts: Floats, counts: Floats,
) -> None:  # fmt: skip
    """What `take_arcs` does."""
    n, here, one = np.uint64(n_labels), np.uint64(at), np.uint64(1)
    state = np.uint64(len(fail))
    while state > n:
        state -= one
        alpha[np.uint64(fail[state])] += alpha[state]
    new[: len(fail)] = 0.0
    for a in range(n):
        mass = alpha[a]
        for b in range(n):
            new[b] += mass * matrix[a, b]
        for b in range(n):
            pair_counts[a, b] += mass * back[here + b]
    for i in range(len(long_pairs)):
        pair = np.uint64(long_pairs[i])
        own, mass = np.uint64(arc_state[pair]), factor[pair] * alpha[pair // n]
        new[own] += mass
        counts[pair] += mass * back[here + own]
    for p in range(n, np.uint64(len(fail))):
        mass = alpha[p]
        for arc in range(np.uint64(arc_ptr[p]), np.uint64(arc_ptr[p + one])):
            old = np.uint64(up[arc])
            own, other = np.uint64(arc_state[arc]), np.uint64(arc_state[old])
            z, z_old = factor[arc] * mass, factor[old] * mass
            if own == other:
                new[own] += (factor[arc] - factor[old]) * mass
            else:
                new[own] += z
                new[other] -= z_old
            counts[arc] += z * back[here + own]
            counts[old] -= z_old * back[here + other]


@inner_fast_kernel
def times_gain_alone(n_labels: int, first: Ints, gain: Floats, x: Floats, out: Floats) -> None:
    """What `times_gain` does."""
    one = np.uint64(1)
    for b in range(np.uint64(n_labels)):
        z = gain[b]
        out[b] = z * x[b]
        for q in range(np.uint64(first[b]), np.uint64(first[b + one])):
            out[q] = z * x[q]


@inner_fast_kernel
def label_sums_alone(n_labels: int, first: Ints, new: Floats, back: Floats, sums: Floats) -> None:
    """What `label_sums` writes to new and sums."""
    one = np.uint64(1)
    for q in range(np.uint64(first[np.uint64(n_labels)])):
        new[q] = max(new[q], 0.0)
    for b in range(np.uint64(n_labels)):
        total = new[b] * back[b]
        for q in range(np.uint64(first[b]), np.uint64(first[b + one])):
            total += new[q] * back[q]
        sums[b] = total
