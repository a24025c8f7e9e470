"""Stochastic dual ascent over sentences: each visit moves the posterior of one sentence towards the model's.

The dual of  sum_i v_i f_i(w) + Omega(w)  has a distribution alpha_i over the label sequences of each sentence. With

    z = sum_i v_i (features of the truth - features of alpha_i),    w_j = sum_k soft(z_j, l1_k) / l2_k,

k over the members of column j, a visit finds the model's posterior beta_i at w and steps by gamma (beta_i - alpha_i).
Of alpha_i its marginals are enough: single labels (tokens, L) and sums of pairs (sentences, L * L).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, outer_fast_kernel
from vcrf.kernels.blocks import Sentences
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.pairs import add_pairs, backward, forward, level, pad_table, posteriors
from vcrf.kernels.registers import DOUBLES, FLOATS
from vcrf.kernels.rows import MOST, add_times, level_row, padded, soften_row
from vcrf.types import Floats, Floats32, Ints, UInts8, UInts32

# Scores of pairs are exponents: beyond this the start is worth nothing, and must not overflow.
_LARGEST = 300.0
# Pairs are scored anew after so many visits: they move slowly, and there are L * L of them.
_PAIRS_KEPT = 16
# Share of its threshold from which on a sum counts as free to move, in the curvature.
_NEAR = np.float32(0.5)


class TokenColumns(NamedTuple):
    """The columns of each token: rows (keys) of a token, and columns and their values of a row.

    If all values are one it is there once.
    """

    of_token: UInts32
    ptr: Ints
    columns: UInts32
    values: Floats32


class Members(NamedTuple):
    """The group of each column and of the pairs (-1: none), and the members' l1 and 1 / l2: see `penalties.separable`.

    `labels` (n_columns, L) and `pair_labels` (L, L) mark the candidates; `labels` has no rows where all are.
    """

    group: Ints
    pairs: int
    ptr: Ints
    l1: Floats32
    inverse: Floats32
    labels: UInts8
    pair_labels: UInts8


class Dual(NamedTuple):
    """Sums z of columns (n, L) and of pairs (L, L), posteriors, and what the last visit left of each sentence.

    After the sums of the last column there is room for the numbers that fill a register up.
    """

    columns: Floats32
    pairs: Floats
    labels: Floats32
    pair_sums: Floats32
    left: Floats


@inner_kernel
def _wide(n_labels: int) -> int:
    """How far apart rows of whole registers are."""
    return -(-n_labels // FLOATS) * FLOATS


@inner_fast_kernel
def _score_tokens(
    t0: int, n: int, n_labels: int, of_token: UInts32, row_ptr: Ints, row_columns: UInts32, row_values: Floats32,
    z: Floats32, group: Ints, ptr: Ints, l1: Floats32, inverse: Floats32, score: Floats32, free: Floats32,
) -> None:  # fmt: skip
    """Add the columns' weights, times their values, to the scores; `free` is their squares' 1 / l2 where free.

    Scores and what is free have wide rows, of whole registers: what fills them up is nothing.
    """
    size, width, step_of_values = np.uint64(n_labels), np.uint64(_wide(n_labels)), 1 if len(row_values) > 1 else 0
    free[: np.uint64(n) * width] = np.float32(0.0)
    for t in range(n):
        at = np.uint64(t) * width
        for g in range(of_token.shape[1]):
            r = of_token[t0 + t, g]
            for e in range(row_ptr[r], row_ptr[r + 1]):
                c = row_columns[e]
                o, x = np.uint64(c) * size, row_values[e * step_of_values]
                for k in range(ptr[group[c]], ptr[group[c] + 1]):
                    limit, factor = l1[k], x * inverse[k]
                    soften_row(z, o, limit, factor, _NEAR * limit, x * factor, score, at, free, at, width)


@inner_fast_kernel
def _below_largest(score: Floats, n: int, n_labels: int, ends: Floats, out: Floats) -> None:
    """Out = score - the largest of its token, as far as exponents go; padded rows."""
    size, width = np.uint64(n_labels), np.uint64(padded(n_labels))
    for t in range(np.uint64(n)):
        if width <= np.uint64(MOST):
            level_row(score, t * size, -_LARGEST, ends, out, t * width, size, width)
        else:
            level(score, t * size, -_LARGEST, ends, out, size)


@inner_fast_kernel
def _score_pairs(
    z: Floats, l1: Floats32, inverse: Floats32, first: int, last: int, arcs: Floats, turned: Floats
) -> None:
    """Arcs[a, b] = exp(weight of the pair - the largest), and the same as [b, a]; members first .. last-1."""
    n_labels = z.shape[0]
    largest = 0.0
    for a in range(n_labels):
        for b in range(n_labels):
            weight = 0.0
            for k in range(first, last):
                weight += (max(z[a, b] - l1[k], 0.0) - max(-z[a, b] - l1[k], 0.0)) * inverse[k]
            arcs[a * n_labels + b] = weight
            largest = max(largest, weight)
    for a in range(n_labels):
        for b in range(n_labels):
            factor = math.exp(max(arcs[a * n_labels + b] - largest, -_LARGEST))
            arcs[a * n_labels + b] = turned[b * n_labels + a] = factor


@inner_fast_kernel
def _direction(first: int, n: int, n_labels: int, old: Floats32, free: Floats32, u: Floats) -> tuple[float, float]:
    """U <- the model's posterior less that of the dual.

    Returns J = sum u**2 / mean of both, about twice the distance in nats, and the curvature of the penalty along u.
    """
    left = curved = 0.0
    for t in range(n):
        here, wide = t * n_labels, t * _wide(n_labels)
        for b in range(n_labels):
            new, before = u[here + b], float(old[first + here + b])
            change = new - before
            left += change * change / max(0.5 * (new + before), 1e-9)
            curved += change * change * free[wide + b]
    for j in range(n * n_labels):
        u[j] -= float(old[first + j])
    return left, curved


@inner_fast_kernel
def _move(
    t0: int, n: int, n_labels: int, gamma: float, weight: float, of_token: UInts32, row_ptr: Ints,
    row_columns: UInts32, row_values: Floats32, is_candidate: UInts8, u: Floats, labels: Floats32, z: Floats32,
    step: Floats32,
) -> None:  # fmt: skip
    """Single labels: the dual posterior by gamma u, the sums by as much times the sentence's weight."""
    size, step_of_values, here = np.uint64(n_labels), 1 if len(row_values) > 1 else 0, t0 * n_labels
    for j in range(n * n_labels):
        labels[here + j] += np.float32(gamma * u[j])
        step[j] = np.float32(-weight * gamma * u[j])
    for t in range(n):
        at = np.uint64(t) * size
        for g in range(of_token.shape[1]):
            r = of_token[t0 + t, g]
            for e in range(row_ptr[r], row_ptr[r + 1]):
                o, x = np.uint64(row_columns[e]) * size, row_values[e * step_of_values]
                if len(is_candidate) == 0:
                    add_times(step, at, x, z, o, size)
                else:
                    # What is no candidate keeps a sum of zero, and has no weight.
                    for b in range(size):
                        z[o + b] += x * step[at + b] * np.float32(is_candidate[o + b])


@inner_fast_kernel
def _pair_direction(
    i: int,
    n_labels: int,
    arcs: Floats,
    old: Floats32,
    inverse: float,
    is_candidate: UInts8,
    sums: Floats,
    curved: float,
) -> float:
    """Sums <- the model's pairs of sentence i less those of the dual, in padded rows; adds their curvature."""
    width = padded(n_labels)
    for a in range(n_labels):
        for b in range(n_labels):
            j, o = a * n_labels + b, a * width + b
            sums[o] = sums[o] * arcs[j] - old[i, j]
    for a in range(n_labels):
        for b in range(n_labels):
            curved += inverse * sums[a * width + b] * sums[a * width + b] * is_candidate[a, b]
    return curved


@inner_fast_kernel
def _move_pairs(
    i: int, n_labels: int, gamma: float, weight: float, sums: Floats, is_candidate: UInts8, old: Floats32, z: Floats
) -> None:
    """Pairs: the dual posterior by gamma times the direction, the sums by as much times the sentence's weight."""
    width = padded(n_labels)
    for a in range(n_labels):
        for b in range(n_labels):
            change = gamma * sums[a * width + b]
            old[i, a * n_labels + b] += np.float32(change)
            z[a, b] -= weight * change * is_candidate[a, b]


@outer_fast_kernel
def visit(order: Ints, longest: int, sentences: Sentences, rows: TokenColumns, members: Members, dual: Dual) -> None:
    """Visit sentences in this order; `longest` is the number of tokens of the longest."""
    sent_ptr, y, weights, costs = sentences.ptr, sentences.y, sentences.weights, sentences.costs
    of_token, row_ptr, row_columns, row_values = rows
    group, pairs, ptr, l1, inverse, is_candidate, pair_labels = members
    n_labels = dual.columns.shape[1]
    z, labels, z_pairs, pair_sums = dual.columns.reshape(-1), dual.labels.reshape(-1), dual.pairs, dual.pair_sums
    candidates, width, n_pairs = is_candidate.reshape(-1), padded(n_labels), n_labels * n_labels
    size, n_wide = longest * width, n_labels * width
    wide = _wide(n_labels)
    raw, free = np.empty(longest * wide, np.float32), np.empty(longest * wide, np.float32)
    step = np.empty(size, np.float32)
    node, alpha, beta, back = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    u = np.empty(size + DOUBLES)
    bits, scale, ends = np.empty(size, np.uint64), np.empty(longest + 1), np.empty(2)
    arcs, turned, sums = np.empty(n_pairs), np.empty(n_pairs), np.empty(n_wide)
    wide_arcs, wide_turned = np.empty(n_wide), np.empty(n_wide)
    first, last = (ptr[pairs], ptr[pairs + 1]) if pairs >= 0 else (0, 0)
    pair_inverse = 0.0
    for k in range(first, last):
        pair_inverse += inverse[k]
    for place in range(len(order)):
        i = order[place]
        t0, n, weight = sent_ptr[i], sent_ptr[i + 1] - sent_ptr[i], weights[i]
        dual.left[i] = 0.0
        if place % _PAIRS_KEPT == 0:
            _score_pairs(z_pairs, l1, inverse, first, last, arcs, turned)
            pad_table(arcs, n_labels, wide_arcs)
            pad_table(turned, n_labels, wide_turned)
        if n == 0:
            continue
        raw[: n * wide] = np.float32(costs[i])
        for t in range(n):
            raw[t * wide + y[t0 + t]] = np.float32(0.0)
        _score_tokens(
            t0, n, n_labels, of_token, row_ptr, row_columns, row_values, z, group, ptr, l1, inverse, raw, free
        )  # fmt: skip
        for t in range(n):
            for b in range(n_labels):
                u[t * n_labels + b] = raw[t * wide + b]
        _below_largest(u, n, n_labels, ends, node)
        exp_inplace(node[: n * width], bits, bits.view(np.float64))
        if not forward(node, wide_arcs, n, n_labels, alpha, scale) > -np.inf:  # the numbers do not hold the messages
            continue
        backward(node, wide_turned, n, n_labels, scale, beta, back)
        posteriors(alpha, beta, n, n_labels, 1.0, u, 0)
        left, curved = _direction(t0 * n_labels, n, n_labels, labels, free, u)
        if pairs >= 0:
            sums[:] = 0.0
            add_pairs(alpha, back, n, n_labels, 1.0, sums)
            curved = _pair_direction(i, n_labels, arcs, pair_sums, pair_inverse, pair_labels, sums, curved)
        gamma = left / (left + weight * curved + 1e-12)
        dual.left[i] = left
        _move(
            t0, n, n_labels, gamma, weight, of_token, row_ptr, row_columns, row_values, candidates, u, labels, z, step
        )  # fmt: skip
        if pairs >= 0:
            _move_pairs(i, n_labels, gamma, weight, sums, pair_labels, pair_sums, z_pairs)
