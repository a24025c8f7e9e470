"""Forward-backward on the product of a chain and a loss automaton, over blocks of sentences, any order.

A state is (row, history): a row is a state of the loss automaton, a history the last labels. The automaton is
deterministic, so that a row and a label have one successor, and a step is, for each row, the step of the plain chain
followed by moving labels to the rows that they lead to. The cost is that of `kernels.chain` times the number of rows.

With `picks` the sum is that of loss(y) exp(score(y)) in place of exp(loss(y) + score(y)). A path then picks one of
the costs that it meets. After the pick the loss does not matter any more, so that one row, the last of each layer,
stands for all states there. All terms are positive, nothing cancels. This is the expectation semiring written as an
automaton.

Messages are normalised at each position. A message that underflows against the largest is without effect while
the potentials within the chain's memory and the largest loss together span less than MAX_RANGE nats: after the same
history two states of the automaton differ by at most the largest loss in what they can still earn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.blocks import PassOutput, Sentences
from vcrf.kernels.corrections import apply_corrections, pattern_code, power, take_off_truth, undo_corrections
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.potentials import node_scores, spans_and_flags
from vcrf.kernels.product_steps import (
    chain_backward,
    chain_forward,
    label_sums,
    move_backward,
    move_forward,
    pair_sums,
    square_pairs,
    sum_to_one,
)
from vcrf.kernels.scores import FactorTables, LocalFactors
from vcrf.types import Floats, Ints, UInts32


class LossArrays(NamedTuple):
    """The loss automata of all sentences, one after the other.

    first, width : (n_tokens,) first row and number of rows of the states before each token
    successor : (n_rows, L) row of the state after the token, counted inside its layer
    cost : (n_rows, L), final_cost : the costs themselves
    factor : (n_rows, L) exp(cost), or cost if costs are picked
    final_ptr, final : CSR over sentences, factor of each last state
    init : (n_sentences,) factor before the first token
    bound : (n_sentences,) how far two costs to the end can differ
    """

    first: Ints
    width: Ints
    successor: UInts32
    cost: Floats
    factor: Floats
    final_ptr: Ints
    final_cost: Floats
    final: Floats
    init: Floats
    bound: Floats


@kernel
def no_loss() -> LossArrays:
    """Arrays of no rows, in the place of a loss."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    return LossArrays(whole, whole, np.zeros(0, np.uint32), real, real, whole, real, real, real, real)


@inner_kernel
def _number_rows(loss: LossArrays, i: int, start: int, stop: int, extra: int, rows: Ints) -> int:
    """rows[t] = first row of the states before token t (at the end: the last states); returns how many there are."""
    n = 0
    for t in range(start, stop):
        rows[t - start] = n
        n += loss.width[t] + extra
    rows[stop - start] = n
    return n + int(loss.final_ptr[i + 1] - loss.final_ptr[i]) + extra


class RowMessages(NamedTuple):
    """Scratch of one sentence: messages before each token and their counterparts, row by row, and scales."""

    rows: Ints
    before: Floats
    back: Floats
    scale: Floats
    u: Floats
    column: Floats


@inner_kernel
def _forward(
    loss: LossArrays, i: int, start: int, stop: int, n_labels: int, node: Floats, at: int, tables: FactorTables,
    cor: LocalFactors, table: Floats, forward: Floats, backward: Floats, picks: bool, messages: RowMessages,
) -> float:  # fmt: skip
    """Normalised messages before each token and at the end; returns the log of what was taken out of them."""
    order, offsets, shifts, original = tables.order, tables.offsets, tables.shift, tables.exp
    ptr, sizes, codes, factors = cor.ptr, cor.size, cor.code, cor.factor
    widths, firsts, successor, factor = loss.width, loss.first, loss.successor, loss.factor
    rows, before, scale, u, column = messages.rows, messages.before, messages.scale, messages.u, messages.column
    n_states = power(n_labels, order - 1)
    extra = 1 if picks else 0
    before[: (widths[start] + extra) * n_states] = 0.0
    before[0] = 1.0 if picks else loss.init[i]
    if picks:
        before[widths[start] * n_states] = loss.init[i]
    log_z = 0.0
    for t in range(start, stop):
        depth = min(t - start + 1, order)
        base, width, here = offsets[depth], widths[t], rows[t - start]
        n_after = widths[t + 1] if t + 1 < stop else loss.final_ptr[i + 1] - loss.final_ptr[i]
        n_next = n_states if depth >= order else power(n_labels, depth)
        has_corrections = ptr[t + 1] > ptr[t]
        if has_corrections:
            apply_corrections(ptr, sizes, codes, factors, t, n_labels, depth, order, base, table, forward, backward)
        first, last = rows[t - start + 1] * n_states, (rows[t - start + 1] + n_after + extra) * n_states
        picked = first + n_after * n_states if picks else first
        before[first:last] = 0.0
        for row in range(width + extra):
            q, is_picked = firsts[t] + row, row == width
            chain_forward(before, (here + row) * n_states, n_labels, depth, order, base, table, forward, column, u)
            if not is_picked:
                move_forward(
                    u, node, at, successor, factor, q, n_labels, n_states, n_next, False, picks, before, picked
                )
            if picks:
                on = picked if is_picked else first
                move_forward(u, node, at, successor, factor, q, n_labels, n_states, n_next, True, is_picked, before, on)
        total = sum_to_one(before, first, last)
        if has_corrections:
            undo_corrections(ptr, sizes, codes, t, n_labels, depth, order, base, original, table, forward, backward)
        scale[t - start] = 1.0 / total
        log_z += np.log(total) + shifts[depth]
        at += n_labels
    return log_z


@inner_kernel
def _finish(
    loss: LossArrays, i: int, length: int, n_states: int, picks: bool, messages: RowMessages, beta: Floats
) -> float:
    """Write beta of the last states; returns the sum over paths of what the forward messages left."""
    rows, before = messages.rows, messages.before
    f0, n = loss.final_ptr[i], loss.final_ptr[i + 1] - loss.final_ptr[i]
    first = rows[length] * n_states
    total = 0.0
    for row in range(n + 1 if picks else n):
        x = loss.final[f0 + row] if row < n else 1.0
        for s in range(n_states):
            beta[row * n_states + s] = x
            total += x * before[first + row * n_states + s]
    return total


@inner_kernel
def _backward(
    sentences: Sentences, loss: LossArrays, i: int, n_labels: int, node: Floats, at: int, tables: FactorTables,
    cor: LocalFactors, table: Floats, forward: Floats, backward: Floats, picks: bool, messages: RowMessages,
    beta: Floats, sums: Floats, counts: Floats, arcs: Floats, wants_mean: bool, out: PassOutput,
) -> float:  # fmt: skip
    """Residuals, and posteriors of arcs: into `arcs` (a row a token of the sentence) if it has rows, else into sums.

    `beta` comes in with the last states, divided by the sum over all paths; `at` is the last token's place in `node`.
    Returns the posterior mean of the costs on the way if it is wanted, else 0.
    """
    mean = 0.0
    order, offsets, original = tables.order, tables.offsets, tables.exp
    ptr, sizes, codes, factors = cor.ptr, cor.size, cor.code, cor.factor
    widths, firsts, successor, factor = loss.width, loss.first, loss.successor, loss.factor
    rows, before, back, scale, column = messages.rows, messages.before, messages.back, messages.scale, messages.column
    residuals, y, weight = out.residuals, sentences.y, sentences.weights[i]
    start, stop = sentences.ptr[i], sentences.ptr[i + 1]
    n_states = power(n_labels, order - 1)
    extra = 1 if picks else 0
    for t in range(stop - 1, start - 1, -1):
        depth = min(t - start + 1, order)
        base, width, here, after = offsets[depth], widths[t], rows[t - start], rows[t - start + 1]
        n_after = widths[t + 1] if t + 1 < stop else loss.final_ptr[i + 1] - loss.final_ptr[i]
        n_next = n_states if depth >= order else power(n_labels, depth)
        label_sums(before, after * n_states, beta, n_after + extra, n_states, n_next, n_labels, column)
        for b in range(n_labels):
            residuals[t * n_labels + b] = weight * column[b]
        residuals[t * n_labels + y[t]] -= weight
        back[here * n_states : (here + width + extra) * n_states] = 0.0
        picked = n_after * n_states if picks else 0
        for row in range(width + extra):
            q, place, c, is_picked = firsts[t] + row, (here + row) * n_states, scale[t - start], row == width
            if not is_picked:
                move_backward(
                    beta, picked, node, at, successor, factor, q, n_labels, n_states, n_next, c, False, picks, back,
                    place,
                )  # fmt: skip
            if picks:
                on = picked if is_picked else 0
                move_backward(
                    beta, on, node, at, successor, factor, q, n_labels, n_states, n_next, c, True, is_picked, back,
                    place,
                )  # fmt: skip
        has_corrections = ptr[t + 1] > ptr[t]
        if has_corrections:
            apply_corrections(ptr, sizes, codes, factors, t, n_labels, depth, order, base, table, forward, backward)
        for row in range(width + extra):
            place = (here + row) * n_states
            chain_backward(back, place, n_labels, depth, order, base, table, backward, column, beta, row * n_states)
        if wants_mean:
            mean += _mean_cost(loss, t, n_labels, depth, order, base, table, forward, messages, here, n_states, n_next)
        n_hist = power(n_labels, depth - 1)
        half = n_states // n_labels if depth == order else n_hist
        if len(arcs) == 0 and order == 2 and depth == 2 and not has_corrections:
            square_pairs(before, back, here * n_states, width + extra, n_labels, weight, sums)
        else:
            arc = arcs[t - start] if len(arcs) else sums[n_states * n_labels :]
            arc[: n_hist * n_labels] = 0.0
            pair_sums(before, back, here * n_states, width + extra, n_states, n_hist, half, n_labels, 1.0, arc)
            for k in range(n_hist * n_labels):
                arc[k] *= table[base + k]
                counts[base + k] += weight * arc[k]
            _correction_residuals(ptr, sizes, codes, t, y, n_labels, depth, weight, arc, out.cor_residuals)
        if has_corrections:
            undo_corrections(ptr, sizes, codes, t, n_labels, depth, order, base, original, table, forward, backward)
        at -= n_labels
    return mean


@inner_kernel
def _correction_residuals(
    ptr: Ints, sizes: UInts32, codes: UInts32, t: int, y: UInts32, n_labels: int, depth: int, weight: float,
    arc: Floats, out: Floats,
) -> None:  # fmt: skip
    """Posterior minus truth of each corrected pattern at token t, from the posteriors of its arcs."""
    for j in range(ptr[t], ptr[t + 1]):
        k = sizes[j]
        out[j] = 0.0
        if k <= depth:
            total = 0.0
            for code in range(np.int64(codes[j]), power(n_labels, depth), power(n_labels, k)):
                total += arc[code]
            truth = pattern_code(y, t - k + 1, t, n_labels) == codes[j]
            out[j] = weight * (total - (1.0 if truth else 0.0))


@inner_kernel
def _mean_cost(
    loss: LossArrays, t: int, n_labels: int, depth: int, order: int, base: int, table: Floats, forward: Floats,
    messages: RowMessages, here: int, n_states: int, n_next: int,
) -> float:  # fmt: skip
    """Posterior mean of the cost paid at token t."""
    u, back, total = messages.u, messages.back, 0.0
    for row in range(loss.width[t]):
        place = (here + row) * n_states
        chain_forward(messages.before, place, n_labels, depth, order, base, table, forward, messages.column, u)
        first = (loss.first[t] + row) * n_labels
        for k in range(0, n_next, n_labels):
            for b in range(n_labels):
                total += loss.cost[first + b] * u[k + b] * back[place + k + b]
    return total


@inner_kernel
def _mean_at_end(
    loss: LossArrays, i: int, length: int, n_states: int, picks: bool, messages: RowMessages, beta: Floats
) -> float:
    """Posterior mean of what is paid before the first token and after the last."""
    mean, last_row = np.log(loss.init[i]) if not picks else 0.0, messages.rows[length] * n_states
    for q in range(loss.final_ptr[i + 1] - loss.final_ptr[i]):
        for s in range(q * n_states, (q + 1) * n_states):
            mean += loss.final_cost[loss.final_ptr[i] + q] * messages.before[last_row + s] * beta[s]
    return float(mean)


@inner_kernel
def _sentence(
    sentences: Sentences, loss: LossArrays, i: int, t0: int, n_labels: int, node: Floats, shift: Floats,
    tables: FactorTables, cor: LocalFactors, table: Floats, forward: Floats, backward: Floats, picks: bool,
    values_only: bool, n_rows: int, messages: RowMessages, beta: Floats, sums: Floats, counts: Floats, arcs: Floats,
    means: Floats, out: PassOutput,
) -> None:  # fmt: skip
    """What `product_pass` writes of one sentence, the truth's longer patterns apart; t0 is the block's first token."""
    start, stop = sentences.ptr[i], sentences.ptr[i + 1]
    n_states = power(n_labels, tables.order - 1)
    at = (start - t0) * n_labels
    log_z = _forward(loss, i, start, stop, n_labels, node, at, tables, cor, table, forward, backward, picks, messages)
    total = _finish(loss, i, stop - start, n_states, picks, messages, beta)
    for t in range(start, stop):
        log_z += shift[t - t0]
    out.values[i] += log_z + np.log(total)
    if values_only:
        return
    if total == 0.0:  # its weight is 0
        out.residuals[start * n_labels : stop * n_labels] = 0.0
        out.cor_residuals[cor.ptr[start] : cor.ptr[stop]] = 0.0
        return
    beta[: (n_rows - messages.rows[stop - start]) * n_states] /= total
    kept = arcs[start - t0 : stop - t0] if len(arcs) else arcs
    at_end = _mean_at_end(loss, i, stop - start, n_states, picks, messages, beta) if len(means) else 0.0
    on_way = _backward(
        sentences, loss, i, n_labels, node, (stop - 1 - t0) * n_labels, tables, cor, table, forward, backward,
        picks, messages, beta, sums, counts, kept, len(means) > 0, out,
    )  # fmt: skip
    if len(means):
        means[i] = at_end + on_way


@kernel
def product_pass(
    sentences: Sentences, loss: LossArrays, first: int, last: int, n_labels: int, rows: UInts32, scores: Floats,
    tables: FactorTables, cor: LocalFactors, picks: bool, values_only: bool, counts: Floats, arcs: Floats,
    means: Floats, out: PassOutput,
) -> None:  # fmt: skip
    """Forward-backward of sentences first .. last-1; order 2 or more.

    Writes out.values[i] = log of the sum over y of exp(loss + score), or of loss * exp(score) if `picks`, minus the
    score of the truth (-inf if no y has a loss to pick), out.residuals = weight * (marginal - truth), the corrections'
    residuals, and flags hard sentences, for which nothing else is written. Adds posterior - truth of the arcs to
    `counts`. `arcs` (tokens of the block, L**order) gets the posteriors of the arcs, or has no rows; `means`
    (n_sentences,) gets those of the loss, or is empty.
    """
    t0, t1 = sentences.ptr[first], sentences.ptr[last]
    order, extra = tables.order, 1 if picks else 0
    n_states = power(n_labels, order - 1)
    node, shift = np.empty((t1 - t0) * n_labels), np.empty(t1 - t0)
    node_scores(rows, scores, t0, t1, node)
    spans_and_flags(sentences, first, last, n_labels, node, shift, tables.order, tables.span, cor, False, out)
    bits = np.empty(len(node), np.uint64)
    exp_inplace(node, bits, bits.view(np.float64))
    table, forward, backward = tables.exp.copy(), tables.forward.copy(), tables.backward.copy()
    # The first half sums over tokens without corrections; the second is one token's.
    sums = np.zeros(2 * n_states * n_labels)
    beta, before, back = np.zeros(0), np.zeros(0), np.zeros(0)
    u, column = np.empty(n_states), np.empty(n_labels)
    for i in range(first, last):
        start, stop = sentences.ptr[i], sentences.ptr[i + 1]
        if stop == start or out.hard[i] == 1:
            if stop == start and picks:
                out.values[i] = -np.inf
            continue
        numbers, scale = np.empty(stop - start + 1, np.int64), np.empty(stop - start)
        n_rows = _number_rows(loss, i, start, stop, extra, numbers)
        if len(before) < n_rows * n_states:
            before, back, beta = np.zeros(n_rows * n_states), np.zeros(n_rows * n_states), np.zeros(n_rows * n_states)
        messages = RowMessages(numbers, before, back, scale, u, column)
        _sentence(
            sentences, loss, i, t0, n_labels, node, shift, tables, cor, table, forward, backward, picks, values_only,
            n_rows, messages, beta, sums, counts, arcs, means, out,
        )  # fmt: skip
    if values_only:
        counts = np.zeros_like(counts)
    take_off_truth(
        sentences.ptr, first, last, sentences.y, sentences.weights, out.hard, n_labels, order,
        tables.offsets, tables.log, cor.ptr, cor.size, cor.code, cor.score, counts, out.values,
    )  # fmt: skip
    base = tables.offsets[order]
    for arc in range(n_states * n_labels):
        counts[base + arc] += tables.exp[base + arc] * sums[arc]


@kernel
def arc_variances(
    sent_ptr: Ints, first: int, last: int, weights: Floats, order: int, arcs: Floats, out: Floats
) -> None:
    """out[arc] += sum over the block's tokens of full depth of weight * p (1 - p), p the posterior of the arc."""
    t0 = sent_ptr[first]
    for i in range(first, last):
        for t in range(sent_ptr[i] + order - 1, sent_ptr[i + 1]):
            for k in range(len(out)):
                p = arcs[t - t0, k]
                out[k] += weights[i] * p * (1.0 - p)
