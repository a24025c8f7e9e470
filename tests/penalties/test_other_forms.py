"""Penalties of other forms: definitions, optimum and certificate against general solvers, model, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from enumeration import Enumeration, all_candidates
from penalties.berhu import Berhu
from small_problems import cases
from vcrf.errors import InputError
from vcrf.families import default_families, intern_sentences
from vcrf.model.build import build_model
from vcrf.penalties import FamilyPenalty, FeaturePenalty
from vcrf.problem import build_problem
from vcrf.solvers.certificate import certify_groups
from vcrf.solvers.cutting_plane import solve_max
from vcrf.solvers.dual_start import strengths_of
from vcrf.solvers.family_norms import solve_family_norms
from vcrf.solvers.graph_cooling import solve_graph_max
from vcrf.solvers.group import solve_group
from vcrf.solvers.sgd import solve_by_steps
from vcrf.solvers.working_set import solve, solve_path

few = settings(max_examples=25)
small = {"max_labels": 3, "max_tags": 2, "max_length": 3, "max_sentences": 3}
berhus = st.builds(
    Berhu, st.sampled_from([0.01, 0.03, 0.1]), st.sampled_from([0.02, 0.3]), st.sampled_from([0.0, 0.2, 1.0])
)


class Huber:
    """c w^2 / (2 e) up to |w| = e, c (|w| - e / 2) beyond: nothing is linear at 0, and no slope is above c."""

    def __init__(self, c, e):
        self.c, self.e = c, e

    def bind(self, problem):
        return BoundHuber(self, problem)

    def cost(self, w):
        """Of single weights."""
        size = np.abs(w)
        return self.c * np.where(size <= self.e, size**2 / (2.0 * self.e), size - 0.5 * self.e)


class BoundHuber(FeaturePenalty):
    """Of n twins each takes w / n."""

    is_smooth_part = True

    def __init__(self, huber, problem):
        n = len(problem.families)
        self.huber, self.linear = huber, FamilyPenalty(np.ones(n), np.zeros(n)).bind(problem)
        self.n_twins = np.diff(self.linear.ptr)
        self.group_thresholds = np.where(self.n_twins > 0, 0.0, np.inf)

    @property
    def largest_slopes(self):
        return np.full(len(self.n_twins), self.huber.c)

    def groups_of(self, features):
        return self.linear.groups_of(features)

    def column_groups(self, k):
        return self.linear.column_groups(k)

    def smooth(self, groups, w):
        n, slope = self.n_twins[groups], self.huber.c / self.huber.e
        return float(np.sum(n * self.huber.cost(w / n))), np.clip(slope * w / n, -self.huber.c, self.huber.c)

    def conjugate_along(self, groups, size, theta):
        curved = self.n_twins[groups] * self.huber.e / self.huber.c * size**2
        return float(0.5 * theta**2 * curved.sum()), float(theta * curved.sum())


def berhu_cost(berhu, w):
    """Of single weights."""
    return berhu.a * np.abs(w) + berhu.b * np.maximum(np.abs(w) - berhu.d, 0.0) ** 2


def value_of(bound, groups, w):
    """Threshold times |w| plus the smooth part."""
    return float(bound.group_thresholds[groups] @ np.abs(w)) + bound.smooth(groups, w)[0]


def optimum_of(case, cost, slope):
    """The least surrogate plus costs of the unmerged problem: L-BFGS-B on w = p - q with p, q >= 0."""
    problem = case.rebuilt(merge_twins=False).problem
    every = all_candidates(problem)
    found, n = Enumeration(problem, every, case.costs), len(every)

    def objective(z):
        # The costs of p and q are together at least that of p - q, and the same where one of them is 0.
        w = z[:n] - z[n:]
        g = found.gradient(w)
        return found.value(w) + np.sum(cost(z)), np.concatenate([g, -g]) + slope(z)

    z = np.zeros(2 * n)
    if n:
        for _ in range(3):
            z = minimize(
                objective, z, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * (2 * n),
                options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 2_000, "maxfun": 4_000},
            ).x  # fmt: skip
    w = z[:n] - z[n:]
    return found.value(w) + float(np.sum(cost(w)))


# ---- the class says what it means


@given(st.booleans(), berhus, st.integers(0, 2**32 - 1))
def test_the_penalty_of_features_is_that_of_its_definition(is_huber, berhu, seed):
    """Equal parts for twins, the gradient by differences, the conjugate as a supremum, its derivative."""
    text = intern_sentences([["one", "two"], ["one"]])
    problem = build_problem(text, np.zeros(text.n_tokens, np.uint32), 2, default_families())
    form = Huber(0.1, 0.3) if is_huber else berhu
    bound, rng = form.bind(problem), np.random.default_rng(seed)
    groups = rng.choice(np.flatnonzero(np.isfinite(bound.group_thresholds)), 3)
    w = rng.normal(size=3)
    n = bound.n_twins[groups]
    cost = form.cost if is_huber else lambda x: berhu_cost(berhu, x)
    assert value_of(bound, groups, w) == pytest.approx(float(np.sum(n * cost(w / n))))
    h = 1e-6
    for i, change in enumerate(h * np.eye(3)):
        difference = (bound.smooth(groups, w + change)[0] - bound.smooth(groups, w - change)[0]) / (2.0 * h)
        assert bound.smooth(groups, w)[1][i] == pytest.approx(difference, abs=1e-5)
    size, theta = np.array([0.005, 0.06, 0.1]), 0.9
    total, slope = bound.conjugate_along(groups, size, theta)
    each = [
        -minimize_scalar(
            lambda x, g=g, s=s: value_of(bound, np.array([g]), np.array([x])) - theta * s * x, bounds=(0.0, 100.0),
            method="bounded", options={"xatol": 1e-10},
        ).fun
        for g, s in zip(groups, size, strict=True)
    ]  # fmt: skip
    assert total == pytest.approx(np.maximum(each, 0.0).sum(), rel=1e-6, abs=1e-9)
    further = bound.conjugate_along(groups, size, theta + h)[0] - bound.conjugate_along(groups, size, theta - h)[0]
    assert slope == pytest.approx(further / (2.0 * h), rel=1e-3, abs=1e-6)


# ---- optimum, certificate, model


@few
@given(cases(**small), berhus)
def test_berhu_ends_at_the_optimum_with_a_true_gap(case, berhu):
    """Twins merged; the optimum is that of single attributes by scipy."""
    result = solve(case.problem, berhu, costs=case.costs, tol=1e-6)
    best = optimum_of(
        case, lambda z: berhu_cost(berhu, z), lambda z: berhu.a + 2.0 * berhu.b * np.maximum(z - berhu.d, 0.0)
    )
    assert result.status.name == "CONVERGED"
    assert result.objective == pytest.approx(best, rel=2e-6, abs=1e-9)
    assert result.objective - result.gap <= best + 1e-9


@few
@given(cases(**small), st.sampled_from([0.05, 0.3]))
def test_huber_ends_at_the_optimum_with_a_true_gap(case, c):
    """Slopes have an end, beyond which the conjugate is infinite: bounds stay below it."""
    huber = Huber(c, 0.5)
    result = solve(case.problem, huber, costs=case.costs, tol=1e-5)
    best = optimum_of(case, huber.cost, lambda z: np.minimum(huber.c / huber.e * z, huber.c))
    assert result.status.name == "CONVERGED"
    assert result.objective == pytest.approx(best, rel=2e-5, abs=1e-9)
    assert result.objective - result.gap <= best + 1e-9


def test_bounds_do_not_go_beyond_the_largest_slope():
    """A line a + g w below F: where |g| is beyond the slope's end, theta is less than 1."""
    problem = build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2, default_families())
    bound = Huber(0.1, 0.5).bind(problem)
    groups = np.flatnonzero(np.isfinite(bound.group_thresholds))[:1]
    curved = float(bound.n_twins[groups[0]]) * 0.5 / 0.1
    found = certify_groups(bound, 10.0, groups, np.array([0.2])).lower_bound
    assert found == pytest.approx(5.0 - 0.5 * curved * 0.1**2)


@few
@given(cases(**small), berhus)
def test_a_model_shares_the_weights_out(case, berhu):
    """What attributes pay each is what the solution pays, and facts have the linear strength."""
    result = solve(case.problem, berhu, costs=case.costs, tol=1e-4)
    bound = berhu.bind(case.problem)
    model = build_model(case.problem, bound, result, [str(z) for z in range(case.n_labels)])
    paid = value_of(bound, bound.groups_of(result.features), result.weights)
    assert float(np.sum(berhu_cost(berhu, model.weights))) == pytest.approx(paid)
    assert all((facts.l1, facts.l2) == (berhu.a, 0.0) for facts in model.families)


def test_a_path_takes_other_forms():
    """One after another, among those by families."""
    problem = build_problem(intern_sentences([["a", "b"]]), np.array([0, 1], np.uint32), 2, default_families())
    n = len(problem.families)
    penalties = [Berhu(0.3, 1.0, 0.1), FamilyPenalty(np.full(n, 0.1), np.full(n, 0.1)), Berhu(0.01, 1.0, 0.1)]
    for penalty, result in zip(penalties, solve_path(problem, penalties, tol=1e-6), strict=True):
        assert result.objective == pytest.approx(solve(problem, penalty, tol=1e-6).objective, rel=1e-5)


# ---- what the form has not


def test_dual_ascent_takes_linear_and_quadratic_parts_alone():
    """The others say so themselves."""
    problem = build_problem(intern_sentences([["a", "b"]]), np.array([0, 1], np.uint32), 2, default_families())
    n = len(problem.families)
    assert strengths_of(problem, Berhu(0.1, 1.0, 0.1).bind(problem)) is None
    assert strengths_of(problem, FamilyPenalty(np.ones(n), np.zeros(n)).bind(problem)) is None
    assert strengths_of(problem, FamilyPenalty.from_strengths(np.ones(n), "lp").bind(problem)) is None
    assert strengths_of(problem, FamilyPenalty(np.ones(n), np.ones(n)).bind(problem)) is not None


def test_a_class_without_a_method_is_not_made():
    """Python names what is missing."""

    class Half(FeaturePenalty):
        def groups_of(self, features):
            return features

    with pytest.raises(TypeError, match="column_groups"):
        Half()


@pytest.mark.parametrize("solver", [solve_max, solve_graph_max, solve_group, solve_family_norms, solve_by_steps])
def test_solvers_of_families_refuse_other_forms(solver):
    """Before anything else is looked at."""
    others = [None] * (3 if solver is solve_by_steps else 2)
    with pytest.raises(InputError, match=f"`{solver.__name__}` needs strengths of families, .* got Berhu"):
        solver(None, Berhu(0.1, 1.0, 0.1), *others)
