"""The model: splitting merged weights, scores of new text, and the best sequence of every sentence."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import oracles
import strategies
from vcrf.data import SyntheticLanguage
from vcrf.decoding.potentials import Potentials
from vcrf.families import (
    Family,
    NamedFeature,
    Template,
    Text,
    default_families,
    explicit_families,
    intern_sentences,
    paper_families,
    read_attributes,
)
from vcrf.lattice import DenseLattice
from vcrf.model import Model
from vcrf.model.build import build_model
from vcrf.penalties import FamilyPenalty
from vcrf.problem import Problem, build_problem
from vcrf.solvers.result import SolverResult, Status

NORMS = ["l1", "l2", "elastic"]
LABELS = ["A", "B", "C"]
TRAIN = [["the", "cat", "sat"], ["a", "cat"], ["The", "dogs", "ran", "home", "-5"], ["ran"], ["a", "dog"]]
UNSEEN = [["the", "dog", "cats"], ["zzz"], ["home"], [], ["-6", "a", "a", "xcat"]]
DICTS: list[list[Any]] = [
    [{"w": "the", "n": 0.5}, {"w": "cat", "s": ["x", "y"], "n": -2.0}],
    [{"w": "a", "flag": True}, {"w": "cat", "s": ["y"]}, {"w": "sat", "v": {"p": 2.0, "q": 1.0}}],
    [{"w": "the", "s": {"x", "y"}, "flag": False}],
]
NEW_DICTS: list[list[Any]] = [
    [{"w": "a", "s": ["y", "z"]}, {"w": "new", "n": 3.0}],
    [],
    [{"other": "x"}, {"v": {"q": -1.0}}],
]


def fake_problem(corpus: list[list[Any]], families: list[Family] | None, order: int) -> Problem:
    """Problem with arbitrary labels; None takes the families of given attributes."""
    text: Text = intern_sentences(corpus) if families is not None else read_attributes(corpus)
    chosen = explicit_families(text, order) if families is None else families  # type: ignore[arg-type]
    y = np.arange(text.n_tokens, dtype=np.uint32) % len(LABELS)
    return build_problem(text, y, len(LABELS), chosen)


def fake_result(problem: Problem, n: int, seed: int) -> SolverResult:
    """Random weights, multiples of 1/8, on random candidates of every length."""
    rng = np.random.default_rng(seed)
    found = []
    for k in problem.kinds:
        columns = np.flatnonzero(problem.has_order(k))
        codes = rng.integers(problem.n_labels**k, size=n)
        found.append(problem.join_features(rng.choice(columns, n).astype(np.uint32), k, codes.astype(np.uint32)))
    features = np.unique(np.concatenate(found))
    weights = rng.choice([-2.0, -0.5, -0.125, 0.25, 1.0, 3.0], len(features))
    return SolverResult(features, weights, 1.0, 0.0, 0.0, Status.CONVERGED, 1, 0.0)


def penalty_for(problem: Problem, norm: str) -> FamilyPenalty:
    """Strengths that differ between some families and tie between others."""
    return FamilyPenalty.from_strengths(np.arange(len(problem.families)) % 3 + np.float64(1.0), norm)


def build(problem: Problem, norm: str = "l1", n: int = 40, seed: int = 0) -> tuple[Model, SolverResult]:
    """Model of random weights."""
    result = fake_result(problem, n, seed)
    return build_model(problem, penalty_for(problem, norm).bind(problem), result, LABELS), result


def merged_score(problem: Problem, result: SolverResult, labels: Sequence[int]) -> float:
    """Score of labels of the training text, read off the columns."""
    total = 0.0
    columns, lengths, codes = problem.split_features(result.features)
    values = problem.columns.values if len(problem.columns.values) else np.ones(len(problem.columns.positions))
    parts = (columns.tolist(), lengths.tolist(), codes.tolist(), result.weights.tolist())
    for column, k, code, weight in zip(*parts, strict=True):
        for j in range(problem.columns.ptr[column], problem.columns.ptr[column + 1]):
            t = int(problem.columns.positions[j])
            if t - problem.starts[t] >= k - 1:
                run = 0
                for label in labels[t - k + 1 : t + 1]:
                    run = run * problem.n_labels + label
                total += weight * values[j] * (run == code)
    return total


def named_score(model: Model, corpus: list[list[Any]], labels: Sequence[int]) -> float:
    """Score of labels of any text, from the model's weights by name and a naive reading of the text."""
    text = read_attributes(corpus) if isinstance(corpus[0][0], dict) else intern_sentences(corpus)
    weights: dict[Any, dict[tuple[Any, ...], float]] = defaultdict(dict)
    for feature in model.features():
        weights[feature.source, feature.attribute][feature.labels] = feature.weight
    total = 0.0
    for source in model.sources:
        for t, sentence, index in corpora.tokens_of(corpus):
            if isinstance(source, NamedFeature):
                fired = corpora.read_named(source.name, sentence[index])
            else:
                assert isinstance(source, Template)
                is_there = corpora.read_template(source, sentence, index) is not None
                fired = {source.describe(text, t): 1.0} if is_there else {}
            for name, value in fired.items():
                for pattern, weight in weights.get((source, name), {}).items():
                    run = tuple(LABELS[b] for b in labels[t - len(pattern) + 1 : t + 1])
                    total += weight * value * (index >= len(pattern) - 1 and run == pattern)
    return total


def model_score(potentials: Potentials, labels: Sequence[int]) -> float:
    """Score of labels of all sentences, from the lattices."""
    ptr = potentials.sent_ptr
    return sum(potentials.lattice(i).score(labels[ptr[i] : ptr[i + 1]]) for i in range(len(potentials)))


FAMILIES = {
    "default-1": default_families(tags=1),
    "default-2": default_families(tags=2),
    "default-3": default_families(tags=3),
    "paper-3": paper_families(words=1, tags=3, affix=1),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", list(FAMILIES))
def test_split_weights_give_the_merged_scores(name: str, norm: str) -> None:
    """On the training text the attributes' shares add up to the merged features' weights."""
    problem = fake_problem(TRAIN, FAMILIES[name], 0)
    model, result = build(problem, norm)
    potentials = model.potentials(problem.text)
    for seed in range(5):
        labels = np.random.default_rng(seed).integers(3, size=problem.n_tokens).tolist()
        assert model_score(potentials, labels) == pytest.approx(merged_score(problem, result, labels), abs=1e-9)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_split_weights_of_given_attributes(order: int, norm: str) -> None:
    """Dicts with several attributes a token and with numbers keep their merged scores too."""
    problem = fake_problem(DICTS, None, order)
    model, result = build(problem, norm)
    labels = np.random.default_rng(1).integers(3, size=problem.n_tokens).tolist()
    score = model_score(model.potentials(problem.text), labels)
    assert score == pytest.approx(merged_score(problem, result, labels), abs=1e-9)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_scores_of_new_text_are_sums_over_named_features(name: str) -> None:
    """Unseen words fire what they share with seen ones (affixes, shapes, windows) and nothing else."""
    model, _ = build(fake_problem(TRAIN, FAMILIES[name], 0), "l2", n=200)
    for corpus in (TRAIN, UNSEEN):
        potentials = model.potentials(intern_sentences(corpus))
        labels = np.random.default_rng(2).integers(3, size=sum(map(len, corpus))).tolist()
        assert model_score(potentials, labels) == pytest.approx(named_score(model, corpus, labels), abs=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_scores_of_new_dicts_are_sums_over_named_features(order: int) -> None:
    """Values of new dicts multiply the weights; unknown attributes do not fire."""
    model, _ = build(fake_problem(DICTS, None, order), "l2", n=200)
    for corpus in (DICTS, NEW_DICTS):
        labels = np.random.default_rng(3).integers(3, size=sum(map(len, corpus))).tolist()
        score = model_score(model.potentials(read_attributes(corpus)), labels)
        assert score == pytest.approx(named_score(model, corpus, labels), abs=1e-9)


@given(corpora.dict_sentences, st.integers(1, 3), st.sampled_from(NORMS), st.integers(0, 99))
def test_any_dicts_keep_their_merged_scores(corpus: list[list[Any]], order: int, norm: str, seed: int) -> None:
    """Whatever the dicts, the model of the training text scores as the merged features do."""
    problem = fake_problem(corpus, None, order)
    if not all(np.any(problem.has_order(k)) for k in problem.kinds):
        return
    model, result = build(problem, norm, n=10, seed=seed)
    labels = np.random.default_rng(seed).integers(3, size=problem.n_tokens).tolist()
    score = model_score(model.potentials(problem.text), labels)
    assert score == pytest.approx(merged_score(problem, result, labels), abs=1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_split_weights_are_the_shares_of_the_penalty(norm: str) -> None:
    """Splitting all features at once is `BoundPenalty.shares` of each."""
    problem = fake_problem(TRAIN, FAMILIES["paper-3"], 0)
    bound = penalty_for(problem, norm).bind(problem)
    result = fake_result(problem, 60, 4)
    groups = bound.groups_of(result.features)
    feature, member, weights = bound.split(groups, result.weights)
    expected = [
        (i, int(bound.ptr[group]) + inside, share)
        for i, (group, w) in enumerate(zip(groups.tolist(), result.weights.tolist(), strict=True))
        for inside, share in bound.shares(group, w)
    ]
    assert list(zip(feature.tolist(), member.tolist(), strict=True)) == [(i, m) for i, m, _ in expected]
    np.testing.assert_allclose(weights, [share for _, _, share in expected])


@pytest.mark.parametrize("norm", NORMS)
def test_penalty_of_the_split_is_the_merged_penalty(norm: str) -> None:
    """The members' penalties add up to the merged one: the split is a cheapest one."""
    problem = fake_problem(TRAIN, FAMILIES["default-3"], 0)
    model, result = build(problem, norm)
    bound = penalty_for(problem, norm).bind(problem)
    groups = bound.groups_of(result.features)
    merged = bound.smooth(groups, result.weights)[0] + bound.group_thresholds[groups] @ np.abs(result.weights)
    source = np.repeat(np.arange(len(model.sources)), np.diff(model.ptr[model.source_ptr]))
    family = model.family_of[source, model.lengths]
    l1, l2 = bound.penalty.l1[family], bound.penalty.l2[family]
    assert (l1 * np.abs(model.weights) + 0.5 * l2 * model.weights**2).sum() == pytest.approx(merged)


@given(strategies.potentials())
def test_decode_is_the_first_best_sequence(scores: Potentials) -> None:
    """The kernel, the dense lattice and enumeration agree, ties included, at orders 1 to 4."""
    decoded = scores.decode()
    assert len(decoded) == len(scores)
    for i, labels in enumerate(decoded):
        lattice = scores.lattice(i)
        expected = oracles.potentials_scores(scores, i)
        best = oracles.best(expected)
        sequences = oracles.all_sequences(lattice.n_positions, scores.n_labels)
        assert labels.tolist() == sequences[best].tolist() == lattice.viterbi()[0].tolist()


@given(strategies.potentials())
def test_lattice_scores_every_sequence(scores: Potentials) -> None:
    """The lattice of a sentence gives each sequence its score."""
    for i in range(len(scores)):
        lattice = scores.lattice(i)
        sequences = oracles.all_sequences(lattice.n_positions, scores.n_labels)
        np.testing.assert_allclose(
            [lattice.score(labels) for labels in sequences], oracles.potentials_scores(scores, i), atol=1e-12
        )


def test_decode_of_many_sentences_is_that_of_each() -> None:
    """Nothing leaks from one sentence to the next: a language of 200 sentences, order 3."""
    corpus = SyntheticLanguage(n_labels=3, seed=1, mean_length=6.0).sample(200, seed=2)
    problem = fake_problem(corpus.tokens, default_families(tags=3), 0)
    model, _ = build(problem, n=2000)
    together = model.decode(problem.text)
    for i in range(0, len(corpus), 20):
        assert model.decode(intern_sentences([corpus.tokens[i]]))[0].tolist() == together[i].tolist()
        assert model.lattice(problem.text, i).viterbi()[0].tolist() == together[i].tolist()


def test_label_marginals_are_those_of_the_lattices() -> None:
    """Marginals of a text come sentence by sentence, the empty one included."""
    model, _ = build(fake_problem(TRAIN, FAMILIES["default-2"], 0), n=200)
    marginals = model.label_marginals(intern_sentences(UNSEEN))
    assert [m.shape for m in marginals] == [(len(sentence), 3) for sentence in UNSEEN]
    for m in marginals:
        np.testing.assert_allclose(m.sum(axis=1), 1.0)


def test_model_without_weights_takes_the_first_label() -> None:
    """No feature is active when the strengths are large; tagging still works."""
    problem = fake_problem(TRAIN, FAMILIES["default-2"], 0)
    nothing = SolverResult(np.zeros(0, np.int64), np.zeros(0), 1.0, 0.0, 0.0, Status.CONVERGED, 1, 0.0)
    model = build_model(problem, penalty_for(problem, "l1").bind(problem), nothing, LABELS)
    assert [labels.tolist() for labels in model.decode(intern_sentences(UNSEEN))] == [[0] * len(s) for s in UNSEEN]
    assert model.order == 1
    assert list(model.features()) == []


def test_family_facts_add_up() -> None:
    """Candidates, active features and mass of the families add up to the whole."""
    for candidates in ("all", "observed"):
        text = intern_sentences(TRAIN)
        y = np.arange(text.n_tokens, dtype=np.uint32) % 3
        problem = build_problem(text, y, 3, FAMILIES["paper-3"], candidates=candidates)
        model, _ = build(problem)
        assert sum(facts.n_candidates for facts in model.families) == problem.n_candidates
        assert sum(facts.n_active for facts in model.families) == len(model.weights)
        assert sum(facts.l1_mass for facts in model.families) == pytest.approx(np.abs(model.weights).sum())
        assert all(0 < facts.n_columns <= len(problem.columns) for facts in model.families)


def test_pickled_model_scores_the_same() -> None:
    """A model goes through pickle, before and after its first use."""
    model, _ = build(fake_problem(DICTS, None, 2), n=50)
    text = read_attributes(NEW_DICTS)
    fresh = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(fresh.potentials(text).node, model.potentials(text).node)
    used = pickle.loads(pickle.dumps(model))
    assert [x.tolist() for x in used.decode(text)] == [x.tolist() for x in model.decode(text)]


def test_lattice_of_an_empty_sentence() -> None:
    """A sentence without tokens has one label sequence, the empty one."""
    model, _ = build(fake_problem(TRAIN, FAMILIES["default-3"], 0), n=200)
    lattice = model.lattice(intern_sentences([[]]), 0)
    assert isinstance(lattice, DenseLattice)
    assert lattice.log_partition() == 0.0
