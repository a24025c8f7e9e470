"""Exact lattices over the states of a pattern automaton, in the log domain.

At position t the label b leaves state p by the arc ``table[p, b]`` with the score
``node[t, b] + arcs[t, table[p, b]]`` and enters ``target[table[p, b]]``. Before position 0 there is one history, the
empty one: it stands in the place of state 0, its labels score ``node[0, b]`` and enter the states 0 .. L-1, the single
labels. Before position t only states of up to t labels exist. ``-inf`` forbids an arc.

Messages are shifted at every position so that their largest entry is 0; the shifts are summed apart.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.kernels.lattice_log import normalise, shift_to_zero
from vcrf.types import Floats, Ints, UInts32


@kernel
def scores_from(t: int, p: int, node: Floats, arcs: Floats, table: UInts32, row: Floats) -> None:
    """row[b] = score of leaving state p with label b at position t."""
    for b in range(len(row)):
        row[b] = node[t, b] + (arcs[t, table[p, b]] if t > 0 else 0.0)


@kernel
def enter(t: int, p: int, b: int, table: UInts32, target: Ints) -> int:
    """State after leaving p with label b at position t."""
    return target[table[p, b]] if t > 0 else b


@kernel
def exists(t: int, p: int, size: Ints) -> bool:
    """Whether state p can be there before position t."""
    return size[p] <= t if t > 0 else p == 0


@kernel
def push(node: Floats, arcs: Floats, size: Ints, table: UInts32, target: Ints) -> tuple[float, Floats]:
    """Log partition, and the log posterior of each label given the state, (n_positions, n_states, n_labels).

    The log partition is -inf when every sequence is forbidden; the conditionals are then meaningless.
    """
    n_positions, n_labels = node.shape
    log_cond = np.full((n_positions, len(size), n_labels), -np.inf)
    bwd, bwd_here = np.zeros(len(size)), np.empty(len(size))
    log_z = 0.0
    for t in range(n_positions - 1, -1, -1):
        bwd_here[:] = -np.inf
        for p in range(len(size)):
            if exists(t, p, size):
                row = log_cond[t, p]
                scores_from(t, p, node, arcs, table, row)
                for b in range(n_labels):
                    row[b] += bwd[enter(t, p, b, table, target)]
                bwd_here[p] = normalise(row)
        log_z += shift_to_zero(bwd_here)
        if log_z == -np.inf:
            break
        bwd, bwd_here = bwd_here, bwd
    return log_z, log_cond


@kernel
def posteriors(cond: Floats, table: UInts32, target: Ints) -> Floats:
    """Posterior of every state and label, (n_positions, n_states, n_labels), from the conditionals."""
    n_positions, n_states, n_labels = cond.shape
    out = np.zeros(cond.shape)
    prob = np.zeros(n_states)
    prob[0] = 1.0
    for t in range(n_positions):
        prob_next = np.zeros(n_states)
        for p in range(n_states):
            if prob[p] > 0.0:
                for b in range(n_labels):
                    mass = prob[p] * cond[t, p, b]
                    out[t, p, b] = mass
                    prob_next[enter(t, p, b, table, target)] += mass
        prob = prob_next
    return out


@kernel
def kbest(node: Floats, arcs: Floats, size: Ints, table: UInts32, target: Ints, k: int) -> tuple[Floats, Ints]:
    """Scores and label sequences of the k best, distinct, best first; equal scores in lexicographic order."""
    n_positions, n_labels = node.shape
    n_states = len(size)
    pointers = np.zeros((n_positions, n_states, k), dtype=np.int64)
    suffixes = np.full((n_states, k), -np.inf)
    suffixes[:, 0] = 0.0
    row, rank = np.empty(n_labels), np.zeros(n_labels, dtype=np.int64)
    total_shift = 0.0
    for t in range(n_positions - 1, -1, -1):
        longer = np.full((n_states, k), -np.inf)
        for p in range(n_states):
            if not exists(t, p, size):
                continue
            scores_from(t, p, node, arcs, table, row)
            rank[:] = 0
            for j in range(k):
                pick = -1
                for b in range(n_labels):
                    if rank[b] < k:
                        value = row[b] + suffixes[enter(t, p, b, table, target), rank[b]]
                        if value > longer[p, j]:
                            longer[p, j] = value
                            pick = b
                if pick < 0:
                    break
                pointers[t, p, j] = pick * k + rank[pick]
                rank[pick] += 1
        total_shift += shift_to_zero(longer)
        suffixes = longer
    n_found = (suffixes[0] > -np.inf).sum()
    sequences = np.empty((n_found, n_positions), dtype=np.int64)
    for j in range(n_found):
        p, place = 0, j
        for t in range(n_positions):
            pointer = pointers[t, p, place]
            sequences[j, t] = pointer // k
            place = pointer % k
            p = enter(t, p, sequences[j, t], table, target)
    return suffixes[0, :n_found] + total_shift, sequences


@kernel
def sample(cond: Floats, table: UInts32, target: Ints, uniforms: Floats) -> Ints:
    """Independent exact draws, (n, n_positions), from uniforms of that shape; `cond` as for `posteriors`."""
    n_samples, n_positions = uniforms.shape
    n_labels = cond.shape[2]
    sequences = np.empty((n_samples, n_positions), dtype=np.int64)
    for i in range(n_samples):
        p = 0
        for t in range(n_positions):
            left, label = uniforms[i, t], 0
            for b in range(n_labels):
                prob = cond[t, p, b]
                if prob > 0.0:
                    # A row may sum to just below 1; what is left over goes to its last possible label.
                    label = b
                    if left < prob:
                        break
                    left -= prob
            sequences[i, t] = label
            p = enter(t, p, label, table, target)
    return sequences


@kernel
def path_states(labels: Ints, table: UInts32, target: Ints) -> Ints:
    """State before each position of a label sequence (0 before the first)."""
    states = np.zeros(len(labels), dtype=np.int64)
    p = 0
    for t in range(len(labels)):
        states[t] = p
        p = enter(t, p, labels[t], table, target)
    return states


@kernel
def run_posterior(joint: Floats, cond: Floats, run: Ints, table: UInts32, target: Ints, out: Floats) -> None:
    """out[t] = posterior that the last labels at t are `run`; `joint` as `posteriors` gives it."""
    n_positions, n_states, _ = joint.shape
    k = len(run)
    mass, mass_next = np.zeros(n_states), np.zeros(n_states)
    for t in range(k - 1, n_positions):
        begin = t - k + 1
        mass[:] = 0.0
        for p in range(n_states):
            mass[enter(begin, p, run[0], table, target)] += joint[begin, p, run[0]]
        for i in range(1, k):
            mass_next[:] = 0.0
            for p in range(n_states):
                if mass[p] > 0.0:
                    mass_next[enter(begin + i, p, run[i], table, target)] += mass[p] * cond[begin + i, p, run[i]]
            mass, mass_next = mass_next, mass
        out[t] = mass.sum()
