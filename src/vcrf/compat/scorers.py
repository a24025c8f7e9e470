"""Scorers for `GridSearchCV` and its like, as sklearn_crfsuite.scorers has them."""

from __future__ import annotations

from sklearn.metrics import make_scorer

from vcrf.compat import metrics

flat_accuracy = make_scorer(metrics.flat_accuracy_score)
sequence_accuracy = make_scorer(metrics.sequence_accuracy_score)
