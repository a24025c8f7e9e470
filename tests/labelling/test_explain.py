"""Explanations: the contributions sum to the difference of scores, for every token of every sentence."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcrf import VCRF
from vcrf.arguments.inputs import read_text
from vcrf.compat import CRF
from vcrf.errors import InputError
from vcrf.families import default_families, paper_families
from vcrf.labelling.explain import explain
from vcrf.labelling.reasons import shown_token
from vcrf.labelling.tagger import ModelTagger
from vcrf.model import Model
from vcrf.model.build import build_model
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem
from vcrf.solvers.result import SolverResult, Status

LABELS = ["A", "B", "C"]
TRAIN = [["the", "cat", "sat"], ["a", "cat"], ["The", "dogs", "ran", "home", "-5"], ["ran"], ["a", "dog"]]
SENTENCES = [["the", "cat"], ["a"], ["the", "dog", "ran", "a"], ["zzz", "home", "cat"], ["The", "dogs", "ran", "home"]]
DICTS: list[list[Any]] = [
    [{"w": "the", "n": 0.5}, {"w": "cat", "s": ["x", "y"], "n": -2.0}],
    [{"w": "a"}, {"w": "cat", "s": ["y"]}, {"w": "sat", "v": {"p": 2.0, "q": 1.0}}],
]


def random_model(order: int, seed: int) -> Model:
    """Random weights on random features of words, affixes and tag patterns."""
    text = read_text(TRAIN)
    rng = np.random.default_rng(seed)
    families = default_families(tags=order) if seed % 2 else paper_families(1, order, 1)
    problem = build_problem(text, rng.integers(3, size=text.n_tokens).astype(np.uint32), 3, families)
    found = []
    for k in problem.kinds:
        columns = rng.choice(np.flatnonzero(problem.has_order(k)), 40).astype(np.uint32)
        found.append(problem.join_features(columns, k, rng.integers(3**k, size=40).astype(np.uint32)))
    features = np.unique(np.concatenate(found))
    result = SolverResult(features, rng.normal(size=len(features)), 1.0, 0.0, 0.0, Status.CONVERGED, 1, 0.0)
    penalty = FamilyPenalty.from_strengths(np.ones(len(families)), "l1")
    return build_model(problem, penalty.bind(problem), result, LABELS)


@given(st.integers(1, 3), st.integers(0, 1000), st.sampled_from(SENTENCES))
def test_contributions_sum_to_the_difference_of_the_two_best_scores(order: int, seed: int, tokens: list[str]) -> None:
    """Against all label sequences, scored one by one."""
    model = random_model(order, seed)
    lattice = model.lattice(read_text([tokens]), 0)
    scores = {y: lattice.score(y) for y in product(range(3), repeat=len(tokens))}
    best = max(scores.values())
    total = np.exp(lattice.log_partition())
    for t, found in enumerate(explain(ModelTagger(model), tokens)):
        label = LABELS.index(str(found.label))
        second = max(score for y, score in scores.items() if y[t] != label)
        assert math.isclose(found.difference, best - second, abs_tol=1e-9)
        assert math.isclose(sum(c.value for c in found.contributions), found.difference, abs_tol=1e-9)
        assert math.isclose(sum(found.by_family().values()), found.difference, abs_tol=1e-9)
        other = tuple(LABELS.index(str(name)) for name in found.runner_up_sequence)
        assert math.isclose(scores[other], second, abs_tol=1e-9)
        assert found.runner_up == LABELS[other[t]] != found.label
        for name, probability in (
            (found.label, found.probability),
            (found.runner_up, found.runner_up_probability),
        ):
            mass = sum(np.exp(score) for y, score in scores.items() if LABELS[y[t]] == name)
            assert math.isclose(mass / total, probability, abs_tol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_every_contribution_is_the_weight_of_the_feature_it_names(seed: int) -> None:
    """With a minus for the runner-up; the tag pattern is that of the sequence at the position."""
    model = random_model(2, seed)
    weights = {(f.family, f.attribute, f.labels): f.weight for f in model.features()}
    n_seen = 0
    for tokens in SENTENCES:
        explained = explain(ModelTagger(model), tokens)
        best = [found.label for found in explained]
        for found in explained:
            for family, attribute, position, labels, value in found.contributions:
                n_seen += 1
                assert abs(value) == abs(weights[family, attribute, labels])
                is_ours = tuple(best[position + 1 - len(labels) : position + 1]) == labels
                assert value == weights[family, attribute, labels] * (1 if is_ours else -1)
    assert n_seen > 20


def test_given_attributes_count_with_their_values() -> None:
    """A number's contribution is weight times value."""
    tagger = VCRF(recipe="paper", base_strength=0.01).fit(DICTS, [["D", "N"], ["D", "N", "V"]])
    scores = tagger.model_.lattice(read_text(DICTS[:1]), 0)
    found = explain(tagger, DICTS[0])[1]
    number = {label: i for i, label in enumerate(tagger.classes_)}
    best = [number[x] for x in tagger.predict(DICTS[:1])[0]]
    other = [number[x] for x in found.runner_up_sequence]
    assert found.difference > 0.0
    assert math.isclose(found.difference, scores.score(best) - scores.score(other), abs_tol=1e-9)


def test_one_label_empty_sentence_and_wrong_kind() -> None:
    """Nothing to decide, nothing to explain, nothing to read."""
    tagger = VCRF(recipe="paper", base_strength=0.01).fit([["a", "b"]], [["X", "X"]])
    (first, _) = explain(tagger, ["a", "q"])
    assert (first.label, first.probability, first.runner_up, first.contributions) == ("X", 1.0, None, [])
    assert explain(tagger, []) == []
    with pytest.raises(InputError, match="expected tokens as str"):
        explain(tagger, [{"w": "a"}])


def test_labels_of_both_kinds() -> None:
    """Contributions of one size, which their labels order, though str and int do not compare."""
    X = [[{"w": "a"}], [{"w": "a"}], [{"w": "b"}]]
    fitted = CRF(c2=0.1).fit(X, [["1"], [1], ["A"]])
    fitted.model_.weights[:] = 1.0
    assert {feature.labels for feature in fitted.model_.features() if feature.attribute == "w:a"} >= {("1",), (1,)}
    for found in explain(fitted, X[0]):
        assert math.fsum(contribution.value for contribution in found.contributions) == found.difference


def test_constraints_hold_for_the_runner_up_too() -> None:
    """I-X cannot follow O; where constraints leave one label there is no runner-up."""
    X, y = [["a", "b"], ["c", "b"], ["c", "d"]], [["B-X", "I-X"], ["O", "O"], ["O", "B-X"]]
    tagger = VCRF(recipe="paper", base_strength=0.01, constraints="BIO").fit(X, y)
    for tokens in (["c", "b"], ["q", "b", "b"]):
        explained = explain(tagger, tokens)
        assert [found.label for found in explained] == tagger.predict([tokens])[0]
        for found in explained:
            pairs = zip(["O", *found.runner_up_sequence], found.runner_up_sequence, strict=False)
            assert not any(pair == ("O", "I-X") for pair in pairs)
    forced = VCRF(
        recipe="paper", base_strength=0.01, constraints=[("O", "B-X"), ("O", "I-X"), ("B-X", "B-X"), ("B-X", "O")]
    ).fit(X, y)
    assert {found.runner_up for found in explain(forced, ["c", "b"])} == {"B-X", "I-X"}


@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("cat", "cat"),
        ({"bias": 1.0, "word": "cat"}, "cat"),
        ({"a": 1, "b": "x"}, "a=1, b=x"),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, "a=1, b=2, c=3, …"),
    ],
)
def test_features_are_shown_by_their_word(token: object, text: str) -> None:
    """Else by the first of them."""
    assert shown_token(token) == text
