"""Label sets that hold the truth: conformal risk control (Angelopoulos and others 2022).

    set of token t = {labels with p_t(label) >= q}, and always the predicted label

A sentence misses by the share of its tokens whose true label is not in their set, or ("sentence") by 1 if any is not.
With n calibration sentences

    q = the largest one with  n/(n+1) * mean miss + 1/(n+1) <= miss allowed

and then the expected miss of a new sentence is at most what is allowed, over the draw of all n + 1 sentences. A label
that training has not seen has probability 0, and is missed by every set: where that alone is more than what is allowed
there is no promise.

Sets of spans go the same way: {spans with p(span) >= q}, and always the predicted ones. A sentence misses by the share
of its true spans that are not in its set; n and the promise are about sentences with a true span, which would else be
lost among those that have nothing to miss. The set of all spans cannot be listed: where only that would do there is no
promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vcrf.errors import InputError
from vcrf.trust.calibration import Calibration
from vcrf.trust.selective import check_share, percent
from vcrf.types import Floats

SET_UNITS = ("token", "sentence", "span")
# Sets of spans that are less probable than this would be long and slow to find.
LEAST_SPAN = 1e-3
# Above every probability: the predicted label alone is enough.
_ABOVE = 2.0


@dataclass(frozen=True)
class SetThreshold:
    """Labels at least so probable are in the sets.

    Attributes
    ----------
    threshold : q; 0 if there are too few sentences, so that the sets hold every label
    miss : what was asked for
    n_sentences, n_needed : calibration sentences (with a true span, for sets of spans), and the fewest with which a set
        can leave out a label
    """

    threshold: float
    miss: float
    unit: str
    n_sentences: int
    n_needed: int

    @property
    def message(self) -> str:
        """What is promised, in words."""
        if self.n_sentences < self.n_needed:
            return (
                f"Sets that miss at most {percent(self.miss)} need {self.n_needed:,} calibration sentences, there are "
                f"{self.n_sentences:,}: the sets hold every label. Calibrate with {self.n_needed - self.n_sentences:,} "
                "more."
            )
        if self.unit == "span":
            sure = f"Spans at least {self.threshold:.4g} sure, and the predicted ones"
            return (
                f"{sure if self.threshold < _ABOVE else 'The predicted spans are enough'}: of the true spans of a "
                f"sentence that has any, the expected share that is not in its set is at most {percent(self.miss)}."
            )
        what = "share of tokens" if self.unit == "token" else "share of sentences with a token"
        sure = f"Labels at least {self.threshold:.4g} sure, and the predicted one"
        return (
            f"{sure if self.threshold < _ABOVE else 'The predicted label is enough'}: the expected {what} whose true "
            f"label is not in its set is at most {percent(self.miss)}."
        )


def set_threshold(calibration: Calibration, miss: float, unit: str = "token") -> SetThreshold:
    """The threshold q for sets that miss at most so much in expectation."""
    if unit not in SET_UNITS:
        raise InputError(f"`unit` of label sets must be one of {', '.join(SET_UNITS)}, got {unit!r}.")
    check_share("miss", miss)
    n_needed = math.ceil(1.0 / miss - 1.0 - 1e-9)
    if unit == "span":
        return _span_threshold(calibration, miss, n_needed)
    n = calibration.n_sentences
    values, weights = _missable(calibration, unit)
    q = _largest(values, weights, n, miss)
    if q == 0.0 and n >= n_needed:
        raise InputError(
            f"Label sets that miss at most {percent(miss)} cannot be promised: the true labels of too many calibration "
            "tokens are labels that training has not seen, and no set has these. Allow more misses, or train with them."
        )
    return SetThreshold(q, miss, unit, n, n_needed)


def _span_threshold(calibration: Calibration, miss: float, n_needed: int) -> SetThreshold:
    """For sets of spans; InputError where the set of all spans would be needed."""
    if not calibration.scheme:
        raise InputError("`unit='span'` needs labels that mark spans, BIO or BILOU, and the model's do not.")
    counts = np.diff(calibration.true_span_ptr)
    n = int(np.count_nonzero(counts))
    if n < n_needed:
        raise InputError(
            f"Sets of spans that miss at most {percent(miss)} need {n_needed:,} calibration sentences with a span, "
            f"there are {n:,}. Calibrate with {n_needed - n:,} more, or allow more misses."
        )
    is_missed = calibration.true_span_is_found == 0
    weights = 1.0 / np.repeat(counts, counts)[is_missed]
    q = _largest(calibration.true_span_probability[is_missed].astype(np.float64), weights, n, miss)
    if q < LEAST_SPAN:
        raise InputError(
            f"Sets of spans that miss at most {percent(miss)} would have to hold spans less than {LEAST_SPAN:g} sure: "
            f"too many true spans of the {n:,} calibration sentences are less probable than that. Allow more misses, "
            "or train a better tagger."
        )
    return SetThreshold(q, miss, "span", n, n_needed)


def _missable(calibration: Calibration, unit: str) -> tuple[Floats, Floats]:
    """Probabilities above which q must not rise, and what it costs a sentence when it does."""
    wrong = calibration.is_wrong > 0
    sentences = np.repeat(np.arange(calibration.n_sentences), np.diff(calibration.ptr))[wrong]
    values = calibration.true_probability[wrong].astype(np.float64)
    if unit == "token":
        return values, 1.0 / np.diff(calibration.ptr)[sentences]
    least = np.full(calibration.n_sentences, np.inf)
    np.minimum.at(least, sentences, values)
    return least[np.isfinite(least)], np.ones(int(np.isfinite(least).sum()))


def _largest(values: Floats, weights: Floats, n: int, miss: float) -> float:
    """Largest q: what lies below it is missed, so it is one of the values, or above them all."""
    if 1.0 / (n + 1) > miss:
        return 0.0
    steps, place = np.unique(values, return_inverse=True)
    costs = np.bincount(place, weights, len(steps))
    allowed = (n + 1) * miss - 1.0  # n/(n+1) mean + 1/(n+1) <= miss, for the sum over sentences
    n_missed = int(np.searchsorted(np.cumsum(costs), allowed * (1.0 + 1e-12), side="right"))
    return float(steps[n_missed]) if n_missed < len(steps) else _ABOVE
