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

from vcrf.kernels._jit import fast_kernel, kernel
from vcrf.kernels.blocks import Sentences
from vcrf.kernels.exponential import exp_inplace
from vcrf.types import Floats, Floats32, Ints, UInts8, UInts32

# Scores of pairs are exponents: beyond this the start is worth nothing, and must not overflow.
_LARGEST = 300.0
# Pairs are scored anew after so many visits: they move slowly, and there are L * L of them.
_PAIRS_KEPT = 16
# Share of its threshold from which on a sum counts as free to move, in the curvature.
_NEAR = np.float32(0.5)


class Rows(NamedTuple):
    """The columns of each token: rows (keys) of a token, and columns and their values of a row."""

    of_token: UInts32
    ptr: Ints
    columns: UInts32
    values: Floats


class Members(NamedTuple):
    """The group of each column and of the pairs (-1: none), and the members' l1 and 1 / l2: see `penalties.separable`.

    `labels` (n_columns, L) and `pair_labels` (L, L) mark the candidates; the first has no rows if all labels are.
    """

    group: Ints
    pairs: int
    ptr: Ints
    l1: Floats32
    inverse: Floats32
    labels: UInts8
    pair_labels: UInts8


class Dual(NamedTuple):
    """Sums z of columns (n, L) and of pairs (L, L), posteriors, and what the last visit left of each sentence."""

    columns: Floats32
    pairs: Floats
    labels: Floats32
    pair_sums: Floats32
    left: Floats


@fast_kernel
def _add_column(c: int, x: np.float32, dual: Dual, members: Members, score: Floats32, free: Floats32) -> None:
    """Add a column's weights, times its value, to the scores, and their squares' inverse strengths where free."""
    z, group, zero = dual.columns[c], members.group[c], np.float32(0.0)
    for k in range(members.ptr[group], members.ptr[group + 1]):
        l1, factor = members.l1[k], x * members.inverse[k]
        near, square = _NEAR * l1, x * factor
        if len(members.labels):
            is_candidate = members.labels[c]
            for b in range(len(score)):
                here = z[b] if is_candidate[b] else zero
                score[b] += factor * (max(here - l1, zero) - max(-here - l1, zero))
                free[b] += square if abs(here) > near else zero
        else:
            for b in range(len(score)):
                score[b] += factor * (max(z[b] - l1, zero) - max(-z[b] - l1, zero))
                free[b] += square if abs(z[b]) > near else zero


@fast_kernel
def _score_token(
    t: int, truth: int, cost: float, dual: Dual, rows: Rows, members: Members, score: Floats32, free: Floats32
) -> None:
    for b in range(len(score)):
        score[b], free[b] = np.float32(cost), np.float32(0.0)
    score[truth] = np.float32(0.0)
    for g in range(rows.of_token.shape[1]):
        r = rows.of_token[t, g]
        for e in range(rows.ptr[r], rows.ptr[r + 1]):
            x = np.float32(rows.values[e]) if len(rows.values) else np.float32(1.0)
            _add_column(rows.columns[e], x, dual, members, score, free)


@fast_kernel
def _below_largest(score: Floats32, out: Floats) -> None:
    """Out = score - its largest."""
    largest = score[0]
    for b in range(1, len(score)):
        largest = max(largest, score[b])
    for b in range(len(score)):
        out[b] = max(score[b] - largest, -_LARGEST)


@fast_kernel
def _score_pairs(dual: Dual, members: Members, arcs: Floats) -> None:
    """Arcs[a, b] = exp(weight of the pair)."""
    n = arcs.shape[0]
    for a in range(n):
        for b in range(n):
            weight, z = 0.0, dual.pairs[a, b] * members.pair_labels[a, b]
            if members.pairs >= 0:
                for k in range(members.ptr[members.pairs], members.ptr[members.pairs + 1]):
                    weight += max(abs(z) - members.l1[k], 0.0) * members.inverse[k]
            arcs[a, b] = math.exp(min(weight, _LARGEST) if z > 0.0 else -min(weight, _LARGEST))


@fast_kernel
def _forward(n: int, score: Floats, arcs: Floats, alpha: Floats, scale: Floats) -> bool:
    """Messages from the left, normalised; False where the numbers do not hold them."""
    n_labels = score.shape[1]
    for t in range(n):
        here = alpha[t]
        for b in range(n_labels):
            here[b] = 1.0 if t == 0 else 0.0
        if t > 0:
            for a in range(n_labels):
                x = alpha[t - 1, a]
                for b in range(n_labels):
                    here[b] += x * arcs[a, b]
        total = 0.0
        for b in range(n_labels):
            here[b] *= score[t, b]
            total += here[b]
        if not 0.0 < total < np.inf:
            return False
        scale[t] = 1.0 / total
        for b in range(n_labels):
            here[b] *= scale[t]
    return True


@fast_kernel
def _backward(
    n: int, score: Floats, arcs: Floats, alpha: Floats, scale: Floats, beta: Floats, col: Floats, pairs: Floats
) -> None:
    """Messages from the right, and the sum of the posteriors of pairs."""
    n_labels = score.shape[1]
    pairs[:] = 0.0
    beta[n - 1] = 1.0
    for t in range(n - 1, 0, -1):
        for b in range(n_labels):
            col[b] = beta[t, b] * score[t, b] * scale[t]
        for a in range(n_labels):
            total, left = 0.0, alpha[t - 1, a]
            for b in range(n_labels):
                x = arcs[a, b] * col[b]
                total += x
                pairs[a, b] += left * x
            beta[t - 1, a] = total


@fast_kernel
def _direction(n: int, t0: int, dual: Dual, alpha: Floats, beta: Floats, free: Floats32) -> tuple[float, float]:
    """Alpha <- the model's posterior less that of the dual.

    Returns J = sum u**2 / mean of both, about twice the distance in nats, and the curvature of the penalty along u.
    """
    left = curved = 0.0
    for t in range(n):
        old = dual.labels[t0 + t]
        for b in range(alpha.shape[1]):
            new = alpha[t, b] * beta[t, b]
            u = new - old[b]
            left += u * u / max(0.5 * (new + old[b]), 1e-9)
            curved += u * u * free[t, b]
            alpha[t, b] = u
    return left, curved


@fast_kernel
def _pair_curvature(i: int, dual: Dual, members: Members, pairs: Floats) -> float:
    """Pairs <- the model's sums less those of the dual; the curvature of the penalty along them."""
    n_labels, curved = pairs.shape[0], 0.0
    inverse = 0.0
    for k in range(members.ptr[members.pairs], members.ptr[members.pairs + 1]):
        inverse += members.inverse[k]
    for a in range(n_labels):
        for b in range(n_labels):
            pairs[a, b] -= dual.pair_sums[i, a * n_labels + b]
            curved += inverse * pairs[a, b] * pairs[a, b] * members.pair_labels[a, b]
    return curved


@fast_kernel
def _move(n: int, t0: int, gamma: float, weight: float, dual: Dual, rows: Rows, u: Floats, step: Floats32) -> None:
    """Single labels: the dual posterior by gamma u, the sums by as much times the sentence's weight."""
    n_labels = u.shape[1]
    for t in range(n):
        labels = dual.labels[t0 + t]
        for b in range(n_labels):
            labels[b] += np.float32(gamma * u[t, b])
            step[b] = np.float32(weight * gamma * u[t, b])
        for g in range(rows.of_token.shape[1]):
            r = rows.of_token[t0 + t, g]
            for e in range(rows.ptr[r], rows.ptr[r + 1]):
                z = dual.columns[rows.columns[e]]
                x = np.float32(rows.values[e]) if len(rows.values) else np.float32(1.0)
                for b in range(n_labels):
                    z[b] -= x * step[b]


@fast_kernel
def _move_pairs(i: int, gamma: float, weight: float, dual: Dual, pairs: Floats) -> None:
    n_labels = pairs.shape[0]
    sums = dual.pair_sums[i]
    for a in range(n_labels):
        for b in range(n_labels):
            step = gamma * pairs[a, b]
            sums[a * n_labels + b] += np.float32(step)
            dual.pairs[a, b] -= weight * step


@kernel
def visit(order: Ints, longest: int, sentences: Sentences, rows: Rows, members: Members, dual: Dual) -> None:
    """Visit sentences in this order; `longest` is the number of tokens of the longest."""
    n_labels = dual.columns.shape[1]
    raw, free = np.empty((longest, n_labels), np.float32), np.empty((longest, n_labels), np.float32)
    score, bits = np.empty((longest, n_labels)), np.empty(longest * n_labels, np.uint64)
    alpha, beta, scale = np.empty((longest, n_labels)), np.empty((longest, n_labels)), np.empty(longest)
    arcs, pairs = np.empty((n_labels, n_labels)), np.empty((n_labels, n_labels))
    row, step = np.empty(n_labels), np.empty(n_labels, np.float32)
    for place in range(len(order)):
        i = order[place]
        t0, n, weight = sentences.ptr[i], sentences.ptr[i + 1] - sentences.ptr[i], sentences.weights[i]
        if place % _PAIRS_KEPT == 0:
            _score_pairs(dual, members, arcs)
        for t in range(n):
            _score_token(t0 + t, sentences.y[t0 + t], sentences.costs[i], dual, rows, members, raw[t], free[t])
            _below_largest(raw[t], score[t])
        exp_inplace(score[:n].reshape(-1), bits, bits.view(np.float64))
        if not _forward(n, score, arcs, alpha, scale):
            continue
        _backward(n, score, arcs, alpha, scale, beta, row, pairs)
        left, curved = _direction(n, t0, dual, alpha, beta, free)
        if members.pairs >= 0:
            curved += _pair_curvature(i, dual, members, pairs)
        gamma = left / (left + weight * curved + 1e-12)
        dual.left[i] = left
        _move(n, t0, gamma, weight, dual, rows, alpha, step)
        if members.pairs >= 0:
            _move_pairs(i, gamma, weight, dual, pairs)


@kernel
def weights(z: Floats32, group: Ints, members: Members, out: Floats) -> None:
    """Out[j] = sum over the members k of group j of soft(z[j], l1_k) / l2_k, row by row."""
    for j in range(len(z)):
        for k in range(members.ptr[group[j]], members.ptr[group[j] + 1]):
            for b in range(z.shape[1]):
                size = max(abs(z[j, b]) - members.l1[k], 0.0) * members.inverse[k]
                out[j, b] += size if z[j, b] > 0.0 else -size
