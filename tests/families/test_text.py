"""Interned sentences and what is read off a word."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given

from corpora import odd_sentences
from vcrf.errors import InputError
from vcrf.families import intern_sentences
from vcrf.families.text import WORD_FUNCTIONS, encode_strings


@given(odd_sentences)
def test_interning_gives_the_sentences_back(corpus):
    """Words are numbered in order of first occurrence; sentence boundaries survive, empty sentences too."""
    text = intern_sentences(corpus)
    flat = [word for sentence in corpus for word in sentence]
    assert text.words == list(dict.fromkeys(flat))
    again = [
        [text.words[text.word_ids[t]] for t in range(text.sent_ptr[i], text.sent_ptr[i + 1])]
        for i in range(text.n_sentences)
    ]
    assert again == corpus
    assert text.n_tokens == len(flat)
    assert text.n_characters() == len(set("".join(flat)))
    assert text.n_distinct("word") == len(set(flat))
    assert text.n_distinct("shape") == len(set(map(WORD_FUNCTIONS["shape"], flat)))


@given(odd_sentences)
def test_encoded_strings_decode(corpus):
    """Code points of all planes, one array for all strings."""
    strings = [word for sentence in corpus for word in sentence]
    ptr, points = encode_strings(strings)
    assert ["".join(map(chr, points[a:b])) for a, b in itertools.pairwise(ptr)] == strings


def test_no_sentences_at_all():
    """The empty corpus is a text of no tokens."""
    text = intern_sentences([])
    assert (text.n_sentences, text.n_tokens, text.words) == (0, 0, [])
    assert text.reading("word").tolist() == [2]
    assert text.n_characters() == 0


def test_lone_surrogates_are_words_like_any_other():
    """Broken text must not stop training."""
    text = intern_sentences([["\ud800", "a"]])
    assert len(np.unique(text.reading("word"))) == 3


@pytest.mark.parametrize("token", [1, None, b"a", 2.5])
def test_a_token_that_is_not_a_str_is_an_error(token):
    """The message names the type and the value."""
    with pytest.raises(InputError, match=f"must be a str, got {type(token).__name__}: {token!r}"):
        intern_sentences([["a"], [token]])


@pytest.mark.parametrize(
    ("word", "shape", "long_shape", "kind"),
    [
        ("cat", "x", "xxx", "letters"),
        ("Cat", "Xx", "Xxx", "title"),
        ("NATO", "X", "XXXX", "upper"),
        ("I", "X", "X", "title"),
        ("McDonald-2", "XxXx-d", "XxXxxxxx-d", "digit"),
        ("U.S.", "X.X.", "X.X.", "upper"),
        ("iPhone", "xXx", "xXxxxx", "letters"),
        ("co-op", "x-x", "xx-xx", "hyphen"),
        ("--", "-", "--", "punctuation"),
        ("3.14", "d.d", "d.dd", "digit"),
        ("€", "€", "€", "punctuation"),
        ("«»", "«»", "«»", "punctuation"),
        ("Étée", "Xx", "Xxxx", "title"),
        ("ЕС", "X", "XX", "upper"),
        ("Москва", "Xx", "Xxxxxx", "title"),
        ("ὁδός", "x", "xxxx", "letters"),
        ("東京", "c", "cc", "letters"),
        ("كتاب", "c", "cccc", "letters"),
        ("٢٠", "d", "dd", "digit"),
        ("२०", "d", "dd", "digit"),
        ("😀", "😀", "😀", "punctuation"),
        ("𝐀", "X", "X", "title"),
    ],
)
def test_shape_and_kind(word, shape, long_shape, kind):
    """Capitals, digits and unicameral letters in several scripts; runs are shortened in `shape` only."""
    assert WORD_FUNCTIONS["shape"](word) == shape
    assert WORD_FUNCTIONS["long_shape"](word) == long_shape
    assert WORD_FUNCTIONS["kind"](word) == kind


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("has_digit", ["a1", "٢", "3"], ["a", "-", ""]),
        ("has_upper", ["aB", "Б", "Ω1"], ["a", "1", "東", ""]),
        ("has_hyphen", ["a-b", "-"], ["a–b", "ab", ""]),
        ("is_title", ["Cat", "Москва", "New-York"], ["cat", "CAT", "東", ""]),
    ],
)
def test_yes_or_no_readings(name, yes, no):
    """Each test says 1 or 0 and knows other scripts than Latin."""
    assert [WORD_FUNCTIONS[name](word) for word in yes] == ["1"] * len(yes)
    assert [WORD_FUNCTIONS[name](word) for word in no] == ["0"] * len(no)


def test_lower_and_length():
    """Lower case by Unicode; lengths in characters, from 12 on all alike."""
    assert [WORD_FUNCTIONS["lower"](word) for word in ("ÉTÉ", "ΟΔΌΣ", "東")] == ["été", "οδός", "東"]
    lengths = [WORD_FUNCTIONS["length"](word) for word in ("", "é😀", "a" * 12, "a" * 99)]
    assert lengths == ["0", "2", "12", "12"]


def test_every_reading_of_the_empty_word_is_defined():
    """The empty word reads as something that is not the boundary and not absent, affixes excepted."""
    text = intern_sentences([["", "a"]])
    for name in ["word", *WORD_FUNCTIONS]:
        empty, _, boundary = text.reading(name)
        assert empty not in (0, boundary)
    for name in ("prefix:1", "suffix:1", "boundary"):
        assert text.reading(name)[0] == 0
