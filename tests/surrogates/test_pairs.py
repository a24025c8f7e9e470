"""Passes over the pairs that have a weight alone: what the dense lattice finds, for many labels without its arcs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from objectives import objective, value_and_gradient
from small_problems import WORD, Case, for_few_labels
from vcrf.data import SyntheticLanguage
from vcrf.families import BIAS, Family, component_families, default_families, intern_sentences, transition_families
from vcrf.penalties import FamilyPenalty
from vcrf.problem import Components, build_problem
from vcrf.solvers.working_set import solve
from vcrf.structures.chain import Chain
from vcrf.structures.pairs import PairPotentials
from vcrf.structures.structure import Purpose


def both(case):
    """The objective on all arcs, and on the pairs that have a weight, if the problem is of that kind."""
    dense = objective("crf", case.problem, case.costs)
    with for_few_labels():
        sparse = objective("crf", case.problem, case.costs, lattice="auto")
    return dense, sparse


def drawn_features(problem, rng, share):
    """Labels of all columns, and pairs of all tokens."""
    singles = [c * problem.space.stride + b for c in range(len(problem.columns)) for b in range(problem.n_labels)]
    plain = problem.bias_column * problem.space.stride + problem.n_labels + np.arange(problem.n_labels**2)
    every = np.sort(np.concatenate([np.array(singles, np.int64), plain]))
    return every[rng.random(len(every)) < share]


@st.composite
def plain_cases(draw, min_labels=1):
    """Small problems whose pairs are of all tokens; lengths 0 and 1, weights, a loss."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_labels, lengths = draw(st.integers(min_labels, 5)), draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    lengths = [*lengths, 3]
    text = intern_sentences([[str(rng.choice(["a", "b", "ab"])) for _ in range(n)] for n in lengths])
    families = [Family("word", (WORD,)), Family("bias", (BIAS,)), *transition_families(2)[:1]]
    y = rng.integers(0, n_labels, text.n_tokens).astype(np.uint32)
    weights = rng.integers(1, 5, len(lengths)) / 8.0 if draw(st.booleans()) else None
    costs = np.full(len(lengths), draw(st.sampled_from([0.0, 0.3])))
    problem = build_problem(text, y, n_labels, families, weights=weights)
    return Case(text, y, n_labels, families, weights, costs, problem)


@settings(max_examples=80)
@given(plain_cases(), st.sampled_from([0.5, 5.0, 40.0, 150.0, 1000.0]), st.integers(0, 99))
def test_values_and_gradients_are_those_of_all_arcs(case, scale, seed):
    """Protects sums by differences, in full where these cancel, and in the log domain for large weights."""
    rng = np.random.default_rng(seed)
    dense, sparse = both(case)
    features = drawn_features(case.problem, rng, 0.6)
    w = scale * rng.normal(size=len(features))
    plan = sparse.compile(features)
    with for_few_labels():
        prepared = sparse.structure.prepare(plan, w, sparse.loss, Purpose.GRADIENT)
        assert isinstance(prepared, PairPotentials)
        value, gradient = value_and_gradient(sparse, plan, w)
        values = prepared.values(sparse.loss)
    expected, slope = value_and_gradient(dense, dense.compile(features), w)
    tiny = 1e-11 * (1.0 + scale)
    assert value == pytest.approx(expected, rel=1e-9, abs=tiny)
    assert float(case.problem.weights @ values) == pytest.approx(expected, rel=1e-9, abs=tiny)
    np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=tiny)


@settings(max_examples=60)
@given(plain_cases(), st.sampled_from([0.5, 5.0, 1000.0]), st.integers(0, 99))
def test_scans_are_those_of_all_arcs(case, scale, seed):
    """Protects the product of matrices that stands for a look at every pair of every token."""
    rng = np.random.default_rng(seed)
    dense, sparse = both(case)
    features = drawn_features(case.problem, rng, 0.4)
    w = scale * rng.normal(size=len(features))
    limits = {k: np.where(case.problem.has_order(k), 0.02, np.inf) for k in (1, 2)}
    with for_few_labels():
        _, found = sparse.scan(sparse.compile(features), w, limits)
    _, expected = dense.scan(dense.compile(features), w, limits)
    near = np.abs(np.abs(expected.gradients) - 0.02) < 1e-9
    assert set(expected.features[~near].tolist()) <= set(found.features.tolist())
    at = np.isin(found.features, expected.features)
    np.testing.assert_allclose(np.abs(found.gradients[~at]), 0.02, atol=1e-9)
    same = np.isin(expected.features, found.features)
    np.testing.assert_allclose(found.gradients[at], expected.gradients[same], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_fit_ends_where_that_on_all_arcs_ends(threads):
    """Protects a whole run: the same certified optimum, the same bytes with any number of threads."""
    corpus = SyntheticLanguage(n_labels=6, n_stems=30).sample(40, seed=3)
    labels = sorted(corpus.label_set)
    y = np.array([labels.index(z) for sentence in corpus.labels for z in sentence], np.uint32)
    families = [family for family in default_families() if family.tags == 1 or family.name.startswith("tag")]
    problem = build_problem(intern_sentences(corpus.tokens), y, len(labels), families)
    penalty = FamilyPenalty.from_strengths(np.full(len(families), 0.01), "elastic")
    dense = solve(problem, penalty, tol=1e-6, lattice="dense")
    with for_few_labels():
        sparse = solve(problem, penalty, tol=1e-6, threads=threads)
        again = solve(problem, penalty, tol=1e-6, threads=1)
    assert sparse.objective == pytest.approx(dense.objective, rel=2e-6)
    assert sparse.gap <= 1e-6 * sparse.objective
    assert again.weights.tobytes() == sparse.weights.tobytes()


def test_many_labels_take_pairs_by_themselves():
    """Protects the choice: 200 labels do, 20 do not, and `inference='dense'` is what it says."""
    text = intern_sentences([["a", "b", "c"]])
    for n_labels, lattice, expected in ((200, "auto", True), (20, "auto", False), (200, "dense", False)):
        problem = build_problem(text, np.array([0, 1, 0], np.uint32), n_labels, default_families())
        chain = Chain(problem, np.ones(len(problem.columns), bool), 1, lattice)
        assert chain.may_use_pairs is expected


@settings(max_examples=30)
@given(plain_cases(min_labels=2), st.integers(0, 99))
def test_features_of_components_go_with_pairs(case, seed):
    """Protects scores of component values where keys without features are left out."""
    n = case.n_labels
    sets = [np.arange(n), np.arange(1, n)]
    table = Components(["A=1", "A=2"], np.array([0, n, 2 * n - 1]), np.concatenate(sets).astype(np.uint32), n)
    more = case.families + component_families(case.families)
    problem = build_problem(case.text, case.y, n, more, weights=case.weights, components=table)
    rng = np.random.default_rng(seed)
    of_values = [
        problem.join_features(np.array([c], np.uint32), 3, np.array([v], np.uint32))
        for c in range(len(problem.columns))
        for v in range(2)
    ]
    features = np.sort(np.concatenate([drawn_features(problem, rng, 0.4), *of_values]))
    w = rng.normal(size=len(features))
    dense = objective("crf", problem, case.costs)
    with for_few_labels():
        sparse = objective("crf", problem, case.costs, lattice="auto")
        value, gradient = value_and_gradient(sparse, sparse.compile(features), w)
    expected, slope = value_and_gradient(dense, dense.compile(features), w)
    assert value == pytest.approx(expected, rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-12)
