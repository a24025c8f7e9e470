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
def posteriors(
    arcs: Floats, n_labels: int, ptr: Ints, successors: Ints, weights: Floats, bwd: Floats, out: Floats, at_end: Floats
) -> float:
    """Posterior of every arc, summed over the rows, and of the last rows; returns the mean of the weights.

    Probability goes from the start along the arcs, in the shares that `bwd` tells: nothing is a difference of sums
    over whole sentences, whose rounding is more than a nat where scores are huge.
    """
    n_positions, n_arcs = arcs.shape
    n_states = n_arcs // n_labels
    mass = np.zeros((ptr[-1], n_states))
    mass[0, 0] = 1.0
    share = np.zeros(n_labels)
    mean = 0.0
    for t in range(n_positions):
        n_alive = count_histories(t, n_labels, n_states)
        for row in range(ptr[t], ptr[t + 1]):
            for s in range(n_alive):
                if mass[row, s] == 0.0:
                    continue
                total = 0.0
                for b in range(n_labels):
                    to, dest = ptr[t + 1] + successors[row, b], successor(s * n_labels, b, n_states)
                    z = arcs[t, s * n_labels + b] + weights[row, b] + bwd[to, dest]
                    share[b] = np.exp(z - bwd[row, s]) if z > -np.inf else 0.0
                    total += share[b]
                for b in range(n_labels):
                    to, dest = ptr[t + 1] + successors[row, b], successor(s * n_labels, b, n_states)
                    p = mass[row, s] * (share[b] / total)
                    out[t, s * n_labels + b] += p
                    mass[to, dest] += p
                    mean += p * weights[row, b]
    for q in range(len(at_end)):
        at_end[q] = mass[ptr[n_positions] + q].sum()
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
