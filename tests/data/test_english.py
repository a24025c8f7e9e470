"""The small English corpus."""

from __future__ import annotations

import hashlib

import pytest

from vcrf.data import english_words as words
from vcrf.data import small_english
from vcrf.data.english import _inflected, _plural
from vcrf.errors import InputError


def test_the_same_seed_gives_the_same_sentences_everywhere() -> None:
    """To the letter: the demo's figures depend on it."""
    corpus = small_english(200)
    text = "\n".join(" ".join(tokens) for tokens in corpus.tokens)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "aefc580a67bf2755"
    assert small_english(50).tokens == corpus.tokens[:50]
    assert small_english(50, seed=1).tokens != corpus.tokens[:50]


def test_words_are_ambiguous_and_new_ones_keep_coming() -> None:
    """What a tagger has to cope with."""
    corpus = small_english(1000)
    seen: dict[str, set[str]] = {}
    for tokens, labels in zip(corpus.tokens, corpus.labels, strict=True):
        for token, label in zip(tokens, labels, strict=True):
            seen.setdefault(token.lower(), set()).add(label)
    assert {"NOUN", "VERB"} <= seen["watch"]
    assert {"DET", "PRON"} <= seen["that"]
    known = {token for tokens in corpus.tokens[:600] for token in tokens}
    later = [token for tokens in corpus.tokens[600:] for token in tokens]
    assert 0.05 < sum(token not in known for token in later) / len(later) < 0.2
    assert corpus.label_set == (
        "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ",
        "VERB",
    )  # fmt: skip


def test_entities_are_valid_spans() -> None:
    """I- follows B- or I- of its kind."""
    corpus = small_english(300, labels="entities")
    assert set(corpus.label_set) == {"B-LOC", "B-ORG", "B-PER", "I-LOC", "I-ORG", "I-PER", "O"}
    for labels in corpus.labels:
        for before, label in zip(["O", *labels], labels, strict=False):
            assert not label.startswith("I-") or before[2:] == label[2:]


@pytest.mark.parametrize(
    ("verb", "form", "expected"),
    [
        ("watch", "he", "watches"), ("carry", "he", "carries"), ("go", "he", "goes"), ("play", "he", "plays"),
        ("make", "ing", "making"), ("run", "ing", "running"), ("see", "ing", "seeing"), ("lie", "ing", "lying"),
        ("stop", "past", "stopped"), ("carry", "past", "carried"), ("see", "past", "saw"),
        ("see", "participle", "seen"), ("free", "past", "freed"), ("light", "base", "light"),
    ],
)  # fmt: skip
def test_verbs_are_inflected(verb: str, form: str, expected: str) -> None:
    """As English does."""
    assert _inflected(verb, form) == expected


def test_nouns_have_plurals() -> None:
    """Regular and irregular ones."""
    assert [_plural(noun) for noun in ("box", "city", "day", "child", "leaf")] == [
        "boxes", "cities", "days", "children", "leaves",
    ]  # fmt: skip
    assert set(words.IRREGULAR_PLURALS) <= set(words.NOUNS) | set(words.PEOPLE)


def test_other_arguments_are_refused() -> None:
    """With what may be said."""
    with pytest.raises(InputError, match='`labels` must be "upos" or "entities", got \'xpos\''):
        small_english(3, labels="xpos")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`n_sentences` must not be negative, got -1"):
        small_english(-1)
