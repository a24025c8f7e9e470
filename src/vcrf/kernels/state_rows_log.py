"""The product of one pattern lattice and one loss automaton in the log domain: any scores, also -inf.

Contexts and arcs are those of `kernels.state_log`, rows the states of the automaton, given by the arrays of
`LossAutomaton`. What belongs to (context p, row q) before position t, of w rows, is in place place[t] * n_states +
p * w + q, place[t] being the rows of earlier positions: `ptr[t]`.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.kernels.lattice_log import normalise, shift_to_zero
from vcrf.kernels.state_log import enter, exists, scores_from
from vcrf.types import Floats, Ints, UInts32


@kernel
def push(
    node: Floats, arcs: Floats, size: Ints, table: UInts32, target: Ints, ptr: Ints, following: Ints, cost: Floats,
    final: Floats, init: float,
) -> tuple[float, Floats]:  # fmt: skip
    """Log of the sum over y of exp(loss + score), and P(label | context, row), flat: L numbers a place.

    If the first is -inf the second has no meaning.
    """
    n_positions, n_labels = node.shape
    n_states = len(size)
    cond = np.full((ptr[n_positions] * n_states, n_labels), -np.inf)
    most = np.max(ptr[1:] - ptr[:-1])
    bwd, bwd_here = np.empty(n_states * most), np.empty(n_states * most)
    for p in range(n_states):
        bwd[p * len(final) : (p + 1) * len(final)] = final
    log_z = init
    for t in range(n_positions - 1, -1, -1):
        w, w_next = ptr[t + 1] - ptr[t], ptr[t + 2] - ptr[t + 1]
        bwd_here[:] = -np.inf
        for p in range(n_states):
            if not exists(t, p, size):
                continue
            for q in range(w):
                row = cond[ptr[t] * n_states + p * w + q]
                scores_from(t, p, node, arcs, table, row)
                for b in range(n_labels):
                    to = enter(t, p, b, table, target) * w_next + following[ptr[t] + q, b]
                    row[b] += cost[ptr[t] + q, b] + bwd[to]
                bwd_here[p * w + q] = normalise(row)
        log_z += shift_to_zero(bwd_here[: n_states * w])
        if log_z == -np.inf:
            break
        bwd, bwd_here = bwd_here, bwd
    return log_z, np.exp(cond).reshape(-1)


@kernel
def posteriors(
    cond: Floats, n_labels: int, n_states: int, table: UInts32, target: Ints, ptr: Ints, following: Ints, cost: Floats,
    final: Floats, init: float,
) -> tuple[Floats, float]:  # fmt: skip
    """Posterior of every context and label, (n_positions, n_states, n_labels), and the mean loss."""
    n_positions = len(ptr) - 2
    out = np.zeros((n_positions, n_states, n_labels))
    prob, mean = np.ones(1), init
    for t in range(n_positions):
        w, w_next = ptr[t + 1] - ptr[t], ptr[t + 2] - ptr[t + 1]
        prob_next = np.zeros(n_states * w_next)
        for p in range(n_states if t > 0 else 1):
            for q in range(w):
                if not prob[p * w + q] > 0.0:
                    continue
                at = (ptr[t] * n_states + p * w + q) * n_labels
                for b in range(n_labels):
                    mass = prob[p * w + q] * cond[at + b]
                    out[t, p, b] += mass
                    mean += mass * cost[ptr[t] + q, b]
                    prob_next[enter(t, p, b, table, target) * w_next + following[ptr[t] + q, b]] += mass
        prob = prob_next
    for p in range(n_states):
        for q in range(len(final)):
            mass = prob[p * len(final) + q]
            mean += mass * final[q] if mass > 0.0 else 0.0
    return out, mean
