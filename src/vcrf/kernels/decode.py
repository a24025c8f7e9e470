"""Tagging: scores of the attributes that fire, and the best label sequence of every sentence in one call.

Codes are base-L numbers of runs of labels, the oldest label most significant. An arc of depth d is a run of d
labels; at position t of a sentence the depth is min(t + 1, order). At full depth an arc is (a, h, b): the
oldest label, the order - 2 labels between, the newest one; H = L**(order - 2) values of h.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.types import Floats, Ints, UInts32


class ArcTables(NamedTuple):
    """Summed scores of plain tag patterns by depth.

    `natural[offsets[d]:offsets[d + 1]]` holds depth d by arc code; `full` the full depth as [h, b, a].
    """

    offsets: Ints
    natural: Floats
    full: Floats


class PatternScores(NamedTuple):
    """CSR over tokens: length, code and score of tag patterns of 2 labels or more that fire there only."""

    ptr: Ints
    size: UInts32
    code: UInts32
    score: Floats


@kernel
def add_scores(
    positions: UInts32,
    rows: UInts32,
    values: Floats,
    ptr: Ints,
    labels: UInts32,
    weights: Floats,
    out: Floats,
) -> None:
    """Add to out[position] the weights of each row that fires there; `values` is empty for indicators."""
    for i in range(len(positions)):
        value = values[i] if len(values) > 0 else 1.0
        for j in range(ptr[rows[i]], ptr[rows[i] + np.uint32(1)]):
            out[positions[i], labels[j]] += value * weights[j]


@kernel
def power(base: int, exponent: int) -> int:
    """Integer power by multiplication."""
    result = 1
    for _ in range(exponent):
        result *= base
    return result


@kernel
def correct(
    scratch: Floats,
    table: Floats,
    local: PatternScores,
    t: int,
    depth: int,
    n_labels: int,
    n_between: int,
    undo: bool,
) -> None:
    """Add the patterns of token t to the arcs that end in them, or put the table's own scores back.

    `scratch` and `table` hold one depth: by code if n_between is 0, else as [h, b, a].
    """
    for j in range(local.ptr[t], local.ptr[t + 1]):
        size = int(local.size[j])
        if size > depth:  # the sentence is not long enough yet for this pattern
            continue
        width = power(n_labels, size)
        for older in range(power(n_labels, depth - size)):
            at = older * width + int(local.code[j])
            if n_between > 0:
                newest = n_between * n_labels
                at = (at % newest) * n_labels + at // newest
            scratch[at] = table[at] if undo else scratch[at] + local.score[j]


@kernel
def best_short(table: Floats, node: Floats, best_next: Floats, n_labels: int, best: Floats) -> None:
    """best[s] = max_b table[s, b] + node[b] + best_next[(s, b)], while histories still grow."""
    for s in range(len(table) // n_labels):
        top = -np.inf
        for b in range(n_labels):
            value = table[s * n_labels + b] + (node[b] + best_next[s * n_labels + b])
            top = value if value > top else top
        best[s] = top


@kernel
def best_full(full: Floats, node: Floats, best_next: Floats, n_labels: int, peak: Floats, best: Floats) -> None:
    """best[(a, h)] = max_b full[h, b, a] + node[b] + best_next[(h, b)]; the loop over a is one of vectors."""
    n_between = len(best) // n_labels
    for h in range(n_between):
        peak[:] = -np.inf
        for b in range(n_labels):
            newer = h * n_labels + b
            score = node[b] + best_next[newer]
            arcs = full[newer * n_labels : (newer + 1) * n_labels]
            for a in range(n_labels):
                value = arcs[a] + score
                peak[a] = value if value > peak[a] else peak[a]
        for a in range(n_labels):
            best[a * n_between + h] = peak[a]


@kernel
def first_best(
    table: Floats,
    history: int,
    local: PatternScores,
    t: int,
    depth: int,
    node: Floats,
    best_next: Floats,
    row: Floats,
) -> int:
    """Smallest label that reaches the best score after a history; the same sums as in the recursion."""
    n_labels = len(row)
    n_states = len(best_next)
    row[:] = table[history * n_labels : (history + 1) * n_labels]
    for j in range(local.ptr[t], local.ptr[t + 1]):
        size, code = int(local.size[j]), int(local.code[j])
        if size <= depth and code // n_labels == history % power(n_labels, size - 1):
            row[code % n_labels] += local.score[j]
    pick, top = 0, -np.inf
    for b in range(n_labels):
        value = row[b] + (node[b] + best_next[(history * n_labels + b) % n_states])
        if value > top:
            pick, top = b, value
    return pick


@kernel
def trace(
    start: int,
    length: int,
    order: int,
    node: Floats,
    tables: ArcTables,
    local: PatternScores,
    best: Floats,
    row: Floats,
    out: UInts32,
) -> None:
    """Follow the best scores of one sentence from left to right and write the labels."""
    n_labels = len(row)
    history = 0
    for u in range(length):
        t, depth = start + u, min(u + 1, order)
        table = tables.natural[tables.offsets[depth] : tables.offsets[depth + 1]]
        label = first_best(table, history, local, t, depth, node[t], best[u + 1], row)
        out[t] = label
        history = (history * n_labels + label) % best.shape[1]


@kernel
def viterbi(sent_ptr: Ints, order: int, node: Floats, tables: ArcTables, local: PatternScores, out: UInts32) -> None:
    """Best labels of every sentence, order 2 or more; of equal sequences the first by labels.

    ``best[t, s] = max_b arc(t, s, b) + best[t+1, s']`` from right to left, then from left to right the
    smallest label that reaches the maximum. Only the maxima are stored: `trace` finds the labels again.

    Parameters
    ----------
    sent_ptr : (n_sentences + 1,) int64
    order : int
        Length of the longest tag pattern, at least 2.
    node : (n_tokens, n_labels) float64
    tables, local : scores of tag patterns anywhere, and of those that fire at one token
    out : (n_tokens,) uint32
        Written: the labels.
    """
    n_labels = node.shape[1]
    n_states = power(n_labels, order - 1)
    best = np.zeros((np.max(sent_ptr[1:] - sent_ptr[:-1]) + 1, n_states))
    natural, full = tables.natural.copy(), tables.full.copy()
    peak = np.empty(n_labels)
    for i in range(len(sent_ptr) - 1):
        start, length = sent_ptr[i], sent_ptr[i + 1] - sent_ptr[i]
        best[length] = 0.0
        for u in range(length - 1, -1, -1):
            t, depth = start + u, min(u + 1, order)
            is_short, is_local = depth < order, local.ptr[t + 1] > local.ptr[t]
            first, last = tables.offsets[depth], tables.offsets[depth + 1]
            scratch = natural[first:last] if is_short else full
            table = tables.natural[first:last] if is_short else tables.full
            n_between = 0 if is_short else n_states // n_labels
            if is_local:
                correct(scratch, table, local, t, depth, n_labels, n_between, False)
            if is_short:
                best_short(scratch, node[t], best[u + 1], n_labels, best[u])
            else:
                best_full(scratch, node[t], best[u + 1], n_labels, peak, best[u])
            if is_local:
                correct(scratch, table, local, t, depth, n_labels, n_between, True)
        trace(start, length, order, node, tables, local, best, peak, out)
