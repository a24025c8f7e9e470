"""Spans that are probable enough to stand in a set: found by their beginnings, weighed exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vcrf.data.writers import Span
from vcrf.decoding.potentials import Potentials
from vcrf.decoding.probability import entity_events, log_probabilities
from vcrf.decoding.schemes import scheme_label, scheme_of
from vcrf.labelling.observing import Observed, spans_of
from vcrf.metrics.entities import Entity
from vcrf.model import Model
from vcrf.types import Floats

# Rounding of sums may leave a bound so far below the probability that it bounds.
_SLACK = 1e-9


class _Open(NamedTuple):
    """A span that begins at a token and may go on; `bound` is no less than the probability of going on."""

    sentence: int
    first: int
    kind: str
    bound: float


def span_sets(block: Observed, model: Model, threshold: float) -> list[list[Span]]:
    """Set of each sentence: the predicted spans, then the others at least so probable, by probability."""
    predicted, values = spans_of(block, model)
    others = likely_spans(block.scores, model.labels, threshold)
    probability = iter(values.astype(np.float32).tolist())
    sets = []
    for spans, more in zip(predicted, others, strict=True):
        own = [Span(*span, next(probability)) for span in spans]
        rest = [span for span in more if Entity(*span[:3]) not in spans]
        sets.append(own + sorted(rest, key=lambda span: (-span.probability, span.first, span.last, span.kind)))
    return sets


def likely_spans(scores: Potentials, labels: Sequence[object], threshold: float) -> list[list[Span]]:
    """All spans of each sentence with at least this probability, rounded as in the calibration.

    Spans with the same beginning and kind exclude each other, and all of a length go on together: what is left of the
    beginning's probability, and the label of the next token, bound what longer ones can have.
    """
    scheme = scheme_of(labels)
    parts = [scheme_label(label, scheme) for label in labels]
    kinds = sorted({part.kind for part in parts if part.kind})
    begin = {kind: np.array([part.kind == kind and part.prefix in "BU" for part in parts]) for kind in kinds}
    inside = {kind: np.array([part.kind == kind and part.prefix in "IL" for part in parts]) for kind in kinds}
    marginals = scores.label_marginals()
    found: list[list[Span]] = [[] for _ in range(len(scores))]
    least = threshold * (1.0 - 1e-6)  # float32 rounds
    left = [
        _Open(i, int(t), kind, float(p[t]))
        for kind in kinds
        for i, p in enumerate(rows @ begin[kind] for rows in marginals)
        for t in np.flatnonzero(p >= least)
    ]
    n_tokens = 1
    while left:
        closed = [Entity(span.first, span.first + n_tokens - 1, span.kind) for span in left]
        values = _probabilities(scores, [span.sentence for span in left], closed, labels, scheme)
        going = []
        for span, entity, value in zip(left, closed, values.tolist(), strict=True):
            if np.float32(value) >= np.float32(threshold):
                found[span.sentence].append(Span(*entity, float(np.float32(value))))
            after = entity.last + 1
            rows = marginals[span.sentence]
            if after < len(rows):
                bound = min(span.bound - value + _SLACK, float(rows[after] @ inside[span.kind]))
                going += [span._replace(bound=bound)] if bound >= least else []
        left, n_tokens = going, n_tokens + 1
    return found


def _probabilities(
    scores: Potentials, sentences: list[int], spans: list[Entity], labels: Sequence[object], scheme: str
) -> Floats:
    """Exact probability of each span."""
    by_sentence: list[list[Entity]] = [[] for _ in range(len(scores))]
    for i, span in zip(sentences, spans, strict=True):
        by_sentence[i].append(span)
    events = entity_events(scores, by_sentence, 0, labels, scheme)  # type: ignore[arg-type]
    order = np.argsort(np.array(sentences), kind="stable")  # the order of the events
    values = np.empty(len(spans))
    values[order] = np.exp(log_probabilities(scores, events))
    return values
