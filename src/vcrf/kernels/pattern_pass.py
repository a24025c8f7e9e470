"""A pass over a block of sentences on a pattern automaton, with a loss automaton or without."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.kernels.blocks import PassOutput, Sentences
from vcrf.kernels.pattern_groups import by_length, group_bounds, make_group
from vcrf.kernels.pattern_sweeps import backward, forward, log_partition, make_messages, weighted
from vcrf.kernels.patterns import PatternArrays, prepare_nodes, take_truth
from vcrf.kernels.product import LossArrays
from vcrf.kernels.scores import ArcFactors, LocalArcs, LocalFactors
from vcrf.types import Floats, UInts32


@kernel
def pattern_pass(
    sentences: Sentences, loss: LossArrays, picks: bool, first: int, last: int, n_labels: int, rows: UInts32,
    scores: Floats, graph: PatternArrays, arc_scores: ArcFactors, cor: LocalFactors, local: LocalArcs, clamp: bool,
    values_only: bool, counts: Floats, means: Floats, out: PassOutput,
) -> None:  # fmt: skip
    """Forward-backward of sentences first .. last-1; clamped, over the allowed labels only.

    Writes what `chain.chain_pass` or, with a loss, `product.product_pass` writes to `out`; adds posterior - truth of
    taking each arc to `counts`. With a loss `means` (n_sentences,) gets the mean losses.
    """
    t0, factor = sentences.ptr[first], arc_scores.factor
    node, shift = prepare_nodes(sentences, first, last, n_labels, rows, scores, arc_scores, cor, clamp, out)
    which = by_length(sentences.ptr, first, last, out.hard)
    for i in range(first, last):
        if picks and sentences.ptr[i] == sentences.ptr[i + 1]:
            out.values[i] = -np.inf
    bounds, lanes, largest = group_bounds(loss, picks, which, sentences.ptr)
    arcs, own_counts, shares = weighted(n_labels, graph, factor, local), np.empty(len(factor)), np.zeros(0)
    m = make_messages(n_labels, len(graph.size), lanes, largest, len(loss.width) > 0)
    for g in range(len(bounds) - 1):
        group = make_group(
            loss, picks, which[bounds[g] : bounds[g + 1]], sentences.ptr, sentences.weights, node, t0, n_labels
        )
        backward(group, n_labels, arcs, m, shares)
        for s in range(len(group.start)):
            out.values[group.number[s]] += log_partition(
                group, s, n_labels, arc_scores.shift, shift[group.start[s] - t0 :], m
            )
        if not values_only:
            forward(group, n_labels, arcs, m, own_counts, means, out.residuals, out.cor_residuals)
            for arc in range(len(counts)):
                counts[arc] += own_counts[arc]
        for s in range(len(group.start)):
            out.values[group.number[s]] -= take_truth(
                group.start[s], group.start[s] + group.length[s], n_labels, sentences.y, graph, arc_scores.log, local,
                group.weight[s], counts, out.residuals, out.cor_residuals,
            )  # fmt: skip
