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
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.kernels.pattern_arcs import mass_in_full, scale_values, take_posteriors
from vcrf.kernels.pattern_changes import Changes, change_rows, make_changes, take_changes
from vcrf.kernels.pattern_lanes import PairFactors, add_pairs, label_sums, pair_factors, sum_rows, take_arcs
from vcrf.kernels.patterns import EXACT, Graph, LocalArcs
from vcrf.kernels.product import LossArrays
from vcrf.types import Bools, Floats, Ints, UInts32

# Lanes of a group; of sentences with more rows there is one alone.
LANES = 32


class Weighted(NamedTuple):
    """The automaton, factors of its arcs and of the patterns of single tokens; `changes` is scratch of these."""

    graph: Graph
    factor: Floats
    local: LocalArcs
    pairs: PairFactors
    changes: Changes


class Group(NamedTuple):
    """Sentences side by side.

    loss, picks : see above; without a loss it has no rows
    number, start, length, weight : of each sentence
    node : exp(score - shift) of labels; those of a sentence begin at first_node
    lanes : (longest + 1, n + 1) sentence s has the lanes lanes[u, s] .. lanes[u, s+1]-1 before its token u
    place : (longest + 2,) sum of the lanes of earlier tokens
    """

    loss: LossArrays
    picks: bool
    number: Ints
    start: Ints
    length: Ints
    weight: Floats
    node: Floats
    first_node: Ints
    lanes: Ints
    place: Ints


class LabelMoves(NamedTuple):
    """What label b does to each lane of a token, at b * lanes + lane: next lane and factor; the same for picking.

    Without a loss every lane leads to itself, and there are only the factors: of all tokens, those of token u from
    place[u] * L on.
    """

    to: Ints
    gain: Floats
    pick: Ints
    bonus: Floats


class Messages(NamedTuple):
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
def weighted(n_labels: int, graph: Graph, factor: Floats, local: LocalArcs) -> Weighted:
    """The automaton with its factors."""
    return Weighted(graph, factor, local, pair_factors(n_labels, graph.long_pairs, factor), make_changes(len(factor)))


@inner_kernel
def by_length(ptr: Ints, first: int, last: int, leave_out: Bools | UInts32) -> Ints:
    """Sentences first .. last-1 that are not to be left out and not empty, shortest first."""
    lengths = ptr[first + 1 : last + 1] - ptr[first:last]
    order = first + np.argsort(lengths, kind="mergesort")
    n = 0
    for i in order:
        if not leave_out[i] and ptr[i + 1] > ptr[i]:
            order[n] = i
            n += 1
    return order[:n]


@inner_kernel
def _most_lanes(loss: LossArrays, i: int, start: int, stop: int, picks: bool) -> int:
    """The most rows that sentence i has before a token or at its end."""
    if len(loss.width) == 0:
        return 1
    widest = max(1, loss.final_ptr[i + 1] - loss.final_ptr[i])
    for t in range(start, stop):
        widest = max(widest, loss.width[t])
    return int(widest) + (1 if picks else 0)


@inner_kernel
def group_bounds(loss: LossArrays, picks: bool, which: Ints, ptr: Ints) -> tuple[Ints, int, int]:
    """Group g has the sentences which[bounds[g]:bounds[g+1]]: as many as fit side by side, at least one.

    Also the most lanes of a group, and the most lanes times tokens.
    """
    bounds, n_groups, lanes, longest, most, largest = np.zeros(len(which) + 1, np.int64), 0, 0, 0, 0, 0
    for k in range(len(which)):
        i = which[k]
        here = _most_lanes(loss, i, ptr[i], ptr[i + 1], picks)
        if lanes > 0 and lanes + here > LANES:
            n_groups += 1
            bounds[n_groups] = k
            lanes, longest = 0, 0
        lanes, longest = lanes + here, max(longest, ptr[i + 1] - ptr[i])
        most, largest = max(most, lanes), max(largest, lanes * longest)
    bounds[n_groups + 1 if len(which) > 0 else 0] = len(which)
    return bounds[: n_groups + 2 if len(which) > 0 else 1], most, largest


@inner_kernel
def make_group(
    loss: LossArrays, picks: bool, numbers: Ints, ptr: Ints, weights: Floats, node: Floats, t0: int, n_labels: int
) -> Group:
    """Give the rows of the sentences lanes; `node` begins with token t0."""
    start, n = ptr[numbers], len(numbers)
    length = ptr[numbers + 1] - start
    longest = length.max()
    extra = 1 if picks else 0
    lanes, place = np.zeros((longest + 1, n + 1), np.int64), np.zeros(longest + 2, np.int64)
    for u in range(longest + 1):
        for s in range(n):
            width = 0
            if len(loss.width) == 0:
                width = 1
            elif u < length[s]:
                width = loss.width[start[s] + u] + extra
            elif u == length[s]:
                width = loss.final_ptr[numbers[s] + 1] - loss.final_ptr[numbers[s]] + extra
            lanes[u, s + 1] = lanes[u, s] + width
        place[u + 1] = place[u] + lanes[u, n]
    return Group(loss, picks, numbers, start, length, weights[numbers], node, (start - t0) * n_labels, lanes, place)


@inner_kernel
def make_messages(n_labels: int, n_states: int, lanes: int, largest: int, has_loss: bool) -> Messages:
    """Room for groups of up to so many lanes, and lanes times tokens."""
    n = n_labels * lanes
    few, gains = (n, n) if has_loss else (0, n_labels * largest)
    return Messages(
        LabelMoves(np.zeros(few, np.int64), np.empty(gains), np.zeros(few, np.int64), np.zeros(few)),
        np.empty(largest * n_states), np.empty(largest), np.empty(n_states * lanes), np.empty(n_states * lanes),
        np.zeros(n_states * lanes), np.empty(n), np.empty(lanes), np.zeros(lanes, np.int64),
    )  # fmt: skip


@inner_kernel
def _set_moves(group: Group, u: int, n_labels: int, moves: LabelMoves) -> None:
    """Write the moves of token u, without scales; lanes of sentences that have ended lead nowhere."""
    n, loss, picks, lanes, node = len(group.start), group.loss, group.picks, group.lanes, group.node
    start, length, first_node = group.start, group.length, group.first_node
    to, gain, pick, bonus = moves
    w = lanes[u, n]
    to[: n_labels * w] = 0
    gain[: n_labels * w] = 0.0
    if picks:
        pick[: n_labels * w] = 0
        bonus[: n_labels * w] = 0.0
    for s in range(n):
        if u >= length[s]:
            continue
        t, first, picked = start[s] + u, lanes[u + 1, s], lanes[u + 1, s + 1] - 1
        for b in range(n_labels):
            x = node[first_node[s] + u * n_labels + b]
            at = b * w + lanes[u, s]
            for q in range(loss.width[t]):
                arc = (loss.first[t] + q) * n_labels + b
                to[at + q] = first + np.int64(loss.successor[arc])
                if picks:
                    gain[at + q] = x
                    pick[at + q], bonus[at + q] = picked, x * loss.factor[arc]
                else:
                    gain[at + q] = x * loss.factor[arc]
            if picks:
                last = at + loss.width[t]
                to[last], gain[last], pick[last] = picked, x, picked


@inner_kernel
def _scale_moves(group: Group, u: int, n_labels: int, scale: Floats, moves: LabelMoves) -> None:
    """Divide the factors of each sentence by its scale."""
    n, lanes, picks, gain, bonus = len(group.start), group.lanes, group.picks, moves.gain, moves.bonus
    w = lanes[u, n]
    for s in range(n):
        inverse = 1.0 / scale[u * n + s]
        for b in range(n_labels):
            for lane in range(b * w + lanes[u, s], b * w + lanes[u, s + 1]):
                gain[lane] *= inverse
                if picks:
                    bonus[lane] *= inverse


@inner_kernel
def _find_scales(group: Group, u: int, n_labels: int, moves: LabelMoves, beta: Floats, scale: Floats) -> None:
    """scale[u, s] = sum over labels and rows of what the contexts of one label will be; 1 where that is 0."""
    n, lanes, picks = len(group.start), group.lanes, group.picks
    to, gain, pick, bonus = moves
    w, w_next = lanes[u, n], lanes[u + 1, n]
    for s in range(n):
        total = 0.0
        for b in range(n_labels):
            for lane in range(b * w + lanes[u, s], b * w + lanes[u, s + 1]):
                total += gain[lane] * beta[b * w_next + to[lane]]
                if picks:
                    total += bonus[lane] * beta[b * w_next + pick[lane]]
        scale[u * n + s] = total if total > 0.0 else 1.0


@inner_kernel
def _spread_nodes(u: int, n_labels: int, length: Ints, first_node: Ints, node: Floats, gain: Floats) -> None:
    """Node factors of token u, zeros after the end of a sentence: the moves without a loss, without scales."""
    w = len(length)
    for s in range(w):
        if u < length[s]:
            at = first_node[s] + u * n_labels
            for b in range(n_labels):
                gain[b * w + s] = node[at + b]
        else:
            for b in range(n_labels):
                gain[b * w + s] = 0.0


@inner_fast_kernel
def _scale_gain(lanes: int, n_labels: int, beta: Floats, gain: Floats, scale: Floats, at: int) -> None:
    """`_find_scales` and `_scale_moves` without a loss."""
    w, here = np.uint64(lanes), np.uint64(at)
    for lane in range(w):
        scale[here + lane] = 0.0
    for b in range(np.uint64(n_labels)):
        for lane in range(w):
            scale[here + lane] += gain[b * w + lane] * beta[b * w + lane]
    for lane in range(w):
        scale[here + lane] = scale[here + lane] if scale[here + lane] > 0.0 else 1.0
    for b in range(np.uint64(n_labels)):
        for lane in range(w):
            gain[b * w + lane] *= 1.0 / scale[here + lane]


@inner_fast_kernel
def _times_label(lanes: int, b: int, begin: int, stop: int, gain: Floats, x: Floats, out: Floats) -> None:
    """Out = gain * x for the contexts begin .. stop-1, in label b."""
    w = np.uint64(lanes)
    label = np.uint64(b) * w
    for p in range(np.uint64(begin), np.uint64(stop)):
        at = p * w
        for lane in range(w):
            out[at + lane] = gain[label + lane] * x[at + lane]


@inner_kernel
def times_gain(lanes: int, n_labels: int, first: Ints, gain: Floats, x: Floats, out: Floats) -> None:
    """Out = gain * x for all contexts: what `_pull_rows` and `_push_rows` are without a loss."""
    for b in range(n_labels):
        _times_label(lanes, b, b, b + 1, gain, x, out)
        _times_label(lanes, b, first[b], first[b + 1], gain, x, out)


@inner_fast_kernel
def _pull(
    w: int, w_next: int, b: int, begin: int, stop: int, picks: bool, moves: LabelMoves, beta: Floats, back: Floats,
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
    w: int, w_next: int, b: int, begin: int, stop: int, picks: bool, moves: LabelMoves, new: Floats, alpha: Floats
) -> None:
    """Add the mass of the contexts begin .. stop-1, which end in label b, to the lanes that follow."""
    for p in range(begin, stop):
        source, to = p * w, p * w_next
        for lane in range(w):
            alpha[to + moves.to[b * w + lane]] += moves.gain[b * w + lane] * new[source + lane]
            if picks:
                alpha[to + moves.pick[b * w + lane]] += moves.bonus[b * w + lane] * new[source + lane]


@inner_kernel
def _pull_rows(
    group: Group, u: int, n_labels: int, first: Ints, moves: LabelMoves, beta: Floats, back: Floats, shares: Floats
) -> None:
    """`back` of token u in all lanes, from beta after it."""
    n = len(group.start)
    w, w_next = group.lanes[u, n], group.lanes[u + 1, n]
    for b in range(n_labels):
        _pull(w, w_next, b, b, b + 1, group.picks, moves, beta, back, shares)
        _pull(w, w_next, b, first[b], first[b + 1], group.picks, moves, beta, back, shares)


@inner_kernel
def _push_rows(
    group: Group, u: int, n_labels: int, first: Ints, scale: Floats, moves: LabelMoves, new: Floats, alpha: Floats
) -> None:
    """Alpha after token u in all lanes, from the mass that entered it."""
    n = len(group.start)
    w, w_next = group.lanes[u, n], group.lanes[u + 1, n]
    _set_moves(group, u, n_labels, moves)
    _scale_moves(group, u, n_labels, scale, moves)
    alpha[: first[n_labels] * w_next] = 0.0
    for b in range(n_labels):
        _push(w, w_next, b, b, b + 1, group.picks, moves, new, alpha)
        _push(w, w_next, b, first[b], first[b + 1], group.picks, moves, new, alpha)


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
def backward(group: Group, n_labels: int, arcs: Weighted, m: Messages, shares: Floats) -> None:
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
            _set_moves(group, u, n_labels, m.moves)
            _find_scales(group, u, n_labels, m.moves, m.alpha, m.scale)
            _scale_moves(group, u, n_labels, m.scale, m.moves)
            _pull_rows(group, u, n_labels, graph.first, m.moves, m.alpha, here, shares[begin:stop])
        else:
            gain = m.moves.gain[place[u] * n_labels : place[u + 1] * n_labels]
            _spread_nodes(u, n_labels, length, group.first_node, group.node, gain)
            _scale_gain(n, n_labels, m.alpha, gain, m.scale, u * n)
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
def log_partition(group: Group, s: int, n_labels: int, arc_shift: float, shift: Floats, m: Messages) -> float:
    """The log of that sum; `shift` are those of the tokens of sentence s."""
    partition, n = partition_of(group, s, n_labels, m.back), len(group.start)
    total = math.log(partition) if partition > 0.0 else -np.inf
    total += (group.length[s] - 1) * arc_shift
    for u in range(group.length[s]):
        total += math.log(m.scale[u * n + s]) + shift[u]
    return float(total)


@kernel
def take_first(group: Group, n_labels: int, n_states: int, m: Messages) -> None:
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
    group: Group, n_labels: int, arcs: Weighted, is_mild: bool, m: Messages, counts: Floats, means: Floats,
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
        label_sums(lanes[u, n], n_labels, graph.first, m.new, here, 0, m.sums, m.whole)
        if not _write_labels(start, length, group.weight, lanes, u, n_labels, m.sums, labels) and is_mild:
            return False
        if has_loss:
            _add_means(group, u, n_labels, m.sums, means)
        if has_loss:
            _push_rows(group, u, n_labels, graph.first, m.scale, m.moves, m.new, m.alpha)
        else:
            gain = m.moves.gain[place[u] * n_labels : place[u + 1] * n_labels]
            times_gain(n, n_labels, graph.first, gain, m.new, m.alpha)
        if has_loss and not group.picks:
            _end_means(group, u, n_states, m.alpha, means)
    add_pairs(arcs.pairs, pair_counts, counts)
    return True


@kernel
def forward(
    group: Group, n_labels: int, arcs: Weighted, m: Messages, counts: Floats, means: Floats, labels: Floats,
    local_out: Floats,
) -> None:  # fmt: skip
    """Posteriors times weights, after `backward`.

    Writes those of arcs, summed over the group, to `counts`, those of labels to labels[t * L + b] and those of the
    patterns of single tokens to `local_out`; with a loss, its mean to `means`.
    """
    if not sweep_forward(group, n_labels, arcs, True, m, counts, means, labels, local_out):
        sweep_forward(group, n_labels, arcs, False, m, counts, means, labels, local_out)
