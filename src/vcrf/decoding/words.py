"""Potentials of tokenised sentences: what a word type adds to the scores is computed once, and kept within a bound.

Labels and scores are those of reading every attribute at every token, up to the order in which weights are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from vcrf import kernels
from vcrf.decoding.arcs import PatternPotentials, TagPatterns
from vcrf.decoding.potentials import Potentials, sum_tables
from vcrf.families.templates import Template
from vcrf.families.text import Text, intern_sentences, sentence_ptr
from vcrf.types import Bools, Floats, Ints, UInts32, UInts64

if TYPE_CHECKING:
    from vcrf.classes import WordClasses
    from vcrf.kernels.scores import LocalScores
    from vcrf.kernels.words import KnownTypes
    from vcrf.model import Model

# Word types are forgotten, all at once, when there are more of them or when they take more bytes.
MAX_TYPES = 1 << 16
MAX_BYTES = 1 << 26

Sentences = Sequence[Sequence[str]]
Scalar = TypeVar("Scalar", bound=np.generic)


class WordScorer:
    """Scores of sentences under a model that reads nothing but templates. Threads may share it.

    Parameters
    ----------
    model : Model
        All its sources are templates.
    is_plain : (n_entries,) bool
        The entries of the model that are in `tables`.
    tables : scores of plain tag patterns, see `Potentials`
    patterns : the tag patterns as an automaton, if that is the faster way
    """

    def __init__(
        self, model: Model, is_plain: Bools, tables: dict[int, Floats], patterns: TagPatterns | None = None
    ) -> None:
        self._rules = _Rules(model, is_plain)
        self._tables, self._order = tables, model.order
        self._patterns = patterns
        self._arcs = sum_tables(tables, model.n_labels, model.order) if patterns is None else None
        self._known = _KnownWords(self._rules)
        self._lock = Lock()

    def potentials(self, sentences: Sentences) -> Potentials:
        """Scores of sentences.

        Raises
        ------
        InputError
            When a token is no str.
        """
        ptr = sentence_ptr(sentences)
        return self._score(ptr, *self._types_of(list(chain.from_iterable(sentences)), sentences))

    def potentials_of(self, text: Text) -> Potentials:
        """Scores of sentences whose words are interned already."""
        known, types = self._types_of(text.words, [text.words])
        return self._score(text.sent_ptr, known, types[text.word_ids])

    def _score(self, sent_ptr: Ints, known: _KnownWords, types: UInts32) -> Potentials:
        rules = self._rules
        node = np.empty((len(types), rules.n_labels))
        if len(rules.longer.code):
            local = kernels.words.score_tokens(
                sent_ptr, types, rules.offsets, known.types, rules.windows, rules.single, rules.longer, node
            )
        else:
            kernels.words.score_labels(
                sent_ptr, types, rules.offsets, known.types.node, known.types.readings, rules.windows, rules.single,
                node,
            )  # fmt: skip
            none = np.zeros(0, np.uint32)
            local = kernels.scores.LocalScores(np.zeros(len(types) + 1, np.int64), none, none, np.zeros(0))
        if self._patterns is None:
            return Potentials(sent_ptr, node, self._tables, local, self._order, self._arcs)
        return PatternPotentials(sent_ptr, node, self._tables, local, self._order, None, self._patterns)

    def _types_of(self, words: list[str], sentences: Sentences) -> tuple[_KnownWords, UInts32]:
        known = self._known
        try:
            types = known.look_up(words)
            return (known, types) if np.all(types) else self._learn(words)
        except TypeError:
            intern_sentences(sentences)  # its error says where the token is that is no str
            raise

    def _learn(self, words: list[str]) -> tuple[_KnownWords, UInts32]:
        with self._lock:
            known = self._known
            types, new = known.number(words)
            if not known.has_room_for(len(new)):
                # Other threads may be using the old ones, which are left as they are.
                known = _KnownWords(self._rules)
                types, new = known.number(words)
                if known.has_room_for(len(new)):
                    self._known = known
            known.add(new)
            return known, types


class _Rules:
    """The model as arrays. A row is an attribute with weights; row 0 has none, the model's row r is row r + 1.

    Attributes
    ----------
    offsets : (G,) offsets of the templates that look at one
    own : those templates, by offset; `groups` has the number of each one's offset
    windows : templates that look at several
    single, longer : patterns of one label and of more, by row; plain ones left out
    readings : all readings (see `Template.readings`), those of windows first
    """

    def __init__(self, model: Model, is_plain: Bools) -> None:
        rows = list(zip(model.sources, model.source_ptr[:-1].tolist(), model.source_ptr[1:].tolist(), strict=True))
        used = [(source, first, last) for source, first, last in rows if last > first and isinstance(source, Template)]
        own = sorted((rule for rule in used if len(rule[0].window) < 2), key=lambda rule: _offset(rule[0]))
        windows = [rule for rule in used if len(rule[0].window) > 1]
        offsets, groups = np.unique([_offset(source) for source, _, _ in own], return_inverse=True)
        self.n_labels = model.n_labels
        self.offsets, self.groups = offsets.astype(np.int64), groups.astype(np.uint32)
        window_readings = _readings(windows)
        self.n_window_readings = len(window_readings)
        self.readings = list(dict.fromkeys(window_readings + _readings(own)))
        self.own, self.windows = self._compile(own, model.keys), self._compile(windows, model.keys)
        self.single = _patterns(model, model.lengths == 1)
        self.longer = _patterns(model, (model.lengths > 1) & ~is_plain)

    def _compile(self, rules: list[tuple[Template, int, int]], keys: UInts64) -> kernels.words.Templates:
        parts = [part for source, _, _ in rules for part in source.parts]
        readings = [reading for source, _, _ in rules for reading in source.readings]
        # At least four slots a key: most searches are for keys that are not there, and end soon.
        sizes = [1 << (4 * (last - first) - 1).bit_length() for _, first, last in rules]
        slot_ptr = np.cumsum([0, *sizes], dtype=np.int64)
        slots_key, slots_row = np.zeros(slot_ptr[-1], np.uint64), np.zeros(slot_ptr[-1], np.uint32)
        for j, (_, first, last) in enumerate(rules):
            slots = slice(slot_ptr[j], slot_ptr[j + 1])
            kernels.words.fill_slots(np.array(keys[first:last]), first + 1, slots_key[slots], slots_row[slots])
        return kernels.words.Templates(
            part_ptr=np.cumsum([0, *(len(source.parts) for source, _, _ in rules)], dtype=np.int64),
            offsets=np.array([offset for offset, _ in parts], np.int64),
            readings=np.array([self.readings.index(reading) for reading in readings], np.uint32),
            pad=np.array([source.pad for source, _, _ in rules], np.bool_),
            slot_ptr=slot_ptr,
            slots_key=slots_key,
            slots_row=slots_row,
        )


class _KnownWords:
    """Word types read so far. Numbers and rows of types never change: only new ones are added, by one thread."""

    def __init__(self, rules: _Rules) -> None:
        self._rules = rules
        self._numbers: dict[str, int] = {}
        self._n_types = 0
        n_offsets, none = len(rules.offsets), np.zeros(0, np.uint32)
        self.types = kernels.words.KnownTypes(
            np.zeros((0, rules.n_window_readings), np.uint64),
            np.zeros((0, n_offsets, rules.n_labels)),
            kernels.scores.LocalScores(np.zeros(1, np.int64), none, none, np.zeros(0)),
        )
        self._add_types(np.full((len(rules.readings), 1), kernels.words.BOUNDARY), is_boundary=True)

    def look_up(self, words: list[str]) -> UInts32:
        """Types of words, 0 for those that are not known; a TypeError if one is no str."""
        return np.fromiter(map(self._numbers.get, words, repeat(0)), np.uint32, len(words))

    def number(self, words: list[str]) -> tuple[UInts32, list[str]]:
        """Types of words, and the new ones, which have the types after the known ones once they are added."""
        types, new = self.look_up(words), _NewNumbers(self._n_types)
        unknown = np.flatnonzero(types == 0)
        types[unknown] = [new[words[i]] for i in unknown.tolist()]
        if not all(isinstance(word, str) for word in new):
            raise TypeError("A token must be a str.")
        return types, list(new)

    def has_room_for(self, n_words: int) -> bool:
        """Whether the bounds allow so many words more."""
        rules = self._rules
        bytes_per_type = 8 * (rules.n_window_readings + len(rules.offsets) * (rules.n_labels + 1))
        n_types = self._n_types + n_words
        return n_types <= MAX_TYPES and n_types * bytes_per_type + 16 * self._n_local() <= MAX_BYTES

    def add(self, words: list[str]) -> None:
        """Read words."""
        if not words:  # another thread was faster
            return
        # Plain ones: a subclass of str among the keys would make every look-up slower.
        words = [str.__str__(word) for word in words]
        text = Text(np.array([0, len(words)]), words, np.arange(len(words), dtype=np.uint32))
        readings = np.empty((len(self._rules.readings), len(words)), np.uint64)
        for i, reading in enumerate(self._rules.readings):
            readings[i] = text.reading(*reading)[:-1]
        first = self._n_types
        self._add_types(readings)
        # Last of all: a word with a number has its scores.
        self._numbers.update(zip(words, range(first, self._n_types), strict=True))

    def _add_types(self, readings: UInts64, is_boundary: bool = False) -> None:
        rules, n, first = self._rules, readings.shape[1], self._n_types
        last = first + n
        known = self._grown(last)
        rows = np.empty((n, len(rules.groups)), np.uint32)
        counts = np.empty((n, len(rules.offsets)), np.int64)
        kernels.words.score_types(
            readings, is_boundary, rules.own, rules.groups, rules.single, rules.longer.ptr, rows,
            known.node[first:last], counts,
        )  # fmt: skip
        known.readings[first:last] = readings[: rules.n_window_readings].T
        self.types = known._replace(local=self._with_local(known.local, rows, counts))
        self._n_types = last

    def _n_local(self) -> int:
        return int(self.types.local.ptr[self._n_types * len(self._rules.offsets)])

    def _grown(self, n_types: int) -> KnownTypes:
        n_offsets, types = len(self._rules.offsets), self.types
        local = types.local._replace(ptr=_grown(types.local.ptr, n_types * n_offsets + 1))
        return types._replace(readings=_grown(types.readings, n_types), node=_grown(types.node, n_types), local=local)

    def _with_local(self, local: LocalScores, rows: UInts32, counts: Ints) -> LocalScores:
        """Append the longer patterns of new types: rows are (n_types, n_templates), counts (n_types, G)."""
        longer, first, start = self._rules.longer, self._n_types * len(self._rules.offsets), self._n_local()
        ends = start + np.cumsum(counts)
        local.ptr[first + 1 : first + len(ends) + 1] = ends
        stop = start + int(counts.sum())
        if start == stop:
            return local
        # Templates are sorted by offset, so the rows are in the order of type and offset.
        filled = rows[longer.ptr[rows] < longer.ptr[rows + 1]]
        sizes = longer.ptr[filled + 1] - longer.ptr[filled]
        entries = np.repeat(longer.ptr[filled] - np.cumsum(sizes) + sizes, sizes) + np.arange(stop - start)
        local = local._replace(
            size=_grown(local.size, stop), code=_grown(local.code, stop), score=_grown(local.score, stop)
        )
        local.size[start:stop] = longer.size[entries]
        local.code[start:stop] = longer.code[entries]
        local.score[start:stop] = longer.score[entries]
        return local


class _NewNumbers(dict[str, int]):
    """Numbers words as they are asked for."""

    def __init__(self, first: int) -> None:
        self._next = first

    def __missing__(self, word: str) -> int:
        number = self[word] = self._next
        self._next += 1
        return number


def _offset(template: Template) -> int:
    """The one offset of a template; the bias has none and is everywhere."""
    return template.window[0] if template.window else 0


def _readings(rules: list[tuple[Template, int, int]]) -> list[tuple[str, WordClasses | None]]:
    return list(dict.fromkeys(reading for source, _, _ in rules for reading in source.readings))


def _patterns(model: Model, which: Bools) -> kernels.scores.LocalScores:
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(which)])[model.ptr]
    ptr = np.concatenate([np.zeros(1, np.int64), before])
    return kernels.scores.LocalScores(ptr, model.lengths[which], model.codes[which], model.weights[which])


def _grown(array: NDArray[Scalar], n: int) -> NDArray[Scalar]:
    """The array if it has n rows, else a copy with more, at least twice as many; the new ones are zero."""
    if len(array) >= n:
        return array
    larger = np.zeros((max(n, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
