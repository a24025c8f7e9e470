"""The table of promises, and how they are kept: threshold, shares accepted, and the error on other sentences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vcrf.trust.calibration import Calibration, Units
from vcrf.trust.reliability import Reliability, reliability
from vcrf.trust.selective import GRID, Acceptance, accept, accepted, rates, sentence_values
from vcrf.types import Floats

_DRAWS = 2000


@dataclass(frozen=True)
class TrustRow:
    """One promise on labelled sentences.

    Attributes
    ----------
    acceptance : the threshold of the calibration sentences
    share : share of units accepted here, a mean over sentences
    sentence_share : share of sentences accepted whole
    error : share of errors among the accepted, nan if there are none
    low, high : 95 % interval of it, by the bootstrap over sentences
    """

    acceptance: Acceptance
    share: float
    sentence_share: float
    error: float
    low: float
    high: float

    @property
    def is_kept(self) -> bool:
        """Whether the error here is at most what was promised."""
        return not self.error > self.acceptance.max_error


@dataclass(frozen=True, eq=False)
class TrustTable:
    """Promises and how they are kept.

    Attributes
    ----------
    rows : one a promise
    share, error : (n_thresholds,) risk against coverage on these sentences, from strict to loose
    reliability : of these sentences, at the tagger's own temperature
    unit : "token", "sentence" or "span"
    """

    rows: list[TrustRow]
    share: Floats
    error: Floats
    reliability: Reliability
    unit: str

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the error against the share accepted, with the promises, and the reliability diagram."""
        from vcrf.trust.plots import plot_trust

        plot_trust(self, Path(path))


def trust_table(
    calibration: Calibration, test: Calibration, max_errors: Sequence[float], confidences: Sequence[float], unit: str
) -> TrustTable:
    """Thresholds from the calibration, tried on other sentences."""
    known, new = calibration.units(unit), test.units(unit)
    rows = [
        _row(accept(known, max_error, confidence, unit), new)
        for max_error in sorted(max_errors)
        for confidence in sorted(confidences)
    ]
    shares, errors = zip(*(rates(new, float(t)) for t in GRID), strict=True)
    return TrustTable(
        rows, np.array(shares), np.array(errors), reliability(test.sureness, test.is_wrong), unit,
    )  # fmt: skip


def _row(acceptance: Acceptance, units: Units) -> TrustRow:
    if not acceptance.is_any:
        return TrustRow(acceptance, 0.0, 0.0, float("nan"), float("nan"), float("nan"))
    share, error = rates(units, acceptance.threshold)
    low, high = _interval(units, acceptance.threshold)
    return TrustRow(acceptance, share, whole_share(units, acceptance.threshold), error, low, high)


def whole_share(units: Units, threshold: float) -> float:
    """Share of the sentences that have units of which all are accepted."""
    n_out = np.bincount(units.sentence_of, ~accepted(units.sureness, threshold), units.n_sentences)
    is_filled = np.diff(units.ptr) > 0
    return float(np.mean(n_out[is_filled] == 0)) if is_filled.any() else 0.0


def _interval(units: Units, threshold: float) -> tuple[float, float]:
    """Percentiles of the error when sentences are drawn again, with one seed."""
    at_0, at_1 = (sentence_values(units, limit, np.array([threshold]))[:, 0] for limit in (0.0, 1.0))
    wrong, share = at_0, at_0 - at_1  # of each sentence: sum of wrong, and of wrong less accepted
    rng, ratios = np.random.default_rng(0), []
    for _ in range(_DRAWS):
        drawn = rng.integers(0, len(wrong), len(wrong))
        total = share[drawn].sum()
        ratios.append(wrong[drawn].sum() / total if total > 0.0 else 0.0)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return float(low), float(high)
