"""Kinds of parts and their assignments: what the features of a column are told apart by.

A part is what a factor scores: a label with its token, a tag pattern, an edge with both its labels. Parts of one kind
have the same assignments. A feature is a column (where an attribute occurs) and an assignment of a kind. Its number is

    column * stride + offset[kind] + assignment

so that sorted feature numbers are grouped by column and, inside a column, by kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vcrf.types import Ints, UInts32


@dataclass(frozen=True)
class PartSpace:
    """Kinds 1, 2, ... of parts; sizes[kind - 1] is the number of assignments of each."""

    sizes: tuple[int, ...]

    @property
    def kinds(self) -> range:
        """1, 2, ..."""
        return range(1, len(self.sizes) + 1)

    def size(self, kind: int) -> int:
        """Number of assignments of a part of a kind."""
        return self.sizes[kind - 1]

    @cached_property
    def offsets(self) -> Ints:
        """offsets[kind] is the sum of the sizes of smaller kinds; one more entry is the stride."""
        return np.concatenate([np.zeros(2, np.int64), np.cumsum(np.array(self.sizes, np.int64))])

    @property
    def stride(self) -> int:
        """Assignments of all kinds."""
        return int(self.offsets[-1])

    def split(self, features: Ints) -> tuple[UInts32, UInts32, UInts32]:
        """Column, kind and assignment of feature numbers."""
        column, rest = np.divmod(features, self.stride)
        kind = np.searchsorted(self.offsets[1:-1], rest, side="right")
        assignment = rest - self.offsets[kind]
        return column.astype(np.uint32), kind.astype(np.uint32), assignment.astype(np.uint32)

    def join(self, column: UInts32, kind: int, assignment: UInts32) -> Ints:
        """Feature numbers of one kind."""
        return np.asarray(column.astype(np.int64) * self.stride + self.offsets[kind] + assignment.astype(np.int64))

    def groups(self, features: Ints) -> tuple[Ints, Ints]:
        """Number of each (sorted) feature's group, a column and a kind, and the first feature of each, with the end."""
        column, kind, _ = self.split(features)
        is_first = np.ones(len(features), bool)
        is_first[1:] = (column[1:] != column[:-1]) | (kind[1:] != kind[:-1])
        return np.cumsum(is_first) - 1, np.append(np.flatnonzero(is_first), len(features))
