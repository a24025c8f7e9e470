"""The quadratic model with an l1 part: coordinate descent and Newton directions against a general solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from enumeration import Enumeration
from objectives import objective
from small_problems import active_sets, cases
from vcrf import VCRF
from vcrf.data import SyntheticLanguage
from vcrf.families import intern_sentences, paper_families
from vcrf.kernels.quadratic import descend_dense
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem
from vcrf.solvers import newton, newton_phase, working_set
from vcrf.solvers import quadratic as quadratic_module
from vcrf.solvers.newton import build_model, newton_direction, spread
from vcrf.solvers.policy import NEWTON
from vcrf.solvers.quadratic import QuadraticModel
from vcrf.solvers.result import Status
from vcrf.solvers.run import RunOptions
from vcrf.structures import plan as plans
from vcrf.surrogates.choice import crf

many = settings(max_examples=60)


def set_policy(monkeypatch, **changes):
    """Other thresholds of the decisions."""
    monkeypatch.setattr(newton_phase, "NEWTON", replace(NEWTON, **changes))


@st.composite
def quadratics(draw, singular=None):
    """A positive semidefinite matrix of 1 to 8 rows, g, w and c >= 0 for which the model is bounded below."""
    n = draw(st.integers(1, 8))
    singular = draw(st.booleans()) if singular is None else singular
    rank = draw(st.integers(0, n - 1)) if singular else n
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factor = rng.normal(size=(rank, n)) * draw(st.sampled_from([0.1, 1.0, 3.0]))
    if singular and rank and draw(st.booleans()):
        factor[:, 0] = factor[:, n - 1]  # two features that repeat each other
    matrix = factor.T @ factor
    if not singular:
        matrix[np.diag_indices(n)] += 0.05 * matrix.diagonal().max()
    c = draw(st.sampled_from([0.01, 0.3, 1.0])) * rng.random(n)
    c[rng.random(n) < 0.2] = 0.0
    # g = H v + s with |s| <= c: no direction of the kernel descends for ever.
    g = matrix @ rng.normal(size=n) + c * rng.uniform(-0.99, 0.99, n)
    w = np.where(rng.random(n) < 0.4, 0.0, rng.normal(size=n))
    matrix[np.diag_indices(n)] += 1e-12 + 1e-9 * matrix.diagonal()  # as build_model does
    return matrix, g, w, c


def model_value(matrix, g, w, c, d):
    """g.d + d.Hd/2 + sum c|w + d|."""
    return float(g @ d + 0.5 * d @ matrix @ d + c @ np.abs(w + d))


def least_value(matrix, g, w, c):
    """Least value of the model: L-BFGS-B on w + d = p - q with p, q >= 0, from w and from 0, then by coordinates."""
    n = len(g)

    def objective(z):
        d = z[:n] - z[n:] - w
        slope = g + matrix @ d
        return g @ d + 0.5 * d @ matrix @ d + c @ (z[:n] + z[n:]), np.concatenate([slope + c, c - slope])

    options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 500, "maxfun": 1_000}
    values = []
    for start in (w, np.zeros(n)):
        z = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)])
        found = minimize(objective, z, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * (2 * n), options=options)
        # Its line search may give up early: steps along one coordinate are exact and never go up.
        values.append(model_value(matrix, g, w, c, by_coordinates(matrix, g, w, c, found.x[:n] - found.x[n:]) - w))
    return min(values)


def by_coordinates(matrix, g, w, c, u):
    """Go on from u = w + d: each coordinate in turn at its best, until nothing moves."""
    u, rest = u.copy(), g - matrix @ w
    for _ in range(300):
        before = u.copy()
        for j in range(len(u)):
            slope = rest[j] + matrix[j] @ u - matrix[j, j] * u[j]
            u[j] = -np.sign(slope) * max(abs(slope) - c[j], 0.0) / matrix[j, j]
        if np.array_equal(u, before):
            break
    return u


@many
@given(quadratics(singular=False))
def test_newton_direction_minimises_the_model(quadratic):
    """Weights at zero and away from it, free and penalised ones."""
    matrix, g, w, c = quadratic
    d = newton_direction(QuadraticModel(np.arange(len(g)), matrix), g, w, c, 1e-20, enough=0.0)
    expected = least_value(matrix, g, w, c)
    assert model_value(matrix, g, w, c, d) == pytest.approx(expected, rel=1e-8, abs=1e-8)


@many
@given(quadratics(singular=False), st.integers(0, 2**32 - 1))
def test_features_that_have_gone_stay_at_zero(quadratic, seed):
    """A model of more features than there are now: the others get the direction of the smaller model."""
    matrix, g, w, c = quadratic
    rng = np.random.default_rng(seed)
    kept = np.flatnonzero(rng.random(len(g)) < 0.6)
    numbers = 10 * np.arange(len(g))
    if len(kept) == 0:
        return
    model = QuadraticModel(numbers, matrix)
    g_all, w_all, c_all = spread(model, numbers[kept], g[kept], w[kept], c[kept])
    d = newton_direction(model, g_all, w_all, c_all, 1e-20, enough=0.0)
    gone = np.setdiff1d(np.arange(len(g)), kept)
    np.testing.assert_array_equal(d[gone], 0.0)
    block = matrix[np.ix_(kept, kept)]
    best = least_value(block, g[kept], w[kept], c[kept])
    assert model_value(block, g[kept], w[kept], c[kept], d[kept]) == pytest.approx(best, rel=1e-6, abs=1e-6)


@many
@given(quadratics(singular=True))
def test_newton_direction_on_a_flat_model(quadratic):
    """A singular matrix (features that repeat each other): nearly all of the possible decrease, and finite steps."""
    matrix, g, w, c = quadratic
    d = newton_direction(QuadraticModel(np.arange(len(g)), matrix), g, w, c, 1e-20, enough=0.0)
    assert np.all(np.isfinite(d))
    start, best = model_value(matrix, g, w, c, np.zeros(len(g))), least_value(matrix, g, w, c)
    assert model_value(matrix, g, w, c, d) - best <= 0.02 * (start - best) + 1e-9 * (1.0 + abs(best))


def test_weights_without_a_threshold_change_their_signs():
    """For them zero is a number like any other: a direct solve on a flat model is right at once."""
    rng = np.random.default_rng(5)
    root = rng.normal(size=(40, 40)) * np.geomspace(1.0, 1e-3, 40)
    matrix, w, c = root.T @ root, rng.normal(size=40), np.zeros(40)
    expected = -w + rng.normal(size=40)  # half of the signs change
    g = -matrix @ expected
    d = newton_direction(QuadraticModel(np.arange(40), matrix), g, w, c, 1e-20, enough=0.5)
    least = model_value(matrix, g, w, c, expected)
    assert model_value(matrix, g, w, c, d) == pytest.approx(least, rel=1e-9)


@many
@given(quadratics(singular=False))
def test_newton_direction_satisfies_the_optimality_conditions(quadratic):
    """Slope -c sign at weights that are not zero, within c at zero."""
    matrix, g, w, c = quadratic
    d = newton_direction(QuadraticModel(np.arange(len(g)), matrix), g, w, c, 1e-24, enough=0.0)
    slope, u = g + matrix @ d, w + d
    scale = 1e-5 * (1.0 + np.abs(g).max())
    assert np.all(np.abs((slope + c * np.sign(u))[u != 0.0]) <= scale)
    assert np.all(np.abs(slope[u == 0.0]) <= c[u == 0.0] + scale)


@many
@given(quadratics(singular=False))
def test_rounds_that_bring_little_are_left_out(quadratic):
    """By default rounds stop when one brings less than 1%: most of the decrease is there, and none is an increase."""
    matrix, g, w, c = quadratic
    d = newton_direction(QuadraticModel(np.arange(len(g)), matrix), g, w, c, 1e-20)
    start, best = model_value(matrix, g, w, c, np.zeros(len(g))), least_value(matrix, g, w, c)
    assert model_value(matrix, g, w, c, d) - best <= 0.1 * (start - best) + 1e-12


@many
@given(quadratics())
def test_coordinate_descent_keeps_the_product_and_descends(quadratic):
    """`product` stays H d, and every call lowers the model; the number of sweeps is within the limit."""
    matrix, g, w, c = quadratic
    d, product = np.zeros(len(g)), np.zeros(len(g))
    last = model_value(matrix, g, w, c, d)
    for _ in range(4):
        n_sweeps = descend_dense(matrix, g, w, c, 1e-20, 3, d, product)
        assert 1 <= n_sweeps <= 3
        np.testing.assert_allclose(product, matrix @ d, atol=1e-9 * (1.0 + np.abs(product).max()))
        value = model_value(matrix, g, w, c, d)
        assert value <= last + 1e-12 * (1.0 + abs(last))
        last = value


@many
@given(quadratics(singular=False))
def test_coordinate_descent_that_stops_early_is_done(quadratic):
    """Fewer sweeps than allowed means that a full sweep moved nothing by more than the tolerance."""
    matrix, g, w, c = quadratic
    d, product = np.zeros(len(g)), np.zeros(len(g))
    n_sweeps = descend_dense(matrix, g, w, c, 1e-22, 100_000, d, product)
    if n_sweeps < 100_000:
        expected = least_value(matrix, g, w, c)
        assert model_value(matrix, g, w, c, d) <= expected + 1e-8 * (1.0 + abs(expected))


def test_one_weight_by_hand():
    """H = 2 and g = -3: a step, no step, a step that stops at zero and one that crosses it."""
    model = QuadraticModel(np.arange(1), np.array([[2.0]]))

    def direction(w, c):
        return newton_direction(model, np.array([-3.0]), np.array([w]), np.array([c]), 0.0)[0]

    assert direction(0.0, 1.0) == pytest.approx(1.0)  # -3 + 2d + 1 = 0
    assert direction(0.0, 4.0) == 0.0
    assert direction(-1.0, 2.0) == pytest.approx(1.0)  # stops at zero: slope there is -3 + 2 = -1 within 2
    assert direction(-1.0, 0.5) == pytest.approx(1.25)  # crosses zero: -3 + 2d + 0.5 = 0


@settings(max_examples=30)
@given(st.data())
def test_model_is_the_covariance_of_the_chosen_features(data):
    """build_model gives the Hessian of the chosen features, and their numbers."""
    case = data.draw(cases(max_tags=2, max_length=4))
    features, numbers, w = data.draw(active_sets(case, scales=(0.3, 1.0), max_size=12))
    chosen = np.arange(0, len(features), 2)
    surrogate = case.surrogate()
    model = build_model(surrogate, surrogate.compile(numbers), w, chosen)
    expected = Enumeration(case.problem, features, case.costs).hessian(w)[np.ix_(chosen, chosen)]
    np.testing.assert_allclose(model.hessian, expected, atol=5e-3)
    np.testing.assert_array_equal(model.features, numbers[chosen])


@pytest.mark.parametrize("tags", [1, 2, 3])
def test_the_order_limits_hessians(tags):
    """On the dense lattice there are none of longer patterns than 2, on the automaton of any."""
    problem = build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2, paper_families(0, tags, 0))
    dense = objective("crf", problem, np.zeros(1))
    assert dense.has_hessian == (tags <= 2)
    assert (dense.hessian(dense.compile(np.arange(2)), np.zeros(2), np.arange(2)) is None) == (tags > 2)
    assert objective("crf", problem, np.zeros(1), "patterns").has_hessian


@pytest.mark.parametrize(("n", "expected"), [(0, False), (1, True), (4_000, True), (4_001, False)])
def test_the_policy_limits_the_size_of_models(n, expected):
    """No weights or too many have no Hessian where the run has to settle."""
    problem = build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2, paper_families(0, 2, 0))
    penalty = FamilyPenalty(np.full(len(problem.families), 0.1), np.zeros(len(problem.families)))
    run = working_set._WorkingSetRun(
        problem, penalty.bind(problem), crf(problem), RunOptions(1e-6), True, 1e-3, 0.0, None, True, True
    )
    assert run.newton.may_model(n) == expected


def test_one_of_several_sentences_stands_for_all():
    """Every sentence three times in a row: the Hessian from one of three is that of all."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20).sample(8, seed=1)
    text = intern_sentences([x for x in corpus.tokens for _ in range(3)])
    classes = sorted(corpus.label_set)
    y = np.array([classes.index(z) for labels in corpus.labels for _ in range(3) for z in labels], np.uint32)
    problem = build_problem(text, y, 3, paper_families(1, 2, 1))
    surrogate = objective("crf", problem, np.zeros(24))
    rng = np.random.default_rng(0)
    columns = rng.choice(len(problem.columns), 15, replace=False).astype(np.uint32)
    features = np.sort(problem.join_features(columns, 1, rng.integers(0, 3, 15).astype(np.uint32)))
    active, w = surrogate.compile(features), rng.normal(size=15)
    whole = surrogate.hessian(active, w, np.arange(15))
    np.testing.assert_allclose(surrogate.hessian(active, w, np.arange(15), stride=3), whole, rtol=1e-12, atol=1e-15)
    assert np.abs(surrogate.hessian(active, w, np.arange(15), stride=2) - whole).max() > 1e-6


def test_newton_steps_on_the_most_curved_weights(monkeypatch):
    """Too many weights for any Hessian of all: that of a few comes to a moderate gap in fewer passes."""
    corpus = SyntheticLanguage(n_labels=5, n_stems=300, seed=5).sample(200, seed=4)
    data, options = (corpus.tokens, corpus.labels), {"recipe": "paper", "base_strength": 0.3 / 200, "tol": 1e-3}
    best = VCRF(recipe="paper", base_strength=0.3 / 200, tol=1e-8).fit(*data)
    set_policy(monkeypatch, many=50, most=50, block=60)
    found = VCRF(**options).fit(*data)
    set_policy(monkeypatch, many=50, most=50, block=60, block_below=0.0)
    without = VCRF(**options).fit(*data)
    assert not any(record.phase == "newton" for record in without.history_)
    assert found.result_.relative_gap <= 1e-3
    assert found.result_.n_passes < 0.95 * without.result_.n_passes
    assert -1e-9 <= found.objective_ - best.objective_ <= found.gap_


@pytest.mark.parametrize(("tol", "few"), [(1e-3, 2_500), (1e-3, 20), (1e-6, 20)])
def test_all_weights_or_the_most_curved_first(monkeypatch, tol, few):
    """Many weights and a moderate gap: Newton steps on the most curved only; a small gap, or few weights: on all."""
    corpus = SyntheticLanguage(n_labels=5, n_stems=300, seed=3).sample(200, seed=4)
    set_policy(monkeypatch, few=few, block=60)
    sizes = []

    def spy(objective, plan, w, chosen, stride=1, scale=np.inf):
        sizes.append(len(chosen))
        return newton.build_model(objective, plan, w, chosen, stride, scale)

    monkeypatch.setattr(newton_phase, "build_model", spy)
    fitted = VCRF(recipe="paper", base_strength=0.1 / 200, tol=tol).fit(corpus.tokens, corpus.labels)
    assert fitted.result_.relative_gap <= tol
    is_block_first = tol == 1e-3 and few == 20
    assert sizes
    assert (max(sizes) <= 60) == is_block_first


# ----- many weights


@many
@given(quadratics(singular=False), st.booleans(), st.integers(1, 9))
def test_newton_direction_of_many_weights(quadratic, is_single, n_first):
    """The most curved weights first, then all, also with a Hessian in single precision: the minimum."""
    matrix, g, w, c = quadratic
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quadratic_module, "_FIRST", n_first)
        model = QuadraticModel(np.arange(len(c)), matrix.astype(np.float32) if is_single else matrix)
        d = newton_direction(model, g, w, c, 1e-20, enough=0.0)
    expected = least_value(matrix, g, w, c)
    assert model_value(matrix, g, w, c, d) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@many
@given(quadratics(singular=False), st.floats(0.0, 1.0))
def test_rounds_end_where_the_conditions_are_met(quadratic, close):
    """No violation of the model's conditions above `close` thresholds: the rounds are over, and not before."""
    matrix, g, w, c = quadratic
    c = c + 0.05
    d = newton_direction(QuadraticModel(np.arange(len(c)), matrix), g, w, c, 1e-20, enough=0.0, close=close)
    slope, u = g + matrix @ d, w + d
    off = np.where(u != 0.0, np.abs(slope + c * np.sign(u)), np.maximum(np.abs(slope) - c, 0.0))
    assert (off / c).max() <= close + 1e-5 * (1.0 + np.abs(g).max()) / c.min()


@pytest.mark.parametrize("tags", [2, 3])
def test_many_weights_are_certified_with_large_models(monkeypatch, tags):
    """More weights than models in double precision take: the gap closes, at the optimum that these find."""
    corpus = SyntheticLanguage(n_labels=5, n_stems=300, seed=5).sample(200, seed=4)
    data, options = (corpus.tokens, corpus.labels), {"recipe": "paper", "base_strength": 0.3 / 200, "tags": tags}
    best = VCRF(**options, tol=1e-7).fit(*data)
    set_policy(monkeypatch, many=50, few=50, block_below=0.0)
    monkeypatch.setattr(plans, "_MAX_DOUBLE", 50)
    large = []

    def spy(objective, plan, w, chosen, stride=1, scale=np.inf):
        model = newton.build_model(objective, plan, w, chosen, stride, scale)
        large.append(len(chosen) > 50)
        assert model.hessian.dtype == (np.float32 if large[-1] else np.float64)
        return model

    monkeypatch.setattr(newton_phase, "build_model", spy)
    found = VCRF(**options, tol=2e-5).fit(*data)
    assert any(large)
    assert found.result_.relative_gap <= 2e-5
    assert -1e-7 <= found.objective_ - best.objective_ <= found.gap_


def test_weights_that_the_last_model_lacks(monkeypatch):
    """Labels that never vary, in single precision: weights enter round after round, each time with a new Hessian."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=60, seed=1).sample(20, seed=2)
    y = [["A" if i % 2 else "B" for i in range(len(x))] for x in corpus.tokens[:10]]
    y += [["C"] * len(x) for x in corpus.tokens[10:]]
    set_policy(monkeypatch, many=20)
    monkeypatch.setattr(plans, "_MAX_DOUBLE", 20)
    for strength in (0.1, 0.02, 0.005):
        tagger = VCRF(recipe="paper", norm="l1", tags=2, base_strength=strength / 20, tol=1e-3, inference="dense").fit(
            corpus.tokens, y
        )
        assert tagger.result_.relative_gap <= 1e-3


def test_a_direction_that_is_no_number_is_no_step(monkeypatch):
    """The run goes on without it."""
    corpus = SyntheticLanguage(n_labels=4, n_stems=60, seed=1).sample(40, seed=2)
    monkeypatch.setattr(newton_phase, "newton_direction", lambda *given, **_: np.full(len(given[2]), np.nan))
    tagger = VCRF(recipe="paper", norm="l1", base_strength=0.5 / 40, tol=1e-3, max_passes=300).fit(
        corpus.tokens, corpus.labels
    )
    assert np.isfinite(tagger.objective_)
    assert tagger.result_.relative_gap < 0.1


@pytest.mark.parametrize("is_real", [False, True])
def test_weak_strengths_on_the_automaton(is_real):
    """Gradients far below that of one token count, or values are in the hundreds: the draws of Hessians are as fine."""
    corpus = SyntheticLanguage(n_labels=5, n_stems=200, seed=5).sample(40, seed=4)
    rng = np.random.default_rng(1)
    X = corpus.tokens
    if is_real:
        X = [[{"w": t, "s": t[-2:], "v": float(300.0 * rng.normal())} for t in x] for x in X]
    tol = 1e-3 if is_real else 1e-6
    tagger = VCRF(
        recipe="paper", norm="l1", tags=3, base_strength=0.05 / 40, tol=tol, inference="patterns", max_passes=2_000
    )
    assert tagger.fit(X, corpus.labels).status_ is Status.CONVERGED


def test_large_models_that_do_not_help_end_the_run(monkeypatch):
    """Directions that lead nowhere: the run settles, with its gap, and does not go on until the limit on passes.

    No steps reach this gap: a gradient has rounding of its own.
    """
    corpus = SyntheticLanguage(n_labels=5, n_stems=300, seed=5).sample(80, seed=4)
    set_policy(monkeypatch, many=50, few=50, most_vain=2)
    monkeypatch.setattr(newton_phase, "newton_direction", lambda *given, **_: 1e-12 * np.sign(given[2]))
    with pytest.warns(ConvergenceWarning, match="hardly moves"):
        found = VCRF(recipe="paper", base_strength=0.3 / 80, tol=1e-15).fit(corpus.tokens, corpus.labels)
    assert found.status_ is Status.SETTLED
    assert 1e-15 < found.result_.relative_gap < 1e-3


def test_many_weights_on_the_automaton(monkeypatch):
    """Scans next to large models bring in what is near its threshold, and certify."""
    corpus = SyntheticLanguage(n_labels=4, n_stems=100, seed=3).sample(60, seed=4)
    set_policy(monkeypatch, many=20)
    shares = []

    def spy(self, state):
        shares.append(share(self, state))
        return shares[-1]

    share = newton_phase.NewtonPhase.scan_share
    monkeypatch.setattr(newton_phase.NewtonPhase, "scan_share", spy)
    tagger = VCRF(recipe="paper", tags=3, base_strength=0.3 / 60, inference="patterns").fit(
        corpus.tokens, corpus.labels
    )
    assert tagger.status_ is Status.CONVERGED
    assert shares[0] == 1.0
    assert shares[-1] == NEWTON.wider
