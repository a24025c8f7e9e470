"""Forward-backward on a pattern automaton in the scaled probability domain; see `vcrf.lattice.automaton`.

A context's row of arcs is a copy of the row it backs off to, with its own arcs overwritten. From right to left

    back[t, q] = node[t, last(q)] beta[t, q] / scale[t],    beta[t-1, p] = sum_b factor(p, b) back[t, target(p, b)]

and from left to right, with alpha scaled so that alpha * beta is the posterior,

    taken = alpha[t-1, p] factor(p, b),    alpha[t, q] = (sum of what enters q) node[t, last(q)] / scale[t]

The posterior of what takes an arc is taken * back. Mass that a context has no own arc for is handed on to the context
that it backs off to, longest first. Both are done by differences, at the cost of the own arcs alone; where digits
would be lost that way, rows are summed in full, over positive numbers only. Sentences whose potentials span too much
are flagged, as in `kernels.potentials`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import fast_kernel, inner_fast_kernel, inner_kernel, kernel
from vcrf.kernels.blocks import Corrections, PassOutput, Sentences, Tables
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.potentials import node_scores, spans_and_flags
from vcrf.types import Floats, Ints, UInts32

# A sum of differences that is smaller than this share of what it started from has lost digits.
_CANCELS = 1e-4
# Posteriors by differences are used if they sum to 1 as closely as this: rounding that matters would show.
_EXACT = 1e-11

# Sums are made without the corrections of a token, and differences added: nats that may cancel in these. More are done
# in the log domain, or nothing of the sum would be left where every label sequence has such a correction. What is left
# has an error of e^10 roundings, 5e-12.
MOST_CANCELLED = 10.0


class Graph(NamedTuple):
    """What the loops read of a `PatternAutomaton`, as small integers; `up` of pairs has no meaning."""

    first: Ints
    size: UInts32
    last: UInts32
    end: Ints
    fail: Ints
    up: UInts32
    arc_ptr: Ints
    arc_label: UInts32
    arc_state: UInts32
    pair_ptr: Ints
    long_pairs: UInts32
    table: UInts32
    rank: Ints
    rank_end: Ints
    by_rank: UInts32
    arc_source: UInts32


class ArcScores(NamedTuple):
    """Scores of the arcs: summed, and exp(score - shift).

    `tables` has the order and the span for `spans_and_flags`.
    """

    log: Floats
    factor: Floats
    shift: float
    tables: Tables


class LocalArcs(NamedTuple):
    """CSR over tokens: the arc, score and exp(score) of patterns that fire at this token only."""

    ptr: Ints
    arc: UInts32
    score: Floats
    factor: Floats


@kernel
def sum_scores(up: Ints, own: Floats) -> None:
    """own[i] += own of the arcs that arc i overwrites; these come before it."""
    for i in range(len(up)):
        if up[i] >= 0:
            own[i] += own[up[i]]


@kernel
def sum_counts(up: Ints, counts: Floats) -> None:
    """Counts of patterns from counts of arcs taken: what takes an arc is counted for those that it overwrites too."""
    for i in range(len(up) - 1, -1, -1):
        if up[i] >= 0:
            counts[up[i]] += counts[i]


@fast_kernel
def forward_token(
    n_labels: int, first: Ints, size: UInts32, end: Ints, arc_ptr: Ints, arc_label: UInts32, arc_state: UInts32,
    pair_ptr: Ints, long_pairs: UInts32, factor: Floats, alpha: Floats, back: Floats, at: int, weight: float,
    rows: Floats, new: Floats, counts: Floats,
) -> None:  # fmt: skip
    """new[q] += mass that enters q, and counts[arc] += weight * posterior of taking it; `rows` are zeros, left so."""
    n, here, one = np.uint64(n_labels), np.uint64(at), np.uint64(1)
    for a in range(n_labels):
        begin = np.uint64(first[a])
        p = np.uint64(first[a + 1])
        while p > begin:
            p -= one
            mass = alpha[p]
            own = np.uint64(size[p]) * n
            shorter = own - n
            from_arc, to_arc = np.uint64(arc_ptr[p]), np.uint64(arc_ptr[p + one])
            if np.uint64(end[p]) == p + one:
                # Nothing backs off to this context: its row is one number.
                if mass == 0.0:
                    continue
                for arc in range(from_arc, to_arc):
                    # Keep what the shorter row has at this label: the mass goes on by the own arc.
                    rows[own + np.uint64(arc_label[arc])] = rows[shorter + np.uint64(arc_label[arc])]
                for b in range(n):
                    rows[shorter + b] += mass
                for arc in range(from_arc, to_arc):
                    label, to = np.uint64(arc_label[arc]), np.uint64(arc_state[arc])
                    rows[shorter + label] = rows[own + label]
                    rows[own + label] = 0.0
                    taken = mass * factor[arc]
                    new[to] += taken
                    counts[arc] += weight * taken * back[here + to]
                continue
            for b in range(n):
                rows[own + b] += mass
            for arc in range(from_arc, to_arc):
                label, to = np.uint64(arc_label[arc]), np.uint64(arc_state[arc])
                taken = rows[own + label] * factor[arc]
                rows[own + label] = 0.0
                new[to] += taken
                counts[arc] += weight * taken * back[here + to]
            for b in range(n):
                rows[shorter + b] += rows[own + b]
                rows[own + b] = 0.0
        mass = alpha[a]
        for b in range(n):
            rows[n + b] += mass
        for i in range(pair_ptr[a], pair_ptr[a + 1]):
            arc = long_pairs[i]
            label, to = np.uint64(arc_label[arc]), np.uint64(arc_state[arc])
            taken = rows[n + label] * factor[arc]
            rows[n + label] = 0.0
            new[to] += taken
            counts[arc] += weight * taken * back[here + to]
        pair = np.uint64(a) * n
        for b in range(n):
            taken = rows[n + b] * factor[pair + b]
            rows[n + b] = 0.0
            new[b] += taken
            counts[pair + b] += weight * taken * back[here + b]


@inner_fast_kernel
def backward_token(
    n_labels: int, fail: Ints, arc_ptr: Ints, up: UInts32, arc_state: UInts32, long_pairs: UInts32, table: UInts32,
    factor: Floats, back: Floats, at: int, values: Floats, beta: Floats,
) -> None:  # fmt: skip
    """beta[p] = sum_b factor(p, b) * back[at + target(p, b)], from what own arcs change: beta(fail) + sum (own - old).

    Where that cancels, the row is summed. `values` is scratch, one number an arc.
    """
    n, here, one = np.uint64(n_labels), np.uint64(at), np.uint64(1)
    for a in range(n):
        pair = a * n
        for b in range(n):
            values[pair + b] = factor[pair + b] * back[here + b]
    for i in range(len(long_pairs)):
        arc = long_pairs[i]
        values[arc] = factor[arc] * back[here + np.uint64(arc_state[arc])]
    for a in range(n):
        total = 0.0
        for b in range(n):
            total += values[a * n + b]
        beta[a] = total
    for p in range(n, np.uint64(len(fail))):
        shorter = beta[np.uint64(fail[p])]
        total = shorter
        for arc in range(np.uint64(arc_ptr[p]), np.uint64(arc_ptr[p + one])):
            value = factor[arc] * back[here + np.uint64(arc_state[arc])]
            values[arc] = value
            total += value - values[np.uint64(up[arc])]
        if not total > _CANCELS * shorter:
            total = 0.0
            for b in range(n):
                total += values[table[p, b]]
        beta[p] = total


@fast_kernel
def forward_differences(
    n_labels: int, fail: Ints, arc_ptr: Ints, up: UInts32, arc_state: UInts32, long_pairs: UInts32, factor: Floats,
    alpha: Floats, back: Floats, at: int, weight: float, taken: Floats, new: Floats, counts: Floats,
) -> None:  # fmt: skip
    """What `forward_token` computes: an arc is taken by all that ends in its context less what its own arcs take.

    `alpha` is overwritten; `taken` is scratch, one number an arc.
    """
    n, here, one = np.uint64(n_labels), np.uint64(at), np.uint64(1)
    state = np.uint64(len(fail))
    while state > n:
        state -= one
        alpha[np.uint64(fail[state])] += alpha[state]
    for a in range(n):
        mass = alpha[a]
        for b in range(n):
            taken[a * n + b] = mass
    for p in range(n, np.uint64(len(fail))):
        mass = alpha[p]
        for arc in range(np.uint64(arc_ptr[p]), np.uint64(arc_ptr[p + one])):
            taken[arc] = mass
            taken[np.uint64(up[arc])] -= mass
    for i in range(len(long_pairs)):
        long = np.uint64(long_pairs[i])
        to = np.uint64(arc_state[long])
        mass = max(taken[long], 0.0) * factor[long]
        taken[long] = 0.0
        new[to] += mass
        counts[long] += weight * mass * back[here + to]
    for a in range(n):
        pair = a * n
        for b in range(n):
            mass = max(taken[pair + b], 0.0) * factor[pair + b]
            new[b] += mass
            counts[pair + b] += weight * mass * back[here + b]
    for arc in range(n * n, np.uint64(len(factor))):
        to = np.uint64(arc_state[arc])
        mass = max(taken[arc], 0.0) * factor[arc]
        new[to] += mass
        counts[arc] += weight * mass * back[here + to]


@inner_kernel
def apply_local(
    arcs: UInts32, local_factor: Floats, begin: int, stop: int, rank: Ints, rank_end: Ints, by_rank: UInts32,
    factor: Floats,
) -> None:  # fmt: skip
    """Multiply the patterns begin .. stop-1 into the arcs that end with them."""
    for j in range(begin, stop):
        for r in range(rank[arcs[j]], rank_end[arcs[j]]):
            factor[by_rank[r]] *= local_factor[j]


@inner_kernel
def undo_local(
    arcs: UInts32, begin: int, stop: int, rank: Ints, rank_end: Ints, by_rank: UInts32, original: Floats, factor: Floats
) -> None:
    """Restore what `apply_local` touched."""
    for j in range(begin, stop):
        for r in range(rank[arcs[j]], rank_end[arcs[j]]):
            factor[by_rank[r]] = original[by_rank[r]]


@inner_fast_kernel
def _times_nodes(
    n_labels: int, first: Ints, node: Floats, node_first: int, x: Floats, out: Floats, at: int, factor: float
) -> float:
    """out[at + q] = factor * node of the newest label of q * x[q]; returns the sum. Contexts are grouped by label."""
    to, one = np.uint64(at), np.uint64(1)
    for b in range(np.uint64(n_labels)):
        z = factor * node[np.uint64(node_first) + b]
        out[to + b] = z * x[b]
        for q in range(np.uint64(first[b]), np.uint64(first[b + one])):
            out[to + q] = z * x[q]
    total = 0.0
    for q in range(np.uint64(first[n_labels])):
        total += out[to + q]
    return total


@inner_kernel
def backward_sentence(
    start: int, stop: int, n_labels: int, graph: Graph, original: Floats, factor: Floats, local: LocalArcs,
    node: Floats, node_first: int, back: Floats, scale: Floats, values: Floats, beta: Floats,
) -> float:  # fmt: skip
    """Write back[u, q] (flat) and the scales of one sentence; returns the partition function over the scales' product.

    `node` holds exp(score - shift of the token) from node_first on; `factor` is scratch equal to `original`.
    """
    (
        first, size, _, _, fail, up, arc_ptr, _, arc_state, _, long_pairs, table, rank, rank_end, by_rank, _,
    ) = graph  # fmt: skip
    ptr, arcs, _, local_factor = local
    n_states = len(size)
    beta[:] = 1.0
    for u in range(stop - start - 1, -1, -1):
        t, at = start + u, u * n_states
        total = _times_nodes(n_labels, first, node, node_first + u * n_labels, beta, back, at, 1.0)
        scale[u] = total
        if not total > 0.0:
            return 0.0
        inverse = 1.0 / total
        for q in range(at, at + n_states):
            back[q] *= inverse
        if u > 0:
            if ptr[t + 1] > ptr[t]:
                apply_local(arcs, local_factor, ptr[t], ptr[t + 1], rank, rank_end, by_rank, factor)
            backward_token(n_labels, fail, arc_ptr, up, arc_state, long_pairs, table, factor, back, at, values, beta)
            if ptr[t + 1] > ptr[t]:
                undo_local(arcs, ptr[t], ptr[t + 1], rank, rank_end, by_rank, original, factor)
    total = 0.0
    for b in range(n_labels):
        total += back[b]
    return total


@inner_fast_kernel
def _label_sums(
    first: Ints, n_labels: int, new: Floats, back: Floats, at: int, weight: float, out: Floats, row: int
) -> float:
    """out[row + b] = weight * posterior of label b (states are grouped by it); returns the posteriors' sum."""
    whole = 0.0
    here, one = np.uint64(at), np.uint64(1)
    for b in range(np.uint64(n_labels)):
        total = new[b] * back[here + b]
        for q in range(np.uint64(first[b]), np.uint64(first[b + one])):
            total += new[q] * back[here + q]
        out[np.uint64(row) + b] = weight * total
        whole += total
    return whole


@inner_kernel
def forward_sentence(
    start: int, stop: int, n_labels: int, graph: Graph, original: Floats, factor: Floats, local: LocalArcs,
    node: Floats, node_first: int, back: Floats, scale: Floats, partition: float, weight: float, is_mild: bool,
    rows: Floats, values: Floats, alpha: Floats, new: Floats, taken: Floats, counts: Floats, marginals: Floats,
    cor_residuals: Floats,
) -> bool:  # fmt: skip
    """Posteriors of one sentence after `backward_sentence`, times its weight; returns whether they sum to 1 everywhere.

    Writes those of arcs to `counts`, those of labels to marginals[t * L + b] (flat) and those of local patterns to
    `cor_residuals`. `rows`, `values`, `alpha`, `new`, `taken` are scratch; rows are zeros.
    By differences (`is_mild`), it stops where digits have been lost.
    """
    (
        first, size, _, end, fail, up, arc_ptr, arc_label, arc_state, pair_ptr, long_pairs, _, rank, rank_end,
        by_rank, _,
    ) = graph  # fmt: skip
    ptr, arcs, _, local_factor = local
    n_states = len(size)
    counts[:] = 0.0
    for u in range(stop - start):
        t, at = start + u, u * n_states
        new[:] = 0.0
        if u == 0:
            for b in range(n_labels):
                new[b] = 1.0 / partition
            for j in range(ptr[t], ptr[t + 1]):
                cor_residuals[j] = 0.0
        else:
            has_local = ptr[t + 1] > ptr[t]
            if has_local:
                apply_local(arcs, local_factor, ptr[t], ptr[t + 1], rank, rank_end, by_rank, factor)
                taken[:] = 0.0
            target = taken if has_local else counts
            if is_mild:
                forward_differences(
                    n_labels, fail, arc_ptr, up, arc_state, long_pairs, factor, alpha, back, at, weight,
                    values, new, target,
                )  # fmt: skip
            else:
                forward_token(
                    n_labels, first, size, end, arc_ptr, arc_label, arc_state, pair_ptr, long_pairs, factor, alpha,
                    back, at, weight, rows, new, target,
                )  # fmt: skip
            if has_local:
                for i in range(len(taken)):
                    counts[i] += taken[i]
                for j in range(ptr[t], ptr[t + 1]):
                    total = 0.0
                    for r in range(rank[arcs[j]], rank_end[arcs[j]]):
                        total += taken[by_rank[r]]
                    cor_residuals[j] = total
                undo_local(arcs, ptr[t], ptr[t + 1], rank, rank_end, by_rank, original, factor)
        whole = _label_sums(first, n_labels, new, back, at, weight, marginals, t * n_labels)
        if not abs(whole - 1.0) < _EXACT and is_mild:
            return False
        _times_nodes(n_labels, first, node, node_first + u * n_labels, new, alpha, 0, 1.0 / scale[u])
    return True


@kernel
def take_truth(
    start: int, stop: int, n_labels: int, y: UInts32, graph: Graph, log: Floats, local: LocalArcs, weight: float,
    counts: Floats, residuals: Floats, cor_residuals: Floats,
) -> float:  # fmt: skip
    """Take the true labels off counts and residuals; returns the score of their patterns of two labels or more."""
    score = 0.0
    state = np.int64(0)
    for t in range(start, stop):
        residuals[t * n_labels + y[t]] -= weight
        if t == start:
            state = np.int64(y[t])
            continue
        arc = graph.table[state, y[t]]
        score += log[arc]
        counts[arc] -= weight
        for j in range(local.ptr[t], local.ptr[t + 1]):
            pattern = local.arc[j]
            if graph.rank[pattern] <= graph.rank[arc] and graph.rank[arc] < graph.rank_end[pattern]:
                score += local.score[j]
                cor_residuals[j] -= weight
        state = np.int64(graph.arc_state[arc])
    return score


@inner_kernel
def least_correction(cor: Corrections, t: int, n_labels: int) -> float:
    """Least sum of the corrections at a token that one label sequence has: of those that end with each other."""
    first, last = cor.ptr[t], cor.ptr[t + 1]
    total = 0.0
    for j in range(first, last):
        total += min(cor.score[j], 0.0)
    if total >= -MOST_CANCELLED:
        return total
    least = 0.0
    for j in range(first, last):
        size, code, here = np.int64(cor.size[j]), np.int64(cor.code[j]), 0.0
        for k in range(first, last):
            shorter = np.int64(cor.size[k])
            if shorter <= size and code % n_labels**shorter == np.int64(cor.code[k]):
                here += cor.score[k]
        least = min(least, here)
    return least


@kernel
def prepare_nodes(
    sentences: Sentences, first: int, last: int, n_labels: int, rows: UInts32, scores: Floats, tables: Tables,
    cor: Corrections, clamp: bool, out: PassOutput,
) -> tuple[Floats, Floats]:  # fmt: skip
    """exp(node score - shift) of the block's tokens, flat, and the shifts; flags hard sentences.

    Sets out.values to minus the true labels' scores.
    """
    t0, t1 = sentences.ptr[first], sentences.ptr[last]
    node, shift = np.empty((t1 - t0) * n_labels), np.empty(t1 - t0)
    node_scores(rows, scores, t0, t1, node)
    spans_and_flags(sentences, first, last, n_labels, node, shift, tables, cor, clamp, out)
    for i in range(first, last):
        for t in range(sentences.ptr[i], sentences.ptr[i + 1]):
            if least_correction(cor, t, n_labels) < -MOST_CANCELLED:
                out.hard[i] = 1
    bits = np.empty(len(node), np.uint64)
    exp_inplace(node, bits, bits.view(np.float64))
    if clamp:
        for t in range(t0, t1):
            for b in range(n_labels):
                node[(t - t0) * n_labels + b] *= sentences.allowed[t, b]
    return node, shift


@inner_kernel
def longest_of(ptr: Ints, first: int, last: int) -> int:
    """Length of the longest of sentences first .. last-1, at least 1."""
    longest = 1
    for i in range(first, last):
        longest = max(longest, ptr[i + 1] - ptr[i])
    return longest
