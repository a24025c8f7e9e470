"""Exact Hessian of the log-partition on a few features, for chains of order 2.

The Hessian is the covariance of the feature counts. Along a sentence, K[b, j] = Cov(count of j so far, [y_t = b])
moves from token to token by the conditional transition matrix Q, and the covariance of all past counts with the
features of the current token is read off K. Past features whose K has died out (the chain forgets) are dropped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.kernels.scores import LocalFactors
from vcrf.types import Floats, Ints, UInts32

# A past feature is dropped when its covariances are below this share of their largest so far.
_FORGOTTEN = 1e-3


class PairFiring(NamedTuple):
    """Which chosen features fire where.

    rows (n_tokens, n_groups), row_ptr, row_labels, row_features, row_values: single-label features by key;
    cor_ptr, cor_code, cor_feature, cor_values: features of label pairs by token; table_code, table_index: plain
    label pairs; `chosen` maps a feature to its row of the Hessian, -1 = not chosen.
    """

    rows: UInts32
    row_ptr: Ints
    row_labels: UInts32
    row_features: UInts32
    row_values: Floats
    cor_ptr: Ints
    cor_code: UInts32
    cor_feature: UInts32
    cor_values: Floats
    table_code: Ints
    table_index: Ints
    chosen: Ints


@inner_kernel
def _current(firing: PairFiring, t: int, is_first: bool, index: Ints, code: Ints, value: Floats) -> int:
    """Chosen features that fire at token t; code = -1 - label for single labels, else the pair's code."""
    n = 0
    for group in range(firing.rows.shape[1]):
        row = firing.rows[t, group]
        if row == 0:
            continue
        for e in range(firing.row_ptr[row], firing.row_ptr[row + 1]):
            j = firing.chosen[firing.row_features[e]]
            if j >= 0:
                index[n] = j
                code[n] = -1 - np.int64(firing.row_labels[e])
                value[n] = firing.row_values[e] if len(firing.row_values) > 0 else 1.0
                n += 1
    if is_first:
        return n
    for e in range(firing.cor_ptr[t], firing.cor_ptr[t + 1]):
        j = firing.chosen[firing.cor_feature[e]]
        if j >= 0:
            index[n] = j
            code[n] = firing.cor_code[e]
            value[n] = firing.cor_values[e] if len(firing.cor_values) > 0 else 1.0
            n += 1
    return n


@inner_fast_kernel
def _propagate(cov: Floats, conditional: Floats, n: int, out: Floats) -> None:
    """out[b, j] = sum_a cov[a, j] * conditional[a, b] for the first n slots j."""
    n_labels = cov.shape[0]
    for b in range(n_labels):
        o = out[b]
        for j in range(n):
            o[j] = 0.0
        for a in range(n_labels):
            q = conditional[a, b]
            c = cov[a]
            for j in range(n):
                o[j] += q * c[j]


@inner_kernel
def _forget(cov: Floats, peak: Floats, slots: Ints, slot_of: Ints, n_fixed: int, n: int) -> int:
    """Drop slots whose covariances have died out; returns the new number of slots."""
    j = n_fixed
    while j < n:
        largest = 0.0
        for b in range(cov.shape[0]):
            largest = max(largest, abs(cov[b, j]))
        peak[j] = max(peak[j], largest)
        if largest > _FORGOTTEN * peak[j]:
            j += 1
            continue
        slot_of[slots[j]] = -1
        n -= 1
        if j < n:
            slots[j] = slots[n]
            peak[j] = peak[n]
            slot_of[slots[j]] = j
            for b in range(cov.shape[0]):
                cov[b, j] = cov[b, n]
    return n


@inner_kernel
def _pair_probabilities(
    t: int,
    alpha: Floats,
    back: Floats,
    table: Floats,
    cor: LocalFactors,
    out: Floats,
) -> None:
    """out[a, b] = P(y_{t-1} = a, y_t = b) from the messages."""
    n_labels = out.shape[0]
    for a in range(n_labels):
        for b in range(n_labels):
            out[a, b] = alpha[t - 1, a] * table[a * n_labels + b] * back[t, b]
    for j in range(cor.ptr[t], cor.ptr[t + 1]):
        if cor.size[j] == 2:
            out[cor.code[j] // n_labels, cor.code[j] % n_labels] *= cor.factor[j]


@inner_kernel
def _same_token(
    index: Ints,
    code: Ints,
    value: Floats,
    n: int,
    prob: Floats,
    pair: Floats,
    weight: float,
    part: int,
    n_parts: int,
    out: Floats,
) -> None:
    """out[i, j] += half the covariance of the features i and j that fire at one token."""
    n_labels = len(prob)
    for x in range(n):
        if index[x] % n_parts != part:
            continue
        row = out[index[x]]
        bx = -1 - code[x] if code[x] < 0 else code[x] % n_labels
        qx = prob[bx] if code[x] < 0 else pair[code[x] // n_labels, bx]
        for z in range(n):
            bz = -1 - code[z] if code[z] < 0 else code[z] % n_labels
            qz = prob[bz] if code[z] < 0 else pair[code[z] // n_labels, bz]
            joint = 0.0
            if bx == bz and (code[x] < 0 or code[z] < 0 or code[x] == code[z]):
                joint = min(qx, qz)
            row[index[z]] += 0.5 * weight * value[x] * value[z] * (joint - qx * qz)


@kernel
def covariance_half(
    sent_ptr: Ints, weights: Floats, prob: Floats, alpha: Floats, back: Floats, table: Floats,
    cor: LocalFactors, firing: PairFiring, max_current: int, max_slots: int, part: int, n_parts: int, stride: int,
    out: Floats,
) -> None:  # fmt: skip
    """Out + out.T is the Hessian; this call fills the rows i with i % n_parts == part.

    Of `stride` sentences the first stands for all.

    prob (n_tokens, L): label marginals; alpha, back: messages of the pass; table: exp of the pair scores.
    """
    n_labels = prob.shape[1]
    n_tables = len(firing.table_code)
    index, code, value = (
        np.empty(max_current, np.int64),
        np.empty(max_current, np.int64),
        np.empty(max_current),
    )
    slots, slot_of = np.empty(max_slots, np.int64), np.full(out.shape[0], -1, np.int64)
    cov, moved, peak = np.zeros((n_labels, max_slots)), np.zeros((n_labels, max_slots)), np.zeros(max_slots)
    pair, conditional = np.zeros((n_labels, n_labels)), np.zeros((n_labels, n_labels))
    for j in range(n_tables):
        slots[j] = firing.table_index[j]
        slot_of[slots[j]] = j
    for i in range(0, len(sent_ptr) - 1, stride):
        n = n_tables
        cov[:, :n] = 0.0
        weight = stride * weights[i]
        for t in range(sent_ptr[i], sent_ptr[i + 1]):
            is_first = t == sent_ptr[i]
            n_now = _current(firing, t, is_first, index, code, value)
            p = prob[t]
            if not is_first:
                _pair_probabilities(t, alpha, back, table, cor, pair)
                for a in range(n_labels):
                    total = pair[a].sum()
                    for b in range(n_labels):
                        conditional[a, b] = pair[a, b] / total if total > 1e-290 else p[b]
                _past_with_pairs(
                    firing, index, code, value, n_now, cov, conditional, slots, n, weight, part, n_parts, out
                )
                _propagate(cov, conditional, n, moved)
                cov, moved = moved, cov
                _past_with_labels(index, code, value, n_now, cov, slots, n, weight, part, n_parts, out)
                for x in range(n_tables):
                    index[n_now + x] = firing.table_index[x]
                    code[n_now + x] = firing.table_code[x]
                    value[n_now + x] = 1.0
                n_now += n_tables
            _same_token(index, code, value, n_now, p, pair, weight, part, n_parts, out)
            n = _remember(index, code, value, n_now, p, pair, cov, peak, slots, slot_of, n)
            n = _forget(cov, peak, slots, slot_of, n_tables, n)
        for j in range(n_tables, n):
            slot_of[slots[j]] = -1


@inner_kernel
def _past_with_labels(
    index: Ints,
    code: Ints,
    value: Floats,
    n_now: int,
    cov: Floats,
    slots: Ints,
    n: int,
    weight: float,
    part: int,
    n_parts: int,
    out: Floats,
) -> None:
    """Covariance of past counts with the single-label features of this token (cov already moved here)."""
    for x in range(n_now):
        if code[x] < 0 and index[x] % n_parts == part:
            row, c, v = out[index[x]], cov[-1 - code[x]], weight * value[x]
            for j in range(n):
                row[slots[j]] += v * c[j]


@inner_kernel
def _past_with_pairs(
    firing: PairFiring,
    index: Ints,
    code: Ints,
    value: Floats,
    n_now: int,
    cov: Floats,
    conditional: Floats,
    slots: Ints,
    n: int,
    weight: float,
    part: int,
    n_parts: int,
    out: Floats,
) -> None:
    """Covariance of past counts with the label pairs of this token: Cov(past, a) * P(b | a)."""
    n_labels = cov.shape[0]
    for x in range(n_now):
        if code[x] >= 0 and index[x] % n_parts == part:
            a = code[x] // n_labels
            row, c, v = out[index[x]], cov[a], weight * value[x] * conditional[a, code[x] % n_labels]
            for j in range(n):
                row[slots[j]] += v * c[j]
    for x in range(len(firing.table_code)):
        if firing.table_index[x] % n_parts == part:
            a = firing.table_code[x] // n_labels
            row, c, v = (
                out[firing.table_index[x]],
                cov[a],
                weight * conditional[a, firing.table_code[x] % n_labels],
            )
            if abs(v) > 1e-9 * weight:
                for j in range(n):
                    row[slots[j]] += v * c[j]


@inner_kernel
def _remember(
    index: Ints,
    code: Ints,
    value: Floats,
    n_now: int,
    prob: Floats,
    pair: Floats,
    cov: Floats,
    peak: Floats,
    slots: Ints,
    slot_of: Ints,
    n: int,
) -> int:
    """cov[:, j] += covariance of this token's features with its label; new features get a slot."""
    n_labels = len(prob)
    for x in range(n_now):
        j = slot_of[index[x]]
        if j < 0:
            j = n
            slots[j] = index[x]
            peak[j] = 0.0
            slot_of[index[x]] = j
            for b in range(n_labels):
                cov[b, j] = 0.0
            n += 1
        bx = -1 - code[x] if code[x] < 0 else code[x] % n_labels
        q = value[x] * (prob[bx] if code[x] < 0 else pair[code[x] // n_labels, bx])
        for b in range(n_labels):
            cov[b, j] -= q * prob[b]
        cov[bx, j] += q
    return n


@kernel
def symmetrise(matrix: Floats) -> None:
    """Matrix <- matrix + matrix.T, in place."""
    n = matrix.shape[0]
    for i in range(n):
        matrix[i, i] *= 2.0
        for j in range(i):
            total = matrix[i, j] + matrix[j, i]
            matrix[i, j] = total
            matrix[j, i] = total
