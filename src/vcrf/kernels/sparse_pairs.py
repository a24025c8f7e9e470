"""Pairs of labels that have a score, and sums over them at one token: see `kernels.weighted_pairs`.

Forward and backward differ in which label of a pair is summed over: a `Side` of the pairs says it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel
from vcrf.types import Floats, Ints, UInts32

# A sum of differences that is smaller than this share of what it started from has lost digits.
_CANCELS = 1e-4


class SparsePairs(NamedTuple):
    """Pairs of labels that have a score, CSR by the oldest label and by the newest, sorted.

    The factors are exp(score - shift), `excess` is the factor less that of the classes; `back_at` is the number of each
    pair in the other order. `rows` and `columns` are the class of each label as the one before and as the one here;
    `base` (R, C) is exp(class_scores - shift), `turned` its transpose.
    """

    ptr: Ints
    newest: UInts32
    factor: Floats
    excess: Floats
    back_ptr: Ints
    oldest: UInts32
    back_factor: Floats
    back_excess: Floats
    back_at: Ints
    rows: UInts32
    columns: UInts32
    base: Floats
    turned: Floats
    class_scores: Floats
    shift: float


class Side(NamedTuple):
    """Pairs as one direction sees them: by the label that sums are for, by the one that they are over; classes."""

    ptr: Ints
    labels: UInts32
    factor: Floats
    excess: Floats
    over_ptr: Ints
    over_labels: UInts32
    over_excess: Floats
    theirs: UInts32
    mine: UInts32
    base: Floats


@inner_kernel
def forward_side(pairs: SparsePairs) -> Side:
    """Sums are for the newer label."""
    return Side(
        pairs.back_ptr, pairs.oldest, pairs.back_factor, pairs.back_excess, pairs.ptr, pairs.newest, pairs.excess,
        pairs.rows, pairs.columns, pairs.turned,
    )  # fmt: skip


@inner_kernel
def backward_side(pairs: SparsePairs) -> Side:
    """Sums are for the older label."""
    return Side(
        pairs.ptr, pairs.newest, pairs.factor, pairs.excess, pairs.back_ptr, pairs.oldest, pairs.back_excess,
        pairs.columns, pairs.rows, pairs.base,
    )  # fmt: skip


@inner_kernel
def find_pair(pairs: SparsePairs, before: int, here: int) -> int:
    """The number of a pair, -1 if it has no score."""
    for j in range(pairs.ptr[before], pairs.ptr[before + 1]):
        if pairs.newest[j] == here:
            return int(j)
    return -1


@inner_kernel
def _sum_in_full(
    first: int, last: int, labels: UInts32, factor: Floats, classes: UInts32, base: Floats, x: Floats
) -> float:
    """Sum over all labels of x times the factor of the pair with it; `base` is by the class of the label."""
    j, total = first, 0.0
    for a in range(len(x)):
        if j < last and labels[j] == a:
            total += factor[j] * x[a]
            j += 1
        else:
            total += base[classes[a]] * x[a]
    return total


@inner_kernel
def sum_classes(labels: UInts32, classes: UInts32, x: Floats, out: Floats) -> None:
    """Sums of cells over the classes of their labels."""
    out[:] = 0.0
    if len(out) == 1:
        total = 0.0
        for k in range(len(x)):
            total += x[k]
        out[0] = total
        return
    for k in range(len(x)):
        out[classes[labels[k]]] += x[k]


@inner_fast_kernel
def enter_classes(sums: Floats, turned: Floats, out: Floats) -> None:
    """out[c] = sum_r turned[c, r] sums[r]."""
    for c in range(len(out)):
        total = turned[c, 0] * sums[0]
        for r in range(1, len(sums)):
            total += turned[c, r] * sums[r]
        out[c] = total


@inner_kernel
def n_pairs_of(labels: UInts32, ptr: Ints) -> int:
    """Pairs of some labels."""
    if len(labels) == len(ptr) - 1:
        return int(ptr[-1])
    n = 0
    for k in range(len(labels)):
        n += ptr[labels[k] + np.uint32(1)] - ptr[labels[k]]
    return n


@inner_kernel
def scatter(labels: UInts32, x: Floats, out: Floats) -> None:
    """Cells as numbers of all labels, zeros at the others."""
    if len(labels) < len(out):
        out[:] = 0.0
    for k in range(len(labels)):
        out[labels[k]] = x[k]


@inner_fast_kernel
def pair_step(
    side: Side, given: UInts32, x: Floats, wanted: UInts32, plain: Floats, full: Floats, sums: Floats, out: Floats
) -> None:  # fmt: skip
    """out[b] = sum over the given labels a of x[a] times the factor of the pair, for the wanted labels b.

    `plain`, by class of b, is the sum with the factors of the classes; full and sums (L,) are for scratch.
    """
    scatter(given, x, full)
    if n_pairs_of(wanted, side.ptr) <= n_pairs_of(given, side.over_ptr):
        for k in range(len(wanted)):
            b, total = np.int64(wanted[k]), 0.0
            for j in range(np.uint64(side.ptr[b]), np.uint64(side.ptr[b + 1])):
                total += side.excess[j] * full[np.uint64(side.labels[j])]
            out[k] = total
    else:
        sums[:] = 0.0
        for k in range(len(given)):
            a, z = np.int64(given[k]), x[k]
            for j in range(np.uint64(side.over_ptr[a]), np.uint64(side.over_ptr[a + 1])):
                sums[np.uint64(side.over_labels[j])] += side.over_excess[j] * z
        for k in range(len(wanted)):
            out[k] = sums[wanted[k]]
    add_plain(side, given, x, wanted, plain, full, out)


@inner_fast_kernel
def _add_one(plain: float, out: Floats) -> int:
    """Add the sum of the only class; returns how many differences have lost digits."""
    least, n_lost = _CANCELS * plain, 0
    for k in range(len(out)):
        out[k] += plain
    for k in range(len(out)):
        n_lost += 0 if out[k] >= least else 1
    return n_lost


@inner_kernel
def add_plain(side: Side, given: UInts32, x: Floats, wanted: UInts32, plain: Floats, full: Floats, out: Floats) -> None:
    """Add the sums with the factors of classes; in full where differences have lost digits."""
    n_lost = 0
    if len(plain) == 1:
        n_lost = _add_one(plain[0], out)
    else:
        for k in range(len(wanted)):
            x_plain = plain[side.mine[wanted[k]]]
            out[k] += x_plain
            n_lost += not out[k] >= _CANCELS * x_plain
    if n_lost == 0:
        return
    scatter(given, x, full)
    for k in range(len(wanted)):
        b = np.int64(wanted[k])
        if not out[k] >= _CANCELS * plain[side.mine[b]]:
            out[k] = _sum_in_full(
                side.ptr[b], side.ptr[b + 1], side.labels, side.factor, side.theirs, side.base[side.mine[b]], full
            )


@inner_fast_kernel
def count_from(before: UInts32, pairs: SparsePairs, weight: float, alpha: Floats, back: Floats, counts: Floats) -> None:
    """counts[pair] += weight * posterior of the pairs that come from some labels."""
    for k in range(len(before)):
        a = np.int64(before[k])
        x = weight * alpha[a]
        for j in range(np.uint64(pairs.ptr[a]), np.uint64(pairs.ptr[a + 1])):
            counts[j] += x * pairs.factor[j] * back[np.uint64(pairs.newest[j])]


@inner_fast_kernel
def count_to(here: UInts32, pairs: SparsePairs, weight: float, alpha: Floats, back: Floats, counts: Floats) -> None:
    """The same for those that lead to some labels."""
    for k in range(len(here)):
        b = np.int64(here[k])
        x = weight * back[b]
        for j in range(np.uint64(pairs.back_ptr[b]), np.uint64(pairs.back_ptr[b + 1])):
            counts[pairs.back_at[j]] += x * pairs.back_factor[j] * alpha[np.uint64(pairs.oldest[j])]
