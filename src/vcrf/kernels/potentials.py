"""Scores of labels and patterns at the tokens of a block, and which sentences they are too wide for.

Sentences whose potentials span more than MAX_RANGE nats within the memory of the chain are flagged and left to the
log-domain lattice, because a message could underflow.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import fast_kernel, inner_kernel, kernel, outer_fast_kernel
from vcrf.kernels.blocks import PassOutput, Sentences
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.rows import sum_rows
from vcrf.kernels.scores import LocalFactors
from vcrf.types import Floats, Ints, UInts8, UInts32

# exp(-600) is far above the smallest positive double (exp(-708)), with room for a product of marginals.
MAX_RANGE = 600.0


@outer_fast_kernel
def key_scores(
    ptr: Ints,
    labels: UInts32,
    features: UInts32,
    values: Floats,
    w: Floats,
    first: int,
    last: int,
    out: Floats,
) -> None:
    """out[row, b] = sum of w over the entries of each row; `values` is empty for indicators."""
    n, flat = np.uint64(out.shape[1]), out.reshape(-1)
    one = np.empty(1)
    one[0] = 1.0
    value, step = (values, 1) if len(values) else (one, 0)
    for row in range(first, last):
        at = np.uint64(row) * n
        for b in range(n):
            flat[at + b] = 0.0
        for j in range(ptr[row], ptr[row + 1]):
            flat[at + labels[j]] += w[features[j]] * value[j * step]


@kernel
def slot_scores(
    entry_ptr: Ints, features: UInts32, values: Floats, slot: UInts32, w: Floats, slot_ptr: Ints, first: int, last: int,
    score: Floats, factor: Floats,
) -> None:  # fmt: skip
    """Scores of the slots of tokens first .. last-1, sums of w over their entries, and exp of them.

    `values` is empty for indicators.
    """
    a, z = slot_ptr[first], slot_ptr[last]
    for k in range(a, z):
        score[k] = 0.0
    e, f = np.uint64(entry_ptr[first]), np.uint64(entry_ptr[last])
    if len(values) == 0:
        for j in range(e, f):
            score[slot[j]] += w[features[j]]
    else:
        for j in range(e, f):
            score[slot[j]] += w[features[j]] * values[j]
    for k in range(a, z):
        # A hard sentence is done elsewhere; the clip only keeps exp_inplace in its domain.
        factor[k] = min(max(score[k], -700.0), 700.0)
    bits = np.empty(z - a, np.uint64)
    exp_inplace(factor[a:z], bits, bits.view(np.float64))


@fast_kernel
def node_scores(rows: UInts32, scores: Floats, first: int, last: int, out: Floats) -> None:
    """out[(t - first) * L + b] = sum over groups of the score row of the token's key (row 0 is nothing: zeros)."""
    n, n_groups, flat, of_token = (
        np.uint64(scores.shape[1]),
        np.uint64(rows.shape[1]),
        scores.reshape(-1),
        rows.reshape(-1),
    )
    at = np.uint64(0)
    for t in range(np.uint64(first), np.uint64(last)):
        sum_rows(flat, of_token, t * n_groups, n_groups, out, at, n)
        at += n


@inner_kernel
def shift_nodes(
    node: Floats,
    n_labels: int,
    y: UInts32,
    t0: int,
    first: int,
    last: int,
    cost: float,
    allowed: UInts8,
    clamp: bool,
    span: Floats,
    shift: Floats,
) -> float:
    """Add the loss to wrong labels and subtract each row's maximum; returns the score of the true labels.

    When clamped, only the allowed labels count, and there is no loss.
    """
    n = np.uint64(n_labels)
    truth = 0.0
    at = np.uint64(first) * n
    for t in range(first, last):
        gold = at + np.uint64(y[t0 + t])
        truth += node[gold]
        if cost != 0.0 and not clamp:
            for b in range(n):
                if len(allowed) == 0 or allowed[t0 + t, b] == 0:
                    node[at + b] += cost
            if len(allowed) == 0:
                node[gold] -= cost
        high, low = node[gold], node[gold]
        for b in range(n):
            z = node[at + b]
            if not clamp or allowed[t0 + t, b] == 1:
                high = z if z > high else high
                low = z if z < low else low
        for b in range(n):
            # A hard sentence is done elsewhere; the clip only keeps exp_inplace in its domain.
            z = node[at + b] - high
            node[at + b] = z if z > -700.0 else -700.0
        span[t] = high - low
        shift[t] = high
        at += n
    return truth


@inner_kernel
def is_hard(span: Floats, table_span: float, first: int, last: int, order: int, bound: float) -> bool:
    """Whether a message of the sentence could span more than MAX_RANGE nats.

    Every state is reached from every state p-1 steps before, so two entries of a message differ by at most the
    spans of the potentials of those steps, and those of two rows of a loss automaton by its bound more. (NaN or
    infinite potentials are hard too.)
    """
    memory = max(order - 1, 1)
    for t in range(first, last):
        total = bound
        for u in range(max(first, t - memory + 1), t + 1):
            total += span[u] + table_span
        if not total < MAX_RANGE:
            return True
    return False


@inner_kernel
def spans_and_flags(
    sentences: Sentences, first: int, last: int, n_labels: int, node: Floats, shift: Floats, order: int,
    table_span: float, cor: LocalFactors, clamp: bool, out: PassOutput,
) -> None:  # fmt: skip
    """Shift the node scores, set out.values to minus the true labels' scores, flag hard sentences.

    `table_span` is by how much the scores of plain tag patterns, up to the order, differ.
    """
    t0 = sentences.ptr[first]
    span = np.empty(sentences.ptr[last] - t0)
    for i in range(first, last):
        a, z = sentences.ptr[i] - t0, sentences.ptr[i + 1] - t0
        out.values[i] = -shift_nodes(
            node, n_labels, sentences.y, t0, a, z, sentences.costs[i], sentences.allowed, clamp, span, shift
        )
        for t in range(a, z):
            for j in range(cor.ptr[t0 + t], cor.ptr[t0 + t + 1]):
                span[t] += abs(cor.score[j])
        bound = sentences.bounds[i] if len(sentences.bounds) > 0 else 0.0
        out.hard[i] = 1 if is_hard(span, table_span, a, z, order, bound) else 0
