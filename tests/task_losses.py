"""Task losses by their definitions, in plain Python: what vcrf.losses must equal. Nothing here calls vcrf."""

from __future__ import annotations

from collections import Counter


def hamming(y, y_true):
    """Number of wrong labels."""
    return sum(a != b for a, b in zip(y, y_true, strict=True))


def weighted(y, y_true, costs):
    """Sum of costs[candidate][reference]."""
    return sum(costs[a][b] for a, b in zip(y, y_true, strict=True))


def aligned_ngram(y, y_true, n):
    """Number of positions whose last n labels are not those of the reference."""
    y, y_true = list(y), list(y_true)
    return sum(y[max(0, t - n + 1) : t + 1] != y_true[max(0, t - n + 1) : t + 1] for t in range(len(y)))


def zero_one(y, y_true):
    """Whether anything is wrong."""
    return float(list(y) != list(y_true))


def ngrams(y, n):
    """How often each run of n labels occurs."""
    return Counter(tuple(y[t : t + n]) for t in range(len(y) - n + 1))
