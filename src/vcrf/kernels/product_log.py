"""The product of one lattice and one loss automaton in the log domain and in max-plus: any scores, also -inf.

Arcs and histories are those of `kernels.lattice_log`: ``arcs (n_positions, n_states * n_labels)``. The automaton is
given by the arrays of `LossAutomaton`. Messages are (state of the automaton, history), one layer a position.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.kernels.lattice_log import count_histories, successor
from vcrf.types import Floats, Ints


@kernel
def _log_add(a: float, b: float) -> float:
    """log(exp(a) + exp(b)), also where one or both are -inf."""
    high, low = (a, b) if a > b else (b, a)
    return high if low == -np.inf else high + np.log1p(np.exp(low - high))


@kernel
def forward(arcs: Floats, n_labels: int, ptr: Ints, successors: Ints, weights: Floats, init: float) -> Floats:
    """fwd[ptr[t] + q, s] = log of the sum over paths to (q, s) of exp(score + weight), (rows, n_states).

    `weights` (rows, n_labels) are added to the scores: the costs, or zeros.
    """
    n_positions, n_arcs = arcs.shape
    n_states = n_arcs // n_labels
    fwd = np.full((ptr[-1], n_states), -np.inf)
    fwd[0, 0] = init
    for t in range(n_positions):
        n_alive = count_histories(t, n_labels, n_states)
        for row in range(ptr[t], ptr[t + 1]):
            for s in range(n_alive):
                if fwd[row, s] == -np.inf:
                    continue
                for b in range(n_labels):
                    z = fwd[row, s] + arcs[t, s * n_labels + b] + weights[row, b]
                    to, dest = ptr[t + 1] + successors[row, b], successor(s * n_labels, b, n_states)
                    if z > -np.inf:
                        fwd[to, dest] = _log_add(fwd[to, dest], z)
    return fwd


@kernel
def backward(arcs: Floats, n_labels: int, ptr: Ints, successors: Ints, weights: Floats, final: Floats) -> Floats:
    """bwd[ptr[t] + q, s] = log of the sum over paths from (q, s) to the end of exp(score + weight)."""
    n_positions, n_arcs = arcs.shape
    n_states = n_arcs // n_labels
    bwd = np.full((ptr[-1], n_states), -np.inf)
    for q in range(len(final)):
        bwd[ptr[n_positions] + q] = final[q]
    for t in range(n_positions - 1, -1, -1):
        n_alive = count_histories(t, n_labels, n_states)
        for row in range(ptr[t], ptr[t + 1]):
            for s in range(n_alive):
                total = -np.inf
                for b in range(n_labels):
                    to, dest = ptr[t + 1] + successors[row, b], successor(s * n_labels, b, n_states)
                    total = _log_add(total, arcs[t, s * n_labels + b] + weights[row, b] + bwd[to, dest])
                bwd[row, s] = total
    return bwd


@kernel
def arc_sums(
    arcs: Floats, n_labels: int, ptr: Ints, successors: Ints, weights: Floats, fwd: Floats, bwd: Floats, log_z: float,
    values: Floats, out: Floats,
) -> float:  # fmt: skip
    """out[t, arc] += exp(fwd + arc + weight + bwd - log_z) over the rows; returns the same sum times values[row, b]."""
    n_positions, n_arcs = arcs.shape
    n_states = n_arcs // n_labels
    mean = 0.0
    for t in range(n_positions):
        n_alive = count_histories(t, n_labels, n_states)
        for row in range(ptr[t], ptr[t + 1]):
            for s in range(n_alive):
                for b in range(n_labels):
                    to, dest = ptr[t + 1] + successors[row, b], successor(s * n_labels, b, n_states)
                    z = fwd[row, s] + arcs[t, s * n_labels + b] + weights[row, b] + bwd[to, dest]
                    if z > -np.inf:
                        p = np.exp(z - log_z)
                        out[t, s * n_labels + b] += p
                        mean += p * values[row, b]
    return mean


@kernel
def best_scores(arcs: Floats, n_labels: int, ptr: Ints, successors: Ints, weights: Floats, init: float) -> Floats:
    """best[ptr[t] + q, s] = largest score + weight of a path to (q, s), (rows, n_states)."""
    n_positions, n_arcs = arcs.shape
    n_states = n_arcs // n_labels
    best = np.full((ptr[-1], n_states), -np.inf)
    best[0, 0] = init
    for t in range(n_positions):
        n_alive = count_histories(t, n_labels, n_states)
        for row in range(ptr[t], ptr[t + 1]):
            for s in range(n_alive):
                for b in range(n_labels):
                    z = best[row, s] + (arcs[t, s * n_labels + b] + weights[row, b])
                    to, dest = ptr[t + 1] + successors[row, b], successor(s * n_labels, b, n_states)
                    if z > best[to, dest]:
                        best[to, dest] = z
    return best


@kernel
def trace(
    arcs: Floats, n_labels: int, ptr: Ints, successors: Ints, weights: Floats, best: Floats, q: int, s: int
) -> Ints:
    """Labels of a best path to the last state q and history s."""
    n_positions, n_arcs = arcs.shape
    n_states = n_arcs // n_labels
    labels = np.zeros(n_positions, np.int64)
    row, history = ptr[n_positions] + q, s
    for t in range(n_positions - 1, -1, -1):
        n_alive = count_histories(t, n_labels, n_states)
        found = -1
        for before in range(ptr[t], ptr[t + 1]):
            for h in range(n_alive):
                for b in range(n_labels):
                    if ptr[t + 1] + successors[before, b] != row or successor(h * n_labels, b, n_states) != history:
                        continue
                    z = best[before, h] + (arcs[t, h * n_labels + b] + weights[before, b])
                    if found < 0 and z == best[row, history]:
                        found = (before * n_states + h) * n_labels + b
        labels[t] = found % n_labels
        row, history = found // n_labels // n_states, found // n_labels % n_states
    return labels
