"""Best label sequences on the product of a chain and a loss automaton: loss-augmented decoding of many sentences.

See `kernels.margin`. States are pairs of a row of the automaton and a history, as in `kernels.product`. The backward
sweep reads `turned`, the tables with the newest label first, so that its innermost loops are over histories: with
s = (a, h), a the oldest label,

    rest[a, h] = max_b v[b, h] + turned[b, a, h],    v[b, h] = node[b] + kappa cost[b] + rest of (h, b)

The forward one, which builds, reads the tables as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.corrections import pattern_code, power
from vcrf.kernels.margin import (
    Additive,
    Best,
    bound,
    number_rows,
    path_loss,
    take_guess,
    take_margin,
    take_product,
    take_truth,
)
from vcrf.kernels.potentials import node_scores
from vcrf.kernels.product import LossArrays
from vcrf.kernels.scores import FactorTables, LocalFactors
from vcrf.types import Floats, Ints, UInts32


class ScoredTables(NamedTuple):
    """Scores of a block of sentences: node, flat from token t0 on; tables, and what changes in them at single tokens.

    `table` and `turned` are scratch: the tables, to be corrected; `turned_log` are the turned ones as they were.
    """

    t0: int
    node: Floats
    tables: FactorTables
    cor: LocalFactors
    table: Floats
    turned: Floats
    turned_log: Floats


@inner_kernel
def _make_scores(
    t0: int, t1: int, n_labels: int, rows: UInts32, scores: Floats, tables: FactorTables, cor: LocalFactors
) -> ScoredTables:
    node = np.empty((t1 - t0) * n_labels)
    node_scores(rows, scores, t0, t1, node)
    turned = tables.log.copy()
    for depth in range(1, tables.order + 1):
        base, n_hist = tables.offsets[depth], power(n_labels, depth - 1)
        for s in range(n_hist):
            for b in range(n_labels):
                turned[base + b * n_hist + s] = tables.log[base + s * n_labels + b]
    return ScoredTables(t0, node, tables, cor, tables.log.copy(), turned, turned.copy())


@inner_kernel
def _correct(cor: LocalFactors, t: int, n_labels: int, depth: int, base: int, table: Floats, original: Floats,
             undo: bool) -> None:  # fmt: skip
    """Add the corrections of a token to the table of its depth, or restore it."""
    for j in range(cor.ptr[t], cor.ptr[t + 1]):
        if cor.size[j] <= depth:
            step = power(n_labels, int(cor.size[j]))
            for arc in range(int(cor.code[j]), power(n_labels, depth), step):
                table[base + arc] = original[base + arc] if undo else table[base + arc] + cor.score[j]


@inner_kernel
def _correct_turned(cor: LocalFactors, t: int, n_labels: int, depth: int, base: int, turned: Floats, original: Floats,
                    undo: bool) -> None:  # fmt: skip
    """The same for the turned table."""
    n_hist = power(n_labels, depth - 1)
    for j in range(cor.ptr[t], cor.ptr[t + 1]):
        if cor.size[j] <= depth:
            first = base + np.int64(cor.code[j]) % n_labels * n_hist
            for s in range(np.int64(cor.code[j]) // n_labels, n_hist, power(n_labels, int(cor.size[j]) - 1)):
                turned[first + s] = original[first + s] if undo else turned[first + s] + cor.score[j]


@inner_kernel
def _best_after(v: Floats, turned: Floats, base: int, n_labels: int, n_hist: int, half: int, rest: Floats,
                out: int) -> None:  # fmt: skip
    """rest[a, h] = max_b v[b, h] + turned[b, a, h], from place `out` on; half is the number of h."""
    for b in range(n_labels):
        column = base + b * n_hist
        for s in range(0, n_hist, half):
            for h in range(half):
                z = v[b * half + h] + turned[column + s + h]
                rest[out + s + h] = z if z > rest[out + s + h] else rest[out + s + h]


@inner_kernel
def _sweep_back(
    costs: LossArrays, i: int, start: int, stop: int, n_labels: int, scores: ScoredTables, rows: Ints, kappa: float,
    rest: Floats, v: Floats,
) -> None:  # fmt: skip
    """rest[row, s] = the most that kappa * loss + score can gain from the tokens to come, for each state."""
    order, offsets, cor = scores.tables.order, scores.tables.offsets, scores.cor
    node, turned, cost, n_states = scores.node, scores.turned, costs.cost, power(n_labels, order - 1)
    last = rows[stop - start] * n_states
    for q in range(costs.final_ptr[i + 1] - costs.final_ptr[i]):
        rest[last + q * n_states : last + (q + 1) * n_states] = kappa * costs.final[costs.final_ptr[i] + q]
    for t in range(stop - 1, start - 1, -1):
        depth = min(t - start + 1, order)
        base, n_hist = offsets[depth], power(n_labels, depth - 1)
        half = n_states // n_labels if depth == order else n_hist
        at = (t - scores.t0) * n_labels
        # Arguments are counted in and out: no call where there is nothing to correct.
        is_corrected = cor.ptr[t + 1] > cor.ptr[t]
        if is_corrected:
            _correct_turned(cor, t, n_labels, depth, base, turned, scores.turned_log, False)
        for row in range(costs.width[t]):
            arc = (costs.first[t] + row) * n_labels
            for b in range(n_labels):
                x = node[at + b] + kappa * cost[arc + b]
                to = (rows[t - start + 1] + np.int64(costs.successor[arc + b])) * n_states + b
                for h in range(half):
                    v[b * half + h] = x + rest[to + h * n_labels]
            out = (rows[t - start] + row) * n_states
            rest[out : out + n_hist] = -np.inf
            if half > 1:
                _best_after(v, turned, base, n_labels, n_hist, half, rest, out)
                continue
            for b in range(n_labels):  # pairs of labels: the innermost loop is over a
                x, column = v[b], base + b * n_hist
                for s in range(n_hist):
                    z = x + turned[column + s]
                    rest[out + s] = z if z > rest[out + s] else rest[out + s]
        if is_corrected:
            _correct_turned(cor, t, n_labels, depth, base, turned, scores.turned_log, True)


@inner_kernel
def _follow(
    costs: LossArrays, start: int, stop: int, n_labels: int, scores: ScoredTables, rows: Ints, kappa: float,
    rest: Floats, y: UInts32, labels: UInts32,
) -> tuple[float, float]:  # fmt: skip
    """Write the labels that attain the most, the first of equal ones; returns their score and that of the truth."""
    order, offsets, cor = scores.tables.order, scores.tables.offsets, scores.cor
    node, turned, cost, n_states = scores.node, scores.turned, costs.cost, power(n_labels, order - 1)
    q, s, score, truth = 0, 0, 0.0, 0.0
    for t in range(start, stop):
        depth = min(t - start + 1, order)
        n_hist = power(n_labels, depth - 1)
        base, at = offsets[depth], (t - scores.t0) * n_labels
        h = s % (n_states // n_labels) if depth == order else s
        is_corrected = cor.ptr[t + 1] > cor.ptr[t]
        if is_corrected:
            _correct_turned(cor, t, n_labels, depth, base, turned, scores.turned_log, False)
        top, label, gain = -np.inf, 0, 0.0
        for b in range(n_labels):
            arc = (costs.first[t] + q) * n_labels + b
            x = node[at + b] + turned[base + b * n_hist + s]
            to = (rows[t - start + 1] + np.int64(costs.successor[arc])) * n_states
            z = x + kappa * cost[arc] + rest[to + h * n_labels + b]
            if z > top:
                top, label, gain = z, b, x
        true_history = pattern_code(y, t - depth + 1, t, n_labels) // n_labels
        truth += node[at + y[t]]
        truth += turned[base + np.int64(y[t]) * n_hist + true_history]
        if is_corrected:
            _correct_turned(cor, t, n_labels, depth, base, turned, scores.turned_log, True)
        labels[t] = label
        score += gain
        q, s = int(costs.successor[(costs.first[t] + q) * n_labels + label]), h * n_labels + label
    return score, truth


@inner_kernel
def _best_before(
    best: Floats, first: int, table: Floats, base: int, n_labels: int, n_hist: int, half: int, u: Floats
) -> None:
    """u[h, b] = max over the oldest label a of best[a, h] + table[a, h, b]; half >= n_hist keeps all of the history."""
    for k in range(min(half, n_hist) * n_labels):
        u[k] = -np.inf
    for s in range(n_hist):
        x, h, row = best[first + s], s % half * n_labels, base + s * n_labels
        for b in range(n_labels):
            z = x + table[row + b]
            u[h + b] = z if z > u[h + b] else u[h + b]


@inner_kernel
def _build(
    costs: LossArrays, additive: Additive, i: int, start: int, stop: int, n_labels: int, scores: ScoredTables,
    rows: Ints, small: Ints, kappa: float, rest: Floats, shift: float, enough: float, best: Floats, u: Floats,
    is_live: Ints,
) -> tuple[float, int, int]:  # fmt: skip
    """Best product above `enough` of all sequences whose bound exceeds it, with its last state; s = score + shift."""
    tables, cor, table, node = scores.tables, scores.cor, scores.table, scores.node
    order, offsets = tables.order, tables.offsets
    n_states = power(n_labels, order - 1)
    n_rows = rows[stop - start] + costs.final_ptr[i + 1] - costs.final_ptr[i]
    is_live[:n_rows] = 0
    best[:n_states] = -np.inf
    best[0], is_live[0] = 0.0, 1
    successor, first, final, final_ptr = costs.successor, costs.first, costs.final, costs.final_ptr
    spent, leasts, origin, largest = additive.spent, additive.least, additive.origin, additive.largest[i]
    for t in range(start, stop):
        depth = min(t - start + 1, order)
        base, n_hist = offsets[depth], power(n_labels, depth - 1)
        n_next = n_states if depth == order else n_hist * n_labels
        half = n_states // n_labels if depth == order else n_hist
        here, is_last = (t - scores.t0) * n_labels, t == stop - 1
        _correct(cor, t, n_labels, depth, base, table, tables.log, False)
        for row in range(costs.width[t]):
            number = rows[t - start] + row
            if is_live[number] == 0:
                continue
            _best_before(best, number * n_states, table, base, n_labels, n_hist, half, u)
            for b in range(n_labels):
                to = np.int64(successor[(first[t] + row) * n_labels + b])
                after = rows[t - start + 1] + to
                next_row = 0 if is_last else first[t + 1] + to
                loss = final[final_ptr[i] + to] if is_last else spent[next_row]
                least = loss if is_last else leasts[next_row]
                there = 0 if is_last else (small[t - start + 1] + origin[next_row]) * n_states
                for k in range(b, n_next, n_labels):
                    z = u[k] + node[here + b]
                    if is_live[after] == 1 and z <= best[after * n_states + k]:
                        continue
                    if is_last:
                        is_better = loss * (z + shift) > enough
                    else:
                        total = z + shift + kappa * loss + rest[there + k]
                        is_better = total > 0.0 and bound(total, kappa, least, largest) > enough
                    if is_better and is_live[after] == 0:
                        best[after * n_states : (after + 1) * n_states] = -np.inf
                        is_live[after] = 1
                    if is_better:
                        best[after * n_states + k] = z
        _correct(cor, t, n_labels, depth, base, table, tables.log, True)
    product, end_q, end_s = enough, -1, 0
    for q in range(n_rows - rows[stop - start]):
        if is_live[rows[stop - start] + q] == 1:
            for s in range(power(n_labels, min(stop - start, order - 1))):
                x = best[(rows[stop - start] + q) * n_states + s]
                z = final[final_ptr[i] + q] * (x + shift)
                if x > -np.inf and z > product:
                    product, end_q, end_s = z, q, s
    return product, end_q, end_s


@inner_kernel
def _trace(
    costs: LossArrays, start: int, stop: int, n_labels: int, scores: ScoredTables, rows: Ints, best: Floats, q: int,
    s: int, labels: UInts32,
) -> None:  # fmt: skip
    """Labels of a best path that ends in row q and history s, from the last token to the first."""
    tables, cor, table, node = scores.tables, scores.cor, scores.table, scores.node
    order, offsets = tables.order, tables.offsets
    n_states = power(n_labels, order - 1)
    for t in range(stop - 1, start - 1, -1):
        depth = min(t - start + 1, order)
        base, n_hist = offsets[depth], power(n_labels, depth - 1)
        b = s % n_labels
        labels[t] = b
        # The histories before: at full depth the oldest label is free, else the rest of s is the history.
        n_olds = n_labels if depth == order else 1
        h = s // n_labels
        _correct(cor, t, n_labels, depth, base, table, tables.log, False)
        top, from_q, from_s = -np.inf, 0, 0
        for row in range(costs.width[t]):
            arc = (costs.first[t] + row) * n_labels + b
            if costs.successor[arc] != q:
                continue
            x = node[(t - scores.t0) * n_labels + b] + costs.cost[arc]
            for old in range(n_olds):
                before = old * (n_hist // n_labels) + h if depth == order else h
                z = best[(rows[t - start] + row) * n_states + before] + table[base + before * n_labels + b] + x
                if z > top:
                    top, from_q, from_s = z, row, before
        _correct(cor, t, n_labels, depth, base, table, tables.log, True)
        q, s = from_q, from_s


@kernel
def max_pass(
    sent_ptr: Ints, y: UInts32, first: int, last: int, n_labels: int, costs: LossArrays, rows: UInts32,
    key_scores: Floats, tables: FactorTables, cor: LocalFactors, out: Best,
) -> None:  # fmt: skip
    """Margin rescaling of sentences first .. last-1: the sequences that are worth the most; order 2 or more."""
    scores = _make_scores(sent_ptr[first], sent_ptr[last], n_labels, rows, key_scores, tables, cor)
    n_states = power(n_labels, tables.order - 1)
    v, rest, labels = np.empty(n_states), np.empty(0), np.empty(sent_ptr[last], np.uint32)
    for i in range(first, last):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        take_truth(i, start, stop, y, out)
        if stop == start:
            continue
        numbers = np.empty(stop - start + 1, np.int64)
        n_rows = number_rows(costs, i, start, stop, numbers)
        if len(rest) < n_rows * n_states:
            rest = np.empty(n_rows * n_states)
        _sweep_back(costs, i, start, stop, n_labels, scores, numbers, 1.0, rest, v)
        score, truth = _follow(costs, start, stop, n_labels, scores, numbers, 1.0, rest, y, labels)
        loss = path_loss(costs, i, start, stop, n_labels, labels)
        take_margin(i, start, stop, labels, loss, score, truth, out)


@kernel
def slack_pass(
    sent_ptr: Ints, y: UInts32, first: int, last: int, n_labels: int, costs: LossArrays, additive: Additive,
    rows: UInts32, key_scores: Floats, tables: FactorTables, cor: LocalFactors, kappas: Floats, out: Best,
) -> None:  # fmt: skip
    """Slack rescaling of sentences first .. last-1: the sequences that are worth the most; order 2 or more.

    `kappas` are guesses, and get better ones for the next time.
    """
    scores = _make_scores(sent_ptr[first], sent_ptr[last], n_labels, rows, key_scores, tables, cor)
    n_states, few = power(n_labels, tables.order - 1), additive.costs
    u, v, labels = np.empty(n_states), np.empty(n_states), np.empty(sent_ptr[last], np.uint32)
    best, rest, is_live = np.empty(0), np.empty(0), np.empty(0, np.int64)
    for i in range(first, last):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        take_truth(i, start, stop, y, out)
        if stop == start or additive.largest[i] <= 0.0:
            continue
        small, large = np.empty(stop - start + 1, np.int64), np.empty(stop - start + 1, np.int64)
        n_small, n_large = number_rows(few, i, start, stop, small), number_rows(costs, i, start, stop, large)
        if len(rest) < n_small * n_states:
            rest = np.empty(n_small * n_states)
        if len(is_live) < n_large:
            best, is_live = np.empty(n_large * n_states), np.empty(n_large, np.int64)
        kappa = kappas[i]
        _sweep_back(few, i, start, stop, n_labels, scores, small, kappa, rest, v)
        score, truth = _follow(few, start, stop, n_labels, scores, small, kappa, rest, y, labels)
        loss = path_loss(few, i, start, stop, n_labels, labels)
        enough = take_guess(
            i, start, stop, labels, loss, 1.0 - truth + score, truth, additive.largest[i], kappas, out
        )  # fmt: skip
        if enough < 0.0:
            continue
        product, q, state = _build(
            costs, additive, i, start, stop, n_labels, scores, large, small, kappa, rest, 1.0 - truth, enough, best, u,
            is_live,
        )  # fmt: skip
        if q >= 0:
            for row in range(n_large):
                if is_live[row] == 0:
                    best[row * n_states : (row + 1) * n_states] = -np.inf
            _trace(costs, start, stop, n_labels, scores, large, best, q, state, out.labels)
            take_product(i, costs.final[costs.final_ptr[i] + q], product, kappas, out)
