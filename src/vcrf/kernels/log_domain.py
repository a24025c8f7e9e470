"""Sums and maxima over the label sequences of one sentence in the log domain: any scores, also -inf.

Contexts are those of a pattern automaton, or all runs of order - 1 labels of a dense lattice: see `ContextScores`.
States are pairs (context p, state q of a loss automaton); without a loss there is one q. Of the w pairs of a context
before position t, what belongs to (p, q) has the number ptr[t] * n_contexts + p * w + q.

Messages are shifted at every position so that their largest entry is 0; the shifts are summed apart. So rounding
depends on the size of one weight, not on the length of the sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.types import Floats, Ints, UInts32


class ContextScores(NamedTuple):
    """Scores of one sentence by context and label; -inf forbids.

    node : (n_positions, L), arcs : (n_positions, n_arcs); at position 0 the label b scores node[0, b] alone
    size : (n_contexts,) labels in each context, which cannot be there earlier; the empty one before position 0 is 0
    table : (n_contexts, L) the arc that a context takes with a label; target : (n_arcs,) the context that it leads to
    first : (L,) the context after the first label
    """

    node: Floats
    arcs: Floats
    size: Ints
    table: UInts32
    target: Ints
    first: Ints


class SentenceLoss(NamedTuple):
    """The loss automaton of one sentence: `state_ptr`, `next`, `cost`, `final` and `init` of `LossAutomaton`."""

    ptr: Ints
    following: Ints
    cost: Floats
    final: Floats
    init: float


@inner_kernel
def step(steps: ContextScores, t: int, p: int, b: int) -> tuple[float, int]:
    """Score of a label after a context, and the context that follows."""
    if t == 0:
        return steps.node[0, b], steps.first[b]
    arc = steps.table[p, b]
    return steps.node[t, b] + steps.arcs[t, arc], steps.target[arc]


@inner_kernel
def leave(steps: ContextScores, t: int, p: int, scores: Floats, targets: Ints) -> None:
    """`step` for all labels, (L,) each."""
    if t == 0:
        scores[:], targets[:] = steps.node[0], steps.first
        return
    for b in range(len(scores)):
        arc = steps.table[p, b]
        scores[b], targets[b] = steps.node[t, b] + steps.arcs[t, arc], steps.target[arc]


@inner_kernel
def exists(steps: ContextScores, t: int, p: int) -> bool:
    """Whether context p can be there before position t."""
    return steps.size[p] <= t if t > 0 else p == 0


@inner_kernel
def shift_to_zero(messages: Floats) -> float:
    """Subtract the largest message from all, in place, and return it; all ``-inf`` stay as they are."""
    shift = float(messages.max())
    if shift > -np.inf:
        messages -= shift
    return shift


@inner_kernel
def normalise(log_weights: Floats) -> float:
    """Make one row of log weights sum to 1, in place, and return its log-sum-exp; ``-inf`` if all are."""
    peak = float(log_weights.max())
    if peak == -np.inf:
        return peak
    log_weights -= peak
    log_total = float(np.log(np.exp(log_weights).sum()))
    log_weights -= log_total
    return peak + log_total


# ---- sums ----


@kernel
def push(steps: ContextScores, loss: SentenceLoss) -> tuple[float, Floats]:
    """Push weights to the front: log of the sum over y of exp(score + loss), and log P(label | p, q), (pairs, L).

    ``bwd[t, s] = log sum_b exp(score + cost + bwd[t+1, s'])``, and ``log_cond[t, s, b]`` is the term of b less that.
    The rows are normalised one by one, so they sum to 1 to the last bits whatever the weights' size. If the sum is
    -inf, the conditionals have no meaning.
    """
    n_positions, n_labels = steps.node.shape
    n_contexts, ptr = len(steps.size), loss.ptr
    log_cond = np.full((ptr[n_positions] * n_contexts, n_labels), -np.inf)
    most = n_contexts * np.max(ptr[1:] - ptr[:-1])
    bwd, bwd_here = np.empty(most), np.empty(most)
    scores, targets = np.empty(n_labels), np.empty(n_labels, np.int64)
    for p in range(n_contexts):
        bwd[p * len(loss.final) : (p + 1) * len(loss.final)] = loss.final
    log_z = loss.init
    for t in range(n_positions - 1, -1, -1):
        w, w_next = ptr[t + 1] - ptr[t], ptr[t + 2] - ptr[t + 1]
        bwd_here[:] = -np.inf
        for p in range(n_contexts):
            if not exists(steps, t, p):
                continue
            leave(steps, t, p, scores, targets)
            for q in range(w):
                row, state = log_cond[ptr[t] * n_contexts + p * w + q], ptr[t] + q
                for b in range(n_labels):
                    row[b] = scores[b] + loss.cost[state, b] + bwd[targets[b] * w_next + loss.following[state, b]]
                bwd_here[p * w + q] = normalise(row)
        log_z += shift_to_zero(bwd_here[: n_contexts * w])
        if log_z == -np.inf:
            return log_z, log_cond
        bwd, bwd_here = bwd_here, bwd
    return log_z + bwd[0], log_cond


@kernel
def posteriors(steps: ContextScores, loss: SentenceLoss, log_cond: Floats) -> tuple[Floats, float]:
    """Posterior of every context and label, (n_positions, n_contexts, L), and the mean loss.

    Probability goes from the start along the arcs, in the shares that `push` tells: nothing is a difference of sums
    over whole sentences, whose rounding is more than a nat where scores are huge.
    """
    n_positions, n_labels = steps.node.shape
    n_contexts, ptr, n_final = len(steps.size), loss.ptr, len(loss.final)
    out = np.zeros((n_positions, n_contexts, n_labels))
    prob, mean = np.zeros(n_contexts), loss.init
    scores, targets = np.empty(n_labels), np.empty(n_labels, np.int64)
    prob[0] = 1.0
    for t in range(n_positions):
        w, w_next = ptr[t + 1] - ptr[t], ptr[t + 2] - ptr[t + 1]
        prob_next = np.zeros(n_contexts * w_next)
        for p in range(n_contexts):
            if not exists(steps, t, p):
                continue
            leave(steps, t, p, scores, targets)
            for q in range(w):
                here, row, state = prob[p * w + q], log_cond[ptr[t] * n_contexts + p * w + q], ptr[t] + q
                for b in range(n_labels if here > 0.0 else 0):
                    mass = here * np.exp(row[b])
                    out[t, p, b] += mass
                    mean += mass * loss.cost[state, b]
                    prob_next[targets[b] * w_next + loss.following[state, b]] += mass
        prob = prob_next
    for pair in range(n_contexts * n_final):
        mean += prob[pair] * loss.final[pair % n_final] if prob[pair] > 0.0 else 0.0
    return out, mean


@kernel
def run_posterior(steps: ContextScores, joint: Floats, cond: Floats, run: Ints, out: Floats) -> None:
    """out[t] = posterior that the last labels at t are `run`; `joint` from `posteriors`, both (T, n_contexts, L)."""
    n_positions, n_contexts, _ = joint.shape
    k = len(run)
    for t in range(k - 1, n_positions):
        begin, mass = t - k + 1, np.zeros(n_contexts)
        for p in range(n_contexts):
            mass[step(steps, begin, p, run[0])[1]] += joint[begin, p, run[0]]
        for i in range(1, k):
            mass_next = np.zeros(n_contexts)
            for p in range(n_contexts):
                if mass[p] > 0.0:
                    mass_next[step(steps, begin + i, p, run[i])[1]] += mass[p] * cond[begin + i, p, run[i]]
            mass = mass_next
        out[t] = mass.sum()


@kernel
def draw(probabilities: Floats, uniform: float) -> int:
    """The label that a uniform number from [0, 1) falls on."""
    label = 0
    for b in range(len(probabilities)):
        if probabilities[b] > 0.0:
            # A row may sum to just below 1; what is left over goes to its last possible label.
            label = b
            if uniform < probabilities[b]:
                break
            uniform -= probabilities[b]
    return label


@kernel
def sample(steps: ContextScores, cond: Floats, uniforms: Floats) -> Ints:
    """Independent exact draws, (n, n_positions), from uniforms of that shape; `cond` (n_positions, n_contexts, L)."""
    sequences = np.empty(uniforms.shape, dtype=np.int64)
    for i in range(len(uniforms)):
        p = 0
        for t in range(uniforms.shape[1]):
            label = draw(cond[t, p], uniforms[i, t])
            sequences[i, t] = label
            p = step(steps, t, p, label)[1]
    return sequences


@kernel
def path_contexts(steps: ContextScores, labels: Ints) -> Ints:
    """Context before each position of a label sequence (0 before the first)."""
    contexts = np.zeros(len(labels), dtype=np.int64)
    p = 0
    for t in range(len(labels)):
        contexts[t] = p
        p = step(steps, t, p, labels[t])[1]
    return contexts


# ---- maxima ----


@inner_kernel
def merge_kbest(weights: Floats, targets: Ints, suffixes: Floats, rank: Ints, scores: Floats, pointers: Ints) -> None:
    """Merge the sorted suffix lists behind the arcs of one context into its own list, in place.

    Of equal scores the smaller label comes first, then the better rank: so the list stays in lexicographic order
    among equals. `suffixes` (n_contexts, k) are decreasing, filled with -inf; `pointers` are label * k + rank of the
    suffix that continues each; `rank` (L,) is scratch.
    """
    k = suffixes.shape[1]
    rank[:] = 0
    for j in range(k):
        top, pick = -np.inf, -1
        for b in range(len(weights)):
            if rank[b] < k:
                value = weights[b] + suffixes[targets[b], rank[b]]
                if value > top:
                    top, pick = value, b
        if pick < 0:
            break
        scores[j], pointers[j] = top, pick * k + rank[pick]
        rank[pick] += 1


@kernel
def kbest(steps: ContextScores, k: int) -> tuple[Floats, Ints]:
    """Scores and label sequences of the k best, distinct, best first; equal scores in lexicographic order.

    Fewer if fewer are allowed. Memory grows with n_positions * n_contexts * k.
    """
    n_positions, n_labels = steps.node.shape
    n_contexts = len(steps.size)
    scores, targets, rank = np.empty(n_labels), np.empty(n_labels, np.int64), np.empty(n_labels, np.int64)
    pointers = np.zeros((n_positions, n_contexts, k), dtype=np.int64)
    suffixes = np.full((n_contexts, k), -np.inf)
    suffixes[:, 0] = 0.0
    total_shift = 0.0
    for t in range(n_positions - 1, -1, -1):
        longer = np.full((n_contexts, k), -np.inf)
        for p in range(n_contexts):
            if exists(steps, t, p):
                leave(steps, t, p, scores, targets)
                merge_kbest(scores, targets, suffixes, rank, longer[p], pointers[t, p])
        total_shift += shift_to_zero(longer)
        suffixes = longer
    n_found = (suffixes[0] > -np.inf).sum()
    sequences = np.empty((n_found, n_positions), dtype=np.int64)
    for j in range(n_found):
        p, place = 0, j
        for t in range(n_positions):
            pointer = pointers[t, p, place]
            sequences[j, t], place = pointer // k, pointer % k
            p = step(steps, t, p, sequences[j, t])[1]
    return suffixes[0, :n_found] + total_shift, sequences


@inner_kernel
def extend(steps: ContextScores, loss: SentenceLoss, t: int, best: Floats, longer: Floats) -> None:
    """longer[p', q'] = largest best[p, q] + score + cost of the arcs that enter; layers t and t + 1."""
    w, w_next, n_labels = loss.ptr[t + 1] - loss.ptr[t], loss.ptr[t + 2] - loss.ptr[t + 1], steps.node.shape[1]
    scores, targets = np.empty(n_labels), np.empty(n_labels, np.int64)
    longer[:] = -np.inf
    for p in range(len(steps.size)):
        if not exists(steps, t, p):
            continue
        leave(steps, t, p, scores, targets)
        for q in range(w):
            here, state = best[p * w + q], loss.ptr[t] + q
            for b in range(n_labels if here > -np.inf else 0):
                to = targets[b] * w_next + loss.following[state, b]
                longer[to] = max(longer[to], here + (scores[b] + loss.cost[state, b]))


@kernel
def best_scores(steps: ContextScores, loss: SentenceLoss) -> Floats:
    """Largest score + cost of a path to each pair, all layers one after the other."""
    ptr = loss.ptr * len(steps.size)
    best = np.full(ptr[-1], -np.inf)
    best[0] = loss.init
    for t in range(len(steps.node)):
        extend(steps, loss, t, best[ptr[t] : ptr[t + 1]], best[ptr[t + 1] : ptr[t + 2]])
    return best


@kernel
def best_score(steps: ContextScores, loss: SentenceLoss) -> float:
    """Largest score + loss; two layers at a time."""
    n_contexts = len(steps.size)
    best = np.full(n_contexts, -np.inf)
    best[0] = loss.init
    for t in range(len(steps.node)):
        longer = np.empty(n_contexts * (loss.ptr[t + 2] - loss.ptr[t + 1]))
        extend(steps, loss, t, best, longer)
        best = longer
    return float(np.max(best.reshape(n_contexts, -1) + loss.final))


@kernel
def trace(steps: ContextScores, loss: SentenceLoss, best: Floats, q: int, p: int) -> Ints:
    """Labels of a best path to the last pair (p, q), from `best_scores`."""
    n_positions, n_labels = steps.node.shape
    n_contexts, ptr = len(steps.size), loss.ptr
    labels = np.zeros(n_positions, np.int64)
    for t in range(n_positions - 1, -1, -1):
        w, w_next = ptr[t + 1] - ptr[t], ptr[t + 2] - ptr[t + 1]
        top, found = best[ptr[t + 1] * n_contexts + p * w_next + q], -1
        for pair in range(n_contexts * w):
            here = best[ptr[t] * n_contexts + pair]
            for b in range(n_labels if found < 0 and here > -np.inf else 0):
                row = ptr[t] + pair % w
                score, to = step(steps, t, pair // w, b)
                if to == p and loss.following[row, b] == q and here + (score + loss.cost[row, b]) == top:
                    found, labels[t] = pair, b
                    break
        p, q = found // w, found % w
    return labels
