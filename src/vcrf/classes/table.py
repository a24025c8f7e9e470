"""Word classes: a table from words to names of classes, learnt from raw text or made by hand.

The table has the hashes of words, not the words: that is all that templates need, and 12 bytes a word. A word that it
does not have is looked up in lower case.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.strings import has_surrogate
from vcrf.types import Ints, UInts32, UInts64

if TYPE_CHECKING:
    from vcrf.families.text import Text

_BITS = re.compile(r"[01]+")


@dataclass(frozen=True, eq=False)
class WordClasses:
    """Classes of words.

    Attributes
    ----------
    keys : (n_words,) uint64, hashes of the words, increasing
    numbers : (n_words,) uint32, class of each word
    names : names of the classes, all different; where all are strings of 0 and 1, beginnings of names are wider classes
    """

    keys: UInts64
    numbers: UInts32
    names: tuple[str, ...]
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not len(self.keys) or self.keys.shape != self.numbers.shape or np.any(self.keys[1:] <= self.keys[:-1]):
            raise InputError("Word classes need a word, one class a word, and every word once.")
        if len(set(self.names)) < len(self.names) or int(self.numbers.max()) >= len(self.names):
            raise InputError("Word classes need different names, and one for each class.")
        joined = "\n".join(self.names)
        if has_surrogate(joined):
            raise InputError("A name of a word class holds a lone surrogate, which is no character: expected text.")
        content = (self.keys.tobytes(), self.numbers.tobytes(), joined.encode())
        digest = hashlib.sha256(b"\0".join(content)).digest()
        object.__setattr__(self, "_hash", int.from_bytes(digest[:8], "little"))

    @classmethod
    def of(cls, classes: Mapping[str, str]) -> WordClasses:
        """A table from words to names of classes."""
        from vcrf.families.text import intern_sentences

        if not classes:
            raise InputError("Word classes need at least one word, got none.")
        _check_text(classes)
        keys = intern_sentences([list(classes)]).reading("word")[:-1]
        names = tuple(dict.fromkeys(classes.values()))
        number = {name: i for i, name in enumerate(names)}
        order = np.argsort(keys)
        numbers = np.array([number[name] for name in classes.values()], np.uint32)
        return cls(keys[order], numbers[order], names)

    def __len__(self) -> int:
        return len(self.keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordClasses) and self._hash == other._hash

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<WordClasses: {len(self):,} words in {len(self.names):,} classes>"

    @cached_property
    def is_tree(self) -> bool:
        """Whether classes are leaves of a binary tree: names of 0 and 1, none the beginning of another."""
        ordered = sorted(self.names)
        apart = all(not b.startswith(a) for a, b in pairwise(ordered))
        return apart and all(_BITS.fullmatch(name) for name in self.names)

    def class_of(self, word: str) -> str | None:
        """Name of a word's class, None if there is none."""
        from vcrf.families.text import intern_sentences

        number = int(self.numbers_of(intern_sentences([[word]]))[0])
        return None if number < 0 else self.names[number]

    def numbers_of(self, text: Text) -> Ints:
        """Class of each word type of a text, -1 = none; (n_types,)."""
        found = self._find(text.reading("word")[:-1])
        if np.any(found < 0):
            found = np.where(found < 0, self._find(text.reading("lower")[:-1]), found)
        return found

    def _find(self, keys: UInts64) -> Ints:
        where = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[where] == keys, self.numbers[where].astype(np.int64), -1)

    def hashes(self, text: Text, length: int | None) -> UInts64:
        """Hash of each type's class, or of the first characters of its name; 0 = none; (n_types,)."""
        from vcrf.families.text import encode_strings

        shown = self.names if length is None else [name[:length] for name in self.names]
        of_class = np.zeros(len(shown) + 1, np.uint64)  # the last one: no class
        kernels.strings.hash_strings(*encode_strings(shown), of_class[:-1])
        return of_class[self.numbers_of(text)]


def _check_text(classes: Mapping[Any, Any]) -> None:
    for word, name in classes.items():
        if not all(isinstance(part, str) and part for part in (word, name)):
            raise InputError(f"Word classes map words to names, both text and not empty: got {word!r} and {name!r}.")
