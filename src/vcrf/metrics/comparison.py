"""Whether one tagger is better than another on the same sentences, or only luckier."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vcrf.metrics.pairs import check_pairs, wrong_and_all
from vcrf.types import Floats, Ints

# Entries of one batch of resamples: 32 MB of numbers whatever the size of the text.
_BATCH_ENTRIES = 1 << 22


@dataclass(frozen=True)
class Comparison:
    """Two taggers on the same sentences.

    Attributes
    ----------
    error_a, error_b : token errors
    difference : error_a - error_b; positive when b is better
    low, high : 95 % interval of the difference
    p_value : of the permutation test over sentences; small when luck is a poor explanation of the difference
    p_value_mcnemar : of McNemar's exact test over tokens, as if tokens were independent: read it with care
    n_only_a_wrong, n_only_b_wrong : tokens that only one of them labels wrong
    """

    error_a: float
    error_b: float
    difference: float
    low: float
    high: float
    p_value: float
    p_value_mcnemar: float
    n_only_a_wrong: int
    n_only_b_wrong: int


def compare(
    y_true: Iterable[Any],
    y_a: Iterable[Any],
    y_b: Iterable[Any],
    n_resamples: int = 10_000,
    random_state: int = 0,
) -> Comparison:
    """Compare the labels `y_a` and `y_b` of two taggers with the truth.

    Sentences are the units, because tokens of one sentence are not independent. The permutation test swaps the
    two taggers' labels in each sentence with probability 1/2: under the hypothesis that they are equally good
    that changes nothing. It tries all swaps if there are at most `n_resamples` of them. The interval is that of
    the bootstrap over sentences (percentiles).
    """
    from scipy.stats import bootstrap, permutation_test

    true, a = check_pairs(y_true, y_a)
    _, b = check_pairs(true, y_b)
    wrong_a, n_tokens = wrong_and_all(true, a)
    wrong_b, _ = wrong_and_all(true, b)
    n = int(n_tokens.sum())
    batch = max(1, _BATCH_ENTRIES // len(n_tokens))
    # Sentences where both make as many mistakes do not change under a swap: they are left out.
    differ = wrong_a != wrong_b
    p_value = 1.0
    if differ.sum() > 1:
        p_value = permutation_test(
            (wrong_a[differ], wrong_b[differ]), _difference, permutation_type="samples", vectorized=True,
            n_resamples=n_resamples, batch=batch, random_state=np.random.default_rng(random_state),
        ).pvalue  # fmt: skip
    low = high = (int(wrong_a.sum()) - int(wrong_b.sum())) / n
    if len(n_tokens) > 1 and differ.any():
        interval = bootstrap(
            (wrong_a - wrong_b, n_tokens), _ratio, paired=True, vectorized=True, n_resamples=n_resamples,
            batch=batch, method="percentile", random_state=np.random.default_rng(random_state),
        ).confidence_interval  # fmt: skip
        low, high = interval.low, interval.high
    only_a, only_b = _only_one_wrong(true, a, b)
    return Comparison(
        int(wrong_a.sum()) / n, int(wrong_b.sum()) / n, (int(wrong_a.sum()) - int(wrong_b.sum())) / n,
        float(low), float(high), float(p_value), _mcnemar(only_a, only_b), only_a, only_b,
    )  # fmt: skip


def _difference(a: Ints, b: Ints, axis: int) -> Ints:
    return np.asarray(a.sum(axis=axis) - b.sum(axis=axis))


def _ratio(part: Ints, whole: Ints, axis: int) -> Floats:
    # A draw may consist of empty sentences only: no token, no difference.
    return np.asarray(part.sum(axis=axis) / np.maximum(whole.sum(axis=axis), 1))


def _only_one_wrong(true: list[list[Any]], a: list[list[Any]], b: list[list[Any]]) -> tuple[int, int]:
    only_a = only_b = 0
    for labels in zip(true, a, b, strict=True):
        for t, left, right in zip(*labels, strict=True):
            only_a += left != t and right == t
            only_b += right != t and left == t
    return int(only_a), int(only_b)


def _mcnemar(only_a: int, only_b: int) -> float:
    """Exact: of the tokens where one is right and the other wrong, each is a fair coin."""
    from scipy.stats import binomtest

    return float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0
