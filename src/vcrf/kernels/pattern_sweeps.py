"""Forward-backward on a pattern automaton for several sentences side by side, with a loss automaton or without.

A state is (context, row), a row being a state of the loss automaton, as in `kernels.product`; without a loss there is
one row. For a fixed row the arcs of a context are those of the context that it backs off to with its own overwritten,
so that the sums of `kernels.pattern_lanes` hold row by row: the rows of all sentences of a group are its *lanes*. With
a loss the label decides the next row:

    back[t, p, q] = node[t, b] factor(q, b) beta[t, p, next(q, b)] / scale[t],    b the newest label of p

With `picks` each layer has one row more, its last: see `kernels.product`. A label then leads to the next row, and with
the cost as a factor to the row of those that have picked.

The scale of a token is the sum over the contexts of one label: any scale serves, and longer contexts differ from these
by no more than the span that hard sentences are told by. After the end of a sentence its nodes are zeros, and so is all
that follows from them. Where differences lose digits, the group is summed in full, over positive numbers only.

What stays apart, for speed: without a loss the move to the next row is a product with the nodes (`times_gain`); by the
moves of a loss with one row a pass takes 1.5 times as long with 12 labels at order 3, 2.1 times with 40 at order 2. One
lane has loops of its own, see `kernels.pattern_alone`. The dense lattice has kernels of its own: with the kind of arcs
told by types, a pass at 5 labels takes a tenth longer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.pattern_alone import label_sums_alone
from vcrf.kernels.pattern_arcs import mass_in_full, scale_values, take_posteriors
from vcrf.kernels.pattern_changes import Changes, change_rows, make_changes, take_changes
from vcrf.kernels.pattern_groups import (
    Group,
    LabelMoves,
    find_scales,
    pull_rows,
    push_rows,
    scale_gain,
    scale_moves,
    set_moves,
    spread_nodes,
    times_gain,
)
from vcrf.kernels.pattern_lanes import PairFactors, add_pairs, label_sums, pair_factors, sum_rows, take_arcs
from vcrf.kernels.patterns import EXACT, PatternArrays
from vcrf.kernels.scores import LocalArcs
from vcrf.types import Floats, Ints


class Weighted(NamedTuple):
    """The automaton, factors of its arcs and of the patterns of single tokens; `changes` is scratch of these."""

    graph: PatternArrays
    factor: Floats
    local: LocalArcs
    pairs: PairFactors
    changes: Changes


class GroupMessages(NamedTuple):
    """What a group is worked on with.

    back : (lanes of all tokens, contexts) flat, scale : (tokens, sentences); left by the backward sweep
    alpha, new, extra : (contexts, lanes); sums : (labels, lanes); whole, tokens : (lanes,)
    """

    moves: LabelMoves
    back: Floats
    scale: Floats
    alpha: Floats
    new: Floats
    extra: Floats
    sums: Floats
    whole: Floats
    tokens: Ints


@kernel
def weighted(n_labels: int, graph: PatternArrays, factor: Floats, local: LocalArcs) -> Weighted:
    """The automaton with its factors."""
    return Weighted(graph, factor, local, pair_factors(n_labels, graph.long_pairs, factor), make_changes(len(factor)))


@inner_kernel
def make_messages(n_labels: int, n_states: int, lanes: int, largest: int, has_loss: bool) -> GroupMessages:
    """Room for groups of up to so many lanes, and lanes times tokens."""
    n = n_labels * lanes
    few, gains = (n, n) if has_loss else (0, n_labels * largest)
    return GroupMessages(
        LabelMoves(np.zeros(few, np.int64), np.empty(gains), np.zeros(few, np.int64), np.zeros(few)),
        np.empty(largest * n_states), np.empty(largest), np.empty(n_states * lanes), np.empty(n_states * lanes),
        np.zeros(n_states * lanes), np.empty(n), np.empty(lanes), np.zeros(lanes, np.int64),
    )  # fmt: skip


@inner_kernel
def _set_ends(group: Group, u: int, n_states: int, beta: Floats) -> None:
    """Write beta after token u of the sentences that end with it."""
    n, loss = len(group.start), group.loss
    w = group.lanes[u + 1, n]
    for s in range(n):
        if u != group.length[s] - 1:
            continue
        for lane in range(group.lanes[u + 1, s], group.lanes[u + 1, s + 1]):
            is_picked = group.picks and lane == group.lanes[u + 1, s + 1] - 1
            x = 1.0
            if len(loss.width) > 0 and not is_picked:
                x = loss.final[loss.final_ptr[group.number[s]] + lane - group.lanes[u + 1, s]]
            for p in range(n_states):
                beta[p * w + lane] = x


@kernel
def backward(group: Group, n_labels: int, arcs: Weighted, m: GroupMessages, shares: Floats) -> None:
    """Write m.back[u, p, lane] and m.scale[u, s]; `shares`, if not empty, says how much of `back` picks at u."""
    graph, factor, local, changes, tokens, extra = arcs.graph, arcs.factor, arcs.local, arcs.changes, m.tokens, m.extra
    start, length, lanes, place, has_loss = (
        group.start,
        group.length,
        group.lanes,
        group.place,
        len(group.loss.width) > 0,
    )
    n, n_states, longest = len(start), len(graph.size), len(lanes) - 1
    m.alpha[: n_states * lanes[longest, n]] = 0.0
    for u in range(longest - 1, -1, -1):
        w = lanes[u, n]
        _set_ends(group, u, n_states, m.alpha)
        begin, stop = place[u] * n_states, place[u + 1] * n_states
        here = m.back[begin:stop]
        if has_loss:
            set_moves(group, u, n_labels, m.moves)
            find_scales(group, u, n_labels, m.moves, m.alpha, m.scale)
            scale_moves(group, u, n_labels, m.scale, m.moves)
            pull_rows(group, u, n_labels, graph.first, m.moves, m.alpha, here, shares[begin:stop])
        else:
            gain = m.moves.gain[place[u] * n_labels : place[u + 1] * n_labels]
            spread_nodes(u, n_labels, length, group.first_node, group.node, gain)
            scale_gain(n, n_labels, m.alpha, gain, m.scale, u * n)
            times_gain(n, n_labels, graph.first, gain, m.alpha, here)
        if u == 0:
            break
        for s in range(n):
            for lane in range(lanes[u, s], lanes[u, s + 1]):
                tokens[lane] = start[s] + u
                if u < length[s] and local.ptr[start[s] + u + 1] > local.ptr[start[s] + u]:
                    change_rows(w, lane, start[s] + u, n_labels, local, graph, factor, here, 0, changes, extra)
        # After the end of a sentence nothing is lost: its rows are zeros.
        sum_rows(w, tokens, n_labels, graph, factor, arcs.pairs, local, here, 0, extra, m.alpha)


@kernel
def partition_of(group: Group, s: int, n_labels: int, back: Floats) -> float:
    """Sum over all label sequences of sentence s, over the product of its scales."""
    n, lane = len(group.start), group.lanes[0, s]
    w = group.lanes[0, n]
    total, init = 0.0, 1.0
    if len(group.loss.width) > 0:
        init = group.loss.init[group.number[s]]
    for b in range(n_labels):
        if group.picks:
            total += back[b * w + lane] + init * back[b * w + lane + 1]
        else:
            total += init * back[b * w + lane]
    return total


@kernel
def log_partition(group: Group, s: int, n_labels: int, arc_shift: float, shift: Floats, m: GroupMessages) -> float:
    """The log of that sum; `shift` are those of the tokens of sentence s."""
    partition, n = partition_of(group, s, n_labels, m.back), len(group.start)
    total = math.log(partition) if partition > 0.0 else -np.inf
    total += (group.length[s] - 1) * arc_shift
    for u in range(group.length[s]):
        total += math.log(m.scale[u * n + s]) + shift[u]
    return float(total)


@kernel
def take_first(group: Group, n_labels: int, n_states: int, m: GroupMessages) -> None:
    """m.new = mass that enters the first token, so that the mass times `back` is the posterior times the weight."""
    n = len(group.start)
    w = group.lanes[0, n]
    m.new[: n_states * w] = 0.0
    for s in range(n):
        partition, lane = partition_of(group, s, n_labels, m.back), group.lanes[0, s]
        x = group.weight[s] / partition if partition > 0.0 else 0.0
        for b in range(n_labels):
            m.new[b * w + lane] = x
            if len(group.loss.width) > 0:
                m.new[b * w + lane + (1 if group.picks else 0)] = x * group.loss.init[group.number[s]]


@kernel
def take_in_full(
    group: Group, u: int, n_labels: int, arcs: Weighted, alpha: Floats, here: Floats, taken: Floats, new: Floats,
    counts: Floats, out: Floats,
) -> None:  # fmt: skip
    """What `take_by_differences` finds, as sums of positive numbers; `taken` is scratch, (n_arcs, lanes)."""
    n, graph, local = len(group.start), arcs.graph, arcs.local
    w, n_arcs = group.lanes[u, n], len(arcs.factor)
    mass_in_full(w, n_labels, graph.table, alpha, taken[: n_arcs * w])
    for s in range(n):
        for lane in range(group.lanes[u, s], group.lanes[u, s + 1] if u < group.length[s] else 0):
            scale_values(w, lane, group.start[s] + u, local, graph.rank, graph.rank_end, graph.by_rank, taken)
    new[: len(graph.size) * w] = 0.0
    take_posteriors(w, graph.arc_state, arcs.factor, taken, here, 0, new)
    for arc in range(n_arcs):
        counts[arc] += taken[arc * w : (arc + 1) * w].sum()
    for s in range(n):
        if u >= group.length[s]:
            continue
        t, begin, stop = group.start[s] + u, group.lanes[u, s], group.lanes[u, s + 1]
        for j in range(local.ptr[t], local.ptr[t + 1]):
            for r in range(graph.rank[local.arc[j]], graph.rank_end[local.arc[j]]):
                first = np.int64(graph.by_rank[r]) * w
                out[j] += taken[first + begin : first + stop].sum()


@kernel
def take_by_differences(
    start: Ints, length: Ints, lanes: Ints, u: int, n_labels: int, arcs: Weighted, alpha: Floats, here: Floats,
    new: Floats, pair_counts: Floats, counts: Floats, out: Floats,
) -> None:  # fmt: skip
    """Mass and posteriors of what enters token u, in all lanes; those of patterns of single tokens are added to out."""
    graph, factor, local, changes = arcs.graph, arcs.factor, arcs.local, arcs.changes
    w = lanes[u, len(start)]
    take_arcs(w, n_labels, graph, factor, arcs.pairs, alpha, here, 0, new, pair_counts, counts)
    for s in range(len(start)):
        t = start[s] + u
        if u < length[s] and local.ptr[t + 1] > local.ptr[t]:
            for lane in range(lanes[u, s], lanes[u, s + 1]):
                take_changes(
                    w, lane, t, n_labels, local, graph, factor, alpha, here, 0, changes, new, counts, out
                )  # fmt: skip


@inner_kernel
def _write_labels(
    start: Ints, length: Ints, weights: Floats, lanes: Ints, u: int, n_labels: int, sums: Floats, out: Floats
) -> bool:
    """Sum the posteriors of labels over rows; whether they sum to the weights."""
    n, is_exact = len(start), True
    w = lanes[u, n]
    for s in range(n):
        if u >= length[s]:
            continue
        at, whole, first, last = (start[s] + u) * n_labels, 0.0, lanes[u, s], lanes[u, s + 1]
        for b in range(n_labels):
            total = sums[b * w + first]
            for lane in range(b * w + first + 1, b * w + last):
                total += sums[lane]
            out[at + b] = total
            whole += total
        is_exact = is_exact and abs(whole - weights[s]) <= EXACT * weights[s]
    return is_exact


@inner_kernel
def _add_means(group: Group, u: int, n_labels: int, sums: Floats, means: Floats) -> None:
    """Add the mean costs of token u."""
    n, loss, lanes = len(group.start), group.loss, group.lanes
    w = lanes[u, n]
    for s in range(n):
        t, weight, number = group.start[s] + u, group.weight[s], group.number[s]
        if u >= group.length[s] or not weight > 0.0:
            continue
        for b in range(n_labels):
            for q in range(loss.width[t]):
                means[number] += loss.cost[(loss.first[t] + q) * n_labels + b] * sums[b * w + lanes[u, s] + q] / weight


@inner_kernel
def _end_means(group: Group, u: int, n_states: int, alpha: Floats, means: Floats) -> None:
    """Add the mean final costs of the sentences that end with token u."""
    n, loss = len(group.start), group.loss
    w = group.lanes[u + 1, n]
    for s in range(n):
        if u != group.length[s] - 1 or not group.weight[s] > 0.0:
            continue
        final = loss.final_ptr[group.number[s]]
        for q in range(loss.final_ptr[group.number[s] + 1] - final):
            mass = 0.0
            for p in range(n_states):
                mass += alpha[p * w + group.lanes[u + 1, s] + q]
            means[group.number[s]] += loss.final_cost[final + q] * loss.final[final + q] * mass / group.weight[s]


@kernel
def sweep_forward(
    group: Group, n_labels: int, arcs: Weighted, is_mild: bool, m: GroupMessages, counts: Floats, means: Floats,
    labels: Floats, local_out: Floats,
) -> bool:  # fmt: skip
    """What `forward` does, by differences (`is_mild`) or in full; by differences it stops where digits are lost."""
    start, length, lanes, place, has_loss = (
        group.start,
        group.length,
        group.lanes,
        group.place,
        len(group.loss.width) > 0,
    )
    n, n_states, graph = len(start), len(arcs.graph.size), arcs.graph
    pair_counts = np.zeros((n_labels, n_labels))
    taken = np.empty(0 if is_mild else len(arcs.factor) * lanes.max())
    counts[:] = 0.0
    for s in range(n):
        local_out[arcs.local.ptr[group.start[s]] : arcs.local.ptr[group.start[s] + group.length[s]]] = 0.0
        if has_loss:
            means[group.number[s]] = 0.0 if group.picks else math.log(group.loss.init[group.number[s]])
    for u in range(len(lanes) - 1):
        here = m.back[place[u] * n_states : place[u + 1] * n_states]
        if u == 0:
            take_first(group, n_labels, n_states, m)
        elif is_mild:
            take_by_differences(
                start, length, lanes, u, n_labels, arcs, m.alpha, here, m.new, pair_counts, counts, local_out
            )
        else:
            take_in_full(group, u, n_labels, arcs, m.alpha, here, taken, m.new, counts, local_out)
        if lanes[u, n] == 1:
            label_sums_alone(n_labels, graph.first, m.new, here, m.sums)
        else:
            label_sums(lanes[u, n], n_labels, graph.first, m.new, here, 0, m.sums, m.whole)
        if not _write_labels(start, length, group.weight, lanes, u, n_labels, m.sums, labels) and is_mild:
            return False
        if has_loss:
            _add_means(group, u, n_labels, m.sums, means)
        if has_loss:
            push_rows(group, u, n_labels, graph.first, m.scale, m.moves, m.new, m.alpha)
        else:
            gain = m.moves.gain[place[u] * n_labels : place[u + 1] * n_labels]
            times_gain(n, n_labels, graph.first, gain, m.new, m.alpha)
        if has_loss and not group.picks:
            _end_means(group, u, n_states, m.alpha, means)
    add_pairs(arcs.pairs, pair_counts, counts)
    return True


@kernel
def forward(
    group: Group, n_labels: int, arcs: Weighted, m: GroupMessages, counts: Floats, means: Floats, labels: Floats,
    local_out: Floats,
) -> None:  # fmt: skip
    """Posteriors times weights, after `backward`.

    Writes those of arcs, summed over the group, to `counts`, those of labels to labels[t * L + b] and those of the
    patterns of single tokens to `local_out`; with a loss, its mean to `means`.
    """
    if not sweep_forward(group, n_labels, arcs, True, m, counts, means, labels, local_out):
        sweep_forward(group, n_labels, arcs, False, m, counts, means, labels, local_out)
