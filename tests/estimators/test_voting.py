"""Votes: the mean of taggers is one tagger with the mean of their scores."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vcrf import M3N, VCRF, load, vote
from vcrf.compat import CRF
from vcrf.errors import InputError, NotFittedError
from vcrf.estimators.voting import combine
from vcrf.families import Family, Template, transition_families

X = [["a", "b", "a"], ["b", "c"], ["c", "a", "b", "b"], ["d"]]
Y = [["N", "V", "N"], ["V", "D"], ["D", "N", "V", "V"], ["D"]]
NEW = [["a", "c", "e"], ["b"], ["d", "d", "b"]]


def word(offset: int = 0) -> Family:
    """The word at a distance."""
    return Family(f"word[{offset}]", (Template(((offset, "word"),)),))


def scores(tagger: VCRF, tokens: list[str], labels: list[str]) -> dict[tuple[str, ...], float]:
    """Score of every label sequence over `labels` that the tagger knows."""
    text = tagger.model_.potentials(_text(tokens))
    lattice = text.lattice(0)
    known = {label: i for i, label in enumerate(tagger.classes_)}
    return {
        y: lattice.score(np.array([known[label] for label in y]))
        for y in itertools.product(labels, repeat=len(tokens))
        if set(y) <= set(known)
    }


def _text(tokens: list[str]) -> object:
    from vcrf.families.text import intern_sentences

    return intern_sentences([tokens])


def test_scores_are_the_mean_of_scores() -> None:
    """Taggers of different families and orders; every sequence of three labels is compared."""
    taggers = [
        VCRF(recipe="paper", families=[word(), *transition_families(3)], base_strength=0.02).fit(X, Y),
        VCRF(recipe="paper", families=[word(-1), *transition_families(2)], base_strength=0.01).fit(X, Y),
        M3N(recipe="paper", families=[word(), *transition_families(2)], norm="l2", base_strength=0.1).fit(X, Y),
    ]
    both = vote(taggers, [1.0, 2.0, 5.0])
    for tokens in NEW:
        parts = [scores(tagger, tokens, Y[0] + ["D"]) for tagger in taggers]
        found = scores(both, tokens, Y[0] + ["D"])
        for y, score in found.items():
            expected = (parts[0][y] + 2.0 * parts[1][y] + 5.0 * parts[2][y]) / 8.0
            assert score == pytest.approx(expected, abs=1e-12)


def test_vote_of_one_is_that_one() -> None:
    """Nothing is lost: weights, names, families."""
    one = VCRF(recipe="paper", base_strength=0.01, tags=3).fit(X, Y)
    same = vote([one])
    assert sorted(map(repr, same.model_.features())) == sorted(map(repr, one.model_.features()))
    assert [(f.name, f.n_active, f.l1_mass) for f in same.families_] == [
        (f.name, f.n_active, pytest.approx(f.l1_mass)) for f in one.families_
    ]
    assert same.predict_marginals(NEW) == one.predict_marginals(NEW)


def test_labels_are_those_of_all() -> None:
    """A tagger that never saw a label gives it no score; codes of patterns are renumbered."""
    few = VCRF(recipe="paper", families=[word(), *transition_families(2)], base_strength=0.01).fit(
        [["a", "b"]], [["V", "Z"]]
    )
    many = VCRF(recipe="paper", families=[word(), *transition_families(2)], base_strength=0.01).fit(X, Y)
    both = vote([few, many])
    assert both.classes_ == ["D", "N", "V", "Z"]
    for y, score in scores(many, ["a", "b"], ["N", "V"]).items():
        other = scores(few, ["a", "b"], ["V"]).get(y, 0.0)
        if set(y) == {"V"}:
            assert scores(both, ["a", "b"], ["V"])[y] == pytest.approx((score + other) / 2.0)
    own = scores(few, ["a", "b"], ["Z"])["Z", "Z"]
    assert scores(both, ["a", "b"], ["Z"])["Z", "Z"] == pytest.approx(own / 2.0)


def test_opposite_weights_vanish() -> None:
    """Weights that sum to zero leave no entry."""
    model = VCRF(recipe="paper", families=[word()], base_strength=0.01).fit(X, Y).model_
    assert len(model.weights)
    assert len(combine([model, replace(model, weights=-model.weights)], np.array([0.5, 0.5])).weights) == 0


def test_a_vote_is_saved(tmp_path: Path) -> None:
    """The file gives the same labels; there is no training to tell of."""
    both = vote(
        [VCRF(recipe="paper", base_strength=0.01).fit(X, Y), VCRF(recipe="paper", base_strength=0.1).fit(X[:2], Y[:2])]
    )
    both.save(tmp_path / "both.vcrf")
    again = load(tmp_path / "both.vcrf")
    assert again.predict_marginals(NEW) == both.predict_marginals(NEW)
    for tagger in (both, again):
        with pytest.raises(NotFittedError, match="combined"):
            _ = tagger.objective_


def test_given_attributes() -> None:
    """Dicts as for CRFsuite, with numbers."""
    rows = [[{"w": token, "x": 0.5} for token in tokens] for tokens in X]
    taggers = [CRF(c1=c1, c2=0.1).fit(rows, Y) for c1 in (0.1, 0.5)]
    both = vote(taggers)
    weights = [{(f.attribute, f.labels): f.weight for f in tagger.model_.features()} for tagger in (both, *taggers)]
    for feature, weight in weights[0].items():
        assert weight == pytest.approx((weights[1].get(feature, 0.0) + weights[2].get(feature, 0.0)) / 2.0)
    assert set(weights[0]) == set(weights[1]) | set(weights[2])


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, float("nan")]])
def test_bad_weights(weights: list[float]) -> None:
    """One number a tagger, none negative."""
    taggers = [VCRF(recipe="paper", base_strength=0.1).fit(X, Y)] * 2
    with pytest.raises(InputError, match="needs 2 weights"):
        vote(taggers, weights)


def test_what_cannot_vote() -> None:
    """None, unfitted ones, labels of two kinds, one attribute in two families."""
    fitted = VCRF(recipe="paper", base_strength=0.1).fit(X, Y)
    with pytest.raises(InputError, match="at least one"):
        vote([])
    with pytest.raises(NotFittedError):
        vote([fitted, VCRF()])
    numbers = VCRF(recipe="paper", base_strength=0.1).fit([["a"]], [[1]])
    with pytest.raises(InputError, match="all str or all int"):
        vote([fitted, numbers])
    mine = VCRF(recipe="paper", families=[Family("mine", (Template(((0, "word"),)),))], base_strength=0.1).fit(X, Y)
    with pytest.raises(InputError, match="'mine' of another"):
        vote([VCRF(recipe="paper", families=[word()], base_strength=0.1).fit(X, Y), mine])


def test_families_are_json() -> None:
    """What the file holds of families are plain numbers."""
    both = vote([VCRF(recipe="paper", base_strength=0.1).fit(X, Y)] * 2)
    json.dumps([(f.n_active, f.l1_mass, f.n_columns) for f in both.families_])
