"""Errors with intervals: counts by hand, Wilson's interval against scipy, coverage on text made of sentences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from vcrf.errors import InputError
from vcrf.metrics import Confusion, confusions, evaluate, sentence_error, token_error, unknown_word_error

TRUE = [["A", "B", "A"], ["B", "B"], [], ["A"]]
PREDICTED = [["A", "A", "B"], ["B", "B"], [], ["B"]]
WORDS = [["the", "new", "cat"], ["the", "cat"], [], ["odd"]]


def test_token_error_counts_tokens() -> None:
    """3 of 6 tokens are wrong."""
    found = token_error(TRUE, PREDICTED)
    assert (found.n_wrong, found.n, found.rate) == (3, 6, 0.5)
    assert 0.0 < found.low < 0.5 < found.high < 1.0


def test_sentence_error_counts_sentences_with_tokens() -> None:
    """2 of 3: the empty sentence is neither right nor wrong."""
    found = sentence_error(TRUE, PREDICTED)
    assert (found.n_wrong, found.n, found.rate) == (2, 3, pytest.approx(2 / 3))


@pytest.mark.parametrize(("n_wrong", "n"), [(0, 10), (3, 10), (10, 10), (17, 400)])
def test_sentence_interval_is_wilsons(n_wrong: int, n: int) -> None:
    """As scipy computes it, for several confidences."""
    true = [["A"]] * n
    predicted = [["B"]] * n_wrong + [["A"]] * (n - n_wrong)
    for confidence in (0.8, 0.95):
        expected = binomtest(n_wrong, n).proportion_ci(confidence, method="wilson")
        found = sentence_error(true, predicted, confidence)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_token_interval_by_the_formula() -> None:
    """The number of independent tokens from the variance between sentences, then Wilson with Student's quantile."""
    rng = np.random.default_rng(0)
    n = rng.integers(1, 20, 50)
    wrong = rng.binomial(n, rng.beta(1.0, 5.0, 50))
    true = [["A"] * k for k in n]
    predicted = [["B"] * w + ["A"] * (k - w) for w, k in zip(wrong, n, strict=True)]
    p = wrong.sum() / n.sum()
    variance = 50 / 49 * np.sum((wrong - p * n) ** 2) / n.sum() ** 2
    worth = p * (1 - p) / variance
    assert worth < 0.6 * n.sum()  # tokens of a sentence are wrong together here
    found = token_error(true, predicted)
    # Wilson's ends are the rates q with |p - q| = quantile * sqrt(q (1 - q) / n); Student's quantile of 49 is 2.0096.
    for q in (found.low, found.high):
        assert abs(p - q) == pytest.approx(2.00957524 * math.sqrt(q * (1 - q) / worth), rel=1e-6)


def test_token_interval_covers_where_wilsons_does_not() -> None:
    """On text whose sentences differ in difficulty 95 % is 95 %, while independent tokens would promise too much."""
    rng = np.random.default_rng(1)
    hits = naive_hits = 0
    n_runs = 400
    for _ in range(n_runs):
        lengths = rng.integers(5, 30, 60)
        wrong = rng.binomial(lengths, rng.beta(0.5, 4.5, 60))  # mean 0.1
        true = [["A"] * k for k in lengths]
        predicted = [["B"] * w + ["A"] * (k - w) for w, k in zip(wrong, lengths, strict=True)]
        found = token_error(true, predicted)
        hits += found.low <= 0.1 <= found.high
        naive = binomtest(int(wrong.sum()), int(lengths.sum())).proportion_ci(method="wilson")
        naive_hits += naive.low <= 0.1 <= naive.high
    assert hits / n_runs > 0.91
    assert naive_hits / n_runs < 0.8


def test_intervals_without_mistakes_or_with_one_sentence() -> None:
    """No mistake does not mean certainty, and one sentence is one observation."""
    perfect = token_error([["A"] * 5] * 20, [["A"] * 5] * 20)
    assert perfect.rate == perfect.low == 0.0
    assert 0.0 < perfect.high < 0.06
    single = token_error([["A"] * 1000], [["A"] * 1000])
    assert single.high > 0.7
    hopeless = token_error([["A"]] * 5, [["B"]] * 5)
    assert hopeless.high == 1.0
    assert hopeless.low > 0.2


def test_unknown_words_only() -> None:
    """`new` and `odd` are unknown, both wrong."""
    found = unknown_word_error(TRUE, PREDICTED, WORDS, {"the", "cat"})
    assert (found.n_wrong, found.n) == (2, 2)
    assert unknown_word_error(TRUE, PREDICTED, WORDS, ["the", "new", "odd"]).n == 2  # a list will do
    nothing = unknown_word_error(TRUE, PREDICTED, WORDS, {"the", "cat", "new", "odd"})
    assert nothing.n == 0
    assert math.isnan(nothing.rate)
    assert (nothing.low, nothing.high) == (0.0, 1.0)


def test_confusions_by_frequency() -> None:
    """Most frequent first; equal ones by name."""
    assert confusions(TRUE, PREDICTED) == [Confusion("A", "B", 2, 2 / 3), Confusion("B", "A", 1, 1 / 3)]
    assert confusions(TRUE, PREDICTED, n=1) == [Confusion("A", "B", 2, 2 / 3)]
    assert confusions(TRUE, TRUE) == []


def test_evaluate_puts_them_together() -> None:
    """The parts are those of the single functions."""
    found = evaluate(TRUE, PREDICTED, WORDS, {"the", "cat"})
    assert found.token_error == token_error(TRUE, PREDICTED)
    assert found.sentence_error == sentence_error(TRUE, PREDICTED)
    assert found.unknown_word_error == unknown_word_error(TRUE, PREDICTED, WORDS, {"the", "cat"})
    assert found.confusions == confusions(TRUE, PREDICTED)
    assert evaluate(TRUE, PREDICTED).unknown_word_error is None
    assert evaluate(TRUE, PREDICTED, WORDS, {w for x in WORDS for w in x}).unknown_word_error is None


def test_generators_and_arrays_are_listed_once() -> None:
    """Labels may come as generators or arrays of int."""
    assert evaluate((iter(y) for y in TRUE), (iter(y) for y in PREDICTED)).token_error.n_wrong == 3
    assert token_error([np.array([1, 2])], [np.array([1, 3])]).n_wrong == 1


def test_rate_reads_as_per_cent() -> None:
    """For people: 50.00 % (from to)."""
    assert str(token_error([["A"]] * 4, [["A"], ["B"]] * 2)).startswith("50.00 % (")


@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([["A"]], [], "same sentences: got 1 and 0"),
        ([["A"], ["B"]], [["A"], []], "Sentence 1: y_true has 1 labels, y_pred has 0"),
        ([[]], [[]], "at least one token"),
        ("AB", [["A"]], "y must be a list of lists"),
    ],
)
def test_wrong_pairs_are_named(y_true: list[list[str]], y_pred: list[list[str]], message: str) -> None:
    """What does not fit together is an InputError that names it."""
    with pytest.raises(InputError, match=message):
        token_error(y_true, y_pred)


def test_wrong_arguments_are_named() -> None:
    """Confidence, and a vocabulary without its text."""
    with pytest.raises(InputError, match=r"`confidence` must lie between 0 and 1, got 95"):
        token_error(TRUE, PREDICTED, 95)
    with pytest.raises(InputError, match="needs X and vocabulary"):
        evaluate(TRUE, PREDICTED, WORDS)
