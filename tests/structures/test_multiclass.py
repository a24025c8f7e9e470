"""A structure that is no chain goes through the same solver, certificate and model file.

One variable an example is logistic regression: scikit-learn's is the third party.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from structures.multiclass import MultiClassSurrogate, SingleVariable, build_multiclass
from vcrf.families import Family, NamedFeature, read_attributes
from vcrf.model import container
from vcrf.model.build import build_model
from vcrf.model.file import contents_of, load_model
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem
from vcrf.solvers.group import solve_group
from vcrf.solvers.result import Status
from vcrf.solvers.run import RunOptions
from vcrf.solvers.working_set import solve
from vcrf.structures.training_loss import TrainingLoss
from vcrf.surrogates.choice import SmoothChoice

N_LABELS = 4


def drawn(seed, n=60, d=6):
    """Dense numbers, and labels that follow from them with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(3)
    X[X == 0.0] = 0.5
    y = np.argmax(X @ rng.normal(size=(d, N_LABELS)) + rng.gumbel(size=(n, N_LABELS)), axis=1).astype(np.uint32)
    examples = [{f"x{j}": float(x) for j, x in enumerate(row)} for row in X]
    return X, y, build_multiclass(examples, y, N_LABELS)


def table_of(X, problem, result):
    """Weights by attribute and label, (n_attributes, n_labels)."""
    column, _, label = problem.split_features(result.features)
    table = np.zeros((len(problem.columns), N_LABELS))
    table[column, label] = result.weights
    return table[[int(np.argmin(np.abs(problem.matrix - x[:, None]).sum(axis=0))) for x in X.T]]


def sklearn_objective(X, y, coefficients, l1, l2):
    """Mean log loss + penalty."""
    scores = X @ coefficients.T
    top = scores.max(axis=1, keepdims=True)
    log_z = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
    loss = np.mean(log_z - scores[np.arange(len(y)), y])
    return loss + l1 * np.abs(coefficients).sum() + 0.5 * l2 * (coefficients**2).sum()


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.02), (0.006, 0.02), (0.02, 0.0)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_scikit_learn_s_logistic_regression(l1, l2, seed):
    """L2, elastic net and L1: objective and weights to 1e-6, and the certificate says so."""
    X, y, problem = drawn(seed)
    n = len(problem.families)
    penalty = FamilyPenalty(np.full(n, l1), np.full(n, l2))
    result = solve(problem, penalty, surrogate=MultiClassSurrogate(), tol=1e-12)
    assert result.gap <= 1e-9 * result.objective
    strength, ratio = l1 + l2, l1 / (l1 + l2)
    peer = LogisticRegression(
        C=1.0 / (len(y) * strength), l1_ratio=ratio, solver="lbfgs" if l1 == 0.0 else "saga", fit_intercept=False,
        tol=1e-14, max_iter=200_000,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        if l1 > 0.0:
            peer.set_params(penalty="elasticnet")
        peer.fit(X, y)
    assert result.objective == pytest.approx(sklearn_objective(X, y, peer.coef_, l1, l2), rel=1e-6)
    assert result.objective <= sklearn_objective(X, y, peer.coef_, l1, l2) + 1e-12
    ours, theirs = table_of(X, problem, result), peer.coef_.T
    if l2 == 0.0:
        # Two labels up and two down cost the same shifted: only what the labels differ by is determined.
        ours, theirs = (table - table.mean(axis=1, keepdims=True) for table in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


@settings(max_examples=15)
@given(
    st.integers(0, 10_000), st.sampled_from([0.0, 0.01, 0.05]), st.sampled_from([0.0, 0.03]), st.booleans(),
    st.sampled_from(["crf", "exponential"]),
)  # fmt: skip
def test_it_is_a_chain_of_one_label(seed, l1, l2, has_loss, kind):
    """The engine of chains on sentences of one token has the same optimum, and the group norm too."""
    _, y, problem = drawn(seed, n=20, d=3)
    l1 = l1 if l1 or l2 else 0.02
    families = [Family(name, (NamedFeature(name),)) for name in problem.text.source_names]
    chains = build_problem(problem.text, y, N_LABELS, families)
    cost = 0.7 if has_loss else 0.0
    surrogate = MultiClassSurrogate(cost, kind)
    chain_surrogate = SmoothChoice(kind, TrainingLoss(np.full(len(y), cost)))
    penalty = FamilyPenalty(np.full(3, l1), np.full(3, l2))
    ours = solve(problem, penalty, surrogate=surrogate, tol=1e-8)
    chain = solve(chains, penalty, surrogate=chain_surrogate, tol=1e-8)
    assert ours.objective == pytest.approx(chain.objective, rel=1e-7)
    if l2 == 0.0:
        group = solve_group(problem, penalty, surrogate, RunOptions(tol=1e-6))
        other = solve_group(chains, penalty, chain_surrogate, RunOptions(tol=1e-6))
        assert group.status is other.status is Status.CONVERGED
        assert group.objective == pytest.approx(other.objective, rel=3e-6)


@pytest.mark.parametrize("kind", ["crf", "exponential"])
def test_the_gradient_and_the_hessian_are_those_of_the_value(kind):
    """Central differences: what any new structure should show first."""
    _, _, problem = drawn(3, n=15, d=3)
    surrogate = MultiClassSurrogate(0.3, kind)
    objective = surrogate.build(problem, np.ones(len(problem.columns), bool))
    plan = objective.compile(np.arange(problem.space.stride * len(problem.columns)))
    w, step = np.random.default_rng(0).normal(size=len(plan)), 1e-5
    nudges = step * np.eye(len(w))
    slopes = [(objective.at(plan, w + d).value - objective.at(plan, w - d).value) / (2 * step) for d in nudges]
    np.testing.assert_allclose(objective.at(plan, w).gradient, slopes, atol=1e-8)
    curves = [(objective.at(plan, w + d).gradient - objective.at(plan, w - d).gradient) / (2 * step) for d in nudges]
    np.testing.assert_allclose(objective.hessian(plan, w, np.arange(len(w))), curves, atol=1e-8)
    if kind == "crf":
        np.testing.assert_allclose(np.diag(curves), objective.curvature(objective.at(plan, w), None), atol=1e-8)


def test_its_model_file_is_any_other(tmp_path):
    """Saved, loaded, and the scores of its labels are those of its weights."""
    X, _, problem = drawn(5)
    penalty = FamilyPenalty(np.full(6, 0.005), np.full(6, 0.01))
    result = solve(problem, penalty, surrogate=MultiClassSurrogate(), tol=1e-6)
    model = build_model(problem, penalty.bind(problem), result, [f"label {i}" for i in range(N_LABELS)])
    contents = contents_of(model, {"estimator": "VCRF", "parameters": {}, "fitted": {}})
    container.write(tmp_path / "multiclass.vcrf", container.encode(*contents))
    loaded = load_model(tmp_path / "multiclass.vcrf")
    assert loaded.facts.objective == result.objective
    assert loaded.facts.gap == result.gap
    unseen = [{"x0": 0.3, "x2": -1.5}, {"x5": 2.0}]
    potentials = loaded.potentials(read_attributes([[example] for example in unseen]))
    table = table_of(X, problem, result)
    expected = [0.3 * table[0] - 1.5 * table[2], 2.0 * table[5]]
    np.testing.assert_allclose(potentials.node, expected, atol=1e-12)
    assert len(loaded.weights) == result.n_active
    assert len(X) == loaded.facts.n_sentences
    assert isinstance(MultiClassSurrogate().build(problem, np.ones(6, bool)).structure, SingleVariable)
