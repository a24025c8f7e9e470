"""Counts of all kept tag patterns of one length, for sentences side by side: `kernels.pattern_scan` without a loss.

Posteriors are those of `kernels.pattern_sweeps`, element x of lane l of w at x * w + l. With alpha scaled so that
alpha * beta is the posterior, and values[arc] = factor[arc] back[target], a pattern z that is no context, and therefore
has one state s, has

    P(z, b at t) = alpha[t-1, z] values[t, (s, b)],    alpha[t, (z, b)] = P(z, b at t) / beta[t, state after (z, b)]

and one that is a context the sum of the same over all states that end in z. Pairs of labels have the posteriors of
their arcs, summed along back-off. So a length costs one product a pattern and lane, whose sums over lanes are in
registers. Nothing is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.kernels.blocks import PassOutput, Sentences
from vcrf.kernels.pattern_arcs import arc_values, mass_in_full, mass_of_arcs, scale_values, take_posteriors
from vcrf.kernels.pattern_counts import ColumnPairs, LevelSums, Trie
from vcrf.kernels.pattern_groups import Group, by_length, group_bounds, make_group, times_gain
from vcrf.kernels.pattern_lanes import label_sums
from vcrf.kernels.pattern_sweeps import GroupMessages, Weighted, backward, make_messages, take_first, weighted
from vcrf.kernels.patterns import EXACT, PatternArrays, prepare_nodes
from vcrf.kernels.product import no_loss
from vcrf.kernels.scores import ArcFactors, LocalArcs, LocalFactors
from vcrf.types import Bools, Floats, Ints, UInts32


class Level(NamedTuple):
    """Patterns of length k to sum: (z, b), z a kept pattern of length k - 1 and b a label that may follow its end.

    Attributes
    ----------
    place : those of the i-th z are place[i] .. place[i+1]-1, in the order of `Trie.right_label` of z's end
    left_ptr, left : CSR over kept patterns of length k - 2, the numbers i of those that are it with a label before
    """

    k: int
    place: Ints
    left_ptr: Ints
    left: Ints


class LevelMessages(NamedTuple):
    """What is kept of a token besides the messages of its group: alpha of states before it, sums of arcs, runs.

    exact, inverse_betas : (n_states, lanes); posterior, values : (n_arcs, lanes)
    runs : (n_nodes, lanes) alpha of runs of labels
    """

    exact: Floats
    inverse_betas: Floats
    posterior: Floats
    values: Floats
    runs: Floats


@inner_fast_kernel
def _add_overwritten(lanes: int, n_labels: int, up: UInts32, posterior: Floats) -> None:
    """Posteriors of patterns from those of arcs taken: see `patterns.sum_counts`."""
    w, arc = np.uint64(lanes), np.uint64(len(up))
    while arc > np.uint64(n_labels * n_labels):
        arc -= np.uint64(1)
        source, to = arc * w, np.uint64(up[arc]) * w
        for lane in range(w):
            posterior[to + lane] += posterior[source + lane]


@inner_kernel
def _forward_token(
    u: int, n_labels: int, arcs: Weighted, group: Group, here: Floats, has_values: bool, sweep: GroupMessages,
    m: LevelMessages,
) -> None:  # fmt: skip
    """From alpha before token u: posteriors of arcs, summed along back-off, and what enters the states; `values` too.

    By differences; in full where these do not sum to the weights.
    """
    graph, factor, local, w = arcs.graph, arcs.factor, arcs.local, len(group.start)
    n_states = len(graph.size)
    for x in range(n_states * w):
        m.exact[x] = sweep.alpha[x]
    if has_values:
        arc_values(w, graph.arc_state, factor, here, 0, m.values)
    is_mild = True
    while True:
        if is_mild:
            mass_of_arcs(w, n_labels, graph.fail, graph.arc_ptr, graph.up, sweep.alpha, m.posterior)
        else:
            mass_in_full(w, n_labels, graph.table, m.exact, m.posterior[: len(factor) * w])
        for lane in range(w):
            t = group.start[lane] + u
            if u < group.length[lane] and local.ptr[t + 1] > local.ptr[t]:
                scale_values(w, lane, t, local, graph.rank, graph.rank_end, graph.by_rank, m.posterior)
                if is_mild and has_values:
                    scale_values(w, lane, t, local, graph.rank, graph.rank_end, graph.by_rank, m.values)
        sweep.new[: n_states * w] = 0.0
        take_posteriors(w, graph.arc_state, factor, m.posterior, here, 0, sweep.new)
        label_sums(w, n_labels, graph.first, sweep.new, here, 0, sweep.sums, sweep.whole)
        is_exact = True
        for lane in range(w):
            weight = group.weight[lane]
            is_exact = is_exact and (u >= group.length[lane] or abs(sweep.whole[lane] - weight) <= EXACT * weight)
        if is_exact or not is_mild:
            break
        is_mild = False
    _add_overwritten(w, n_labels, graph.up, m.posterior)


@inner_fast_kernel
def _add_products(
    lanes: int, state: int, a: int, begin: int, stop: int, right_label: UInts32, table: UInts32, alpha: Floats,
    values: Floats, inverse: Floats, sums: Floats, squares: Floats, place: int,
) -> None:  # fmt: skip
    """Add the posteriors of (z, b), b the labels begin .. stop-1, and their squares over the weights; z in one state.

    alpha[a * lanes ...] is that of z.
    """
    w, source = np.uint64(lanes), np.uint64(a) * np.uint64(lanes)
    for i in range(stop - begin):
        x = np.uint64(table[state, right_label[begin + i]]) * w
        total, square = 0.0, 0.0
        for lane in range(w):
            z = alpha[source + lane] * values[x + lane]
            total += z
            square += z * z * inverse[lane]
        sums[place + i] += total
        squares[place + i] += square


@inner_fast_kernel
def _write_products(
    lanes: int, state: int, n_states: int, a: int, begin: int, stop: int, right_label: UInts32, table: UInts32,
    alpha: Floats, values: Floats, row: Floats, at: int,
) -> None:  # fmt: skip
    """row[at + i] = posterior of (z, b) by lane, b the labels begin .. stop-1; z is in one of n_states from `state` on.

    The alpha of the first of these states is at alpha[a * lanes].
    """
    w = np.uint64(lanes)
    for i in range(stop - begin):
        to, label = np.uint64(at + i) * w, right_label[begin + i]
        for lane in range(w):
            row[to + lane] = 0.0
        for q in range(n_states):
            x, source = np.uint64(table[state + q, label]) * w, np.uint64(a + q) * w
            for lane in range(w):
                row[to + lane] += alpha[source + lane] * values[x + lane]


@inner_fast_kernel
def _add_rows(
    lanes: int, n: int, row: Floats, at: int, inverse: Floats, sums: Floats, squares: Floats, place: int
) -> None:
    """Add n posteriors, from row[at * lanes] on, and their squares over the weights."""
    w = np.uint64(lanes)
    for i in range(n):
        x = np.uint64(at + i) * w
        total, square = 0.0, 0.0
        for lane in range(w):
            z = row[x + lane]
            total += z
            square += z * z * inverse[lane]
        sums[place + i] += total
        squares[place + i] += square


@inner_kernel
def _add_level(
    level: Level, n_labels: int, w: int, graph: PatternArrays, trie: Trie, m: LevelMessages, inverse: Floats,
    keeps: bool, row: Floats, sums: Floats, squares: Floats,
) -> None:  # fmt: skip
    """Add the patterns that end at a token, of all lanes; `row` `keeps` them by place and lane (not pairs)."""
    k, place, right_ptr = level.k, level.place, trie.right_ptr
    if k == 2:
        _add_rows(w, n_labels * n_labels, m.posterior, 0, inverse, sums, squares, 0)
        return
    for i in range(len(place) - 1):
        z = trie.node_ptr[k - 1] + i
        begin, stop = right_ptr[trie.parent[z]], right_ptr[trie.parent[z] + 1]
        is_context, state = trie.is_context[z], trie.state[z]
        n_states, a = (graph.end[state] - state, state) if is_context else (1, z)
        alpha = m.exact if is_context else m.runs
        if n_states == 1 and not keeps:
            _add_products(
                w, state, a, begin, stop, trie.right_label, graph.table, alpha, m.values, inverse, sums, squares,
                place[i],
            )  # fmt: skip
        else:
            at = place[i] if keeps else 0
            _write_products(w, state, n_states, a, begin, stop, trie.right_label, graph.table, alpha, m.values, row, at)
            _add_rows(w, stop - begin, row, at, inverse, sums, squares, place[i])


@inner_fast_kernel
def _inverse_betas(lanes: int, last: UInts32, gain: Floats, here: Floats, out: Floats) -> None:
    """out[q] = 1 / beta[u, q] = gain of the newest label of q / back[u, q]; 0 where a posterior is 0."""
    w = np.uint64(lanes)
    for q in range(np.uint64(len(last))):
        x, at = np.uint64(last[q]) * w, q * w
        for lane in range(w):
            y = here[at + lane]
            out[at + lane] = gain[x + lane] / y if y > 0.0 else 0.0


@inner_fast_kernel
def _move_run(
    lanes: int, source: int, a: Floats, at: int, b: Floats, state: int, c: Floats, z: int, out: Floats
) -> None:
    """out[z] = a[source] * b[at] * c[state], by lane."""
    w = np.uint64(lanes)
    first, second, third, to = np.uint64(source) * w, np.uint64(at) * w, np.uint64(state) * w, np.uint64(z) * w
    for lane in range(w):
        out[to + lane] = a[first + lane] * b[second + lane] * c[third + lane]


@inner_kernel
def _move_runs(
    k: int, n_labels: int, w: int, graph: PatternArrays, trie: Trie, m: LevelMessages, row: Floats, ones: Floats
) -> None:
    """Write alpha of the kept patterns of lengths 2 .. k-1 that end at a token and are no contexts."""
    right_ptr = trie.right_ptr
    # Longer ones first: they read those that are one label shorter, of the token before.
    for j in range(k - 1, 1, -1):
        for z in range(trie.node_ptr[j], trie.node_ptr[j + 1]):
            parent, before, newest = trie.parent[z], trie.before[z], np.int64(trie.newest[z])
            if trie.is_context[z] or (j == k - 1 and right_ptr[parent] == right_ptr[parent + 1]):
                continue
            state, to = trie.state[before], trie.state[z]
            if j == 2:
                _move_run(w, state * n_labels + newest, m.posterior, 0, ones, to, m.inverse_betas, z, m.runs)
            elif trie.is_context[before]:
                _write_products(
                    w, state, graph.end[state] - state, state, z, z + 1, trie.newest, graph.table, m.exact, m.values,
                    row, 0,
                )  # fmt: skip
                _move_run(w, 0, row, 0, ones, to, m.inverse_betas, z, m.runs)
            else:
                arc = int(graph.table[state, newest])
                _move_run(w, before, m.runs, arc, m.values, to, m.inverse_betas, z, m.runs)


@inner_kernel
def _add_pairs(
    t: int, lane: int, w: int, n_labels: int, level: Level, trie: Trie, pairs: ColumnPairs, row: Floats, sign: float,
    sums: Floats, gradient: Floats,
) -> None:  # fmt: skip
    """Add a token's posteriors, those of a lane of `row`, to the pairs of its columns: see `pattern_counts`."""
    first, first_end = trie.node_ptr[level.k - 1], trie.node_ptr[level.k - 2]
    for i in range(pairs.token_ptr[t], pairs.token_ptr[t + 1]):
        c, value = pairs.token_column[i], pairs.token_value[i]
        for pair in range(pairs.pair_ptr[c], pairs.pair_ptr[c + np.uint32(1)]):
            # The pattern (y, b): those that are kept with a label before y, and their posteriors with b.
            y = trie.before[first + pairs.pair_node[pair]]
            offset = first + pairs.pair_node[pair] - trie.right_node[trie.right_ptr[y]]
            for j in range(level.left_ptr[y - first_end], level.left_ptr[y - first_end + 1]):
                z = level.left[j]
                x, to = value * row[(level.place[z] + offset) * w + lane], pair * n_labels + trie.oldest[first + z]
                sums[to] += abs(x)
                gradient[to] += sign * x


@inner_kernel
def _level_group(
    level: Level, n_labels: int, arcs: Weighted, trie: Trie, pairs: ColumnPairs, sign: float, group: Group,
    sweep: GroupMessages, m: LevelMessages, row: Floats, own: Floats, squares: Floats, pair_sums: Floats,
    pair_gradient: Floats,
) -> None:  # fmt: skip
    """Add the patterns of length k of sentences side by side, after `backward`."""
    graph, w = arcs.graph, len(group.start)
    n_states, inverse, ones = len(graph.size), 1.0 / group.weight, np.ones(w)
    m.runs[:] = 0.0
    for u in range(len(group.lanes) - 1):
        here = sweep.back[u * n_states * w : (u + 1) * n_states * w]
        if u == 0:
            take_first(group, n_labels, n_states, sweep)
        else:
            _forward_token(u, n_labels, arcs, group, here, level.k > 2, sweep, m)
        if u >= level.k - 1:
            has_pairs = False
            for lane in range(w):
                t = group.start[lane] + u
                has_pairs = has_pairs or (u < group.length[lane] and pairs.token_ptr[t + 1] > pairs.token_ptr[t])
            _add_level(level, n_labels, w, graph, trie, m, inverse, has_pairs, row, own, squares)
            for lane in range(w if has_pairs else 0):
                if u < group.length[lane]:
                    _add_pairs(
                        group.start[lane] + u, lane, w, n_labels, level, trie, pairs,
                        m.posterior if level.k == 2 else row, sign, pair_sums, pair_gradient,
                    )  # fmt: skip
        gain = sweep.moves.gain[u * n_labels * w : (u + 1) * n_labels * w]
        if u > 0 and level.k > 2:
            _inverse_betas(w, graph.last, gain, here, m.inverse_betas)
            _move_runs(level.k, n_labels, w, graph, trie, m, row, ones)
        times_gain(w, n_labels, graph.first, gain, sweep.new, sweep.alpha)


@inner_kernel
def _sentences_of(
    sentences: Sentences, first: int, last: int, k: int, clamp: bool, is_open: Bools, hard: UInts32
) -> Ints:
    """Sentences with patterns of length k to sum, shortest first; hard ones are not among them."""
    which = by_length(sentences.ptr, first, last, hard)
    n = 0
    for i in which:
        if sentences.ptr[i + 1] - sentences.ptr[i] >= k and sentences.weights[i] > 0.0 and (is_open[i] or not clamp):
            which[n] = i
            n += 1
    return which[:n]


@inner_kernel
def _add_to_slots(level: Level, n_labels: int, trie: Trie, own: Floats, sums: Floats) -> None:
    """Add sums by place to those by (pattern of length k - 1, label before it)."""
    first = trie.node_ptr[level.k - 1]
    for i in range(len(level.place) - 1):
        begin, oldest = trie.right_ptr[trie.parent[first + i]], trie.oldest[first + i]
        for j in range(level.place[i + 1] - level.place[i]):
            sums[(trie.right_node[begin + j] - first) * n_labels + oldest] += own[level.place[i] + j]


@kernel
def level_lanes(
    sentences: Sentences, first: int, last: int, n_labels: int, level: Level, rows: UInts32, scores: Floats,
    graph: PatternArrays, arc_scores: ArcFactors, cor: LocalFactors, local: LocalArcs, clamp: bool, is_open: Bools,
    trie: Trie, pairs: ColumnPairs, out: PassOutput, sums: LevelSums,
) -> None:  # fmt: skip
    """Add the expected patterns of length k of sentences first .. last-1, hard ones left out, to the sums.

    Clamped, the posteriors over the allowed labels of open sentences are added to what is observed.
    """
    t0, k, factor = sentences.ptr[first], level.k, arc_scores.factor
    node, _ = prepare_nodes(sentences, first, last, n_labels, rows, scores, arc_scores, cor, clamp, out)
    which = _sentences_of(sentences, first, last, k, clamp, is_open, out.hard)
    if len(which) == 0:
        return
    loss = no_loss()
    bounds, lanes, largest = group_bounds(loss, False, which, sentences.ptr)
    n_states, n_arcs, n = len(graph.size), len(factor), level.place[-1]
    sweep, arcs = make_messages(n_labels, n_states, lanes, largest, False), weighted(n_labels, graph, factor, local)
    m = LevelMessages(
        np.empty(n_states * lanes), np.empty(n_states * lanes), np.empty(n_arcs * lanes), np.empty(n_arcs * lanes),
        np.empty(len(trie.parent) * lanes),
    )  # fmt: skip
    row = np.empty(max(n if len(pairs.pair_node) > 0 else 0, n_labels) * lanes)
    own, squares, none = np.zeros(n), np.zeros(n), np.zeros(0)
    for g in range(len(bounds) - 1):
        numbers = which[bounds[g] : bounds[g + 1]]
        group = make_group(loss, False, numbers, sentences.ptr, sentences.weights, node, t0, n_labels)
        backward(group, n_labels, arcs, sweep, none)
        _level_group(
            level, n_labels, arcs, trie, pairs, -1.0 if clamp else 1.0, group, sweep, m, row, own, squares,
            sums.pair_observed if clamp else sums.pair_expected, sums.pair_gradient,
        )  # fmt: skip
    _add_to_slots(level, n_labels, trie, own, sums.observed if clamp else sums.expected)
    if not clamp:
        _add_to_slots(level, n_labels, trie, squares, sums.squares)
