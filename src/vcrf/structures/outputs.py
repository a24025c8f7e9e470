"""Outputs that a search has found, one after the other, whatever the structure: a label for each of their variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vcrf.types import Floats, Ints, UInts32


class Outputs(NamedTuple):
    """Output c belongs to example[c] and has labels[ptr[c]:ptr[c + 1]]."""

    example: Ints
    ptr: Ints
    labels: UInts32

    @classmethod
    def of(cls, example: Ints, labels: Sequence[UInts32]) -> Outputs:
        """From the labels of each."""
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(part) for part in labels], dtype=np.int64)])
        return cls(example, ptr, np.concatenate([np.zeros(0, np.uint32), *labels]))

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.example)

    def labels_of(self, c: int) -> UInts32:
        """The labels of one."""
        return self.labels[self.ptr[c] : self.ptr[c + 1]]

    def take(self, which: Ints) -> Outputs:
        """Some, in this order."""
        lengths = (self.ptr[1:] - self.ptr[:-1])[which]
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        at = np.repeat(self.ptr[which] - ptr[:-1], lengths) + np.arange(ptr[-1])
        return Outputs(self.example[which], ptr, self.labels[at])

    def plus(self, other: Outputs) -> Outputs:
        """These, then the others."""
        return Outputs(
            np.concatenate([self.example, other.example]),
            np.concatenate([self.ptr, self.ptr[-1] + other.ptr[1:]]),
            np.concatenate([self.labels, other.labels]),
        )


class BestOutputs(NamedTuple):
    """The output of each example that is worth the most: what it is worth, its loss and slope, and the outputs.

    The truth, and 0, where nothing is better.
    """

    values: Floats
    losses: Floats
    slopes: Floats
    outputs: Outputs


class Mixture(NamedTuple):
    """Outputs with shares."""

    outputs: Outputs
    share: Floats

    def weights(self, n_examples: int) -> Floats:
        """Sum of the shares of each example."""
        return np.asarray(np.bincount(self.outputs.example, self.share, n_examples), np.float64)
