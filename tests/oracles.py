"""Slow and obvious answers by enumeration of every label sequence. Nothing here calls vcrf.

`all_sequences` fixes the order of the sequences; every other function takes and returns one number per
sequence in that order.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def all_sequences(n_positions: int, n_labels: int) -> Ints:
    """Every label sequence in lexicographic order, (n_labels**n_positions, n_positions)."""
    sequences = list(itertools.product(range(n_labels), repeat=n_positions))
    return np.array(sequences, dtype=np.int64).reshape(len(sequences), n_positions)


def pattern_codes(sequences: Ints, first: int, last: int, n_labels: int) -> Ints:
    """Code of the labels at positions first..last-1 of each sequence, the oldest label most significant."""
    codes = np.zeros(len(sequences), dtype=np.int64)
    for t in range(first, last):
        codes = codes * n_labels + sequences[:, t]
    return codes


def sequence_scores(arcs: Floats, order: int, n_labels: int) -> Floats:
    """``sum_t arcs[t, code of the last min(t, order-1) labels, y_t]`` of every sequence y."""
    sequences = all_sequences(len(arcs), n_labels)
    scores = np.zeros(len(sequences))
    for t in range(len(arcs)):
        histories = pattern_codes(sequences, max(0, t - order + 1), t, n_labels)
        scores = scores + arcs[t, histories, sequences[:, t]]
    return scores


def log_partition(scores: Floats) -> float:
    """``log sum_y exp(score)``."""
    peak = scores.max()
    return float(peak + np.log(np.exp(scores - peak).sum())) if peak > -np.inf else -np.inf


def probabilities(scores: Floats) -> Floats:
    """``exp(score - log_partition)`` of every sequence."""
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def pattern_marginals(scores: Floats, n_positions: int, n_labels: int, k: int) -> Floats:
    """Probability that the labels t-k+1..t have each code, (n_positions, n_labels**k); zero for t < k-1."""
    sequences, probs = all_sequences(n_positions, n_labels), probabilities(scores)
    marginals = np.zeros((n_positions, n_labels**k))
    for t in range(k - 1, n_positions):
        codes = pattern_codes(sequences, t - k + 1, t + 1, n_labels)
        marginals[t] = np.bincount(codes, weights=probs, minlength=n_labels**k)
    return marginals


def entropy(probs: Floats) -> float:
    """``-sum_y p log p`` in nats, with 0 log 0 = 0."""
    positive = probs[probs > 0]
    return float(-(positive * np.log(positive)).sum())


def expectation(probs: Floats, values: Floats) -> float:
    """``sum_y p(y) value(y)``; values of impossible sequences do not count."""
    return float((probs[probs > 0] * values[probs > 0]).sum())


def dual_value(probs: Floats, costs: Floats) -> float:
    """``E_q[L] + H(q)``, the dual objective of one sentence, for the loss L(y, y_i) of every sequence y."""
    return expectation(probs, costs) + entropy(probs)


def kbest(scores: Floats, k: int) -> Ints:
    """Ranks in `all_sequences` of the k best allowed sequences; the first of equal ones comes first."""
    ranking = np.argsort(-scores, kind="stable")
    return ranking[scores[ranking] > -np.inf][:k]


def best(scores: Floats) -> int:
    """Rank in `all_sequences` of the best sequence, the first of equal ones."""
    return int(kbest(scores, 1)[0])


def potentials_scores(scores: Any, i: int) -> Floats:
    """Score of every label sequence of sentence i, straight from the definition of `Potentials`."""
    first, last = int(scores.sent_ptr[i]), int(scores.sent_ptr[i + 1])
    sequences = all_sequences(last - first, scores.n_labels)
    total = np.zeros(len(sequences))
    for t in range(last - first):
        total += scores.node[first + t, sequences[:, t]]
        for k, table in scores.tables.items():
            if t >= k - 1:
                total += table[pattern_codes(sequences, t - k + 1, t + 1, scores.n_labels)]
        for j in range(scores.local.ptr[first + t], scores.local.ptr[first + t + 1]):
            k = int(scores.local.size[j])
            if t >= k - 1:
                codes = pattern_codes(sequences, t - k + 1, t + 1, scores.n_labels)
                total += scores.local.score[j] * (codes == scores.local.code[j])
    return total
