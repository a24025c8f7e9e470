"""Sentences as arrays: interned word types, code points, and what is read off a word type."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.families import characters
from vcrf.types import Ints, UInts32, UInts64

if TYPE_CHECKING:
    from vcrf.classes import WordClasses


def _shape(word: str) -> str:
    """Character classes with runs shortened: "McDonald-2" gives "XxXx-d"."""
    return re.sub(r"(.)\1+", r"\1", _long_shape(word))


def _long_shape(word: str) -> str:
    """Character classes: X upper, x lower, d digit, c other letters, the character itself otherwise."""
    return "".join(map(_character_class, word))


def _character_class(character: str) -> str:
    if character.isupper():
        return "X"
    if character.islower():
        return "x"
    if character.isdigit():
        return "d"
    # Combining marks belong to the letter before them: Tamil and Hindi vowels are marks.
    return "c" if character.isalpha() or unicodedata.category(character)[0] == "M" else character


def _kind(word: str) -> str:
    """One coarse class a word: digits, capitals, punctuation, letters or mixed."""
    if any(map(str.isdigit, word)):
        return "digit"
    if word[:1].isupper():
        return "upper" if word.isupper() and len(word) > 1 else "title"
    if word and all(unicodedata.category(character)[0] in "PS" for character in word):
        return "punctuation"
    return "hyphen" if "-" in word else "letters"


# What can be read off a word type, besides "word", "prefix:N" and "suffix:N", and its class in a table.
WORD_FUNCTIONS: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "shape": _shape,
    "long_shape": _long_shape,
    "kind": _kind,
    "has_digit": lambda word: "1" if any(map(str.isdigit, word)) else "0",
    "has_upper": lambda word: "1" if any(map(str.isupper, word)) else "0",
    "has_hyphen": lambda word: "1" if "-" in word else "0",
    "is_title": lambda word: "1" if word.istitle() else "0",
    "length": lambda word: str(min(len(word), 12)),
}


def reads_class(name: str) -> bool:
    """Whether a reading is the word's class, or the beginning of its name."""
    return name.partition(":")[0] == "class"


def check_reading(name: str) -> None:
    """Raise InputError unless this is something that can be read off a word type."""
    kind, colon, size = name.partition(":")
    if kind in ("prefix", "suffix") or (kind == "class" and colon):
        # Nine digits: far beyond any word, and no overflow.
        is_known = size.isdecimal() and len(size) < 10 and int(size) > 0
    else:
        is_known = not colon and (kind in ("word", "class", "boundary") or kind in WORD_FUNCTIONS)
    if not is_known:
        known = ", ".join(["word", "prefix:N", "suffix:N", "class", "class:N", "boundary", *WORD_FUNCTIONS])
        raise InputError(f"Unknown reading {name[:40]!r}: expected one of {known} (N a positive number).")


@dataclass
class Text:
    """Sentences with interned words.

    Attributes
    ----------
    sent_ptr : (n_sentences + 1,) int64, sentence i is positions sent_ptr[i] .. sent_ptr[i+1]-1
    words : the distinct words, in order of first occurrence
    word_ids : (n_tokens,) uint32
    """

    sent_ptr: Ints
    words: list[str]
    word_ids: UInts32
    _readings: dict[tuple[str, WordClasses | None], UInts64] = field(default_factory=dict, repr=False)
    _code_points: tuple[Ints, UInts32] | None = field(default=None, repr=False)

    @property
    def n_sentences(self) -> int:
        return len(self.sent_ptr) - 1

    @property
    def n_tokens(self) -> int:
        return len(self.word_ids)

    @property
    def boundary(self) -> int:
        """The type that stands for "outside the sentence"."""
        return len(self.words)

    def reading(self, name: str, classes: WordClasses | None = None) -> UInts64:
        """Hash of what `name` reads off each type, (n_types + 1,) uint64, 0 = nothing; last: the boundary.

        `classes` is the table that "class" and "class:N" look at.
        """
        if (name, classes) not in self._readings:
            self._readings[name, classes] = self._read(name, classes)
        return self._readings[name, classes]

    def n_characters(self) -> int:
        """Number of distinct characters, the size of the paper's alphabet Sigma."""
        return len(np.unique(self._encoded()[1]))

    def n_distinct(self, name: str, classes: WordClasses | None = None) -> int:
        """Number of distinct values of a reading in this text."""
        hashes = self.reading(name, classes)[:-1]
        return len(np.unique(hashes[hashes != 0]))

    def _read(self, name: str, classes: WordClasses | None) -> UInts64:
        out = np.zeros(len(self.words) + 1, np.uint64)
        # The boundary reads as itself under every name: a hash that no word has.
        out[-1] = 2
        check_reading(name)
        kind, _, size = name.partition(":")
        if kind == "class":
            if classes is None:
                raise InputError(
                    f"The reading {name!r} needs a table of word classes: pass Template(..., classes=...)."
                )
            out[:-1] = classes.hashes(self, int(size) if size else None)
        elif size:
            kernels.strings.hash_affixes(*self._encoded(), int(size), kind == "suffix", out[:-1])
        elif kind == "word":
            kernels.strings.hash_strings(*self._encoded(), out[:-1])
        elif kind == "shape":
            kernels.strings.hash_strings(*characters.shapes(*self._encoded()), out[:-1])
        elif kind == "long_shape":
            ptr, code_points = self._encoded()
            kernels.strings.hash_strings(ptr, characters.long_shapes(code_points), out[:-1])
        elif kind == "kind":
            out[:-1] = _hashes_of(characters.KINDS)[characters.kinds(*self._encoded())]
        elif kind == "length":
            out[:-1] = _hashes_of(map(str, range(13)))[np.minimum(np.diff(self._encoded()[0]), 12)]
        elif kind in characters.FLAGS:
            out[:-1] = _hashes_of("01")[characters.has(kind, *self._encoded()).astype(np.int64)]
        elif kind == "lower":
            kernels.strings.hash_strings(*self._lowered(), out[:-1])
        elif kind in WORD_FUNCTIONS:
            kernels.strings.hash_strings(*encode_strings(list(map(WORD_FUNCTIONS[kind], self.words))), out[:-1])
        return out

    def _lowered(self) -> tuple[Ints, UInts32]:
        """The words in lower case, encoded; by Python itself where that is more than the lower case of characters."""
        ptr, code_points = self._encoded()
        lowered, is_plain = characters.lowered(code_points)
        return (ptr, lowered) if is_plain else encode_strings(list(map(str.lower, self.words)))

    def _encoded(self) -> tuple[Ints, UInts32]:
        if self._code_points is None:
            self._code_points = encode_strings(self.words)
        return self._code_points


def _hashes_of(strings: Iterable[str]) -> UInts64:
    listed = list(strings)
    out = np.empty(len(listed), np.uint64)
    kernels.strings.hash_strings(*encode_strings(listed), out)
    return out


def encode_strings(strings: Sequence[str]) -> tuple[Ints, UInts32]:
    """Code points of all strings in one array, and where each string starts."""
    lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    raw = "".join(strings).encode("utf-32-le", "surrogatepass")
    return ptr, np.frombuffer(raw, np.uint32)


def intern_sentences(sentences: Sequence[Sequence[str]]) -> Text:
    """Number the words of tokenised sentences."""
    for i, sentence in enumerate(sentences):
        if isinstance(sentence, (str, bytes)):
            raise InputError(f"Sentence {i} is a {type(sentence).__name__}: expected a list of tokens, not one text.")
    ids: dict[str, int] = {}
    try:
        flat = [ids.setdefault(word, len(ids)) for word in chain.from_iterable(sentences)]
    except TypeError:
        raise _not_a_str(sentences) from None
    if not all(isinstance(word, str) for word in ids):
        raise _not_a_str(sentences)
    return Text(sentence_ptr(sentences), list(ids), np.array(flat, np.uint32))


def _not_a_str(sentences: Sequence[Sequence[object]]) -> InputError:
    """The error for the first token that is no str."""
    for i, sentence in enumerate(sentences):
        for t, word in enumerate(sentence):
            if not isinstance(word, str):
                return InputError(
                    f"Sentence {i}, token {t}: a token must be a str, got {type(word).__name__}: {word!r}."
                )
    return InputError("A token must be a str.")


def sentence_ptr(sentences: Sequence[Sequence[object]]) -> Ints:
    """Where each sentence starts in the flat arrays, (n_sentences + 1,)."""
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
