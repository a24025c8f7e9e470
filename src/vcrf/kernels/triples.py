"""Forward-backward over pairs of labels with plain tag patterns of three labels, `LANES` sentences side by side.

A state is a pair of labels (a, b), at a * L + b. Most triples have no weight, and

    sum_a alpha[a, b] factor(a, b, c) = base sum_a alpha[a, b] + sum over a list of a of coefficient alpha[a, b]

with base 1 and factor - 1 for the triples with a weight; or, where a factor is so small that the difference would lose
digits, with base 0 and the factors of all a. The same holds from right to left. So a token costs its pairs of labels
and the triples that have a weight, not L**3.

    back[t, (b, c)] = node[t, c] pair(b, c) beta[t, (b, c)] / scale[t]
    entered[t, (b, c)] = sum_a alpha[t-1, (a, b)] factor(a, b, c),    alpha = entered node pair / scale

The posterior of a pair is entered * back, that of a triple alpha[t-1] factor back.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.blocks import PassOutput, Sentences
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.pattern_groups import by_length
from vcrf.kernels.patterns import longest_of
from vcrf.kernels.potentials import node_scores, spans_and_flags
from vcrf.kernels.scores import LocalFactors
from vcrf.kernels.triple_steps import LANES, left_state, outer_row, right_state
from vcrf.types import Floats, Ints, UInts32


class Lists(NamedTuple):
    """Of each state its base, and the states that its sum reads besides, with their coefficients: CSR."""

    base: Floats
    ptr: Ints
    source: UInts32
    coefficient: Floats


class Triples(NamedTuple):
    """Scores of pairs, log and exp(log - shift), (L*L,); what enters each state and what leaves it.

    `log` and `factor` are of the entries of `entering`; factor = exp(log).
    """

    pair_log: Floats
    pair: Floats
    shift: float
    entering: Lists
    leaving: Lists
    log: Floats
    factor: Floats


class Seen(NamedTuple):
    """What a scan keeps, with no rows if there is none.

    pair_squares (L*L,), counts and squares (L, L, L): sums of posteriors of pairs and triples, times weights, and of
    their squares; those of triples as [b, a, c] and without their factors. `rows` has the posteriors of pairs at token
    t in row `row_of[t]`, unless that is negative.
    """

    pair_squares: Floats
    counts: Floats
    squares: Floats
    row_of: Ints
    rows: Floats


@inner_kernel
def _spread(n_labels: int, node: Floats, first_node: Ints, lengths: Ints, longest: int, out: Floats) -> None:
    """Node factors of each lane's sentence, zeros after its end and in lanes without one."""
    out[: longest * n_labels * LANES] = 0.0
    for lane in range(len(lengths)):
        at = first_node[lane]
        for x in range(lengths[lane] * n_labels):
            out[x * LANES + lane] = node[at + x]


@inner_kernel
def _divide_nodes(n_labels: int, u: int, totals: Floats, nodes: Floats, scale: Floats) -> None:
    """scale[u] = sum of the totals, 1 where that is 0; the nodes of token u are divided by it."""
    for lane in range(LANES):
        total = 0.0
        for b in range(n_labels):
            total += totals[b * LANES + lane]
        scale[u * LANES + lane] = total if total > 0.0 else 1.0
    for lane in range(LANES):
        inverse = 1.0 / scale[u * LANES + lane]
        for b in range(n_labels):
            nodes[(u * n_labels + b) * LANES + lane] *= inverse


@inner_kernel
def _correct(
    t: int, lane: int, n_labels: int, cor: LocalFactors, first: int, x: Floats, totals: Floats, by_oldest: bool
) -> None:
    """Multiply with the corrections of token t, and sum the lane's totals anew: by the pairs' oldest label or newest.

    Rows of x begin at `first`.
    """
    if cor.ptr[t] == cor.ptr[t + 1]:
        return
    for j in range(cor.ptr[t], cor.ptr[t + 1]):
        x[(first + np.int64(cor.code[j])) * LANES + lane] *= cor.factor[j]
    for a in range(n_labels):
        total = 0.0
        for b in range(n_labels):
            s = a * n_labels + b if by_oldest else b * n_labels + a
            total += x[(first + s) * LANES + lane]
        totals[a * LANES + lane] = total


@inner_kernel
def _backward(
    starts: Ints, lengths: Ints, longest: int, n_labels: int, triples: Triples, cor: LocalFactors, nodes: Floats,
    back: Floats, scale: Floats, totals: Floats, new_totals: Floats, end: Floats,
) -> None:  # fmt: skip
    """Write back[u] and scale[u], and divide the nodes; `totals` are those of token 0 at the end: beta there."""
    base, ptr, source, coefficient = triples.leaving
    pair, n, one = triples.pair, np.uint64(n_labels), np.uint64(1)
    n_states, rows = n * n, n * np.uint64(LANES)
    totals[:rows] = 0.0
    for u in range(longest - 1, 0, -1):
        _divide_nodes(n_labels, u, totals, nodes, scale)
        end[:] = 0.0
        for lane in range(len(lengths)):
            end[lane] = 1.0 if u == lengths[lane] - 1 else 0.0
        new_totals[:rows] = 0.0
        after = back[np.uint64(u + 1) * n_states * np.uint64(LANES) :]
        here, label = np.uint64(u) * n_states, np.uint64(u) * n
        # The oldest label changes fastest: a sum that is stored and read again at once would have to be waited for.
        for b in range(n):
            for a in range(n):
                s = a * n + b
                first, last = np.uint64(ptr[s]), np.uint64(ptr[s + one])
                if u == longest - 1:
                    last = first
                left_state(
                    coefficient, source, first, last, after, base[s], totals, b, end, pair[s], nodes, label + b,
                    here + s, back, new_totals, a,
                )  # fmt: skip
        totals[:rows] = new_totals[:rows]
        for lane in range(len(lengths)):
            if u < lengths[lane]:
                _correct(starts[lane] + u, lane, n_labels, cor, int(here), back, totals, True)
    for lane in range(len(lengths)):
        if lengths[lane] == 1:
            for b in range(n_labels):
                totals[b * LANES + lane] = 1.0


@inner_kernel
def _begin(
    group: Ints, starts: Ints, lengths: Ints, t0: int, n_labels: int, table_shift: float, cor: LocalFactors,
    weights: Floats, shift: Floats, scale: Floats, nodes: Floats, totals: Floats, inverse_weights: Floats,
    out: PassOutput,
) -> None:  # fmt: skip
    """The lanes' log-partitions, and from beta of token 0, in `totals`, its posteriors and alpha, in its place."""
    inverse_weights[:] = 0.0
    for lane in range(LANES):
        if lane >= len(group):
            for b in range(n_labels):
                totals[b * LANES + lane] = 0.0
            continue
        start, weight, total = starts[lane], weights[group[lane]], 0.0
        inverse_weights[lane] = 1.0 / weight if weight > 0.0 else 0.0
        for b in range(n_labels):
            total += nodes[b * LANES + lane] * totals[b * LANES + lane]
        log_z = math.log(total) + (lengths[lane] - 1) * table_shift
        for u in range(lengths[lane]):
            log_z += math.log(scale[u * LANES + lane]) + shift[start - t0 + u]
        out.values[group[lane]] += log_z
        # No pair ends at the first token.
        out.cor_residuals[cor.ptr[start] : cor.ptr[start + 1]] = 0.0
        for b in range(n_labels):
            mass = weight / total * nodes[b * LANES + lane]
            out.residuals[start * n_labels + b] = mass * totals[b * LANES + lane]
            totals[b * LANES + lane] = mass


@inner_kernel
def _write_labels(u: int, starts: Ints, lengths: Ints, n_labels: int, of_labels: Floats, residuals: Floats) -> None:
    for lane in range(len(lengths)):
        if u < lengths[lane]:
            for b in range(n_labels):
                residuals[(starts[lane] + u) * n_labels + b] = of_labels[b * LANES + lane]


@inner_kernel
def _forward(
    starts: Ints, lengths: Ints, longest: int, n_labels: int, triples: Triples, cor: LocalFactors, nodes: Floats,
    back: Floats, totals: Floats, new_totals: Floats, alpha: Floats, depth: int, posterior: Floats, of_labels: Floats,
    of_states: Floats, counts: Floats, inverse_weights: Floats, seen: Seen, out: PassOutput,
) -> None:  # fmt: skip
    """Posteriors; `totals` are alpha of token 0. Those of pairs and triples are added up by lane.

    `alpha` has room for `depth` tokens, 2 or all.
    """
    base, ptr, source, coefficient = triples.entering
    pair, n, one = triples.pair, np.uint64(n_labels), np.uint64(1)
    n_states, rows = n * n, n * np.uint64(LANES)
    for u in range(1, longest):
        here, label = np.uint64(u) * n_states, np.uint64(u) * n
        size = n_labels * n_labels * LANES
        before, new = alpha[(u - 1) % depth * size :], alpha[u % depth * size :]
        new_totals[:rows] = 0.0
        of_labels[:rows] = 0.0
        for b in range(n):
            for c in range(n):
                s = b * n + c
                first, last, factor = np.uint64(ptr[s]), np.uint64(ptr[s + one]), base[s]
                if u == 1:
                    last, factor = first, 1.0
                right_state(
                    coefficient, source, first, last, before, factor, totals, b, back, here + s, counts, s, of_states,
                    posterior, c, of_labels, pair[s], nodes, label + c, new, new_totals,
                )  # fmt: skip
        totals[:rows] = new_totals[:rows]
        for lane in range(len(lengths)):
            if u < lengths[lane]:
                t = starts[lane] + u
                for j in range(cor.ptr[t], cor.ptr[t + 1]):
                    out.cor_residuals[j] = posterior[np.int64(cor.code[j]) * LANES + lane]
                _correct(t, lane, n_labels, cor, 0, new, totals, False)
        _write_labels(u, starts, lengths, n_labels, of_labels, out.residuals)
        if depth > 2:
            _see_pairs(u, starts, lengths, n_labels, posterior, inverse_weights, seen)


@inner_kernel
def _see_pairs(
    u: int, starts: Ints, lengths: Ints, n_labels: int, posterior: Floats, inverse_weights: Floats, seen: Seen
) -> None:
    """Squares of the posteriors of pairs, and the rows of the tokens that have one."""
    for s in range(n_labels * n_labels):
        for lane in range(LANES):
            p = posterior[s * LANES + lane]
            seen.pair_squares[s] += p * p * inverse_weights[lane]
    for lane in range(len(lengths)):
        row = seen.row_of[starts[lane] + u] if u < lengths[lane] else -1
        if row >= 0:
            for s in range(n_labels * n_labels):
                seen.rows[row, s] = posterior[s * LANES + lane]


@inner_kernel
def _see_triples(
    longest: int, n_labels: int, alpha: Floats, back: Floats, inverse_weights: Floats, counts: Floats, squares: Floats,
    seen: Seen,
) -> None:  # fmt: skip
    """Add up all triples; one label in the middle at a time, so that sums by lane stay in the nearest cache."""
    n, n_states = np.uint64(n_labels), np.uint64(n_labels * n_labels)
    for b in range(n):
        counts[:], squares[:] = 0.0, 0.0
        for u in range(2, longest):
            before, here = np.uint64(u - 1) * n_states + b, np.uint64(u) * n_states + b * n
            for a in range(n):
                outer_row(alpha, before + a * n, back, here, n, inverse_weights, counts, squares, a * n)
        for x in range(n_labels * n_labels):
            for lane in range(LANES):
                seen.counts[b, x // n_labels, x % n_labels] += counts[x * LANES + lane]
                seen.squares[b, x // n_labels, x % n_labels] += squares[x * LANES + lane]


@inner_kernel
def _take_truth(
    start: int, stop: int, n_labels: int, y: UInts32, triples: Triples, cor: LocalFactors, weight: float,
    values_only: bool, pair_counts: Floats, counts: Floats, out: PassOutput,
) -> float:  # fmt: skip
    """The true labels' score of pairs, triples and corrections; takes them off residuals and counts."""
    score = 0.0
    for t in range(start, stop):
        if not values_only:
            out.residuals[t * n_labels + y[t]] -= weight
        if t == start:
            continue
        s = np.int64(y[t - 1]) * n_labels + np.int64(y[t])
        score += triples.pair_log[s]
        if not values_only:
            pair_counts[s] -= weight
        for j in range(cor.ptr[t], cor.ptr[t + 1]):
            if np.int64(cor.code[j]) == s:
                score += cor.score[j]
                if not values_only:
                    out.cor_residuals[j] -= weight
        if t == start + 1:
            continue
        before = np.int64(y[t - 2]) * n_labels + np.int64(y[t - 1])
        for e in range(triples.entering.ptr[s], triples.entering.ptr[s + 1]):
            if triples.entering.source[e] == before:
                score += triples.log[e]
                if not values_only:
                    counts[e] -= weight
    return score


@kernel
def triple_pass(
    sentences: Sentences, first: int, last: int, n_labels: int, rows: UInts32, scores: Floats, span: float,
    triples: Triples, cor: LocalFactors, values_only: bool, seen: Seen, pair_counts: Floats, counts: Floats,
    out: PassOutput,
) -> None:  # fmt: skip
    """Forward-backward of sentences first .. last-1: what `pairs.pair_pass` writes, for states of two labels.

    `span` is by how much the scores of plain patterns differ. Adds posterior - truth of pairs (L*L) and of the entries
    of `triples.entering` to the counts. Corrections are of pairs.
    """
    ptr, t0, n_states = sentences.ptr, sentences.ptr[first], n_labels * n_labels
    node, shift = np.empty((ptr[last] - t0) * n_labels), np.empty(ptr[last] - t0)
    node_scores(rows, scores, t0, ptr[last], node)
    spans_and_flags(sentences, first, last, n_labels, node, shift, 3, span, cor, False, out)
    bits = np.empty(len(node), np.uint64)
    exp_inplace(node, bits, bits.view(np.float64))
    which, longest = by_length(ptr, first, last, out.hard), longest_of(ptr, first, last)
    nodes, scale = np.empty(longest * n_labels * LANES), np.empty(longest * LANES)
    back = np.empty((longest + 1) * n_states * LANES)
    is_scan = len(seen.pair_squares) > 0
    depth = max(longest, 3) if is_scan else 2
    alpha, posterior = np.empty(depth * n_states * LANES), np.empty(n_states * LANES)
    scratch = n_states * LANES if is_scan else 0
    own_counts, own_squares, inverse_weights = np.empty(scratch), np.empty(scratch), np.zeros(LANES)
    totals, new_totals, of_labels = np.empty(n_labels * LANES), np.empty(n_labels * LANES), np.empty(n_labels * LANES)
    end, of_states, of_entries = np.zeros(LANES), np.zeros(n_states * LANES), np.zeros(len(triples.log) * LANES)
    for begin in range(0, len(which), LANES):
        group = which[begin : begin + LANES]
        starts = ptr[group]
        lengths = ptr[group + 1] - starts
        n_tokens = lengths.max()
        _spread(n_labels, node, (starts - t0) * n_labels, lengths, n_tokens, nodes)
        _backward(
            starts, lengths, n_tokens, n_labels, triples, cor, nodes, back, scale, totals, new_totals, end
        )  # fmt: skip
        scale[:LANES] = 1.0
        _begin(
            group, starts, lengths, t0, n_labels, triples.shift, cor, sentences.weights, shift, scale, nodes, totals,
            inverse_weights, out,
        )  # fmt: skip
        if not values_only:
            _forward(
                starts, lengths, n_tokens, n_labels, triples, cor, nodes, back, totals, new_totals, alpha, depth,
                posterior, of_labels, of_states, of_entries, inverse_weights, seen, out,
            )  # fmt: skip
            if is_scan:
                _see_triples(n_tokens, n_labels, alpha, back, inverse_weights, own_counts, own_squares, seen)
        for lane in range(len(group)):
            i = group[lane]
            out.values[i] -= _take_truth(
                ptr[i], ptr[i + 1], n_labels, sentences.y, triples, cor, sentences.weights[i], values_only,
                pair_counts, counts, out,
            )  # fmt: skip
    for s in range(n_states):
        for lane in range(LANES):
            pair_counts[s] += of_states[s * LANES + lane]
    for e in range(len(counts)):
        for lane in range(LANES):
            counts[e] += triples.factor[e] * of_entries[e * LANES + lane]
