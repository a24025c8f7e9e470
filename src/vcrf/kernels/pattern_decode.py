"""Tagging on a pattern automaton: best label sequences and posteriors of many sentences in one call."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.pattern_groups import by_length, group_bounds, make_group
from vcrf.kernels.pattern_sweeps import backward, forward, log_partition, make_messages, weighted
from vcrf.kernels.patterns import PatternArrays, longest_of
from vcrf.kernels.product import no_loss
from vcrf.kernels.scores import LocalArcs
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
def viterbi(
    sent_ptr: Ints, node: Floats, graph: PatternArrays, original: Floats, local: LocalArcs, out: UInts32
) -> None:
    """Best labels of every sentence; of equal sequences the first by labels.

    `original` are the scores of the arcs. Only the maxima are stored; the labels are found again from left to right.
    """
    (
        _, size, last, _, fail, _, arc_ptr, arc_label, arc_state, _, table, rank, rank_end, by_rank, _,
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


@inner_kernel
def _node_factors(sent_ptr: Ints, node: Floats, is_hard: Bools) -> tuple[Floats, Floats]:
    """exp(node score - shift of the token), flat, and the shifts, of the sentences that are not hard."""
    n_tokens, n_labels = node.shape
    weight, shift = np.zeros(n_tokens * n_labels), np.zeros(n_tokens)
    for i in range(len(sent_ptr) - 1):
        for t in range(sent_ptr[i], sent_ptr[i] if is_hard[i] else sent_ptr[i + 1]):
            shift[t] = np.max(node[t])
            for b in range(n_labels):
                weight[t * n_labels + b] = max(node[t, b] - shift[t], -700.0)
    bits = np.empty(len(weight), np.uint64)
    exp_inplace(weight, bits, bits.view(np.float64))
    return weight, shift


@kernel
def label_marginals(
    sent_ptr: Ints, node: Floats, graph: PatternArrays, factor: Floats, arc_shift: float, local: LocalArcs,
    is_hard: Bools, log_z: Floats, out: Floats,
) -> None:  # fmt: skip
    """Posterior of every label at every token, and the log partition of every sentence that is not hard.

    `factor` is exp(score of the arc - arc_shift). `out` (n_tokens, L) is not written if it has no rows.
    """
    n_labels, loss, none = node.shape[1], no_loss(), np.zeros(0)
    weight, shift = _node_factors(sent_ptr, node, is_hard)
    which, ones = by_length(sent_ptr, 0, len(sent_ptr) - 1, is_hard), np.ones(len(sent_ptr) - 1)
    bounds, lanes, largest = group_bounds(loss, False, which, sent_ptr)
    arcs, flat = weighted(n_labels, graph, factor, local), out.reshape(-1)
    m = make_messages(n_labels, len(graph.size), lanes, largest, False)
    counts, ignored = np.empty(len(factor)), np.empty(len(local.arc))
    for g in range(len(bounds) - 1):
        group = make_group(loss, False, which[bounds[g] : bounds[g + 1]], sent_ptr, ones, weight, 0, n_labels)
        backward(group, n_labels, arcs, m, none)
        for s in range(len(group.start)):
            log_z[group.number[s]] = log_partition(group, s, n_labels, arc_shift, shift[group.start[s] :], m)
        if len(flat) > 0:
            forward(group, n_labels, arcs, m, counts, none, flat, ignored)
