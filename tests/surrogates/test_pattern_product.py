"""Smooth surrogates of any loss on the pattern automaton: against enumeration, and against the dense lattice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import vcrf
from enumeration import Feature, LossEnumeration, all_candidates, feature_of, number_of
from objectives import objective, scan_of, value_and_gradient
from small_problems import Case, active_sets, cases
from vcrf.errors import BudgetError
from vcrf.families import Family, NamedFeature, intern_sentences, read_attributes, transition_families
from vcrf.losses import AlignedNgramLoss, EditLoss, HammingLoss, ZeroOneLoss
from vcrf.problem import build_problem
from vcrf.structures.compiled_loss import compile_loss

LOSSES = [HammingLoss(), AlignedNgramLoss(2), ZeroOneLoss(), EditLoss(), HammingLoss() + 2.0 * AlignedNgramLoss(3)]
KINDS = ["crf", "structboost", "exponential"]


def surrogate_of(kind, problem, loss):
    """The surrogate with every pass on the automaton, and no column screened."""
    return objective(kind, problem, loss, "patterns")


def expected_of(kind, problem, features, loss, w):
    """Value and gradient by enumeration."""
    truth = LossEnumeration(problem, features, loss)
    if kind == "crf":
        return truth.value(w), truth.gradient(w)
    return truth.mean_exponential(w, kind == "structboost")


def check(kind, case, features, loss, w, rtol=1e-9):
    """Compare value and gradient on the active features."""
    numbers = np.array([number_of(case.problem, f) for f in features], np.int64)
    surrogate = surrogate_of(kind, case.problem, loss)
    value, gradient = value_and_gradient(surrogate, surrogate.compile(numbers), w)
    expected, slope = expected_of(kind, case.problem, features, loss, w)
    scale = 1.0 + np.abs(w).max(initial=0.0)
    np.testing.assert_allclose(value, expected, rtol=rtol, atol=1e-11 * scale)
    np.testing.assert_allclose(gradient, slope, rtol=rtol, atol=1e-11 * scale)


def check_scan(kind, case, features, loss, w, limit):
    """Every candidate above its limit is found with its gradient, and none below."""
    problem, every = case.problem, all_candidates(case.problem)
    surrogate = surrogate_of(kind, problem, loss)
    limits = {k: np.full(len(problem.columns), np.inf) for k in range(1, problem.order + 1)}
    for f in every:
        limits[f.k][f.column] = limit * (1.0 + 0.2 * f.k)
    active = surrogate.compile(np.array([number_of(problem, f) for f in features], np.int64))
    value, scan = scan_of(surrogate, active, w, limits)
    assert scan.is_complete
    wide = np.zeros(len(every))
    wide[[every.index(f) for f in features]] = w
    expected, gradients = expected_of(kind, problem, every, loss, wide)
    scale = 1.0 + np.abs(w).max(initial=0.0)
    np.testing.assert_allclose(value, expected, rtol=1e-8, atol=1e-11 * scale)
    found = dict(zip((feature_of(problem, f) for f in scan.features), scan.gradients.tolist(), strict=True))
    assert set(found) <= set(every)
    for feature, g in zip(every, gradients, strict=True):
        bound = limits[feature.k][feature.column]
        if feature in found:
            assert abs(g) > bound * (1.0 - 1e-5)
            np.testing.assert_allclose(found[feature], g, rtol=3e-6, atol=1e-9 * scale)
        else:
            assert abs(g) < bound * (1.0 + 1e-5)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(st.data())
def test_value_and_gradient_equal_enumeration(kind, data):
    """Any loss, order 1 to 4, sentence weights, numbers and overlapping patterns."""
    case = data.draw(cases(max_length=5))
    features, _, w = data.draw(active_sets(case, scales=(0.3, 3.0, 30.0)))
    check(kind, case, features, data.draw(st.sampled_from(LOSSES)), w)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(st.data())
def test_large_weights_and_losses_leave_the_scaled_messages(kind, data):
    """Scores or losses that span more than 600 nats are done in the log domain, in passes and scans."""
    case = data.draw(cases(max_length=4, max_tags=4))
    features, _, w = data.draw(active_sets(case, scales=(1.0, 300.0, 1e3)))
    loss = data.draw(st.sampled_from([AlignedNgramLoss(2), EditLoss()]))
    if data.draw(st.booleans()) and kind == "crf":
        loss = 700.0 * loss
    check(kind, case, features, loss, w, rtol=1e-8)
    if len(all_candidates(case.problem)) < 400:
        check_scan(kind, case, features, loss, w, 0.02)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(st.data(), st.sampled_from([0.005, 0.05, 0.3]))
def test_scan_finds_every_candidate_above_its_limit(kind, data, limit):
    """Runs of labels longer than any context carry a posterior for each state of the loss."""
    case = data.draw(cases(max_length=5))
    features, _, w = data.draw(active_sets(case, scales=(0.3, 3.0)))
    check_scan(kind, case, features, data.draw(st.sampled_from(LOSSES)), w, limit)


@settings(max_examples=30)
@given(st.data())
def test_the_dense_lattice_finds_the_same(data):
    """Values, gradients, scans and mean losses; with costs of labels alone too."""
    case = data.draw(cases(max_length=5, loss=True))
    _, numbers, w = data.draw(active_sets(case, scales=(0.3, 3.0, 300.0)))
    problem = case.problem
    loss = compile_loss(problem, data.draw(st.sampled_from(LOSSES)))
    pairs = [
        [objective("crf", problem, loss, lattice) for lattice in ("patterns", "dense")],
        [objective("exponential", problem, case.costs, lattice) for lattice in ("patterns", "dense")],
    ]
    limits = {k: np.full(len(problem.columns), 0.05) for k in range(1, problem.order + 1)}
    scale = 1.0 + np.abs(w).max(initial=0.0)
    for ours, dense in pairs:
        found, expected = (value_and_gradient(s, s.compile(numbers), w) for s in (ours, dense))
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-11 * scale)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-8, atol=1e-10 * scale)
        points, scans = zip(*(s.scan(s.compile(numbers), w, limits) for s in (ours, dense)), strict=True)
        means = [point.sums.mean_losses() for point in points]
        np.testing.assert_allclose(means[0], means[1], rtol=1e-8, atol=1e-9)
        sure = [scan.features[np.abs(scan.gradients) > 0.0501].tolist() for scan in scans]
        assert set(sure[0]) <= set(scans[1].features.tolist())
        assert set(sure[1]) <= set(scans[0].features.tolist())


@settings(max_examples=30)
@given(st.data())
def test_a_scan_finds_the_mean_losses(data):
    """By enumeration; a pass after it leaves them alone, hard sentences too."""
    case = data.draw(cases(max_length=4, max_tags=3))
    features, numbers, w = data.draw(active_sets(case, scales=(0.5, 2.0, 300.0, 1e3)))
    loss = data.draw(st.sampled_from(LOSSES))
    surrogate = surrogate_of("crf", case.problem, loss)
    truth = LossEnumeration(case.problem, features, loss)
    nothing = {k: np.full(len(case.problem.columns), np.inf) for k in range(1, case.problem.order + 1)}
    point, _ = surrogate.scan(surrogate.compile(numbers), w, nothing)
    surrogate.at(surrogate.compile(numbers), 0.5 * w)
    expected = [oracles.probabilities(truth.scores(i, w)) @ truth.losses[i] for i in range(len(truth.weights))]
    np.testing.assert_allclose(point.sums.mean_losses(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["VCRF", "VStructBoost", "VExponential", "M3N", "StructSVM"])
def test_more_arcs_than_any_table_could_hold(name):
    """60 labels at order 4, with an edit distance as the loss: trained to the certificate, and refused when dense."""
    words = np.arange(60).reshape(15, 4)
    X = [[str(word) for word in sentence] for sentence in words]
    y = [[f"l{word}" for word in sentence] for sentence in words]
    tagger = getattr(vcrf, name)(recipe="paper", tags=4, loss="edit", base_strength=0.05, norm="elastic", tol=0.05)
    tagger.fit(X, y)
    assert tagger.gap_ <= 0.05 * tagger.objective_
    with pytest.raises(BudgetError, match="inference='patterns'"):
        tagger.set_params(inference="dense").fit(X, y)


@pytest.mark.parametrize("lattice", ["dense", "patterns"])
@pytest.mark.parametrize("kind", ["none", *KINDS])
def test_the_log_domain_has_a_budget(kind, lattice, monkeypatch):
    """Sentences that span more than 600 nats: within it they are done, beyond it the error says what to do."""
    text, y = intern_sentences([["a"] * 4] * 2), np.array([0, 1] * 4, np.uint32)
    problem = build_problem(text, y, 2, transition_families(3))
    loss = np.zeros(2) if kind == "none" else AlignedNgramLoss(2)
    surrogate = objective("crf" if kind == "none" else kind, problem, loss, lattice)
    active = surrogate.compile(problem.join_features(np.full(8, problem.bias_column, np.uint32), 3, np.arange(8)))
    w = np.linspace(-400.0, 400.0, 8)
    point = surrogate.at(active, w)
    assert np.isfinite(point.value)
    assert point.sums.n_hard == 2
    monkeypatch.setattr("vcrf.structures.hard.MAX_HARD_BYTES", 100)
    with pytest.raises(BudgetError, match=r"600 nats .* GiB .* Use greater strengths"):
        value_and_gradient(surrogate, active, w)
    assert np.isfinite(value_and_gradient(surrogate, active, 0.001 * w)[0])


@pytest.mark.parametrize("n_labels", [1, 2])
@pytest.mark.parametrize("kind", [*KINDS, "none"])
def test_corrections_that_cancel_all_of_a_sum(kind, n_labels):
    """Each label sequence has a pattern of length 2 and one of length 3 with the same word, both worth next to nothing.

    Sums by differences lose them: 1 - (1 - e^-60) + ... is not e^-90 in floating point.
    """
    sentences, y = [[{"n": 1.0}, {"n": 1.0}, {"n": 1.5}]], np.zeros(3, np.uint32)
    families = [Family(f"n x{k}", (NamedFeature("n"),), k) for k in (1, 2, 3)] + transition_families(3)
    problem = build_problem(read_attributes(sentences), y, n_labels, families)
    column = next(c for c in range(len(problem.columns)) if c != problem.bias_column)
    features = [Feature(column, k, code) for k in (2, 3) for code in range(n_labels**k)]
    w = np.array([-40.0 if f.k == 2 else -20.0 for f in features]) - 0.1 * np.arange(len(features))
    case = Case(None, y, n_labels, families, None, None, problem)
    if kind == "none":
        surrogate = objective("crf", problem, np.zeros(1), "patterns")
        numbers = np.array([number_of(problem, f) for f in features], np.int64)
        value, gradient = value_and_gradient(surrogate, surrogate.compile(numbers), w)
        truth = LossEnumeration(problem, features, ZeroOneLoss())
        truth.losses = [np.zeros_like(losses) for losses in truth.losses]
        np.testing.assert_allclose(value, truth.value(w), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(gradient, truth.gradient(w), rtol=1e-9, atol=1e-9)
    else:
        check(kind, case, features, HammingLoss(), w)
