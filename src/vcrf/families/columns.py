"""Columns: attributes that occur at exactly the same positions (twins) are one column.

Memory follows the columns. A column knows the class of its members (which sources it has an attribute in,
at most one a source); the attribute itself is read again from the column's first position when it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vcrf import kernels, scratch
from vcrf.families.family import Source
from vcrf.families.templates import Occurrences
from vcrf.families.text import Text
from vcrf.types import Floats, Ints, UInts32, UInts64


@dataclass(frozen=True)
class ColumnTable:
    """Distinct columns of a text.

    Attributes
    ----------
    ptr, positions : CSR, column c occurs at positions[ptr[c]:ptr[c+1]] (increasing)
    values : (len(positions),) float64, or empty if every value is 1
    classes : (n_columns,) int64, class of members; see `class_sources`
    class_sources : for each class the tuple of its sources' numbers
    n_attributes : attributes before merging, per source
    listed : source -> (columns, keys) of its attributes, for sources with several attributes a position
    zeros : columns and positions of occurrences with value 0, if asked for: no effect, but they count as observed
    """

    ptr: Ints
    positions: UInts32
    values: Floats
    classes: Ints
    class_sources: list[tuple[int, ...]]
    n_attributes: Ints
    listed: dict[int, tuple[Ints, UInts64]]
    zeros: tuple[Ints, UInts32]

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def first_positions(self) -> UInts32:
        return self.positions[self.ptr[:-1]]

    @property
    def class_counts(self) -> Ints:
        """Columns of each class."""
        return np.bincount(self.classes, minlength=len(self.class_sources))

    def mass(self) -> Floats:
        """Sum of absolute values of each column: m times the largest possible gradient."""
        if not len(self.values):
            return np.diff(self.ptr).astype(np.float64)
        weights = np.abs(self.values)
        total = np.concatenate([np.zeros(1), np.cumsum(weights)])
        return np.asarray(total[self.ptr[1:]] - total[self.ptr[:-1]])


def read_columns(
    text: Text,
    sources: Sequence[Source],
    merge: bool = True,
    with_zeros: bool = False,
    sorts: Sequence[int] | None = None,
) -> ColumnTable:
    """Read all sources and merge twins. `merge=False` keeps every attribute a column of its own.

    With `sorts`, a number for each source, only attributes of sources of one sort are merged.

    With `with_zeros` occurrences of value 0 are kept, and twins have the same ones: else the members of a column would
    have been observed with different labels.
    """
    builder = _ColumnBuilder(merge, with_zeros)
    for i, source in enumerate(sources):
        builder.add(i, source.read(text), 0 if sorts is None else sorts[i])
    return builder.finish(len(sources))


@dataclass
class _ColumnBuilder:
    merge: bool
    with_zeros: bool
    n_columns: int = 0
    sig: UInts64 = field(default_factory=lambda: np.zeros((1 << 12, 2), np.uint64))
    slots: UInts32 = field(default_factory=lambda: np.zeros(1 << 13, np.uint32))
    classes: Ints = field(default_factory=lambda: np.zeros(1 << 12, np.int64))
    class_ids: dict[tuple[int, ...], int] = field(default_factory=lambda: {(): 0})
    counts: list[UInts32] = field(default_factory=list)
    positions: list[UInts32] = field(default_factory=list)
    values: list[Floats | None] = field(default_factory=list)
    n_attributes: dict[int, int] = field(default_factory=dict)
    listed: dict[int, tuple[Ints, UInts64]] = field(default_factory=dict)
    zero_columns: list[UInts32] = field(default_factory=list)
    zero_positions: list[UInts32] = field(default_factory=list)

    def add(self, source: int, found: Occurrences, sort: int = 0) -> None:
        ids, n = intern(found.keys)
        self.n_attributes[source] = n
        if n == 0:
            return
        sig, count = scratch.zeros((n, 2), np.uint64), np.zeros(n, np.uint32)
        bits = np.zeros(0, np.uint64) if found.values is None else found.values.view(np.uint64)
        kernels.hashing.signatures(found.positions, bits, ids, sig, count)
        zero_ids, zero_positions = self._zeros_of(found, ids, n)
        bits_of_zero = np.zeros(len(zero_ids), np.uint64)
        kernels.hashing.signatures(zero_positions, bits_of_zero, zero_ids, sig, np.zeros(n, np.uint32))
        if not self.merge:
            sig[:, 0] += np.uint64(0x9E3779B97F4A7C15) * np.arange(
                self.n_columns + 1, self.n_columns + n + 1, dtype=np.uint64
            )
        elif not found.is_single:
            _keep_apart(sig)
        sig[:, 1] += np.uint64(0xA24BAED4963EE407 * sort % 2**64)
        self._reserve(n)
        columns = np.empty(n, np.uint32)
        n_old = self.n_columns
        self.n_columns = kernels.hashing.merge_twins(sig, self.sig, self.slots, n_old, columns)
        self._join_classes(source, columns)
        if not found.is_single:
            self.listed[source] = (columns.astype(np.int64), _first_keys(found.keys, ids, n))
        self._store_new(found, ids, columns, n_old)
        self.zero_columns.append(columns[zero_ids])
        self.zero_positions.append(zero_positions)

    def _zeros_of(self, found: Occurrences, ids: UInts32, n: int) -> tuple[UInts32, UInts32]:
        """Attribute and position of each occurrence of value 0; attributes that have no other cannot have a weight."""
        positions, keys = found.zeros
        if not self.with_zeros or not len(positions):
            return np.zeros(0, np.uint32), np.zeros(0, np.uint32)
        known = _first_keys(found.keys, ids, n)
        by_key = np.argsort(known)
        where = np.minimum(np.searchsorted(known[by_key], keys), n - 1)
        attributes = by_key[where].astype(np.uint32)
        is_known = known[attributes] == keys
        return attributes[is_known], positions[is_known]

    def _reserve(self, n: int) -> None:
        need = self.n_columns + n
        if need > len(self.sig):
            size = max(need, 2 * len(self.sig))
            self.sig = scratch.concatenate([self.sig, np.zeros((size - len(self.sig), 2), np.uint64)])
            self.classes = scratch.concatenate([self.classes, np.zeros(size - len(self.classes), np.int64)])
        if 2 * need > len(self.slots):
            self.slots = scratch.zeros(1 << int(2 * need).bit_length(), np.uint32)
            kernels.hashing.rehash(self.sig, self.n_columns, self.slots)

    def _join_classes(self, source: int, columns: UInts32) -> None:
        """Each touched column moves from its class to the class that has `source` too."""
        names = list(self.class_ids)
        old, inverse = np.unique(self.classes[columns], return_inverse=True)
        new = [self.class_ids.setdefault((*names[c], source), len(self.class_ids)) for c in old]
        self.classes[columns] = np.array(new, np.int64)[inverse]

    def _store_new(self, found: Occurrences, ids: UInts32, columns: UInts32, n_old: int) -> None:
        """Positions of the columns seen for the first time, grouped by column."""
        of = columns[ids]
        which = np.flatnonzero(of >= n_old)
        order = which[np.argsort(of[which], kind="stable")]
        self.counts.append(np.bincount(of[which] - n_old, minlength=self.n_columns - n_old).astype(np.uint32))
        self.positions.append(scratch.keep(found.positions[order]))
        self.values.append(None if found.values is None else scratch.keep(found.values[order]))

    def _all_values(self) -> Floats:
        """Values of all occurrences; empty if all are one, which costs no memory then."""
        if all(values is None for values in self.values):
            return np.zeros(0)
        both = zip(self.positions, self.values, strict=True)
        return scratch.concatenate([np.ones(len(where)) if values is None else values for where, values in both])

    def finish(self, n_sources: int) -> ColumnTable:
        counts = np.concatenate([np.zeros(1, np.uint32), *self.counts])
        values = self._all_values()
        class_sources = list(self.class_ids)
        used, classes = np.unique(self.classes[: self.n_columns], return_inverse=True)
        return ColumnTable(
            ptr=np.cumsum(counts, dtype=np.int64),
            positions=scratch.concatenate([np.zeros(0, np.uint32), *self.positions]),
            values=values if np.any(values != 1.0) else np.zeros(0),
            classes=classes.astype(np.int64),
            class_sources=[class_sources[c] for c in used],
            n_attributes=np.array([self.n_attributes.get(i, 0) for i in range(n_sources)], np.int64),
            listed=self.listed,
            zeros=(
                np.concatenate([np.zeros(0, np.int64), *self.zero_columns]),
                np.concatenate([np.zeros(0, np.uint32), *self.zero_positions]),
            ),
        )


def intern(keys: UInts64) -> tuple[UInts32, int]:
    """Number distinct keys in order of first occurrence."""
    size = 1 << int(2 * len(keys) + 1).bit_length()
    ids = scratch.empty(len(keys), np.uint32)
    n = kernels.hashing.intern_keys(keys, scratch.zeros(size, np.uint64), scratch.zeros(size, np.uint32), ids)
    return ids, n


def _first_keys(keys: UInts64, ids: UInts32, n: int) -> UInts64:
    out = np.empty(n, np.uint64)
    out[ids[::-1]] = keys[::-1]
    return out


def _keep_apart(sig: UInts64) -> None:
    """Twins inside one source stay separate columns: salt the second and later of equal signatures."""
    order = np.lexsort((sig[:, 1], sig[:, 0]))
    ordered = sig[order]
    repeat = np.zeros(len(sig), np.uint64)
    for i in np.flatnonzero(np.all(ordered[1:] == ordered[:-1], axis=1)) + 1:
        repeat[order[i]] = repeat[order[i - 1]] + np.uint64(1)
    sig[:, 1] += repeat * np.uint64(0xD6E8FEB86659FD93)
