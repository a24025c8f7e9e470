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

import numpy as np

from vcrf.kernels._jit import fast_kernel, kernel
from vcrf.kernels.patterns import _CANCELS, _EXACT, Graph, LocalArcs
from vcrf.types import Floats, Ints, UInts32

# Sentences side by side.
LANES = 16


@kernel
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


@fast_kernel
def _arc_values(lanes: int, arc_state: UInts32, factor: Floats, back: Floats, at: int, values: Floats) -> None:
    """values[arc] = factor[arc] * back[at + target]."""
    w, here = np.uint64(lanes), np.uint64(at)
    for arc in range(np.uint64(len(factor))):
        z, to, source = factor[arc], arc * w, (here + np.uint64(arc_state[arc])) * w
        for lane in range(w):
            values[to + lane] = z * back[source + lane]


@fast_kernel
def _sum_rows(
    lanes: int, n_labels: int, fail: Ints, arc_ptr: Ints, up: UInts32, table: UInts32, values: Floats, beta: Floats
) -> None:
    """beta[p] = sum_b values[arc that p takes with b]: those of labels in full, others from what own arcs change."""
    w, n, one = np.uint64(lanes), np.uint64(n_labels), np.uint64(1)
    for a in range(n):
        to, row = a * w, a * n * w
        for lane in range(w):
            beta[to + lane] = values[row + lane]
        for b in range(one, n):
            x = row + b * w
            for lane in range(w):
                beta[to + lane] += values[x + lane]
    for p in range(n, np.uint64(len(fail))):
        to, shorter = p * w, np.uint64(fail[p]) * w
        for lane in range(w):
            beta[to + lane] = beta[shorter + lane]
        for arc in range(np.uint64(arc_ptr[p]), np.uint64(arc_ptr[p + one])):
            x, old = arc * w, np.uint64(up[arc]) * w
            for lane in range(w):
                beta[to + lane] += values[x + lane] - values[old + lane]
        n_lost = 0
        for lane in range(w):
            n_lost += beta[to + lane] < _CANCELS * beta[shorter + lane]
        if n_lost > 0:
            for lane in range(w):
                if beta[to + lane] < _CANCELS * beta[shorter + lane]:
                    total = 0.0
                    for b in range(n):
                        total += values[np.uint64(table[p, b]) * w + lane]
                    beta[to + lane] = total


@fast_kernel
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


@kernel
def _scales(lanes: int, n_labels: int, node: Floats, node_first: int, beta: Floats, scale: Floats, at: int) -> None:
    """scale[at] = sum of node * beta over the single labels; 1 after a sentence's end."""
    for lane in range(lanes):
        total = 0.0
        for b in range(n_labels):
            total += node[(node_first + b) * lanes + lane] * beta[b * lanes + lane]
        scale[at * lanes + lane] = total if total > 0.0 else 1.0


@kernel
def _scale_values(
    lanes: int, lane: int, t: int, local: LocalArcs, rank: Ints, rank_end: Ints, by_rank: UInts32, values: Floats
) -> None:
    """Multiply the patterns of token t alone into the values of the arcs that end with them."""
    for j in range(local.ptr[t], local.ptr[t + 1]):
        z, arc = local.factor[j], local.arc[j]
        for r in range(rank[arc], rank_end[arc]):
            values[by_rank[r] * lanes + lane] *= z


@kernel
def backward_lanes(
    starts: Ints, lengths: Ints, longest: int, n_labels: int, graph: Graph, factor: Floats, local: LocalArcs,
    node: Floats, back: Floats, scale: Floats, values: Floats, beta: Floats, inverse: Floats, z: Floats,
) -> None:  # fmt: skip
    """Write back[u, q] and scale[u] of each lane."""
    w, n_states = len(starts), len(graph.size)
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
            _arc_values(w, graph.arc_state, factor, back, u * n_states, values)
            for lane in range(w):
                if u < lengths[lane]:
                    _scale_values(
                        w, lane, starts[lane] + u, local, graph.rank, graph.rank_end, graph.by_rank, values
                    )  # fmt: skip
            _sum_rows(w, n_labels, graph.fail, graph.arc_ptr, graph.up, graph.table, values, beta)


@fast_kernel
def _mass_of_arcs(
    lanes: int, n_labels: int, fail: Ints, arc_ptr: Ints, up: UInts32, alpha: Floats, taken: Floats
) -> None:
    """Mass that takes each arc: all that ends in its context less what takes arcs that overwrite it.

    `alpha` is overwritten.
    """
    w, n, one = np.uint64(lanes), np.uint64(n_labels), np.uint64(1)
    state = np.uint64(len(fail))
    while state > n:
        state -= one
        source, to = state * w, np.uint64(fail[state]) * w
        for lane in range(w):
            alpha[to + lane] += alpha[source + lane]
    for a in range(n):
        source = a * w
        for b in range(n):
            to = (a * n + b) * w
            for lane in range(w):
                taken[to + lane] = alpha[source + lane]
    for p in range(n, np.uint64(len(fail))):
        source = p * w
        for arc in range(np.uint64(arc_ptr[p]), np.uint64(arc_ptr[p + one])):
            to, old = arc * w, np.uint64(up[arc]) * w
            for lane in range(w):
                taken[to + lane] = alpha[source + lane]
            for lane in range(w):
                taken[old + lane] -= alpha[source + lane]


@fast_kernel
def _take_arcs(
    lanes: int, arc_state: UInts32, factor: Floats, taken: Floats, back: Floats, at: int, new: Floats, counts: Floats
) -> None:
    """new[target] += taken * factor, and the posterior of taking each arc, summed over lanes, to counts."""
    w, here = np.uint64(lanes), np.uint64(at)
    for arc in range(np.uint64(len(factor))):
        z, x, to = factor[arc], arc * w, np.uint64(arc_state[arc]) * w
        source = here * w + to
        total = 0.0
        for lane in range(w):
            mass = max(taken[x + lane], 0.0) * z
            new[to + lane] += mass
            total += mass * back[source + lane]
        counts[arc] += total


@fast_kernel
def _label_sums(
    lanes: int, n_labels: int, first: Ints, new: Floats, back: Floats, at: int, sums: Floats, whole: Floats
) -> None:
    """sums[b] = posterior of label b, and their sum."""
    w, one = np.uint64(lanes), np.uint64(1)
    for lane in range(w):
        whole[lane] = 0.0
    for b in range(np.uint64(n_labels)):
        to = b * w
        source = (np.uint64(at) + b) * w
        for lane in range(w):
            sums[to + lane] = new[to + lane] * back[source + lane]
        for q in range(np.uint64(first[b]), np.uint64(first[b + one])):
            x, source = q * w, (np.uint64(at) + q) * w
            for lane in range(w):
                sums[to + lane] += new[x + lane] * back[source + lane]
        for lane in range(w):
            whole[lane] += sums[to + lane]


@kernel
def _local_posteriors(
    lanes: int, lane: int, t: int, local: LocalArcs, graph: Graph, factor: Floats, taken: Floats, back: Floats, at: int,
    out: Floats,
) -> None:  # fmt: skip
    """Multiply the patterns of token t alone into the mass that takes arcs; out[j] += their posteriors."""
    _scale_values(lanes, lane, t, local, graph.rank, graph.rank_end, graph.by_rank, taken)
    for j in range(local.ptr[t], local.ptr[t + 1]):
        arc, total = local.arc[j], 0.0
        for r in range(graph.rank[arc], graph.rank_end[arc]):
            i = graph.by_rank[r]
            mass = max(taken[i * lanes + lane], 0.0) * factor[i]
            total += mass * back[(at + np.int64(graph.arc_state[i])) * lanes + lane]
        out[j] += total


@kernel
def forward_lanes(
    starts: Ints, lengths: Ints, weights: Floats, longest: int, n_labels: int, graph: Graph, factor: Floats,
    local: LocalArcs, node: Floats, back: Floats, scale: Floats, partition: Floats, taken: Floats, alpha: Floats,
    new: Floats, sums: Floats, whole: Floats, inverse: Floats, z: Floats, counts: Floats, marginals: Floats,
    cor_residuals: Floats,
) -> bool:  # fmt: skip
    """Posteriors times weights, after `backward_lanes`; returns whether they sum to the weight everywhere.

    As `patterns.forward_sentence` writes them; those of arcs are summed over the lanes.
    """
    w, n_states = len(starts), len(graph.size)
    counts[:] = 0.0
    for u in range(longest):
        new[: n_states * w] = 0.0
        if u == 0:
            for lane in range(w):
                for b in range(n_labels):
                    new[b * w + lane] = weights[lane] / partition[lane]
                cor_residuals[local.ptr[starts[lane]] : local.ptr[starts[lane] + lengths[lane]]] = 0.0
        else:
            _mass_of_arcs(w, n_labels, graph.fail, graph.arc_ptr, graph.up, alpha, taken)
            for lane in range(w):
                if u < lengths[lane]:
                    _local_posteriors(
                        w, lane, starts[lane] + u, local, graph, factor, taken, back, u * n_states, cor_residuals
                    )
            _take_arcs(w, graph.arc_state, factor, taken, back, u * n_states, new, counts)
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
    return True


@kernel
def group_scratch(longest: int, n_labels: int, n_states: int, n_arcs: int, lanes: int) -> tuple[Floats, ...]:
    """Arrays that `group_pass` works on, for groups of up to so many lanes and tokens."""
    return (
        np.empty(longest * n_labels * lanes), np.empty(longest * n_states * lanes), np.empty(longest * lanes),
        np.empty(n_arcs * lanes), np.empty(n_states * lanes), np.empty(n_states * lanes), np.empty(n_labels * lanes),
        np.empty(lanes), np.empty(lanes), np.empty(lanes), np.empty(lanes), np.empty(n_arcs),
    )  # fmt: skip


@kernel
def group_pass(
    starts: Ints, lengths: Ints, weights: Floats, first_node: Ints, n_labels: int, graph: Graph, factor: Floats,
    shift: float, local: LocalArcs, node: Floats, node_shift: Floats, first_token: int, scratch: tuple[Floats, ...],
    log_z: Floats, counts: Floats, marginals: Floats, cor_residuals: Floats,
) -> bool:  # fmt: skip
    """Log-partitions and weighted posteriors of one group; False where digits were lost, and nothing is to be used.

    `node`, `node_shift` are those of the block, whose tokens begin at first_token.
    """
    lane_node, back, scale, values, alpha, new, sums, whole, inverse, partition, z, own_counts = scratch
    w, longest = len(starts), lengths.max()
    _spread_nodes(n_labels, node, first_node, lengths, longest, lane_node)
    backward_lanes(
        starts, lengths, longest, n_labels, graph, factor, local, lane_node, back, scale, values, alpha, inverse, z
    )
    for lane in range(w):
        partition[lane] = 0.0
        for b in range(n_labels):
            partition[lane] += back[b * w + lane]
        total = math.log(partition[lane]) + (lengths[lane] - 1) * shift
        for u in range(lengths[lane]):
            total += math.log(scale[u * w + lane]) + node_shift[starts[lane] - first_token + u]
        log_z[lane] = total
    is_exact = forward_lanes(
        starts, lengths, weights, longest, n_labels, graph, factor, local, lane_node, back, scale, partition, values,
        alpha, new, sums, whole, inverse, z, own_counts, marginals, cor_residuals,
    )  # fmt: skip
    if is_exact:
        for arc in range(len(counts)):
            counts[arc] += own_counts[arc]
    return is_exact
