"""Entities: by hand, and against seqeval in its lenient and strict modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcrf.errors import InputError
from vcrf.metrics import Entity, EntityScore, entities, entity_f1_interval, entity_scores

KINDS = ["PER", "LOC-X"]
BIO = ["O", *(f"{prefix}-{kind}" for prefix in "BI" for kind in KINDS)]
BILOU = [*BIO, *(f"{prefix}-{kind}" for prefix in "LU" for kind in KINDS)]
BIOES = [*BIO, *(f"{prefix}-{kind}" for prefix in "ES" for kind in KINDS)]


@pytest.mark.parametrize(
    ("labels", "lenient", "strict"),
    [
        ([], [], []),
        (["O"], [], []),
        (["B-A", "I-A", "O", "B-A"], [(0, 1), (3, 3)], [(0, 1), (3, 3)]),
        (["B-A", "B-A"], [(0, 0), (1, 1)], [(0, 0), (1, 1)]),
        (["I-A", "I-A"], [(0, 1)], []),
        (["O", "I-A"], [(1, 1)], []),
        (["B-A", "I-B", "I-B"], [(0, 0), (1, 2)], [(0, 0)]),
        (["B-A", "O", "I-A"], [(0, 0), (2, 2)], [(0, 0)]),
    ],
)
def test_bio_by_hand(labels: list[str], lenient: list[tuple[int, int]], strict: list[tuple[int, int]]) -> None:
    """Broken sequences are repaired by conlleval and refused by the strict reading."""
    assert [entity[:2] for entity in entities(labels)] == lenient
    assert [entity[:2] for entity in entities(labels, "BIO")] == strict


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["U-A", "B-A", "I-A", "L-A"], [(0, 0), (1, 3)]),
        (["S-A", "B-A", "E-A"], [(0, 0), (1, 2)]),
        (["B-A", "I-A"], []),
        (["B-A", "I-B", "L-A"], []),
        (["B-A", "U-A", "L-A"], [(1, 1)]),
        (["B-A", "B-A", "L-A"], [(1, 2)]),
        (["B-A", "L-A", "L-A"], [(0, 1)]),
        (["B-A", "O", "L-A"], []),
    ],
)
def test_strict_bilou_by_hand(labels: list[str], expected: list[tuple[int, int]]) -> None:
    """Only U, and B I* L, are entities."""
    assert [entity[:2] for entity in entities(labels, "BILOU")] == expected
    assert entities(labels, "BIOES") == entities(labels, "BILOU")


def test_kinds_may_be_absent_or_have_hyphens() -> None:
    """Labels B and I alone have the kind ''; only the first hyphen separates."""
    assert entities(["B", "I", "O"]) == [Entity(0, 1, "")]
    assert entities(["B-a-b", "I-a-b"]) == [Entity(0, 1, "a-b")]


def test_scores_by_hand() -> None:
    """2 true PER, 1 of them found; LOC predicted once, wrong end."""
    true = [["B-PER", "I-PER", "O", "B-PER"], ["B-LOC", "I-LOC"]]
    predicted = [["B-PER", "I-PER", "O", "O"], ["B-LOC", "O"]]
    found = entity_scores(true, predicted)
    assert found.by_kind == {"LOC": EntityScore(1, 1, 0), "PER": EntityScore(2, 1, 1)}
    assert found.overall == EntityScore(3, 2, 1)
    assert (found.overall.precision, found.overall.recall, found.overall.f1) == (1 / 2, 1 / 3, 2 / 5)


def test_shares_of_nothing_are_zero() -> None:
    """No entity at all: 0, not NaN."""
    overall = entity_scores([["O"]], [["O"]]).overall
    assert (overall.precision, overall.recall, overall.f1) == (0.0, 0.0, 0.0)


def _corpora(labels: list[str]) -> st.SearchStrategy[list[list[tuple[str, str]]]]:
    pair = st.tuples(st.sampled_from(labels), st.sampled_from(labels))
    return st.lists(st.lists(pair, min_size=1, max_size=8), min_size=1, max_size=4)


def _check_against_seqeval(corpus: list[list[tuple[str, str]]], ours: str, **options: Any) -> None:
    reports = pytest.importorskip("seqeval.metrics")
    true = [[a for a, _ in sentence] for sentence in corpus]
    predicted = [[b for _, b in sentence] for sentence in corpus]
    found = entity_scores(true, predicted, ours)
    if found.overall.n_true + found.overall.n_predicted == 0:
        return  # seqeval takes the mean of nothing
    expected = reports.classification_report(true, predicted, output_dict=True, zero_division=0, **options)
    for kind, score in found.by_kind.items():
        row = expected[kind]
        assert (score.precision, score.recall, score.f1) == pytest.approx(
            (row["precision"], row["recall"], row["f1-score"])
        )
        assert score.n_true == row["support"]
    row = expected["micro avg"]
    assert found.overall.f1 == pytest.approx(row["f1-score"])
    assert found.overall.n_true == row["support"]


@given(_corpora(BIOES))
def test_lenient_reading_is_seqevals_default(corpus: list[list[tuple[str, str]]]) -> None:
    """Which is conlleval's, on sequences that break every rule."""
    _check_against_seqeval(corpus, "conlleval")


@given(_corpora(BIO))
def test_strict_bio_is_seqevals(corpus: list[list[tuple[str, str]]]) -> None:
    """IOB2 in its strict mode."""
    scheme = pytest.importorskip("seqeval.scheme").IOB2
    _check_against_seqeval(corpus, "BIO", mode="strict", scheme=scheme)


@given(_corpora(BILOU))
def test_strict_bilou_is_seqevals(corpus: list[list[tuple[str, str]]]) -> None:
    """BILOU in its strict mode."""
    scheme = pytest.importorskip("seqeval.scheme").BILOU
    _check_against_seqeval(corpus, "BILOU", mode="strict", scheme=scheme)


def test_f1_interval_contains_f1_and_covers() -> None:
    """Of a tagger whose F1 is known: the interval holds it 95 times in 100, and is the same for the same seed."""
    rng = np.random.default_rng(0)
    n_hits = 0
    for run in range(100):
        # Each sentence has 3 entities; each is found with probability 0.7, else missed: F1 = 2 * 0.7 / 1.7.
        true = [["B-A", "O"] * 3 for _ in range(40)]
        predicted = [[label if label == "O" or rng.random() < 0.7 else "O" for label in y] for y in true]
        low, high = entity_f1_interval(true, predicted, n_resamples=500, random_state=run)
        assert low <= entity_scores(true, predicted).overall.f1 <= high
        assert (low, high) == entity_f1_interval(true, predicted, n_resamples=500, random_state=run)
        n_hits += low <= 1.4 / 1.7 <= high
    assert n_hits >= 88
    assert entity_f1_interval([["B-A"]], [["B-A"]]) == (0.0, 1.0)


def test_wrong_labels_and_schemes_are_named() -> None:
    """Part-of-speech labels are no spans, and a strict BIO reading has no L."""
    with pytest.raises(InputError, match=r"such as 'B-PER': got 'NOUN'"):
        entities(["NOUN"])
    with pytest.raises(InputError, match=r"got 3\."):
        entities([3])
    with pytest.raises(InputError, match="Ask for scheme='BILOU'"):
        entities(["B-A", "L-A"], "BIO")
    with pytest.raises(InputError, match=r"scheme must be one of .*: got 'iob'"):
        entities(["O"], "iob")
