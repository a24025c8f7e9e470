"""Exact dense lattices of any order, in the log domain.

Weights come as ``arcs (n_positions, n_states * n_labels) float64`` with ``n_states = n_labels**(order - 1)``.
An arc leaves the history ``s`` (base-``n_labels`` digits of the last labels, the oldest most significant)
with the label ``b``. Its code is ``s * n_labels + b``, and it enters the history ``code % n_states``: the
remainder drops the oldest label. Before position ``t`` only ``min(n_labels**t, n_states)`` histories exist;
arcs of the others are never read. ``-inf`` forbids an arc.

Messages are shifted at every position so that their largest entry is 0; the shifts are summed apart. So
rounding depends on the size of one weight, not on the length of the sequence.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.types import Floats, Ints


@kernel
def count_histories(position: int, n_labels: int, n_states: int) -> int:
    """Count the histories before a position: ``min(n_labels**position, n_states)``, without overflow."""
    n_alive = 1
    for _ in range(position):
        if n_alive >= n_states:
            break
        n_alive *= n_labels
    return n_alive


@kernel
def successor(first: int, label: int, n_states: int) -> int:
    """History entered by an arc: ``(first + label) % n_states``, where first is the code of label 0.

    The arcs of one history enter consecutive histories, or all the only one (order 1): so the division
    is the same for all of them and leaves the loop over labels.
    """
    return min(first % n_states + label, n_states - 1)


@kernel
def shift_to_zero(messages: Floats) -> float:
    """Subtract the largest message from all, in place, and return it; all ``-inf`` stay as they are."""
    shift = float(messages.max())
    if shift > -np.inf:
        messages -= shift
    return shift


@kernel
def normalise(log_weights: Floats) -> float:
    """Make one row of log weights sum to 1, in place, and return its log-sum-exp; ``-inf`` if all are."""
    peak = float(log_weights.max())
    if peak == -np.inf:
        return peak
    log_weights -= peak
    log_total = float(np.log(np.exp(log_weights).sum()))
    log_weights -= log_total
    return peak + log_total


@kernel
def log_partition(arcs: Floats, n_labels: int) -> float:
    """Log of the sum over label sequences of ``exp(score)``, by the forward recursion.

    ``fwd[t+1, s'] = log sum of exp(fwd[t, s] + arcs[t, s, b])`` over the arcs ``(s, b)`` that enter ``s'``.

    Parameters
    ----------
    arcs : (n_positions, n_states * n_labels) float64
    n_labels : int

    Returns
    -------
    float
        0 for no position; ``-inf`` when every sequence is forbidden.
    """
    n_positions, n_arcs = arcs.shape
    n_states = n_arcs // n_labels
    fwd = np.full(n_states, -np.inf)
    fwd[0] = 0.0
    log_z = 0.0
    for t in range(n_positions):
        n_alive = count_histories(t, n_labels, n_states)
        peak = np.full(n_states, -np.inf)
        total = np.zeros(n_states)
        for s in range(n_alive):
            for b in range(n_labels):
                dest = successor(s * n_labels, b, n_states)
                peak[dest] = max(peak[dest], fwd[s] + arcs[t, s * n_labels + b])
        for s in range(n_alive):
            for b in range(n_labels):
                dest = successor(s * n_labels, b, n_states)
                if peak[dest] > -np.inf:  # otherwise -inf minus -inf is NaN
                    total[dest] += np.exp(fwd[s] + arcs[t, s * n_labels + b] - peak[dest])
        for s in range(n_states):
            fwd[s] = peak[s] + np.log(total[s]) if total[s] > 0.0 else -np.inf
        log_z += shift_to_zero(fwd)
        if log_z == -np.inf:
            return log_z
    return log_z + float(np.log(np.exp(fwd).sum()))


@kernel
def push(arcs: Floats, n_labels: int) -> tuple[float, Floats]:
    """Push weights to the front: each arc becomes the posterior of its label given its history.

    ``bwd[t, s] = log sum_b exp(arcs[t, s, b] + bwd[t+1, s'])`` and
    ``log_cond[t, s, b] = arcs[t, s, b] + bwd[t+1, s'] - bwd[t, s] = log P(y_t = b | s)``.
    The rows are normalised one by one, so they sum to 1 to the last bits whatever the weights' size.

    Parameters
    ----------
    arcs : (n_positions, n_states * n_labels) float64
    n_labels : int

    Returns
    -------
    log_z : float
        ``-inf`` when every sequence is forbidden; ``log_cond`` is then meaningless.
    log_cond : (n_positions, n_states * n_labels) float64
        ``-inf`` on the arcs of histories that do not exist or cannot reach the end.
    """
    n_positions, n_arcs = arcs.shape
    n_states = n_arcs // n_labels
    log_cond = np.full(arcs.shape, -np.inf)
    bwd = np.zeros(n_states)
    bwd_here = np.empty(n_states)
    log_z = 0.0
    for t in range(n_positions - 1, -1, -1):
        bwd_here[:] = -np.inf
        for s in range(count_histories(t, n_labels, n_states)):
            first = s * n_labels
            row = log_cond[t, first : first + n_labels]
            for b in range(n_labels):
                row[b] = arcs[t, first + b] + bwd[successor(first, b, n_states)]
            bwd_here[s] = normalise(row)
        log_z += shift_to_zero(bwd_here)
        if log_z == -np.inf:
            break
        bwd, bwd_here = bwd_here, bwd
    return log_z, log_cond


@kernel
def arc_posteriors(cond: Floats, n_labels: int) -> Floats:
    """Posterior of every arc from the conditionals, ``P(s, b at t) = P(s at t) P(b | s)``.

    Parameters
    ----------
    cond : (n_positions, n_states * n_labels) float64
        ``exp(log_cond)`` of `push`.
    n_labels : int

    Returns
    -------
    (n_positions, n_states * n_labels) float64
        Sums to 1 at each position; 0 on arcs of histories that do not exist.
    """
    n_positions, n_arcs = cond.shape
    n_states = n_arcs // n_labels
    posteriors = np.zeros(cond.shape)
    prob = np.zeros(n_states)
    prob[0] = 1.0
    for t in range(n_positions):
        prob_next = np.zeros(n_states)
        for s in range(count_histories(t, n_labels, n_states)):
            first = s * n_labels
            for b in range(n_labels):
                mass = prob[s] * cond[t, first + b]
                posteriors[t, first + b] = mass
                prob_next[successor(first, b, n_states)] += mass
        prob = prob_next
    return posteriors


@kernel
def viterbi(arcs: Floats, n_labels: int) -> tuple[float, Ints]:
    """Best label sequence and its score; of equal ones, the first in lexicographic order.

    ``best[t, s] = max_b arcs[t, s, b] + best[t+1, s']`` from right to left, then from left to right the
    smallest maximising label. Equal means equal in floating point.

    Parameters
    ----------
    arcs : (n_positions, n_states * n_labels) float64
    n_labels : int

    Returns
    -------
    score : float
        ``-inf`` when every sequence is forbidden; the labels are then meaningless.
    labels : (n_positions,) int64
    """
    n_positions, n_arcs = arcs.shape
    n_states = n_arcs // n_labels
    choice = np.zeros((n_positions, n_states), dtype=np.int64)
    best = np.zeros(n_states)
    best_here = np.empty(n_states)
    score = 0.0
    for t in range(n_positions - 1, -1, -1):
        best_here[:] = -np.inf
        for s in range(count_histories(t, n_labels, n_states)):
            first = s * n_labels
            for b in range(n_labels):
                value = arcs[t, first + b] + best[successor(first, b, n_states)]
                if value > best_here[s]:
                    best_here[s] = value
                    choice[t, s] = b
        score += shift_to_zero(best_here)
        best, best_here = best_here, best
    labels = np.empty(n_positions, dtype=np.int64)
    s = 0
    for t in range(n_positions):
        labels[t] = choice[t, s]
        s = (s * n_labels + labels[t]) % n_states
    return score, labels


@kernel
def merge_kbest(weights: Floats, suffixes: Floats, first: int, scores: Floats, pointers: Ints) -> None:
    """Merge the sorted suffix lists behind the arcs of one history into its own list, in place.

    Of equal scores the smaller label comes first, then the better rank: so the list stays in
    lexicographic order among equals.

    Parameters
    ----------
    weights : (n_labels,) float64
        The arcs of the history.
    suffixes : (n_states, k) float64
        Decreasing scores behind each destination, filled with ``-inf``.
    first : int
        Code of the arc with label 0, as for `successor`.
    scores, pointers : (k,) float64, (k,) int64
        Written: decreasing scores, and ``label * k + rank`` of the suffix that continues each.
    """
    n_states, k = suffixes.shape
    rank = np.zeros(len(weights), dtype=np.int64)
    scores[:] = -np.inf
    for j in range(k):
        pick = -1
        for b in range(len(weights)):
            if rank[b] < k:
                value = weights[b] + suffixes[successor(first, b, n_states), rank[b]]
                if value > scores[j]:
                    scores[j] = value
                    pick = b
        if pick < 0:
            break
        pointers[j] = pick * k + rank[pick]
        rank[pick] += 1


@kernel
def kbest(arcs: Floats, n_labels: int, k: int) -> tuple[Floats, Ints]:
    """Find the k best label sequences, distinct, best first; equal scores in lexicographic order.

    Parameters
    ----------
    arcs : (n_positions, n_states * n_labels) float64
    n_labels : int
    k : int
        Memory grows with ``n_positions * n_states * k``.

    Returns
    -------
    scores : (n,) float64
        Decreasing and above ``-inf``; n < k when fewer such sequences exist.
    sequences : (n, n_positions) int64
    """
    n_positions, n_arcs = arcs.shape
    n_states = n_arcs // n_labels
    pointers = np.zeros((n_positions, n_states, k), dtype=np.int64)
    suffixes = np.full((n_states, k), -np.inf)
    suffixes[:, 0] = 0.0
    total_shift = 0.0
    for t in range(n_positions - 1, -1, -1):
        longer = np.full((n_states, k), -np.inf)
        for s in range(count_histories(t, n_labels, n_states)):
            first = s * n_labels
            merge_kbest(arcs[t, first : first + n_labels], suffixes, first, longer[s], pointers[t, s])
        total_shift += shift_to_zero(longer)
        suffixes = longer
    n_found = (suffixes[0] > -np.inf).sum()
    return suffixes[0, :n_found] + total_shift, trace_kbest(pointers, n_labels, n_found)


@kernel
def trace_kbest(pointers: Ints, n_labels: int, n_found: int) -> Ints:
    """Follow the pointers of `merge_kbest` from the start: ``(n_found, n_positions)`` labels."""
    n_positions, n_states, k = pointers.shape
    sequences = np.empty((n_found, n_positions), dtype=np.int64)
    for j in range(n_found):
        s = 0
        rank = j
        for t in range(n_positions):
            pointer = pointers[t, s, rank]
            sequences[j, t] = pointer // k
            rank = pointer % k
            s = (s * n_labels + sequences[j, t]) % n_states
    return sequences


@kernel
def sample(cond: Floats, n_labels: int, uniforms: Floats) -> Ints:
    """Independent exact draws from the posterior, label by label from the conditionals.

    Parameters
    ----------
    cond : (n_positions, n_states * n_labels) float64
        ``exp(log_cond)`` of `push`.
    n_labels : int
    uniforms : (n, n_positions) float64 in [0, 1)

    Returns
    -------
    (n, n_positions) int64
    """
    n_samples, n_positions = uniforms.shape
    n_states = cond.shape[1] // n_labels
    sequences = np.empty((n_samples, n_positions), dtype=np.int64)
    for i in range(n_samples):
        s = 0
        for t in range(n_positions):
            left = uniforms[i, t]
            label = 0
            for b in range(n_labels):
                prob = cond[t, s * n_labels + b]
                if prob > 0.0:
                    # A row may sum to just below 1; what is left over goes to its last possible label.
                    label = b
                    if left < prob:
                        break
                    left -= prob
            sequences[i, t] = label
            s = (s * n_labels + label) % n_states
    return sequences


@kernel
def path_score(arcs: Floats, n_labels: int, labels: Ints) -> float:
    """Sum of the arcs along one label sequence.

    Parameters
    ----------
    arcs : (n_positions, n_states * n_labels) float64
    n_labels : int
    labels : (n_positions,) int64
    """
    n_states = arcs.shape[1] // n_labels
    score = 0.0
    s = 0
    for t in range(len(labels)):
        code = s * n_labels + labels[t]
        score += arcs[t, code]
        s = code % n_states
    return score
