"""Forward-backward over blocks of sentences in the scaled probability domain, any order.

Potentials at position t are node scores (one row of L labels a token), tables of plain tag patterns, and
sparse corrections (features of longer patterns that fire at this token only). Messages are normalised at each
position, so nothing overflows; sentences in which one could underflow are flagged: see `kernels.potentials`.

Arcs of depth d are patterns of d labels; the table of depth d starts at offsets[d]. At full depth (order p)
an arc is (a, h, b): oldest label, the p-2 labels between, newest label; H = L**(p-2) values of h.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.kernels.blocks import PassOutput, Sentences
from vcrf.kernels.corrections import (
    apply_corrections,
    multiply_pairs,
    pattern_code,
    power,
    restore_pairs,
    take_off_truth,
    undo_corrections,
)
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.potentials import node_scores, spans_and_flags
from vcrf.kernels.scores import FactorTables, LocalFactors
from vcrf.kernels.vectors import WIDEST, dots, products
from vcrf.types import Floats, Ints, UInts32


class TableCopies(NamedTuple):
    """A thread's own copies of the tables, into which the corrections of one token are multiplied."""

    table: Floats
    forward: Floats
    backward: Floats


@inner_fast_kernel
def pair_posterior(
    n_labels: int, table: Floats, alpha: Floats, before: int, back: Floats, here: int, weight: float, out: Floats
) -> None:
    """out[a, b] = weight * posterior of the labels a, b of a token and the one before it."""
    n, u, v, at = np.uint64(n_labels), np.uint64(before), np.uint64(here), np.uint64(0)
    for a in range(n):
        x = weight * alpha[u + a]
        for b in range(n):
            out[at + b] = x * table[at + b] * back[v + b]
        at += n


@inner_kernel
def _slot_residuals(
    first: int, last: int, codes: UInts32, truth: int, weight: float, posterior: Floats, base: int, counts: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """Posterior minus truth of the pairs in the slots first .. last-1; adds the posterior of all pairs to the counts.

    Such tokens are left out of the sums with plain tables: taking a correction off them would lose digits.
    """
    for k in range(len(posterior)):
        counts[base + k] += posterior[k]
    for j in range(np.uint64(first), np.uint64(last)):
        out[j] = posterior[codes[j]] - (weight if codes[j] == truth else 0.0)


@inner_kernel
def _correction_residuals(
    ptr: Ints, sizes: UInts32, codes: UInts32, t: int, y: UInts32, n_labels: int, depth: int, order: int,
    base: int, table: Floats, alpha: Floats, before: int, back: Floats, here: int, weight: float, out: Floats,
) -> None:  # fmt: skip
    """Posterior minus truth of each corrected pattern at token t."""
    half = power(n_labels, max(order - 2, 0))
    for j in range(ptr[t], ptr[t + 1]):
        k = sizes[j]
        out[j] = 0.0
        if k > depth:
            continue
        step = power(n_labels, k)
        total = 0.0
        for prefix in range(power(n_labels, depth - k)):
            arc = prefix * step + codes[j]
            s, b = arc // n_labels, arc % n_labels
            h = s % half if depth == order else s
            total += alpha[before + s] * table[base + arc] * back[here + h * n_labels + b]
        truth = pattern_code(y, t - k + 1, t, n_labels) == codes[j]
        out[j] = weight * (total - (1.0 if truth else 0.0))


@inner_fast_kernel
def _add_posterior(
    n_labels: int, half: int, base: int, table: Floats, alpha: Floats, before: int, back: Floats, here: int,
    weight: float, counts: Floats,
) -> None:  # fmt: skip
    """counts[s, b] += weight * posterior of each full-depth arc of one token, with the table as it is."""
    for a in range(n_labels):
        for h in range(half):
            s = a * half + h
            x = weight * alpha[before + s]
            for b in range(n_labels):
                at = base + s * n_labels + b
                counts[at] += x * table[at] * back[here + h * n_labels + b]


@inner_fast_kernel
def _normalise(x: Floats, first: int, size: int, node: Floats, node_first: int, n_labels: int) -> float:
    """x[h, b] *= node[b], then x /= sum(x); returns the sum."""
    n, end = np.uint64(n_labels), np.uint64(first + size)
    u = np.uint64(node_first)
    at = np.uint64(first)
    while at < end:
        for b in range(n):
            x[at + b] *= node[u + b]
        at += n
    total = 0.0
    for i in range(np.uint64(first), end):
        total += x[i]
    scale = 1.0 / total
    for i in range(np.uint64(first), end):
        x[i] *= scale
    return total


@inner_kernel
def _forward(
    sentences: Sentences, first: int, last: int, n_labels: int, node: Floats, shift: Floats, tables: FactorTables,
    cor: LocalFactors, work: TableCopies, alpha: Floats, scale: Floats, out: PassOutput,
) -> None:  # fmt: skip
    """Normalised messages alpha[t] after each token of the block; adds the log-partitions to out.values."""
    # Fields are taken out of the tuples here: doing so in the loop would cost a reference count each time.
    sent_ptr, order, offsets, shifts, original = (
        sentences.ptr,
        tables.order,
        tables.offsets,
        tables.shift,
        tables.exp,
    )
    ptr, sizes, codes, flips, factor = cor.ptr, cor.size, cor.code, cor.flip, cor.factor
    table, forward, backward, plain, flipped = work.table, work.forward, work.backward, tables.forward, tables.backward
    hard, values = out.hard, out.values
    is_small = n_labels <= WIDEST
    n_states, half = power(n_labels, max(order - 1, 1)), power(n_labels, max(order - 2, 0))
    column = np.empty(n_labels)
    t0 = sent_ptr[first]
    for i in range(first, last):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        n_hist, log_z = 1, 0.0
        for t in range(start, stop if hard[i] == 0 else start):
            depth = min(t - start + 1, order)
            base, new = offsets[depth], (t - t0) * n_states
            old = new - n_states
            has_corrections = ptr[t + 1] > ptr[t]
            is_pairs = has_corrections and order == 2 and depth == 2
            if is_pairs:
                multiply_pairs(ptr[t], ptr[t + 1], flips, factor, forward)
            elif has_corrections:
                apply_corrections(ptr, sizes, codes, factor, t, n_labels, depth, order, base, table, forward, backward)
            n_next = n_hist
            if depth < order or order == 1:
                n_next = n_hist * n_labels
                for s in range(n_hist):
                    x = alpha[old + s] if depth > 1 else 1.0
                    for b in range(n_labels):
                        alpha[new + s * n_labels + b] = x * table[base + s * n_labels + b]
            elif half == 1 and is_small and not has_corrections:
                products(flipped, 0, alpha, old, alpha, new, n_labels)
            elif half == 1:
                dots(forward, 0, alpha, old, alpha, new, n_labels)
            else:
                for h in range(half):
                    for a in range(n_labels):
                        column[a] = alpha[old + a * half + h]
                    dots(forward, h * n_labels * n_labels, column, 0, alpha, new + h * n_labels, n_labels)
            total = _normalise(alpha, new, n_next, node, (t - t0) * n_labels, n_labels)
            if is_pairs:
                restore_pairs(ptr[t], ptr[t + 1], flips, plain, forward)
            elif has_corrections:
                undo_corrections(ptr, sizes, codes, t, n_labels, depth, order, base, original, table, forward, backward)
            scale[t - t0] = 1.0 / total
            log_z += math.log(total) + shift[t - t0] + shifts[depth]
            n_hist = n_next if order > 1 else 1
        values[i] += log_z


@inner_fast_kernel
def _add_products(x: Floats, x_first: int, y: Floats, scale: float, out: Floats, out_first: int, n_labels: int) -> None:
    """out[b] += scale * x[b] * y[b]."""
    u, o = np.uint64(x_first), np.uint64(out_first)
    for b in range(np.uint64(n_labels)):
        out[o + b] += scale * x[u + b] * y[b]


@inner_fast_kernel
def _scaled_products(
    x: Floats, x_first: int, y: Floats, scale: float, out: Floats, out_first: int, n_labels: int
) -> None:
    """out[b] = scale * x[b] * y[b]."""
    u, o = np.uint64(x_first), np.uint64(out_first)
    for b in range(np.uint64(n_labels)):
        out[o + b] = scale * x[u + b] * y[b]


@inner_kernel
def _backward(
    sentences: Sentences, first: int, last: int, n_labels: int, node: Floats, tables: FactorTables, cor: LocalFactors,
    work: TableCopies, alpha: Floats, scale: Floats, back: Floats, counts: Floats, out: PassOutput,
) -> None:  # fmt: skip
    """Residuals of the block's tokens and corrections; back[t] = node * beta / normaliser of each token."""
    sent_ptr, y, weights = sentences.ptr, sentences.y, sentences.weights
    order, offsets, original = tables.order, tables.offsets, tables.exp
    ptr, sizes, codes, factor = cor.ptr, cor.size, cor.code, cor.factor
    table, forward, backward, plain, flipped = work.table, work.forward, work.backward, tables.backward, tables.forward
    is_small = n_labels <= WIDEST
    hard, residuals, cor_residuals = out.hard, out.residuals, out.cor_residuals
    posterior = np.empty(n_labels * n_labels if order == 2 else 0)
    n_states, half = power(n_labels, max(order - 1, 1)), power(n_labels, max(order - 2, 0))
    beta, result = np.ones(n_states), np.empty(n_labels)
    t0 = sent_ptr[first]
    for i in range(first, last):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        beta[:] = 1.0
        for t in range(stop - 1, start - 1 if hard[i] == 0 else stop - 1, -1):
            depth = min(t - start + 1, order)
            base, here, row = offsets[depth], (t - t0) * n_states, t * n_labels
            has_corrections = ptr[t + 1] > ptr[t]
            if order == 2 and (depth == 2 or not has_corrections):
                # The common case, kept free of everything that the general one needs.
                # Loops are written out: a call costs as much as one of them.
                n, u, r = np.uint64(n_labels), np.uint64(here), np.uint64(row)
                weight, factor_t = weights[i], scale[t - t0]
                for b in range(n):
                    residuals[r + b] = weight * alpha[u + b] * beta[b]
                for b in range(n):
                    back[u + b] = factor_t * node[u + b] * beta[b]
                residuals[r + np.uint64(y[t])] -= weight
                if has_corrections:
                    multiply_pairs(ptr[t], ptr[t + 1], codes, factor, backward)
                    pair_posterior(n_labels, backward, alpha, here - n_states, back, here, weight, posterior)
                    truth = y[t - 1] * n_labels + y[t]
                    _slot_residuals(ptr[t], ptr[t + 1], codes, truth, weight, posterior, base, counts, cor_residuals)
                if depth == 2 and is_small and not has_corrections:
                    products(flipped, 0, back, here, beta, 0, n_labels)
                elif depth == 2:
                    dots(backward, 0, back, here, beta, 0, n_labels)
                if has_corrections:
                    restore_pairs(ptr[t], ptr[t + 1], codes, plain, backward)
                continue
            _step_back(
                t, n_labels, order, depth, base, half, here, node, (t - t0) * n_labels, weights[i], scale[t - t0], y,
                ptr, sizes, codes, factor, original, table, forward, backward, alpha, back, beta, result, counts,
                residuals, cor_residuals,
            )  # fmt: skip


@inner_kernel
def _step_back(
    t: int, n_labels: int, order: int, depth: int, base: int, half: int, here: int, node: Floats, node_first: int,
    weight: float, scale: float, y: UInts32, ptr: Ints, sizes: UInts32, codes: UInts32, factor: Floats,
    original: Floats, table: Floats, forward: Floats, backward: Floats, alpha: Floats, back: Floats, beta: Floats,
    result: Floats, counts: Floats, residuals: Floats, cor_residuals: Floats,
) -> None:  # fmt: skip
    """The step of `_backward` at token t, any order: residuals and `back` there, and `beta` of the token before."""
    has_corrections = ptr[t + 1] > ptr[t]
    row, n_next = t * n_labels, power(n_labels, min(depth, max(order - 1, 1)))
    before = here - power(n_labels, max(order - 1, 1))
    if n_next == n_labels:
        _scaled_products(alpha, here, beta, weight, residuals, row, n_labels)
        _scaled_products(node, node_first, beta, scale, back, here, n_labels)
    else:
        for b in range(n_labels):
            residuals[row + b] = 0.0
        for k in range(0, n_next, n_labels):
            part = beta[k : k + n_labels]
            _add_products(alpha, here + k, part, weight, residuals, row, n_labels)
            _scaled_products(node, node_first, part, scale, back, here + k, n_labels)
    residuals[row + y[t]] -= weight
    if has_corrections:
        apply_corrections(ptr, sizes, codes, factor, t, n_labels, depth, order, base, table, forward, backward)
        _correction_residuals(
            ptr, sizes, codes, t, y, n_labels, depth, order, base, table, alpha, before, back, here, weight,
            cor_residuals,
        )  # fmt: skip
    if depth == order and depth > 1:
        for h in range(half):
            dots(backward, h * n_labels * n_labels, back, here + h * n_labels, result, 0, n_labels)
            for a in range(n_labels):
                beta[a * half + h] = result[a]
        if has_corrections:
            # These tokens are left out of the sums with plain tables: taking a correction off them would lose digits.
            _add_posterior(n_labels, half, base, table, alpha, before, back, here, weight, counts)
    else:
        for s in range(power(n_labels, depth - 1)):
            x = alpha[before + s] if depth > 1 else 1.0
            beta[s] = _shallow_step(n_labels, s, base, table, x * weight, back, here, counts)
    if has_corrections:
        undo_corrections(ptr, sizes, codes, t, n_labels, depth, order, base, original, table, forward, backward)


@inner_kernel
def _shallow_step(
    n_labels: int, s: int, base: int, table: Floats, weight: float, back: Floats, here: int, counts: Floats
) -> float:
    """Backward step from history s, and its arcs' posteriors, where fewer labels than the order are known."""
    total = 0.0
    for b in range(n_labels):
        k = s * n_labels + b
        z = table[base + k] * back[here + k]
        total += z
        counts[base + k] += weight * z
    return total


@inner_fast_kernel
def _outer_sums(alpha: Floats, back: Floats, weights: Floats, n_labels: int, half: int, sums: Floats) -> None:
    """sums[a, h, b] += sum_t weights[t] * alpha[t-1, a, h] * back[t, h, b], four tokens at a time."""
    n, k, one = np.uint64(n_labels), np.uint64(half), np.uint64(1)
    size = n * k
    last = np.uint64(len(weights) - 1)
    for t in range(one, last + one, np.uint64(4)):
        # Past the end the last token is repeated with weight 0.
        t1, t2, t3 = min(t + one, last), min(t + one + one, last), min(t + one + one + one, last)
        w0 = weights[t]
        w1 = weights[t1] if t1 > t else 0.0
        w2 = weights[t2] if t2 > t1 else 0.0
        w3 = weights[t3] if t3 > t2 else 0.0
        i0, i1, i2, i3 = t * size, t1 * size, t2 * size, t3 * size
        for s in range(size):
            h = s % k * n if k > one else np.uint64(0)
            x0, x1 = w0 * alpha[i0 - size + s], w1 * alpha[i1 - size + s]
            x2, x3 = w2 * alpha[i2 - size + s], w3 * alpha[i3 - size + s]
            o, g0, g1, g2, g3 = s * n, i0 + h, i1 + h, i2 + h, i3 + h
            for b in range(n):
                sums[o + b] += x0 * back[g0 + b] + x1 * back[g1 + b] + x2 * back[g2 + b] + x3 * back[g3 + b]


@kernel
def chain_pass(
    sentences: Sentences, first: int, last: int, n_labels: int, rows: UInts32, scores: Floats, tables: FactorTables,
    cor: LocalFactors, deep: Floats, clamp: bool, counts: Floats, alpha: Floats, back: Floats, out: PassOutput,
) -> None:  # fmt: skip
    """Forward-backward of sentences first .. last-1, over the allowed labels only if clamped.

    Writes out.values[i] = log sum exp - score of the truth, out.residuals[t] = weight * (marginal - truth), the
    corrections' residuals, and flags hard sentences, for which nothing else is written. Adds posterior - truth
    of the arcs to `counts` (offsets as in the tables).
    `alpha`, `back` (tokens of the block x L**max(p-1,1), flat): the message after each token, and
    node * beta / normaliser, so that the posterior of arc (s, b) at t is alpha[t-1] * table * back[t].
    `deep` : (tokens of the block,) the weight of tokens of full depth, 0 for others.
    """
    t0, t1 = sentences.ptr[first], sentences.ptr[last]
    node, shift, scale = np.empty((t1 - t0) * n_labels), np.empty(t1 - t0), np.empty(t1 - t0)
    node_scores(rows, scores, t0, t1, node)
    spans_and_flags(sentences, first, last, n_labels, node, shift, tables.order, tables.span, cor, clamp, out)
    bits = np.empty(len(node), np.uint64)
    exp_inplace(node, bits, bits.view(np.float64))
    if clamp:
        for t in range(t0, t1):
            for b in range(n_labels):
                node[(t - t0) * n_labels + b] *= sentences.allowed[t, b]
    work = TableCopies(tables.exp.copy(), tables.forward.copy(), tables.backward.copy())
    _forward(sentences, first, last, n_labels, node, shift, tables, cor, work, alpha, scale, out)
    take_off_truth(
        sentences.ptr, first, last, sentences.y, sentences.weights, out.hard, n_labels, tables.order,
        tables.offsets, tables.log, cor.ptr, cor.size, cor.code, cor.score, counts, out.values,
    )  # fmt: skip
    _backward(sentences, first, last, n_labels, node, tables, cor, work, alpha, scale, back, counts, out)
    if tables.order > 1:
        weights = deep.copy()
        for t in range(t0, t1):
            if cor.ptr[t + 1] > cor.ptr[t]:
                weights[t - t0] = 0.0
        n_states = power(n_labels, tables.order - 1)
        for i in range(first, last):
            if out.hard[i] == 1:
                a, z = sentences.ptr[i] - t0, sentences.ptr[i + 1] - t0
                weights[a:z] = 0.0
                alpha[a * n_states : z * n_states] = 0.0
                back[a * n_states : z * n_states] = 0.0
        sums = np.zeros(n_states * n_labels)
        _outer_sums(alpha, back, weights, n_labels, n_states // n_labels, sums)
        base = tables.offsets[tables.order]
        for arc in range(len(sums)):
            counts[base + arc] += tables.exp[base + arc] * sums[arc]


@kernel
def arc_variances(n_labels: int, tables: FactorTables, deep: Floats, alpha: Floats, back: Floats, out: Floats) -> None:
    """out[arc] = sum over the block's tokens of full depth of weight * p (1 - p), p the posterior of the arc.

    Corrections of single tokens are left out: these variances only scale steps.
    """
    if tables.order == 1:
        return
    n, one = np.uint64(n_labels), np.uint64(1)
    n_states = np.uint64(power(n_labels, tables.order - 1))
    half = n_states // n
    table = tables.exp[tables.offsets[tables.order] :]
    for t in range(one, np.uint64(len(deep))):
        if deep[t] == 0.0:
            continue
        before, here = (t - one) * n_states, t * n_states
        for s in range(n_states):
            x, following = alpha[before + s], here + s % half * n
            for b in range(n):
                # Not by sums of squares: squared messages leave the range of numbers before posteriors do.
                p = min(x * back[following + b] * table[s * n + b], 1.0)
                out[s * n + b] += deep[t] * p * (1.0 - p)
