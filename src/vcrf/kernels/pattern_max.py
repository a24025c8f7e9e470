"""Loss-augmented decoding on a pattern automaton: margin and slack rescaling of many sentences.

See `kernels.margin`. States are pairs of a context and a row, as in `kernels.pattern_sweeps`. The backward sweep goes
row by row with `pattern_decode.best_before`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
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
from vcrf.kernels.pattern_decode import add_local, best_before, drop_local
from vcrf.kernels.patterns import PatternArrays
from vcrf.kernels.potentials import node_scores
from vcrf.kernels.product import LossArrays
from vcrf.kernels.scores import LocalArcs
from vcrf.types import Floats, Ints, UInts32


class ScoredArcs(NamedTuple):
    """Scores of a block of sentences: node, flat from token t0 on; arcs, and those of single tokens.

    `here` is scratch equal to `arcs`, `values` (n_arcs,) and `choice`, `after` (n_states,) are scratch.
    """

    t0: int
    node: Floats
    arcs: Floats
    local: LocalArcs
    here: Floats
    values: Floats
    choice: UInts32
    after: Floats


@inner_kernel
def _make_scores(
    t0: int, t1: int, n_labels: int, rows: UInts32, scores: Floats, graph: PatternArrays, arcs: Floats, local: LocalArcs
) -> ScoredArcs:
    node, n_states = np.empty((t1 - t0) * n_labels), len(graph.size)
    node_scores(rows, scores, t0, t1, node)
    return ScoredArcs(
        t0, node, arcs, local, arcs.copy(), np.empty(len(arcs)), np.zeros(n_states, np.uint32), np.empty(n_states)
    )


@inner_kernel
def _correct(scores: ScoredArcs, graph: PatternArrays, t: int, undo: bool) -> None:
    """Add the patterns of token t alone to the arcs, or restore these."""
    local, first, last = scores.local, scores.local.ptr[t], scores.local.ptr[t + 1]
    if undo:
        drop_local(local.arc, first, last, graph.rank, graph.rank_end, graph.by_rank, scores.arcs, scores.here)
    else:
        add_local(local.arc, local.score, first, last, graph.rank, graph.rank_end, graph.by_rank, scores.here)


@inner_kernel
def sweep_back(
    costs: LossArrays, i: int, start: int, stop: int, n_labels: int, graph: PatternArrays, scores: ScoredArcs,
    numbers: Ints, kappa: float, rest: Floats,
) -> None:  # fmt: skip
    """rest[(row, p)] = the most that kappa * loss + score can gain from the tokens to come, after the first token."""
    n_states, last, after, node = len(graph.size), graph.last, scores.after, scores.node
    successor, cost, local_ptr = costs.successor, costs.cost, scores.local.ptr
    for q in range(costs.final_ptr[i + 1] - costs.final_ptr[i]):
        at = (numbers[stop - start] + q) * n_states
        rest[at : at + n_states] = kappa * costs.final[costs.final_ptr[i] + q]
    for t in range(stop - 1, start, -1):
        u, at = t - start, (t - scores.t0) * n_labels
        is_corrected = local_ptr[t + 1] > local_ptr[t]
        if is_corrected:
            _correct(scores, graph, t, False)
        for row in range(costs.width[t]):
            arcs = (costs.first[t] + row) * n_labels
            for p in range(n_states):
                b = last[p]
                to = (numbers[u + 1] + np.int64(successor[arcs + b])) * n_states
                after[p] = node[at + b] + kappa * cost[arcs + b] + rest[to + p]
            best_before(
                n_labels, graph.fail, graph.arc_ptr, graph.arc_label, graph.arc_state, graph.table, scores.here,
                after, 0, scores.values, rest, (numbers[u] + row) * n_states, scores.choice,
            )  # fmt: skip
        if is_corrected:
            _correct(scores, graph, t, True)


@inner_kernel
def follow(
    costs: LossArrays, start: int, stop: int, n_labels: int, graph: PatternArrays, scores: ScoredArcs, numbers: Ints,
    kappa: float, rest: Floats, y: UInts32, labels: UInts32,
) -> tuple[float, float]:  # fmt: skip
    """Write the labels that attain the most, the first of equal ones; returns their score and that of the truth."""
    n_states, table, arc_state, node, here = len(graph.size), graph.table, graph.arc_state, scores.node, scores.here
    successor, cost, local_ptr = costs.successor, costs.cost, scores.local.ptr
    q, state, true_state, score, truth = 0, 0, 0, 0.0, 0.0
    for t in range(start, stop):
        u, at = t - start, (t - scores.t0) * n_labels
        is_corrected = u > 0 and local_ptr[t + 1] > local_ptr[t]
        if is_corrected:
            _correct(scores, graph, t, False)
        top, label, gain, to = -np.inf, 0, 0.0, 0
        for b in range(n_labels):
            arc = (costs.first[t] + q) * n_labels + b
            taken = table[state, b]
            enters = int(arc_state[taken]) if u > 0 else b
            x = node[at + b] + (here[taken] if u > 0 else 0.0)
            z = x + kappa * cost[arc] + rest[(numbers[u + 1] + np.int64(successor[arc])) * n_states + enters]
            if z > top:
                top, label, gain, to = z, b, x, enters
        true_arc = table[true_state, y[t]]
        truth += node[at + y[t]]
        truth += here[true_arc] if u > 0 else 0.0
        true_state = int(arc_state[true_arc]) if u > 0 else int(y[t])
        if is_corrected:
            _correct(scores, graph, t, True)
        labels[t] = label
        score += gain
        q, state = int(successor[(costs.first[t] + q) * n_labels + label]), to
    return score, truth


@kernel
def max_pass(
    sent_ptr: Ints, y: UInts32, first: int, last: int, n_labels: int, costs: LossArrays, rows: UInts32,
    key_scores: Floats, graph: PatternArrays, arcs: Floats, local: LocalArcs, out: Best,
) -> None:  # fmt: skip
    """What `product_max.max_pass` finds: label sequences of sentences first .. last-1 that are worth the most."""
    scores = _make_scores(sent_ptr[first], sent_ptr[last], n_labels, rows, key_scores, graph, arcs, local)
    n_states, rest, labels = len(graph.size), np.empty(0), np.empty(sent_ptr[last], np.uint32)
    for i in range(first, last):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        take_truth(i, start, stop, y, out)
        if stop == start:
            continue
        numbers = np.empty(stop - start + 1, np.int64)
        n_rows = number_rows(costs, i, start, stop, numbers)
        if len(rest) < n_rows * n_states:
            rest = np.empty(n_rows * n_states)
        sweep_back(costs, i, start, stop, n_labels, graph, scores, numbers, 1.0, rest)
        score, truth = follow(costs, start, stop, n_labels, graph, scores, numbers, 1.0, rest, y, labels)
        loss = path_loss(costs, i, start, stop, n_labels, labels)
        take_margin(i, start, stop, labels, loss, score, truth, out)


class Built(NamedTuple):
    """Best scores of (row of the automaton that tells the loss, context), and how they came about."""

    best: Floats
    from_row: UInts32
    from_state: UInts32


@inner_kernel
def _enter(
    costs: LossArrays, additive: Additive, i: int, u: int, length: int, next_first: int, n_states: int, rows: Ints,
    small: Ints, kappa: float, rest: Floats, shift: float, enough: float, row: int, state: int, z: float, to_row: int,
    to_state: int, built: Built,
) -> None:  # fmt: skip
    """Take a step to (to_row, to_state) with score z in all, if it is the best there and its bound exceeds `enough`."""
    place = (rows[u + 1] + to_row) * n_states + to_state
    if z <= built.best[place]:
        return
    if u == length - 1:
        is_better = costs.final[costs.final_ptr[i] + to_row] * (z + shift) > enough
    else:
        number = next_first + to_row
        total = z + shift + kappa * additive.spent[number]
        total += rest[(small[u + 1] + additive.origin[number]) * n_states + to_state]
        is_better = total > 0.0 and bound(total, kappa, additive.least[number], additive.largest[i]) > enough
    if is_better:
        built.best[place], built.from_row[place], built.from_state[place] = z, row, state


@inner_kernel
def build(
    costs: LossArrays, additive: Additive, i: int, start: int, stop: int, n_labels: int, graph: PatternArrays,
    scores: ScoredArcs, rows: Ints, small: Ints, kappa: float, rest: Floats, shift: float, enough: float, built: Built,
    labels: UInts32,
) -> tuple[float, int]:  # fmt: skip
    """Best product above `enough` of all sequences whose bound exceeds it, with its last row; s = score + shift.

    Writes its labels; the row is -1 if there is none.
    """
    n_states, length = len(graph.size), stop - start
    n_final = costs.final_ptr[i + 1] - costs.final_ptr[i]
    built.best[: (rows[length] + n_final) * n_states] = -np.inf
    for u in range(length):
        t, node = start + u, (start + u - scores.t0) * n_labels
        next_first = costs.first[t + 1] if u < length - 1 else 0
        if u > 0:
            _correct(scores, graph, t, False)
        for row in range(costs.width[t]):
            for p in range(n_states if u > 0 else 1):
                x = built.best[(rows[u] + row) * n_states + p] if u > 0 else 0.0
                if x == -np.inf:
                    continue
                for b in range(n_labels):
                    arc = graph.table[p, b]
                    z = x + scores.node[node + b] + (scores.here[arc] if u > 0 else 0.0)
                    enters = int(graph.arc_state[arc]) if u > 0 else b
                    to = int(costs.successor[(costs.first[t] + row) * n_labels + b])
                    _enter(
                        costs, additive, i, u, length, next_first, n_states, rows, small, kappa, rest, shift, enough,
                        row, p, z, to, enters, built,
                    )  # fmt: skip
        if u > 0:
            _correct(scores, graph, t, True)
    product, end_row, state = enough, -1, 0
    for q in range(n_final):
        for p in range(n_states):
            x = built.best[(rows[length] + q) * n_states + p]
            z = costs.final[costs.final_ptr[i] + q] * (x + shift) if x > -np.inf else -np.inf
            if z > product:
                product, end_row, state = z, q, p
    row = end_row
    for u in range(length if end_row >= 0 else 0, 0, -1):
        labels[start + u - 1] = graph.last[state]
        place = (rows[u] + row) * n_states + state
        row, state = int(built.from_row[place]), int(built.from_state[place])
    return product, end_row


@kernel
def slack_pass(
    sent_ptr: Ints, y: UInts32, first: int, last: int, n_labels: int, costs: LossArrays, additive: Additive,
    rows: UInts32, key_scores: Floats, graph: PatternArrays, arcs: Floats, local: LocalArcs, kappas: Floats, out: Best,
) -> None:  # fmt: skip
    """What `product_max.slack_pass` finds, guesses included."""
    scores = _make_scores(sent_ptr[first], sent_ptr[last], n_labels, rows, key_scores, graph, arcs, local)
    n_states, few, rest = len(graph.size), additive.costs, np.empty(0)
    built, labels = (
        Built(np.empty(0), np.empty(0, np.uint32), np.empty(0, np.uint32)),
        np.empty(sent_ptr[last], np.uint32),
    )
    for i in range(first, last):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        take_truth(i, start, stop, y, out)
        if stop == start or additive.largest[i] <= 0.0:
            continue
        small, large = np.empty(stop - start + 1, np.int64), np.empty(stop - start + 1, np.int64)
        n_small, n_large = number_rows(few, i, start, stop, small), number_rows(costs, i, start, stop, large)
        if len(rest) < n_small * n_states:
            rest = np.empty(n_small * n_states)
        kappa = kappas[i]
        sweep_back(few, i, start, stop, n_labels, graph, scores, small, kappa, rest)
        score, truth = follow(few, start, stop, n_labels, graph, scores, small, kappa, rest, y, labels)
        loss = path_loss(few, i, start, stop, n_labels, labels)
        enough = take_guess(
            i, start, stop, labels, loss, 1.0 - truth + score, truth, additive.largest[i], kappas, out
        )  # fmt: skip
        if enough < 0.0:
            continue
        if len(built.best) < n_large * n_states:
            n = n_large * n_states
            built = Built(np.empty(n), np.empty(n, np.uint32), np.empty(n, np.uint32))
        product, q = build(
            costs, additive, i, start, stop, n_labels, graph, scores, large, small, kappa, rest, 1.0 - truth, enough,
            built, out.labels,
        )  # fmt: skip
        if q >= 0:
            take_product(i, costs.final[costs.final_ptr[i] + q], product, kappas, out)
