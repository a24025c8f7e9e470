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


def shared_ngrams(y, y_true, n):
    """Pairs of equal runs of n labels, one in each sequence."""
    mine, theirs = ngrams(list(y), n), ngrams(list(y_true), n)
    return sum(count * theirs[gram] for gram, count in mine.items())


def clipped_ngrams(y, y_true, n):
    """Share of the runs of n labels that the reference does not have as often."""
    if len(y_true) < n:
        return 0.0
    mine, theirs = ngrams(list(y), n), ngrams(list(y_true), n)
    return 1 - sum(min(count, theirs[gram]) for gram, count in mine.items()) / (len(y_true) - n + 1)


def edit_distance(y, y_true, insertion=None, deletion=None, substitution=None, band=None):
    """Edit distance by the textbook's table; costs are functions of labels, 1 by default."""
    insertion, deletion = insertion or (lambda _: 1.0), deletion or (lambda _: 1.0)
    substitution = substitution or (lambda a, b: float(a != b))
    table = {(0, 0): 0.0}
    for i in range(len(y) + 1):
        for j in range(len(y_true) + 1):
            ways = [table.get((i, j), float("inf"))]
            if i:
                ways.append(table[i - 1, j] + deletion(y[i - 1]))
            if j:
                ways.append(table[i, j - 1] + insertion(y_true[j - 1]))
            if i and j:
                ways.append(table[i - 1, j - 1] + substitution(y[i - 1], y_true[j - 1]))
            table[i, j] = min(ways) if band is None or abs(i - j) <= band else float("inf")
    return table[len(y), len(y_true)]


def local_alignment(y, y_true, match=2.0, mismatch=1.0, gap=1.0):
    """Score of the best local alignment (Smith and Waterman 1981)."""
    table = {(i, j): 0.0 for i in range(len(y) + 1) for j in range(len(y_true) + 1)}
    for i in range(1, len(y) + 1):
        for j in range(1, len(y_true) + 1):
            diagonal = table[i - 1, j - 1] + (match if y[i - 1] == y_true[j - 1] else -mismatch)
            table[i, j] = max(0.0, diagonal, table[i - 1, j] - gap, table[i, j - 1] - gap)
    return max(table.values())
