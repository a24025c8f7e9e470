"""Entities: spans of tokens written as BIO or BILOU labels, and how many of them are found.

An entity counts as found when first token, last token and kind are all right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vcrf.decoding.schemes import OUTSIDE, SpanLabel, span_label
from vcrf.errors import InputError
from vcrf.metrics.pairs import check_pairs
from vcrf.types import Floats, Ints


class Entity(NamedTuple):
    """Tokens first .. last (included) of one kind."""

    first: int
    last: int
    kind: str


@dataclass(frozen=True)
class EntityScore:
    """Counts of entities, and what follows from them; a share of nothing is 0."""

    n_true: int
    n_predicted: int
    n_correct: int

    @property
    def precision(self) -> float:
        """Share of the predicted entities that are right."""
        return self.n_correct / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the true entities that were found."""
        return self.n_correct / self.n_true if self.n_true else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 2 n_correct / (n_true + n_predicted)."""
        total = self.n_true + self.n_predicted
        return 2 * self.n_correct / total if total else 0.0


@dataclass(frozen=True)
class EntityScores:
    """Scores of all entities together, and of each kind."""

    overall: EntityScore
    by_kind: dict[str, EntityScore]


def entities(labels: Sequence[Any], scheme: str = "conlleval") -> list[Entity]:
    """Entities of one sentence.

    Parameters
    ----------
    labels : sequence of "O", "B-PER", "I-PER", ...
    scheme : "conlleval", "BIO", "BILOU" or "BIOES"
        "conlleval" reads BIO, IOB1, BILOU and BIOES as the CoNLL shared tasks' script does, and makes sense of
        sequences that break the rules: an I-PER that follows no PER begins an entity. The others are strict: what
        breaks the rules is no entity.

    Examples
    --------
    >>> entities(["B-PER", "I-PER", "O", "I-LOC"])
    [Entity(first=0, last=1, kind='PER'), Entity(first=3, last=3, kind='LOC')]
    >>> entities(["B-PER", "I-PER", "O", "I-LOC"], scheme="BIO")
    [Entity(first=0, last=1, kind='PER')]
    """
    if scheme not in _READERS:
        raise InputError(f"scheme must be one of {', '.join(_READERS)}: got {scheme!r}.")
    return _READERS[scheme]([span_label(label) for label in labels])


def entity_scores(y_true: Iterable[Any], y_pred: Iterable[Any], scheme: str = "conlleval") -> EntityScores:
    """Precision, recall and F1 of the entities, overall (micro average) and by kind."""
    true, predicted = check_pairs(y_true, y_pred)
    counts: dict[str, list[int]] = {}
    for t, p in zip(true, predicted, strict=True):
        expected, found = set(entities(t, scheme)), set(entities(p, scheme))
        for which, group in enumerate((expected, found, expected & found)):
            for entity in group:
                counts.setdefault(entity.kind, [0, 0, 0])[which] += 1
    overall = EntityScore(*(sum(count[i] for count in counts.values()) for i in range(3)))
    return EntityScores(overall, {kind: EntityScore(*counts[kind]) for kind in sorted(counts)})


def entity_f1_interval(
    y_true: Iterable[Any],
    y_pred: Iterable[Any],
    scheme: str = "conlleval",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: int = 0,
) -> tuple[float, float]:
    """Interval of the overall F1 by the bootstrap over sentences (percentiles).

    F1 is no share of anything, so that no interval for shares fits. With a single sentence it is 0 to 1.
    """
    from scipy.stats import bootstrap

    true, predicted = check_pairs(y_true, y_pred)
    counts = np.array([_sentence_counts(t, p, scheme) for t, p in zip(true, predicted, strict=True)], np.int64).T
    if counts.shape[1] < 2:
        return 0.0, 1.0
    found = bootstrap(
        tuple(counts), _f1, paired=True, vectorized=True, n_resamples=n_resamples, confidence_level=confidence,
        batch=max(1, (1 << 22) // counts.shape[1]), method="percentile",
        random_state=np.random.default_rng(random_state),
    ).confidence_interval  # fmt: skip
    return float(found.low), float(found.high)


class EntityIntervals(NamedTuple):
    """Intervals (low, high) of the overall precision, recall and F1."""

    precision: tuple[float, float]
    recall: tuple[float, float]
    f1: tuple[float, float]


def entity_intervals(
    y_true: Iterable[Any],
    y_pred: Iterable[Any],
    scheme: str = "conlleval",
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    random_state: int = 0,
) -> EntityIntervals:
    """Intervals of precision, recall and F1 by one bootstrap over sentences (percentiles).

    With a single sentence they are 0 to 1. A draw without any entity counts as 0.
    """
    true, predicted = check_pairs(y_true, y_pred)
    pairs = [(set(entities(t, scheme)), set(entities(p, scheme))) for t, p in zip(true, predicted, strict=True)]
    counts = np.array([(len(a), len(b), len(a & b)) for a, b in pairs], np.int64)
    if len(counts) < 2:
        return EntityIntervals((0.0, 1.0), (0.0, 1.0), (0.0, 1.0))
    rng = np.random.default_rng(random_state)
    drawn = np.array([counts[rng.integers(0, len(counts), len(counts))].sum(axis=0) for _ in range(n_resamples)])
    n_true, n_predicted, n_correct = drawn.T
    edges = [50.0 * (1.0 - confidence), 50.0 * (1.0 + confidence)]
    shares = (n_correct / np.maximum(n_predicted, 1), n_correct / np.maximum(n_true, 1))
    f1 = 2.0 * n_correct / np.maximum(n_true + n_predicted, 1)
    low_high = [np.percentile(values, edges) for values in (*shares, f1)]
    precision, recall, both = ((float(low), float(high)) for low, high in low_high)
    return EntityIntervals(precision, recall, both)


def _sentence_counts(true: list[Any], predicted: list[Any], scheme: str) -> tuple[int, int]:
    """Numbers of entities (true and predicted together) and of correct ones."""
    expected, found = set(entities(true, scheme)), set(entities(predicted, scheme))
    return len(expected) + len(found), len(expected & found)


def _f1(total: Ints, correct: Ints, axis: int) -> Floats:
    return np.asarray(2.0 * correct.sum(axis=axis) / np.maximum(total.sum(axis=axis), 1))


def _read_leniently(labels: list[SpanLabel]) -> list[Entity]:
    """A token goes on with the entity before if kinds agree, its own prefix is I or L, and that one is not closed."""
    found: list[Entity] = []
    before = SpanLabel(OUTSIDE, "")
    for t, label in enumerate(labels):
        if label.prefix != OUTSIDE:
            goes_on = label.prefix in "IL" and before.prefix in "BI" and before.kind == label.kind
            first = found.pop().first if goes_on else t
            found.append(Entity(first, t, label.kind))
        before = label
    return found


def _read_bio(labels: list[SpanLabel]) -> list[Entity]:
    """B-X followed by any number of I-X; an I-X elsewhere is no part of an entity."""
    found: list[Entity] = []
    for t, label in enumerate(labels):
        if label.prefix in "LU":
            raise InputError(f"BIO has the prefixes B and I: got {label.prefix}-{label.kind}. Ask for scheme='BILOU'.")
        if label.prefix == "B":
            found.append(Entity(t, t, label.kind))
        elif label.prefix == "I" and found and found[-1][1:] == (t - 1, label.kind):
            found[-1] = found[-1]._replace(last=t)
    return found


def _read_bilou(labels: list[SpanLabel]) -> list[Entity]:
    """U-X, or B-X, any number of I-X, L-X."""
    found: list[Entity] = []
    first, kind = -1, ""  # of the entity that is open; -1 = none
    for t, label in enumerate(labels):
        goes_on = first >= 0 and label.kind == kind
        if label.prefix == "U" or (label.prefix == "L" and goes_on):
            found.append(Entity(t if label.prefix == "U" else first, t, label.kind))
        if label.prefix == "B":
            first, kind = t, label.kind
        elif not (label.prefix == "I" and goes_on):
            first = -1
    return found


_READERS: dict[str, Callable[[list[SpanLabel]], list[Entity]]] = {
    "conlleval": _read_leniently,
    "BIO": _read_bio,
    "BILOU": _read_bilou,
    "BIOES": _read_bilou,
}
