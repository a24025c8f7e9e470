"""Reading given attributes: feature dicts and attribute lists as for CRFsuite, or rows of numbers.

Tokens repeat what was seen before, so that a pair of a name and a value is read once and then looked up. The look-ups
of a whole text are one chain of built-in functions, which numbers what is new by the way; what they cannot do is read
token by token.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from operator import itemgetter
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from vcrf.errors import InputError
from vcrf.types import Floats, Ints

# Products of larger values overflow in the Hessian.
_MAX_VALUE = 1e50

_PLAIN_VALUES = {str, bool, int, float, np.bool_, np.int64, np.float64}
_DICT, _LIST, _ROW = "a dict of features", "a list of attribute strings", "a row of numbers"


class Tokens(NamedTuple):
    """What tokens were given: `sizes` entries each, in order."""

    sizes: Ints
    entries: Ints


class Numbering(NamedTuple):
    """The attributes among a reader's entries, in order of first sight.

    Attributes
    ----------
    names : attribute strings
    sources, source_names : number of each one's feature name; those names
    attribute_of : (n_entries,) attribute of each entry
    may_repeat : whether a token may have an attribute twice
    """

    names: list[str]
    sources: Ints
    source_names: list[str]
    attribute_of: Ints
    may_repeat: bool


class Reader:
    """Numbers entries in order of first sight: an entry is an attribute with a value. Threads may share it.

    Two entries may be of one attribute. `names` and `values` are those of the entries.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.values: list[float] = []
        self._keys: list[str | None] = []  # the key of the dict that gave an entry, None for lists
        self._repeats = False
        self._flat: dict[tuple[str, float], int] = {}
        self._pairs, self._strings = _SeenEntries(), _SeenEntries()
        self._lock = Lock()

    def __len__(self) -> int:
        """Number of entries."""
        return len(self._keys)

    def numbered(self) -> Numbering:
        """Number the attributes."""
        ids: dict[str, int] = {}
        sources: dict[str, int] = {}
        keys: list[str | None] = []
        source_of: list[int] = []
        attribute_of: list[int] = []
        may_repeat = self._repeats
        for name, key in zip(self.names, self._keys, strict=True):
            attribute = ids.setdefault(name, len(ids))
            attribute_of.append(attribute)
            if attribute == len(keys):
                keys.append(key)
                source = (name.split(":", 1)[0] if key is None else key).split("=", 1)[0]
                source_of.append(sources.setdefault(source, len(sources)))
            elif keys[attribute] != key:
                may_repeat = True  # one token may give it by both keys
        return Numbering(
            list(ids), np.array(source_of, np.int64), list(sources), np.array(attribute_of, np.int64), may_repeat
        )

    def read(self, sentences: Sequence[Sequence[Any]]) -> Tokens:
        """Read all tokens of some sentences."""
        tokens = list(chain.from_iterable(sentences)) if len(sentences) != 1 else sentences[0]
        kinds = set(map(type, tokens))
        with self._lock:
            if kinds == {dict} or (kinds and kinds <= {list, tuple}):
                try:
                    return self._look_up(tokens, kinds == {dict})
                except (TypeError, InputError):
                    pass  # something unusual: read it with care, and say where it is
            return self._read_each(sentences)

    # ---- internal ----

    def _look_up(self, tokens: Sequence[Any], are_dicts: bool) -> Tokens:
        sizes = list(map(len, tokens))
        n = sum(sizes)
        if are_dicts:
            entries = self._pair_entries(chain.from_iterable(map(dict.items, tokens)), n)
        else:
            entries = self._string_entries(chain.from_iterable(tokens), n)
            if sum(map(len, map(set, tokens))) < len(entries):
                self._repeats = True
        return Tokens(np.array(sizes, np.int64), entries)

    def _pair_entries(self, pairs: Iterable[tuple[Any, Any]], n: int) -> Ints:
        """Entries of n pairs of a name and a text, truth value or number; a TypeError for others."""
        return self._pairs.find(pairs, n, len(self), self._learn_pairs)

    def _string_entries(self, items: Iterable[Any], n: int) -> Ints:
        """Entries of n attribute strings; a TypeError for others."""
        return self._strings.find(items, n, len(self), self._learn_strings)

    def _learn_pairs(self, pairs: list[tuple[Any, Any]]) -> None:
        keys, texts = list(map(itemgetter(0), pairs)), list(map(itemgetter(1), pairs))
        if {*map(type, keys)} != {str}:
            raise TypeError
        values, names = [1.0] * len(pairs), keys
        if str in {*map(type, texts)}:
            numbers = [i for i, value in enumerate(texts) if type(value) is not str]  # few
            found = _plain_numbers([keys[i] for i in numbers], [texts[i] for i in numbers])
            for i in numbers:
                texts[i] = ""
            names = list(map(":".join, zip(keys, texts, strict=True)))
            for i, number in zip(numbers, found, strict=True):
                names[i], values[i] = keys[i], number
        else:
            values = _plain_numbers(keys, texts)
        self._add(names, values, keys)

    def _learn_strings(self, items: list[Any]) -> None:
        if not all(isinstance(item, (str, bytes)) for item in items):
            raise TypeError
        self._add(list(map(_text, items)), [1.0] * len(items), [None] * len(items))

    def _read_each(self, sentences: Sequence[Sequence[Any]]) -> Tokens:
        sizes: list[int] = []
        entries: list[int] = []
        earlier = ""
        for i, sentence in enumerate(sentences):
            for t, token in enumerate(sentence):
                kind = _kind_of(token, i, t)
                # An empty list of attributes may be of either kind.
                earlier = _same_kind(kind if len(token) else "", earlier, i, t)
                found = self._read_token(token, kind, f"sentence {i}, token {t}")
                sizes.append(len(found))
                entries += found
        return Tokens(np.array(sizes, np.int64), np.array(entries, np.int64))

    def _read_token(self, token: Any, kind: str, where: str) -> list[int]:
        if kind == _DICT:
            found = [entry for key, value in token.items() for entry in self._read_item(key, value, where)]
        elif kind == _LIST:
            found = [int(entry) for entry in self._string_entries(map(_text, _ordered(token)), len(token))]
        else:
            rows = ((f"x{j}", item) for j, item in enumerate(token))
            found = [self._flat_entry(name, _number(name, item, where), name) for name, item in rows]
        if len({self.names[entry] for entry in found}) < len(found):
            self._repeats = True
        return found

    def _read_item(self, key: Any, value: Any, where: str) -> list[int]:
        if type(key) is str and type(value) in _PLAIN_VALUES and value == value:  # NaN is refused below
            known = self._pairs.get((key, value))
            if known is not None:
                return [known]
            try:
                return [int(entry) for entry in self._pair_entries([(key, value)], 1)]
            except InputError:
                pass  # without its place
        name = _text(key)
        return [self._flat_entry(text, number, name) for text, number in _flatten(name, value, where)]

    def _flat_entry(self, name: str, value: float, key: str) -> int:
        """The entry of an attribute that is not looked up by its pair: one for each value, however often it is read."""
        if (name, value) not in self._flat:
            self._add([name], [value], [key])
            self._flat[name, value] = len(self) - 1
        return self._flat[name, value]

    def _add(self, names: list[str], values: list[float], keys: Sequence[str | None]) -> None:
        """New entries; who has the number of one, or sees how many there are, finds its name and value."""
        n = len(self)  # beyond it may be what an interruption left
        self.names[n:], self.values[n:] = names, values
        self._keys += keys


class _SeenEntries(defaultdict[Any, int]):
    """Entries of what was seen."""

    def find(self, items: Iterable[Any], n_items: int, first: int, learn: Callable[[list[Any]], None]) -> Ints:
        """Entries of items. What is new is numbered from `first`, in order, and learned; if that fails, forgotten."""
        n = len(self)
        self.default_factory = count(first).__next__
        try:
            entries = np.fromiter(map(self.__getitem__, items), np.int64, n_items)
            if len(self) > n:
                learn(list(islice(reversed(self), len(self) - n))[::-1])
                n = len(self)
        finally:
            while len(self) > n:
                self.popitem()
        return entries


def sum_repeats(positions: Ints, attributes: Ints, values: Floats) -> tuple[Ints, Ints, Floats]:
    """An attribute given twice at one token counts with the sum of its values, at its first place."""
    n = int(attributes.max(initial=0)) + 1
    _, first, inverse = np.unique(positions * n + attributes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    totals: Floats = np.bincount(inverse, values, len(first)).astype(np.float64)
    return positions[first[order]], attributes[first[order]], totals[order]


def _ordered(items: Iterable[Any]) -> Iterable[Any]:
    """Sets have no order of their own: sort, so that two runs read the same."""
    return sorted(items) if isinstance(items, (set, frozenset)) else items


def _kind_of(token: Any, sentence: int, index: int) -> str:
    """How a token is given; all of a list must be strings, or all numbers."""
    if isinstance(token, Mapping):
        return _DICT
    if isinstance(token, (str, bytes)) or not hasattr(token, "__iter__"):
        raise InputError(
            f"Sentence {sentence}, token {index}: expected a dict of features, a list of attribute strings "
            f"or a row of numbers, got {type(token).__name__}. All tokens of X must be of one kind."
        )
    kinds = {isinstance(item, (str, bytes)) for item in token}
    if len(kinds) > 1:
        raise InputError(f"Sentence {sentence}, token {index} mixes strings and numbers: use a dict of features.")
    return _LIST if kinds != {False} else _ROW


def _same_kind(kind: str, earlier: str, sentence: int, index: int) -> str:
    """Dicts and lists of strings mix, as in CRFsuite; numbers by their place do not mix with names."""
    if kind and earlier and kind != earlier and _ROW in (kind, earlier):
        raise InputError(
            f"Sentence {sentence}, token {index} is given as {kind}, earlier tokens as {earlier}. "
            "All tokens of X must be of one kind."
        )
    return earlier or kind


def _flatten(name: str, value: Any, where: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, (str, bytes)):
        yield f"{name}:{_text(value)}", 1.0
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(f"{name}:{_text(key)}", inner, where)
    elif isinstance(value, (list, tuple, set, frozenset)):
        items = [_listed_text(name, item, where) for item in value]
        for item in sorted(items) if isinstance(value, (set, frozenset)) else items:
            yield f"{name}:{item}", 1.0
    else:
        yield name, _number(name, value, where)


def _listed_text(name: str, item: Any, where: str) -> str:
    """The text of an element of a list; what has no text of its own would become a name by accident."""
    if not isinstance(item, (str, bytes, bool, int, float, np.generic)):
        raise InputError(
            f"Feature {name!r} ({where}): a list holds texts, got {type(item).__name__} in it: {item!r:.60}. "
            "Give nested features as a dict, and leave out what has no value."
        )
    return _text(item)


def _plain_numbers(names: list[str], given: list[Any]) -> list[float]:
    """Truth values and numbers as numbers; a TypeError for others."""
    # Equal keys have equal meaning: True is 1 and 1.0.
    if not {*map(type, given)} <= _PLAIN_VALUES:
        raise TypeError
    try:
        values = list(map(float, given))
    except OverflowError:
        values = [math.inf]
    if all(map(_MAX_VALUE.__ge__, map(abs, values))):
        return values
    return [_number(name, value, "") for name, value in zip(names, given, strict=True)]  # raises


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
