"""Label sets: the threshold against a search over all of them, and the expected miss by simulation."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrations import calibration_with
from vcrf.errors import InputError
from vcrf.trust import Calibration, set_threshold


def mean_miss(calibration: Calibration, q: float, unit: str) -> Fraction:
    """By loops, in fractions, so that ties are ties; what has no probability is in no set."""
    total = Fraction(0)
    for a, b in zip(calibration.ptr, calibration.ptr[1:], strict=False):
        missed = [
            w and (p < q or p == 0.0)
            for p, w in zip(calibration.true_probability[a:b], calibration.is_wrong[a:b], strict=True)
        ]
        total += Fraction(sum(map(int, missed)), int(b - a)) if unit == "token" else any(missed)
    return total / calibration.n_sentences


@st.composite
def calibrations(draw: st.DrawFn) -> Calibration:
    """A few sentences with ties among the probabilities."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=30))
    n = sum(lengths)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    wrong = rng.random(n) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    return calibration_with(lengths, np.full(n, 0.9), wrong, rng.integers(0, 6, n) / 8)


@given(calibrations(), st.sampled_from([0.04, 0.1, 0.3, 0.5]), st.sampled_from(["token", "sentence"]))
def test_threshold_is_the_largest_that_keeps_the_bound(calibration: Calibration, miss: float, unit: str) -> None:
    """Every candidate is tried: the probabilities that occur, and one above them all."""
    n, allowed = calibration.n_sentences, Fraction(str(miss))
    tried = [
        q for q in [*np.arange(7) / 8, 2.0] if (n * mean_miss(calibration, q, unit) + 1) / Fraction(n + 1) <= allowed
    ]
    if not tried and Fraction(1, n + 1) <= allowed:
        with pytest.raises(InputError, match="no set has these"):
            set_threshold(calibration, miss, unit)
        return
    found = set_threshold(calibration, miss, unit)
    if not tried:
        assert found.threshold == 0.0
        assert n < found.n_needed
    else:
        # Between two probabilities that occur all thresholds have the same sets.
        assert mean_miss(calibration, found.threshold, unit) == mean_miss(calibration, max(tried), unit)
        assert found.threshold >= max(tried) - 1e-9


@pytest.mark.parametrize("unit", ["token", "sentence"])
def test_labels_that_training_has_not_seen_break_no_promise(unit: str) -> None:
    """A fifth of the sentences have such a label: nothing below that can be promised, above it can."""
    wrong = np.zeros(200, bool)
    wrong[::5] = True
    seen = calibration_with([1] * 200, np.full(200, 0.9), wrong, np.zeros(200))
    with pytest.raises(InputError, match="at most 5 % cannot be promised"):
        set_threshold(seen, 0.05, unit)
    assert "at most 30 %" in set_threshold(seen, 0.3, unit).message


def test_mean_miss_is_what_was_asked_for() -> None:
    """1,000 draws of 200 calibration sentences and a new one each: at most alpha, and not far below."""
    rng = np.random.default_rng(5)
    lengths, misses = [6] * 201, {"token": [], "sentence": []}
    for _ in range(1000):
        hard = np.repeat(rng.uniform(0.0, 0.6, 201), 6)  # tokens of a sentence are wrong together
        wrong = rng.random(201 * 6) < hard
        everything = calibration_with(lengths, 1 - hard, wrong, rng.uniform(0.0, 0.5, 201 * 6))
        known = calibration_with(
            lengths[:-1], 1 - hard[:-6], wrong[:-6], everything.true_probability[:-6].astype(np.float64)
        )
        for unit, found in misses.items():
            q = set_threshold(known, 0.1, unit).threshold
            is_missed = wrong[-6:] & (everything.true_probability[-6:] < q)
            found.append(is_missed.mean() if unit == "token" else float(is_missed.any()))
    for found in misses.values():
        noise = 3 * np.std(found) / np.sqrt(len(found))
        assert np.mean(found) <= 0.1 + noise
        assert np.mean(found) >= 0.1 - 2 / 201 - noise


def test_too_few_sentences_give_every_label_and_say_so() -> None:
    """N >= 1 / miss - 1 is needed."""
    few = calibration_with([2] * 8, np.full(16, 0.9), np.zeros(16, bool))
    found = set_threshold(few, 0.05)
    assert found.threshold == 0.0
    assert found.n_needed == 19
    assert "11 more" in found.message
    enough = calibration_with([2] * 19, np.full(38, 0.9), np.zeros(38, bool))
    assert set_threshold(enough, 0.05).threshold > 1.0
    assert "The predicted label is enough: the expected share of tokens" in set_threshold(enough, 0.05).message
    found = with_true_spans(np.ones(50, np.int64), np.full(50, 0.9), np.ones(50))
    assert "The predicted spans are enough: of the true spans" in set_threshold(found, 0.05, "span").message


def with_true_spans(counts: np.ndarray, probability: np.ndarray, is_found: np.ndarray) -> Calibration:
    """Sentences of one token whose true spans are so probable, and found or not."""
    n = len(counts)
    plain = calibration_with([1] * n, np.full(n, 0.9), np.zeros(n, bool))
    return replace(
        plain, scheme="BIO", true_span_ptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        true_span_probability=probability.astype(np.float32), true_span_is_found=is_found.astype(np.uint8),
    )  # fmt: skip


def test_mean_miss_of_spans_is_what_was_asked_for() -> None:
    """Of sentences that have a span, whatever the number of those that have none."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(1000):
        counts = rng.integers(1, 4, 201) * (rng.random(201) < 0.5)
        counts[-1] = rng.integers(1, 4)  # the new sentence has a span
        n = counts.sum()
        p, is_found = rng.uniform(0.01, 0.5, n), rng.random(n) < np.repeat(rng.uniform(0.4, 1.0, 201), counts)
        last = counts[-1]
        q = set_threshold(with_true_spans(counts[:-1], p[:-last], is_found[:-last]), 0.1, "span").threshold
        found.append(np.mean(~is_found[-last:] & (p[-last:].astype(np.float32) < q)))
    noise = 3 * np.std(found) / np.sqrt(len(found))
    assert 0.1 - 2 / 80 - noise <= np.mean(found) <= 0.1 + noise


def test_sets_of_all_spans_are_refused() -> None:
    """Too few sentences with a span, or true spans that are too improbable: by name, with what to do."""
    empty = np.zeros(0)
    with pytest.raises(InputError, match="need 19 calibration sentences with a span, there are 0"):
        set_threshold(with_true_spans(np.zeros(50, np.int64), empty, empty), 0.05, "span")
    ones = np.ones(50, np.int64)
    with pytest.raises(InputError, match=r"less than 0\.001 sure"):
        set_threshold(with_true_spans(ones, np.full(50, 1e-5), np.zeros(50)), 0.05, "span")
    promise = set_threshold(with_true_spans(ones, np.full(50, 0.2), np.zeros(50)), 0.05, "span")
    assert promise.threshold == pytest.approx(0.2)
    assert "of the true spans of a sentence that has any" in promise.message


def test_wrong_arguments_are_refused() -> None:
    """By name."""
    few = calibration_with([2], np.full(2, 0.9), np.zeros(2, bool))
    with pytest.raises(InputError, match="miss"):
        set_threshold(few, 0.0)
    with pytest.raises(InputError, match="unit"):
        set_threshold(few, 0.1, "word")
    with pytest.raises(InputError, match="mark spans"):
        set_threshold(few, 0.1, "span")
