"""The label sequences that are best for some trade-off of loss and score, of one sentence in the log domain."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.log_domain import ContextScores, SentenceLoss, step
from vcrf.types import Floats

# Losses that differ by less are one: rounding of sums would otherwise double the frontier at every step.
_TINY = 1e-12


@inner_kernel
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
def frontier(steps: ContextScores, loss: SentenceLoss, losses: Floats, scores: Floats) -> int:
    """Pairs (loss, score) of sequences that no sequence beats in both; their number. A loss of -inf leaves one out.

    They go to `losses` (falling) and `scores` (rising), whose length limits every frontier: -1 if it does not suffice.
    """
    room, ptr, n_contexts = len(losses), loss.ptr, len(steps.size)
    n_states = n_contexts * np.max(ptr[1:] - ptr[:-1])
    v, s, n = np.empty((n_states, room)), np.empty((n_states, room)), np.zeros(n_states, np.int64)
    new_v, new_s, new_n = np.empty((n_states, room)), np.empty((n_states, room)), np.zeros(n_states, np.int64)
    kept_v, kept_s = np.empty(room), np.empty(room)
    v[0, 0], s[0, 0], n[0] = loss.init, 0.0, 1
    for t in range(len(steps.node)):
        width, next_width = ptr[t + 1] - ptr[t], ptr[t + 2] - ptr[t + 1]
        new_n[:] = 0
        for c in range(n_contexts if t > 0 else 1):
            for b in range(steps.node.shape[1]):
                score, to_context = step(steps, t, c, b)
                for q in range(width if score > -np.inf else 0):
                    here, row = c * width + q, ptr[t] + q
                    if n[here] == 0:
                        continue
                    to = to_context * next_width + loss.following[row, b]
                    new_n[to] = merge_frontiers(
                        new_v[to], new_s[to], new_n[to], v[here], s[here], n[here], loss.cost[row, b], score, kept_v,
                        kept_s,
                    )  # fmt: skip
                    if new_n[to] < 0:
                        return -1
        v, new_v = new_v, v
        s, new_s = new_s, s
        n, new_n = new_n, n
    found, width = 0, len(loss.final)
    for here in range(n_contexts * width):
        if loss.final[here % width] > -np.inf:
            found = merge_frontiers(
                losses, scores, found, v[here], s[here], n[here], loss.final[here % width], 0.0, kept_v, kept_s
            )
            if found < 0:
                return -1
    return found
