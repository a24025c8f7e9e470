"""Sentences whose pairs' scores span too many nats for scaled messages: in the log domain, over labels that may be.

They are rare (weights in the hundreds), so this path is plain.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from vcrf.types import Floats, Ints, UInts32


class LogSums(NamedTuple):
    """The log of the sum over all label sequences, posteriors of the cells, and of pairs summed over tokens."""

    value: float
    cells: Floats
    pairs: Floats


def sum_in_logs(labels: list[UInts32], scores: list[Floats], table: Floats) -> LogSums:
    """Forward-backward; `labels` and `scores` are by token, `table` (L, L) has the scores of pairs."""
    with np.errstate(invalid="ignore"):
        return _sum(labels, scores, table)


def _sum(labels: list[UInts32], scores: list[Floats], table: Floats) -> LogSums:
    alpha, beta = list(scores), [np.zeros(len(here)) for here in scores]
    arcs = [table[np.ix_(a, b)] for a, b in pairwise(labels)]
    for t in range(1, len(scores)):
        alpha[t] = scores[t] + _log_sum(alpha[t - 1][:, None] + arcs[t - 1])
    for t in range(len(scores) - 2, -1, -1):
        beta[t] = _log_sum((arcs[t] + scores[t + 1] + beta[t + 1]).T)
    value = float(_log_sum(alpha[-1][:, None])[0]) if scores else 0.0
    pairs = np.zeros(table.shape)
    for t, arc in enumerate(arcs):
        pairs[np.ix_(labels[t], labels[t + 1])] += np.exp(alpha[t][:, None] + arc + scores[t + 1] + beta[t + 1] - value)
    cells = [np.exp(a + b - value) for a, b in zip(alpha, beta, strict=True)]
    return LogSums(value, np.concatenate([np.zeros(0), *cells]), pairs)


def _log_sum(x: Floats) -> Floats:
    """Log of the sum of exponentials over rows."""
    high = x.max(axis=0)
    return np.asarray(high + np.log(np.exp(x - high).sum(axis=0)))


def true_score(labels: list[UInts32], scores: list[Floats], table: Floats, y: Ints) -> float:
    """The score of one label sequence."""
    singles = sum(float(s[np.searchsorted(here, z)]) for here, s, z in zip(labels, scores, y, strict=True))
    return singles + float(table[y[:-1], y[1:]].sum())
