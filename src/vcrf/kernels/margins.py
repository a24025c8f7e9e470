"""Rivals of the true label sequence: the best by score plus loss, and all that are best for some trade-off of the two.

A rival is any sequence other than the true one. Both recursions run over states (context, state of the loss automaton);
the true prefix is followed apart and every departure from it enters the table, so that the true sequence itself never
does. Contexts are those of a pattern automaton, or the last labels of a dense lattice: see `Steps`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.types import Floats, Ints, UInts32

# Losses that differ by less are one: rounding of sums would otherwise double the frontier at every step.
_TINY = 1e-12


class Steps(NamedTuple):
    """Scores of one sentence by context and label.

    node : (n_positions, L), arcs : (n_positions, n_arcs); at position 0 the label b scores node[0, b] alone
    table : (n_contexts, L) the arc that a context takes with a label; target : (n_arcs,) the context that it leads to
    first : (L,) the context after the first label
    """

    node: Floats
    arcs: Floats
    table: UInts32
    target: Ints
    first: Ints


@kernel
def _step(steps: Steps, t: int, context: int, label: int) -> tuple[float, int]:
    """Score of a label after a context, and the context that follows."""
    if t == 0:
        return steps.node[0, label], steps.first[label]
    arc = steps.table[context, label]
    return steps.node[t, label] + steps.arcs[t, arc], steps.target[arc]


@kernel
def best_rival(
    steps: Steps, y: Ints, rate: float, state_ptr: Ints, following: Ints, cost: Floats, final: Floats, init: float
) -> tuple[float, float]:
    """Largest rate * score + loss over rivals, and rate * score of the true sequence.

    -inf for the first if there is no rival.
    """
    n_contexts, n_labels = steps.table.shape
    n_states = n_contexts * np.max(state_ptr[1:] - state_ptr[:-1])
    best, new = np.full(n_states, -np.inf), np.empty(n_states)
    context, state, total = 0, 0, init
    score = 0.0
    for t in range(len(y)):
        width, next_width = state_ptr[t + 1] - state_ptr[t], state_ptr[t + 2] - state_ptr[t + 1]
        new[:] = -np.inf
        for c in range(n_contexts if t > 0 else 0):
            for b in range(n_labels):
                arc, following_context = _step(steps, t, c, b)
                for q in range(width):
                    here, row = best[c * width + q], state_ptr[t] + q
                    if here > -np.inf:
                        to = following_context * next_width + following[row, b]
                        new[to] = max(new[to], here + rate * arc + cost[row, b])
        row = state_ptr[t] + state
        for b in range(n_labels):
            if b != y[t]:
                arc, to = _step(steps, t, context, b)
                to = to * next_width + following[row, b]
                new[to] = max(new[to], total + rate * arc + cost[row, b])
        arc, context = _step(steps, t, context, y[t])
        total += rate * arc + cost[row, y[t]]
        score += rate * arc
        state = following[row, y[t]]
        best, new = new, best
    width = len(final)
    result = -np.inf
    for c in range(n_contexts):
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
    steps: Steps, y: Ints, state_ptr: Ints, following: Ints, cost: Floats, final: Floats, init: float, losses: Floats,
    scores: Floats,
) -> int:  # fmt: skip
    """Pairs (loss, score less that of y) of rivals that no rival beats in both; their number.

    They go to `losses` (falling) and `scores` (rising), whose length limits every frontier: -1 if it does not suffice.
    """
    room = len(losses)
    n_contexts, n_labels = steps.table.shape
    n_states = n_contexts * np.max(state_ptr[1:] - state_ptr[:-1])
    v, s, n = np.empty((n_states, room)), np.empty((n_states, room)), np.zeros(n_states, np.int64)
    new_v, new_s, new_n = np.empty((n_states, room)), np.empty((n_states, room)), np.zeros(n_states, np.int64)
    kept_v, kept_s, zero = np.empty(room), np.empty(room), np.zeros(1)
    context, state, true_loss, true_score = 0, 0, init, 0.0
    for t in range(len(y)):
        width, next_width = state_ptr[t + 1] - state_ptr[t], state_ptr[t + 2] - state_ptr[t + 1]
        new_n[:] = 0
        for c in range(n_contexts if t > 0 else 0):
            for b in range(n_labels):
                arc, to_context = _step(steps, t, c, b)
                for q in range(width if arc > -np.inf else 0):
                    here, row = c * width + q, state_ptr[t] + q
                    if n[here] == 0:
                        continue
                    to = to_context * next_width + following[row, b]
                    new_n[to] = merge_frontiers(
                        new_v[to], new_s[to], new_n[to], v[here], s[here], n[here], cost[row, b], arc, kept_v, kept_s
                    )
                    if new_n[to] < 0:
                        return -1
        row = state_ptr[t] + state
        for b in range(n_labels):
            arc, to_context = _step(steps, t, context, b)
            if b == y[t] or arc == -np.inf:
                continue
            to = to_context * next_width + following[row, b]
            new_n[to] = merge_frontiers(
                new_v[to], new_s[to], new_n[to], zero, zero, 1, true_loss + cost[row, b], true_score + arc,
                kept_v, kept_s,
            )  # fmt: skip
            if new_n[to] < 0:
                return -1
        arc, context = _step(steps, t, context, y[t])
        true_loss += cost[row, y[t]]
        true_score += arc
        state = following[row, y[t]]
        v, new_v = new_v, v
        s, new_s = new_s, s
        n, new_n = new_n, n
    found, width = 0, len(final)
    for c in range(n_contexts):
        for q in range(width):
            here = c * width + q
            found = merge_frontiers(
                losses, scores, found, v[here], s[here], n[here], final[q], -true_score, kept_v, kept_s
            )
            if found < 0:
                return -1
    return found
