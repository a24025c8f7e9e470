"""The lower bound on the optimum: never above it, tight at the optimum, at any weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enumeration import Enumeration, all_candidates, families_of, number_of
from objectives import value_and_gradient
from small_problems import cases, penalty_of, strengths
from vcrf.families import BIAS, Family, intern_sentences
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem
from vcrf.solvers.certificate import certify

few = settings(max_examples=25)
norms = st.sampled_from(["l1", "l2", "elastic"])
small = {"max_labels": 3, "max_tags": 2, "max_length": 3, "max_sentences": 3}


def bound_at(problem, penalty, enumeration, candidates, w):
    """Lower bound from the enumerated value and gradients at w, as the solver passes them."""
    value, gradients = enumeration.value(w), enumeration.gradient(w)
    bound = penalty.bind(problem)
    numbers = np.array([number_of(problem, f) for f in candidates], np.int64)
    above = np.abs(gradients) > bound.thresholds(numbers)
    return certify(bound, value - float(w @ gradients), numbers[above], gradients[above])


@st.composite
def penalised(draw):
    """A merged problem with its enumeration and penalty, and the optimum of the unmerged one by scipy."""
    case = draw(cases(**small))
    norm = draw(norms)
    penalty = FamilyPenalty.from_strengths(draw(strengths(case)), norm)
    unmerged = case.rebuilt(merge_twins=False)
    every = all_candidates(unmerged.problem)
    l1, l2 = unmerged.strengths(penalty.l1, every), unmerged.strengths(penalty.l2, every)
    optimum, _ = Enumeration(unmerged.problem, every, case.costs).minimum(l1, l2)
    candidates = all_candidates(case.problem)
    return case, penalty, candidates, Enumeration(case.problem, candidates, case.costs), optimum


@few
@given(penalised(), st.data())
def test_bound_is_below_the_optimum_everywhere(found, data):
    """Random weights of several sizes, and points on the way from zero."""
    case, penalty, candidates, enumeration, optimum = found
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    w = rng.normal(size=len(candidates)) * (rng.random(len(candidates)) < 0.3)
    for scale in (0.0, 0.01, 0.1, 1.0, 10.0):
        certificate = bound_at(case.problem, penalty, enumeration, candidates, scale * w)
        assert 0.0 <= certificate.lower_bound <= optimum + 1e-9
        assert certificate.excess >= 0.0


@few
@given(penalised())
def test_bound_is_tight_at_the_optimum(found):
    """From zero to the optimum the bound rises to it; the objective is never below the bound."""
    case, penalty, candidates, enumeration, optimum = found
    l1, l2 = merged_strengths(case, penalty, candidates)
    if l1 is None:
        return
    value, best = enumeration.minimum(l1, l2)
    assert value == pytest.approx(optimum, rel=1e-7, abs=1e-9)
    for share in (0.0, 0.5, 0.9, 1.0):
        w = share * best
        certificate = bound_at(case.problem, penalty, enumeration, candidates, w)
        objective = enumeration.value(w) + penalty_of(case.problem, penalty, candidates, w)
        assert certificate.lower_bound <= min(objective, optimum) + 1e-9
    assert certificate.lower_bound == pytest.approx(optimum, rel=2e-3, abs=1e-6)


def merged_strengths(case, penalty, candidates):
    """Strengths of the merged features for L1 (the least of the members) and L2 (harmonic); None for elastic."""
    members = [families_of(case.problem, f.column, f.k) for f in candidates]
    if not np.any(penalty.l2):
        return np.array([penalty.l1[m].min() for m in members]), np.zeros(len(candidates))
    if not np.any(penalty.l1):
        return np.zeros(len(candidates)), np.array([1.0 / np.sum(1.0 / penalty.l2[m]) for m in members])
    return None, None


@few
@given(penalised(), st.data())
def test_slope_is_the_dual_value(found, data):
    """F - w.grad F is the mean of E[loss] + entropy, the dual objective of the model's distribution."""
    case, _, candidates, enumeration, _ = found
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    w = data.draw(st.sampled_from([0.0, 0.3, 3.0])) * rng.normal(size=len(candidates))
    numbers = np.array([number_of(case.problem, f) for f in candidates], np.int64)
    surrogate = case.surrogate()
    value, gradient = value_and_gradient(surrogate, surrogate.compile(numbers), w)
    assert value - w @ gradient == pytest.approx(enumeration.dual_value(w), rel=1e-9, abs=1e-9)


def test_bound_by_hand():
    """One token with one of two labels at w = 0: F = log 2, |g| = 1/2, c = 1/8, so the bound is log(2) / 4."""
    problem = build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2, [Family("bias", (BIAS,))])
    bound = FamilyPenalty(np.array([0.125]), np.zeros(1)).bind(problem)
    certificate = certify(bound, np.log(2.0), np.array([0, 1]), np.array([-0.5, 0.5]))
    assert certificate.lower_bound == pytest.approx(np.log(2.0) / 4.0)
    assert certificate.excess == pytest.approx(3.0)


def test_bound_with_nothing_violated_is_the_slope():
    """No candidate above its strength: the bound is F - w.g itself."""
    problem = build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2, [Family("bias", (BIAS,))])
    for penalty in (FamilyPenalty(np.ones(1), np.zeros(1)), FamilyPenalty(np.ones(1), np.ones(1))):
        certificate = certify(penalty.bind(problem), 0.7 - 0.2, np.zeros(0, np.int64), np.zeros(0))
        assert certificate.lower_bound == pytest.approx(0.5)
        assert certificate.excess == 0.0


def test_no_bound_where_a_strength_is_zero():
    """A free feature with a gradient has no feasible scaling: the bound is the trivial 0."""
    problem = build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2, [Family("bias", (BIAS,))])
    bound = FamilyPenalty(np.zeros(1), np.zeros(1)).bind(problem)
    certificate = certify(bound, np.log(2.0), np.array([0, 1]), np.array([-0.5, 0.5]))
    assert certificate.lower_bound == 0.0
    assert certificate.excess == np.inf
