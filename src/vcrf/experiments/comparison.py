"""From points to figures: the model that validation chooses, means over runs, the test of the difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from vcrf.experiments.tasks import PathPoint
from vcrf.types import Floats

LEVEL = 0.05
# A fold is tested on, three are trained on.
_TEST_OVER_TRAIN = 1.0 / 3.0


def choose(points: Iterable[PathPoint]) -> PathPoint:
    """The smallest token error on validation; of equal ones the sparser model, then the stronger strengths."""
    return min(
        points,
        key=lambda p: (p.validation_wrong, p.n_active, -p.complexity_strength - p.base_strength, -p.base_strength),
    )


def l1_crf(points: Iterable[PathPoint]) -> list[PathPoint]:
    """The part of the grid that is the L1-CRF: complexity strength 0."""
    return [point for point in points if point.complexity_strength == 0.0]


@dataclass(frozen=True)
class Summary:
    """Chosen models of all runs, and their errors on the test folds in per cent, (n_runs,) each."""

    chosen: list[PathPoint]

    @property
    def token(self) -> Floats:
        return np.array([100.0 * point.test_wrong / point.test_tokens for point in self.chosen])

    @property
    def sentence(self) -> Floats:
        return np.array([100.0 * point.test_sentences_wrong / point.test_sentences for point in self.chosen])

    def mean(self, name: str) -> float:
        """Mean over runs of a number of the points."""
        return float(np.mean([getattr(point, name) for point in self.chosen]))


@dataclass(frozen=True)
class Difference:
    """One error less another, run by run, in points of per cent.

    Attributes
    ----------
    values : (n_runs,)
    low, high : 95 % interval of the mean (Student's t)
    p_value : one-sided paired t-test of the claim that the mean is below 0; None with one run
    p_overlap : the same corrected for training sets that overlap (Nadeau and Bengio, 2003)
    """

    values: Floats
    low: float
    high: float
    p_value: float | None
    p_overlap: float | None = None

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def is_significant(self) -> bool:
        return self.p_value is not None and self.p_value < LEVEL

    @property
    def n_better(self) -> int:
        return int((self.values < 0.0).sum())


def difference(ours: Floats, theirs: Floats) -> Difference:
    """Compare two errors on the same runs; a negative difference says that ours is smaller."""
    values = np.asarray(ours - theirs)
    mean, n = float(values.mean()), len(values)
    if n < 2:
        return Difference(values, mean, mean, None)
    if np.all(values == values[0]):  # no spread, no statistic: equal errors say nothing, constant ones all
        p = 0.0 if mean < 0.0 else 1.0
        return Difference(values, mean, mean, p, p)
    from scipy.stats import t, ttest_rel

    sd = float(values.std(ddof=1))
    half = float(t.ppf(0.975, n - 1)) * sd / n**0.5
    # The variance of the mean is taken as (1 / n + n_test / n_train) sd^2, not sd^2 / n.
    p_overlap = float(t.cdf(mean / (sd * (1.0 / n + _TEST_OVER_TRAIN) ** 0.5), n - 1))
    p_value = float(ttest_rel(ours, theirs, alternative="less").pvalue)
    return Difference(values, mean - half, mean + half, p_value, p_overlap)


def spread(values: Sequence[float] | Floats) -> tuple[float, float]:
    """Mean and standard deviation (of a sample) over runs; 0 for one run."""
    listed = np.asarray(values, np.float64)
    return float(listed.mean()), float(listed.std(ddof=1)) if len(listed) > 1 else 0.0
