"""Pairs of labels at several tokens side by side: one look at a pair serves them all.

Numbers of tokens side by side are (L, lanes): the innermost loops are over lanes, next to each other in memory.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel
from vcrf.types import Floats, Ints, UInts32

# Tokens side by side, and from how many on it is worth it.
LANES, LEAST = 32, 6
_TILE = 8


@inner_fast_kernel
def to_lanes(rows: Floats, first: Ints, scale: Floats, n: int, n_labels: int, lanes: int, out: Floats) -> None:
    """out[b * lanes + k] = scale[k] * rows[first[k] + b] of n tokens; zeros in the other lanes."""
    for b0 in range(0, n_labels, _TILE):
        b1 = min(b0 + _TILE, n_labels)
        for k in range(n):
            at, x = np.uint64(first[k]), scale[k]
            for b in range(np.uint64(b0), np.uint64(b1)):
                out[b * np.uint64(lanes) + np.uint64(k)] = x * rows[at + b]
        for k in range(n, lanes):
            for b in range(np.uint64(b0), np.uint64(b1)):
                out[b * np.uint64(lanes) + np.uint64(k)] = 0.0


@inner_fast_kernel
def from_lanes(x: Floats, n: int, n_labels: int, lanes: int, rows: Ints, out: Floats) -> None:
    """out[rows[k], b] = x[b, k] of n tokens."""
    for b0 in range(0, n_labels, _TILE):
        b1 = min(b0 + _TILE, n_labels)
        for k in range(n):
            for b in range(np.uint64(b0), np.uint64(b1)):
                out[rows[k], b] = x[b * np.uint64(lanes) + np.uint64(k)]


@inner_fast_kernel
def sum_pairs(
    n_labels: int, ptr: Ints, labels: UInts32, excess: Floats, lanes: int, x: Floats, out: Floats
) -> None:  # fmt: skip
    """out[b, :] = sum over the pairs of b with labels a of excess * x[a, :]; four pairs at a time."""
    w, one = np.uint64(lanes), np.uint64(1)
    for b in range(np.uint64(n_labels)):
        to, j, last = b * w, np.uint64(ptr[b]), np.uint64(ptr[b + one])
        for k in range(w):
            out[to + k] = 0.0
        while j + np.uint64(4) <= last:
            a0, a1 = np.uint64(labels[j]) * w, np.uint64(labels[j + one]) * w
            a2, a3 = np.uint64(labels[j + np.uint64(2)]) * w, np.uint64(labels[j + np.uint64(3)]) * w
            z0, z1, z2, z3 = excess[j], excess[j + one], excess[j + np.uint64(2)], excess[j + np.uint64(3)]
            for k in range(w):
                out[to + k] += z0 * x[a0 + k] + z1 * x[a1 + k] + z2 * x[a2 + k] + z3 * x[a3 + k]
            j += np.uint64(4)
        while j < last:
            at, z = np.uint64(labels[j]) * w, excess[j]
            for k in range(w):
                out[to + k] += z * x[at + k]
            j += one


@inner_fast_kernel
def count_pairs(
    n_labels: int, ptr: Ints, labels: UInts32, factor: Floats, lanes: int, before: Floats, here: Floats, counts: Floats
) -> None:  # fmt: skip
    """counts[pair] += factor * the sum over lanes of before[a, :] * here[b, :]."""
    w = np.uint64(lanes)
    for a in range(np.uint64(n_labels)):
        source = a * w
        for j in range(np.uint64(ptr[a]), np.uint64(ptr[a + np.uint64(1)])):
            at, total = np.uint64(labels[j]) * w, 0.0
            for k in range(w):
                total += before[source + k] * here[at + k]
            counts[j] += factor[j] * total
