"""Warm start: the same certified optimum from another model's weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vcrf import VCRF, load
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError

CORPUS = SyntheticLanguage(n_labels=5, n_stems=80, mean_length=7.0).sample(80, seed=2)


@pytest.mark.parametrize(
    "options", [{}, {"recipe": "paper"}, {"tags": 3}, {"candidates": "observed"}, {"recipe": "paper", "norm": "group"}]
)
def test_a_model_starts_at_its_own_optimum(options: dict[str, Any], tmp_path: Any) -> None:
    """The map from attributes to columns loses nothing: a pass or a few are enough, also from a file."""
    tagger = VCRF(n_jobs=1, **options).fit(CORPUS.tokens, CORPUS.labels)
    tagger.save(tmp_path / "a.vcrf")
    again = VCRF(n_jobs=1, **options).fit(CORPUS.tokens, CORPUS.labels, start=load(tmp_path / "a.vcrf"))
    assert again.result_.n_passes <= 5 < tagger.result_.n_passes
    assert again.objective_ == pytest.approx(tagger.objective_, rel=1e-9)


def test_new_sentences_and_labels_reach_the_same_optimum() -> None:
    """More sentences, one label of which is new: the objectives agree within the certified gaps."""
    old = VCRF(n_jobs=1).fit(CORPUS[:60].tokens, CORPUS[:60].labels)
    labels = [
        [f"{label}s" if label == "open1" and i >= 60 else label for label in y] for i, y in enumerate(CORPUS.labels)
    ]
    ascent = VCRF(n_jobs=1).fit(CORPUS.tokens, labels)
    for options in ({}, {"dual_start": False}):
        cold = VCRF(n_jobs=1, **options).fit(CORPUS.tokens, labels)
        warm = VCRF(n_jobs=1, **options).fit(CORPUS.tokens, labels, start=old)
        assert "open1s" in warm.classes_
        assert "open1s" not in old.classes_
        assert abs(warm.objective_ - cold.objective_) <= warm.gap_ + cold.gap_
        assert warm.gap_ <= 1e-3 * warm.objective_
        if not options:  # far from the optimum: seen in a pass, and left for the dual ascent
            assert warm.result_.n_passes == ascent.result_.n_passes + 1
            assert warm.objective_ == ascent.objective_


def test_a_sentence_more_is_near() -> None:
    """A start close to the optimum is kept: fewer passes than the dual ascent would take."""
    old = VCRF(n_jobs=1).fit([*CORPUS.tokens, *CORPUS.tokens], [*CORPUS.labels, *CORPUS.labels])
    data = [*CORPUS.tokens, *CORPUS.tokens, *CORPUS.tokens[:1]], [*CORPUS.labels, *CORPUS.labels, *CORPUS.labels[:1]]
    cold, warm = VCRF(n_jobs=1).fit(*data), VCRF(n_jobs=1).fit(*data, start=old)
    assert warm.result_.n_passes < 0.5 * cold.result_.n_passes
    assert abs(warm.objective_ - cold.objective_) <= warm.gap_ + cold.gap_


def test_labels_that_are_gone_and_other_features_are_left_out() -> None:
    """A start from what has nothing in common is a start from zero."""
    old = VCRF(n_jobs=1).fit([["x", "y"]], [["Q", "R"]])
    cold = VCRF(n_jobs=1).fit(CORPUS.tokens, CORPUS.labels)
    warm = VCRF(n_jobs=1).fit(CORPUS.tokens, CORPUS.labels, start=old)
    assert warm.objective_ == cold.objective_
    words = VCRF(n_jobs=1).fit([[{"w": "a"}, {"w": "b"}]], [["A", "B"]], start=cold)
    assert np.isfinite(words.objective_)


def test_what_is_no_tagger_is_refused() -> None:
    """By name, before the training."""
    for wrong in ("old.vcrf", VCRF()):
        with pytest.raises(InputError, match="`start` must be a fitted tagger"):
            VCRF().fit([["a"]], [["A"]], start=wrong)


def test_what_the_start_has_seen_is_seen() -> None:
    """Training that stops early has still the weights of the start: its sentences are no held-out ones."""
    X, y = CORPUS.tokens, CORPUS.labels
    old = VCRF(n_jobs=1).fit(X[:60], y[:60])
    new = VCRF(n_jobs=1, max_passes=1, dual_start=False)
    with pytest.warns(UserWarning, match="limit on passes"):
        new.fit(X[50:70], y[50:70], start=old)
    with pytest.raises(InputError, match="that the model was trained on"):
        new.calibrate(X[:40], y[:40])
    assert len(new.model_.sentences) == 70
    new.calibrate(X[70:], y[70:])
