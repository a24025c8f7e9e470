"""Selection and significance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from points import point
from vcrf.experiments.comparison import Summary, choose, difference, l1_crf, spread


def test_validation_decides_then_sparsity_then_strength() -> None:
    """The test error is not looked at."""
    best = point(validation_wrong=3, test_wrong=99, n_active=50)
    assert choose([point(validation_wrong=4, test_wrong=0, n_active=1), best]) == best
    sparse = point(validation_wrong=3, n_active=49, complexity_strength=0.0, base_strength=0.0)
    assert choose([best, sparse]) == sparse
    strong = sparse._replace(base_strength=0.1)
    assert choose([sparse, strong]) == strong


def test_the_l1_crf_is_the_column_without_complexities() -> None:
    """Complexity strength 0, whatever the base strength."""
    points = [point(complexity_strength=c, base_strength=b) for c in (0.0, 0.1) for b in (0.0, 0.1)]
    assert l1_crf(points) == points[:2]


def test_the_difference_is_tested_one_sided_and_paired() -> None:
    """By hand: mean -1, standard deviation 1, five runs; t = -sqrt(5), 4 degrees of freedom."""
    theirs = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    values = np.array([-1.0, -2.0, 0.0, -1 - 2**-0.5, -1 + 2**-0.5])
    values = -1.0 + (values + 1.0) / (values + 1.0).std(ddof=1)
    found = difference(theirs + values, theirs)
    assert found.mean == pytest.approx(-1.0)
    assert found.p_value == pytest.approx(0.0445, abs=2e-4)  # P(T_4 < -2.2361), from a table
    assert found.is_significant
    assert (found.low, found.high) == pytest.approx((-1 - 2.7764 / 5**0.5, -1 + 2.7764 / 5**0.5), abs=1e-4)
    assert not difference(theirs, theirs + values).is_significant  # the other side
    assert found.n_better == int((values < 0).sum())


def test_the_corrected_test_widens_the_variance() -> None:
    """By hand: mean -1, standard deviation 1, five runs; t = -1 / sqrt(1/5 + 1/3), 4 degrees of freedom."""
    values = np.array([-1.0, -2.0, 0.0, -1 - 2**-0.5, -1 + 2**-0.5])
    values = -1.0 + (values + 1.0) / (values + 1.0).std(ddof=1)
    found = difference(values, np.zeros(5))
    assert found.p_overlap == pytest.approx(t.cdf(-1.0 / (1 / 5 + 1 / 3) ** 0.5, 4))
    assert found.p_overlap > found.p_value
    assert difference(np.ones(2), np.ones(2)).p_overlap == 1.0


def test_equal_errors_and_single_runs_are_no_evidence() -> None:
    """No division by zero, no claim."""
    same = np.array([1.0, 2.0])
    assert difference(same, same).p_value == 1.0
    assert difference(same[:1], same[1:]).p_value is None
    assert not difference(same[:1], same[1:]).is_significant


def test_summaries_are_per_cent_of_the_test_fold() -> None:
    """Token and sentence error, mean and standard deviation of a sample."""
    runs = Summary([point(test_wrong=w, test_tokens=200, test_sentences_wrong=w, test_sentences=20) for w in (1, 3)])
    assert runs.token.tolist() == [0.5, 1.5]
    assert runs.sentence.tolist() == [5.0, 15.0]
    assert spread(runs.token) == pytest.approx((1.0, 0.5**0.5))
    assert spread([2.0]) == (2.0, 0.0)
