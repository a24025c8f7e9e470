"""What a calibrated tagger promises: selective tagging, label sets, and how much is wrong in a text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from vcrf.arguments.inputs import as_sentences
from vcrf.arguments.parameters import check
from vcrf.errors import InputError
from vcrf.trust.calibration import Calibration, Units
from vcrf.trust.selective import Acceptance, accept, accepted
from vcrf.trust.sets import SetThreshold, set_threshold
from vcrf.types import Bools, Floats, Label

if TYPE_CHECKING:
    from vcrf.labelling.observing import Observed
    from vcrf.labelling.suggesting import Suggestion
    from vcrf.model import Model
    from vcrf.trust.table import TrustTable


@dataclass(frozen=True)
class Selection:
    """Labels, and which of them may be accepted unseen.

    Attributes
    ----------
    labels : one list a sentence, as `predict` gives them
    accepted : one list a sentence, a bool a token. With unit "sentence" all alike in a sentence; with unit "span" only
        tokens of predicted spans can be False, because the promise is about these.
    sureness : one list a sentence, the tagger's own probability of the token's unit (1 outside spans, -1 where a
        sentence is too long for a pooled promise)
    acceptance : the threshold, and what is promised of it
    """

    labels: list[list[Label]]
    accepted: list[list[bool]]
    sureness: list[list[float]]
    acceptance: Acceptance

    @property
    def message(self) -> str:
        """What is promised, in words."""
        return self.acceptance.message


@dataclass(frozen=True)
class LabelSets:
    """Sets of labels that hold the true one as often as promised.

    Attributes
    ----------
    sets : one list a sentence, a list of labels a token: the predicted one first, then by probability. With unit
        "span" one list a sentence of (first, last, kind, probability): the predicted spans first, then by probability.
    threshold : the promise
    """

    sets: list[list[Any]]
    threshold: SetThreshold

    @property
    def message(self) -> str:
        """What is promised, in words."""
        return self.threshold.message


class Trusting:
    """What a tagger does after `calibrate`. See docs/trust.md for what the promises mean."""

    if TYPE_CHECKING:
        model_: Model

        def _model(self) -> Model: ...

    def calibrate(self, X: Iterable[Any], y: Iterable[Any], allow_seen: bool = False) -> Self:
        """Look at labelled sentences that training has not seen, and keep what thresholds need in the model.

        From then on probabilities are those at the calibration temperature, `model_.calibration` has the likelihood and
        reliability before and after, and `predict_selective` and `predict_sets` work. Labels stay as they are, and so
        does the training's own `temperature`. A second call replaces the first.

        Parameters
        ----------
        X, y : sentences and their labels
            As for `fit`; a label that the tagger does not have counts as an error.
        allow_seen : bool
            Take sentences that are among those of the training, which are refused otherwise: right only where new text
            repeats sentences as often. A few are told by a warning; those that chance gives are no news.

        Returns
        -------
        Itself.
        """
        from vcrf.labelling.calibrating import calibration_of

        model = replace(self._model(), calibration=None)
        self.model_ = replace(model, calibration=calibration_of(self, X, y, allow_seen=allow_seen))  # type: ignore[arg-type]
        return self

    def predict_selective(
        self,
        X: Iterable[Any],
        max_error: float = 0.01,
        confidence: float = 0.95,
        unit: str = "token",
        average: str = "sentences",
        longest: int | None = None,
    ) -> Selection:
        """Labels, and which of them may be accepted so that few of these are wrong.

        With probability `confidence` over the calibration sentences, the share of errors among accepted units is at
        most `max_error` for sentences drawn alike.

        Parameters
        ----------
        X : iterable of sentences
        max_error, confidence : numbers between 0 and 1
        unit : "token", "sentence" (all labels right) or "span" (predicted entities)
        average : "sentences" or "pooled"
            The share is a mean over sentences of shares of their units, or, pooled, one of all units together: long
            sentences then count more, and more calibration sentences are needed.
        longest : int, optional
            With average "pooled", sentences with more units are never accepted. Fix it without looking at the
            calibration sentences. Default: twice the mean length of the training sentences; none for spans.
        """
        chosen = self.acceptance(max_error, confidence, unit, average, longest)
        labels: list[list[Label]] = []
        sureness: list[list[float]] = []
        for block in self._observed(X):
            labels += block.names(self._model())
            sureness += unit_sureness(block, self._model(), chosen)
        decided = [accepted(np.array(row), chosen.threshold).tolist() for row in sureness]
        return Selection(labels, decided, [[min(p, 1.0) for p in row] for row in sureness], chosen)

    def predict_sets(self, X: Iterable[Any], miss: float = 0.05, unit: str = "token") -> LabelSets:
        """Label sets whose expected share of missed true labels is at most `miss` (conformal risk control).

        Parameters
        ----------
        X : iterable of sentences
        miss : number between 0 and 1
        unit : "token", "sentence" for sets of which all hold the truth with probability 1 - miss, or "span"
            Sets of spans hold all but a share of `miss` of the true spans of a sentence that has any, in expectation.
        """
        from vcrf.labelling.span_sets import span_sets

        chosen = set_threshold(self._calibration(), miss, unit)
        sets: list[list[Any]] = []
        for block in self._observed(X):
            if unit == "span":
                sets += span_sets(block, self._model(), chosen.threshold)
                continue
            listed = label_sets(block, self._model(), chosen.threshold)
            sets += [listed[a:b] for a, b in pairwise(block.scores.sent_ptr.tolist())]
        return LabelSets(sets, chosen)

    def acceptance(
        self,
        max_error: float = 0.01,
        confidence: float = 0.95,
        unit: str = "token",
        average: str = "sentences",
        longest: int | None = None,
    ) -> Acceptance:
        """The threshold of `predict_selective`, and what is promised of it."""
        most = self._longest(unit, average, longest)
        return accept(_averaged(self._calibration(), unit, most), max_error, confidence, unit)

    def trust(
        self,
        X: Iterable[Any],
        y: Iterable[Any],
        max_errors: Sequence[float] = (0.005, 0.01, 0.02, 0.05),
        confidences: Sequence[float] = (0.9, 0.95, 0.99),
        unit: str = "token",
        average: str = "sentences",
        longest: int | None = None,
        allow_seen: bool = False,
    ) -> TrustTable:
        """Thresholds for a grid of promises, and how they are kept on labelled sentences, new to the tagger.

        `allow_seen` takes sentences of the training and of the calibration, as for `calibrate`.
        """
        from vcrf.labelling.calibrating import calibration_of, check_not_calibrated_with
        from vcrf.trust.table import trust_table

        most = self._longest(unit, average, longest)
        known = _averaged(self._calibration(), unit, most)
        found = calibration_of(self, X, y, is_fitted=False, allow_seen=allow_seen)  # type: ignore[arg-type]
        check_not_calibrated_with(self._calibration(), found, allow_seen)
        return trust_table(known, _averaged(found, unit, most), max_errors, confidences, unit, found.before)

    def suggest(
        self,
        X: Iterable[Any],
        n: int = 100,
        by: str = "least-confidence",
        per: str = "sentence",
        diversity: float = 0.0,
    ) -> list[Suggestion]:
        """The n sentences worth labelling next, the most useful first; see `vcrf.labelling.suggesting`."""
        from vcrf.labelling.suggesting import suggest

        return suggest(self, X, n, by, per, diversity)  # type: ignore[arg-type]

    def _longest(self, unit: str, average: str, longest: int | None) -> int:
        """The most units of a sentence for pooled rates; 0 for means over sentences."""
        for name, value in (("unit", unit), ("average", average), ("longest", longest)):
            check(name, value)
        if average == "sentences" or unit == "sentence":
            if longest is not None:
                raise InputError("`longest` is for average='pooled' with unit='token' or unit='span': leave it out.")
            return 0
        facts = self._model().facts
        if longest is None and (unit == "span" or facts is None):
            raise InputError(
                f"average='pooled' with unit={unit!r} needs `longest`, the most {unit}s that a sentence may have to be "
                "accepted. Choose it without looking at the calibration sentences."
            )
        return longest or math.ceil(2.0 * facts.n_tokens / facts.n_sentences)  # type: ignore[union-attr]

    def _calibration(self) -> Calibration:
        calibration = self._model().calibration
        if calibration is None:
            raise InputError(
                "The model is not calibrated, so that nothing can be promised of its labels. Call calibrate(X, y) with "
                "labelled sentences that it was not trained on, or run `vcrf calibrate MODEL DATA`."
            )
        return calibration

    def _observed(self, X: Iterable[Any]) -> Iterator[Observed]:
        from vcrf.labelling.observing import observe

        return observe(self, as_sentences(X))  # type: ignore[arg-type]


def _averaged(calibration: Calibration, unit: str, most: int) -> Units:
    """Units of a kind, for means over sentences (0) or for pooled rates."""
    units = calibration.units(unit)
    return units.pooled(most) if most else units


def unit_sureness(block: Observed, model: Model, asked: Acceptance) -> list[list[float]]:
    """Sureness of the unit that each token belongs to, rounded as in the calibration; -1 if it is never accepted.

    A token outside all spans is infinitely sure: no promise about spans is about it, whatever their threshold.
    """
    ends = list(pairwise(block.scores.sent_ptr.tolist()))
    if asked.unit == "token":
        most = asked.longest or math.inf
        flat = block.sureness.astype(np.float32).tolist()
        return [flat[a:b] if b - a <= most else [-1.0] * (b - a) for a, b in ends]
    if asked.unit == "sentence":
        whole = block.sequence_probability.astype(np.float32).tolist()
        return [[p] * (b - a) for p, (a, b) in zip(whole, ends, strict=True)]
    return _span_sureness(block, model, asked.longest or math.inf)


def _span_sureness(block: Observed, model: Model, most: float) -> list[list[float]]:
    """0 for what is labelled as part of a span and is none by the rules; -1 where there are too many spans."""
    from vcrf.decoding.schemes import OUTSIDE
    from vcrf.labelling.observing import spans_of

    found, probabilities = spans_of(block, model)
    values = iter(probabilities.astype(np.float32).tolist())
    rows = [[math.inf if label == OUTSIDE else 0.0 for label in labels] for labels in block.names(model)]
    for row, spans in zip(rows, found, strict=True):
        for span in spans:
            value = next(values)
            row[span.first : span.last + 1] = [value if len(spans) <= most else -1.0] * (span.last + 1 - span.first)
    return rows


def label_sets(block: Observed, model: Model, threshold: float) -> list[list[Label]]:
    """Set of each token: the predicted label, then the others that are probable enough, by probability."""
    marginals: Floats = block.marginals.astype(np.float32).astype(np.float64)
    is_in: Bools = marginals >= threshold
    order = np.argsort(-marginals, axis=1, kind="stable")
    sets = []
    for best, row, inside in zip(block.best.tolist(), order.tolist(), is_in, strict=True):
        sets.append([model.labels[b] for b in [best, *(b for b in row if inside[b] and b != best)]])
    return sets
