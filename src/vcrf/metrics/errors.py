"""Errors a token and a sentence, with intervals that know that tokens come in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vcrf.arguments.inputs import as_sentences, check_lengths
from vcrf.errors import InputError
from vcrf.metrics.pairs import check_pairs, wrong_and_all
from vcrf.types import Ints, Label


@dataclass(frozen=True)
class ErrorRate:
    """A share of errors, `rate` = n_wrong / n, with a confidence interval from `low` to `high`.

    Without anything to count (n = 0) the rate is NaN and the interval is 0 to 1.
    """

    rate: float
    low: float
    high: float
    n_wrong: int
    n: int

    def __str__(self) -> str:
        return f"{100 * self.rate:.2f} % ({100 * self.low:.2f} to {100 * self.high:.2f})"


class Confusion(NamedTuple):
    """A kind of mistake: `true` was labelled `predicted`, `n` times; `share` of all mistakes."""

    true: Label
    predicted: Label
    n: int
    share: float


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` finds. `unknown_word_error` is None without a vocabulary or without unknown words."""

    token_error: ErrorRate
    sentence_error: ErrorRate
    unknown_word_error: ErrorRate | None
    confusions: list[Confusion]


def token_error(y_true: Iterable[Any], y_pred: Iterable[Any], confidence: float = 0.95) -> ErrorRate:
    """Share of tokens with a wrong label.

    The interval is Wilson's, for as many tokens as the text is worth. Tokens of one sentence are wrong together
    more often than tokens of different sentences, so n tokens say less than n independent ones: with
    p = sum_i wrong_i / sum_i n_i over the sentences i, the variance of p between sentences is

        v = m / (m - 1) * sum_i (wrong_i - p n_i)^2 / (sum_i n_i)^2

    and the number of independent tokens with that variance is p (1 - p) / v, at the most n. The quantile is
    Student's with m - 1 degrees of freedom.
    """
    return _clustered_rate(*wrong_and_all(*check_pairs(y_true, y_pred)), confidence)


def sentence_error(y_true: Iterable[Any], y_pred: Iterable[Any], confidence: float = 0.95) -> ErrorRate:
    """Share of sentences with at least one wrong label, among those with a token; the interval is Wilson's."""
    wrong, n_tokens = wrong_and_all(*check_pairs(y_true, y_pred))
    is_wrong = wrong[n_tokens > 0] > 0
    n, n_wrong = len(is_wrong), int(is_wrong.sum())
    low, high = _wilson(n_wrong / n, n, _normal_quantile(_checked(confidence)))
    return ErrorRate(n_wrong / n, low, high, n_wrong, n)


def unknown_word_error(
    y_true: Iterable[Any],
    y_pred: Iterable[Any],
    X: Iterable[Any],
    vocabulary: Collection[Any],
    confidence: float = 0.95,
) -> ErrorRate:
    """Share of wrong labels among the tokens of X that are not in the vocabulary (of the training text).

    A vocabulary of all training words: ``{word for sentence in X_train for word in sentence}``. The interval is
    that of `token_error`.
    """
    true, predicted = check_pairs(y_true, y_pred)
    sentences = as_sentences(X)
    check_lengths(sentences, true)
    known = vocabulary if isinstance(vocabulary, (set, frozenset, dict)) else set(vocabulary)
    kept = [[t for t, word in enumerate(sentence) if word not in known] for sentence in sentences]
    pairs = (
        [[labels[t] for t in where] for labels, where in zip(side, kept, strict=True)] for side in (true, predicted)
    )
    return _clustered_rate(*wrong_and_all(*pairs), confidence)


def confusions(y_true: Iterable[Any], y_pred: Iterable[Any], n: int | None = 10) -> list[Confusion]:
    """The n most frequent kinds of mistakes, the most frequent first; None gives all."""
    true, predicted = check_pairs(y_true, y_pred)
    counts = Counter((a, b) for t, p in zip(true, predicted, strict=True) for a, b in zip(t, p, strict=True) if a != b)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    return [Confusion(a, b, count, count / counts.total()) for (a, b), count in ordered[:n]]


def evaluate(
    y_true: Iterable[Any],
    y_pred: Iterable[Any],
    X: Iterable[Any] | None = None,
    vocabulary: Collection[Any] | None = None,
    confidence: float = 0.95,
) -> Evaluation:
    """Token error, sentence error, the most frequent mistakes and, given X and vocabulary, the error on unknown words.

    Examples
    --------
    >>> result = evaluate([["DET", "NOUN"], ["VERB"]], [["DET", "VERB"], ["VERB"]])
    >>> result.token_error.n_wrong, result.token_error.n, result.sentence_error.rate
    (1, 3, 0.5)
    >>> result.confusions
    [Confusion(true='NOUN', predicted='VERB', n=1, share=1.0)]
    """
    true, predicted = check_pairs(y_true, y_pred)
    if (X is None) != (vocabulary is None):
        raise InputError("The error on unknown words needs X and vocabulary: got one without the other.")
    unknown = None
    if X is not None and vocabulary is not None:
        unknown = unknown_word_error(true, predicted, X, vocabulary, confidence)
    return Evaluation(
        token_error(true, predicted, confidence),
        sentence_error(true, predicted, confidence),
        unknown if unknown is not None and unknown.n else None,
        confusions(true, predicted),
    )


def _clustered_rate(wrong: Ints, n_tokens: Ints, confidence: float) -> ErrorRate:
    """Rate of errors in clusters (sentences); see `token_error`."""
    _checked(confidence)
    wrong, n_tokens = wrong[n_tokens > 0], n_tokens[n_tokens > 0]
    n, n_wrong, m = int(n_tokens.sum()), int(wrong.sum()), len(n_tokens)
    if n == 0:
        return ErrorRate(float("nan"), 0.0, 1.0, 0, 0)
    p = n_wrong / n
    if m == 1:  # one sentence says nothing about others: as good as one token
        return ErrorRate(p, *_wilson(p, 1.0, _normal_quantile(confidence)), n_wrong, n)
    variance = m / (m - 1) * float(np.sum((wrong - p * n_tokens) ** 2)) / n**2
    n_independent = min(float(n), p * (1.0 - p) / variance) if variance > 0.0 else float(n)
    return ErrorRate(p, *_wilson(p, n_independent, _student_quantile(confidence, m - 1)), n_wrong, n)


def _wilson(p: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's score interval for a rate p of n independent trials: all q with |p - q| <= z sqrt(q (1 - q) / n)."""
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    # At the ends the interval reaches them exactly; rounding would leave 1e-17.
    return (0.0 if p == 0.0 else float(centre - half)), (1.0 if p == 1.0 else float(centre + half))


def _normal_quantile(confidence: float) -> float:
    from scipy.stats import norm

    return float(norm.ppf(0.5 + confidence / 2))


def _student_quantile(confidence: float, degrees: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + confidence / 2, degrees))


def _checked(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise InputError(f"`confidence` must lie between 0 and 1, got {confidence!r}. 0.95 is usual.")
    return confidence
