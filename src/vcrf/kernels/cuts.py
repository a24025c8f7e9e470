"""Cuts: lower bounds a + w.d of a sentence's surrogate, one for each label sequence found; and the dual ascent on them.

The master problem on the cuts found so far, with weights v_i of the sentences,

    min_w  sum_i v_i max(0, max_k a_k + w.d_k) + Omega(w)
      = max over lam >= 0, sum over the cuts of i of lam_k <= v_i,  of  min_w  sum_k lam_k (a_k + w.d_k) + Omega(w)

is solved by pairwise steps on lam, sentence by sentence. g = sum_k lam_k d_k determines w, feature by feature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.corrections import pattern_code
from vcrf.types import Bools, Floats, Ints, UInts32


class PathFiring(NamedTuple):
    """Where the features of a working set fire: fields of `ActiveSet`, and the plain patterns as a map.

    The pattern of length k and code c has the number table_offsets[k] + c; `table_numbers` are sorted.
    """

    rows: UInts32
    row_ptr: Ints
    row_labels: UInts32
    row_features: UInts32
    row_values: Floats
    table_offsets: Ints
    table_numbers: Ints
    table_features: Ints
    order: int
    cor_ptr: Ints
    cor_size: UInts32
    cor_code: UInts32
    cor_feature: UInts32
    cor_values: Floats


@inner_kernel
def _add(acc: Floats, mark: Ints, touched: Ints, n: int, feature: int, value: float) -> int:
    if mark[feature] == 0:
        mark[feature] = 1
        touched[n] = feature
        acc[feature] = 0.0
        n += 1
    acc[feature] += value
    return n


@inner_kernel
def _add_labels(
    firing: PathFiring, t: int, plus: int, minus: int, acc: Floats, mark: Ints, touched: Ints, n: int
) -> int:
    """Single-label features of token t: those of `plus` less those of `minus`."""
    for group in range(firing.rows.shape[1]):
        row = firing.rows[t, group]
        if row == 0:
            continue
        for e in range(firing.row_ptr[row], firing.row_ptr[row + 1]):
            label = int(firing.row_labels[e])
            if label in (plus, minus):
                value = firing.row_values[e] if len(firing.row_values) > 0 else 1.0
                n = _add(acc, mark, touched, n, int(firing.row_features[e]), value if label == plus else -value)
    return n


@inner_kernel
def _add_patterns(
    firing: PathFiring, start: int, t: int, labels: UInts32, at: int, y: UInts32, n_labels: int, acc: Floats,
    mark: Ints, touched: Ints, n: int,
) -> int:  # fmt: skip
    """Features of longer patterns that end at token t; labels[at] is the cut's label at token t."""
    for k in range(2, min(t - start + 1, firing.order) + 1):
        ours, theirs = pattern_code(labels, at - k + 1, at, n_labels), pattern_code(y, t - k + 1, t, n_labels)
        if ours == theirs:
            continue
        first = firing.table_offsets[k]
        for code, sign in ((ours, 1.0), (theirs, -1.0)):
            index = np.searchsorted(firing.table_numbers, first + code)
            if index < len(firing.table_numbers) and firing.table_numbers[index] == first + code:
                n = _add(acc, mark, touched, n, firing.table_features[index], sign)
        for j in range(firing.cor_ptr[t], firing.cor_ptr[t + 1]):
            if firing.cor_size[j] == k and (firing.cor_code[j] == ours or firing.cor_code[j] == theirs):
                value = firing.cor_values[j] if len(firing.cor_values) > 0 else 1.0
                sign = 1.0 if firing.cor_code[j] == ours else -1.0
                n = _add(acc, mark, touched, n, int(firing.cor_feature[j]), sign * value)
    return n


@kernel
def cut_rows(
    firing: PathFiring, n_features: int, sent_ptr: Ints, y: UInts32, n_labels: int, sentence: Ints, label_ptr: Ints,
    labels: UInts32, slope: Floats, row_ptr: Ints, index: Ints, value: Floats,
) -> int:  # fmt: skip
    """Rows d_k = slope_k * (Psi(y_k) - Psi(y_i)) of the cuts on the working set, as CSR; returns the number of entries.

    Writes as many entries as fit; the caller calls again with more room.
    """
    acc, mark, touched = np.zeros(n_features), np.zeros(n_features, np.int64), np.zeros(n_features, np.int64)
    total = 0
    for c in range(len(sentence)):
        start, stop = sent_ptr[sentence[c]], sent_ptr[sentence[c] + 1]
        n = 0
        for t in range(start, stop):
            at = label_ptr[c] + t - start
            if labels[at] != y[t]:
                n = _add_labels(firing, t, int(labels[at]), int(y[t]), acc, mark, touched, n)
            n = _add_patterns(firing, start, t, labels, at, y, n_labels, acc, mark, touched, n)
        for j in range(n):
            feature = touched[j]
            mark[feature] = 0
            if acc[feature] != 0.0:
                if total < len(index):
                    index[total] = feature
                    value[total] = slope[c] * acc[feature]
                total += 1
        row_ptr[c + 1] = total
    return total


class Master(NamedTuple):
    """The master problem.

    ptr : (n_sentences + 1,) cuts of each sentence
    row_ptr, columns, value : CSR rows d_k;  intercept : a_k;  weights : v_i
    groups, member_ptr, l1, l2 : the penalty, see `BoundPenalty`
    rho, centre : rho / 2 (w - centre)^2 is added to the penalty of each feature
    """

    ptr: Ints
    row_ptr: Ints
    columns: Ints
    value: Floats
    intercept: Floats
    weights: Floats
    groups: Ints
    member_ptr: Ints
    l1: Floats
    l2: Floats
    rho: float
    centre: Floats


@inner_kernel
def weight_of(master: Master, j: int, g: float) -> tuple[float, float]:
    """The minimiser of g w + penalty(w) of feature j, and minus its derivative in g."""
    z = master.rho * master.centre[j] - g
    size = abs(z)
    first, last = master.member_ptr[master.groups[j]], master.member_ptr[master.groups[j] + 1]
    if first == last or size <= master.l1[first]:
        return 0.0, 0.0
    if master.l2[first] == 0.0:
        slope = 1.0 / master.rho
        w = (size - master.l1[first]) * slope
    else:
        # The slope mu of the merged penalty at w solves mu + rho w(mu) = size, w(mu) = sum_k (mu - l1_k)_+ / l2_k.
        ratio, base, mu = 0.0, 0.0, size
        for k in range(first, last):
            if mu <= master.l1[k]:
                break
            ratio += 1.0 / master.l2[k]
            base += master.l1[k] / master.l2[k]
            mu = (size + master.rho * base) / (1.0 + master.rho * ratio)
        w, slope = mu * ratio - base, ratio / (1.0 + master.rho * ratio)
    return (w if z > 0.0 else -w), slope


@inner_kernel
def _value(master: Master, w: Floats, k: int) -> float:
    """a_k + w.d_k."""
    total = master.intercept[k]
    for e in range(master.row_ptr[k], master.row_ptr[k + 1]):
        total += w[master.columns[e]] * master.value[e]
    return float(total)


@inner_kernel
def _collect(master: Master, k: int, sign: float, acc: Floats, mark: Ints, touched: Ints, n: int) -> int:
    for e in range(master.row_ptr[k], master.row_ptr[k + 1]):
        n = _add(acc, mark, touched, n, master.columns[e], sign * master.value[e])
    return n


@inner_kernel
def _slope_at(master: Master, g: Floats, acc: Floats, touched: Ints, n: int, step: float) -> tuple[float, float]:
    """w(g + step acc).acc, and minus its derivative in the step."""
    product, curvature = 0.0, 0.0
    for i in range(n):
        j = touched[i]
        w, slope = weight_of(master, j, g[j] + step * acc[j])
        product += w * acc[j]
        curvature += slope * acc[j] * acc[j]
    return product, curvature


@inner_kernel
def next_step(step: float, error: float, curvature: float, low: float, high: float) -> tuple[float, float, float]:
    """The next trial for a zero of a falling slope, by Newton or, out of bounds, by bisection; and the new bounds."""
    if error > 0.0:
        low = step
    else:
        high = step
    trial = step + error / curvature if curvature > 0.0 else 0.5 * (low + high)
    return trial if low < trial < high else 0.5 * (low + high), low, high


@inner_kernel
def _best_step(master: Master, g: Floats, acc: Floats, touched: Ints, n: int, gain: float, largest: float) -> float:
    """Maximiser in [0, largest] of the dual along a direction: a concave piecewise quadratic, by Newton and bisection.

    `gain` is the difference of the cuts' intercepts, acc that of their rows.
    """
    slope, curvature = _slope_at(master, g, acc, touched, n, largest)
    if gain + slope >= 0.0:
        return largest
    low, high, step = 0.0, largest, 0.0
    slope, curvature = _slope_at(master, g, acc, touched, n, 0.0)
    for _ in range(8):
        trial, low, high = next_step(step, gain + slope, curvature, low, high)
        if abs(trial - step) <= 1e-6 * largest:
            return trial
        step = trial
        slope, curvature = _slope_at(master, g, acc, touched, n, step)
    return step


class Pair(NamedTuple):
    """The cut worth the most and that worth the least among those with a multiplier; -1 is the truth, worth 0."""

    up: int
    down: int
    largest: float  # what can be moved from one to the other
    top: float
    bottom: float
    mean: float  # sum of the multipliers times the values


@inner_kernel
def _choose(master: Master, i: int, lam: Floats, w: Floats, is_live: Bools, all_cuts: bool) -> Pair:
    """The pair of a sentence, among the live cuts or among all; then those that matter are live for a while."""
    up, down, top, bottom, free, mean = -1, -1, 0.0, 0.0, master.weights[i], 0.0
    is_found = False
    for k in range(master.ptr[i], master.ptr[i + 1]):
        if not all_cuts and not is_live[k]:
            continue
        value = _value(master, w, k)
        free -= lam[k]
        mean += lam[k] * value
        is_live[k] = lam[k] > 0.0
        if value > top:
            up, top = k, value
        if lam[k] > 0.0 and (not is_found or value < bottom):
            down, bottom, is_found = k, value, True
    if up >= 0:
        is_live[up] = True
    if free > 1e-12 * master.weights[i] and (not is_found or bottom > 0.0):
        down, bottom = -1, 0.0
    return Pair(up, down, max(free, 0.0) if down < 0 else lam[down], top, bottom, mean)


@inner_kernel
def difference(master: Master, pair: Pair, acc: Floats, mark: Ints, touched: Ints) -> tuple[int, float]:
    """Row of the cut `up` less that of `down`, in acc at the features `touched`; how many, and the intercepts' gain."""
    n, gain = 0, 0.0
    if pair.up >= 0:
        n, gain = _collect(master, pair.up, 1.0, acc, mark, touched, n), master.intercept[pair.up]
    if pair.down >= 0:
        n = _collect(master, pair.down, -1.0, acc, mark, touched, n)
        gain -= master.intercept[pair.down]
    return n, float(gain)


@inner_kernel
def move(pair: Pair, step: float, lam: Floats) -> None:
    """Move so much from one multiplier of a pair to the other."""
    if pair.up >= 0:
        lam[pair.up] += step
    if pair.down >= 0:
        lam[pair.down] = lam[pair.down] - step if step < pair.largest else 0.0


@kernel
def ascend(master: Master, lam: Floats, g: Floats, w: Floats, n_sweeps: int, enough: float) -> float:
    """Sweeps of pairwise steps, in place, until the master's gap is below `enough`; returns the last gap.

    The gap is summed as the sentences are visited with all their cuts, in every fifth sweep; the others look at cuts
    that have a multiplier or were last worth the most.
    """
    n_features = len(g)
    acc, mark, touched = np.zeros(n_features), np.zeros(n_features, np.int64), np.zeros(n_features, np.int64)
    is_live = np.ones(len(lam), np.bool_)
    gap = np.inf
    for sweep in range(n_sweeps):
        all_cuts = sweep % 5 == 0
        total = 0.0
        for i in range(len(master.ptr) - 1):
            if master.ptr[i + 1] == master.ptr[i]:
                continue
            pair = _choose(master, i, lam, w, is_live, all_cuts)
            total += max(master.weights[i] * pair.top - pair.mean, 0.0)
            if pair.up == pair.down or pair.largest <= 0.0:
                continue
            n, gain = difference(master, pair, acc, mark, touched)
            step = _best_step(master, g, acc, touched, n, gain, pair.largest)
            move(pair, step, lam)
            for e in range(n):
                j = touched[e]
                mark[j] = 0
                g[j] += step * acc[j]
                w[j] = weight_of(master, j, g[j])[0]
        if all_cuts:
            gap = total
            if gap <= enough:
                break
    return gap


@kernel
def sums(master: Master, lam: Floats, g: Floats) -> None:
    """Set g = sum_k lam_k d_k."""
    g[:] = 0.0
    for k in range(len(lam)):
        if lam[k] != 0.0:
            for e in range(master.row_ptr[k], master.row_ptr[k + 1]):
                g[master.columns[e]] += lam[k] * master.value[e]


@kernel
def weights_of(master: Master, g: Floats, w: Floats) -> None:
    """Set w from g, feature by feature."""
    for j in range(len(g)):
        w[j] = weight_of(master, j, g[j])[0]


@kernel
def mixture(
    sent_ptr: Ints, sentence: Ints, label_ptr: Ints, labels: UInts32, share: Floats, n_labels: int, order: int,
    marginals: Floats, arcs: Floats,
) -> None:  # fmt: skip
    """Add the shares of label sequences to the marginals of labels and of arcs (tokens, L**order)."""
    for c in range(len(sentence)):
        if share[c] == 0.0:
            continue
        start, stop = sent_ptr[sentence[c]], sent_ptr[sentence[c] + 1]
        for t in range(start, stop):
            at = label_ptr[c] + t - start
            depth = min(t - start + 1, order)
            marginals[t, labels[at]] += share[c]
            if len(arcs) > 0:
                arcs[t, pattern_code(labels, at - depth + 1, at, n_labels)] += share[c]
