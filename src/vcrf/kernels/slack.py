"""Slack rescaling: the label sequence with the largest loss(y) * s(y), s(y) = 1 + score(y) - score of the truth.

For every kappa > 0, with G = max_y kappa loss(y) + s(y), which margin rescaling finds on the small automaton,

    loss(y) s(y) <= loss(y) (G - kappa loss(y)) <= G^2 / (4 kappa)

and the y that attains G has equality if kappa loss(y) = s(y). So: a backward sweep with a guess of kappa gives a good y
and, for each state, the best rest of a path; then the sequences are built forward on the automaton that tells the
loss, but only those whose bound exceeds the best product found. The result is exact for any kappa; a good one leaves
little to build.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.kernels.blocks import Corrections, Tables
from vcrf.kernels.corrections import pattern_code, power
from vcrf.kernels.potentials import node_scores
from vcrf.kernels.product_max import Best, Ends, _best_before, _correct, _path_loss, _trace, number_rows
from vcrf.types import Floats, Ints, UInts32


class Additive(NamedTuple):
    """The small automata, whose arcs carry the loss, and where the rows of the automata that tell the loss lie in them.

    `origin` is a state of the small automaton, `spent` the loss so far, `least` the least loss of any end.
    """

    ends: Ends
    largest: Floats
    origin: Ints
    spent: Floats
    least: Floats


@kernel
def find_origins(
    sent_ptr: Ints, first: Ints, successor: UInts32, ends: Ends, n_labels: int, origin: Ints, spent: Floats
) -> None:
    """Set `origin` and `spent` of the rows (first, successor: of the automata that tell the loss)."""
    for i in range(len(sent_ptr) - 1):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        if stop == start:
            continue
        origin[first[start]], spent[first[start]] = 0, ends.init[i]
        for t in range(start, stop - 1):
            for row in range(first[t], first[t + 1]):
                arcs = (ends.first[t] + origin[row]) * n_labels
                for b in range(n_labels):
                    to = first[t + 1] + successor[row * n_labels + b]
                    origin[to] = ends.successor[arcs + b]
                    spent[to] = spent[row] + ends.cost[arcs + b]


@kernel
def _bound(total: float, kappa: float, least: float, largest: float) -> float:
    """Largest L (total - kappa L) for L from `least` to `largest`."""
    loss = min(max(0.5 * total / kappa, least), largest)
    return loss * (total - kappa * loss)


@kernel
def _sweep_back(
    ends: Ends, i: int, start: int, stop: int, n_labels: int, node: Floats, at: int, tables: Tables, turned: Floats,
    cor: Corrections, table: Floats, rows: Ints, kappa: float, rest: Floats, v: Floats,
) -> None:  # fmt: skip
    """rest[row, s] = the most that kappa * loss + score can gain from the tokens to come, for each state.

    `turned` is the table of full depth with the oldest label last.
    """
    order, offsets = tables.order, tables.offsets
    n_states = power(n_labels, order - 1)
    last = rows[stop - start] * n_states
    for q in range(ends.final_ptr[i + 1] - ends.final_ptr[i]):
        rest[last + q * n_states : last + (q + 1) * n_states] = kappa * ends.final[ends.final_ptr[i] + q]
    for t in range(stop - 1, start - 1, -1):
        depth = min(t - start + 1, order)
        base, n_hist = offsets[depth], power(n_labels, depth - 1)
        n_next = n_states if depth == order else n_hist * n_labels
        half = n_states // n_labels if depth == order else n_hist
        here = at + (t - start) * n_labels
        is_corrected = cor.ptr[t + 1] > cor.ptr[t]
        if is_corrected:
            _correct(cor, t, n_labels, depth, base, table, tables.log, False)
        for row in range(ends.width[t]):
            arc = (ends.first[t] + row) * n_labels
            for b in range(n_labels):
                x = node[here + b] + kappa * ends.cost[arc + b]
                to = (rows[t - start + 1] + np.int64(ends.successor[arc + b])) * n_states
                for k in range(b, n_next, n_labels):
                    v[k] = x + rest[to + k]
            out = (rows[t - start] + row) * n_states
            rest[out : out + n_hist] = -np.inf
            if depth == order and half == 1 and not is_corrected:
                for b in range(n_labels):
                    x, column = v[b], b * n_labels
                    for s in range(n_hist):
                        z = x + turned[column + s]
                        rest[out + s] = z if z > rest[out + s] else rest[out + s]
            else:
                for s in range(n_hist):
                    for b in range(n_labels):
                        z = v[s % half * n_labels + b] + table[base + s * n_labels + b]
                        rest[out + s] = z if z > rest[out + s] else rest[out + s]
        if is_corrected:
            _correct(cor, t, n_labels, depth, base, table, tables.log, True)


@kernel
def _follow(
    ends: Ends, start: int, stop: int, n_labels: int, node: Floats, at: int, tables: Tables, cor: Corrections,
    table: Floats, rows: Ints, kappa: float, rest: Floats, labels: UInts32,
) -> float:  # fmt: skip
    """The labels that attain the most; returns their score."""
    order, offsets = tables.order, tables.offsets
    n_states = power(n_labels, order - 1)
    q, s, score = 0, 0, 0.0
    for t in range(start, stop):
        depth = min(t - start + 1, order)
        base = offsets[depth]
        h = s % (n_states // n_labels) if depth == order else s
        _correct(cor, t, n_labels, depth, base, table, tables.log, False)
        top, label, gain = -np.inf, 0, 0.0
        for b in range(n_labels):
            arc = (ends.first[t] + q) * n_labels + b
            x = node[at + (t - start) * n_labels + b] + table[base + s * n_labels + b]
            to = (rows[t - start + 1] + np.int64(ends.successor[arc])) * n_states
            z = x + kappa * ends.cost[arc] + rest[to + h * n_labels + b]
            if z > top:
                top, label, gain = z, b, x
        _correct(cor, t, n_labels, depth, base, table, tables.log, True)
        labels[t] = label
        score += gain
        q, s = int(ends.successor[(ends.first[t] + q) * n_labels + label]), h * n_labels + label
    return score


@kernel
def _build(
    ends: Ends, additive: Additive, i: int, start: int, stop: int, n_labels: int, node: Floats, at: int,
    tables: Tables, cor: Corrections, table: Floats, rows: Ints, small: Ints, kappa: float, rest: Floats,
    shift: float, enough: float, best: Floats, u: Floats, is_live: Ints,
) -> tuple[float, int, int]:  # fmt: skip
    """Best product above `enough` of all sequences whose bound exceeds it, with its last state; s = score + shift."""
    order, offsets = tables.order, tables.offsets
    n_states = power(n_labels, order - 1)
    n_rows = rows[stop - start] + ends.final_ptr[i + 1] - ends.final_ptr[i]
    is_live[:n_rows] = 0
    best[:n_states] = -np.inf
    best[0], is_live[0] = 0.0, 1
    largest = additive.largest[i]
    for t in range(start, stop):
        depth = min(t - start + 1, order)
        base, n_hist = offsets[depth], power(n_labels, depth - 1)
        n_next = n_states if depth == order else n_hist * n_labels
        half = n_states // n_labels if depth == order else n_hist
        here, is_last = at + (t - start) * n_labels, t == stop - 1
        _correct(cor, t, n_labels, depth, base, table, tables.log, False)
        for row in range(ends.width[t]):
            number = rows[t - start] + row
            if is_live[number] == 0:
                continue
            _best_before(best, number * n_states, table, base, n_labels, n_hist, half, u)
            for b in range(n_labels):
                to = np.int64(ends.successor[(ends.first[t] + row) * n_labels + b])
                after = rows[t - start + 1] + to
                next_row = 0 if is_last else ends.first[t + 1] + to
                loss = ends.final[ends.final_ptr[i] + to] if is_last else additive.spent[next_row]
                least = loss if is_last else additive.least[next_row]
                there = 0 if is_last else (small[t - start + 1] + additive.origin[next_row]) * n_states
                for k in range(b, n_next, n_labels):
                    z = u[k] + node[here + b]
                    if is_live[after] == 1 and z <= best[after * n_states + k]:
                        continue
                    if is_last:
                        is_better = loss * (z + shift) > enough
                    else:
                        total = z + shift + kappa * loss + rest[there + k]
                        is_better = total > 0.0 and _bound(total, kappa, least, largest) > enough
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
                z = ends.final[ends.final_ptr[i] + q] * (x + shift)
                if x > -np.inf and z > product:
                    product, end_q, end_s = z, q, s
    return product, end_q, end_s


@kernel
def _true_score(
    start: int, stop: int, y: UInts32, n_labels: int, node: Floats, at: int, tables: Tables, cor: Corrections,
    table: Floats,
) -> float:  # fmt: skip
    """Score of the true labels."""
    score, offsets = 0.0, tables.offsets
    for t in range(start, stop):
        depth = min(t - start + 1, tables.order)
        _correct(cor, t, n_labels, depth, offsets[depth], table, tables.log, False)
        score += node[at + (t - start) * n_labels + y[t]]
        score += table[offsets[depth] + pattern_code(y, t - depth + 1, t, n_labels)]
        _correct(cor, t, n_labels, depth, offsets[depth], table, tables.log, True)
    return score


@kernel
def _turn(tables: Tables, n_labels: int) -> Floats:
    """The table of label pairs with the older label last; nothing of use for other orders."""
    turned = np.empty(n_labels * n_labels)
    if tables.order == 2:
        for a in range(n_labels):
            for b in range(n_labels):
                turned[b * n_labels + a] = tables.log[tables.offsets[2] + a * n_labels + b]
    return turned


@kernel
def slack_pass(
    sent_ptr: Ints, y: UInts32, first: int, last: int, n_labels: int, ends: Ends, additive: Additive, rows: UInts32,
    scores: Floats, tables: Tables, cor: Corrections, kappas: Floats, out: Best,
) -> None:  # fmt: skip
    """The label sequences of sentences first .. last-1 that are worth the most; order 2 or more.

    `kappas` are guesses, and get better ones for the next time.
    """
    t0, t1 = sent_ptr[first], sent_ptr[last]
    n_states = power(n_labels, tables.order - 1)
    node = np.empty((t1 - t0) * n_labels)
    node_scores(rows, scores, t0, t1, node)
    table, u, v = tables.log.copy(), np.empty(n_states), np.empty(n_states)
    turned = _turn(tables, n_labels)
    best, rest, is_live = np.empty(0), np.empty(0), np.empty(0, np.int64)
    for i in range(first, last):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        out.values[i] = out.losses[i] = out.slopes[i] = 0.0
        for t in range(start, stop):
            out.labels[t] = y[t]
        if stop == start or additive.largest[i] <= 0.0:
            continue
        at = (start - t0) * n_labels
        truth = _true_score(start, stop, y, n_labels, node, at, tables, cor, table)
        small, large = np.empty(stop - start + 1, np.int64), np.empty(stop - start + 1, np.int64)
        n_small = number_rows(additive.ends.width, start, stop, small)
        n_small += additive.ends.final_ptr[i + 1] - additive.ends.final_ptr[i]
        n_large = number_rows(ends.width, start, stop, large) + ends.final_ptr[i + 1] - ends.final_ptr[i]
        if len(rest) < n_small * n_states:
            rest = np.empty(n_small * n_states)
        if len(is_live) < n_large:
            best, is_live = np.empty(n_large * n_states), np.empty(n_large, np.int64)
        labels = np.empty(stop, np.uint32)
        # The truth is worth 0 but for rounding.
        worth, tiny, kappa = 0.0, 1e-12 * (1.0 + abs(truth)), kappas[i]
        _sweep_back(
            additive.ends, i, start, stop, n_labels, node, at, tables, turned, cor, table, small, kappa, rest, v
        )
        s = (
            1.0
            - truth
            + _follow(additive.ends, start, stop, n_labels, node, at, tables, cor, table, small, kappa, rest, labels)
        )
        loss = _path_loss(additive.ends, i, start, stop, n_labels, labels)
        if loss * s > tiny:
            worth = loss * s
            out.values[i], out.losses[i], out.slopes[i] = worth, loss, loss
            out.labels[start:stop] = labels[start:stop]
            kappas[i] = s / loss
        else:
            kappas[i] = min(max(kappas[i] * (2.0 if loss == 0.0 else 0.5), 1e-12), 1e12)
        if _bound(kappa * loss + s, kappa, 0.0, additive.largest[i]) <= worth * (1.0 + 1e-12) + tiny:
            continue
        product, q, state = _build(
            ends, additive, i, start, stop, n_labels, node, at, tables, cor, table, large, small, kappa, rest,
            1.0 - truth, worth * (1.0 + 1e-12) + tiny, best, u, is_live,
        )  # fmt: skip
        if q >= 0:
            for row in range(n_large):
                if is_live[row] == 0:
                    best[row * n_states : (row + 1) * n_states] = -np.inf
            _trace(ends, start, stop, n_labels, node, at, tables, cor, table, large, best, q, state, out.labels)
            loss = ends.final[ends.final_ptr[i] + q]
            out.values[i], out.losses[i], out.slopes[i] = product, loss, loss
            kappas[i] = product / (loss * loss)
