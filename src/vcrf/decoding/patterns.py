"""Weights of tag patterns by attribute, and the scores they give to a text where the attributes fire."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vcrf import kernels
from vcrf.decoding.arcs import PatternPotentials, TagPatterns, choose_patterns
from vcrf.decoding.potentials import Potentials
from vcrf.types import Bools, Floats, Ints, UInts32

if TYPE_CHECKING:
    pass


class Firing(NamedTuple):
    """Positions of a text where attributes occur, their rows, and values (empty for indicators)."""

    positions: UInts32
    rows: UInts32
    values: Floats


@dataclass(frozen=True, eq=False)
class PatternWeights:
    """CSR from rows (attributes) to weighted tag patterns.

    Attributes
    ----------
    n_labels : int
    ptr : (n_rows + 1,) int64, entries ptr[r] .. ptr[r+1]-1 belong to row r
    lengths, codes, weights : (n_entries,) pattern length, pattern code, weight
    is_plain : (n_entries,) bool, patterns of length 2 or more that occur everywhere, whatever the text
    """

    n_labels: int
    ptr: Ints
    lengths: UInts32
    codes: UInts32
    weights: Floats
    is_plain: Bools

    @property
    def order(self) -> int:
        """Longest tag pattern that has a weight, at least 1."""
        return int(self.lengths.max(initial=1))

    def score(self, sent_ptr: Ints, firings: Iterable[Firing]) -> Potentials:
        """Scores of a text; row n_rows stands for every attribute that has no weight."""
        n_tokens = int(sent_ptr[-1])
        node = np.zeros((n_tokens, self.n_labels))
        single, longer = self.single, self.longer
        found: list[_Local] = []
        for positions, rows, values in firings:
            kernels.decode.add_scores(positions, rows, values, single.ptr, single.codes, single.weights, node)
            if len(longer.weights):
                found.append(_local_patterns(longer, positions, rows, values))
        local = _by_token(found, n_tokens)
        if self.automaton is None:
            return Potentials(sent_ptr, node, self.tables, local, self.order)
        return PatternPotentials(sent_ptr, node, self.tables, local, self.order, None, self.automaton)

    @cached_property
    def single(self) -> PatternRows:
        """Patterns of one label, by row; the last row is empty."""
        return self._rows(self.lengths == 1)

    @cached_property
    def longer(self) -> PatternRows:
        """Patterns of more labels that are not plain, by row."""
        return self._rows((self.lengths > 1) & ~self.is_plain)

    @cached_property
    def automaton(self) -> TagPatterns | None:
        """The tag patterns as an automaton, if that is the faster way to tag."""
        return choose_patterns(self.n_labels, self.lengths, self.codes, self.weights, self.is_plain)

    @cached_property
    def tables(self) -> dict[int, Floats]:
        """Scores of plain tag patterns of each length, see `Potentials`; of pairs only where there is an automaton."""
        tables = {}
        for k in np.unique(self.lengths[self.is_plain]).tolist():
            if k > 2 and self.automaton is not None:
                continue
            which = self.is_plain & (self.lengths == k)
            tables[k] = np.zeros(self.n_labels**k)
            tables[k][self.codes[which]] = self.weights[which]
        return tables

    def _rows(self, which: Bools) -> PatternRows:
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(which)])[self.ptr]
        # One more row, which is empty, stands for every attribute that has no weight.
        ptr = np.append(before, before[-1])
        return PatternRows(ptr, self.lengths[which], self.codes[which], self.weights[which])


class PatternRows(NamedTuple):
    """CSR from rows to pattern lengths, codes and weights."""

    ptr: Ints
    lengths: UInts32
    codes: UInts32
    weights: Floats


class _Local(NamedTuple):
    """Patterns that fire at tokens, in any order."""

    positions: Ints
    size: UInts32
    code: UInts32
    score: Floats


def _local_patterns(longer: PatternRows, positions: UInts32, rows: UInts32, values: Floats) -> _Local:
    counts = longer.ptr[rows + 1] - longer.ptr[rows]
    occurrence = np.repeat(np.arange(len(rows)), counts)
    entry = np.repeat(longer.ptr[rows] - np.cumsum(counts) + counts, counts) + np.arange(len(occurrence))
    score = longer.weights[entry] * values[occurrence] if len(values) else longer.weights[entry]
    return _Local(positions[occurrence].astype(np.int64), longer.lengths[entry], longer.codes[entry], score)


def _by_token(found: list[_Local], n_tokens: int) -> kernels.scores.LocalScores:
    positions = np.concatenate([np.zeros(0, np.int64), *(part.positions for part in found)])
    order = np.argsort(positions, kind="stable")
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(positions, minlength=n_tokens))])
    return kernels.scores.LocalScores(
        ptr,
        np.concatenate([np.zeros(0, np.uint32), *(part.size for part in found)])[order],
        np.concatenate([np.zeros(0, np.uint32), *(part.code for part in found)])[order],
        np.concatenate([np.zeros(0), *(part.score for part in found)])[order],
    )
