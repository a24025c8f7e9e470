"""sklearn_crfsuite's metrics, scorers and utils: the same numbers."""

from __future__ import annotations

import pytest
from sklearn.model_selection import cross_val_score

from vcrf import compat
from vcrf.errors import InputError

theirs = pytest.importorskip("sklearn_crfsuite.metrics")

TRUE = [["A", "B"], ["B"], ["C", "A", "A"]]
PREDICTED = [["A", "B"], ["A"], ["C", "B", "A"]]


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
@pytest.mark.parametrize("average", ["weighted", "macro", None])
def test_flat_scores(name: str, average: str | None) -> None:
    """Scores over tokens are those of sklearn_crfsuite, keywords handed on; y by keyword too."""
    ours, other = getattr(compat.metrics, f"flat_{name}_score"), getattr(theirs, f"flat_{name}_score")
    assert list(map(float, _listed(ours(y_true=TRUE, y_pred=PREDICTED, average=average)))) == list(
        map(float, _listed(other(TRUE, PREDICTED, average=average)))
    )


def _listed(value):
    return list(value) if hasattr(value, "__len__") else [value]


def test_other_scores() -> None:
    """Accuracy, F-beta and the report."""
    metrics = compat.metrics
    assert metrics.flat_accuracy_score(TRUE, PREDICTED) == theirs.flat_accuracy_score(TRUE, PREDICTED) == 4 / 6
    assert metrics.flat_fbeta_score(TRUE, PREDICTED, beta=2, average="macro") == theirs.flat_fbeta_score(
        TRUE, PREDICTED, beta=2, average="macro"
    )
    report = metrics.flat_classification_report(TRUE, PREDICTED, labels=["A", "B"], digits=3)
    assert report == theirs.flat_classification_report(TRUE, PREDICTED, labels=["A", "B"], digits=3)


def test_sequences_are_right_as_a_whole() -> None:
    """A sentence counts if all its labels are right, whatever the lengths; no sentences score 0."""
    assert compat.metrics.sequence_accuracy_score(TRUE, PREDICTED) == 1 / 3
    assert compat.metrics.sequence_accuracy_score([["A"], ["B"]], [["A", "A"], ["B"]]) == 0.5
    assert compat.metrics.sequence_accuracy_score([], []) == 0.0
    with pytest.raises(InputError, match="differ in length: got 1 and 2"):
        compat.metrics.sequence_accuracy_score([["A"]], [["A"], ["B"]])


def test_scorers_and_flatten() -> None:
    """Scorers serve a search, and `flatten` makes one list."""
    assert compat.utils.flatten(TRUE) == ["A", "B", "B", "C", "A", "A"]
    X, y = [[{"w": "a"}, {"w": "b"}]] * 6, [["A", "B"]] * 6
    for scorer in (compat.scorers.flat_accuracy, compat.scorers.sequence_accuracy):
        assert cross_val_score(compat.CRF(c2=0.1), X, y, cv=2, scoring=scorer).mean() == 1.0


def test_an_unknown_name_is_an_attribute_error() -> None:
    """Modules are found by name, others not."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = compat.nothing
