"""The table of promises, and how they are kept: threshold, shares accepted, and the error on other sentences."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vcrf.trust.calibration import Units
from vcrf.trust.reliability import Reliability
from vcrf.trust.selective import GRID, Acceptance, accept, accepted, rates, sentence_values
from vcrf.types import Floats

_DRAWS = 2000
# Sentences that are drawn at once: a few megabytes.
_AT_ONCE = 1 << 18
# Promises along a band.
_LIMITS = 40


@dataclass(frozen=True)
class TrustRow:
    """One promise on labelled sentences.

    Attributes
    ----------
    acceptance : the threshold of the calibration sentences
    share : share of units accepted here, averaged as the promise is
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
class Band:
    """What is certified at one confidence: with it, the error at a share accepted is at most `max_error`.

    Each point is a promise of its own; that all of them hold together is not promised.

    Attributes
    ----------
    share : (n,) share of units accepted on the labelled sentences, rising
    max_error : (n,) the promise
    """

    confidence: float
    share: Floats
    max_error: Floats


@dataclass(frozen=True, eq=False)
class TrustTable:
    """Promises and how they are kept.

    Attributes
    ----------
    rows : one a promise
    share, error : (n_thresholds,) risk against coverage on these sentences, from strict to loose
    reliability : of these sentences, at the tagger's own temperature
    unit : "token", "sentence" or "span"
    known, new : the units of the calibration sentences, and of these
    """

    rows: list[TrustRow]
    share: Floats
    error: Floats
    reliability: Reliability
    unit: str
    known: Units
    new: Units

    def band(self, confidence: float = 0.95) -> Band:
        """What is certified, for promises from half the strictest of the rows to twice the loosest."""
        asked = [row.acceptance.max_error for row in self.rows]
        between = np.geomspace(min(asked) / 2.0, min(2.0 * max(asked), 0.99), _LIMITS)
        limits = np.unique(np.concatenate([between, asked]))  # the rows lie on the band
        found = [accept(self.known, float(limit), confidence, self.unit) for limit in limits]
        kept = [(rates(self.new, a.threshold)[0], a.max_error) for a in found if a.is_any]
        # Of promises that accept no more than a stricter one does, the stricter one counts.
        best = [kept[i] for i in range(len(kept)) if all(kept[i][0] > share for share, _ in kept[:i])]
        shares, promised = np.array(best).reshape(-1, 2).T
        return Band(confidence, shares, promised)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the error against the share accepted, with what is certified, and the reliability diagram."""
        from vcrf.trust.plots import plot_trust

        plot_trust(self, Path(path))


def trust_table(
    known: Units, new: Units, max_errors: Sequence[float], confidences: Sequence[float], unit: str, test: Reliability
) -> TrustTable:
    """Thresholds from the units of the calibration, tried on those of other sentences, whose reliability is given."""
    rows = [
        _row(accept(known, max_error, confidence, unit), new)
        for max_error in sorted(max_errors)
        for confidence in sorted(confidences)
    ]
    shares, errors = zip(*(rates(new, float(t)) for t in GRID), strict=True)
    return TrustTable(rows, np.array(shares), np.array(errors), test, unit, known, new)


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
    """Percentiles of the error when sentences are drawn again, with one seed.

    Where there is no error drawing again shows none. Then the upper end is that of the share of sentences with an error
    (exact, 1 - 0.025^(1/n)), if such a sentence is wrong throughout, over the mean share accepted.
    """
    at_0, at_1 = (sentence_values(units, limit, np.array([threshold]))[:, 0] for limit in (0.0, 1.0))
    wrong, share = at_0, at_0 - at_1  # of each sentence: sum of wrong, and of wrong less accepted
    if not np.any(wrong > 0.0):
        most = 1.0 - 0.025 ** (1.0 / len(wrong))
        return 0.0, float(min(most / max(share.mean(), most), 1.0))
    n = len(wrong)
    rng, ratios = np.random.default_rng(0), []
    for rows in _pieces(_DRAWS, max(_AT_ONCE // n, 1)):
        drawn = rng.integers(0, n, (rows, n))
        totals = share[drawn].sum(axis=1)
        ratios.append(np.divide(wrong[drawn].sum(axis=1), totals, out=np.zeros(rows), where=totals > 0.0))
    low, high = np.percentile(np.concatenate(ratios), [2.5, 97.5])
    return float(low), float(high)


def _pieces(n: int, at_once: int) -> Iterator[int]:
    """Sizes of pieces of n."""
    for first in range(0, n, at_once):
        yield min(at_once, n - first)
