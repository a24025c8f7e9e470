"""Forward-backward over sentences whose only longer patterns are plain pairs of labels: the default.

One sentence after another, so that its messages stay in the nearest cache. Scores and flags are those of
`kernels.chain`, which does everything else. The table of pairs is (L, L), exp(score - shift); of a sentence with
node[t, b] = exp(score of label b at t - shift_t),

    alpha[t, b] = s_t node[t, b] sum_a alpha[t-1, a] table[a, b]
    back[t, b]  = s_t node[t, b] beta[t, b],    beta[t-1, a] = sum_b table[a, b] back[t, b]

with a factor s_t, 1 unless messages have become small or large, and the last beta one over the sum of the last alpha,
so that alpha[t, b] beta[t, b] is the posterior of a label, and alpha[t-1, a] table[a, b] back[t, b] that of a pair.
"""

from __future__ import annotations

import math

import numpy as np

from vcrf.kernels._jit import inner_kernel, outer_fast_kernel
from vcrf.kernels.blocks import PassOutput, Sentences
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.potentials import MAX_RANGE, node_scores
from vcrf.kernels.registers import DOUBLES
from vcrf.kernels.rows import MOST, level_row, multiply_rows, padded, step_row
from vcrf.kernels.scores import FactorTables
from vcrf.kernels.vectors import add_combination, combine_rows
from vcrf.types import Floats, UInts32

# A wider sentence is done elsewhere; the clip only keeps exp_inplace in its domain.
_LEAST = -700.0


# Messages are normalised when their total leaves this range: most never are, and nobody waits for a division.
_SMALL, _LARGE = 1e-20, 1e20


@inner_kernel
def _shifted(
    raw: Floats, y: UInts32, t0: int, length: int, n_labels: int, cost: float, node: Floats, sums: Floats, ends: Floats
) -> float:
    """Node scores with the loss, less each row's maximum; sums += (scores of the truth, maxima); the largest span."""
    n, size, widest, truth, shift = np.uint64(n_labels), np.uint64(padded(n_labels)), 0.0, 0.0, 0.0
    for t in range(np.uint64(length)):
        at = t * n
        gold = at + np.uint64(y[np.uint64(t0) + t])
        truth += raw[gold]
        raw[gold] -= cost
        if size <= np.uint64(MOST):
            level_row(raw, at, _LEAST, ends, node, t * size, n, size)
        else:
            level(raw, at, _LEAST, ends, node, n)
        shift += ends[0] + cost
        span = ends[0] - ends[1]
        widest = span if span > widest else widest
        if not span < MAX_RANGE:
            widest = np.inf
    sums[0] += truth
    sums[1] += shift
    return widest


@inner_kernel
def level(raw: Floats, at: np.uint64, least: float, ends: Floats, node: Floats, n: np.uint64) -> None:
    """What `level_row` does, with more labels."""
    high, low = raw[at], raw[at]
    for b in range(n):
        z = raw[at + b]
        high = z if z > high else high
        low = z if z < low else low
    for b in range(n):
        z = raw[at + b] - high
        node[at + b] = z if z > least else least
    ends[0], ends[1] = high, low


@inner_kernel
def pad_table(table: Floats, n_labels: int, out: Floats) -> None:
    """The rows of a table (L, L), padded with zeros."""
    size = padded(n_labels)
    out[:] = 0.0
    for a in range(n_labels):
        for b in range(n_labels):
            out[a * size + b] = table[a * n_labels + b]


@inner_kernel
def forward(node: Floats, table: Floats, length: int, n_labels: int, alpha: Floats, scale: Floats) -> float:
    """Messages from the left; the log of the sum over all sequences. All rows are padded."""
    n, size, log_z, total, zero = np.uint64(n_labels), np.uint64(padded(n_labels)), 0.0, 0.0, np.uint64(0)
    for t in range(np.uint64(length)):
        at = t * size
        if t > np.uint64(0):
            if size <= np.uint64(MOST):
                total = step_row(table, zero, alpha, at - size, node, at, alpha, at, n, size)
            else:
                combine_rows(table, zero, alpha, at - size, alpha, at, n, size)
                total = 0.0
                for b in range(size):
                    alpha[at + b] *= node[at + b]
                    total += alpha[at + b]
        else:
            for b in range(size):
                alpha[b] = node[b] if b < n else 0.0
                total += alpha[b]
        scale[t] = 1.0
        if not (total > _SMALL and total < _LARGE):
            log_z += math.log(total)
            scale[t] = 1.0 / total
            for b in range(size):
                alpha[at + b] *= scale[t]
            total = 1.0
    scale[length] = 1.0 / total
    return log_z + math.log(total)


@inner_kernel
def backward(
    node: Floats, turned: Floats, length: int, n_labels: int, scale: Floats, beta: Floats, back: Floats
) -> None:
    """Messages from the right, and `back`; `turned` is the table as [b, a]."""
    n, size, zero = np.uint64(n_labels), np.uint64(padded(n_labels)), np.uint64(0)
    last = (np.uint64(length) - np.uint64(1)) * size
    for b in range(size):
        beta[last + b] = scale[length] if b < n else 0.0
    for i in range(np.uint64(length)):
        t = np.uint64(length) - np.uint64(1) - i
        at = t * size
        multiply_rows(node, at, beta, at, scale[t], back, at, size)
        if t > zero:
            combine_rows(turned, zero, back, at, beta, at - size, n, size)


@inner_kernel
def posteriors(alpha: Floats, beta: Floats, length: int, n_labels: int, weight: float, out: Floats, first: int) -> None:
    """out[t, b] = weight times the posterior of label b, rows of L numbers from `first` on."""
    n, size, o = np.uint64(n_labels), np.uint64(padded(n_labels)), np.uint64(first)
    for t in range(np.uint64(length)):
        multiply_rows(alpha, t * size, beta, t * size, weight, out, o + t * n, n)


@inner_kernel
def add_pairs(alpha: Floats, back: Floats, length: int, n_labels: int, weight: float, sums: Floats) -> None:
    """sums[a, b] += weight * sum_t alpha[t-1, a] * back[t, b]; all rows are padded."""
    n, size, n_terms = np.uint64(n_labels), np.uint64(padded(n_labels)), np.uint64(length - 1)
    for a in range(n):
        add_combination(back, size, alpha, a, size, n_terms, weight, sums, a * size, size)


@inner_kernel
def _add_variances(
    alpha: Floats, back: Floats, table: Floats, length: int, n_labels: int, weight: float, out: Floats
) -> None:
    """out[a, b] += weight * sum_t p (1 - p), p the posterior of the pair."""
    n, size = np.uint64(n_labels), np.uint64(padded(n_labels))
    for t in range(np.uint64(1), np.uint64(length)):
        at = t * size
        for a in range(n):
            x, o = alpha[at - size + a], a * n
            for b in range(n):
                p = min(x * back[at + b] * table[o + b], 1.0)
                out[o + b] += weight * p * (1.0 - p)


@outer_fast_kernel
def pair_pass(
    sentences: Sentences, first: int, last: int, n_labels: int, longest: int, rows: UInts32, scores: Floats,
    tables: FactorTables, values_only: bool, counts: Floats, variances: Floats, out: PassOutput,
) -> None:  # fmt: skip
    """Forward-backward of sentences first .. last-1, of at most `longest` tokens.

    Writes out.values[i] = log sum exp - score of the truth, out.residuals[t] = weight * (posterior - truth), and flags
    hard sentences, for which nothing else is written. Adds posterior - truth of the pairs to `counts` (offsets as in
    the tables), and the variances of pairs to `variances`, unless that is empty. With `values_only` that is all.
    """
    ptr, y, costs, weights = sentences.ptr, sentences.y, sentences.costs, sentences.weights
    log, table, shift, span = tables.log, tables.exp[n_labels:], tables.shift[2], tables.span
    values, residuals, hard, width = out.values, out.residuals, out.hard, padded(n_labels)
    size, raw = longest * width, np.empty(longest * n_labels + DOUBLES)
    node, alpha, beta, back = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    bits, scale, found, ends = np.empty(size, np.uint64), np.empty(longest + 1), np.zeros(2), np.empty(2)
    rows_of_table, turned = np.empty(n_labels * width), np.empty(n_labels * width)
    pad_table(table, n_labels, rows_of_table)
    pad_table(tables.forward, n_labels, turned)
    power, sums = bits.view(np.float64), np.zeros(n_labels * width)
    for i in range(first, last):
        t0, length = ptr[i], ptr[i + 1] - ptr[i]
        found[:] = 0.0
        node_scores(rows, scores, t0, t0 + length, raw)
        widest = _shifted(raw, y, t0, length, n_labels, costs[i], node, found, ends)
        hard[i] = 0 if widest + span < MAX_RANGE else 1
        values[i] = -found[0]
        if hard[i] == 1 or length == 0:
            continue
        exp_inplace(node[: length * width], bits, power)
        values[i] += found[1] + (length - 1) * shift + forward(node, rows_of_table, length, n_labels, alpha, scale)
        for t in range(t0 + 1, t0 + length):
            values[i] -= log[n_labels + y[t - 1] * n_labels + y[t]]
        if values_only:
            continue
        backward(node, turned, length, n_labels, scale, beta, back)
        posteriors(alpha, beta, length, n_labels, weights[i], residuals, t0 * n_labels)
        add_pairs(alpha, back, length, n_labels, weights[i], sums)
        if len(variances):
            _add_variances(alpha, back, table, length, n_labels, weights[i], variances)
        for t in range(t0, t0 + length):
            residuals[t * n_labels + y[t]] -= weights[i]
            if t > t0:
                counts[n_labels + y[t - 1] * n_labels + y[t]] -= weights[i]
    for a in range(n_labels):
        for b in range(n_labels):
            arc = a * n_labels + b
            counts[n_labels + arc] += table[arc] * sums[a * width + b]
