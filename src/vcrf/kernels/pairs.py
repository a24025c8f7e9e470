"""Forward-backward over sentences whose only longer patterns are plain pairs of labels: the default.

One sentence after another, so that its messages stay in the nearest cache. Scores, scaling and flags are those of
`kernels.chain`, which does everything else. The table of pairs is (L, L), exp(score - shift); of a sentence with
node[t, b] = exp(score of label b at t - shift_t), messages are normalised at each token:

    alpha[t, b] = node[t, b] sum_a alpha[t-1, a] table[a, b] / total_t
    back[t, b]  = node[t, b] beta[t, b] / total_t,    beta[t-1, a] = sum_b table[a, b] back[t, b]

so that alpha[t, b] beta[t, b] is the posterior of a label, and alpha[t-1, a] table[a, b] back[t, b] that of a pair.
"""

from __future__ import annotations

import math

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, outer_fast_kernel
from vcrf.kernels.blocks import PassOutput, Sentences, Tables
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.potentials import MAX_RANGE, node_scores
from vcrf.kernels.vectors import WIDEST, WIDTH, products
from vcrf.types import Floats, UInts32

# Totals are multiplied while their product is between this and its inverse: logarithms take time.
_SMALL = 1e-100


@inner_kernel
def _row_times(x: Floats, u: np.uint64, matrix: Floats, out: Floats, o: np.uint64, size: int) -> None:
    """out[b] = sum_a x[a] * matrix[a, b]; x and out begin inside flat arrays."""
    if size >= WIDTH and size <= WIDEST:
        products(matrix, 0, x, u, out, o, size)  # type: ignore[arg-type] # unsigned ones do
        return
    n = np.uint64(size)
    for b in range(n):
        out[o + b] = 0.0
    for a in range(n):
        factor, m = x[u + a], a * n
        for b in range(n):
            out[o + b] += factor * matrix[m + b]


@inner_kernel
def _shifted(node: Floats, y: UInts32, t0: int, length: int, n_labels: int, cost: float, sums: Floats) -> float:
    """Add the loss and take each row's maximum off; sums += (scores of the truth, maxima). Returns the largest span."""
    n, widest, truth, shift = np.uint64(n_labels), 0.0, 0.0, 0.0
    for t in range(np.uint64(length)):
        at = t * n
        gold = at + np.uint64(y[np.uint64(t0) + t])
        truth += node[gold]
        node[gold] -= cost
        high, low = node[at], node[at]
        for b in range(n):
            z = node[at + b]
            high = z if z > high else high
            low = z if z < low else low
        shift += high + cost
        # A wider sentence is done elsewhere; the clip only keeps exp_inplace in its domain.
        for b in range(n):
            z = node[at + b] - high
            node[at + b] = z if z > -700.0 else -700.0
        widest = high - low if high - low > widest else widest
        if not high - low < MAX_RANGE:
            widest = np.inf
    sums[0] += truth
    sums[1] += shift
    return widest


@inner_kernel
def forward(node: Floats, table: Floats, length: int, n_labels: int, alpha: Floats, scale: Floats) -> float:
    """Messages from the left; the log of the product of their totals."""
    n, log_z, product = np.uint64(n_labels), 0.0, 1.0
    for t in range(np.uint64(length)):
        at = t * n
        if t > np.uint64(0):
            _row_times(alpha, at - n, table, alpha, at, n_labels)
        else:
            for b in range(n):
                alpha[b] = 1.0
        total = 0.0
        for b in range(n):
            z = alpha[at + b] * node[at + b]
            alpha[at + b] = z
            total += z
        scale[t] = 1.0 / total
        for b in range(n):
            alpha[at + b] *= scale[t]
        if total < _SMALL:
            log_z += math.log(total)
        else:
            product *= total
            if product < _SMALL or product > 1.0 / _SMALL:
                log_z += math.log(product)
                product = 1.0
    return log_z + math.log(product)


@inner_kernel
def backward(
    node: Floats, turned: Floats, length: int, n_labels: int, weight: float, alpha: Floats, scale: Floats,
    beta: Floats, back: Floats, residuals: Floats, first: int,
) -> None:  # fmt: skip
    """Posteriors of labels times the weight, and `back`; `turned` is the table as [b, a]."""
    n, r = np.uint64(n_labels), np.uint64(first)
    for b in range(n):
        beta[b] = 1.0
    for i in range(np.uint64(length)):
        t = np.uint64(length) - np.uint64(1) - i
        at, factor = t * n, scale[t]
        for b in range(n):
            residuals[r + at + b] = weight * alpha[at + b] * beta[b]
            back[at + b] = factor * node[at + b] * beta[b]
        if t > np.uint64(0):
            _row_times(back, at, turned, beta, np.uint64(0), n_labels)


@inner_fast_kernel
def add_pairs(alpha: Floats, back: Floats, length: int, n_labels: int, weight: float, sums: Floats) -> None:
    """sums[a, b] += weight * sum_t alpha[t-1, a] * back[t, b], four tokens at a time."""
    n, one = np.uint64(n_labels), np.uint64(1)
    last = np.uint64(length) - one
    for t in range(one, last + one, np.uint64(4)):
        # Past the end the last token is repeated with weight 0.
        t1, t2, t3 = min(t + one, last), min(t + one + one, last), min(t + one + one + one, last)
        w1 = weight if t1 > t else 0.0
        w2 = weight if t2 > t1 else 0.0
        w3 = weight if t3 > t2 else 0.0
        i0, i1, i2, i3 = t * n, t1 * n, t2 * n, t3 * n
        for a in range(n):
            x0, x1, x2, x3 = (
                weight * alpha[i0 - n + a],
                w1 * alpha[i1 - n + a],
                w2 * alpha[i2 - n + a],
                w3 * alpha[i3 - n + a],
            )
            o = a * n
            for b in range(n):
                sums[o + b] += x0 * back[i0 + b] + x1 * back[i1 + b] + x2 * back[i2 + b] + x3 * back[i3 + b]


@inner_kernel
def _add_variances(
    alpha: Floats, back: Floats, table: Floats, length: int, n_labels: int, weight: float, out: Floats
) -> None:
    """out[a, b] += weight * sum_t p (1 - p), p the posterior of the pair."""
    n = np.uint64(n_labels)
    for t in range(np.uint64(1), np.uint64(length)):
        at = t * n
        for a in range(n):
            x, o = alpha[at - n + a], a * n
            for b in range(n):
                p = min(x * back[at + b] * table[o + b], 1.0)
                out[o + b] += weight * p * (1.0 - p)


@outer_fast_kernel
def pair_pass(
    sentences: Sentences, first: int, last: int, n_labels: int, longest: int, rows: UInts32, scores: Floats,
    tables: Tables, values_only: bool, counts: Floats, variances: Floats, out: PassOutput,
) -> None:  # fmt: skip
    """Forward-backward of sentences first .. last-1, of at most `longest` tokens.

    Writes out.values[i] = log sum exp - score of the truth, out.residuals[t] = weight * (posterior - truth), and flags
    hard sentences, for which nothing else is written. Adds posterior - truth of the pairs to `counts` (offsets as in
    the tables), and the variances of pairs to `variances`, unless that is empty. With `values_only` that is all.
    """
    ptr, y, costs, weights = sentences.ptr, sentences.y, sentences.costs, sentences.weights
    log, table, turned, shift, span = tables.log, tables.exp[n_labels:], tables.forward, tables.shift[2], tables.span
    values, residuals, hard = out.values, out.residuals, out.hard
    size, n_pairs = longest * n_labels, n_labels * n_labels
    node, alpha, back, bits = np.empty(size), np.empty(size), np.empty(size), np.empty(size, np.uint64)
    power, scale, beta = bits.view(np.float64), np.empty(longest), np.empty(n_labels)
    sums, found = np.zeros(n_pairs), np.zeros(2)
    for i in range(first, last):
        t0, length = ptr[i], ptr[i + 1] - ptr[i]
        found[:] = 0.0
        node_scores(rows, scores, t0, t0 + length, node)
        hard[i] = 0 if _shifted(node, y, t0, length, n_labels, costs[i], found) + span < MAX_RANGE else 1
        values[i] = -found[0]
        if hard[i] == 1 or length == 0:
            continue
        exp_inplace(node[: length * n_labels], bits, power)
        values[i] += found[1] + (length - 1) * shift + forward(node, table, length, n_labels, alpha, scale)
        for t in range(t0 + 1, t0 + length):
            values[i] -= log[n_labels + y[t - 1] * n_labels + y[t]]
        if values_only:
            continue
        backward(node, turned, length, n_labels, weights[i], alpha, scale, beta, back, residuals, t0 * n_labels)
        add_pairs(alpha, back, length, n_labels, weights[i], sums)
        if len(variances):
            _add_variances(alpha, back, table, length, n_labels, weights[i], variances)
        for t in range(t0, t0 + length):
            residuals[t * n_labels + y[t]] -= weights[i]
            if t > t0:
                counts[n_labels + y[t - 1] * n_labels + y[t]] -= weights[i]
    for arc in range(n_pairs):
        counts[n_labels + arc] += table[arc] * sums[arc]
