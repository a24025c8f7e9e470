"""The exchange algorithm for word classes (Kneser and Ney, 1993; Martin, Liermann and Ney, 1998).

The log-likelihood of a text under a bigram model of classes, P(w' | w) = P(class' | class) P(w' | class'), is up to a
constant

    sum over pairs of classes N(a, b) log N(a, b)  -  2 sum over classes N(a) log N(a)

with N the counts of adjacent tokens and of tokens. One word after the other goes to the class where this is largest.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.types import Floats, Ints, UInts32


@inner_kernel
def n_log_n(n: int, table: Floats) -> float:
    """Look n log n up where the table has it."""
    value: float = table[n] if n < len(table) else n * np.log(n)
    return value


@kernel
def exchange(
    words: UInts32,
    classes: UInts32,
    n_words: Ints,
    after: tuple[Ints, UInts32, Ints],
    before: tuple[Ints, UInts32, Ints],
    pairs: Ints,
    pairs_back: Ints,
    totals: Ints,
    table: Floats,
) -> int:
    """Move each of the words to its best class, one after the other; returns how many moved.

    Parameters
    ----------
    words : words to move, in this order; class 0 (the boundary's) is closed to them
    classes : (n_words,) class of each word; changed
    n_words : (n_words,) count of each word
    after, before : CSR (ptr, ids, counts) of each word's neighbours, itself included
    pairs, pairs_back : (C, C) N(a, b), and its transpose; changed
    totals : (C,) N(a); changed
    table : n log n for n = 0, 1, ...
    """
    n_classes = len(totals)
    right, left = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    gain = np.zeros(n_classes)
    n_moved = 0
    for w in words:
        right[:], left[:] = 0, 0
        n_self = 0
        for i in range(after[0][w], after[0][w + 1]):
            if after[1][i] == w:
                n_self = after[2][i]
            else:
                right[classes[after[1][i]]] += after[2][i]
        for i in range(before[0][w], before[0][w + 1]):
            if before[1][i] != w:
                left[classes[before[1][i]]] += before[2][i]
        old = classes[w]
        add_word(old, -1, right, left, n_self, n_words[w], pairs, pairs_back, totals)
        gains(right, left, n_self, n_words[w], pairs, pairs_back, totals, table, gain)
        best = old
        for c in range(1, n_classes):
            # A little more, so that rounding moves nothing to and fro.
            if gain[c] > gain[best] + 1e-9 * (1.0 + abs(gain[best])):
                best = c
        add_word(best, 1, right, left, n_self, n_words[w], pairs, pairs_back, totals)
        if best != old:
            classes[w] = best
            n_moved += 1
    return n_moved


@inner_kernel
def add_word(
    c: int, sign: int, right: Ints, left: Ints, n_self: int, n: int, pairs: Ints, pairs_back: Ints, totals: Ints
) -> None:
    """Add a word to a class, or take it out (sign -1)."""
    for d in range(len(totals)):
        if right[d] > 0:
            pairs[c, d] += sign * right[d]
            pairs_back[d, c] += sign * right[d]
        if left[d] > 0:
            pairs[d, c] += sign * left[d]
            pairs_back[c, d] += sign * left[d]
    pairs[c, c] += sign * n_self
    pairs_back[c, c] += sign * n_self
    totals[c] += sign * n


@inner_kernel
def gains(
    right: Ints,
    left: Ints,
    n_self: int,
    n: int,
    pairs: Ints,
    pairs_back: Ints,
    totals: Ints,
    table: Floats,
    gain: Floats,
) -> None:
    """What the log-likelihood gains if a word that is in no class comes to each of them."""
    n_classes = len(totals)
    for c in range(n_classes):
        gain[c] = -2.0 * (n_log_n(totals[c] + n, table) - n_log_n(totals[c], table))
        # The pair (c, c) takes what is left and right of the word at once.
        here = pairs[c, c]
        gain[c] += n_log_n(here + right[c] + left[c] + n_self, table) - n_log_n(here, table)
    for d in range(n_classes):
        if right[d] > 0:
            add_gains(d, right[d], pairs_back[d], table, gain)
        if left[d] > 0:
            add_gains(d, left[d], pairs[d], table, gain)


@inner_kernel
def add_gains(d: int, n: int, row: Ints, table: Floats, gain: Floats) -> None:
    """Add the gain of n more pairs with class d, for all classes but d itself."""
    for c in range(len(row)):
        if c != d:
            gain[c] += n_log_n(row[c] + n, table) - n_log_n(row[c], table)
