"""A pattern automaton as the kernels read it, and the scores of its arcs and of the sentences' labels.

See `vcrf.lattice.automaton`. Sums over label sequences are made in the scaled probability domain, for several sentences
side by side: `kernels.pattern_lanes` for one token, `kernels.pattern_groups` for all of them. Sentences whose
potentials span too much are flagged, as in `kernels.potentials`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.blocks import PassOutput, Sentences
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.potentials import node_scores, spans_and_flags
from vcrf.kernels.scores import ArcFactors, LocalArcs, LocalFactors
from vcrf.types import Floats, Ints, UInts32

# A sum of differences that is smaller than this share of what it started from has lost digits.
CANCELS = 1e-4
# Posteriors by differences are used if they sum to 1 as closely as this: rounding that matters would show.
EXACT = 1e-11

# Sums are made without the corrections of a token, and differences added: nats that may cancel in these. More are done
# in the log domain, or nothing of the sum would be left where every label sequence has such a correction. What is left
# has an error of e^10 roundings, 5e-12.
MOST_CANCELLED = 10.0


class PatternArrays(NamedTuple):
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
    long_pairs: UInts32
    table: UInts32
    rank: Ints
    rank_end: Ints
    by_rank: UInts32
    arc_source: UInts32


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


@kernel
def take_truth(
    start: int, stop: int, n_labels: int, y: UInts32, graph: PatternArrays, log: Floats, local: LocalArcs,
    weight: float, counts: Floats, residuals: Floats, cor_residuals: Floats,
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
def least_correction(cor: LocalFactors, t: int, n_labels: int) -> float:
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
    sentences: Sentences, first: int, last: int, n_labels: int, rows: UInts32, scores: Floats,
    arc_scores: ArcFactors, cor: LocalFactors, clamp: bool, out: PassOutput,
) -> tuple[Floats, Floats]:  # fmt: skip
    """exp(node score - shift) of the block's tokens, flat, and the shifts; flags hard sentences.

    Sets out.values to minus the true labels' scores.
    """
    t0, t1 = sentences.ptr[first], sentences.ptr[last]
    node, shift = np.empty((t1 - t0) * n_labels), np.empty(t1 - t0)
    node_scores(rows, scores, t0, t1, node)
    spans_and_flags(sentences, first, last, n_labels, node, shift, arc_scores.order, arc_scores.span, cor, clamp, out)
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
