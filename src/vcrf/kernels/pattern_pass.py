"""A pass over a block of sentences on a pattern automaton: groups of sentences side by side, the others one by one."""

from __future__ import annotations

import math

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.blocks import Corrections, PassOutput, Sentences
from vcrf.kernels.pattern_changes import make_changes
from vcrf.kernels.pattern_lanes import LANES, group_pass, group_scratch, pair_factors
from vcrf.kernels.patterns import (
    ArcScores,
    Graph,
    LocalArcs,
    backward_sentence,
    forward_sentence,
    longest_of,
    prepare_nodes,
    take_truth,
)
from vcrf.types import Floats, Ints, UInts32


@kernel
def sentence_pass(
    i: int, sentences: Sentences, t0: int, n_labels: int, order: int, graph: Graph, arc_scores: ArcScores,
    local: LocalArcs, node: Floats, shift: Floats, counts: Floats, out: PassOutput,
) -> float:  # fmt: skip
    """Log-partition and weighted posteriors of sentence i alone, in full where differences lose digits."""
    start, stop, weight = sentences.ptr[i], sentences.ptr[i + 1], sentences.weights[i]
    n_states, longest, original = len(graph.size), stop - start, arc_scores.factor
    back, scale, factor = np.empty(longest * n_states), np.empty(longest), original.copy()
    empty = np.zeros((order + 1) * n_labels)
    beta, alpha, new = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    taken, values, own_counts = np.empty(len(factor)), np.empty(len(factor)), np.empty(len(factor))
    at = (start - t0) * n_labels
    partition = backward_sentence(
        start, stop, n_labels, graph, original, factor, local, node, at, back, scale, values, beta
    )
    log_z = math.log(partition) + (stop - start - 1) * arc_scores.shift
    for u in range(stop - start):
        log_z += math.log(scale[u]) + shift[start - t0 + u]
    is_mild = True
    while not forward_sentence(
        start, stop, n_labels, graph, original, factor, local, node, at, back, scale, partition, weight, is_mild,
        empty, values, alpha, new, taken, own_counts, out.residuals, out.cor_residuals,
    ):  # fmt: skip
        is_mild = False
    for arc in range(len(counts)):
        counts[arc] += own_counts[arc]
    return float(log_z)


@inner_kernel
def by_length(ptr: Ints, first: int, last: int, hard: UInts32) -> Ints:
    """Sentences first .. last-1 that are not hard and not empty, shortest first."""
    lengths = ptr[first + 1 : last + 1] - ptr[first:last]
    order = first + np.argsort(lengths, kind="mergesort")
    n = 0
    for i in order:
        if hard[i] == 0 and ptr[i + 1] > ptr[i]:
            order[n] = i
            n += 1
    return order[:n]


@kernel
def pattern_pass(
    sentences: Sentences, first: int, last: int, n_labels: int, order: int, rows: UInts32, scores: Floats,
    graph: Graph, arc_scores: ArcScores, cor: Corrections, local: LocalArcs, clamp: bool, counts: Floats,
    out: PassOutput,
) -> None:  # fmt: skip
    """Forward-backward of sentences first .. last-1, over the allowed labels only if clamped.

    Writes what `chain.chain_pass` writes to `out`; adds posterior - truth of taking each arc to `counts`.
    """
    t0 = sentences.ptr[first]
    node, shift = prepare_nodes(sentences, first, last, n_labels, rows, scores, arc_scores.tables, cor, clamp, out)
    which = by_length(sentences.ptr, first, last, out.hard)
    longest, lanes = longest_of(sentences.ptr, first, last), min(LANES, len(which))
    scratch = group_scratch(longest, n_labels, len(graph.size), len(arc_scores.factor), lanes)
    pairs = pair_factors(n_labels, graph.long_pairs, arc_scores.factor)
    changes, log_z = make_changes(len(arc_scores.factor)), np.empty(lanes)
    for begin in range(0, len(which), LANES):
        group = which[begin : begin + LANES]
        starts = sentences.ptr[group]
        if not group_pass(
            starts, sentences.ptr[group + 1] - starts, sentences.weights[group], (starts - t0) * n_labels, n_labels,
            graph, arc_scores.factor, arc_scores.shift, pairs, local, node, shift, t0, changes, scratch, log_z, counts,
            out.residuals, out.cor_residuals,
        ):  # fmt: skip
            for lane in range(len(group)):
                log_z[lane] = sentence_pass(
                    group[lane], sentences, t0, n_labels, order, graph, arc_scores, local, node, shift, counts, out
                )
        for lane in range(len(group)):
            i = group[lane]
            out.values[i] += log_z[lane] - take_truth(
                sentences.ptr[i], sentences.ptr[i + 1], n_labels, sentences.y, graph, arc_scores.log, local,
                sentences.weights[i], counts, out.residuals, out.cor_residuals,
            )  # fmt: skip
