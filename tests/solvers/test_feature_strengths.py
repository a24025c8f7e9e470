"""Strengths of single features: the same optimum with and without reductions, and what enumeration says of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from enumeration import Enumeration, all_candidates, column_of, families_of, feature_of
from small_problems import WORD, cases
from vcrf import M3N, VCRF, load
from vcrf.complexity import feature_complexities
from vcrf.errors import InputError
from vcrf.families import Family, Template, intern_sentences
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem
from vcrf.solvers.result import Status
from vcrf.solvers.working_set import solve

few = settings(max_examples=25)
norms = st.sampled_from(["l1", "l2", "elastic"])
small = {"max_labels": 3, "max_tags": 2, "max_length": 3, "max_sentences": 3}


def penalty_for(problem, complexity, base, norm, count_power=0.0):
    """The penalty that the estimator makes for a problem."""
    found = feature_complexities(problem)
    own = complexity * found.factors, found.sizes, found.mean_sizes
    return FamilyPenalty.from_strengths(np.full(len(problem.families), base), norm, count_power=count_power, own=own)


def complexity_of(problem, feature, family):
    """r_j from its definition, token by token."""
    lengths = np.diff(problem.sent_ptr).tolist()
    tags = {f.tags for f in problem.families}
    sizes = [sum(max(n - k + 1, 0) for k in tags) for n in lengths]
    variance = 0.0
    for position, value in column_of(problem, feature.column).items():
        i = int(np.searchsorted(problem.sent_ptr, position, side="right")) - 1
        if position - problem.sent_ptr[i] >= feature.k - 1:
            variance += sizes[i] * value**2
    members = problem.families[family].sources
    n_attributes = sum(int(problem.columns.n_attributes[problem.sources.index(s)]) for s in members)
    n_features = max(n_attributes * problem.n_labels**feature.k, 1)
    log = math.log(2.0 * len(problem.families) * n_features)
    return math.sqrt(2.0 * (variance or 1.0) * log) / max(len(lengths), 1)


@st.composite
def training(draw, norm=None, **options):
    """A case with strengths: complexity, base, norm and power of counts."""
    case = draw(cases(**{**small, **options}))
    norm = draw(norms) if norm is None else norm
    complexity, base = draw(st.sampled_from([(0.03, 0.0), (0.1, 0.0), (0.02, 0.02), (0.3, 0.05)]))
    return case, (complexity, base, norm, draw(st.sampled_from([0.0, 0.0, 0.35])))


def fit(case, given_strengths, **options):
    """Solve with the case's loss."""
    penalty = penalty_for(case.problem, *given_strengths)
    return solve(case.problem, penalty, costs=case.costs, **{"tol": 1e-8, **options})


@few
@given(training())
def test_strengths_are_the_formula(found):
    """Every member of every merged feature pays base + complexity * r_j, in the parts of the norm; cheapest first."""
    case, (complexity, base, norm, power) = found
    problem = case.problem
    bound = penalty_for(problem, complexity, base, norm, power).bind(problem)
    ratio = {"l1": 1.0, "l2": 0.0, "elastic": 0.5}[norm]
    for feature in all_candidates(problem):
        number = np.array([feature.column * problem.space.stride + problem.space.offsets[feature.k] + feature.code])
        (group,) = bound.groups_of(number)
        part = slice(bound.ptr[group], bound.ptr[group + 1])
        families = bound.member_families[part].tolist()
        assert sorted(families) == sorted(families_of(problem, feature.column, feature.k))
        assert np.all(np.diff(bound.member_l1[part]) >= 0.0)
        n = max(len(column_of(problem, feature.column)), 1) ** power
        for f, source, l1, l2 in zip(
            families, bound.member_sources[part], bound.member_l1[part], bound.member_l2[part], strict=True
        ):
            strength = base + complexity * complexity_of(problem, feature, f)
            assert (l1, l2) == pytest.approx((ratio * strength, (1.0 - ratio) * strength * n), rel=1e-12)
            assert problem.family_of[source, feature.k] == f
        assert bound.thresholds(number).tolist() == [bound.member_l1[part].min()]
        assert bound.column_thresholds(feature.k)[feature.column] == bound.member_l1[part].min()


@settings(max_examples=40)
@given(training())
def test_reaches_the_optimum_that_scipy_finds(found):
    """Over all candidates of the unmerged problem, each with a strength from the definition; the gap is honest."""
    case, given_strengths = found
    complexity, base, norm, power = given_strengths
    unmerged = case.rebuilt(merge_twins=False)
    every = all_candidates(unmerged.problem)
    strengths = np.zeros(len(every))
    scales = np.zeros(len(every))
    for j, feature in enumerate(every):
        (family,) = families_of(unmerged.problem, feature.column, feature.k)
        strengths[j] = base + complexity * complexity_of(unmerged.problem, feature, family)
        scales[j] = max(len(column_of(unmerged.problem, feature.column)), 1) ** power
    ratio = {"l1": 1.0, "l2": 0.0, "elastic": 0.5}[norm]
    optimum, _ = Enumeration(unmerged.problem, every, case.costs).minimum(
        ratio * strengths, (1.0 - ratio) * strengths * scales
    )
    result = fit(case, given_strengths)
    assert result.objective == pytest.approx(optimum, rel=1e-7, abs=1e-8)
    assert result.objective - optimum <= result.gap + 1e-9


@few
@given(training())
def test_reductions_change_nothing(found):
    """Twins apart, and columns that count screening would drop: the same objective."""
    case, given_strengths = found
    result = fit(case, given_strengths)
    assert result.status is Status.CONVERGED
    apart = fit(case.rebuilt(merge_twins=False), given_strengths)
    assert apart.objective == pytest.approx(result.objective, rel=1e-7, abs=1e-9)
    unscreened = fit(case, given_strengths, screen=False)
    assert unscreened.objective == pytest.approx(result.objective, rel=1e-7, abs=1e-9)


@few
@given(st.data())
def test_largest_ratio_is_the_largest_useful_strength(data):
    """Just above max_j |g_j(0)| / r_j all weights are zero, just below one is not, and KKT holds for all."""
    case = data.draw(cases(**{**small, "merge_twins": False}))
    problem = case.problem
    candidates = all_candidates(problem)
    gradients = Enumeration(problem, [], case.costs).gradients(np.zeros(0), candidates)
    r = np.array([complexity_of(problem, f, families_of(problem, f.column, f.k)[0]) for f in candidates])
    largest = float((np.abs(gradients) / r).max(initial=0.0))
    assume(largest > 1e-3)
    above = fit(case, (largest * (1.0 + 1e-6), 0.0, "l1"), tol=1e-12)
    assert (above.status, len(above.features)) == (Status.CONVERGED, 0)
    strength = largest * (1.0 - 1e-3)
    below = fit(case, (strength, 0.0, "l1"), tol=1e-12)
    assert len(below.features) > 0
    used = [feature_of(problem, n) for n in below.features]
    now = Enumeration(problem, used, case.costs).gradients(below.weights, candidates)
    slack = 1e-5
    assert np.all(np.abs(now) <= strength * r * (1.0 + slack) + slack)


def test_the_cheapest_twin_may_differ_from_column_to_column():
    """A family with a low base and one with few features: which of two twins pays less depends on the count."""
    words = [["often"] * 9 + ["once"]]
    lower = Family("lower", (WORD,))
    kinds = Family("kinds", (Template(((0, "lower"),)),))
    problem = build_problem(intern_sentences(words), np.zeros(10, np.uint32), 2, [lower, kinds])
    sizes = np.ones((2, len(problem.columns)))
    sizes[1] = np.diff(problem.columns.ptr)
    own = np.array([0.1, 0.3]), sizes, np.ones(2)
    bound = FamilyPenalty.from_strengths(np.array([1.0, 0.5]), "l1", own=own).bind(problem)
    assert len(problem.columns) == 2
    for column, n in enumerate(np.diff(problem.columns.ptr)):
        (group,) = bound.groups_of(problem.join_features(np.array([column]), 1, np.array([0])))
        cheapest = 0 if 1.0 + 0.1 * n < 0.5 + 0.3 * n else 1
        assert bound.member_families[bound.ptr[group]] == cheapest
        assert bound.shares(int(group), 2.0) == [(0, 2.0)]
        assert problem.sources[bound.member_sources[bound.ptr[group]]] in [lower, kinds][cheapest].sources


X = [["the", "cat", "sleeps"], ["a", "dog", "sleeps"], ["the", "dog", "barks", "here"], ["cats", "sleep"]]
Y = [["D", "N", "V"], ["D", "N", "V"], ["D", "N", "V", "A"], ["N", "V"]]


@pytest.mark.parametrize("estimator", [VCRF, M3N])
@pytest.mark.parametrize("norm", ["l1", "l2", "elastic", "group"])
def test_every_norm_and_solver_takes_them(estimator, norm):
    """The gap is certified without any base strength, and without complexities they are nothing."""
    loss = {"loss": "hamming"} if estimator is VCRF else {}
    tagger = estimator(
        recipe="paper",
        complexities="feature",
        complexity_strength=0.02,
        base_strength=0.0,
        norm=norm,
        tol=1e-2,
        affix=2,
        **loss,
    ).fit(X, Y)
    assert tagger.gap_ <= 1e-2 * tagger.objective_
    assert tagger.predict(X) == Y
    alike = estimator(
        recipe="paper", complexities="feature", complexity_strength=0.0, base_strength=0.02, norm=norm, affix=2, **loss
    )
    assert {family.l1 + family.l2 for family in alike.fit(X, Y).families_} == {0.02}


def test_path_and_tune_take_them():
    """Strengths fall along the path; the default grid of `tune` follows the mean complexity."""
    tagger = VCRF(recipe="paper", complexities="feature", norm="l1", affix=2)
    found = list(tagger.path(X, Y, [(0.01, 0.01), (0.1, 0.0), (0.0, 0.05)]))
    strengths = [np.mean([family.l1 for family in point.families_]) for point in found]
    assert sorted(strengths, reverse=True) == strengths
    assert {point.complexity_strength for point in found} == {0.01, 0.1, 0.0}
    alone = VCRF(
        recipe="paper", complexities="feature", norm="l1", affix=2, complexity_strength=0.01, base_strength=0.01
    ).fit(X, Y)
    (same,) = (point for point in found if point.complexity_strength == 0.01)
    assert same.objective_ == pytest.approx(alone.objective_, rel=2e-3)
    tuned = tagger.tune(X, Y, X, Y, base_strengths=[0.01])
    typical = np.mean([family.complexity for family in tuned.estimator.families_])
    assert sorted(row.complexity_strength for row in tuned.rows) == pytest.approx(
        [c / (len(X) * typical) for c in (0.0, 0.1, 0.3, 1.0)]
    )


def test_the_model_file_keeps_them(tmp_path):
    """The parameter, the means of the families and the labels come back."""
    tagger = VCRF(recipe="paper", complexities="feature", complexity_strength=0.02, base_strength=0.01, affix=2).fit(
        X, Y
    )
    tagger.save(tmp_path / "m.vcrf")
    again = load(tmp_path / "m.vcrf")
    assert again.complexities == "feature"
    assert again.families_ == tagger.families_
    assert again.predict(X) == tagger.predict(X)
    assert again.fit(X, Y).objective_ == tagger.objective_
    by_name = {family.name: family for family in tagger.families_}
    assert by_name["word"].l1 == pytest.approx(0.01 + 0.02 * by_name["word"].complexity)


def test_strengths_of_another_problem_are_refused():
    """Sizes belong to columns; and no part is negative."""
    one, other = (
        build_problem(intern_sentences([words]), np.zeros(len(words), np.uint32), 2, [Family("word", (WORD,))])
        for words in (["a", "b"], ["a", "b", "c"])
    )
    with pytest.raises(InputError, match="of another problem"):
        penalty_for(one, 0.1, 0.1, "l1").bind(other)
    with pytest.raises(InputError, match=r"own l1 = -1\.0"):
        FamilyPenalty.from_strengths(np.ones(1), "l1", own=(-np.ones(1), np.ones((2, 2)), np.ones(1)))
