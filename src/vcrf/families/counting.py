"""Attributes counted, and twins merged, block by block: nobody holds the positions of a whole corpus.

A set of positions has a signature, a sum of random words (`kernels.hashing.signatures`): those of blocks add up. So an
attribute is a row: how often it occurs, where first, in how many blocks, and its signature. Rows of the same attribute
meet in a range of hashes, and rows of the same signature, twins, in a range of signatures; the columns are then
numbered in the order in which `families.columns.read_columns` numbers those of one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vcrf import kernels
from vcrf.errors import BudgetError
from vcrf.families.columns import ColumnTable, intern
from vcrf.families.family import Source
from vcrf.families.text import Text
from vcrf.types import Floats, Ints, UInts64

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Positions are 32 bits.
MOST_TOKENS = (1 << 32) - 1


class Attributes(NamedTuple):
    """Rows of attributes.

    Attributes
    ----------
    hashes : (n,) uint64, of source and key
    sources : (n,) int64
    sig : (n, 2) uint64, signature of the positions
    counts, first, n_blocks : (n,) int64, occurrences, the first position, and blocks that it occurs in
    """

    hashes: UInts64
    sources: Ints
    sig: UInts64
    counts: Ints
    first: Ints
    n_blocks: Ints

    def take(self, rows: Ints) -> Attributes:
        """Some of the rows."""
        return Attributes(*(array[rows] for array in self))  # type: ignore[arg-type]

    @property
    def nbytes(self) -> int:
        """Of all arrays."""
        return sum(array.nbytes for array in self)


class Columns(NamedTuple):
    """Distinct columns, twins merged.

    Attributes
    ----------
    sources, first : (n,) int64, the first source that has an attribute in each, and its first position
    counts, n_blocks : (n,) int64
    classes : (n,) int64, number in `class_sources`, the tuples of the members' sources
    class_counts : columns of each class, with those left out of these arrays
    """

    sources: Ints
    first: Ints
    counts: Ints
    n_blocks: Ints
    classes: Ints
    class_sources: list[tuple[int, ...]]
    class_counts: Ints


def attributes_of(text: Text, sources: Sequence[Source], offset: int) -> Attributes:
    """The attributes of a block whose first token is that of number `offset`, by source and first occurrence."""
    if offset + text.n_tokens > MOST_TOKENS:
        raise BudgetError(f"A cluster trains on {MOST_TOKENS:,} tokens at the most: pass fewer sentences.")
    parts = []
    for s, source in enumerate(sources):
        found = source.read(text)
        ids, n = intern(found.keys)
        sig, counts = np.zeros((n, 2), np.uint64), np.zeros(n, np.uint32)
        at = found.positions + np.uint32(offset)
        kernels.hashing.signatures(at, np.zeros(0, np.uint64), ids, sig, counts)
        keys, first = np.empty(n, np.uint64), np.empty(n, np.int64)
        keys[ids[::-1]], first[ids[::-1]] = found.keys[::-1], at[::-1]
        whole = np.full(n, s, np.int64)
        parts.append(Attributes(_hashes(keys, s), whole, sig, counts.astype(np.int64), first, np.ones(n, np.int64)))
    return _stack(parts)


def _hashes(keys: UInts64, source: int) -> UInts64:
    return keys + np.uint64(source * int(_GOLDEN) % 2**64)


def _stack(parts: Sequence[Attributes]) -> Attributes:
    return Attributes(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _range(words: UInts64, n: int) -> Ints:
    """Which of n ranges each word is in; the lowest bits of a key are no good."""
    return ((words >> np.uint64(24)) % np.uint64(n)).astype(np.int64)


def _rows_of_ranges(words: UInts64, n: int) -> list[Ints]:
    ranges = _range(words, n)
    order = np.argsort(ranges, kind="stable")
    return np.split(order, np.cumsum(np.bincount(ranges, minlength=n))[:-1])


def by_hash(rows: Attributes, n: int) -> list[Attributes]:
    """The rows in n ranges of their hashes."""
    return [rows.take(found) for found in _rows_of_ranges(rows.hashes, n)]


def by_signature(rows: Attributes, n: int) -> list[Attributes]:
    """The rows in n ranges of their signatures."""
    return [rows.take(found) for found in _rows_of_ranges(rows.sig[:, 0], n)]


def merge(parts: Sequence[Attributes]) -> Attributes:
    """Rows of one range of hashes, from all blocks: one row an attribute, by hash and source."""
    rows = _stack(parts)
    rows = rows.take(np.lexsort((rows.sources, rows.hashes)))
    begins = np.flatnonzero(_changes(rows.hashes) | _changes(rows.sources))
    if not len(begins):
        return rows
    return Attributes(
        rows.hashes[begins], rows.sources[begins], np.add.reduceat(rows.sig, begins),
        np.add.reduceat(rows.counts, begins), np.minimum.reduceat(rows.first, begins),
        np.add.reduceat(rows.n_blocks, begins),
    )  # fmt: skip


def count_sources(rows: Attributes, n_sources: int) -> Ints:
    """Attributes of each source."""
    return np.bincount(rows.sources, minlength=n_sources)


def merge_twins(parts: Sequence[Attributes], least_count: int) -> tuple[Columns, Ints]:
    """Columns of one range of signatures that occur so often at the least; and the column of each row, -1 if none."""
    rows = _stack(parts)
    order = np.lexsort((rows.sources, rows.sig[:, 1], rows.sig[:, 0]))
    rows = rows.take(order)
    is_first = _changes(rows.sig[:, 0]) | _changes(rows.sig[:, 1])
    begins = np.flatnonzero(is_first)
    classes, class_sources = _classes(rows.sources, begins)
    kept = rows.counts[begins] >= least_count
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    of_row = np.empty(len(rows.counts), np.int64)
    of_row[order] = number[np.cumsum(is_first) - 1]
    firsts = begins[kept]
    columns = Columns(
        rows.sources[firsts], rows.first[firsts], rows.counts[firsts], rows.n_blocks[firsts], classes[kept],
        class_sources, np.bincount(classes, minlength=len(class_sources)),
    )  # fmt: skip
    return columns, of_row


def _classes(sources: Ints, begins: Ints) -> tuple[Ints, list[tuple[int, ...]]]:
    """Number of each group's tuple of sources, and the tuples; groups begin at `begins`."""
    if not len(begins):
        return np.zeros(0, np.int64), []
    ends = np.append(begins[1:], len(sources))
    n = np.arange(len(sources)) - np.repeat(begins, ends - begins)
    # Tuples are told apart by sums of words that depend on source and place.
    words = (sources.astype(np.uint64) + np.uint64(1)) * _GOLDEN * (n.astype(np.uint64) * np.uint64(2) + np.uint64(1))
    words ^= words >> np.uint64(29)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    sums = np.add.reduceat(words ^ (words >> np.uint64(32)), begins)
    _, firsts, classes = np.unique(sums, return_index=True, return_inverse=True)
    return classes.reshape(-1), [tuple(sources[begins[i] : ends[i]].tolist()) for i in firsts]


def _changes(values: np.ndarray) -> np.ndarray:
    """Whether each value differs from the one before."""
    return np.concatenate([np.ones(min(len(values), 1), bool), values[1:] != values[:-1]])


def number_columns(parts: Sequence[Columns]) -> tuple[Columns, list[Ints]]:
    """All columns, numbered by first source and first position; and the numbers of those of each part."""
    names = sorted({name for part in parts for name in part.class_sources})
    number = {name: i for i, name in enumerate(names)}
    maps = [np.array([number[name] for name in part.class_sources], np.int64) for part in parts]
    class_counts = np.zeros(len(names), np.int64)
    for part, known in zip(parts, maps, strict=True):
        np.add.at(class_counts, known, part.class_counts)
    arrays = [
        np.concatenate([getattr(part, name) for part in parts]) for name in ("sources", "first", "counts", "n_blocks")
    ]
    classes = np.concatenate([known[part.classes] for part, known in zip(parts, maps, strict=True)])
    order = np.lexsort((arrays[1], arrays[0]))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    ends = np.cumsum([len(part.counts) for part in parts])
    source, first, occurrences, n_blocks = (array[order] for array in arrays)
    columns = Columns(source, first, occurrences, n_blocks, classes[order], names, class_counts)
    return columns, np.split(numbers, ends[:-1])


def numbers_of_rows(of_row: Ints, numbers: Ints, parts: Sequence[Attributes]) -> list[Ints]:
    """The columns of the rows of one range of signatures, for each range of hashes that they came from."""
    found = np.append(numbers, -1)[of_row]
    return np.split(found, np.cumsum([len(part.counts) for part in parts])[:-1])


def joined(rows: Attributes, parts: Sequence[Ints]) -> Ints:
    """Columns of the rows of one range of hashes, from those of the ranges of signatures they went to."""
    out = np.empty(len(rows.counts), np.int64)
    for found, part in zip(_rows_of_ranges(rows.sig[:, 0], len(parts)), parts, strict=True):
        out[found] = part
    return out


def look_up(rows: Attributes, numbers: Ints, asked: Attributes) -> Ints:
    """Columns of some attributes, all of which are among the rows of their range."""
    at = np.searchsorted(rows.hashes, asked.hashes)
    while len(wrong := np.flatnonzero(rows.sources[at] != asked.sources)):
        at[wrong] += 1  # two sources may share a hash
    return numbers[at]


def block_columns(
    text: Text, sources: Sequence[Source], asked: Attributes, answers: Sequence[Ints], classes: Ints,
    class_sources: list[tuple[int, ...]],
) -> tuple[Ints, ColumnTable]:  # fmt: skip
    """The columns that occur in a block, as numbers (sorted), and their table.

    `asked` are the attributes of the block, `answers` their columns by range of hashes; `classes` (n_columns,) are the
    classes of all columns, -1 where a column is left out.
    """
    of_attribute = np.empty(len(asked.counts), np.int64)
    for rows, part in zip(_rows_of_ranges(asked.hashes, len(answers)), answers, strict=True):
        of_attribute[rows] = part
    is_in = of_attribute >= 0
    is_in[is_in] = classes[of_attribute[is_in]] >= 0
    numbers = np.unique(of_attribute[is_in])
    local = np.where(is_in, np.searchsorted(numbers, of_attribute), -1)
    seen = np.zeros(len(numbers), bool)
    columns, positions, first = [np.zeros(0, np.uint32)], [np.zeros(0, np.uint32)], 0
    for source in sources:
        found = source.read(text)
        ids, n = intern(found.keys)
        mine = local[first : first + n]
        # Twins occur at the same tokens: the first of them says where.
        mine = np.where((mine >= 0) & ~seen[np.maximum(mine, 0)], mine, -1) if len(seen) else mine
        seen[mine[mine >= 0]] = True
        of = mine[ids]
        columns.append(of[of >= 0].astype(np.uint32))
        positions.append(found.positions[of >= 0])
        first += n
    of_all = np.concatenate(columns)
    counts = np.bincount(of_all, minlength=len(numbers))
    empty: Floats = np.zeros(0)
    return numbers, ColumnTable(
        ptr=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        positions=np.concatenate(positions)[np.argsort(of_all, kind="stable")],
        values=empty,
        classes=classes[numbers].astype(np.int64),
        class_sources=class_sources,
        n_attributes=np.zeros(len(sources), np.int64),
        listed={},
        zeros=(np.zeros(0, np.int64), np.zeros(0, np.uint32)),
    )
