"""Powers and norms by family: merged penalties, shares and conjugates against general solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from vcrf.errors import InputError
from vcrf.families import Family, Template, intern_sentences
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem
from vcrf.solvers.certificate import certify_groups

strengths = st.sampled_from([0.125, 0.25, 0.5, 1.0, 2.0])
weights = st.sampled_from([-3.0, -1.0, -0.125, 0.0, 0.25, 0.5, 2.0, 4.0])


@st.composite
def merged(draw):
    """One column of 1 to 4 twins in families with norms of their own; (bound, group, l1, l2, p of each twin)."""
    n = draw(st.integers(1, 4))
    family_of = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    templates = [Template(((0, f"prefix:{i + 1}"),)) for i in range(n)]
    families = [
        Family(f"family {f}", tuple(t for t, of in zip(templates, family_of, strict=True) if of == f)) for f in range(4)
    ]
    problem = build_problem(intern_sentences([["word"], ["x"]]), np.zeros(2, np.uint32), 2, families)
    whole = [len(problem.columns.class_sources[c]) == n for c in problem.columns.classes]
    column = np.flatnonzero(whole)[:1]
    norms = draw(st.lists(st.sampled_from(["l1", "l2", "elastic", "lp"]), min_size=4, max_size=4))
    c = np.array(draw(st.lists(strengths, min_size=4, max_size=4)))
    penalty = FamilyPenalty.from_strengths(c, norms, 0.25, power=draw(st.sampled_from([1.2, 1.5, 1.9])))
    bound = penalty.bind(problem)
    (group,) = bound.groups_of(problem.join_features(column, 1, np.array([0])))
    powers = np.full(4, 2.0) if penalty.powers is None else penalty.powers
    return bound, int(group), penalty.l1[family_of], penalty.l2[family_of], powers[family_of]


def value_of(bound, group, w):
    """Penalty of merged weights: l1 part plus smooth part."""
    w = np.atleast_1d(np.asarray(w, np.float64))
    groups = np.full(len(w), group)
    return float(bound.group_thresholds[groups] @ np.abs(w)) + bound.smooth(groups, w)[0]


def cost(split, l1, l2, p):
    """Penalty of the members' own weights."""
    return float(np.sum(l1 * np.abs(split) + l2 * np.abs(split) ** p / p))


@given(merged(), weights)
def test_merged_penalty_is_the_cheapest_split(case, w):
    """The infimal convolution, by a general solver over the shares; all have the sign of the whole."""
    bound, group, l1, l2, p = case
    n, size = len(l1), abs(w)
    best = min(cost(size * np.eye(n)[i], l1, l2, p) for i in range(n))
    if size > 0.0:
        for start in (np.full(n, size / n), *(size * (0.8 * np.eye(n) + 0.2 / n))):
            found = minimize(
                lambda z: cost(z, l1, l2, p), start, bounds=[(0.0, None)] * n, method="SLSQP",
                constraints={"type": "eq", "fun": lambda z: z.sum() - size}, options={"ftol": 1e-13, "maxiter": 500},
            )  # fmt: skip
            z = np.maximum(found.x, 0.0)
            if z.sum() > 0.0:
                best = min(best, cost(z * (size / z.sum()), l1, l2, p))
    got = value_of(bound, group, w)
    assert got <= best + 1e-9
    assert got == pytest.approx(best, rel=2e-4, abs=1e-9)


@given(merged(), weights)
def test_shares_add_up_and_attain_the_value(case, w):
    """What the model file keeps is an optimal split."""
    bound, group, _, _, _ = case
    parts = dict(bound.shares(group, w))
    first, last = bound.ptr[group], bound.ptr[group + 1]
    split = np.array([parts.get(i, 0.0) for i in range(last - first)])
    members = slice(first, last)
    assert split.sum() == pytest.approx(w, rel=1e-9, abs=1e-15)
    paid = cost(split, bound.member_l1[members], bound.member_l2[members], bound.member_powers[members])
    assert paid == pytest.approx(value_of(bound, group, w), rel=1e-9, abs=1e-15)


@given(merged(), st.sampled_from([-2.5, -1.0, -0.2, 0.0, 0.1, 0.25, 0.6, 1.5]))
def test_conjugate_is_the_supremum(case, g):
    """sup_W g W - penalty(W) by a line search; infinite beyond the strength of a member that pays l1 alone."""
    bound, group, _, _, _ = case
    got = bound.conjugate(np.array([group]), np.array([g]))
    if abs(g) > bound.group_caps[group]:
        assert got == np.inf
        return
    found = max(
        -minimize_scalar(
            lambda w: value_of(bound, group, w) - abs(g) * w, bounds=(0.0, top), method="bounded",
            options={"xatol": 1e-10},
        ).fun
        for top in (1e-3, 1.0, 100.0, 1e5, 1e7)
    )  # fmt: skip
    np.testing.assert_allclose(got, max(found, 0.0), rtol=1e-4, atol=1e-9)


@given(merged(), weights)
def test_conjugate_at_the_slope_is_tight(case, w):
    """Fenchel: penalty(w) + conjugate(slope at w) = slope * w."""
    bound, group, _, _, _ = case
    groups = np.array([group])
    slope = bound.smooth(groups, np.array([w]))[1][0] + np.sign(w) * bound.group_thresholds[group]
    total = value_of(bound, group, w) + bound.conjugate(groups, np.array([slope * (1 - 1e-15)]))
    np.testing.assert_allclose(total, slope * w, rtol=1e-9, atol=1e-12)


@given(merged(), st.lists(st.sampled_from([-1.0, 0.0, 0.1, 0.6, 1.5]), min_size=1, max_size=4), strengths)
def test_bounds_lie_below_a_line_plus_the_penalty(case, g, intercept):
    """A certificate of a + g.w is at most its value plus the penalty anywhere, where that is above 0."""
    bound, group, _, _, _ = case
    found = certify_groups(bound, intercept, np.full(len(g), group), np.array(g)).lower_bound
    rng = np.random.default_rng(0)
    for scale in (0.0, 0.01, 0.3, 3.0):
        w = scale * rng.normal(size=len(g))
        line = max(intercept + np.array(g) @ w, 0.0)
        assert found <= line + sum(value_of(bound, group, x) for x in w) + 1e-9


def test_refusals():
    """Powers out of range, free families, norms that there are not."""
    with pytest.raises(InputError, match="strength 0"):
        FamilyPenalty.from_strengths(np.array([1.0, 0.0]), ["l1", "l2"])
    with pytest.raises(InputError, match="`power` must lie between 1 and 2"):
        FamilyPenalty.from_strengths(np.ones(1), "lp", power=2.0)
    with pytest.raises(InputError, match="`power` must lie above 1"):
        FamilyPenalty.from_strengths(np.ones(1), "family", power=2.5)
    with pytest.raises(InputError, match=r"Powers must lie in \(1, 2\]"):
        FamilyPenalty(np.ones(1), np.ones(1), powers=np.array([1.0]))


def test_times():
    """All strengths, or those of each family."""
    penalty = FamilyPenalty.from_strengths(
        np.array([1.0, 2.0]), "elastic", own=(np.ones(2), np.ones((3, 2)), np.ones(2))
    )
    twice = penalty.times(np.array([2.0, 1.0]))
    assert twice.typical_l1.tolist() == [2.0 * penalty.typical_l1[0], penalty.typical_l1[1]]
    assert penalty.times(3.0).typical_l2.tolist() == (3.0 * penalty.typical_l2).tolist()
