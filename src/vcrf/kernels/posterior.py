"""Posteriors of many sentences in one call: label marginals and partition functions, order 2 or more.

Codes and tables are those of `kernels.decode`. Weights are pushed to the front as in `kernels.log_domain.push`: from
right to left each arc becomes the probability of its label given its history, from left to right these give the
probability of every history. Messages stay in the log domain, so -inf (a forbidden label or pair) and scores of any
size are exact; only what has a probability below 1e-304 becomes 0.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.decode import correct, power
from vcrf.kernels.exponential import exp_inplace
from vcrf.kernels.scores import LocalScores, ScoreTables
from vcrf.types import Bools, Floats, Ints, UInts64

# The least exponent that exp_inplace takes, and a bound just above its exponential.
_LEAST = -700.0
_NOTHING = 1e-304


@inner_kernel
def conditionals(
    table: Floats, node: Floats, bwd_next: Floats, bwd: Floats, cond: Floats, bits: UInts64, scales: Floats
) -> float:
    """One position from right to left: cond[s, b] = P(b | s), bwd[s] = log of the total; returns the shift of bwd.

    ``cond[s, b] = exp(table[s, b] + node[b] + bwd_next[s'] - bwd[s])`` with s' the history (s, b). `bits` and `scales`
    are scratch of exp_inplace.
    """
    n_labels = len(node)
    n_states = len(bwd_next)
    n_histories = len(table) // n_labels
    highest = -np.inf
    for s in range(n_histories):
        first = s * n_labels
        after = first % n_states
        peak = -np.inf
        for b in range(n_labels):
            value = table[first + b] + (node[b] + bwd_next[after + b])
            cond[first + b] = value
            peak = value if value > peak else peak
        bwd[s] = peak
        highest = peak if peak > highest else highest
        base = peak if peak > -np.inf else 0.0
        for b in range(n_labels):
            value = cond[first + b] - base
            cond[first + b] = value if value > _LEAST else _LEAST
    exp_inplace(cond[: len(table)], bits[: len(table)], scales[: len(table)])
    for s in range(n_histories):
        first = s * n_labels
        total = 0.0
        for b in range(n_labels):
            value = cond[first + b]
            value = value if value > _NOTHING else 0.0
            cond[first + b] = value
            total += value
        if total > 0.0:
            for b in range(n_labels):
                cond[first + b] /= total
            bwd[s] += np.log(total) - highest
    return highest


@inner_kernel
def push_sentence(
    start: int, length: int, order: int, node: Floats, tables: ScoreTables, local: LocalScores,
    natural: Floats, bwd: Floats, cond: Floats, bits: UInts64, scales: Floats,
) -> float:  # fmt: skip
    """Conditionals of all positions of one sentence, and its log partition; -inf when everything is forbidden.

    `cond` has one row, or one row a position if it is to be kept; `natural` is a copy of the tables to correct.
    """
    n_labels = node.shape[1]
    ptr, size, code, score = local
    log_z = 0.0
    bwd[length % 2] = 0.0
    for u in range(length - 1, -1, -1):
        t, depth = start + u, min(u + 1, order)
        first, last = tables.offsets[depth], tables.offsets[depth + 1]
        scratch, table = natural[first:last], tables.natural[first:last]
        correct(scratch, table, size, code, score, ptr[t], ptr[t + 1], depth, n_labels, False)
        row = cond[min(u, len(cond) - 1)]
        shift = conditionals(scratch, node[t], bwd[(u + 1) % 2], bwd[u % 2], row, bits, scales)
        correct(scratch, table, size, code, score, ptr[t], ptr[t + 1], depth, n_labels, True)
        log_z += shift
        if shift == -np.inf:
            break
    return log_z + bwd[0, 0] if log_z > -np.inf and length > 0 else log_z


@inner_kernel
def forward_sentence(length: int, cond: Floats, fwd: Floats, out: Floats) -> None:
    """out[u, b] = P(label b at u) from the conditionals; `fwd` is scratch, two rows of histories."""
    n_labels = out.shape[1]
    n_states = fwd.shape[1]
    fwd[0, 0] = 1.0
    n_histories = 1
    for u in range(length):
        here, after = fwd[u % 2], fwd[(u + 1) % 2]
        after[:] = 0.0
        out[u] = 0.0
        for s in range(n_histories):
            mass = here[s]
            first = s * n_labels
            to = first % n_states
            for b in range(n_labels):
                part = mass * cond[u, first + b]
                after[to + b] += part
                out[u, b] += part
        n_histories = min(n_histories * n_labels, n_states)


@kernel
def label_marginals(
    sent_ptr: Ints, order: int, node: Floats, tables: ScoreTables, local: LocalScores, log_z: Floats, out: Floats
) -> None:
    """Posterior of every label at every token, and the log partition of every sentence.

    Parameters
    ----------
    sent_ptr : (n_sentences + 1,) int64
    order : int
        Length of the longest tag pattern, at least 2.
    node : (n_tokens, n_labels) float64
    tables, local : scores of tag patterns anywhere, and of those that fire at one token
    log_z : (n_sentences,) float64
        Written: log of the sum over label sequences of exp(score); -inf when all are forbidden.
    out : (n_tokens, n_labels) float64
        Written: the marginals; of no meaning in a sentence where all is forbidden. With no rows only log_z is wanted.
    """
    n_labels = node.shape[1]
    n_states = power(n_labels, order - 1)
    n_arcs = n_states * n_labels
    longest = np.max(sent_ptr[1:] - sent_ptr[:-1])
    is_wanted = len(out) > 0
    cond = np.zeros((max(longest, 1) if is_wanted else 1, n_arcs))
    bits = np.zeros(n_arcs, np.uint64)
    scales = bits.view(np.float64)
    natural = tables.natural.copy()
    bwd, fwd = np.zeros((2, n_states)), np.zeros((2, n_states))
    for i in range(len(sent_ptr) - 1):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        log_z[i] = push_sentence(start, stop - start, order, node, tables, local, natural, bwd, cond, bits, scales)
        if is_wanted and log_z[i] > -np.inf:
            forward_sentence(stop - start, cond, fwd, out[start:stop])


@kernel
def dense_arcs(start: int, order: int, node: Floats, tables: ScoreTables, local: LocalScores, out: Floats) -> None:
    """out[u, arc] = sum of all scores on an arc, for the sentence that starts at a token; (n_positions, n_arcs)."""
    n_labels = node.shape[1]
    for u in range(len(out)):
        t, depth = start + u, min(u + 1, order)
        first, last = tables.offsets[depth], tables.offsets[depth + 1]
        for arc in range(last - first):
            out[u, arc] = tables.natural[first + arc] + node[t, arc % n_labels]
        for j in range(local.ptr[t], local.ptr[t + 1]):
            if local.size[j] <= depth:
                for arc in range(int(local.code[j]), last - first, power(n_labels, int(local.size[j]))):
                    out[u, arc] += local.score[j]


@kernel
def first_dead_end(sent_ptr: Ints, is_allowed: Bools, is_pair_allowed: Bools) -> tuple[int, int]:
    """First sentence without an allowed sequence, and the token in it that none gets past; (-1, -1) if all have one.

    Parameters
    ----------
    sent_ptr : (n_sentences + 1,) int64
    is_allowed : (n_tokens, n_labels) bool
    is_pair_allowed : (n_labels, n_labels) bool, by label before and label after
    """
    n_labels = is_allowed.shape[1]
    reached, next_reached = np.zeros(n_labels, np.bool_), np.zeros(n_labels, np.bool_)
    for i in range(len(sent_ptr) - 1):
        for t in range(sent_ptr[i], sent_ptr[i + 1]):
            is_first = t == sent_ptr[i]
            is_alive = False
            next_reached[:] = False
            for b in range(n_labels):
                if is_allowed[t, b]:
                    for a in range(n_labels):
                        if is_first or (reached[a] and is_pair_allowed[a, b]):
                            next_reached[b] = is_alive = True
                            break
            if not is_alive:
                return i, t - sent_ptr[i]
            reached[:] = next_reached
    return -1, -1
