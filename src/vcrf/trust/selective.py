"""Selective tagging: accept what is sure enough that, with high confidence, few of the accepted are wrong.

Learn then test (Angelopoulos and others 2021). For a threshold the hypothesis is that the error among accepted units
is above the limit; thresholds are tested from strict to loose, on a grid fixed beforehand, until one is not rejected.
The last one that was is the threshold, and the promise is broken with probability 1 - confidence at the most.

The error is a mean over sentences, E[wrong accepted share] / E[accepted share], shares of the units of a sentence. Or
it is pooled, E[wrong accepted units] / E[accepted units]: each unit counts the same and long sentences more. One
sentence could then hold `longest` errors, and evidence grows so much more slowly (`Units.pooled`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vcrf.errors import InputError
from vcrf.trust import evidence
from vcrf.trust.calibration import Units, check_unit
from vcrf.types import Bools, Floats

# Thresholds 1 / (1 + exp(-x)) for x from 12 down to -12, and 0, which accepts everything.
GRID = np.append(1.0 / (1.0 + np.exp(-np.linspace(12.0, -12.0, 481))), 0.0)
GRID = GRID.astype(np.float32).astype(np.float64)  # as what is compared with it
# Where sequences of tests begin, and their shares of 1 - confidence. The first is where a calibrated tagger calls every
# accepted label wrong with probability max_error at the most: its error is then a fraction of that, and many units are
# accepted, which the evidence grows with. The other is for a tagger that is too sure of itself.
STARTS = ((1.0, 0.8), (0.125, 0.2))
# Thresholds that are tested together: most sequences of tests are short.
_AT_ONCE = 24
# Sentences are read in an order that has nothing to do with that of the file.
_SHUFFLE = 20_160_519


@dataclass(frozen=True)
class Acceptance:
    """What may be accepted, and why.

    Attributes
    ----------
    threshold : units at least so sure are accepted; infinite if nothing is
    max_error, confidence, unit : what was asked for
    n_sentences : calibration sentences
    n_missing : sentences to add before anything can be expected to be accepted; 0 if something is already, None if the
        surest units are wrong too often for any number of sentences
    share : share of the units of the calibration sentences that is accepted
    error : share of errors among them
    longest : 0 if shares are means over sentences; else they are shares of all units together, and sentences with more
        units than this are never accepted
    """

    threshold: float
    max_error: float
    confidence: float
    unit: str
    n_sentences: int
    n_missing: int | None
    share: float
    error: float
    longest: int = 0

    @property
    def is_any(self) -> bool:
        """Whether anything can be accepted."""
        return math.isfinite(self.threshold)

    @property
    def message(self) -> str:
        """What is promised, in words."""
        few, sure = percent(self.max_error), percent(self.confidence)
        if self.is_any:
            which = f"{self.unit.capitalize()}s at least {self.threshold:.5g} sure (as trained)"
            return (
                f"{which if self.threshold > 0.0 else f'All {self.unit}s'}{self._where}: "
                f"{percent(self.share)} of the calibration text; with {sure} confidence at most {few} of them are wrong"
                f"{self._average}."
            )
        comma = "," if self._average else ""
        asked = f"at most {few} of errors among accepted {self.unit}s{self._average}{comma} with {sure} confidence"
        if self.n_missing is None:
            return (
                f"Nothing is accepted: {asked} is more than {self._calibration} "
                f"because no {self.unit} is at least {percent(1.0 - self.max_error)} sure, or those are wrong too "
                "often. Allow more errors, or train a better tagger."
            )
        return (
            f"Nothing is accepted: {asked} needs about {self.n_missing:,} more calibration "
            f"{'sentence' if self.n_missing == 1 else 'sentences'} than the {self.n_sentences:,} there "
            f"{'is' if self.n_sentences == 1 else 'are'}."
        )

    @property
    def _where(self) -> str:
        return f" in sentences of at most {self.longest} {self.unit}s" if self.longest else ""

    @property
    def _average(self) -> str:
        if self.unit == "sentence":  # one unit each: both averages are the same
            return ""
        return f", all {self.unit}s counted alike" if self.longest else ", as a mean over sentences"

    @property
    def _calibration(self) -> str:
        """The calibration sentences, and that they allow something."""
        n = self.n_sentences
        return f"this {n} calibration sentence allows," if n == 1 else f"these {n:,} calibration sentences allow,"


def percent(share: float) -> str:
    """A share for people: 1 %, 91.3 %."""
    return f"{100.0 * share:.3g} %"


def accept(units: Units, max_error: float, confidence: float = 0.95, unit: str = "token") -> Acceptance:
    """Find the loosest threshold that the calibration sentences allow.

    Parameters
    ----------
    units : of the calibration sentences
    max_error : share of errors among accepted units, between 0 and 1
    confidence : probability, over the draw of the calibration sentences, that the promise is kept
    unit : "token", "sentence" or "span"; a sentence is tested exactly, by the binomial distribution
    """
    check_unit(unit)
    check_share("max_error", max_error)
    check_share("confidence", confidence)
    order = np.random.default_rng(_SHUFFLE).permutation(units.n_sentences)
    shuffled = units.take(order)
    passed = _last_passed(shuffled, max_error, 1.0 - confidence, unit)
    if passed is None:
        missing = n_missing(shuffled, max_error, confidence, unit)
        return Acceptance(
            math.inf, max_error, confidence, unit, units.n_sentences, missing, 0.0, math.nan, units.most
        )  # fmt: skip
    threshold = float(GRID[passed])
    share, error = rates(units, threshold)
    return Acceptance(threshold, max_error, confidence, unit, units.n_sentences, 0, share, error, units.most)


def check_share(name: str, value: Any) -> None:
    """Raise InputError unless a number lies between 0 and 1, as max_error and confidence must."""
    is_number = isinstance(value, (float, np.floating))
    if not (is_number and 0.0 < value < 1.0):
        raise InputError(f"`{name}` must be a number between 0 and 1, both excluded, got {value!r}.")


def sentence_values(units: Units, limit: float, thresholds: Floats) -> Floats:
    """Z of every sentence and threshold, (n_sentences, n_thresholds): see `evidence`."""
    value = ((units.is_wrong > 0) - limit) / units.divisor
    # Units of a sentence by the first threshold that accepts them, then summed from strict to loose.
    place = np.searchsorted(-np.asarray(thresholds, np.float64), -units.sureness.astype(np.float64), side="left")
    n = len(thresholds)
    flat = np.bincount(units.sentence_of * (n + 1) + place, value, units.n_sentences * (n + 1))
    return np.cumsum(flat.reshape(units.n_sentences, n + 1)[:, :n], axis=1)


def rates(units: Units, threshold: float) -> tuple[float, float]:
    """Share of accepted units, and of errors among them, as means over sentences or pooled; nan if none is accepted."""
    is_in = units.sureness >= np.float32(threshold)
    count = 1.0 / units.divisor
    accepted, wrong = float(count[is_in].sum()), float(count[is_in & (units.is_wrong > 0)].sum())
    return accepted / float(count.sum()) if len(count) else 0.0, wrong / accepted if accepted else math.nan


def p_values(units: Units, limit: float, unit: str, thresholds: Floats) -> Floats:
    """p-value of "more than the limit are wrong" for each threshold, strict to loose."""
    if unit == "sentence":
        counts = [_counts(units, threshold) for threshold in thresholds]
        n_wrong, n_accepted = np.array(counts, np.int64).reshape(-1, 2).T
        return evidence.binomial(n_wrong, n_accepted, limit)
    return evidence.betting(sentence_values(units, limit, thresholds), limit)


def _counts(units: Units, threshold: float) -> tuple[int, int]:
    is_in = units.sureness >= np.float32(threshold)
    return int(np.count_nonzero(is_in & (units.is_wrong > 0))), int(np.count_nonzero(is_in))


def _last_passed(units: Units, limit: float, delta: float, unit: str) -> int | None:
    """The loosest threshold of the grid that is reached by one of the sequences of tests."""
    reached = [
        (first, _walk(units, limit, share * delta, unit, first))
        for first, share in ((_start(part * limit), share) for part, share in STARTS)
    ]
    return max((last for first, last in reached if last >= first), default=None)


def _walk(units: Units, limit: float, level: float, unit: str, first: int) -> int:
    """The threshold before the first, from there on, whose hypothesis stands."""
    for begin in range(first, len(GRID), _AT_ONCE):
        p = p_values(units, limit, unit, GRID[begin : begin + _AT_ONCE])
        failed = np.flatnonzero(p > level)
        if len(failed):
            return begin + int(failed[0]) - 1
    return len(GRID) - 1


def _start(doubt: float) -> int:
    """The first threshold of the grid that accepts what is in doubt so much."""
    return int(np.searchsorted(-GRID.astype(np.float64), doubt - 1.0))


def n_missing(units: Units, limit: float, confidence: float, unit: str = "token") -> int | None:
    """Sentences to add until a start passes, if its rate is the observed one; None if none ever does."""
    starts = GRID[[_start(part * limit) for part, _ in STARTS]]
    wanted = np.log([1.0 / (share * (1.0 - confidence)) for _, share in STARTS])
    growth = np.array([_growth(units, limit, float(start), unit) for start in starts])
    if not units.n_sentences:
        return math.ceil(float(wanted[0]) / math.log1p(limit))
    if not np.any(growth > 0.0):
        return None
    needed = float(np.min(wanted[growth > 0.0] / growth[growth > 0.0]))
    return max(math.ceil(needed) - units.n_sentences, 1)


def _growth(units: Units, limit: float, threshold: float, unit: str) -> float:
    """What a sentence adds to the logarithm of the evidence on average, at the observed rates."""
    if unit == "sentence":
        n_wrong, n_accepted = _counts(units, threshold)
        rate = n_wrong / max(n_accepted, 1)
        return evidence.divergence(rate, limit) * n_accepted / max(units.n_sentences, 1) if rate < limit else 0.0
    gains = -sentence_values(units, limit, np.array([threshold])) / (1.0 - limit)
    bets = evidence.MOST * 0.5 ** np.arange(6)  # the best of some constant ones
    return max(float(np.log1p(bet * gains).mean()) for bet in bets) if len(gains) else 0.0


def oracle_share(units: Units, limit: float) -> float:
    """Share that could be accepted if the labels were known: the loosest threshold whose error keeps the limit."""
    totals = sentence_values(units, limit, GRID).sum(axis=0)
    kept = np.flatnonzero(totals <= 0.0)
    return rates(units, float(GRID[kept[-1]]))[0] if len(kept) else 0.0


def accepted(sureness: NDArray[np.floating[Any]], threshold: float) -> Bools:
    """Which units are accepted; rounded as those of the calibration are."""
    return np.asarray(np.asarray(sureness, np.float32) >= np.float32(threshold))
