"""Tagging: scores of the attributes that fire, and the best label sequence of every sentence in one call.

Codes are base-L numbers of runs of labels, the oldest label most significant. An arc of depth d is a run of d
labels; at position t of a sentence the depth is min(t + 1, order). At full depth an arc is (a, h, b): the
oldest label, the order - 2 labels between, the newest one; H = L**(order - 2) values of h.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.scores import LocalScores, ScoreTables
from vcrf.types import Floats, Ints, UInts32


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
def add_entries(
    sizes: Ints,
    entries: Ints,
    row_of: UInts32,
    value_of: Floats,
    ptr: Ints,
    labels: UInts32,
    weights: Floats,
    out: Floats,
) -> None:
    """The same for tokens of sizes[t] entries each, an entry being an attribute with a value."""
    i = 0
    for t in range(len(sizes)):
        for _ in range(sizes[t]):
            entry = np.uint64(entries[i])
            i += 1
            row, value = row_of[entry], value_of[entry]
            for j in range(np.uint64(ptr[row]), np.uint64(ptr[row + np.uint32(1)])):
                out[t, labels[j]] += value * weights[j]


@inner_kernel
def power(base: int, exponent: int) -> int:
    """Integer power by multiplication."""
    result = 1
    for _ in range(exponent):
        result *= base
    return result


@inner_kernel
def correct(
    scratch: Floats,
    table: Floats,
    size: UInts32,
    code: UInts32,
    score: Floats,
    first: int,
    last: int,
    depth: int,
    n_labels: int,
    undo: bool,
) -> None:
    """Add patterns first .. last-1, those of a token, to the arcs that end in them, or put the table's own scores back.

    `scratch` and `table` hold one depth, by code.
    """
    for j in range(first, last):
        if size[j] > depth:  # the sentence is not long enough yet for this pattern
            continue
        width = power(n_labels, size[j])
        for older in range(power(n_labels, depth - int(size[j]))):
            at = older * width + int(code[j])
            scratch[at] = table[at] if undo else scratch[at] + score[j]


@inner_kernel
def best_short(table: Floats, node: Floats, t: int, best: Floats, u: int) -> None:
    """best[u, s] = max_b table[s, b] + node[t, b] + best[u + 1, (s, b)], while histories still grow."""
    n_labels = node.shape[1]
    for s in range(len(table) // n_labels):
        top = -np.inf
        for b in range(n_labels):
            value = table[s * n_labels + b] + (node[t, b] + best[u + 1, s * n_labels + b])
            top = value if value > top else top
        best[u, s] = top


@inner_kernel
def best_full(
    start: int, length: int, order: int, node: Floats,
    table: Floats, table_low: Floats, table_high: Floats, arcs: Floats, low: Floats, high: Floats,
    ptr: Ints, size: UInts32, code: UInts32, score: Floats, best: Floats, after: Floats, kept: Ints,
) -> None:  # fmt: skip
    """Best scores of one sentence at full depth, from right to left.

    ``best[u, (a, h)] = max_b arcs[(h, b), a] + after[b]`` where ``after[b] = node[t, b] + best[u + 1, (h, b)]``

    `arcs` is a copy of `table`; the patterns of a token are added to it and then taken away again. `low` and `high`
    are min_a and max_a of arcs[(h, b), a]. A label b is left out if after[b] + max_a is below some after[b'] + min_a:
    rounding keeps order, so b is not the best for any a. Few labels are left. All in one function: calls cost more.
    """
    n_labels, n_states = node.shape[1], np.uint32(best.shape[1])
    n_between = best.shape[1] // n_labels
    for u in range(length - 1, order - 2, -1):
        t = start + u
        for j in range(ptr[t], ptr[t + 1]):
            width = power(n_labels, size[j])
            for older in range(power(n_labels, order - int(size[j]))):
                at = np.uint32(older * width + int(code[j]))
                row, oldest = at % n_states, at // n_states
                value = arcs[row, oldest] + score[j]
                arcs[row, oldest] = value
                low[row], high[row] = min(low[row], value), max(high[row], value)
        for h in range(n_between):
            first = h * n_labels
            floor = -np.inf
            for b in range(n_labels):
                after[b] = node[t, b] + best[u + 1, first + b]
                value = after[b] + low[first + b]
                floor = value if value > floor else floor
            n_kept = 0
            for b in range(n_labels):  # without a branch, which could not be foreseen
                kept[n_kept] = b
                n_kept += 1 if after[b] + high[first + b] >= floor else 0
            for a in range(n_labels):
                best[u, a * n_between + h] = arcs[first + kept[0], a] + after[kept[0]]
            for i in range(1, n_kept):
                b = kept[i]
                for a in range(n_labels):
                    value = arcs[first + b, a] + after[b]
                    top = best[u, a * n_between + h]
                    best[u, a * n_between + h] = value if value > top else top
        for j in range(ptr[t], ptr[t + 1]):
            width = power(n_labels, size[j])
            for older in range(power(n_labels, order - int(size[j]))):
                at = np.uint32(older * width + int(code[j]))
                row, oldest = at % n_states, at // n_states
                arcs[row, oldest] = table[row, oldest]
                low[row], high[row] = table_low[row], table_high[row]


@inner_kernel
def trace(
    start: int, length: int, order: int, node: Floats, offsets: Ints, natural: Floats,
    ptr: Ints, size: UInts32, code: UInts32, score: Floats, best: Floats, row: Floats, out: UInts32,
) -> None:  # fmt: skip
    """Follow the best scores of one sentence from left to right and write the labels.

    Each is the smallest label that reaches the best score after those before; the same sums as in the recursion.
    """
    n_labels = len(row)
    history = 0
    for u in range(length):
        t, depth = start + u, min(u + 1, order)
        first = offsets[depth] + history * n_labels
        for b in range(n_labels):
            row[b] = natural[first + b]
        for j in range(ptr[t], ptr[t + 1]):
            k = int(size[j])
            if k <= depth:
                # The pattern fits if its older labels are the last ones; then its newest label is left.
                older = history if k == depth else history % power(n_labels, k - 1)
                label = int(code[j]) - older * n_labels
                if label >= 0 and label < n_labels:
                    row[label] += score[j]
        # The states after the label lie side by side: n_labels divides their number.
        after = history * n_labels % best.shape[1]
        pick, top = 0, -np.inf
        for b in range(n_labels):
            value = row[b] + (node[t, b] + best[u + 1, after + b])
            if value > top:
                pick, top = b, value
        out[t] = pick
        history = after + pick


@kernel
def viterbi(sent_ptr: Ints, order: int, node: Floats, tables: ScoreTables, local: LocalScores, out: UInts32) -> None:
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
    # Loops take plain arrays: those of a tuple, and views, are counted as references every time.
    offsets, natural_table, full = tables
    ptr, size, code, score = local
    table, table_low, table_high = full.reshape(-1, n_labels), np.empty(n_states), np.empty(n_states)
    for row in range(n_states):
        table_low[row], table_high[row] = np.min(table[row]), np.max(table[row])
    natural, arcs, low, high = natural_table.copy(), table.copy(), table_low.copy(), table_high.copy()
    scratch, kept = np.empty(n_labels), np.empty(n_labels + 1, np.int64)
    for i in range(len(sent_ptr) - 1):
        start, length = sent_ptr[i], sent_ptr[i + 1] - sent_ptr[i]
        best[length] = 0.0
        best_full(
            start, length, order, node, table, table_low, table_high, arcs, low, high,
            ptr, size, code, score, best, scratch, kept,
        )  # fmt: skip
        for u in range(min(length, order - 1) - 1, -1, -1):
            t, depth = start + u, u + 1
            short = natural[offsets[depth] : offsets[depth + 1]]
            short_table = natural_table[offsets[depth] : offsets[depth + 1]]
            correct(short, short_table, size, code, score, ptr[t], ptr[t + 1], depth, n_labels, False)
            best_short(short, node, t, best, u)
            correct(short, short_table, size, code, score, ptr[t], ptr[t + 1], depth, n_labels, True)
        trace(start, length, order, node, offsets, natural_table, ptr, size, code, score, best, scratch, out)


@kernel
def decode_entries(
    sizes: Ints,
    entries: Ints,
    row_of: UInts32,
    value_of: Floats,
    ptr: Ints,
    labels: UInts32,
    weights: Floats,
    tables: ScoreTables,
    out: UInts32,
) -> None:
    """Best labels of one sentence of entries (see `add_entries`) at order 2, in one call: a call costs microseconds."""
    n = len(sizes)
    n_labels = tables.offsets[2] - tables.offsets[1]
    node = np.zeros((n, n_labels))
    add_entries(sizes, entries, row_of, value_of, ptr, labels, weights, node)
    none = np.zeros(0, np.uint32)
    local = LocalScores(np.zeros(n + 1, np.int64), none, none, np.zeros(0))
    viterbi(np.array([0, n]), 2, node, tables, local, out)
