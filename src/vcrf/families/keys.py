"""Key factorisation: attributes that are a function of the token's type are scored once per type.

A key group is a partition of the positions (by word type, by pair of neighbouring types, ...). A column that
is a union of whole keys is scored and scattered once a key instead of once a token; that is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vcrf import kernels, scratch
from vcrf.families.columns import ColumnTable, intern
from vcrf.families.family import Source
from vcrf.families.templates import Template
from vcrf.families.text import Text
from vcrf.types import Bools, Floats, Ints, UInts32, UInts64
from vcrf.workers import cut

# A partition finer than this share of the tokens saves nothing over single positions.
_FINEST = 0.7
# A partition by what a template reads, beside that of its window, is no finer than this share.
_COARSE = 0.1
# Entries that are taken at a time.
_ENTRIES = 1 << 20


@dataclass(frozen=True)
class KeyGroup:
    """A partition of the positions and the columns that are unions of its keys.

    Attributes
    ----------
    pos_key : (n_tokens,) uint32, key of each position, 0 = none of the group's columns can occur there
    key_ptr, key_positions : CSR from keys 0..n_keys to their positions (key 0 is empty)
    columns : (n,) the columns of the group
    col_ptr, col_keys : CSR from those columns to their keys; col_values likewise, empty if all are 1
    """

    pos_key: UInts32
    key_ptr: Ints
    key_positions: UInts32
    columns: UInts32
    col_ptr: Ints
    col_keys: UInts32
    col_values: Floats

    @property
    def n_keys(self) -> int:
        return len(self.key_ptr) - 1


def partitions(text: Text, sources: Sequence[Source]) -> list[UInts32]:
    """Partitions of the positions under which the sources' attributes are functions, coarsest first.

    Templates look at windows of words; a named feature with one attribute a position is its own partition,
    unless it is a function of another one (a suffix is a function of the word).
    """
    templates = [source for source in sources if isinstance(source, Template)]
    windows = {template.window for template in templates}
    limit = _FINEST * text.n_tokens
    found, is_fine = [], set()
    for window in sorted(windows, key=lambda w: (len(w), w)):
        found.append(_intern_window(window, text))
        if found[-1][1] > limit:
            is_fine.add(window)
    # Of a window that tells nearly all positions apart a template may read little: the kinds of three words.
    own = [intern(_present(template.keys(text))) for template in templates if template.window in is_fine]
    found += [ids for ids in own if ids[1] <= _COARSE * text.n_tokens]
    for source in sources:
        if not isinstance(source, Template):
            occurrences = source.read(text)
            if occurrences.is_single and occurrences.values is None:
                keys = np.zeros(text.n_tokens, np.uint64)
                keys[occurrences.positions] = occurrences.keys
                found.append(intern(_present(keys)))
    kept = sorted((ids for ids in found if ids[1] <= limit), key=lambda ids: -ids[1])
    return [ids for ids, _ in reversed(_drop_functions(kept, text.n_tokens))]


def group_columns(columns: ColumnTable, keep: Bools, found: Sequence[UInts32], n_tokens: int) -> list[KeyGroup]:
    """Put each kept column into the coarsest partition that represents it; the rest into single positions."""
    left = np.flatnonzero(keep)
    valued = _has_values(columns)
    groups = []
    for ids in found:
        ptr, positions, _ = _take(columns, left)
        n_keys = int(ids.max(initial=0)) + 1
        fits = np.zeros(len(left), np.uint32)
        key_count = np.bincount(ids, minlength=n_keys).astype(np.uint32)
        kernels.hashing.representable(ptr, positions, ids, key_count, np.zeros(n_keys, np.uint32), fits)
        chosen = (fits == 1) & ~valued[left]
        if np.any(chosen):
            groups.append(_build(columns, left[chosen], ids + np.uint32(1), n_keys + 1))
        left = left[~chosen]
    if len(left):
        groups.append(_single_positions(columns, left, n_tokens))
    return groups


def _build(columns: ColumnTable, chosen: Ints, pos_key: UInts32, n_rows: int) -> KeyGroup:
    ptr, positions, _ = _take(columns, chosen)
    col_ptr, keys = np.zeros(len(chosen) + 1, np.int64), scratch.empty(len(positions), np.uint32)
    every = np.arange(len(chosen), dtype=np.uint32)
    n = kernels.hashing.distinct_keys(ptr, positions, pos_key, np.zeros(n_rows, np.uint32), every, col_ptr, keys)
    # Positions whose key has no column need no row at all.
    used = np.zeros(n_rows, bool)
    used[keys[:n]] = True
    renumber = np.zeros(n_rows, np.uint32)
    renumber[used] = np.arange(1, int(used.sum()) + 1, dtype=np.uint32)
    pos_key = scratch.keep(renumber[pos_key])
    return KeyGroup(
        pos_key,
        *_positions_of_keys(pos_key),
        chosen.astype(np.uint32),
        col_ptr,
        scratch.keep(renumber[keys[:n]]),
        np.zeros(0),
    )


def _single_positions(columns: ColumnTable, chosen: Ints, n_tokens: int) -> KeyGroup:
    ptr, positions, values = _take(columns, chosen)
    used = np.unique(positions)
    pos_key = scratch.zeros(n_tokens, np.uint32)
    pos_key[used] = np.arange(1, len(used) + 1, dtype=np.uint32)
    keys = scratch.keep(pos_key[positions])
    return KeyGroup(pos_key, *_positions_of_keys(pos_key), chosen.astype(np.uint32), ptr, keys, values)


def _positions_of_keys(pos_key: UInts32) -> tuple[Ints, UInts32]:
    order = scratch.keep(np.argsort(pos_key, kind="stable").astype(np.uint32))
    counts = np.bincount(pos_key)
    order = order[counts[0] :]
    counts[0] = 0
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), order


def _take(columns: ColumnTable, chosen: Ints) -> tuple[Ints, UInts32, Floats]:
    """CSR of a choice of columns."""
    return take_rows(columns.ptr, columns.positions, columns.values, chosen)


def take_rows(ptr: Ints, ids: UInts32, values: Floats, chosen: Ints) -> tuple[Ints, UInts32, Floats]:
    """Rows `chosen` of a CSR list, as a CSR list."""
    counts = ptr[chosen + 1] - ptr[chosen]
    out_ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    taken = scratch.empty(int(out_ptr[-1]), ids.dtype)
    of_values = scratch.empty(len(taken) if len(values) else 0)
    # Some rows at a time: the index of all is larger than what it takes.
    for a, b in pairwise(cut(out_ptr, 1 + len(taken) // _ENTRIES)):
        first, last = out_ptr[a], out_ptr[b]
        index = np.repeat(ptr[chosen[a:b]] - out_ptr[a:b], counts[a:b]) + np.arange(first, last)
        taken[first:last] = ids[index]
        if len(values):
            of_values[first:last] = values[index]
    return out_ptr, taken, of_values


def _has_values(columns: ColumnTable) -> Bools:
    if len(columns.values) == 0:
        return np.zeros(len(columns), bool)
    odd = np.concatenate([np.zeros(1, np.int64), np.cumsum(columns.values != 1.0)])
    return np.asarray(odd[columns.ptr[1:]] > odd[columns.ptr[:-1]])


def _present(keys: UInts64) -> UInts64:
    """Key 0 is the table's mark for a free slot: "absent" needs another value."""
    keys[keys == 0] = 2
    return keys


def _intern_window(window: tuple[int, ...], text: Text) -> tuple[UInts32, int]:
    return intern(Template(tuple((offset, "word") for offset in window), pad=True).keys(text))


def _drop_functions(found: list[tuple[UInts32, int]], n_tokens: int) -> list[tuple[UInts32, int]]:
    """Leave out a partition that is a function of a finer one, unless that one is nearly single positions.

    A group costs one gather a token; the columns of a coarse partition cost little more in a finer one.
    """
    kept: list[tuple[UInts32, int]] = []
    for ids, n in found:
        leaders = ((other, k) for other, k in kept if 2 * k <= n_tokens or k <= 2 * n)
        if not any(kernels.hashing.is_function_of(other, ids, np.full(k, -1, np.int64)) for other, k in leaders):
            kept.append((ids, n))
    return kept
