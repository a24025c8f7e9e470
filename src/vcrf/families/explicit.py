"""Attributes given by the user: feature dicts or attribute lists as for sklearn-crfsuite, or arrays of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.families.family import Family
from vcrf.families.presets import transition_families
from vcrf.families.reading import Reader, sum_repeats
from vcrf.families.templates import Occurrences
from vcrf.families.text import Text, encode_strings, sentence_ptr
from vcrf.types import Floats, Ints, UInts32, UInts64

# Feature names that get a family each; where there are more, the rest share one.
MAX_NAMES = 100
_OTHERS = "others"


@dataclass
class AttributeText(Text):
    """Sentences of given attributes. Words are unknown: every token has the same empty word.

    Attributes
    ----------
    names : attribute strings ("word:cat"), distinct
    sources : for each attribute the number of its feature name in `source_names`
    positions, attributes, values : (n_occurrences,) arrays, in order of position
    """

    names: list[str] = field(default_factory=list)
    sources: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    source_names: list[str] = field(default_factory=list)
    positions: UInts32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    attributes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    values: Floats = field(default_factory=lambda: np.zeros(0))
    zero_positions: UInts32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    zero_attributes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _by_source: dict[str, Ints] | None = field(default=None, repr=False)
    _keys: UInts64 | None = field(default=None, repr=False)

    def keys(self) -> UInts64:
        """Content hash of each attribute string."""
        if self._keys is None:
            self._keys = np.empty(len(self.names), np.uint64)
            kernels.strings.hash_strings(*encode_strings(self.names), self._keys)
        return self._keys

    def pooled(self) -> AttributeText:
        """The same text with few feature names: those of one attribute, and the rarest, share the name "others".

        Each name costs a look at the text, and a family with its facts. Where all families have one strength, the
        problem is the same.
        """
        n = len(self.source_names)
        if n <= MAX_NAMES:
            return self
        n_attributes = np.bincount(self.sources, minlength=n)
        n_occurrences = np.bincount(self.sources[self.attributes], minlength=n)
        kept = np.flatnonzero(n_attributes > 1)
        kept = np.sort(kept[np.argsort(-n_occurrences[kept], kind="stable")[: MAX_NAMES - 1]])
        number = np.full(n, len(kept), np.int64)
        number[kept] = np.arange(len(kept))
        names = [self.source_names[i] for i in kept.tolist()]
        if _OTHERS in names:  # a feature of the user's own
            number[number == len(kept)] = names.index(_OTHERS)
        return replace(
            self, sources=number[self.sources], source_names=list(dict.fromkeys([*names, _OTHERS])), _by_source=None
        )

    def source_number(self, source_name: str) -> int:
        """Number of a feature name, -1 if the text does not have it."""
        return self.source_names.index(source_name) if source_name in self.source_names else -1

    def occurrences_of(self, source_name: str) -> Ints:
        """Indices of the occurrences whose attribute belongs to a feature name, in order of position."""
        if self._by_source is None:
            of_source = self.sources[self.attributes]
            order = np.argsort(of_source, kind="stable")
            ends = np.searchsorted(of_source[order], np.arange(len(self.source_names) + 1))
            self._by_source = {name: order[ends[i] : ends[i + 1]] for i, name in enumerate(self.source_names)}
        return self._by_source.get(source_name, np.zeros(0, np.int64))


@dataclass(frozen=True)
class NamedFeature:
    """The attributes that the user gave under one feature name."""

    name: str

    def read(self, text: Text) -> Occurrences:
        text = _given(text)
        which = text.occurrences_of(self.name)
        positions, values = text.positions[which], text.values[which]
        is_single = len(positions) < 2 or bool(np.all(positions[1:] != positions[:-1]))
        is_indicator = bool(np.all(values == 1.0))
        keys = text.keys()[text.attributes[which]]
        zeros = np.flatnonzero(text.sources[text.zero_attributes] == text.source_number(self.name))
        return Occurrences(
            positions, keys, None if is_indicator else values, is_single,
            (text.zero_positions[zeros], text.keys()[text.zero_attributes[zeros]]),
        )  # fmt: skip

    def log_cardinality(self, text: Text) -> float:
        text = _given(text)
        which = text.occurrences_of(self.name)
        return float(np.log(max(len(np.unique(text.attributes[which])), 1)))

    def describe(self, text: Text, position: int) -> str:
        text = _given(text)
        which = text.occurrences_of(self.name)
        at = which[np.searchsorted(text.positions[which], position)]
        return str(text.names[text.attributes[at]])


def _given(text: Text) -> AttributeText:
    if not isinstance(text, AttributeText):
        raise InputError("A named feature is read off given attributes: pass feature dicts as X, not tokens.")
    return text


def read_attributes(sentences: Sequence[Sequence[Any]]) -> AttributeText:
    """Flatten feature dicts, attribute lists or rows of numbers into arrays.

    A dict follows sklearn-crfsuite: {"w": "cat"} is the attribute "w:cat", True is 1, a number keeps its
    value (negative too), a nested dict joins names with ":", a list or set gives one attribute an element.
    """
    reader = Reader()
    sizes, entries = reader.read(sentences)
    positions = np.repeat(np.arange(len(sizes)), sizes)
    found = reader.numbered()
    attributes, values = found.attribute_of[entries], np.array(reader.values)[entries]
    if found.may_repeat:
        positions, attributes, values = sum_repeats(positions, attributes, values)
    # Occurrences of value 0 have no effect on scores, but CRFsuite takes the pair for seen in training.
    zero = values == 0.0
    there = ~zero if np.any(zero) else slice(None)
    return AttributeText(
        sent_ptr=sentence_ptr(sentences),
        words=[""] if len(sizes) else [],
        word_ids=np.zeros(len(sizes), np.uint32),
        names=found.names,
        sources=found.sources,
        source_names=found.source_names,
        positions=positions[there].astype(np.uint32),
        attributes=attributes[there],
        values=values[there],
        zero_positions=positions[zero].astype(np.uint32),
        zero_attributes=attributes[zero],
    )


def explicit_families(text: AttributeText, tags: int = 2) -> list[Family]:
    """One family per feature name of a `pooled` text, with single labels, and the families of plain tag patterns."""
    return [Family(name, (NamedFeature(name),)) for name in text.source_names] + transition_families(tags)
