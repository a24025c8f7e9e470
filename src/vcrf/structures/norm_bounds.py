"""Bounds on the norms of whole groups (a column with all its tag patterns of one length) in a scan by length.

A scan looks at the patterns of length k both of whose parts of length k - 1 were kept. With E and emp the expected and
the true count of a pattern s in a column, those that end in s and are one label longer have counts that sum to E and
emp at the most, and none is negative. So do those that begin with s, over all tokens. Hence

    sum over the longer ones of g^2  <=  sum of (E'^2 + emp'^2)  <=  E^2 + emp^2

(twice that where values have both signs), and what a group has beyond the patterns looked at is at most the sum of
E^2 + emp^2 over the patterns left out one length before, as an ending and as a beginning. Those that were not looked at
there either are bounded in the same way.
"""

from __future__ import annotations

import numpy as np

from vcrf.types import Bools, Floats, Ints


class NormBounds:
    """Squared norms by column and length, added up as a scan goes on.

    Parameters
    ----------
    n_columns, order
    bias : the column that is at all tokens, or -1
    most : largest |value| of a column at a token, 1 at the least: counts in a column are at most so much times the
        counts of all tokens
    has_signs : whether values have both signs, so that |g| <= E + emp and not max(E, emp)
    """

    def __init__(self, n_columns: int, order: int, bias: int, most: float, has_signs: bool) -> None:
        self._bias, self._most, self._factor = bias, most, 2.0 if has_signs else 1.0
        self._squares = {k: np.zeros(n_columns) for k in range(1, order + 1)}
        # ChainSums of E^2 + emp^2 over patterns of one length that are not kept: of each column, and over all tokens.
        self._left, self._left_plain = np.zeros(n_columns), 0.0

    def suspect_labels(self, columns: Ints) -> None:
        """Single labels: these columns have a gradient so large that the norm may exceed the strength."""
        self._squares[1][columns] = np.inf

    def leave_labels(self, left: Floats) -> None:
        """Bounds of E^2 + emp^2 summed over the labels of each column that are not kept."""
        self._left = left

    def add(self, k: int, columns: Ints, sizes: Floats) -> None:
        """Sizes of gradients that a scan has looked at."""
        self._squares[k] += np.bincount(columns, sizes**2, len(self._left))

    def begin(self, k: int) -> None:
        """Before patterns of length k: what those of length k - 1 left out can amount to."""
        plain = self._most**2 * self._left_plain
        # As an ending it is left out in the column, or in all tokens; as a beginning in all tokens.
        self._left = self._left + 2.0 * plain
        if self._bias >= 0:
            self._left[self._bias] = 2.0 * plain
        self._left_plain *= 2.0
        self._squares[k] += self._factor * self._left

    def leave(self, kept: Bools, expected: Floats, observed: Floats) -> None:
        """Patterns over all tokens that were looked at, and which of them are kept."""
        self._left_plain += float((expected[~kept] ** 2 + observed[~kept] ** 2).sum())

    def leave_pairs(self, columns: Ints, expected: Floats, observed: Floats) -> None:
        """Patterns in columns that were looked at, and are not kept."""
        self._left = self._left + np.bincount(columns, expected**2 + observed**2, len(self._left))

    def norms(self, k: int, can: Bools) -> Floats:
        """Bounds on the norms of the groups of length k; 0 for columns that cannot exceed their strength."""
        return np.where(can, np.sqrt(self._squares[k]), 0.0)
