"""Attributes given by the user: feature dicts or attribute lists as for sklearn-crfsuite, or arrays of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.families.family import Family
from vcrf.families.presets import transition_families
from vcrf.families.templates import Occurrences
from vcrf.families.text import Text, encode_strings, sentence_ptr
from vcrf.types import Floats, Ints, UInts32, UInts64

# Products of larger values overflow in the Hessian.
_MAX_VALUE = 1e50


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
    reader = _Reader()
    for i, sentence in enumerate(sentences):
        for t, token in enumerate(sentence):
            reader.add(token, i, t)
    ptr = sentence_ptr(sentences)
    n = int(ptr[-1])
    values = np.ones(len(reader.attributes))
    values[list(reader.unusual)] = list(reader.unusual.values())
    return AttributeText(
        sent_ptr=ptr,
        words=[""] if n else [],
        word_ids=np.zeros(n, np.uint32),
        names=list(reader.ids),
        sources=np.array(reader.source_of, np.int64),
        source_names=list(reader.source_ids),
        positions=np.repeat(np.arange(n, dtype=np.uint32), reader.sizes),
        attributes=np.array(reader.attributes, np.int64),
        values=values,
        zero_positions=np.array(reader.zero_positions, np.uint32),
        zero_attributes=np.array(reader.zero_attributes, np.int64),
    )


def explicit_families(text: AttributeText, tags: int = 2) -> list[Family]:
    """One family per feature name with single labels, and the families of plain tag patterns."""
    return [Family(name, (NamedFeature(name),)) for name in text.source_names] + transition_families(tags)


class _Reader:
    """Interns attribute strings and collects their occurrences."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.source_ids: dict[str, int] = {}
        self.source_of: list[int] = []
        self.attributes: list[int] = []
        # Values that are not 1, by their place in `attributes`.
        self.unusual: dict[int, float] = {}
        # Number of attributes of each token.
        self.sizes: list[int] = []
        self.kind = ""
        # Occurrences of value 0: no effect on scores, but CRFsuite takes the pair for seen in training.
        self.zero_positions: list[int] = []
        self.zero_attributes: list[int] = []
        # ("word", "cat") -> id of "word:cat", ("is_title", True) -> id of "is_title", ("is_title", False) -> ~id: most
        # tokens repeat pairs that were seen before.
        self._pairs: dict[tuple[Any, Any], int] = {}

    def add(self, token: Any, sentence: int, index: int) -> None:
        start = len(self.attributes)
        kind = _kind_of(token, sentence, index)
        if kind != (self.kind or kind):
            raise InputError(
                f"Sentence {sentence}, token {index} is given as {kind}, earlier tokens as {self.kind}. "
                "All tokens of X must be of one kind."
            )
        # An empty list of attributes may be of either kind.
        self.kind = self.kind or (kind if len(token) else "")
        if isinstance(token, Mapping):
            self._add_dict(token, sentence, index)
        else:
            for name, value, source in _listed(token, sentence, index):
                self._put(self._intern(name, source), value)
        if len(set(self.attributes[start:])) < len(self.attributes) - start:
            self._sum_repeats(start)
        self.sizes.append(len(self.attributes) - start)

    def _add_dict(self, token: Mapping[Any, Any], sentence: int, index: int) -> None:
        found: list[int | None]
        try:
            found = list(map(self._pairs.get, token.items()))
        except TypeError:
            found = [self._find(pair) for pair in token.items()]
        if None in found:
            found = [self._learn(*pair) if i is None else i for pair, i in zip(token.items(), found, strict=True)]
        if None in found:
            for (key, value), attribute in zip(token.items(), found, strict=True):
                if attribute is None:
                    self._add_item(key, value, f"sentence {sentence}, token {index}")
                else:
                    self._put(max(attribute, ~attribute), 1.0 if attribute >= 0 else 0.0)
            return
        known = [attribute for attribute in found if attribute is not None and attribute >= 0]
        self.attributes += known
        for attribute in found if len(known) < len(found) else ():
            if attribute is not None and attribute < 0:
                self._put(~attribute, 0.0)

    def _find(self, pair: tuple[Any, Any]) -> int | None:
        try:
            return self._pairs.get(pair)
        except TypeError:  # lists and dicts are no keys
            return None

    def _learn(self, key: Any, value: Any) -> int | None:
        """The number of a new pair of a name and a text or truth value; None for others."""
        # Equal keys have equal meaning: True is 1.
        if type(key) is not str or not (type(value) is str or value is True or value is False):
            return None
        attribute = self._intern(f"{key}:{value}" if type(value) is str else key, key.split("=", 1)[0])
        self._pairs[key, value] = ~attribute if value is False else attribute
        return self._pairs[key, value]

    def _add_item(self, key: Any, value: Any, where: str) -> None:
        name = _text(key)
        for attribute_name, number in _flatten(name, value, where):
            self._put(self._intern(attribute_name, name.split("=", 1)[0]), number)

    def _put(self, attribute: int, value: float) -> None:
        if value == 0.0:
            self.zero_attributes.append(attribute)
            self.zero_positions.append(len(self.sizes))
            return
        if value != 1.0:
            self.unusual[len(self.attributes)] = value
        self.attributes.append(attribute)

    def _intern(self, name: str, source: str) -> int:
        attribute = self.ids.setdefault(name, len(self.ids))
        if attribute == len(self.source_of):
            self.source_of.append(self.source_ids.setdefault(source, len(self.source_ids)))
        return attribute

    def _sum_repeats(self, start: int) -> None:
        """An attribute given twice at one token counts with the sum of its values."""
        total: dict[int, float] = {}
        for i, attribute in enumerate(self.attributes[start:], start):
            total[attribute] = total.get(attribute, 0.0) + self.unusual.pop(i, 1.0)
        del self.attributes[start:]
        for attribute, value in total.items():
            self._put(attribute, value)


def _listed(token: Any, sentence: int, index: int) -> Iterator[tuple[str, float, str]]:
    """(attribute, value, feature name) of a token given as a list of strings or a row of numbers."""
    for j, item in enumerate(sorted(token) if isinstance(token, (set, frozenset)) else token):
        if isinstance(item, (str, bytes)):
            name = _text(item)
            yield name, 1.0, name.split("=", 1)[0].split(":", 1)[0]
        else:
            name = f"x{j}"
            yield name, _number(name, item, f"sentence {sentence}, token {index}"), name


def _kind_of(token: Any, sentence: int, index: int) -> str:
    """How a token is given; all of a list must be strings, or all numbers."""
    if isinstance(token, Mapping):
        return "a dict of features"
    if isinstance(token, (str, bytes)) or not hasattr(token, "__iter__"):
        raise InputError(
            f"Sentence {sentence}, token {index}: expected a dict of features, a list of attribute strings "
            f"or a row of numbers, got {type(token).__name__}. All tokens of X must be of one kind."
        )
    kinds = {isinstance(item, (str, bytes)) for item in token}
    if len(kinds) > 1:
        raise InputError(f"Sentence {sentence}, token {index} mixes strings and numbers: use a dict of features.")
    return "a list of attribute strings" if kinds != {False} else "a row of numbers"


def _flatten(name: str, value: Any, where: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, (str, bytes)):
        yield f"{name}:{_text(value)}", 1.0
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(f"{name}:{_text(key)}", inner, where)
    elif isinstance(value, (list, tuple, set, frozenset)):
        # Sets have no order of their own: sort, so that two runs read the same.
        items = sorted(map(_text, value)) if isinstance(value, (set, frozenset)) else map(_text, value)
        for item in items:
            yield f"{name}:{item}", 1.0
    else:
        yield name, _number(name, value, where)


def _number(name: str, value: Any, where: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"Feature {name!r} ({where}): expected a str, a number, a bool, a list or a dict, "
            f"got {type(value).__name__}. Leave the feature out where it has no value."
        ) from None
    if not math.isfinite(number):
        raise InputError(f"Feature {name!r} ({where}) is {number}: numeric features must be finite.")
    if abs(number) > _MAX_VALUE:
        raise InputError(f"Feature {name!r} ({where}) is {number}: scale numeric features to below {_MAX_VALUE:g}.")
    return number


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)  # of a member of an enumeration the text, not its name
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"The attribute {value!r} is not valid UTF-8.") from None
