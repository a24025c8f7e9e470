"""A problem whose sentences are in blocks, on workers: what the solver's side knows of it, and the block's side.

The solver's side has every distinct column, by its counts: none of its positions. A block is a `Problem` of its own,
with the columns that occur in it, in the order of their numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from vcrf.families.columns import ColumnTable
from vcrf.families.counting import Columns
from vcrf.families.family import Family, Source
from vcrf.families.text import Text
from vcrf.graphs.parts import PartSpace
from vcrf.problem.candidates import Candidates, family_table
from vcrf.problem.chains import Problem, check_order
from vcrf.types import Bools, Floats, Ints, Label, UInts32


class BlockData(NamedTuple):
    """Sentences of a block, none empty: words and labels by their own numbers."""

    text: Text
    y: UInts32
    labels: list[Label]


class BlockFacts(NamedTuple):
    """What the solver's side has to know of a block; `digest` is of its content."""

    words: list[str]
    labels: list[Label]
    n_sentences: int
    n_tokens: int
    longest: int
    digest: bytes


def facts_of(data: BlockData) -> BlockFacts:
    """Facts of a block."""
    digest = hashlib.sha256()
    for strings in (data.text.words, [str(label) for label in data.labels]):
        for string in strings:
            encoded = string.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
    for array in (data.text.sent_ptr, data.text.word_ids, data.y):
        digest.update(len(array).to_bytes(8, "little") + np.ascontiguousarray(array).tobytes())
    text, lengths = data.text, np.diff(data.text.sent_ptr)
    return BlockFacts(
        text.words, data.labels, text.n_sentences, text.n_tokens, int(lengths.max(initial=0)), digest.digest()
    )  # fmt: skip


class Vocabulary(Text):
    """The words of all blocks, and as many sentences and tokens; the sentences at hand are few, or none."""

    def __init__(self, words: list[str], counts: tuple[int, int], sent_ptr: Ints, word_ids: UInts32) -> None:
        super().__init__(sent_ptr, words, word_ids)
        self.counts = counts

    @property
    def n_sentences(self) -> int:
        """Sentences of all blocks."""
        return self.counts[0]

    @property
    def n_tokens(self) -> int:
        """Tokens of all blocks."""
        return self.counts[1]

    def of_sentences(self, sentences: Sequence[Sequence[str]]) -> Text:
        """Some sentences, with all the words."""
        number = {word: i for i, word in enumerate(self.words)}
        lengths = [len(sentence) for sentence in sentences]
        ids = np.array([number[word] for sentence in sentences for word in sentence], np.uint32)
        return Text(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)]), self.words, ids)


@dataclass(frozen=True)
class CountedColumns(ColumnTable):
    """Columns without their positions.

    Attributes
    ----------
    first, n_blocks : (n_columns,) int64, first position in the corpus, and blocks that each occurs in
    of_classes : columns of each class, with those whose counts show that they stay at zero and are not here
    """

    first: Ints
    n_blocks: Ints
    of_classes: Ints

    @property
    def first_positions(self) -> UInts32:
        return self.first.astype(np.uint32)

    @property
    def class_counts(self) -> Ints:
        return self.of_classes


@dataclass(frozen=True)
class Gathered(Candidates):
    """The solver's side.

    Attributes
    ----------
    vocabulary : words and sizes; `text` is the same, but where attributes are named
    longest : tokens of the longest sentence
    """

    columns: CountedColumns
    vocabulary: Vocabulary = field(kw_only=True)
    longest: int = field(kw_only=True)

    @property
    def space(self) -> PartSpace:
        """Tag patterns of lengths 1 .. order."""
        return PartSpace(tuple(self.n_labels**k for k in range(1, self.family_of.shape[1])))

    @property
    def n_instances(self) -> int:
        return self.vocabulary.n_tokens

    @property
    def example_of(self) -> Ints:
        raise TypeError("The sentences of a gathered problem are elsewhere.")

    def n_parts(self, kind: int) -> Ints:  # noqa: ARG002
        raise TypeError("The sentences of a gathered problem are elsewhere.")

    def has_part(self, kind: int) -> Bools:  # noqa: ARG002
        raise TypeError("The sentences of a gathered problem are elsewhere.")

    @property
    def log_outputs(self) -> float:
        return self.longest * float(np.log(self.n_labels))

    @property
    def column_mass(self) -> Floats:
        """Occurrences times the weight of a sentence: all have the same."""
        return np.diff(self.columns.ptr) / self.vocabulary.n_sentences

    @property
    def bias_column(self) -> int:
        """The column that occurs everywhere, or -1."""
        full = np.flatnonzero(np.diff(self.columns.ptr) == self.n_instances)
        return int(full[0]) if len(full) else -1


def gather(
    vocabulary: Vocabulary, n_labels: int, longest: int, families: list[Family], sources: list[Source],
    columns: Columns, n_attributes: Ints,
) -> Gathered:  # fmt: skip
    """The solver's side from what was counted."""
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(columns.counts)])
    none = np.zeros(0, np.int64), np.zeros(0, np.uint32)
    table = CountedColumns(
        ptr, np.zeros(0, np.uint32), np.zeros(0), columns.classes, columns.class_sources, n_attributes, {}, none,
        columns.first, columns.n_blocks, columns.class_counts,
    )  # fmt: skip
    m, order = vocabulary.n_sentences, max(family.tags for family in families)
    check_order(n_labels, order)
    return Gathered(
        vocabulary, np.zeros(0, np.uint32), n_labels, families, sources,
        family_table(families, sources, order), table,
        np.broadcast_to(np.float64(1.0 / m), (m,)), vocabulary=vocabulary, longest=longest,
    )  # fmt: skip


@dataclass(frozen=True)
class BlockProblem(Problem):
    """The block's side; `bias` is the number in the block of the column that occurs everywhere in the corpus."""

    bias: int = -1

    @property
    def bias_column(self) -> int:
        return self.bias


class BlockShape(NamedTuple):
    """What a block has to know of the whole problem.

    Attributes
    ----------
    labels : all, by number
    n_sentences : of all blocks
    classes : (n_columns,) int64, class of each column; -1: it stays at zero
    is_shared : (n_columns,) bool, whether it occurs in more than one block
    bias : column that occurs everywhere, or -1
    """

    labels: list[Label]
    n_sentences: int
    families: list[Family]
    sources: list[Source]
    family_of: Ints
    classes: Ints
    class_sources: list[tuple[int, ...]]
    is_shared: Bools
    bias: int


def shape_of(problem: Gathered, labels: list[Label], keep: Bools) -> BlockShape:
    """For blocks with the columns of `keep` alone."""
    table = problem.columns
    return BlockShape(
        labels, problem.vocabulary.n_sentences, problem.families, problem.sources, problem.family_of,
        np.where(keep, table.classes, -1).astype(np.int32), table.class_sources, table.n_blocks > 1,
        problem.bias_column,
    )  # fmt: skip


def block_problem(data: BlockData, shape: BlockShape, numbers: Ints, columns: ColumnTable) -> BlockProblem:
    """The block's side, with the columns of these numbers."""
    known = {label: i for i, label in enumerate(shape.labels)}
    own = np.array([known[label] for label in data.labels], np.uint32)
    at = int(np.searchsorted(numbers, shape.bias))
    has_bias = shape.bias >= 0 and at < len(numbers) and numbers[at] == shape.bias
    return BlockProblem(
        data.text, own[data.y], len(shape.labels), shape.families, shape.sources, shape.family_of, columns,
        np.full(data.text.n_sentences, 1.0 / shape.n_sentences), bias=at if has_bias else -1,
    )  # fmt: skip
