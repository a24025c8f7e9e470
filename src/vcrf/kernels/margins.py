"""Rivals of the true label sequence: the best by score plus loss, and all that are best for some trade-off of the two.

A rival is any sequence other than the true one. Both recursions run over states (last order - 1 labels, state of the
loss automaton); the true prefix is followed apart and every departure from it enters the table, so that the true
sequence itself never does.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.types import Floats, Ints

# Losses that differ by less are one: rounding of sums would otherwise double the frontier at every step.
_TINY = 1e-12


@kernel
def best_rival(
    arcs: Floats, n_labels: int, y: Ints, rate: float, state_ptr: Ints, following: Ints, cost: Floats, final: Floats,
    init: float,
) -> tuple[float, float]:  # fmt: skip
    """Largest rate * score + loss over rivals, and rate * score of the true sequence.

    `arcs` is (n_positions, n_contexts * n_labels); -inf for the first if there is no rival.
    """
    n_contexts = arcs.shape[1] // n_labels
    n_states = n_contexts * np.max(state_ptr[1:] - state_ptr[:-1])
    best, new = np.full(n_states, -np.inf), np.empty(n_states)
    context, state, total, n_live = 0, 0, init, 1
    score = 0.0
    for t in range(len(arcs)):
        width, next_width = state_ptr[t + 1] - state_ptr[t], state_ptr[t + 2] - state_ptr[t + 1]
        new[:] = -np.inf
        for c in range(n_live):
            for q in range(width):
                here = best[c * width + q]
                if here == -np.inf:
                    continue
                row = state_ptr[t] + q
                for b in range(n_labels):
                    to = ((c * n_labels + b) % n_contexts) * next_width + following[row, b]
                    value = here + rate * arcs[t, c * n_labels + b] + cost[row, b]
                    new[to] = max(new[to], value)
        row = state_ptr[t] + state
        for b in range(n_labels):
            if b != y[t]:
                to = ((context * n_labels + b) % n_contexts) * next_width + following[row, b]
                value = total + rate * arcs[t, context * n_labels + b] + cost[row, b]
                new[to] = max(new[to], value)
        arc = rate * arcs[t, context * n_labels + y[t]]
        total += arc + cost[row, y[t]]
        score += arc
        state = following[row, y[t]]
        context = (context * n_labels + y[t]) % n_contexts
        n_live = min(n_live * n_labels, n_contexts)
        best, new = new, best
    width = len(final)
    result = -np.inf
    for c in range(n_live):
        for q in range(width):
            result = max(result, best[c * width + q] + final[q])
    return result, score


@kernel
def merge_frontiers(
    losses: Floats, scores: Floats, n: int, other_losses: Floats, other_scores: Floats, n_other: int, loss: float,
    score: float, kept_losses: Floats, kept_scores: Floats,
) -> int:  # fmt: skip
    """Merge a frontier, shifted by (loss, score), into another; the new number of pairs, -1 if there is no room.

    A frontier has losses that fall and scores that rise strictly: pairs that no other pair beats in both.
    """
    i, j, n_kept = 0, 0, 0
    while i < n or j < n_other:
        if j >= n_other or (i < n and losses[i] >= other_losses[j] + loss):
            v, s = losses[i], scores[i]
            i += 1
        else:
            v, s = other_losses[j] + loss, other_scores[j] + score
            j += 1
        if n_kept > 0 and s <= kept_scores[n_kept - 1]:
            continue  # as much loss and no more score
        if n_kept > 0 and kept_losses[n_kept - 1] - v <= _TINY:
            kept_scores[n_kept - 1] = s  # the same loss, more score
            continue
        if n_kept == len(kept_losses):
            return -1
        kept_losses[n_kept], kept_scores[n_kept] = v, s
        n_kept += 1
    losses[:n_kept] = kept_losses[:n_kept]
    scores[:n_kept] = kept_scores[:n_kept]
    return n_kept


@kernel
def rival_frontier(
    arcs: Floats, n_labels: int, y: Ints, state_ptr: Ints, following: Ints, cost: Floats, final: Floats, init: float,
    losses: Floats, scores: Floats,
) -> int:  # fmt: skip
    """Pairs (loss, score less that of y) of rivals that no rival beats in both; their number.

    They go to `losses` (falling) and `scores` (rising), whose length limits every frontier: -1 if it does not suffice.
    """
    room = len(losses)
    n_contexts = arcs.shape[1] // n_labels
    n_states = n_contexts * np.max(state_ptr[1:] - state_ptr[:-1])
    v, s, n = np.empty((n_states, room)), np.empty((n_states, room)), np.zeros(n_states, np.int64)
    new_v, new_s, new_n = np.empty((n_states, room)), np.empty((n_states, room)), np.zeros(n_states, np.int64)
    kept_v, kept_s, zero = np.empty(room), np.empty(room), np.zeros(1)
    context, state, true_loss, true_score, n_live = 0, 0, init, 0.0, 1
    for t in range(len(arcs)):
        width, next_width = state_ptr[t + 1] - state_ptr[t], state_ptr[t + 2] - state_ptr[t + 1]
        new_n[:] = 0
        for c in range(n_live):
            for q in range(width):
                here, row = c * width + q, state_ptr[t] + q
                if n[here] == 0:
                    continue
                for b in range(n_labels):
                    arc = arcs[t, c * n_labels + b]
                    if arc == -np.inf:
                        continue
                    to = ((c * n_labels + b) % n_contexts) * next_width + following[row, b]
                    new_n[to] = merge_frontiers(
                        new_v[to], new_s[to], new_n[to], v[here], s[here], n[here], cost[row, b], arc, kept_v, kept_s
                    )
                    if new_n[to] < 0:
                        return -1
        row = state_ptr[t] + state
        for b in range(n_labels):
            arc = arcs[t, context * n_labels + b]
            if b == y[t] or arc == -np.inf:
                continue
            to = ((context * n_labels + b) % n_contexts) * next_width + following[row, b]
            new_n[to] = merge_frontiers(
                new_v[to], new_s[to], new_n[to], zero, zero, 1, true_loss + cost[row, b], true_score + arc,
                kept_v, kept_s,
            )  # fmt: skip
            if new_n[to] < 0:
                return -1
        true_loss += cost[row, y[t]]
        true_score += arcs[t, context * n_labels + y[t]]
        state = following[row, y[t]]
        context = (context * n_labels + y[t]) % n_contexts
        n_live = min(n_live * n_labels, n_contexts)
        v, new_v = new_v, v
        s, new_s = new_s, s
        n, new_n = new_n, n
    found, width = 0, len(final)
    for c in range(n_live):
        for q in range(width):
            here = c * width + q
            found = merge_frontiers(
                losses, scores, found, v[here], s[here], n[here], final[q], -true_score, kept_v, kept_s
            )
            if found < 0:
                return -1
    return found
