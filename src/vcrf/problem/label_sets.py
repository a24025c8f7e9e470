"""Which labels each token may have: few distinct sets of labels, and a number of one for each token."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vcrf.types import Bools, Ints, UInts8, UInts32


@dataclass(frozen=True, eq=False)
class AllowedLabels:
    """Token t may have the labels of set of_token[t]; set s is labels[ptr[s] : ptr[s + 1]], sorted, never empty."""

    of_token: UInts32
    ptr: Ints
    labels: UInts32
    n_labels: int

    @cached_property
    def cells(self) -> Ints:
        """Where the numbers of each token begin, with one for each of its labels, (n_tokens + 1,)."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(self.ptr)[self.of_token])])

    @cached_property
    def mask(self) -> Bools:
        """Which labels each set has, (n_sets, n_labels)."""
        out = np.zeros((len(self.ptr) - 1, self.n_labels), bool)
        out[np.repeat(np.arange(len(out)), np.diff(self.ptr)), self.labels] = True
        return out

    def both(self, other: AllowedLabels) -> AllowedLabels:
        """What both allow."""
        pairs, of_token = np.unique(
            self.of_token.astype(np.int64) * len(other.mask) + other.of_token, return_inverse=True
        )
        first, second = np.divmod(pairs, len(other.mask))
        return sets_of(self.mask[first] & other.mask[second], of_token)


def sets_of(masks: Bools, of_token: Ints) -> AllowedLabels:
    """Sets from their masks (n_sets, n_labels), by the number of that of each token."""
    number, labels = np.nonzero(masks)
    ptr = np.searchsorted(number, np.arange(len(masks) + 1))
    return AllowedLabels(of_token.astype(np.uint32), ptr, labels.astype(np.uint32), masks.shape[1])


def every_label(n_tokens: int, n_labels: int) -> AllowedLabels:
    """All tokens may have all labels."""
    return sets_of(np.ones((1, n_labels), bool), np.zeros(n_tokens, np.int64))


def allowed_sets(allowed: UInts8) -> AllowedLabels:
    """Sets from a mask of each token, (n_tokens, n_labels)."""
    packed = np.ascontiguousarray(np.packbits(allowed > 0, axis=1))
    rows = packed.view([("", np.void, packed.shape[1])]).reshape(-1) if packed.shape[1] else np.zeros(len(allowed))
    _, first, of_token = np.unique(rows, return_index=True, return_inverse=True)
    return sets_of(allowed[first] > 0, of_token.reshape(-1))
