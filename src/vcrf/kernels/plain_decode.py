"""Best labels where the only longer patterns are plain pairs of labels: the default. The same as `decode.viterbi`."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.types import Floats, Ints, UInts32


@inner_kernel
def _sweep_back(
    start: int, length: int, n_labels: int, node: Floats, turned: Floats, low: Floats, high: Floats, after: Floats,
    kept: Ints, best: Floats,
) -> None:  # fmt: skip
    """best[u, a] = max_b turned[b, a] + after[b], after[b] = node[t, b] + best[u + 1, b]: of what follows, by label.

    A label b is left out if after[b] + high[b] is below some after[b'] + low[b'], its largest and smallest score of a
    pair: rounding keeps order, so b is not the best for any a. Few labels are left.
    """
    n = np.uint64(n_labels)
    for b in range(n):
        best[np.uint64(length) * n + b] = 0.0
    for u in range(length - 1, 0, -1):
        here, at = np.uint64(u) * n, np.uint64(start + u) * n
        floor = -np.inf
        for b in range(n):
            after[b] = node[at + b] + best[here + n + b]
            floor = max(floor, after[b] + low[b])
        n_kept = np.uint64(0)
        for b in range(n):  # without a branch, which could not be foreseen
            kept[n_kept] = b
            n_kept += np.uint64(1) if after[b] + high[b] >= floor else np.uint64(0)
        for i in range(max(n_kept, np.uint64(1))):
            label = np.uint64(kept[i])
            row, more = label * n, after[label]
            for a in range(n):
                value = turned[row + a] + more
                best[here + a] = value if i == np.uint64(0) or value > best[here + a] else best[here + a]


@inner_kernel
def _follow(start: int, length: int, n_labels: int, node: Floats, table: Floats, best: Floats, out: UInts32) -> None:
    """From left to right the smallest label that reaches the best score; the same sums as from right to left."""
    before = 0
    for u in range(length):
        t = start + u
        pick, top = 0, -np.inf
        for b in range(n_labels):
            pair = table[before * n_labels + b] if u > 0 else 0.0
            value = pair + (node[t * n_labels + b] + best[(u + 1) * n_labels + b])
            if value > top:
                pick, top = b, value
        out[t] = pick
        before = pick


@kernel
def best_labels(sent_ptr: Ints, n_labels: int, node: Floats, table: Floats, out: UInts32) -> None:
    """Best labels of every sentence; of equal sequences the first by labels.

    Parameters
    ----------
    sent_ptr : (n_sentences + 1,) int64
    n_labels : L
    node : (n_tokens * L,) float64, scores of labels
    table : (L * L,) float64, scores of pairs: the label before, the label
    out : (n_tokens,) uint32, written
    """
    longest = 0
    for i in range(len(sent_ptr) - 1):
        longest = max(longest, sent_ptr[i + 1] - sent_ptr[i])
    turned, low, high = np.empty(n_labels * n_labels), np.full(n_labels, np.inf), np.full(n_labels, -np.inf)
    for a in range(n_labels):
        for b in range(n_labels):
            score = table[a * n_labels + b]
            turned[b * n_labels + a] = score
            low[b], high[b] = min(low[b], score), max(high[b], score)
    after, kept, best = np.empty(n_labels), np.empty(n_labels + 1, np.int64), np.empty((longest + 1) * n_labels)
    for i in range(len(sent_ptr) - 1):
        start, length = sent_ptr[i], sent_ptr[i + 1] - sent_ptr[i]
        _sweep_back(start, length, n_labels, node, turned, low, high, after, kept, best)
        _follow(start, length, n_labels, node, table, best, out)
