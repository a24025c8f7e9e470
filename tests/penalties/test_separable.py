"""Penalties of merged columns against splitting the weight by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize, minimize_scalar

from corpora import sentences
from vcrf.errors import InputError
from vcrf.families import Family, Template, default_families, intern_sentences
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem

# Few values, so that ties are common; far enough from 0 for a numerical minimiser.
strengths = st.sampled_from([0.125, 0.25, 0.5, 0.75, 1.0, 2.0])
weights = st.sampled_from([-3.0, -1.0, -0.125, 0.0, 0.25, 0.5, 2.0, 4.0])
norms = st.sampled_from(["l1", "l2", "elastic"])


@st.composite
def merged(draw, norm=None):
    """One column of 1 to 4 twins in 1 to 4 families (twins may share one), bound to a penalty."""
    n_members = draw(st.integers(1, 4))
    family_of = draw(st.lists(st.integers(0, 3), min_size=n_members, max_size=n_members))
    templates = [Template(((0, f"prefix:{i + 1}"),)) for i in range(n_members)]
    families = [
        Family(f"family {f}", tuple(t for t, of in zip(templates, family_of, strict=True) if of == f)) for f in range(4)
    ]
    problem = build_problem(intern_sentences([["word"], ["x"]]), np.zeros(2, np.uint32), 2, families)
    whole = [len(problem.columns.class_sources[c]) == n_members for c in problem.columns.classes]
    column = np.flatnonzero(whole)[:1]
    norm = draw(norms) if norm is None else norm
    l1 = np.array(draw(st.lists(strengths, min_size=4, max_size=4)))
    l2 = np.array(draw(st.lists(strengths, min_size=4, max_size=4)))
    penalty = FamilyPenalty(np.zeros(4) if norm == "l2" else l1, np.zeros(4) if norm == "l1" else l2)
    bound = penalty.bind(problem)
    (group,) = bound.groups_of(problem.join_features(column, 1, np.array([0])))
    return bound, int(group), penalty.l1[family_of], penalty.l2[family_of]


def value_of(bound, group, w):
    """Penalty of the merged weights: l1 part plus smooth part."""
    w = np.atleast_1d(np.asarray(w, np.float64))
    groups = np.full(len(w), group)
    return float(bound.group_thresholds[groups] @ np.abs(w)) + bound.smooth(groups, w)[0]


def cost(split, l1, l2):
    """Penalty of the members' own weights."""
    return float(l1 @ np.abs(split) + 0.5 * l2 @ np.square(split))


def cheapest_split(w, l1, l2):
    """Minimise the members' penalty over all splits of w by a general solver; signs are free."""
    n = len(l1)
    signs = np.concatenate([np.ones(n), -np.ones(n)])
    # w_k = p_k - q_k with p, q >= 0 makes |w_k| <= p_k + q_k, tight at the optimum.
    if not np.any(l2):
        return float(linprog(np.tile(l1, 2), A_eq=signs[None], b_eq=[w]).fun)
    start = np.concatenate([np.full(n, max(w, 0.0)), np.full(n, max(-w, 0.0))]) / n
    found = minimize(
        lambda z: np.tile(l1, 2) @ z + 0.5 * l2 @ np.square(z[:n] - z[n:]),
        start,
        jac=lambda z: np.tile(l1, 2) + signs * np.tile(l2 * (z[:n] - z[n:]), 2),
        bounds=[(0.0, None)] * (2 * n),
        constraints={"type": "eq", "fun": lambda z: signs @ z - w, "jac": lambda _: signs},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    return float(found.fun)


# ---- infimal convolution ----


@given(merged(), weights)
def test_merged_penalty_is_the_cheapest_split(case, w):
    """The infimal convolution found by a linear or quadratic programme."""
    bound, group, l1, l2 = case
    np.testing.assert_allclose(value_of(bound, group, w), cheapest_split(w, l1, l2), rtol=1e-6, atol=1e-7)


@given(merged(), weights, st.integers(0, 2**32 - 1))
def test_no_split_is_cheaper(case, w, seed):
    """Random splits, also with members of opposite signs, cost at least the merged penalty."""
    bound, group, l1, l2 = case
    for scale in (0.01, 0.3, 3.0):
        split = np.random.default_rng(seed).normal(scale=scale, size=len(l1))
        split += (w - split.sum()) / len(l1)
        assert cost(split, l1, l2) >= value_of(bound, group, w) - 1e-12


@given(merged(), weights)
def test_shares_add_up_and_attain_the_value(case, w):
    """The split that the model file keeps is an optimal one, and ties share equally."""
    bound, group, l1, l2 = case
    shares = bound.shares(group, w)
    assert len({member for member, _ in shares}) == len(shares)
    first = bound.ptr[group]
    split = np.zeros(len(l1))
    for member, share in shares:
        split[member] = share
    member_l1, member_l2 = bound.member_l1[first:], bound.member_l2[first:]
    np.testing.assert_allclose(split.sum(), w, rtol=1e-12, atol=1e-15)
    assert sorted(zip(member_l1[: len(l1)], member_l2[: len(l1)], strict=True)) == sorted(zip(l1, l2, strict=True))
    np.testing.assert_allclose(
        cost(split, member_l1[: len(l1)], member_l2[: len(l1)]),
        value_of(bound, group, w),
        rtol=1e-12,
        atol=1e-15,
    )
    for i, j in itertools.combinations(range(len(l1)), 2):
        if member_l1[i] == member_l1[j] and member_l2[i] == member_l2[j]:
            np.testing.assert_allclose(split[i], split[j], rtol=1e-12)


@given(merged("l2"), weights)
def test_l2_is_harmonic(case, w):
    """W**2 / (2 sum 1/l2), shares proportional to 1/l2."""
    bound, group, _, l2 = case
    np.testing.assert_allclose(value_of(bound, group, w), w * w / (2.0 * np.sum(1.0 / l2)), rtol=1e-12)


@given(merged("l1"), weights)
def test_l1_is_the_cheapest_member(case, w):
    """All weight on the members with the least strength; the smooth part is nothing."""
    bound, group, l1, _ = case
    np.testing.assert_allclose(value_of(bound, group, w), l1.min() * abs(w), rtol=1e-12)
    value, gradient = bound.smooth(np.array([group]), np.array([w]))
    assert (value, gradient.tolist()) == (0.0, [0.0])
    first = bound.ptr[group]
    assert all(bound.member_l1[first + member] == l1.min() for member, _ in bound.shares(group, w))


# ---- conjugate and gradient ----


@given(merged(), st.sampled_from([-2.5, -1.0, -0.2, 0.0, 0.1, 0.25, 0.6, 1.5]))
def test_conjugate_is_the_supremum(case, g):
    """sup_W g W - penalty(W) by a line search; infinite outside the box of a pure L1 penalty."""
    bound, group, _, l2 = case
    got = bound.conjugate(np.array([group]), np.array([g]))
    if not np.any(l2) and abs(g) > bound.group_thresholds[group]:
        assert got == np.inf
        assert 1e6 * abs(g) - value_of(bound, group, 1e6) > 1e3
        return
    found = minimize_scalar(
        lambda w: value_of(bound, group, w) - g * w,
        bounds=(-200.0, 200.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    np.testing.assert_allclose(got, max(-found.fun, 0.0), rtol=1e-6, atol=1e-6)


@given(merged(), st.lists(st.sampled_from([-1.0, 0.0, 0.1, 0.6, 1.5]), min_size=1, max_size=4))
def test_conjugates_add_up_over_the_features(case, g):
    """One gradient outside the box of a pure L1 penalty makes the sum infinite."""
    bound, group, _, _ = case
    each = [bound.conjugate(np.array([group]), np.array([one])) for one in g]
    np.testing.assert_allclose(bound.conjugate(np.full(len(g), group), np.array(g)), sum(each), rtol=1e-12)


@given(merged(), weights)
def test_conjugate_at_the_slope_is_tight(case, w):
    """Fenchel: penalty(w) + conjugate(slope at w) = slope * w."""
    bound, group, _, _ = case
    groups = np.array([group])
    slope = bound.smooth(groups, np.array([w]))[1][0] + np.sign(w) * bound.group_thresholds[group]
    total = value_of(bound, group, w) + bound.conjugate(groups, np.array([slope * (1 - 1e-15)]))
    np.testing.assert_allclose(total, slope * w, rtol=1e-9, atol=1e-12)


@given(merged(), st.lists(weights, min_size=1, max_size=5))
def test_smooth_gradient_equals_finite_differences(case, w):
    """The gradient of the smooth part, coordinate by coordinate; values add up over the features."""
    bound, group, _, _ = case
    w, h = np.array(w), 1e-6
    groups = np.full(len(w), group)
    value, gradient = bound.smooth(groups, w)
    np.testing.assert_allclose(value, sum(bound.smooth(groups[:1], w[i : i + 1])[0] for i in range(len(w))))
    for i in range(len(w)):
        step = h * (np.arange(len(w)) == i)
        difference = (bound.smooth(groups, w + step)[0] - bound.smooth(groups, w - step)[0]) / (2 * h)
        # Where a member begins to share, the second derivative jumps: the error is of order h.
        np.testing.assert_allclose(gradient[i], difference, rtol=1e-5, atol=2e-5)


# ---- groups of a problem ----


@given(sentences, st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_thresholds_are_the_least_strength_among_the_features_families(corpus, tags, seed):
    """For each column and pattern length the families of its members, by hand; inf where there is none."""
    text = intern_sentences(corpus)
    families = default_families(tags=tags)
    problem = build_problem(text, np.zeros(text.n_tokens, np.uint32), 2, families)
    l1 = np.random.default_rng(seed).choice([0.5, 1.0, 2.0, np.inf], len(families))
    bound = FamilyPenalty(l1, np.zeros(len(families))).bind(problem)
    assert len(bound.ptr) == len(problem.columns.class_sources) * (tags + 1) + 1
    for k in range(1, tags + 1):
        expected = []
        for c in range(len(problem.columns)):
            members = [problem.sources[s] for s in problem.columns.class_sources[problem.columns.classes[c]]]
            found = [
                (l1[i], s)
                for i, family in enumerate(families)
                for s in family.sources
                if family.tags == k and s in members
            ]
            expected.append(min((strength for strength, _ in found), default=np.inf))
            feature = problem.join_features(np.array([c]), k, np.array([2**k - 1]))
            (group,) = bound.groups_of(feature)
            sources = [problem.sources[s] for s in bound.member_sources[bound.ptr[group] : bound.ptr[group + 1]]]
            assert sorted(s.name for s in sources) == sorted(s.name for _, s in found)
            strengths_of = {s: strength for strength, s in found}
            part = slice(bound.ptr[group], bound.ptr[group + 1])
            assert [strengths_of[s] for s in sources] == bound.member_l1[part].tolist()
            assert [families[f] for f in bound.member_families[part]] == [
                next(f for f in families if f.tags == k and s in f.sources) for s in sources
            ]
            assert bound.thresholds(feature).tolist() == expected[-1:]
        assert bound.column_thresholds(k).tolist() == expected


@given(merged("l1"))
def test_a_family_switched_off_gets_no_share(case):
    """An infinite strength keeps a family's weights at zero beside cheaper twins."""
    bound, group, _, _ = case
    families = bound.member_families[bound.ptr[group] : bound.ptr[group + 1]]
    if len(set(families.tolist())) < 2:
        return
    strengths_off = bound.penalty.l1.copy()
    strengths_off[families[0]] = np.inf
    off = FamilyPenalty(strengths_off, bound.penalty.l2).bind(bound.problem)
    first = off.ptr[group]
    assert all(off.member_families[first + member] != families[0] for member, _ in off.shares(group, 2.0))
    assert off.group_thresholds[group] == strengths_off[families].min()


@given(merged("l2"), weights, st.integers(-1, 3))
def test_inverse_l2_is_the_curvature_of_the_conjugate(case, g, off):
    """With l2 alone the conjugate of each feature is g^2 / 2 times its inverse, also where a family is switched off."""
    bound, _, _, _ = case
    problem, l1 = bound.problem, bound.penalty.l1.copy()
    if off >= 0:
        l1[off] = np.inf
    bound = FamilyPenalty(l1, bound.penalty.l2, 0.5).bind(problem)
    assert bound.penalty.is_l2_alone
    columns = np.arange(len(problem.columns))
    features = problem.join_features(columns, 1, np.zeros_like(columns))
    groups = bound.groups_of(features)
    expected = [bound.conjugate(np.array([group]), np.array([g])) for group in groups]
    np.testing.assert_allclose(0.5 * g**2 * bound.inverse_l2(features), expected, rtol=1e-12)


# ---- strengths and errors ----


def test_norms_of_strengths():
    """c|w|, c w**2 / 2, or a mixture; the ratio is that of the L1 part."""
    c = np.array([1.0, 2.0])
    for norm, l1, l2 in (("l1", c, 0 * c), ("l2", 0 * c, c), ("elastic", 0.25 * c, 0.75 * c)):
        penalty = FamilyPenalty.from_strengths(c, norm, l1_ratio=0.25)
        np.testing.assert_allclose(penalty.l1, l1)
        np.testing.assert_allclose(penalty.l2, l2)
        assert penalty.is_l2_alone == (norm == "l2")
        own = FamilyPenalty.from_strengths(c, norm, l1_ratio=0.25, own=(c, np.ones((3, 2)), np.ones(2)))
        assert own.is_l2_alone == (norm == "l2")


def test_an_infinite_strength_switches_a_family_off_in_the_l1_norm():
    """`inf` is allowed in l1, so it must pass through the usual constructor."""
    penalty = FamilyPenalty.from_strengths(np.array([1.0, np.inf]), "l1")
    assert penalty.l1.tolist() == [1.0, np.inf]
    assert penalty.l2.tolist() == [0.0, 0.0]


def test_unknown_norm_is_an_error():
    """The message lists the norms."""
    with pytest.raises(InputError, match="`norm` must be 'l1', 'l2', 'elastic', 'lp', 'group' or 'family', got 'l0'"):
        FamilyPenalty.from_strengths(np.ones(1), "l0")


@pytest.mark.parametrize("ratio", [0.0, 1.0, -0.5, 1.5, np.nan])
def test_ratio_of_the_elastic_net_lies_strictly_between(ratio):
    """At 0 and 1 it is another norm."""
    words = r"`l1_ratio` must lie between 0 and 1, both excluded, .* `norm='l2'`, at 1 `norm='l1'`"
    with pytest.raises(InputError, match=words):
        FamilyPenalty.from_strengths(np.ones(1), "elastic", ratio)


@pytest.mark.parametrize("bad", [-1.0, np.nan, -np.inf])
@pytest.mark.parametrize("name", ["l1", "l2"])
def test_strengths_must_not_be_negative(bad, name):
    """The message names the part and the value; NaN is no strength either."""
    parts = {"l1": np.ones(2), "l2": np.ones(2)}
    parts[name] = np.array([1.0, bad])
    with pytest.raises(InputError, match=f"must not be negative: got {name} = {bad}"):
        FamilyPenalty(**parts)


def test_l2_strengths_are_all_zero_or_all_positive():
    """A free family beside a penalised one has no harmonic mean."""
    with pytest.raises(InputError, match="zero for all families or positive for all"):
        FamilyPenalty(np.ones(2), np.array([0.0, 1.0]))
    FamilyPenalty(np.ones(2), np.zeros(2))


@pytest.mark.parametrize("power", [0.5, 0.25])
def test_count_power_multiplies_the_l2_strength(power):
    """A feature's l2 strength is its family's times n ** power, n the tokens with its attribute; l1 stays."""
    words = [["often", "often", "once"], ["often", "twice", "twice"]]
    family = Family("word", (Template(((0, "word"),)),))
    problem = build_problem(intern_sentences(words), np.zeros(6, np.uint32), 2, [family])
    bound = FamilyPenalty(np.array([0.1]), np.array([0.3]), power).bind(problem)
    for column, n in enumerate(np.diff(problem.columns.ptr)):
        groups = bound.groups_of(problem.join_features(np.array([column]), 1, np.array([1])))
        assert bound.group_thresholds[groups] == [0.1]
        assert bound.smooth(groups, np.array([2.0]))[0] == pytest.approx(0.3 * n**power * 2.0)
        assert bound.conjugate(groups, np.array([0.5])) == pytest.approx(0.4**2 / (2 * 0.3 * n**power))
        assert bound.shares(int(groups[0]), 2.0) == [(0, pytest.approx(2.0))]
        assert bound.member_sources[bound.ptr[groups[0]] : bound.ptr[groups[0] + 1]].tolist() == [0]
    with pytest.raises(InputError, match="`count_power` must be a number"):
        FamilyPenalty(np.ones(1), np.ones(1), np.nan)


@pytest.mark.parametrize("on", ["l1", "l2", "elastic", "lp"])
@pytest.mark.parametrize("off", ["l1", "l2", "elastic", "lp"])
def test_a_family_that_is_off_has_no_norm(on, off):
    """Strengths, and what they make of features, are those of the others' norm; features of the family stay at 0."""
    families = [Family("words", (Template(((0, "word"),)),)), Family("first", (Template(((0, "prefix:1"),)),))]
    problem = build_problem(intern_sentences([["a", "bc"], ["bd"]]), np.zeros(3, np.uint32), 2, families)
    found = FamilyPenalty.from_strengths(np.array([0.5, np.inf]), [on, off])
    plain = FamilyPenalty.from_strengths(np.array([0.5, np.inf]), on)
    assert found.has_l2 == (on != "l1")
    columns = np.arange(len(problem.columns), dtype=np.uint32)
    features = problem.join_features(columns, 1, np.zeros(len(columns), np.uint32))
    bounds = [penalty.bind(problem) for penalty in (found, plain)]
    thresholds = [bound.thresholds(features) for bound in bounds]
    np.testing.assert_array_equal(*thresholds)
    assert 0 < np.count_nonzero(np.isinf(thresholds[0])) < len(features)
    features = features[np.isfinite(thresholds[0])]
    w = np.linspace(-1.0, 2.0, len(features))
    for take in (
        lambda bound: bound.smooth(bound.groups_of(features), w)[0],
        lambda bound: bound.split(bound.groups_of(features), w)[2],
    ):
        np.testing.assert_array_equal(*map(take, bounds))
