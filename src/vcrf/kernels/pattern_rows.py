"""Forward-backward on the product of a pattern automaton and a loss automaton: the rows of the loss as lanes.

A state is (context, row), a row being a state of the loss automaton, as in `kernels.product`. For a fixed row the arcs
of a context are still those of the context that it backs off to with its own overwritten, so that the sums of
`kernels.pattern_lanes` hold row by row, with the rows of several sentences side by side in the lanes. What is new is
the move to the next row, which the label decides:

    back[t, p, q] = node[t, b] factor(q, b) beta[t, p, next(q, b)] / scale[t],    b the newest label of p

With `picks` each layer has one row more, its last: see `kernels.product`. A label then leads to the next row, and with
the cost as a factor to the row of those that have picked.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.kernels.blocks import Corrections, PassOutput, Sentences
from vcrf.kernels.pattern_changes import Changes, change_rows, list_changes, make_changes, take_changes
from vcrf.kernels.pattern_lanes import LANES, PairFactors, _label_sums, add_pairs, pair_factors, sum_rows, take_arcs
from vcrf.kernels.pattern_pass import by_length
from vcrf.kernels.patterns import _EXACT, ArcScores, Graph, LocalArcs, prepare_nodes, take_truth
from vcrf.kernels.product import LossArrays
from vcrf.types import Floats, Ints, UInts32


class Group(NamedTuple):
    """Sentences side by side.

    number, start, length : of each sentence; node : where its tokens begin in the block's node factors
    lanes : (longest + 1, n + 1) sentence s has the lanes lanes[u, s] .. lanes[u, s+1]-1 before its token u
    place : (longest + 2,) sum of the lanes of earlier tokens
    """

    number: Ints
    start: Ints
    length: Ints
    node: Ints
    lanes: Ints
    place: Ints


class Moves(NamedTuple):
    """What label b does to each lane of a token, at b * lanes + lane: next lane and factor; the same for picking."""

    to: Ints
    gain: Floats
    pick: Ints
    bonus: Floats


@inner_kernel
def make_group(loss: LossArrays, numbers: Ints, ptr: Ints, t0: int, n_labels: int, picks: bool) -> Group:
    """Give the rows of the sentences lanes."""
    start, n = ptr[numbers], len(numbers)
    length = ptr[numbers + 1] - start
    longest = length.max()
    extra = 1 if picks else 0
    lanes, place = np.zeros((longest + 1, n + 1), np.int64), np.zeros(longest + 2, np.int64)
    for u in range(longest + 1):
        for s in range(n):
            width = 0
            if u < length[s]:
                width = loss.width[start[s] + u] + extra
            elif u == length[s]:
                width = loss.final_ptr[numbers[s] + 1] - loss.final_ptr[numbers[s]] + extra
            lanes[u, s + 1] = lanes[u, s] + width
        place[u + 1] = place[u] + lanes[u, n]
    return Group(numbers, start, length, (start - t0) * n_labels, lanes, place)


@inner_kernel
def _set_moves(loss: LossArrays, group: Group, u: int, n_labels: int, node: Floats, picks: bool, moves: Moves) -> None:
    """Write the moves of token u, without scales; lanes of sentences that have ended lead nowhere."""
    n = len(group.start)
    w = group.lanes[u, n]
    moves.to[: n_labels * w] = 0
    moves.gain[: n_labels * w] = 0.0
    if picks:
        moves.pick[: n_labels * w] = 0
        moves.bonus[: n_labels * w] = 0.0
    for s in range(n):
        if u >= group.length[s]:
            continue
        t, first, picked = group.start[s] + u, group.lanes[u + 1, s], group.lanes[u + 1, s + 1] - 1
        for b in range(n_labels):
            x = node[group.node[s] + u * n_labels + b]
            at = b * w + group.lanes[u, s]
            for q in range(loss.width[t]):
                arc = (loss.first[t] + q) * n_labels + b
                moves.to[at + q] = first + np.int64(loss.successor[arc])
                if picks:
                    moves.gain[at + q] = x
                    moves.pick[at + q], moves.bonus[at + q] = picked, x * loss.factor[arc]
                else:
                    moves.gain[at + q] = x * loss.factor[arc]
            if picks:
                last = at + loss.width[t]
                moves.to[last], moves.gain[last], moves.pick[last] = picked, x, picked


@inner_kernel
def _scale_moves(group: Group, u: int, n_labels: int, picks: bool, scale: Floats, moves: Moves) -> None:
    """Divide the factors of each sentence by its scale."""
    n = len(group.start)
    w = group.lanes[u, n]
    for s in range(n):
        inverse = 1.0 / scale[u * n + s]
        for b in range(n_labels):
            for lane in range(b * w + group.lanes[u, s], b * w + group.lanes[u, s + 1]):
                moves.gain[lane] *= inverse
                if picks:
                    moves.bonus[lane] *= inverse


@inner_kernel
def _find_scales(group: Group, u: int, n_labels: int, picks: bool, moves: Moves, beta: Floats, scale: Floats) -> None:
    """scale[u, s] = sum over labels and rows of what the contexts of one label will be; 1 where that is 0."""
    n = len(group.start)
    w, w_next = group.lanes[u, n], group.lanes[u + 1, n]
    for s in range(n):
        total = 0.0
        for b in range(n_labels):
            for lane in range(b * w + group.lanes[u, s], b * w + group.lanes[u, s + 1]):
                total += moves.gain[lane] * beta[b * w_next + moves.to[lane]]
                if picks:
                    total += moves.bonus[lane] * beta[b * w_next + moves.pick[lane]]
        scale[u * n + s] = total if total > 0.0 else 1.0


@inner_fast_kernel
def _pull(
    w: int, w_next: int, b: int, begin: int, stop: int, picks: bool, moves: Moves, beta: Floats, back: Floats,
    shares: Floats,
) -> None:  # fmt: skip
    """Write `back` of the contexts begin .. stop-1, in label b; `shares`, if not empty: what of it picks now."""
    for p in range(begin, stop):
        to, source = p * w, p * w_next
        for lane in range(w):
            back[to + lane] = moves.gain[b * w + lane] * beta[source + moves.to[b * w + lane]]
        if picks:
            for lane in range(w):
                x = moves.bonus[b * w + lane] * beta[source + moves.pick[b * w + lane]]
                back[to + lane] += x
                if len(shares) > 0:
                    shares[to + lane] = x / back[to + lane] if x > 0.0 else 0.0


@inner_fast_kernel
def _push(
    w: int, w_next: int, b: int, begin: int, stop: int, picks: bool, moves: Moves, new: Floats, alpha: Floats
) -> None:
    """Add the mass of the contexts begin .. stop-1, which end in label b, to the lanes that follow."""
    for p in range(begin, stop):
        source, to = p * w, p * w_next
        for lane in range(w):
            alpha[to + moves.to[b * w + lane]] += moves.gain[b * w + lane] * new[source + lane]
            if picks:
                alpha[to + moves.pick[b * w + lane]] += moves.bonus[b * w + lane] * new[source + lane]


@inner_kernel
def _set_ends(loss: LossArrays, group: Group, u: int, n_states: int, picks: bool, beta: Floats) -> None:
    """Write beta after token u of the sentences that end with it."""
    n = len(group.start)
    w = group.lanes[u + 1, n]
    for s in range(n):
        if u != group.length[s] - 1:
            continue
        final = loss.final_ptr[group.number[s]]
        for lane in range(group.lanes[u + 1, s], group.lanes[u + 1, s + 1]):
            is_picked = picks and lane == group.lanes[u + 1, s + 1] - 1
            x = 1.0 if is_picked else loss.final[final + lane - group.lanes[u + 1, s]]
            for p in range(n_states):
                beta[p * w + lane] = x


@inner_kernel
def backward_rows(
    loss: LossArrays, group: Group, n_labels: int, graph: Graph, factor: Floats, local: LocalArcs, node: Floats,
    picks: bool, moves: Moves, back: Floats, shares: Floats, scale: Floats, beta: Floats,
) -> None:  # fmt: skip
    """Write back[u, p, lane] and scale[u, s]; `shares`, if not empty, says how much of it picks at u."""
    n, n_states = len(group.start), len(graph.size)
    longest = len(group.lanes) - 1
    pairs, changes = pair_factors(n_labels, graph.long_pairs, factor), make_changes(len(factor))
    extra, tokens = np.zeros(n_states * group.lanes[:, n].max()), np.zeros(group.lanes[:, n].max(), np.int64)
    beta[: n_states * group.lanes[longest, n]] = 0.0
    for u in range(longest - 1, -1, -1):
        w, w_next = group.lanes[u, n], group.lanes[u + 1, n]
        _set_ends(loss, group, u, n_states, picks, beta)
        _set_moves(loss, group, u, n_labels, node, picks, moves)
        _find_scales(group, u, n_labels, picks, moves, beta, scale)
        _scale_moves(group, u, n_labels, picks, scale, moves)
        begin, stop = group.place[u] * n_states, group.place[u + 1] * n_states
        here, picked = back[begin:stop], shares[begin:stop]
        for b in range(n_labels):
            _pull(w, w_next, b, b, b + 1, picks, moves, beta, here, picked)
            _pull(w, w_next, b, graph.first[b], graph.first[b + 1], picks, moves, beta, here, picked)
        if u > 0:
            for s in range(n):
                for lane in range(group.lanes[u, s], group.lanes[u, s + 1]):
                    tokens[lane] = group.start[s] + u
                    if u < group.length[s]:
                        change_rows(w, lane, tokens[lane], n_labels, local, graph, factor, here, 0, changes, extra)
            sum_rows(w, tokens, n_labels, graph, factor, pairs, local, here, 0, extra, beta)


@inner_kernel
def partition_of(loss: LossArrays, group: Group, s: int, n_labels: int, picks: bool, back: Floats) -> float:
    """Sum over all label sequences of sentence s, over the product of its scales."""
    n, lane = len(group.start), group.lanes[0, s]
    w = group.lanes[0, n]
    total, init = 0.0, loss.init[group.number[s]]
    for b in range(n_labels):
        if picks:
            total += back[b * w + lane] + init * back[b * w + lane + 1]
        else:
            total += init * back[b * w + lane]
    return total


@kernel
def _take_in_full(
    group: Group, u: int, n_labels: int, graph: Graph, factor: Floats, local: LocalArcs, alpha: Floats, here: Floats,
    changes: Changes, new: Floats, counts: Floats, out: Floats,
) -> None:  # fmt: skip
    """What `take_arcs` and `take_changes` find, as sums of positive numbers."""
    n = len(group.start)
    w = group.lanes[u, n]
    new[: len(graph.size) * w] = 0.0
    for s in range(n):
        t = group.start[s] + u
        if u >= group.length[s]:
            continue
        for lane in range(group.lanes[u, s], group.lanes[u, s + 1]):
            changes.value[:] = 0.0
            for p in range(len(graph.size)):
                for b in range(n_labels):
                    changes.value[graph.table[p, b]] += alpha[p * w + lane]
            n_listed = list_changes(t, local, graph, changes)
            for arc in range(len(factor)):
                state, z = np.int64(graph.arc_state[arc]), factor[arc]
                mass = changes.value[arc] * (z if changes.times[arc] == 0.0 else z * changes.times[arc])
                new[state * w + lane] += mass
                changes.value[arc] = mass * here[state * w + lane]
                counts[arc] += changes.value[arc]
            for j in range(local.ptr[t], local.ptr[t + 1]):
                for r in range(graph.rank[local.arc[j]], graph.rank_end[local.arc[j]]):
                    out[j] += changes.value[graph.by_rank[r]]
            for x in range(n_listed):
                changes.times[changes.listed[x]] = 0.0
    changes.value[:] = 0.0


@kernel
def _take_by_differences(
    group: Group, u: int, n_labels: int, graph: Graph, factor: Floats, pairs: PairFactors, local: LocalArcs,
    alpha: Floats, here: Floats, changes: Changes, new: Floats, pair_counts: Floats, counts: Floats, out: Floats,
) -> None:  # fmt: skip
    """Mass and posteriors of what enters token u, in all lanes."""
    n = len(group.start)
    w = group.lanes[u, n]
    take_arcs(w, n_labels, graph, factor, pairs, alpha, here, 0, new, pair_counts, counts)
    for s in range(n):
        if u < group.length[s]:
            for lane in range(group.lanes[u, s], group.lanes[u, s + 1]):
                take_changes(
                    w, lane, group.start[s] + u, n_labels, local, graph, factor, alpha, here, 0, changes, new, counts,
                    out,
                )  # fmt: skip


@inner_kernel
def _write_labels(
    loss: LossArrays, group: Group, u: int, n_labels: int, weights: Floats, sums: Floats, means: Floats, out: Floats
) -> bool:
    """Sum the posteriors of labels over rows, and the mean costs; whether they sum to the weights."""
    n = len(group.start)
    w, is_exact = group.lanes[u, n], True
    for s in range(n):
        if u >= group.length[s]:
            continue
        t, whole = group.start[s] + u, 0.0
        for b in range(n_labels):
            total, at = 0.0, b * w + group.lanes[u, s]
            for q in range(group.lanes[u, s + 1] - group.lanes[u, s]):
                total += sums[at + q]
                if q < loss.width[t] and weights[s] > 0.0:
                    means[group.number[s]] += loss.cost[(loss.first[t] + q) * n_labels + b] * sums[at + q] / weights[s]
            out[t * n_labels + b] = total
            whole += total
        is_exact = is_exact and abs(whole - weights[s]) <= _EXACT * weights[s]
    return is_exact


@inner_kernel
def _end_means(
    loss: LossArrays, group: Group, u: int, n_states: int, weights: Floats, alpha: Floats, means: Floats
) -> None:
    """Add the mean final costs of the sentences that end with token u."""
    n = len(group.start)
    w = group.lanes[u + 1, n]
    for s in range(n):
        if u != group.length[s] - 1 or not weights[s] > 0.0:
            continue
        final = loss.final_ptr[group.number[s]]
        for q in range(loss.final_ptr[group.number[s] + 1] - final):
            mass = 0.0
            for p in range(n_states):
                mass += alpha[p * w + group.lanes[u + 1, s] + q]
            means[group.number[s]] += loss.final_cost[final + q] * loss.final[final + q] * mass / weights[s]


@inner_kernel
def forward_rows(
    loss: LossArrays, group: Group, weights: Floats, partition: Floats, n_labels: int, graph: Graph, factor: Floats,
    local: LocalArcs, node: Floats, picks: bool, is_mild: bool, moves: Moves, back: Floats, scale: Floats,
    alpha: Floats, new: Floats, sums: Floats, whole: Floats, counts: Floats, means: Floats, out: PassOutput,
) -> bool:  # fmt: skip
    """Posteriors times weights, after `backward_rows`; returns whether they sum to the weights, if by differences.

    As `patterns.forward_sentence` writes them, and the mean losses; `counts` are those of the group.
    """
    n, n_states = len(group.start), len(graph.size)
    counts[:] = 0.0
    pairs, changes = pair_factors(n_labels, graph.long_pairs, factor), make_changes(len(factor))
    pair_counts = np.zeros((n_labels, n_labels))
    for s in range(n):
        out.cor_residuals[local.ptr[group.start[s]] : local.ptr[group.start[s] + group.length[s]]] = 0.0
        means[group.number[s]] = 0.0 if picks else math.log(loss.init[group.number[s]])
    for u in range(len(group.lanes) - 1):
        w, w_next = group.lanes[u, n], group.lanes[u + 1, n]
        here = back[group.place[u] * n_states : group.place[u + 1] * n_states]
        if u == 0:
            new[: n_states * w] = 0.0
            for s in range(n):
                x, init = weights[s] / partition[s] if partition[s] > 0.0 else 0.0, loss.init[group.number[s]]
                for b in range(n_labels):
                    new[b * w + group.lanes[0, s]] = x if picks else x * init
                    if picks:
                        new[b * w + group.lanes[0, s] + 1] = x * init
        elif is_mild:
            _take_by_differences(
                group, u, n_labels, graph, factor, pairs, local, alpha, here, changes, new, pair_counts, counts,
                out.cor_residuals,
            )  # fmt: skip
        else:
            _take_in_full(
                group, u, n_labels, graph, factor, local, alpha, here, changes, new, counts, out.cor_residuals
            )
        _label_sums(w, n_labels, graph.first, new, here, 0, sums, whole)
        if not _write_labels(loss, group, u, n_labels, weights, sums, means, out.residuals) and is_mild:
            return False
        _set_moves(loss, group, u, n_labels, node, picks, moves)
        _scale_moves(group, u, n_labels, picks, scale, moves)
        alpha[: n_states * w_next] = 0.0
        for b in range(n_labels):
            _push(w, w_next, b, b, b + 1, picks, moves, new, alpha)
            _push(w, w_next, b, graph.first[b], graph.first[b + 1], picks, moves, new, alpha)
        if not picks:
            _end_means(loss, group, u, n_states, weights, alpha, means)
    add_pairs(pairs, pair_counts, counts)
    return True


@inner_kernel
def make_moves(n_labels: int, lanes: int) -> Moves:
    """Room for the moves of up to so many lanes."""
    n = n_labels * lanes
    return Moves(np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64), np.zeros(n))


@inner_kernel
def next_group(loss: LossArrays, which: Ints, begin: int, ptr: Ints, picks: bool) -> int:
    """End of the group that begins at `begin`: as many sentences as fit side by side, at least one."""
    lanes, stop = 0, begin
    while stop < len(which):
        i, widest = which[stop], 1
        for t in range(ptr[i], ptr[i + 1]):
            widest = max(widest, loss.width[t])
        lanes += max(widest, loss.final_ptr[i + 1] - loss.final_ptr[i]) + (1 if picks else 0)
        if lanes > LANES and stop > begin:
            break
        stop += 1
    return stop


@kernel
def rows_pass(
    sentences: Sentences, loss: LossArrays, first: int, last: int, n_labels: int, rows: UInts32, scores: Floats,
    graph: Graph, arc_scores: ArcScores, cor: Corrections, local: LocalArcs, picks: bool, values_only: bool,
    counts: Floats, means: Floats, out: PassOutput,
) -> None:  # fmt: skip
    """Forward-backward of sentences first .. last-1 with a loss: what `product.product_pass` writes to `out`.

    Adds posterior - truth of taking each arc to `counts`; `means` (n_sentences,) gets the mean losses.
    """
    t0, factor = sentences.ptr[first], arc_scores.factor
    node, shift = prepare_nodes(sentences, first, last, n_labels, rows, scores, arc_scores.tables, cor, False, out)
    which = by_length(sentences.ptr, first, last, out.hard)
    n_states, n_arcs, begin = len(graph.size), len(factor), 0
    own_counts, none = np.empty(n_arcs), np.zeros(0)
    for i in range(first, last):
        if picks and sentences.ptr[i] == sentences.ptr[i + 1]:
            out.values[i] = -np.inf
    while begin < len(which):
        stop = next_group(loss, which, begin, sentences.ptr, picks)
        group = make_group(loss, which[begin:stop], sentences.ptr, t0, n_labels, picks)
        begin, n = stop, stop - begin
        w, longest = group.lanes[:, n].max(), len(group.lanes) - 1
        moves, scale, weights = make_moves(n_labels, w), np.empty(longest * n), sentences.weights[group.number]
        back, alpha, partition = np.empty(group.place[longest] * n_states), np.empty(n_states * w), np.empty(n)
        backward_rows(loss, group, n_labels, graph, factor, local, node, picks, moves, back, none, scale, alpha)
        for s in range(n):
            partition[s] = partition_of(loss, group, s, n_labels, picks, back)
            log_z = math.log(partition[s]) if partition[s] > 0.0 else -np.inf
            for u in range(group.length[s]):
                log_z += math.log(scale[u * n + s]) + shift[group.start[s] - t0 + u]
            out.values[group.number[s]] += log_z + (group.length[s] - 1) * arc_scores.shift
        if not values_only:
            new, sums, whole = np.empty(n_states * w), np.empty(n_labels * w), np.empty(w)
            is_mild = True
            while not forward_rows(
                loss, group, weights, partition, n_labels, graph, factor, local, node, picks, is_mild, moves, back,
                scale, alpha, new, sums, whole, own_counts, means, out,
            ):  # fmt: skip
                is_mild = False
            for arc in range(n_arcs):
                counts[arc] += own_counts[arc]
        for s in range(n):
            out.values[group.number[s]] -= take_truth(
                group.start[s], group.start[s] + group.length[s], n_labels, sentences.y, graph, arc_scores.log, local,
                weights[s], counts, out.residuals, out.cor_residuals,
            )  # fmt: skip
