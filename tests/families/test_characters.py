"""Shapes and kinds of many words at once: the same as word by word."""

from __future__ import annotations

import itertools
import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vcrf.families import characters, intern_sentences
from vcrf.families.text import WORD_FUNCTIONS, Text, encode_strings

# Letters of every kind, both cases and title case, marks, digits that are no decimals, line ends, a lone surrogate.
_ODD = "aAzZß İıǅǆ0٣²½-–.€'\n\n\u2028\u0bcd\u0301世😀\ud800ªⅣⓐΣσΑ"
words = st.one_of(st.text(max_size=6), st.text(alphabet=_ODD, max_size=6))


def decoded(ptr: np.ndarray, points: np.ndarray) -> list[str]:
    """Strings of encoded ones."""
    return ["".join(map(chr, points[a:b])) for a, b in itertools.pairwise(ptr.tolist())]


def check(given_words: list[str]) -> None:
    """Compare with the functions that read one word."""
    ptr, points = encode_strings(given_words)
    assert decoded(*characters.shapes(ptr, points)) == list(map(WORD_FUNCTIONS["shape"], given_words))
    assert decoded(ptr, characters.long_shapes(points)) == list(map(WORD_FUNCTIONS["long_shape"], given_words))
    found = [characters.KINDS[k] for k in characters.kinds(ptr, points)]
    assert found == list(map(WORD_FUNCTIONS["kind"], given_words))


@given(st.lists(words, max_size=8))
def test_words_are_read_as_one_by_one(given_words: list[str]) -> None:
    """Empty words, runs across the ends of words, and no words at all."""
    check(given_words)


def test_every_character() -> None:
    """All characters that Unicode has names for: alone, and some before and after a letter."""
    every = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")]
    check(every)
    check(["a" + character for character in every[:0x3000]])
    check([character + "A" for character in every[:0x3000]])


@given(st.lists(words, max_size=8, unique=True))
def test_texts_hash_what_they_read(given_words: list[str]) -> None:
    """A text's readings are hashes of the strings that the functions give, so old models read alike."""
    check_readings(given_words)


def test_texts_hash_every_character() -> None:
    """All that Unicode has names for, together: some have a lower case that is longer, or depends on neighbours."""
    every = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")]
    check_readings(every)
    check_readings([f"a{c}B" for c in every if len(c.lower()) == 1 and c != "Σ"])


def check_readings(given_words: list[str]) -> None:
    """Compare with hashes of what the functions give word by word."""
    text = intern_sentences([given_words])
    for name, function in WORD_FUNCTIONS.items():
        strings = list(map(function, given_words))
        expected = Text(np.array([0, len(strings)]), strings, np.arange(len(strings), dtype=np.uint32)).reading("word")
        np.testing.assert_array_equal(text.reading(name), expected)
