"""Tagging on a pattern automaton: best label sequences and posteriors of many sentences in one call."""

from __future__ import annotations

import math

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.patterns import Graph, LocalArcs, backward_sentence, forward_sentence, longest_of
from vcrf.types import Bools, Floats, Ints, UInts32


@inner_kernel
def add_local(
    arcs: UInts32,
    local_score: Floats,
    begin: int,
    stop: int,
    rank: Ints,
    rank_end: Ints,
    by_rank: UInts32,
    score: Floats,
) -> None:
    """Add the patterns begin .. stop-1 to the arcs that end with them."""
    for j in range(begin, stop):
        for r in range(rank[arcs[j]], rank_end[arcs[j]]):
            score[by_rank[r]] += local_score[j]


@inner_kernel
def drop_local(
    arcs: UInts32, begin: int, stop: int, rank: Ints, rank_end: Ints, by_rank: UInts32, original: Floats, score: Floats
) -> None:
    """Restore what `add_local` touched."""
    for j in range(begin, stop):
        for r in range(rank[arcs[j]], rank_end[arcs[j]]):
            score[by_rank[r]] = original[by_rank[r]]


@inner_kernel
def best_before(
    n_labels: int, fail: Ints, arc_ptr: Ints, arc_label: UInts32, arc_state: UInts32, table: UInts32, score: Floats,
    after: Floats, at: int, values: Floats, best: Floats, to: int, choice: UInts32,
) -> None:  # fmt: skip
    """best[to + p] = max_b score(p, b) + after[at + target(p, b)]; `values`, `choice` are scratch.

    A context has the best label of the one that it backs off to, unless an own arc has that label: then its row is
    looked through.
    """
    for a in range(n_labels):
        top, pick = -np.inf, 0
        for b in range(n_labels):
            arc = a * n_labels + b
            value = score[arc] + after[at + arc_state[arc]]
            values[arc] = value
            if value > top:
                top, pick = value, b
        best[to + a] = top
        choice[a] = pick
    for p in range(n_labels, len(fail)):
        top, pick = best[to + fail[p]], int(choice[fail[p]])
        is_hidden = False
        for arc in range(arc_ptr[p], arc_ptr[p + 1]):
            values[arc] = score[arc] + after[at + arc_state[arc]]
            is_hidden = is_hidden or arc_label[arc] == choice[fail[p]]
        if is_hidden:
            top = -np.inf
            for b in range(n_labels):
                value = values[table[p, b]]
                if value > top:
                    top, pick = value, b
        else:
            for arc in range(arc_ptr[p], arc_ptr[p + 1]):
                if values[arc] > top:
                    top, pick = values[arc], int(arc_label[arc])
        best[to + p] = top
        choice[p] = pick


@kernel
def viterbi(sent_ptr: Ints, node: Floats, graph: Graph, original: Floats, local: LocalArcs, out: UInts32) -> None:
    """Best labels of every sentence; of equal sequences the first by labels.

    `original` are the scores of the arcs. Only the maxima are stored; the labels are found again from left to right.
    """
    (
        _, size, last, _, fail, _, arc_ptr, arc_label, arc_state, _, _, table, rank, rank_end, by_rank, _,
    ) = graph  # fmt: skip
    ptr, arcs, local_score, _ = local
    n_labels, n_states = node.shape[1], len(size)
    score, values = original.copy(), np.empty(len(original))
    choice = np.zeros(n_states, np.uint32)
    # after[u, q] = node score at u of the newest label of q + best score of what follows.
    after, best = np.empty(longest_of(sent_ptr, 0, len(sent_ptr) - 1) * n_states), np.empty(n_states)
    for i in range(len(sent_ptr) - 1):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        best[:] = 0.0
        for u in range(stop - start - 1, -1, -1):
            t, at = start + u, u * n_states
            for q in range(n_states):
                after[at + q] = node[t, last[q]] + best[q]
            if u > 0:
                add_local(arcs, local_score, ptr[t], ptr[t + 1], rank, rank_end, by_rank, score)
                best_before(
                    n_labels, fail, arc_ptr, arc_label, arc_state, table, score, after, at, values, best, 0, choice
                )
                drop_local(arcs, ptr[t], ptr[t + 1], rank, rank_end, by_rank, original, score)
        state = 0
        for u in range(stop - start):
            t, at = start + u, u * n_states
            if u > 0:
                add_local(arcs, local_score, ptr[t], ptr[t + 1], rank, rank_end, by_rank, score)
            pick, top, to = 0, -np.inf, 0
            for b in range(n_labels):
                arc = table[state, b]
                enters = int(arc_state[arc]) if u > 0 else b
                value = (score[arc] if u > 0 else 0.0) + after[at + enters]
                if value > top:
                    pick, top, to = b, value, enters
            if u > 0:
                drop_local(arcs, ptr[t], ptr[t + 1], rank, rank_end, by_rank, original, score)
            out[t] = pick
            state = to


@kernel
def label_marginals(
    sent_ptr: Ints, order: int, node: Floats, graph: Graph, factor: Floats, shift: float, local: LocalArcs,
    is_hard: Bools, log_z: Floats, out: Floats,
) -> None:  # fmt: skip
    """Posterior of every label at every token, and the log partition of every sentence that is not hard.

    `factor` is exp(score of the arc - shift). `out` (n_tokens, L) is not written if it has no rows.
    """
    n_labels, n_states = node.shape[1], len(graph.size)
    longest = longest_of(sent_ptr, 0, len(sent_ptr) - 1)
    weight, shifts = np.empty(longest * n_labels), np.empty(longest)
    bits = np.empty(len(weight), np.uint64)
    scales_view = bits.view(np.float64)
    back, scale, scratch = np.empty(longest * n_states), np.empty(longest), factor.copy()
    beta, alpha, new = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    values, taken, counts = np.empty(len(factor)), np.empty(len(factor)), np.empty(len(factor))
    empty, ignored = np.zeros((order + 1) * n_labels), np.empty(len(local.arc))
    flat = out.reshape(-1)
    for i in range(len(sent_ptr) - 1):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        if is_hard[i] or start == stop:
            continue
        n = (stop - start) * n_labels
        for u in range(stop - start):
            shifts[u] = np.max(node[start + u])
            for b in range(n_labels):
                weight[u * n_labels + b] = max(node[start + u, b] - shifts[u], -700.0)
        exp_inplace(weight[:n], bits[:n], scales_view[:n])
        partition = backward_sentence(
            start, stop, n_labels, graph, factor, scratch, local, weight, 0, back, scale, values, beta
        )
        log_z[i] = math.log(partition) + (stop - start - 1) * shift
        for u in range(stop - start):
            log_z[i] += math.log(scale[u]) + shifts[u]
        is_mild = True
        while len(flat) > 0 and not forward_sentence(
            start, stop, n_labels, graph, factor, scratch, local, weight, 0, back, scale, partition, 1.0, is_mild,
            empty, values, alpha, new, taken, counts, flat, ignored,
        ):  # fmt: skip
            is_mild = False
