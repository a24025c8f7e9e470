"""Scores of labels as sklearn_crfsuite.metrics has them: scikit-learn's own on flat lists. See also `vcrf.metrics`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vcrf.compat.utils import flatten
from vcrf.errors import InputError
from vcrf.types import Label

Labels = Iterable[Sequence[Label]]


def flat_accuracy_score(y_true: Labels, y_pred: Labels) -> float:
    """Share of tokens with the right label."""
    return float(_score("accuracy_score", y_true, y_pred))


def flat_precision_score(y_true: Labels, y_pred: Labels, **kwargs: Any) -> Any:
    """Precision over tokens; keywords as for `sklearn.metrics.precision_score`."""
    return _score("precision_score", y_true, y_pred, **kwargs)


def flat_recall_score(y_true: Labels, y_pred: Labels, **kwargs: Any) -> Any:
    """Recall over tokens; keywords as for `sklearn.metrics.recall_score`."""
    return _score("recall_score", y_true, y_pred, **kwargs)


def flat_f1_score(y_true: Labels, y_pred: Labels, **kwargs: Any) -> Any:
    """F1 over tokens; keywords as for `sklearn.metrics.f1_score`."""
    return _score("f1_score", y_true, y_pred, **kwargs)


def flat_fbeta_score(y_true: Labels, y_pred: Labels, beta: float, **kwargs: Any) -> Any:
    """F-beta over tokens; keywords as for `sklearn.metrics.fbeta_score`."""
    return _score("fbeta_score", y_true, y_pred, beta=beta, **kwargs)


def flat_classification_report(y_true: Labels, y_pred: Labels, labels: Any = None, **kwargs: Any) -> Any:
    """Table of scores of each label; keywords as for `sklearn.metrics.classification_report`."""
    return _score("classification_report", y_true, y_pred, labels=labels, **kwargs)


def sequence_accuracy_score(y_true: Labels, y_pred: Labels) -> float:
    """Share of sentences with all labels right; 0 without sentences."""
    true, predicted = [list(y) for y in y_true], [list(y) for y in y_pred]
    if len(true) != len(predicted):
        raise InputError(f"y_true and y_pred differ in length: got {len(true)} and {len(predicted)} sentences.")
    return sum(a == b for a, b in zip(true, predicted, strict=True)) / max(len(true), 1)


def _score(name: str, y_true: Labels, y_pred: Labels, **kwargs: Any) -> Any:
    from sklearn import metrics

    return getattr(metrics, name)(flatten(y_true), flatten(y_pred), **kwargs)
