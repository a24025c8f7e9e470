"""Potentials of given attributes: what was read once is looked up, within a bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from vcrf import kernels
from vcrf.decoding.patterns import PatternWeights
from vcrf.decoding.potentials import Potentials, sum_tables
from vcrf.families.reading import Reader
from vcrf.families.text import encode_strings, sentence_ptr
from vcrf.types import Floats, UInts32, UInts64

# What was read is forgotten, all at once, when there are more entries: attributes with a value.
MAX_ENTRIES = 1 << 20


class AttributeScorer:
    """Scores of sentences under a model of single labels of given attributes, and plain tag patterns of two labels.

    Parameters
    ----------
    patterns : the model's weights
    find_rows : from content hashes of attribute strings to rows of the weights
    """

    def __init__(self, patterns: PatternWeights, find_rows: Callable[[UInts64], UInts32]) -> None:
        self._patterns, self._find_rows = patterns, find_rows
        self._order, self._single = patterns.order, patterns.single
        self._arcs = sum_tables(patterns.tables, patterns.n_labels, self._order)
        self._pairs = sum_tables(patterns.tables, patterns.n_labels, 2)
        self._known = _KnownEntries(find_rows)
        self._no_pattern = np.zeros(0, np.uint32)

    def potentials(self, sentences: Sequence[Sequence[Any]]) -> Potentials:
        """Scores of sentences."""
        known = self._known_now()
        ptr = sentence_ptr(sentences)
        sizes, entries = known.reader.read(sentences)
        patterns, (single, _, labels, weights) = self._patterns, self._single
        node = np.zeros((len(sizes), patterns.n_labels))
        kernels.decode.add_entries(sizes, entries, *known.table(), single, labels, weights, node)
        none = kernels.scores.LocalScores(
            np.zeros(len(sizes) + 1, np.int64), self._no_pattern, self._no_pattern, np.zeros(0)
        )
        return Potentials(ptr, node, patterns.tables, none, self._order, self._arcs)

    def decode(self, sentence: Sequence[Any]) -> list[int]:
        """Best labels of one sentence, by number: what `potentials` and its `decode` give, in fewer steps."""
        known = self._known_now()
        sizes, entries = known.reader.read([sentence])
        flat = np.empty(len(sizes), np.uint32)
        if len(flat):
            single, _, labels, weights = self._single
            kernels.decode.decode_entries(sizes, entries, *known.table(), single, labels, weights, self._pairs, flat)
        best: list[int] = flat.tolist()
        return best

    def _known_now(self) -> _KnownEntries:
        if len(self._known.reader) > MAX_ENTRIES:
            # Other threads may be using the old one, which is left as it is.
            self._known = _KnownEntries(self._find_rows)
        return self._known


class _KnownEntries:
    """Entries read so far, with the row and the value of each; these never change."""

    def __init__(self, find_rows: Callable[[UInts64], UInts32]) -> None:
        self.reader = Reader()
        self._find_rows = find_rows
        self._table = np.zeros(0, np.uint32), np.zeros(0)
        self._lock = Lock()

    def table(self) -> tuple[UInts32, Floats]:
        """Row and value of every entry that the reader knows."""
        if len(self._table[0]) < len(self.reader):
            with self._lock:
                first, last = len(self._table[0]), len(self.reader)
                names, values = self.reader.names[first:last], np.array(self.reader.values[first:last])
                keys = np.empty(len(names), np.uint64)
                kernels.strings.hash_strings(*encode_strings(names), keys)
                rows, known = self._table
                self._table = np.concatenate([rows, self._find_rows(keys)]), np.concatenate([known, values])
        return self._table
