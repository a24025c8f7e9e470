"""The pass over plain pairs of labels: against enumeration, and against the pass over chains of any order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enumeration import Enumeration, all_candidates, number_of
from objectives import objective, scan_of, value_and_gradient
from small_problems import WORD
from vcrf.families import BIAS, END, START, Family, intern_sentences
from vcrf.problem import build_problem
from vcrf.structures.chain import Chain
from vcrf.structures.structure import Purpose
from vcrf.structures.training_loss import TrainingLoss

FAMILIES = [Family("bias", (BIAS,)), Family("word", (WORD,)), Family("ends", (START, END)), Family("pairs", (BIAS,), 2)]


def problem_of(rng, n_labels, lengths, candidates="all"):
    """Build a problem of sentences of these lengths."""
    text = intern_sentences([[str(rng.choice(["a", "b", "ab"])) for _ in range(n)] for n in lengths])
    y = rng.integers(0, n_labels, text.n_tokens).astype(np.uint32)
    weights = rng.integers(1, 5, len(lengths)) / 8.0
    return build_problem(text, y, n_labels, FAMILIES, weights=weights, candidates=candidates)


@st.composite
def drawn(draw, scales):
    """A problem of few label sequences, costs, a sorted choice of its features, and weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    problem = problem_of(rng, draw(st.integers(1, 4)), lengths, draw(st.sampled_from(["all", "observed"])))
    costs = np.array([1.0 / max(n, 1) for n in lengths]) * draw(st.sampled_from([0.0, 1.0]))
    every = all_candidates(problem)
    features = [f for f in every if rng.random() < 0.6]
    return problem, costs, features, draw(st.sampled_from(scales)) * rng.normal(size=len(features))


@settings(max_examples=80)
@given(drawn([0.3, 3.0, 30.0, 1e3, 1e5]))
def test_value_gradient_and_scan_equal_enumeration(case):
    """With sentences of no token and of one, wide ones for the log domain, weights, a loss, and observed candidates."""
    problem, costs, features, w = case
    found = objective("crf", problem, costs)
    assert found.structure.has_plain_pairs
    numbers = np.array([number_of(problem, f) for f in features], np.int64)
    expected, scale = Enumeration(problem, features, costs), 1.0 + np.abs(w).max(initial=0.0)
    value, gradient = value_and_gradient(found, found.compile(numbers), w)
    assert value == pytest.approx(expected.value(w), rel=1e-9, abs=1e-12 * scale)
    np.testing.assert_allclose(gradient, expected.gradient(w), rtol=1e-9, atol=1e-12 * scale)

    limits = {k: np.full(len(problem.columns), 0.05) for k in problem.kinds}
    scanned_value, scan = scan_of(found, found.compile(numbers), w, limits)
    every = all_candidates(problem)
    gradients = expected.gradients(w, every)
    assert scanned_value == pytest.approx(value, rel=1e-12, abs=1e-12)
    is_clear = np.abs(np.abs(gradients) - 0.05) > 1e-8
    is_found = np.isin([number_of(problem, f) for f in every], scan.features)
    np.testing.assert_array_equal(is_found[is_clear], np.abs(gradients[is_clear]) > 0.05)
    np.testing.assert_allclose(scan.gradients, gradients[is_found], rtol=1e-8, atol=1e-11 * scale)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 8, 17, 32, 33, 41])
def test_any_number_of_labels(n_labels):
    """The same as the pass over chains of any order, which keeps its messages; shares of the variances too."""
    rng = np.random.default_rng(n_labels)
    lengths = [0, 1, 2, 3, 4, 5, 6, 9, 30, 300]
    problem = problem_of(rng, n_labels, lengths)
    chain = Chain(problem, np.ones(len(problem.columns), bool), lattice="dense")
    plan = chain.compile(np.array([number_of(problem, f) for f in all_candidates(problem)], np.int64))
    w = 2.0 * rng.normal(size=len(plan))
    loss = TrainingLoss(0.5 * np.ones(len(lengths)))
    kept = chain.prepare(plan, w, loss, Purpose.HESSIAN).sums(loss, problem.weights)
    sums = chain.prepare(plan, w, loss, Purpose.SCAN).sums(loss, problem.weights)
    assert kept.messages is not None
    assert sums.messages is None
    np.testing.assert_allclose(sums.values, kept.values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums.residuals, kept.residuals, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(sums.counts[n_labels:], kept.counts[n_labels:], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(sums.variances, kept.variances, rtol=1e-8, atol=1e-13)
    values = chain.prepare(plan, w, loss).values(loss)
    np.testing.assert_allclose(values, kept.values, rtol=1e-12, atol=1e-12)


def test_pairs_with_words_are_left_to_the_other_pass():
    """A pair of labels with a word is a correction of single tokens."""
    text = intern_sentences([["a", "b"], ["b"]])
    families = [Family("pairs", (BIAS, WORD), 2), Family("word", (WORD,))]
    problem = build_problem(text, np.array([0, 1, 1], np.uint32), 2, families)
    assert not Chain(problem, np.ones(len(problem.columns), bool)).has_plain_pairs
    is_bias = np.arange(len(problem.columns)) == problem.bias_column
    assert Chain(problem, is_bias).has_plain_pairs
