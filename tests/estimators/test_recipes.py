"""Recipes: what is in force where a parameter is left open, and that a given one changes nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import vcrf
from vcrf import M3N, VCRF, StructSVM, VExponential, VStructBoost, load
from vcrf.arguments.recipes import NAMES
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError
from vcrf.losses import EditLoss, HammingLoss

X = [["the", "cat", "sleeps"], ["a", "dog", "sleeps"], ["dogs", "sleep"], ["the", "dog"]]
Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["NOUN", "VERB"], ["DET", "NOUN"]]
ESTIMATORS = [VCRF, VStructBoost, VExponential, M3N, StructSVM]
LOSS = "hamming:normalised=False,cost=3"
# With four sentences.
IN_FORCE: dict[tuple[type[VCRF], str], dict[str, Any]] = {
    (VCRF, "accurate"): {
        "complexity_strength": 0.0, "base_strength": 0.0225, "norm": "elastic", "l1_ratio": 2 / 3, "count_power": 0.35,
        "factors": True, "loss": LOSS, "temperature": 1.6, "tol": 1e-3, "aim": 3e-4,
    },
    (VCRF, "paper"): {
        "complexity_strength": 0.0, "base_strength": 0.125, "norm": "l1", "l1_ratio": 0.5, "count_power": 0.0,
        "factors": False, "loss": None, "temperature": 1.0, "tol": 1e-3, "aim": 1e-3,
    },
}  # fmt: skip
for _estimator in (VStructBoost, VExponential):
    IN_FORCE[_estimator, "accurate"] = IN_FORCE[VCRF, "accurate"] | {"loss": "hamming", "temperature": 1.0}
    IN_FORCE[_estimator, "paper"] = IN_FORCE[VCRF, "paper"] | {"loss": "hamming"}
for _estimator in (M3N, StructSVM):
    IN_FORCE[_estimator, "accurate"] = IN_FORCE[VStructBoost, "accurate"] | {
        "base_strength": 0.25, "tol": 1e-2, "aim": 3e-3,
    }  # fmt: skip
    IN_FORCE[_estimator, "paper"] = IN_FORCE[VStructBoost, "paper"] | {"tol": 1e-2, "aim": 1e-2}
# A value for every parameter that is in no recipe.
GIVEN: dict[str, Any] = {
    "complexity_strength": 0.01, "base_strength": 0.03, "norm": "l2", "l1_ratio": 0.25, "count_power": 0.1,
    "factors": None, "loss": "edit", "temperature": 1.25, "tol": 5e-5,
    "families": "paper", "words": 0, "tags": 1, "affix": 1, "candidates": "observed", "complexities": "massart",
    "max_passes": 1000, "n_jobs": 1, "patience": None, "verbose": False, "callback": lambda _: None,
    "random_state": 3, "constraints": [("VERB", "DET")], "inference": "dense", "dual_start": False,
    "word_classes": {"cat": "0", "dog": "0"}, "solver": None, "rule": "cumulative", "eta": 0.1, "eta_decay": 0.5,
    "kappa": "m", "logarithm": True, "norms": None, "power": None, "radius": None,
    "components": None, "component_pairs": None, "known_labels": 3, "memory": "2GB",
}  # fmt: skip


def in_force(tagger: VCRF) -> dict[str, Any]:
    """The fitted attributes that say what was in force."""
    return {name: getattr(tagger, f"{name}_") for name in (*NAMES, "aim")}


@pytest.mark.parametrize("recipe", ["accurate", "paper"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_values_of_the_recipes(estimator: type[VCRF], recipe: str) -> None:
    """Left open, all parameters have the recipe's value; the accurate one is the default."""
    found = in_force(estimator(recipe=recipe).fit(X, Y))
    assert found == pytest.approx(IN_FORCE[estimator, recipe])
    if recipe == "accurate":
        assert found == in_force(estimator().fit(X, Y))


@pytest.mark.filterwarnings("ignore:.complexities. are", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("recipe", ["accurate", "paper"])
@pytest.mark.parametrize("name", sorted(set(VCRF().get_params()) - {"recipe"}))
def test_a_parameter_changes_its_own_value_alone(name: str, recipe: str) -> None:
    """Whatever it is, and whatever the recipe."""
    value = not IN_FORCE[VCRF, recipe]["factors"] if name == "factors" else GIVEN[name]
    if name == "solver":  # of the L1 norm alone
        value = "gd" if recipe == "paper" else "certified"
    expected = in_force(VCRF(recipe=recipe).fit(X, Y))
    found = in_force(VCRF(recipe=recipe, **{name: value}).fit(X, Y))
    if name in NAMES:
        assert found[name] == value != expected[name]
        expected[name] = value
    if name == "tol":
        assert found["aim"] == value  # no third of so small a gap
        expected["aim"] = value
    assert found == expected


def test_a_grid_over_a_strength_contains_the_default() -> None:
    """The default strength given is the default itself, to the last bit."""
    corpus = SyntheticLanguage(n_labels=3, seed=1).sample(20, seed=2)
    plain = VCRF().fit(corpus.tokens, corpus.labels)
    given = VCRF(base_strength=plain.base_strength_).fit(corpus.tokens, corpus.labels)
    assert given.model_.weights.tolist() == plain.model_.weights.tolist()
    assert (given.objective_, given.gap_) == (plain.objective_, plain.gap_)
    (point,) = VCRF().path(corpus.tokens, corpus.labels, [(0.0, plain.base_strength_)])
    assert point.model_.weights.tolist() == plain.model_.weights.tolist()
    strengths = [1.0, plain.base_strength_]
    search = GridSearchCV(VCRF(), {"base_strength": strengths}, cv=2, refit=True).fit(corpus.tokens, corpus.labels)
    assert in_force(search.best_estimator_)["norm"] == "elastic"
    tuned = VCRF().tune(corpus.tokens, corpus.labels, corpus.tokens, corpus.labels)
    assert (0.0, plain.base_strength_) in {(row.complexity_strength, row.base_strength) for row in tuned.rows}
    assert in_force(tuned.estimator) == in_force(plain) | {
        "complexity_strength": tuned.best.complexity_strength, "base_strength": tuned.best.base_strength,
    }  # fmt: skip


@pytest.mark.parametrize("wrong", ["fast", None, 1, ["paper"]])
def test_a_wrong_recipe_is_refused(wrong: Any) -> None:
    """By name."""
    with pytest.raises(InputError, match="`recipe` must be 'accurate' or 'paper', got"):
        VCRF(recipe=wrong).fit(X, Y)


@pytest.mark.parametrize("loss", ["auto", None, "edit", EditLoss(band=2)])
@pytest.mark.parametrize("recipe", ["accurate", "paper"])
def test_values_in_force_are_in_the_file(recipe: str, loss: Any, tmp_path: Any) -> None:
    """None and losses that are objects too."""
    tagger = VCRF(recipe=recipe, loss=loss).fit(X, Y)
    tagger.save(tmp_path / "m.vcrf")
    again = load(tmp_path / "m.vcrf")
    # Losses are told apart by what they print.
    assert repr(again.get_params()) == repr(tagger.get_params())
    assert repr(in_force(again)) == repr(in_force(tagger))


def test_values_in_force_are_those_of_the_fit() -> None:
    """What is set afterwards waits for the next one; a copy has none."""
    tagger = VCRF().fit(X, Y)
    tagger.set_params(norm="l1", recipe="paper")
    assert (tagger.norm_, tagger.loss_) == ("elastic", LOSS)
    assert tagger.fit(X, Y).norm_ == "l1"
    assert not hasattr(clone(tagger), "norm_")


def test_the_default_loss_is_three_times_the_wrong_labels() -> None:
    """Written as a name, so that it can be read."""
    named = VCRF().fit(X, Y)
    assert vcrf.VCRF(loss=HammingLoss(normalised=False, cost=3.0)).fit(X, Y).objective_ == named.objective_
