from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from vcrf.data import SyntheticLanguage
from vcrf.data.lexicon import _inflect
from vcrf.errors import InputError

# Small enough to list every sentence; three labels make one of them closed.
TINY = [
    SyntheticLanguage(
        n_labels=n_labels,
        strengths=(0.5,) * (order + 1),
        n_stems=3,
        n_suffixes=2,
        n_closed_words=2,
        ambiguity=0.9,
        max_length=3,
        mean_length=2,
        seed=order,
    )
    for n_labels in (1, 2, 3)
    for order in (1, 2, 3)
]
tiny = pytest.mark.parametrize("language", TINY, ids=lambda x: f"{x.n_labels}-labels-order-{x.order}")


def label_sequences(language: SyntheticLanguage, length: int) -> Iterator[tuple[str, ...]]:
    """List every label sequence of a length."""
    return itertools.product(language.labels, repeat=length)


def long_sentence(language: SyntheticLanguage, seed: int, length: int = 5) -> list[str]:
    """Return the words of some sentences end to end: longer than the order, possible under the chain."""
    words = [word for sentence in language.sample(40, seed).tokens for word in sentence]
    return words[:length]


def joint(language: SyntheticLanguage, tokens: list[str]) -> dict[tuple[str, ...], float]:
    """Return P(x, y) / P(n) for every y, by enumeration of the definition."""
    probs = {}
    for labels in label_sequences(language, len(tokens)):
        ids = [language.labels.index(label) for label in labels]
        padded = [language.n_labels] * language.order + ids
        value = 1.0
        for t, (token, label) in enumerate(zip(tokens, ids, strict=True)):
            value *= language.transitions[tuple(padded[t : t + language.order + 1])]
            value *= language.lexicon.probs[label, language.lexicon.forms.index(token)]
        probs[labels] = value
    return probs


@tiny
def test_probabilities_sum_to_one(language: SyntheticLanguage) -> None:
    """Protects log_prob: over all sentences of all lengths it is a distribution."""
    lengths = (1, 2) if language.n_labels == 3 else (1, 2, 3)
    for length in lengths:
        total = sum(
            math.exp(language.log_prob(tokens, labels))
            for tokens in itertools.product(language.lexicon.forms, repeat=length)
            for labels in label_sequences(language, length)
        )
        assert total == pytest.approx(language.length_probs[length], rel=1e-12)
    assert language.length_probs.sum() == pytest.approx(1)
    assert language.length_probs[0] == 0


@tiny
def test_log_prob_equals_the_definition(language: SyntheticLanguage, seed: int) -> None:
    """Protects each term of log_prob, the length's included."""
    tokens = long_sentence(language, seed, length=3)
    for labels, prob in joint(language, tokens).items():
        expected = prob * language.length_probs[3]
        assert math.exp(language.log_prob(tokens, labels)) == pytest.approx(expected, rel=1e-12)


@tiny
def test_posterior_equals_enumeration(language: SyntheticLanguage, seed: int) -> None:
    """Protects forward-backward, on sentences longer than the order."""
    tokens = long_sentence(language, seed)
    probs = joint(language, tokens)
    expected = np.zeros((len(tokens), language.n_labels))
    for labels, prob in probs.items():
        for t, label in enumerate(labels):
            expected[t, language.labels.index(label)] += prob / sum(probs.values())
    np.testing.assert_allclose(language.posterior(tokens), expected, rtol=1e-10, atol=1e-14)
    best = [language.labels[i] for i in expected.argmax(axis=1)]
    assert language.bayes_decode(tokens) == best


@tiny
def test_best_sequence_equals_enumeration(language: SyntheticLanguage, seed: int) -> None:
    """Protects the Viterbi recursion and its trace back."""
    for start in range(10):
        tokens = long_sentence(language, seed + start)
        probs = joint(language, tokens)
        assert tuple(language.bayes_decode(tokens, risk="sentence")) == max(probs, key=probs.__getitem__)


@tiny
def test_evidence_equals_enumeration(language: SyntheticLanguage, seed: int) -> None:
    """Protects the scaling of the forward recursion."""
    tokens = long_sentence(language, seed, length=3)
    expected = sum(joint(language, tokens).values()) * language.length_probs[3]
    assert language.log_evidence(tokens) == pytest.approx(math.log(expected), rel=1e-12)


def test_impossible_is_minus_infinity() -> None:
    """Protects -inf for a label that does not emit the word, and for a sentence too long."""
    language = SyntheticLanguage(n_labels=3, ambiguity=0.0, max_length=3)
    corpus = language.sample(20)
    word = next(w for s in corpus for w, y in zip(s.tokens, s.labels, strict=True) if y.startswith("closed"))
    assert language.log_prob([word], ["open1"]) == -math.inf
    assert language.log_prob([word] * 4, ["closed1"] * 4) == -math.inf
    assert language.log_evidence([word] * 4) == -math.inf


def test_same_seeds_give_the_same_language_and_sample() -> None:
    """Protects reproducibility, and that each seed matters."""
    first, second, other = (SyntheticLanguage(seed=s) for s in (5, 5, 6))
    assert first == second
    assert first.sample(30, seed=1) == second.sample(30, seed=1)
    assert first.sample(30, seed=1) != first.sample(30, seed=2)
    assert first.lexicon.forms != other.lexicon.forms
    np.testing.assert_array_equal(first.transitions, second.transitions)
    assert not np.allclose(first.transitions, other.transitions)


def test_stream_is_pinned() -> None:
    """Protects published numbers: the default language does not change unnoticed."""
    language = SyntheticLanguage()
    corpus = language.sample(600, seed=1)
    assert corpus.tokens[0][:4] == ["tri", "nikgeuvo", "lukdui", "zon"]
    assert corpus.labels[0][:4] == ["closed1", "open10", "open2", "closed3"]
    assert corpus.n_tokens == 9495


def test_tables_are_distributions() -> None:
    """Protects that every row of every table sums to one and no succession of labels is impossible."""
    language = SyntheticLanguage()
    assert language.transitions.shape == (15, 15, 15, 14)
    np.testing.assert_allclose(language.transitions.sum(axis=-1), 1)
    np.testing.assert_allclose(language.lexicon.probs.sum(axis=1), 1)
    assert language.transitions.min() > 0
    assert len(set(language.lexicon.forms)) == len(language.lexicon.forms)
    assert np.all(language.lexicon.probs.max(axis=0) > 0)


def test_form_made_in_two_ways_sums_both() -> None:
    """Protects P(form | label) when two stems and suffixes give the same form."""
    forms = _inflect({"ba": 0.5, "bana": 0.5}, {"": 0.25, "na": 0.75})
    assert forms == {"ba": 0.125, "bana": 0.375 + 0.125, "banana": 0.375}


def test_sample_follows_the_tables() -> None:
    """Protects the sampler: frequencies of transitions, words and lengths match, within five deviations."""
    language = SyntheticLanguage(n_labels=2, n_stems=3, n_suffixes=2, strengths=(0.5,) * 4, mean_length=6)
    corpus = language.sample(20_000, seed=3)
    ids = [[language.labels.index(y) for y in labels] for labels in corpus.labels]
    contexts: dict[tuple[int, ...], list[int]] = {}
    for sentence in ids:
        padded = [2, 2, 2, *sentence]
        for t in range(len(sentence)):
            contexts.setdefault(tuple(padded[t : t + 3]), []).append(sentence[t])
    assert len(contexts) == 1 + 2 + 4 + 8
    for context, following in contexts.items():
        assert_frequency(np.mean(following), language.transitions[context][1], len(following))
    assert_frequency(np.mean([len(s) == 4 for s in ids]), language.length_probs[4], len(ids))
    pairs = [p for s in corpus for p in zip(s.labels, s.tokens, strict=True)]
    for row, label in enumerate(language.labels):
        words = [word for y, word in pairs if y == label]
        for form, prob in zip(language.lexicon.forms, language.lexicon.probs[row], strict=True):
            assert_frequency(np.mean([word == form for word in words]), prob, len(words))


def assert_frequency(found: float | np.floating, prob: float, n_draws: int) -> None:
    """Check a relative frequency against its probability."""
    assert abs(float(found) - prob) <= 5 * math.sqrt(prob * (1 - prob) / n_draws) + 1e-12


def test_chain_depends_on_the_third_label_back() -> None:
    """Protects the order: the table is not constant along its earliest axis, unless its strength is zero."""
    spread = np.ptp(SyntheticLanguage(n_labels=4).transitions[:4], axis=0)
    assert spread.max() > 0.05
    flat = SyntheticLanguage(n_labels=4, strengths=(0.6, 0.7, 0.7, 0.0)).transitions
    assert np.ptp(flat, axis=0).max() < 1e-12


def test_default_looks_like_a_small_treebank() -> None:
    """Protects the defaults: size, labels, unknown words, and a task that is hard but not hopeless."""
    language = SyntheticLanguage()
    corpus = language.sample(600, seed=1)
    train, test = corpus[:480], corpus[480:]
    known = set().union(*train.tokens)
    unknown = np.mean([word not in known for words in test.tokens for word in words])
    assert 9000 < corpus.n_tokens < 10_200
    assert len(corpus.label_set) == 14
    assert 0.15 < unknown < 0.4
    wrong = [
        guess != label
        for sentence in test[:40]
        for guess, label in zip(language.bayes_decode(sentence.tokens), sentence.labels, strict=True)
    ]
    assert 0 < np.mean(wrong) < 0.05


def test_bayes_decoding_beats_words_alone() -> None:
    """Protects that context helps: labels from the word only are wrong more often."""
    language = SyntheticLanguage()
    corpus = language.sample(60, seed=4)
    with_context = alone = 0
    for sentence in corpus:
        by_word = [language.labels[i] for i in language.lexicon.likelihood(list(sentence.tokens)).argmax(axis=1)]
        by_all = language.bayes_decode(sentence.tokens)
        alone += sum(a != b for a, b in zip(by_word, sentence.labels, strict=True))
        with_context += sum(a != b for a, b in zip(by_all, sentence.labels, strict=True))
    assert with_context < alone / 2


def test_empty_sample_and_mean_of_one() -> None:
    """Protects the smallest settings."""
    language = SyntheticLanguage(n_labels=1, mean_length=1, n_stems=1, n_suffixes=1)
    assert len(language.sample(0)) == 0
    assert {len(tokens) for tokens in language.sample(9).tokens} == {1}


def test_long_sentences_do_not_underflow() -> None:
    """Protects the scaling of both recursions."""
    language = SyntheticLanguage(n_labels=3, mean_length=3000, max_length=5000)
    tokens = max(language.sample(10).tokens, key=len)
    assert len(tokens) > 2000
    np.testing.assert_allclose(language.posterior(tokens).sum(axis=1), 1)
    assert math.isfinite(language.log_evidence(tokens))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_labels": 0}, "n_labels=0: expected at least 1"),
        ({"seed": -1}, "seed=-1: expected at least 0"),
        ({"n_stems": 9}, "n_stems=9: expected at least 10"),
        ({"n_suffixes": 0}, "n_suffixes=0: expected at least 1"),
        ({"n_closed_words": 0}, "n_closed_words=0: expected at least 1"),
        ({"mean_length": 0.5}, "mean_length=0.5: expected at least 1"),
        ({"max_length": 0}, "max_length=0: expected at least 1"),
        ({"strengths": (1.0,)}, "expected at least two numbers, for zero and one earlier label"),
        ({"ambiguity": 1.5}, "ambiguity=1.5: expected a probability from 0 to 1"),
    ],
)
def test_impossible_languages_are_refused(options: dict[str, object], message: str) -> None:
    """Protects the messages for wrong parameters."""
    with pytest.raises(InputError, match=message):
        SyntheticLanguage(**options)  # type: ignore[arg-type]


def test_wrong_sentences_are_refused() -> None:
    """Protects the messages for sentences of another language."""
    language = SyntheticLanguage(n_labels=2)
    word = language.lexicon.forms[0]
    with pytest.raises(InputError, match="token 1 is 'owl!', none of the language's"):
        language.posterior([word, "owl!"])
    with pytest.raises(InputError, match="label 'NOUN' is none of the language's: open1, open2"):
        language.log_prob([word], ["NOUN"])
    with pytest.raises(InputError, match="one label a token, got 1 tokens and 2 labels"):
        language.log_prob([word], ["open1", "open1"])
    with pytest.raises(InputError, match="no sentence without tokens"):
        language.bayes_decode([])
    with pytest.raises(InputError, match='risk=\'none\': expected "token" or "sentence"'):
        language.bayes_decode([word], risk="none")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="n_sentences=-1: expected at least 0"):
        language.sample(-1)
