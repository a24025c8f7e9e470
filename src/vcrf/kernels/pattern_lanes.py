"""Forward-backward on a pattern automaton for several sentences side by side, one in each lane.

The automaton is the same for all sentences, so that one look at an arc serves every lane, and the lanes lie next to
each other in memory: the innermost loops are over lanes and vectorised. The sums are those of `kernels.patterns`, by
differences; see there. Element x of lane l of w is at x * w + l. Sentences begin together; after the end of a shorter
one its nodes are zeros, and so is all that follows from them.

The scale of a token is the sum of node * beta over the contexts of one label: any scale serves, and longer contexts
differ from these by no more than the span that hard sentences are told by.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.kernels.pattern_changes import Changes, change_rows, take_changes
from vcrf.kernels.patterns import _CANCELS, _EXACT, Graph, LocalArcs
from vcrf.types import Floats, Ints, UInts32

# Sentences side by side.
LANES = 32


@inner_kernel
def _spread_nodes(
    n_labels: int, node: Floats, first_node: Ints, lengths: Ints, longest: int, lane_node: Floats
) -> None:
    """Node factors of each lane's sentence, zeros after its end."""
    w = len(lengths)
    for lane in range(w):
        n, at = lengths[lane] * n_labels, first_node[lane]
        for x in range(n):
            lane_node[x * w + lane] = node[at + x]
        for x in range(n, longest * n_labels):
            lane_node[x * w + lane] = 0.0


class PairFactors(NamedTuple):
    """Factors of the pairs (a, b) that lead to the context b, zeros for the others, and the same transposed.

    At a token the messages of single labels are products of these matrices with those of the lanes.
    """

    matrix: Floats
    transposed: Floats


@kernel
def pair_factors(n_labels: int, long_pairs: UInts32, factor: Floats) -> PairFactors:
    """Copy the factors of pairs out of those of all arcs."""
    matrix = factor[: n_labels * n_labels].copy()
    for i in range(len(long_pairs)):
        matrix[long_pairs[i]] = 0.0
    square = matrix.reshape(n_labels, n_labels)
    return PairFactors(square, np.ascontiguousarray(square.T))


@inner_kernel
def _full_row(
    lanes: int, lane: int, t: int, p: int, n_labels: int, local: LocalArcs, graph: Graph, factor: Floats, back: Floats,
    at: int,
) -> float:  # fmt: skip
    """The row of context p at token t, summed over positive numbers."""
    total = 0.0
    for b in range(n_labels):
        arc = np.int64(graph.table[p, b])
        value = factor[arc] * back[(at + np.int64(graph.arc_state[arc])) * lanes + lane]
        for j in range(local.ptr[t], local.ptr[t + 1]):
            pattern = local.arc[j]
            if graph.rank[pattern] <= graph.rank[arc] and graph.rank[arc] < graph.rank_end[pattern]:
                value *= local.factor[j]
        total += value
    return total


@inner_kernel
def _mend_row(
    lanes: int, tokens: Ints, p: int, n_labels: int, local: LocalArcs, graph: Graph, factor: Floats, back: Floats,
    at: int, start: Floats, start_at: int, extra: Floats, beta: Floats,
) -> None:  # fmt: skip
    """Sum the row of p anew in the lanes where differences have lost digits: it is small beside what it came from."""
    for lane in range(lanes):
        x = p * lanes + lane
        if not beta[x] >= _CANCELS * (start[start_at + lane] + abs(extra[x])):
            beta[x] = _full_row(lanes, lane, tokens[lane], p, n_labels, local, graph, factor, back, at)


@inner_fast_kernel
def _count_lost(lanes: int, p: int, start: Floats, start_at: int, extra: Floats, beta: Floats) -> int:
    """In how many lanes beta[p] is small beside what it came from."""
    w, n_lost = np.uint64(lanes), 0
    row, source = np.uint64(p) * w, np.uint64(start_at)
    for lane in range(w):
        n_lost += beta[row + lane] < _CANCELS * (start[source + lane] + abs(extra[row + lane]))
    return n_lost


@inner_fast_kernel
def _add_long_pairs(
    lanes: int, n_labels: int, long_pairs: UInts32, arc_state: UInts32, factor: Floats, back: Floats, at: int,
    beta: Floats,
) -> None:  # fmt: skip
    """beta[a] += factor * back of the pairs (a, b) that lead to longer contexts."""
    w, n, here = np.uint64(lanes), np.uint64(n_labels), np.uint64(at)
    for i in range(len(long_pairs)):
        arc = np.uint64(long_pairs[i])
        z, to, source = factor[arc], arc // n * w, (here + np.uint64(arc_state[arc])) * w
        for lane in range(w):
            beta[to + lane] += z * back[source + lane]


@inner_fast_kernel
def _add_own_arcs(
    lanes: int, p: int, fail: Ints, arc_ptr: Ints, up: UInts32, arc_state: UInts32, factor: Floats, back: Floats,
    at: int, extra: Floats, beta: Floats,
) -> None:  # fmt: skip
    """beta[p] = beta of the context that p backs off to, and what p's own arcs change."""
    w, here, state = np.uint64(lanes), np.uint64(at), np.uint64(p)
    to, shorter = state * w, np.uint64(fail[state]) * w
    for lane in range(w):
        beta[to + lane] = beta[shorter + lane] + extra[to + lane]
    for arc in range(np.uint64(arc_ptr[state]), np.uint64(arc_ptr[state + np.uint64(1)])):
        old = np.uint64(up[arc])
        own, other = np.uint64(arc_state[arc]), np.uint64(arc_state[old])
        x, y = (here + own) * w, (here + other) * w
        if own == other:
            z = factor[arc] - factor[old]
            for lane in range(w):
                beta[to + lane] += z * back[x + lane]
        else:
            z, z_old = factor[arc], factor[old]
            for lane in range(w):
                beta[to + lane] += z * back[x + lane] - z_old * back[y + lane]


@kernel
def sum_rows(
    lanes: int, tokens: Ints, n_labels: int, graph: Graph, factor: Floats, pairs: PairFactors, local: LocalArcs,
    back: Floats, at: int, extra: Floats, beta: Floats,
) -> None:  # fmt: skip
    """beta[p] = sum_b factor(p, b) back[at + target]: of labels in full, of others from what own arcs change.

    `tokens` has the token of each lane, `extra` what `change_rows` found; it is zeros afterwards.
    """
    shape = (n_labels, lanes)
    here = back[at * lanes : (at + n_labels) * lanes].reshape(shape)
    np.dot(pairs.matrix, here, beta[: n_labels * lanes].reshape(shape))
    _add_long_pairs(lanes, n_labels, graph.long_pairs, graph.arc_state, factor, back, at, beta)
    start = np.empty(lanes)
    for a in range(n_labels):
        for lane in range(lanes):
            start[lane] = beta[a * lanes + lane]
            beta[a * lanes + lane] += extra[a * lanes + lane]
        if _count_lost(lanes, a, start, 0, extra, beta) > 0:
            _mend_row(lanes, tokens, a, n_labels, local, graph, factor, back, at, start, 0, extra, beta)
    for p in range(n_labels, len(graph.fail)):
        _add_own_arcs(lanes, p, graph.fail, graph.arc_ptr, graph.up, graph.arc_state, factor, back, at, extra, beta)
        shorter = graph.fail[p] * lanes
        if _count_lost(lanes, p, beta, shorter, extra, beta) > 0:
            _mend_row(lanes, tokens, p, n_labels, local, graph, factor, back, at, beta, shorter, extra, beta)
    extra[: len(graph.fail) * lanes] = 0.0


@inner_fast_kernel
def _times_nodes(
    lanes: int, n_labels: int, first: Ints, node: Floats, node_first: int, factor: Floats, x: Floats, out: Floats,
    at: int, z: Floats,
) -> None:  # fmt: skip
    """out[at + q] = factor * node of the newest label of q * x[q]; `factor` and the scratch `z` have one a lane."""
    w, one = np.uint64(lanes), np.uint64(1)
    for b in range(np.uint64(n_labels)):
        row = (np.uint64(node_first) + b) * w
        for lane in range(w):
            z[lane] = factor[lane] * node[row + lane]
        to, source = (np.uint64(at) + b) * w, b * w
        for lane in range(w):
            out[to + lane] = z[lane] * x[source + lane]
        for q in range(np.uint64(first[b]), np.uint64(first[b + one])):
            to, source = (np.uint64(at) + q) * w, q * w
            for lane in range(w):
                out[to + lane] = z[lane] * x[source + lane]


@inner_kernel
def _scales(lanes: int, n_labels: int, node: Floats, node_first: int, beta: Floats, scale: Floats, at: int) -> None:
    """scale[at] = sum of node * beta over the single labels; 1 after a sentence's end."""
    for lane in range(lanes):
        total = 0.0
        for b in range(n_labels):
            total += node[(node_first + b) * lanes + lane] * beta[b * lanes + lane]
        scale[at * lanes + lane] = total if total > 0.0 else 1.0


@inner_kernel
def backward_lanes(
    starts: Ints, lengths: Ints, longest: int, n_labels: int, graph: Graph, factor: Floats, local: LocalArcs,
    node: Floats, pairs: PairFactors, changes: Changes, back: Floats, scale: Floats, extra: Floats, beta: Floats,
    inverse: Floats, z: Floats,
) -> None:  # fmt: skip
    """Write back[u, q] and scale[u] of each lane."""
    w, n_states = len(starts), len(graph.size)
    extra[: n_states * w] = 0.0
    beta[: n_states * w] = 0.0  # and stays so in a lane until its sentence ends
    for u in range(longest - 1, -1, -1):
        for lane in range(w):
            if u == lengths[lane] - 1:
                for q in range(n_states):
                    beta[q * w + lane] = 1.0
        _scales(w, n_labels, node, u * n_labels, beta, scale, u)
        for lane in range(w):
            inverse[lane] = 1.0 / scale[u * w + lane]
        _times_nodes(w, n_labels, graph.first, node, u * n_labels, inverse, beta, back, u * n_states, z)
        if u > 0:
            for lane in range(w):
                if u < lengths[lane]:
                    change_rows(
                        w, lane, starts[lane] + u, n_labels, local, graph, factor, back, u * n_states, changes, extra
                    )
            # After the end of a sentence nothing is lost: its rows are zeros.
            sum_rows(w, starts + u, n_labels, graph, factor, pairs, local, back, u * n_states, extra, beta)


@inner_fast_kernel
def hand_down(lanes: int, n_labels: int, fail: Ints, alpha: Floats) -> None:
    """alpha[p] = all the mass that ends in p: what is in longer contexts is handed to those they back off to."""
    w, n, one = np.uint64(lanes), np.uint64(n_labels), np.uint64(1)
    state = np.uint64(len(fail))
    while state > n:
        state -= one
        source, to = state * w, np.uint64(fail[state]) * w
        for lane in range(w):
            alpha[to + lane] += alpha[source + lane]


@inner_fast_kernel
def _overlap(w: np.uint64, alpha: Floats, source: np.uint64, back: Floats, x: np.uint64) -> float:
    """Sum over lanes of alpha * back."""
    total = 0.0
    for lane in range(w):
        total += alpha[source + lane] * back[x + lane]
    return total


@inner_fast_kernel
def _take_long_pairs(
    lanes: int, n_labels: int, long_pairs: UInts32, arc_state: UInts32, factor: Floats, alpha: Floats, back: Floats,
    at: int, new: Floats, counts: Floats,
) -> None:  # fmt: skip
    """All mass that ends in a takes the pairs (a, b) that lead to longer contexts."""
    w, n, here = np.uint64(lanes), np.uint64(n_labels), np.uint64(at)
    for i in range(len(long_pairs)):
        arc = np.uint64(long_pairs[i])
        state = np.uint64(arc_state[arc])
        z, source, to, x = factor[arc], arc // n * w, state * w, (here + state) * w
        for lane in range(w):
            new[to + lane] += z * alpha[source + lane]
        counts[arc] += z * _overlap(w, alpha, source, back, x)


@inner_fast_kernel
def _take_own_arcs(
    lanes: int, n_labels: int, arc_ptr: Ints, up: UInts32, arc_state: UInts32, factor: Floats, alpha: Floats,
    back: Floats, at: int, new: Floats, counts: Floats,
) -> None:  # fmt: skip
    """The mass in a context takes its own arcs, and not those that they overwrite."""
    w, here, one = np.uint64(lanes), np.uint64(at), np.uint64(1)
    for p in range(np.uint64(n_labels), np.uint64(len(arc_ptr)) - one):
        source = p * w
        for arc in range(np.uint64(arc_ptr[p]), np.uint64(arc_ptr[p + one])):
            old = np.uint64(up[arc])
            own, other = np.uint64(arc_state[arc]), np.uint64(arc_state[old])
            z, z_old, to, x = factor[arc], factor[old], own * w, (here + own) * w
            change = z - z_old if own == other else z
            for lane in range(w):
                new[to + lane] += change * alpha[source + lane]
            total = _overlap(w, alpha, source, back, x)
            counts[arc] += z * total
            if own != other:
                to, x = other * w, (here + other) * w
                for lane in range(w):
                    new[to + lane] -= z_old * alpha[source + lane]
                total = _overlap(w, alpha, source, back, x)
            counts[old] -= z_old * total


@inner_kernel
def take_arcs(
    lanes: int, n_labels: int, graph: Graph, factor: Floats, pairs: PairFactors, alpha: Floats, back: Floats, at: int,
    new: Floats, pair_counts: Floats, counts: Floats,
) -> None:  # fmt: skip
    """new[target] = mass that enters it, and the posterior of taking each arc, summed over lanes, to counts.

    By differences. Short pairs are counted in `pair_counts`, without their factors. `alpha` is overwritten.
    """
    hand_down(lanes, n_labels, graph.fail, alpha)
    shape = (n_labels, lanes)
    mass = alpha[: n_labels * lanes].reshape(shape)
    new[n_labels * lanes : len(graph.fail) * lanes] = 0.0
    np.dot(pairs.transposed, mass, new[: n_labels * lanes].reshape(shape))
    pair_counts += np.dot(mass, back[at * lanes : (at + n_labels) * lanes].reshape(shape).T)
    _take_long_pairs(
        lanes, n_labels, graph.long_pairs, graph.arc_state, factor, alpha, back, at, new, counts
    )  # fmt: skip
    _take_own_arcs(
        lanes, n_labels, graph.arc_ptr, graph.up, graph.arc_state, factor, alpha, back, at, new, counts
    )  # fmt: skip


@inner_fast_kernel
def _label_sums(
    lanes: int, n_labels: int, first: Ints, new: Floats, back: Floats, at: int, sums: Floats, whole: Floats
) -> None:
    """sums[b] = posterior of label b, and their sum; differences that rounding made negative are zeros."""
    w, one = np.uint64(lanes), np.uint64(1)
    for lane in range(w):
        whole[lane] = 0.0
    for b in range(np.uint64(n_labels)):
        to = b * w
        source = (np.uint64(at) + b) * w
        for lane in range(w):
            new[to + lane] = max(new[to + lane], 0.0)
            sums[to + lane] = new[to + lane] * back[source + lane]
        for q in range(np.uint64(first[b]), np.uint64(first[b + one])):
            x, source = q * w, (np.uint64(at) + q) * w
            for lane in range(w):
                new[x + lane] = max(new[x + lane], 0.0)
                sums[to + lane] += new[x + lane] * back[source + lane]
        for lane in range(w):
            whole[lane] += sums[to + lane]


@kernel
def add_pairs(pairs: PairFactors, pair_counts: Floats, counts: Floats) -> None:
    """Add the counts of short pairs."""
    n_labels = len(pair_counts)
    for a in range(n_labels):
        for b in range(n_labels):
            counts[a * n_labels + b] += pairs.matrix[a, b] * pair_counts[a, b]


@inner_kernel
def forward_lanes(
    starts: Ints, lengths: Ints, weights: Floats, longest: int, n_labels: int, graph: Graph, factor: Floats,
    local: LocalArcs, node: Floats, pairs: PairFactors, changes: Changes, back: Floats, scale: Floats,
    partition: Floats, alpha: Floats, new: Floats, sums: Floats, whole: Floats, inverse: Floats, z: Floats,
    counts: Floats, marginals: Floats, cor_residuals: Floats,
) -> bool:  # fmt: skip
    """Posteriors times weights, after `backward_lanes`; returns whether they sum to the weight everywhere.

    As `patterns.forward_sentence` writes them; those of arcs are summed over the lanes.
    """
    w, n_states = len(starts), len(graph.size)
    counts[:] = 0.0
    pair_counts = np.zeros((n_labels, n_labels))
    for u in range(longest):
        if u == 0:
            new[: n_states * w] = 0.0
            for lane in range(w):
                for b in range(n_labels):
                    new[b * w + lane] = weights[lane] / partition[lane]
                cor_residuals[local.ptr[starts[lane]] : local.ptr[starts[lane] + lengths[lane]]] = 0.0
        else:
            take_arcs(w, n_labels, graph, factor, pairs, alpha, back, u * n_states, new, pair_counts, counts)
            for lane in range(w):
                if u < lengths[lane]:
                    take_changes(
                        w, lane, starts[lane] + u, n_labels, local, graph, factor, alpha, back, u * n_states, changes,
                        new, counts, cor_residuals,
                    )  # fmt: skip
        _label_sums(w, n_labels, graph.first, new, back, u * n_states, sums, whole)
        for lane in range(w):
            inverse[lane] = 1.0 / scale[u * w + lane]
            if u >= lengths[lane]:
                continue
            if not abs(whole[lane] - weights[lane]) <= _EXACT * weights[lane]:
                return False
            for b in range(n_labels):
                marginals[(starts[lane] + u) * n_labels + b] = sums[b * w + lane]
        _times_nodes(w, n_labels, graph.first, node, u * n_labels, inverse, new, alpha, 0, z)
    add_pairs(pairs, pair_counts, counts)
    return True


@inner_kernel
def group_scratch(longest: int, n_labels: int, n_states: int, n_arcs: int, lanes: int) -> tuple[Floats, ...]:
    """Arrays that `group_pass` works on, for groups of up to so many lanes and tokens."""
    return (
        np.empty(longest * n_labels * lanes), np.empty(longest * n_states * lanes), np.empty(longest * lanes),
        np.empty(n_states * lanes), np.empty(n_states * lanes), np.empty(n_states * lanes), np.empty(n_labels * lanes),
        np.empty(lanes), np.empty(lanes), np.empty(lanes), np.empty(lanes), np.empty(n_arcs),
    )  # fmt: skip


@inner_kernel
def group_pass(
    starts: Ints, lengths: Ints, weights: Floats, first_node: Ints, n_labels: int, graph: Graph, factor: Floats,
    shift: float, pairs: PairFactors, local: LocalArcs, node: Floats, node_shift: Floats, first_token: int,
    changes: Changes, scratch: tuple[Floats, ...],
    log_z: Floats, counts: Floats, marginals: Floats, cor_residuals: Floats,
) -> bool:  # fmt: skip
    """Log-partitions and weighted posteriors of one group; False where digits were lost, and nothing is to be used.

    `node`, `node_shift` are those of the block, whose tokens begin at first_token.
    """
    lane_node, back, scale, extra, alpha, new, sums, whole, inverse, partition, z, own_counts = scratch
    w, longest = len(starts), lengths.max()
    _spread_nodes(n_labels, node, first_node, lengths, longest, lane_node)
    backward_lanes(
        starts, lengths, longest, n_labels, graph, factor, local, lane_node, pairs, changes, back, scale, extra, alpha,
        inverse, z,
    )  # fmt: skip
    for lane in range(w):
        partition[lane] = 0.0
        for b in range(n_labels):
            partition[lane] += back[b * w + lane]
        total = math.log(partition[lane]) + (lengths[lane] - 1) * shift
        for u in range(lengths[lane]):
            total += math.log(scale[u * w + lane]) + node_shift[starts[lane] - first_token + u]
        log_z[lane] = total
    is_exact = forward_lanes(
        starts, lengths, weights, longest, n_labels, graph, factor, local, lane_node, pairs, changes, back, scale,
        partition, alpha, new, sums, whole, inverse, z, own_counts, marginals, cor_residuals,
    )  # fmt: skip
    if is_exact:
        for arc in range(len(counts)):
            counts[arc] += own_counts[arc]
    return is_exact
