"""Stochastic gradient steps on all candidates.

A weight is at its feature's number: block (column, kind) of L or L * L weights. All weights of a block are touched by
the same sentences, so that one clock a block tells how much of the penalty it still owes; it pays before it is read.
A merged column of n twins has the sum of n equal weights, each of which takes the step and pays: price and step are
n times those of one.

    fobos        w <- soft(w - eta g, eta kappa c)              the clock is the sum of eta kappa
    cumulative   w <- w - eta g, then towards 0 until all it has paid is c * clock   (Tsuruoka et al., 2009)
    subgradient  w <- w - eta (g + kappa c sign(w))             the clock counts steps of one length
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import fast_kernel, kernel
from vcrf.kernels.blocks import Sentences
from vcrf.kernels.one_sentence import Work, add, residuals
from vcrf.types import Floats, Ints, UInts8

FOBOS, CUMULATIVE, SUBGRADIENT = 0, 1, 2


class SentenceColumns(NamedTuple):
    """Columns of each sentence, and where in it they occur: indices of tokens in the sentence, and values."""

    ptr: Ints
    columns: Ints
    at: Ints
    tokens: Ints
    values: Floats


class ColumnBlocks(NamedTuple):
    """Of (kind - 1, column): strength (inf: none), twins, clock of the last payment, whether some weight is not 0.

    `stride` is the number of weights of a column.
    """

    stride: int
    strength: Floats
    twins: Floats
    last: Floats
    is_live: UInts8


class Weights(NamedTuple):
    """Weights by number of feature; what each has paid so far (cumulative, else empty)."""

    w: Floats
    paid: Floats


# ----- one block


@fast_kernel
def _soft(w: Floats, first: int, size: int, threshold: float) -> float:
    """Soft-threshold a block; returns the sum of what is left."""
    u, left = np.uint64(first), 0.0
    for k in range(np.uint64(size)):
        x = w[u + k]
        w[u + k] = x - min(max(x, -threshold), threshold)
    for k in range(np.uint64(size)):
        left += abs(w[u + k])
    return left


@fast_kernel
def _soft_step(w: Floats, first: int, size: int, g: Floats, g_first: int, step: float, threshold: float) -> float:
    """The same after a step along -g."""
    u, v = np.uint64(first), np.uint64(g_first)
    for k in range(np.uint64(size)):
        w[u + k] -= step * g[v + k]
    return _soft(w, first, size, threshold)


@kernel
def _clip(weights: Weights, first: int, size: int, g: Floats, g_first: int, step: float, due: float) -> float:
    """A step along -g, then towards 0 as far as each weight has not paid what is due; returns the sum that is left."""
    w, paid, left = weights.w, weights.paid, 0.0
    for k in range(size):
        x = w[first + k] - (step * g[g_first + k] if step > 0.0 else 0.0)
        z = x
        if x > 0.0:
            z = max(0.0, x - (due + paid[first + k]))
        elif x < 0.0:
            z = min(0.0, x + (due - paid[first + k]))
        paid[first + k] += z - x
        w[first + k] = z
        left += abs(z)
    return left


@kernel
def _swing(w: Floats, first: int, size: int, d: float, n: float) -> float:
    """N steps of length d towards 0, past which they swing; returns the sum that is left."""
    left = 0.0
    for k in range(size):
        x = w[first + k]
        if x != 0.0 and d > 0.0:
            whole = math.floor(abs(x) / d)
            rest = abs(x) - min(whole, n) * d
            if n > whole and (n - whole) % 2.0 == 1.0 and rest > 0.0:
                rest -= d
            w[first + k] = math.copysign(1.0, x) * rest
        left += abs(w[first + k])
    return left


@kernel
def _step_against(w: Floats, first: int, size: int, g: Floats, g_first: int, step: float, d: float) -> float:
    """A step along -g and the subgradient of the penalty, of length d; returns the sum of what is left."""
    left = 0.0
    for k in range(size):
        x = w[first + k]
        sign = 1.0 if x > 0.0 else -1.0 if x < 0.0 else 0.0
        w[first + k] = x - step * g[g_first + k] - d * sign
        left += abs(w[first + k])
    return left


@kernel
def pay(weights: Weights, blocks: ColumnBlocks, kind: int, c: int, first: int, size: int, rule: int, clock: float,
        length: float) -> None:  # fmt: skip
    """A block pays what it owes. `length` is that of a step of the subgradient at strength 1."""
    owed = clock - blocks.last[kind, c]
    blocks.last[kind, c] = clock
    if owed == 0.0 or blocks.is_live[kind, c] == 0:
        return
    price = blocks.strength[kind, c] * blocks.twins[kind, c]
    if rule == FOBOS:
        left = _soft(weights.w, first, size, price * owed)
    elif rule == CUMULATIVE:
        left = _clip(weights, first, size, weights.w, 0, 0.0, price * clock)
    else:
        left = _swing(weights.w, first, size, price * length, owed)
    blocks.is_live[kind, c] = left > 0.0


@kernel
def _move(weights: Weights, blocks: ColumnBlocks, kind: int, c: int, first: int, size: int, g: Floats, g_first: int,
          reach: float, rule: int, eta: float, after: float, length: float) -> None:  # fmt: skip
    """The step of a block that has paid, with its own penalty; no entry of g is larger than `reach`."""
    twins = blocks.twins[kind, c]
    price, step = blocks.strength[kind, c] * twins, eta * twins
    if rule == FOBOS:
        threshold = price * (after - blocks.last[kind, c])
        if blocks.is_live[kind, c] == 0 and step * reach <= threshold:
            blocks.last[kind, c] = after
            return
        left = _soft_step(weights.w, first, size, g, g_first, step, threshold)
    elif rule == CUMULATIVE:
        left = _clip(weights, first, size, g, g_first, step, price * after)
    else:
        left = _step_against(weights.w, first, size, g, g_first, step, price * length)
    blocks.last[kind, c] = after
    blocks.is_live[kind, c] = left > 0.0


# ----- passes


@kernel
def score(seen: SentenceColumns, i: int, n: int, n_labels: int, w: Floats, blocks: ColumnBlocks, work: Work) -> None:
    """Scores of labels and pairs of a sentence of n tokens."""
    size, stride = n_labels * n_labels, blocks.stride
    work.node[: n * n_labels] = 0.0
    work.pair[: n * size] = 0.0
    for j in range(seen.ptr[i], seen.ptr[i + 1]):
        c = seen.columns[j]
        has_labels, has_pairs = blocks.is_live[0, c] == 1, blocks.is_live[1, c] == 1
        if not has_labels and not has_pairs:
            continue
        for e in range(seen.at[j], seen.at[j + 1]):
            t = seen.tokens[e]
            x = seen.values[e] if len(seen.values) else 1.0
            if has_labels:
                add(w, c * stride, x, work.node, t * n_labels, n_labels)
            if has_pairs and t > 0:
                add(w, c * stride + n_labels, x, work.pair, t * size, size)


@kernel
def visit(
    order: Ints, data: Sentences, seen: SentenceColumns, n_labels: int, weights: Weights, blocks: ColumnBlocks,
    work: Work, rule: int, eta: float, kappa: float, clock: float, values: Floats,
) -> float:  # fmt: skip
    """A step for each sentence of `order`, one after another; returns the clock.

    Penalties of blocks that a sentence does not have are left to be paid when they are next read.
    """
    size, stride = n_labels * n_labels, blocks.stride
    tick = 1.0 if rule == SUBGRADIENT else eta * kappa
    for i in order:
        n = data.ptr[i + 1] - data.ptr[i]
        for j in range(seen.ptr[i], seen.ptr[i + 1]):
            c = seen.columns[j]
            pay(weights, blocks, 0, c, c * stride, n_labels, rule, clock, eta * kappa)
            pay(weights, blocks, 1, c, c * stride + n_labels, size, rule, clock, eta * kappa)
        if n > 0:
            score(seen, i, n, n_labels, weights.w, blocks, work)
            values[i] = residuals(data, i, n_labels, work)
            for j in range(seen.ptr[i], seen.ptr[i + 1]):
                for kind in range(2):
                    if blocks.strength[kind, seen.columns[j]] < np.inf:
                        _step_column(
                            seen, j, kind, n_labels, weights, blocks, work, rule, eta * data.weights[i], clock + tick,
                            eta * kappa,
                        )  # fmt: skip
        clock += tick
    return clock


@kernel
def _step_column(
    seen: SentenceColumns, j: int, kind: int, n_labels: int, weights: Weights, blocks: ColumnBlocks, work: Work,
    rule: int, eta: float, after: float, length: float,
) -> None:  # fmt: skip
    """The step of a column of the sentence, from the residuals where it occurs."""
    c = seen.columns[j]
    size = n_labels if kind == 0 else n_labels * n_labels
    first = c * blocks.stride + (0 if kind == 0 else n_labels)
    found = work.node if kind == 0 else work.pair
    begin, end = seen.at[j], seen.at[j + 1]
    if kind == 1 and seen.tokens[begin] == 0:  # no pair ends at the first token
        begin += 1
    if begin == end:
        return
    if end - begin == 1 and len(seen.values) == 0:
        t = seen.tokens[begin]
        reach = work.largest[2 * t + kind]
        _move(weights, blocks, kind, c, first, size, found, t * size, reach, rule, eta, after, length)
        return
    reach = 0.0
    for e in range(begin, end):
        x = abs(seen.values[e]) if len(seen.values) else 1.0
        reach += x * work.largest[2 * seen.tokens[e] + kind]
    threshold = blocks.strength[kind, c] * (after - blocks.last[kind, c])
    if rule == FOBOS and blocks.is_live[kind, c] == 0 and eta * reach <= threshold:
        blocks.last[kind, c] = after
        return
    work.gradient[:size] = 0.0
    for e in range(begin, end):
        x = seen.values[e] if len(seen.values) else 1.0
        add(found, seen.tokens[e] * size, x, work.gradient, 0, size)
    _move(weights, blocks, kind, c, first, size, work.gradient, 0, reach, rule, eta, after, length)


@kernel
def gradient(
    data: Sentences, seen: SentenceColumns, n_labels: int, w: Floats, blocks: ColumnBlocks, work: Work, out: Floats,
    values: Floats,
) -> None:  # fmt: skip
    """Add the weighted gradient of all sentences on all candidates to `out`; values of the sentences."""
    size, stride = n_labels * n_labels, blocks.stride
    for i in range(len(data.ptr) - 1):
        n = data.ptr[i + 1] - data.ptr[i]
        if n == 0:
            continue
        score(seen, i, n, n_labels, w, blocks, work)
        values[i] = residuals(data, i, n_labels, work)
        for j in range(seen.ptr[i], seen.ptr[i + 1]):
            c = seen.columns[j]
            for e in range(seen.at[j], seen.at[j + 1]):
                t = seen.tokens[e]
                x = data.weights[i] * (seen.values[e] if len(seen.values) else 1.0)
                if blocks.strength[0, c] < np.inf:
                    add(work.node, t * n_labels, x, out, c * stride, n_labels)
                if blocks.strength[1, c] < np.inf and t > 0:
                    add(work.pair, t * size, x, out, c * stride + n_labels, size)


@kernel
def step_all(weights: Weights, blocks: ColumnBlocks, n_labels: int, g: Floats, rule: int, eta: float, kappa: float,
             clock: float) -> float:  # fmt: skip
    """One step of all blocks along a gradient; returns the clock."""
    size, stride = n_labels * n_labels, blocks.stride
    after = clock + (1.0 if rule == SUBGRADIENT else eta * kappa)
    for c in range(blocks.last.shape[1]):
        for kind in range(2):
            if blocks.strength[kind, c] < np.inf:
                first = c * stride + (0 if kind == 0 else n_labels)
                n = n_labels if kind == 0 else size
                _move(weights, blocks, kind, c, first, n, g, first, np.inf, rule, eta, after, eta * kappa)
    return after


@kernel
def settle(weights: Weights, blocks: ColumnBlocks, n_labels: int, rule: int, clock: float, length: float) -> None:
    """All blocks pay what they owe."""
    size, stride = n_labels * n_labels, blocks.stride
    for c in range(blocks.last.shape[1]):
        pay(weights, blocks, 0, c, c * stride, n_labels, rule, clock, length)
        pay(weights, blocks, 1, c, c * stride + n_labels, size, rule, clock, length)


@kernel
def measure(w: Floats, blocks: ColumnBlocks, n_labels: int) -> tuple[float, int]:
    """The penalty, and how many weights are not 0."""
    stride, total, count = blocks.stride, 0.0, 0
    for c in range(blocks.last.shape[1]):
        for kind in range(2):
            if blocks.is_live[kind, c] == 0:
                continue
            first, last = (
                (c * stride, c * stride + n_labels) if kind == 0 else (c * stride + n_labels, (c + 1) * stride)
            )
            sums = 0.0
            for k in range(first, last):
                sums += abs(w[k])
                count += w[k] != 0.0
            total += blocks.strength[kind, c] * sums
    return total, count


@kernel
def violations(w: Floats, g: Floats, blocks: ColumnBlocks, n_labels: int, floor: float) -> tuple[float, float]:
    """The largest |g| / c of all candidates, and the largest violation of the optimality conditions, relative to c.

    The violation is |g + c sign(w)|, or what |g| is above c. Where c is 0 the scale of violations is `floor`.
    """
    stride, largest, worst = blocks.stride, 0.0, 0.0
    for c in range(blocks.last.shape[1]):
        for kind in range(2):
            strength = blocks.strength[kind, c]
            if strength == np.inf:
                continue
            first, last = (
                (c * stride, c * stride + n_labels) if kind == 0 else (c * stride + n_labels, (c + 1) * stride)
            )
            scale = strength if strength > 0.0 else floor
            for k in range(first, last):
                size = abs(g[k])
                if size > 0.0:
                    largest = max(largest, size / strength)
                off = size - strength
                if w[k] != 0.0:
                    off = abs(g[k] + (strength if w[k] > 0.0 else -strength))
                worst = max(worst, off / scale)
    return largest, worst
