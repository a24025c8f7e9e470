"""Forward-backward where few pairs of labels have a score: a token costs its labels and these pairs, not all pairs.

With f(a, b) = exp(score) for the pairs that have one, and the same `base` for all others,

    alpha[t, b] = node[t, b] (base sum_a alpha[t-1, a] + sum over pairs (a, b) of (f - base) alpha[t-1, a])
    beta[t-1, a] = base sum_b back[t, b] + sum over pairs (a, b) of (f - base) back[t, b]

and back = node beta / scale, alpha scaled to sum 1, as on the dense lattice (`kernels.chain`). Where the differences
would cancel, the sum is made in full over positive numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import fast_kernel, kernel
from vcrf.kernels.blocks import PassOutput, Sentences
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.potentials import MAX_RANGE, node_scores, shift_nodes
from vcrf.types import Floats, Ints, UInts32

# A sum of differences that is smaller than this share of what it started from has lost digits.
_CANCELS = 1e-4


class SparsePairs(NamedTuple):
    """Pairs of labels that have a score, CSR by the oldest label and by the newest, sorted.

    `number` says which pair by oldest label each one by newest label is; the factors are exp(score - shift), `excess`
    is the factor less `base` = exp(-shift).
    """

    ptr: Ints
    newest: UInts32
    factor: Floats
    excess: Floats
    back_ptr: Ints
    oldest: UInts32
    back_factor: Floats
    back_excess: Floats
    base: float
    shift: float


@kernel
def _sum_in_full(first: int, last: int, labels: UInts32, factor: Floats, base: float, x: Floats, at: int) -> float:
    """Sum over all labels of x times the factor of the pair with it."""
    j, total = first, 0.0
    for a in range(len(x) - at):
        if j < last and labels[j] == a:
            total += factor[j] * x[at + a]
            j += 1
        else:
            total += base * x[at + a]
    return total


@fast_kernel
def _step(
    n_labels: int, ptr: Ints, labels: UInts32, factor: Floats, excess: Floats, base: float, x: Floats, whole: float,
    out: Floats,
) -> None:  # fmt: skip
    """out[b] = sum over all labels a of x[a] times the factor of the pair; `whole` is the sum of x."""
    plain = base * whole
    for b in range(n_labels):
        total = plain
        for j in range(ptr[b], ptr[b + 1]):
            total += excess[j] * x[labels[j]]
        if total < _CANCELS * plain:
            total = _sum_in_full(ptr[b], ptr[b + 1], labels, factor, base, x, 0)
        out[b] = total


@fast_kernel
def _scaled(x: Floats, y: Floats, scale: float, out: Floats) -> float:
    """Out = scale * x * y; returns its sum.

    Two loops: whether one that stores and sums is vectorised is decided when it runs, by where the arrays are, and the
    order of the sum with it.
    """
    for b in range(len(out)):
        out[b] = scale * x[b] * y[b]
    return _sum(out)


@kernel
def _sum(x: Floats) -> float:
    total = 0.0
    for b in range(len(x)):
        total += x[b]
    return total


@fast_kernel
def _count(n_labels: int, pairs: SparsePairs, alpha: Floats, back: Floats, weight: float, counts: Floats) -> None:
    """counts[pair] += weight * posterior of the pair at one token."""
    ptr, newest, factor = pairs.ptr, pairs.newest, pairs.factor
    for a in range(n_labels):
        x = weight * alpha[a]
        for j in range(ptr[a], ptr[a + 1]):
            counts[j] += x * factor[j] * back[newest[j]]


@kernel
def _shift_and_flag(
    sentences: Sentences, first: int, last: int, n_labels: int, node: Floats, shift: Floats, pair_span: float,
    out: PassOutput,
) -> None:  # fmt: skip
    """Shift the node scores, set out.values to minus the true labels' scores, flag sentences for the log domain.

    Sums over the labels before, or after, differ from label to label by no more than the scores of pairs do. So a label
    whose score is 700 nats below the best one of its token, where scores are clipped, has a posterior below
    exp(2 span - 700), which is nothing, however far below it is: scores of labels flag no sentence unless they are no
    numbers.
    """
    t0 = sentences.ptr[first]
    span = np.empty(sentences.ptr[last] - t0)
    for i in range(first, last):
        a, z = sentences.ptr[i] - t0, sentences.ptr[i + 1] - t0
        out.values[i] = -shift_nodes(
            node, n_labels, sentences.y, t0, a, z, sentences.costs[i], sentences.allowed, False, span, shift
        )
        out.hard[i] = 0 if 2.0 * pair_span < MAX_RANGE else 1
        for t in range(a, z):
            if not span[t] < np.inf:
                out.hard[i] = 1


@kernel
def weighted_pass(
    sentences: Sentences, first: int, last: int, n_labels: int, rows: UInts32, scores: Floats, pairs: SparsePairs,
    span: float, values_only: bool, counts: Floats, messages: Floats, back: Floats,
    out: PassOutput,
) -> None:  # fmt: skip
    """One forward-backward over a block of sentences.

    `span` is how far scores of pairs differ. counts (n_pairs,) gets expected less true counts; messages and back
    (tokens of the block, L) are alpha and back, of hard sentences zeros.
    """
    sent_ptr, y, weights = sentences.ptr, sentences.y, sentences.weights
    hard, values, residuals = out.hard, out.values, out.residuals.reshape(-1, n_labels)
    t0, t1 = sent_ptr[first], sent_ptr[last]
    node, shift = np.empty((t1 - t0) * n_labels), np.empty(t1 - t0)
    node_scores(rows, scores, t0, t1, node)
    _shift_and_flag(sentences, first, last, n_labels, node, shift, span, out)
    bits = np.empty(n_labels, np.uint64)
    node2 = node.reshape(-1, n_labels)
    scale, entered, beta = np.empty(t1 - t0), np.empty(n_labels), np.empty(n_labels)
    for i in range(first, last):
        start, stop = sent_ptr[i] - t0, sent_ptr[i + 1] - t0
        if hard[i] != 0:
            messages[start:stop] = 0.0
            back[start:stop] = 0.0
            continue
        log_z = 0.0
        for t in range(start, stop):
            exp_inplace(node2[t], bits, bits.view(np.float64))
            if t == start:
                entered[:] = 1.0
            else:
                _step(
                    n_labels, pairs.back_ptr, pairs.oldest, pairs.back_factor, pairs.back_excess, pairs.base,
                    messages[t - 1], 1.0, entered,
                )  # fmt: skip
                log_z += pairs.shift
                values[i] -= _true_score(pairs, y[t0 + t - 1], y[t0 + t])
            total = _scaled(entered, node2[t], 1.0, messages[t])
            scale[t] = 1.0 / total
            for b in range(n_labels):
                messages[t, b] *= scale[t]
            log_z += math.log(total) + shift[t]
        values[i] += log_z
        if values_only:
            continue
        beta[:] = 1.0
        weight = weights[i]
        for t in range(stop - 1, start - 1, -1):
            _scaled(messages[t], beta, weight, residuals[t0 + t])
            residuals[t0 + t, y[t0 + t]] -= weight
            whole = _scaled(node2[t], beta, scale[t], back[t])
            if t > start:
                _count(n_labels, pairs, messages[t - 1], back[t], weight, counts)
                j = _find(pairs, y[t0 + t - 1], y[t0 + t])
                if j >= 0:
                    counts[j] -= weight
                _step(n_labels, pairs.ptr, pairs.newest, pairs.factor, pairs.excess, pairs.base, back[t], whole, beta)


@kernel
def _find(pairs: SparsePairs, before: int, here: int) -> int:
    """The number of a pair, -1 if it has no score."""
    for j in range(pairs.ptr[before], pairs.ptr[before + 1]):
        if pairs.newest[j] == here:
            return int(j)
    return -1


@kernel
def _true_score(pairs: SparsePairs, before: int, here: int) -> float:
    """The score of a pair."""
    j = _find(pairs, before, here)
    return math.log(pairs.factor[j]) + pairs.shift if j >= 0 else 0.0
