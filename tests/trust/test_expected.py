"""How many labels are wrong, and intervals of the error where there is none: coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from calibrations import calibration_with
from vcrf.trust import Units
from vcrf.trust.expected import expected_errors
from vcrf.trust.table import _interval


def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sureness and errors of sentences of five tokens, wrong together, by a tagger that is too sure of itself."""
    hard = rng.random(n) < 0.15
    sure = np.repeat(np.where(hard, 0.8, 0.98), 5)
    wrong = rng.random(5 * n) < np.repeat(np.where(hard, 0.35, 0.03), 5)
    return sure, wrong


def test_intervals_hold_the_true_number() -> None:
    """500 draws of 100 calibration sentences and a text of 150."""
    rng = np.random.default_rng(1)
    held = []
    for _ in range(500):
        sure, wrong = draw(100, rng)
        calibration = calibration_with([5] * 100, sure, wrong)
        new_sure, new_wrong = draw(150, rng)
        doubts = (1.0 - new_sure).reshape(150, 5).sum(axis=1)
        found = expected_errors(calibration, doubts, 750)
        held.append(found.low <= new_wrong.sum() <= found.high)
    assert 0.95 - 3 * np.sqrt(0.05 * 0.95 / 500) <= np.mean(held) <= 0.995


def test_no_error_in_calibration_is_no_proof_of_none() -> None:
    """The number stays 0; the interval grows with the text."""
    clean = calibration_with([1] * 400, np.ones(400), np.zeros(400, bool))
    small, large = (expected_errors(clean, np.zeros(m), m) for m in (3, 10_000))
    assert (small.number, large.number) == (0.0, 0.0)
    assert small.high < 0.5
    assert 25 < large.high < 200
    one = expected_errors(calibration_with([4], np.ones(4), np.zeros(4, bool)), np.zeros(2), 8)
    assert (one.low, one.high) == (0.0, 8.0)


@pytest.mark.parametrize("rate", [0.0, 0.005, 0.03])
def test_error_intervals_hold_the_rate(rate: float) -> None:
    """Also where few or no errors are seen: 100 sentences of one token, of which so many are wrong."""
    rng = np.random.default_rng(2)
    held = []
    for _ in range(200):
        units = Units(np.arange(101), np.ones(100, np.float32), (rng.random(100) < rate).astype(np.uint8))
        low, high = _interval(units, 0.5)
        held.append(low <= rate <= high)
    if rate == 0.0:
        assert all(held)
        assert high == pytest.approx(1.0 - 0.025**0.01)
    else:
        # The bootstrap alone would miss whenever there is no error.
        assert np.mean(held) > 0.85
