"""Forward-backward where few pairs of labels have a score: a token costs its labels and these pairs, not all pairs.

With f(a, b) = exp(score) for the pairs that have one, and base[r, c] for all others, which depends on the classes r of
the label before and c of the label here alone,

    alpha[t, b] = node[t, b] (sum_r base[r, c(b)] sum_{a in r} alpha[t-1, a]
                              + sum over pairs (a, b) of (f - base) alpha[t-1, a])
    beta[t-1, a] = sum_c base[r(a), c] sum_{b in c} back[t, b] + sum over pairs (a, b) of (f - base) back[t, b]

Mostly there is one class of all labels. back = node beta / scale, alpha scaled to sum 1, as on the dense lattice
(`kernels.chain`). Where the differences would cancel, the sum is made in full over positive numbers.

A token has numbers of the labels that it may have alone, its cells. Sentences of about the same length go side by
side, so that tokens that may have every label share one look at each pair (`kernels.pair_lanes`). Residuals go to
the features of the token's columns at once (`kernels.token_rows`) and are kept for scans alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import fast_kernel, inner_kernel, kernel
from vcrf.kernels.blocks import Sentences
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.pair_lanes import LANES, LEAST, count_pairs, from_lanes, sum_pairs, to_lanes
from vcrf.kernels.potentials import MAX_RANGE
from vcrf.kernels.sparse_pairs import (
    Side,
    SparsePairs,
    add_plain,
    backward_side,
    count_from,
    count_to,
    enter_classes,
    find_pair,
    forward_side,
    n_pairs_of,
    pair_step,
    scatter,
    sum_classes,
)
from vcrf.kernels.token_rows import FeatureRows, LabelCells, Totals, add_residuals, find_label, token_scores
from vcrf.types import Floats, Ints, UInts32, UInts64


class Kept(NamedTuple):
    """What is kept of each token, for scans and for classes; arrays without rows are not wanted.

    residuals (cells,) of all tokens. Of the tokens of a block, from `first` on: messages and back (n, L), zeros at
    other labels and in hard sentences; before and here, of tokens but the first of a sentence: alpha of the one before,
    and back, summed over classes.
    """

    first: int
    residuals: Floats
    messages: Floats
    back: Floats
    before: Floats
    here: Floats


class PairsFound(NamedTuple):
    """What is found: values of sentences, and which have to be done in the log domain.

    values are logs of sums less true scores; at_truth (n_tokens,) the true labels' residuals; counts those of the pairs
    that are expected; totals are sums for each feature.
    """

    values: Floats
    hard: UInts32
    at_truth: Floats
    counts: Floats
    totals: Totals


class _Group(NamedTuple):
    """Sentences side by side: their numbers and first tokens, where their cells begin and those of the token looked at.

    Arrays for the cells (alpha, node), for one token of each (ahead: what enters it, or beta; plain: its sums with the
    factors of classes), and for scratch.
    """

    sentences: Ints
    tokens: Ints
    base: Ints
    now: Ints
    other: Ints
    chosen: Ints
    alpha: Floats
    node: Floats
    ahead: Floats
    plain: Floats
    scale: Floats
    ones: Floats
    weights: Floats
    row: Floats
    row2: Floats
    residual: Floats
    of_value: Floats
    bits: UInts64
    lane_in: Floats
    lane_out: Floats


@inner_kernel
def _new_group(lanes: int, n_labels: int, n_cells: int, n_values: int, n_classes: int, longest: int) -> _Group:
    """Room for the largest group."""
    w, ints = lanes * n_labels, (6, lanes)
    numbers = np.zeros(ints, np.int64)
    return _Group(
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], np.empty(n_cells), np.empty(n_cells),
        np.empty((lanes, n_labels)), np.empty((lanes, n_classes)), np.empty((lanes, longest)), np.ones(lanes),
        np.ones(lanes), np.empty(n_labels), np.empty(n_labels), np.empty(n_labels), np.empty(n_values),
        np.empty(n_labels, np.uint64), np.empty(w), np.empty(w),
    )  # fmt: skip


@inner_kernel
def _labels_of(sets: LabelCells, t: int) -> UInts32:
    s = np.int64(sets.of_token[t])
    return sets.labels[sets.ptr[s] : sets.ptr[s + 1]]


@inner_kernel
def _add_loss(sentences: Sentences, t: int, cost: float, labels: UInts32, gold: int, node: Floats) -> None:
    """Add the loss of wrong labels."""
    if len(sentences.allowed) == 0:
        for k in range(len(node)):
            node[k] += cost
        node[gold] -= cost
        return
    for k in range(len(node)):
        node[k] += cost * (1.0 - sentences.allowed[t, labels[k]])


@inner_kernel
def _highest(x: Floats) -> float:
    """The largest of some numbers, four at a time: the one before has not to be waited for."""
    n = len(x) // 4 * 4
    a = b = c = d = x[0]
    for k in range(0, n, 4):
        a, b = max(a, x[k]), max(b, x[k + 1])
        c, d = max(c, x[k + 2]), max(d, x[k + 3])
    for k in range(n, len(x)):
        a = max(a, x[k])
    return float(max(max(a, b), max(c, d)))


@inner_kernel
def _set_nodes(
    sentences: Sentences, sets: LabelCells, is_clamped: bool, rows: FeatureRows, pairs: SparsePairs, span: float,
    i: int, at: int, group: _Group, found: PairsFound,
) -> None:  # fmt: skip
    """Node factors of a sentence, shifted to maximum 1; its value gets the shifts less the true score, or it is hard.

    Sums over the labels before, or after, differ from label to label by no more than the scores of pairs do. So a label
    whose score is 700 nats below the best one of its token, where scores are clipped, has a posterior below
    exp(2 span - 700), which is nothing, however far below it is: scores of labels flag no sentence unless they are no
    numbers.
    """
    cost, value = sentences.costs[i], 0.0
    found.hard[i] = 0 if 2.0 * span < MAX_RANGE else 1
    for t in range(sentences.ptr[i], sentences.ptr[i + 1]):
        labels, y = _labels_of(sets, t), int(sentences.y[t])
        n = len(labels)
        node = group.node[at : at + n]
        token_scores(rows, t, labels, group.row, group.of_value, node)
        gold = find_label(labels, y)
        value -= node[gold]
        if not is_clamped:
            _add_loss(sentences, t, cost, labels, gold, node)
        high = _highest(node)
        if not high < np.inf:
            found.hard[i] = 1
        for k in range(n):
            node[k] = max(node[k] - high, -700.0)
        bits = group.bits[:n]
        exp_inplace(node, bits, bits.view(np.float64))
        if t > sentences.ptr[i]:
            before = int(sentences.y[t - 1])
            j = find_pair(pairs, before, y)
            score = pairs.class_scores[pairs.rows[before], pairs.columns[y]]
            value += pairs.shift - (math.log(pairs.factor[j]) + pairs.shift if j >= 0 else score)
        value += high
        at += n
    found.values[i] = value


@inner_kernel
def _choose(
    sets: LabelCells, length: Ints, t: int, n_labels: int, hard: UInts32, group: _Group, m: int
) -> tuple[int, int]:
    """Number the sentences with a token t and one before: first those where both may have every label; both counts."""
    n_all, n = 0, 0
    for turn in range(2):
        for k in range(m):
            i = group.sentences[k]
            if hard[i] != 0 or t >= length[k] or t == 0:
                continue
            u = group.tokens[k] + t
            both = len(_labels_of(sets, u)) == n_labels and len(_labels_of(sets, u - 1)) == n_labels
            if both == (turn == 0):
                group.chosen[n] = k
                n += 1
        n_all = n if turn == 0 else n_all
    return n_all, n


@inner_kernel
def _steps(side: Side, sets: LabelCells, x: Floats, n_all: int, n: int, shift: int, wanted: int, group: _Group) -> None:
    """`pair_step` for the first n of `chosen`, of which the first n_all may have every label on both sides.

    The cells of the token `shift` of a sentence begin at `now` of x; sums for the token `wanted` go to `ahead`.
    """
    n_labels, lanes, first = len(group.row), len(group.sentences), 0
    if n_all >= LEAST:
        for k in range(n_all):
            group.other[k] = group.now[group.chosen[k]]
        to_lanes(x, group.other, group.ones, n_all, n_labels, lanes, group.lane_in)
        sum_pairs(n_labels, side.ptr, side.labels, side.excess, lanes, group.lane_in, group.lane_out)
        from_lanes(group.lane_out, n_all, n_labels, lanes, group.chosen, group.ahead)
        for k in range(n_all):
            lane, at = group.chosen[k], group.now[group.chosen[k]]
            labels = _labels_of(sets, group.tokens[lane] + shift)
            add_plain(side, labels, x[at : at + n_labels], labels, group.plain[lane], group.row, group.ahead[lane])
        first = n_all
    for k in range(first, n):
        lane, at = group.chosen[k], group.now[group.chosen[k]]
        given = _labels_of(sets, group.tokens[lane] + shift)
        want = _labels_of(sets, group.tokens[lane] + wanted)
        pair_step(
            side, given, x[at : at + len(given)], want, group.plain[lane], group.row, group.row2,
            group.ahead[lane, : len(want)],
        )  # fmt: skip


@fast_kernel
def _scaled(x: Floats, y: Floats, scale: float, out: Floats) -> float:
    """Out = scale * x * y; returns its sum.

    Two loops: whether one that stores and sums is vectorised is decided when it runs, by where the arrays are, and the
    order of the sum with it.
    """
    for b in range(len(out)):
        out[b] = scale * x[b] * y[b]
    return _sum(out)


@kernel
def _sum(x: Floats) -> float:
    total = 0.0
    for b in range(len(x)):
        total += x[b]
    return total


@inner_kernel
def _go_forward(
    sets: LabelCells, length: Ints, m: int, side: Side, kept: Kept, group: _Group, found: PairsFound
) -> None:
    """Alpha of the sentences of a group, scaled to sum 1, and their values."""
    n_labels, sums = len(group.row), np.empty(side.base.shape[1])
    for k in range(m):
        group.now[k] = group.base[k]
    for t in range(length[0]):
        n_all, n = _choose(sets, length, t, n_labels, found.hard, group, m)
        for j in range(n):
            k = group.chosen[j]
            u, at = group.tokens[k] + t, group.now[k]
            labels = _labels_of(sets, u - 1)
            sum_classes(labels, side.theirs, group.alpha[at : at + len(labels)], sums)
            enter_classes(sums, side.base, group.plain[k, : len(side.base)])
            if len(kept.before) > 0:
                kept.before[u - kept.first] = sums
        _steps(side, sets, group.alpha, n_all, n, t - 1, t, group)
        for k in range(m):
            if t >= length[k] or found.hard[group.sentences[k]] != 0:
                continue
            size = len(_labels_of(sets, group.tokens[k] + t))
            if t == 0:
                group.ahead[k, :size] = 1.0
            else:
                group.now[k] += len(_labels_of(sets, group.tokens[k] + t - 1))
            at = group.now[k]
            alpha = group.alpha[at : at + size]
            total = _scaled(group.ahead[k, :size], group.node[at : at + size], 1.0, alpha)
            group.scale[k, t] = 1.0 / total
            for b in range(size):
                alpha[b] *= group.scale[k, t]
            found.values[group.sentences[k]] += math.log(total)


@inner_kernel
def _go_backward(
    sentences: Sentences, sets: LabelCells, rows: FeatureRows, is_squared: bool, length: Ints, m: int, side: Side,
    pairs: SparsePairs, kept: Kept, group: _Group, found: PairsFound,
) -> None:  # fmt: skip
    """Residuals and counts of the sentences of a group; back takes the place of their node factors."""
    n_labels, sums = len(group.row), np.empty(side.base.shape[1])
    for t in range(length[0] - 1, -1, -1):
        for k in range(m):
            i, u = group.sentences[k], group.tokens[k] + t
            if t >= length[k] or found.hard[i] != 0:
                continue
            labels, weight = _labels_of(sets, u), sentences.weights[i]
            size = len(labels)
            if t == length[k] - 1:
                group.ahead[k, :size] = 1.0
            else:
                group.now[k] -= size
            at = group.now[k]
            alpha, node, beta = group.alpha[at : at + size], group.node[at : at + size], group.ahead[k, :size]
            residual = group.residual[:size]
            _scaled(alpha, beta, weight, residual)
            gold = find_label(labels, int(sentences.y[u]))
            residual[gold] -= weight
            found.at_truth[u] = residual[gold]
            if len(kept.residuals) > 0:
                kept.residuals[sets.cells[u] : sets.cells[u + 1]] = residual
            add_residuals(rows, u, labels, residual, weight, is_squared, group.row, group.of_value, found.totals)
            _scaled(node, beta, group.scale[k, t], node)
            if len(kept.messages) > 0:
                scatter(labels, alpha, kept.messages[u - kept.first])
                scatter(labels, node, kept.back[u - kept.first])
        n_all, n = _choose(sets, length, t, n_labels, found.hard, group, m)
        if n == 0:
            continue
        for j in range(n):
            k = group.chosen[j]
            u, at = group.tokens[k] + t, group.now[k]
            labels = _labels_of(sets, u)
            sum_classes(labels, side.theirs, group.node[at : at + len(labels)], sums)
            enter_classes(sums, side.base, group.plain[k, : len(side.base)])
            if len(kept.here) > 0:
                kept.here[u - kept.first] = sums
        _steps(side, sets, group.node, n_all, n, t, t - 1, group)
        _count(sentences, sets, pairs, n_all, n, t, group, found)


@inner_kernel
def _count(
    sentences: Sentences, sets: LabelCells, pairs: SparsePairs, n_all: int, n: int, t: int, group: _Group,
    found: PairsFound
) -> None:  # fmt: skip
    """Add the posteriors of the pairs that end at token t; `lane_in` has back of the first n_all."""
    n_labels, lanes, first = len(group.row), len(group.sentences), 0
    if n_all >= LEAST:
        for j in range(n_all):
            k = group.chosen[j]
            group.other[j] = group.now[k] - n_labels
            group.weights[j] = sentences.weights[group.sentences[k]]
        to_lanes(group.alpha, group.other, group.weights, n_all, n_labels, lanes, group.lane_out)
        count_pairs(
            n_labels, pairs.ptr, pairs.newest, pairs.factor, lanes, group.lane_out, group.lane_in, found.counts
        )  # fmt: skip
        first = n_all
    for j in range(first, n):
        k = group.chosen[j]
        before, here = _labels_of(sets, group.tokens[k] + t - 1), _labels_of(sets, group.tokens[k] + t)
        at = group.now[k]
        scatter(before, group.alpha[at - len(before) : at], group.row)
        scatter(here, group.node[at : at + len(here)], group.row2)
        weight = sentences.weights[group.sentences[k]]
        if n_pairs_of(before, pairs.ptr) <= n_pairs_of(here, pairs.back_ptr):
            count_from(before, pairs, weight, group.row, group.row2, found.counts)
        else:
            count_to(here, pairs, weight, group.row, group.row2, found.counts)


@kernel
def weighted_pass(
    sentences: Sentences, order: Ints, sets: LabelCells, is_clamped: bool, rows: FeatureRows, pairs: SparsePairs,
    span: float, values_only: bool, is_squared: bool, kept: Kept, found: PairsFound,
) -> None:  # fmt: skip
    """One forward-backward over some sentences, the longest first.

    `span` is how far scores of pairs differ. Clamped, there is no loss. Squared, the totals are of variances.
    """
    n_labels, lanes = rows.dense.table.shape[1], min(LANES, len(order))
    if len(order) == 0:
        return
    n_cells = 0
    for first in range(0, len(order), lanes):
        size = 0
        for k in range(first, min(first + lanes, len(order))):
            size += sets.cells[sentences.ptr[order[k] + 1]] - sets.cells[sentences.ptr[order[k]]]
        n_cells = max(n_cells, size)
    longest = sentences.ptr[order[0] + 1] - sentences.ptr[order[0]]
    n_classes = max(pairs.base.shape[0], pairs.base.shape[1])
    n_values = rows.sets.n_values
    group = _new_group(lanes, n_labels, n_cells, n_values, n_classes, longest)
    forward, backward = forward_side(pairs), backward_side(pairs)
    length = np.zeros(lanes, np.int64)
    for first in range(0, len(order), lanes):
        m, at = min(lanes, len(order) - first), 0
        for k in range(m):
            i = order[first + k]
            group.sentences[k], group.tokens[k], group.base[k] = i, sentences.ptr[i], at
            length[k] = sentences.ptr[i + 1] - sentences.ptr[i]
            _set_nodes(sentences, sets, is_clamped, rows, pairs, span, i, at, group, found)
            at += sets.cells[sentences.ptr[i + 1]] - sets.cells[sentences.ptr[i]]
        _go_forward(sets, length, m, forward, kept, group, found)
        if not values_only:
            _go_backward(
                sentences, sets, rows, is_squared, length, m, backward, pairs, kept, group, found
            )  # fmt: skip


@kernel
def cell_scores(rows: FeatureRows, sets: LabelCells, first: int, last: int, out: Floats) -> None:
    """Scores of the cells of some tokens."""
    row, of_value = np.empty(rows.dense.table.shape[1]), np.empty(rows.sets.n_values)
    for t in range(first, last):
        at = sets.cells[t] - sets.cells[first]
        labels = _labels_of(sets, t)
        token_scores(rows, t, labels, row, of_value, out[at : at + len(labels)])


@kernel
def cell_totals(
    rows: FeatureRows, sets: LabelCells, first: int, last: int, residuals: Floats, weight: float, is_squared: bool,
    totals: Totals,
) -> None:  # fmt: skip
    """Add the residuals of the cells of some tokens to the totals."""
    row, of_value = np.empty(rows.dense.table.shape[1]), np.empty(rows.sets.n_values)
    for t in range(first, last):
        at = sets.cells[t] - sets.cells[first]
        labels = _labels_of(sets, t)
        add_residuals(rows, t, labels, residuals[at : at + len(labels)], weight, is_squared, row, of_value, totals)
