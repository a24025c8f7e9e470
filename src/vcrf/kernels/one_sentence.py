"""Forward-backward of one sentence from the scores of its labels and pairs, messages in the log domain."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import fast_kernel, kernel
from vcrf.kernels.blocks import Sentences
from vcrf.kernels.exponential import exp_inplace
from vcrf.types import Floats

# Below this a sum of products is taken again in the log domain.
_SMALLEST = 1e-280
# Exponents for `exp_inplace`.
_LEAST = -700.0


class Work(NamedTuple):
    """Scratch for the longest sentence: scores and residuals of labels and pairs, messages, and their exponentials."""

    node: Floats
    pair: Floats
    top: Floats
    below: Floats
    forward: Floats
    backward: Floats
    ahead: Floats
    behind: Floats
    sums: Floats
    gradient: Floats
    largest: Floats


@fast_kernel
def add(x: Floats, first: int, factor: float, out: Floats, out_first: int, size: int) -> None:
    """Out += factor * x."""
    u, o = np.uint64(first), np.uint64(out_first)
    for k in range(np.uint64(size)):
        out[o + k] += factor * x[u + k]


@kernel
def _exponentials(n: int, n_labels: int, work: Work) -> None:
    """Pair <- exp(pair - top), top its largest with the same second label; `below` has the exponent."""
    size, pair = n_labels * n_labels, work.pair
    for t in range(1, n):
        for b in range(n_labels):
            work.top[t * n_labels + b] = -np.inf
        for a in range(n_labels):
            for b in range(n_labels):
                work.top[t * n_labels + b] = max(work.top[t * n_labels + b], pair[t * size + a * n_labels + b])
        for a in range(n_labels):
            for b in range(n_labels):
                k = t * size + a * n_labels + b
                work.below[k] = pair[k] - work.top[t * n_labels + b]
                pair[k] = max(work.below[k], _LEAST)
    part, bits = pair[size : n * size], np.empty(max(n - 1, 0) * size, np.uint64)
    exp_inplace(part, bits, bits.view(np.float64))


@kernel
def _peak_and_exp(x: Floats, first: int, n_labels: int, out: Floats, out_first: int) -> float:
    """Out = exp(x - its largest), which is returned."""
    peak = -np.inf
    for b in range(n_labels):
        peak = max(peak, x[first + b])
    for b in range(n_labels):
        out[out_first + b] = math.exp(x[first + b] - peak)
    return peak


@kernel
def _log_sum(n_labels: int, x: Floats, x_first: int, scores: Floats, first: int, stride: int) -> float:
    """Log of sum_k exp(x[k] + scores[k])."""
    peak, total = -np.inf, 0.0
    for k in range(n_labels):
        peak = max(peak, x[x_first + k] + scores[first + k * stride])
    for k in range(n_labels):
        total += math.exp(x[x_first + k] + scores[first + k * stride] - peak)
    return peak + math.log(total)


@kernel
def _messages(n: int, n_labels: int, work: Work) -> float:
    """Log-messages forward and backward (`ahead`: with the label's own score, to the left); returns log Z."""
    size, forward, backward, ahead = n_labels * n_labels, work.forward, work.backward, work.ahead
    forward[:n_labels] = work.node[:n_labels]
    for t in range(1, n):
        peak = _peak_and_exp(forward, (t - 1) * n_labels, n_labels, work.behind, (t - 1) * n_labels)
        work.sums[:n_labels] = 0.0
        for a in range(n_labels):
            add(work.pair, t * size + a * n_labels, work.behind[(t - 1) * n_labels + a], work.sums, 0, n_labels)
        for b in range(n_labels):
            here, total = t * n_labels + b, work.sums[b]
            found = (
                peak + math.log(total)
                if total > _SMALLEST
                else _log_sum(n_labels, forward, (t - 1) * n_labels, work.below, t * size + b, n_labels)
            )
            forward[here] = work.node[here] + work.top[here] + found
    backward[(n - 1) * n_labels : n * n_labels] = 0.0
    for t in range(n - 1, 0, -1):
        for b in range(n_labels):
            here = t * n_labels + b
            ahead[here] = work.node[here] + work.top[here] + backward[here]
        peak = _peak_and_exp(ahead, t * n_labels, n_labels, work.sums, 0)
        for a in range(n_labels):
            total = 0.0
            for b in range(n_labels):
                total += work.pair[t * size + a * n_labels + b] * work.sums[b]
            backward[(t - 1) * n_labels + a] = (
                peak + math.log(total)
                if total > _SMALLEST
                else _log_sum(n_labels, ahead, t * n_labels, work.below, t * size + a * n_labels, 1)
            )
    peak = _peak_and_exp(forward, (n - 1) * n_labels, n_labels, work.sums, 0)
    total = 0.0
    for b in range(n_labels):
        total += work.sums[b]
    return peak + math.log(total)


@kernel
def residuals(data: Sentences, i: int, n_labels: int, work: Work) -> float:
    """Scores become posterior - truth, of labels and pairs; returns log Z - score of the truth.

    `largest` has the largest size of each token's residuals, of labels and of pairs.
    """
    start, n, size = data.ptr[i], data.ptr[i + 1] - data.ptr[i], n_labels * n_labels
    node, pair, truth = work.node, work.pair, 0.0
    for t in range(n):
        y = data.y[start + t]
        for b in range(n_labels):
            node[t * n_labels + b] += 0.0 if b == y else data.costs[i]
        truth += node[t * n_labels + y]
        if t > 0:
            truth += pair[t * size + data.y[start + t - 1] * n_labels + y]
    _exponentials(n, n_labels, work)
    log_z = _messages(n, n_labels, work)
    for t in range(n):
        y, most = data.y[start + t], 0.0
        for b in range(n_labels):
            here = t * n_labels + b
            node[here] = math.exp(work.forward[here] + work.backward[here] - log_z) - (1.0 if b == y else 0.0)
            most = max(most, abs(node[here]))
        work.largest[2 * t], work.largest[2 * t + 1] = most, 0.0
        if t > 0:
            true_pair = data.y[start + t - 1] * n_labels + y
            work.largest[2 * t + 1] = _pair_residuals(t, n_labels, true_pair, log_z, work)
    return max(log_z - truth, 0.0)


@kernel
def _pair_residuals(t: int, n_labels: int, truth: int, log_z: float, work: Work) -> float:
    size, pair, most = n_labels * n_labels, work.pair, 0.0
    peak = _peak_and_exp(work.ahead, t * n_labels, n_labels, work.sums, 0)
    for a in range(n_labels):
        before = work.forward[(t - 1) * n_labels + a] + peak - log_z
        is_far = before > 600.0
        factor = 0.0 if is_far else math.exp(before)
        for b in range(n_labels):
            k = t * size + a * n_labels + b
            if is_far:
                ahead = work.ahead[t * n_labels + b] - peak
                pair[k] = math.exp(min(before + ahead + work.below[k], 0.0))
            else:
                pair[k] = factor * pair[k] * work.sums[b]
            if k - t * size == truth:
                pair[k] -= 1.0
            most = max(most, abs(pair[k]))
    return most
