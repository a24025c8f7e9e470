"""Forward-backward where few pairs of labels have a score: a token costs its labels and these pairs, not all pairs.

With f(a, b) = exp(score) for the pairs that have one, and base[r, c] for all others, which depends on the classes r of
the label before and c of the label here alone,

    alpha[t, b] = node[t, b] (sum_r base[r, c(b)] sum_{a in r} alpha[t-1, a]
                              + sum over pairs (a, b) of (f - base) alpha[t-1, a])
    beta[t-1, a] = sum_c base[r(a), c] sum_{b in c} back[t, b] + sum over pairs (a, b) of (f - base) back[t, b]

Mostly there is one class of all labels. back = node beta / scale, alpha scaled to sum 1, as on the dense lattice
(`kernels.chain`). Where the differences would cancel, the sum is made in full over positive numbers.
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

    The factors are exp(score - shift), `excess` is the factor less that of the classes. `rows` and `columns` are the
    class of each label as the one before and as the one here; `base` (R, C) is exp(class_scores - shift), `turned` its
    transpose.
    """

    ptr: Ints
    newest: UInts32
    factor: Floats
    excess: Floats
    back_ptr: Ints
    oldest: UInts32
    back_factor: Floats
    back_excess: Floats
    rows: UInts32
    columns: UInts32
    base: Floats
    turned: Floats
    class_scores: Floats
    shift: float


class ClassSums(NamedTuple):
    """Of each token but the first of a sentence: alpha of the one before, and back, summed over classes; or no rows."""

    before: Floats
    here: Floats


@kernel
def _sum_in_full(
    first: int, last: int, labels: UInts32, factor: Floats, classes: UInts32, base: Floats, x: Floats
) -> float:
    """Sum over all labels of x times the factor of the pair with it; `base` is by the class of the label."""
    j, total = first, 0.0
    for a in range(len(x)):
        if j < last and labels[j] == a:
            total += factor[j] * x[a]
            j += 1
        else:
            total += base[classes[a]] * x[a]
    return total


@kernel
def _sum_classes(classes: UInts32, x: Floats, whole: float, out: Floats) -> None:
    """Sums of x over classes; `whole` is the sum of x."""
    if len(out) == 1:
        out[0] = whole
        return
    out[:] = 0.0
    for a in range(len(x)):
        out[classes[a]] += x[a]


@fast_kernel
def _enter(sums: Floats, turned: Floats, out: Floats) -> None:
    """out[c] = sum_r turned[c, r] sums[r]."""
    for c in range(len(out)):
        total = turned[c, 0] * sums[0]
        for r in range(1, len(sums)):
            total += turned[c, r] * sums[r]
        out[c] = total


@fast_kernel
def _step(
    n_labels: int, ptr: Ints, labels: UInts32, factor: Floats, excess: Floats, theirs: UInts32, mine: UInts32,
    turned: Floats, plain: Floats, x: Floats, out: Floats,
) -> None:  # fmt: skip
    """out[b] = sum over all labels a of x[a] times the factor of the pair.

    `theirs` is the class of a, `mine` that of b, turned[mine, theirs] the factor of their classes, and `plain`, by
    class of b, the sum with these factors.
    """
    for b in range(n_labels):
        total = plain[mine[b]]
        for j in range(ptr[b], ptr[b + 1]):
            total += excess[j] * x[labels[j]]
        if total < _CANCELS * plain[mine[b]]:
            total = _sum_in_full(ptr[b], ptr[b + 1], labels, factor, theirs, turned[mine[b]], x)
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
    span: float, values_only: bool, less_truth: bool, counts: Floats, messages: Floats, back: Floats,
    classes: ClassSums, out: PassOutput,
) -> None:  # fmt: skip
    """One forward-backward over a block of sentences.

    `span` is how far scores of pairs differ. counts (n_pairs,) gets expected counts, less true ones if asked for;
    messages and back (tokens of the block, L) are alpha and back, of hard sentences zeros.
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
    n_rows, n_columns = pairs.base.shape
    before, here = np.empty(n_rows), np.empty(n_columns)
    at_row, at_column = np.empty(n_rows), np.empty(n_columns)
    keeps_classes = len(classes.before) > 0
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
                _sum_classes(pairs.rows, messages[t - 1], 1.0, before)
                _enter(before, pairs.turned, at_column)
                if keeps_classes:
                    classes.before[t] = before
                _step(
                    n_labels, pairs.back_ptr, pairs.oldest, pairs.back_factor, pairs.back_excess, pairs.rows,
                    pairs.columns, pairs.turned, at_column, messages[t - 1], entered,
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
                if j >= 0 and less_truth:
                    counts[j] -= weight
                _sum_classes(pairs.columns, back[t], whole, here)
                _enter(here, pairs.base, at_row)
                if keeps_classes:
                    classes.here[t] = here
                _step(
                    n_labels, pairs.ptr, pairs.newest, pairs.factor, pairs.excess, pairs.columns, pairs.rows,
                    pairs.base, at_row, back[t], beta,
                )  # fmt: skip


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
    return (
        math.log(pairs.factor[j]) + pairs.shift
        if j >= 0
        else pairs.class_scores[pairs.rows[before], pairs.columns[here]]
    )
