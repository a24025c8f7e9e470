"""The solver: optimum, certificate and optimality conditions against enumeration; reductions change nothing."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from enumeration import (
    Enumeration,
    Feature,
    all_candidates,
    column_of,
    families_of,
    feature_of,
    number_of,
    sources_of,
)
from small_problems import WORD, Case, cases, count_scale, penalty_of, strengths
from vcrf import VCRF
from vcrf.families import BIAS, Family, NamedFeature, intern_sentences, paper_families, read_attributes
from vcrf.families.text import Text
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem
from vcrf.solvers.newton_phase import NewtonPhase
from vcrf.solvers.result import Status
from vcrf.solvers.working_set import solve, solve_path
from vcrf.structures import chain

few = settings(max_examples=25)
norms = st.sampled_from(["l1", "l2", "elastic"])
small = {"max_labels": 3, "max_tags": 2, "max_length": 3, "max_sentences": 3}
tight = 1e-8


@st.composite
def training(draw, norm=None, **options):
    """A case with a penalty."""
    case = draw(cases(**{**small, **options}))
    norm = draw(norms) if norm is None else norm
    count_power = draw(st.sampled_from([0.0, 0.0, 0.25, 0.5]))
    return case, FamilyPenalty.from_strengths(draw(strengths(case)), norm, count_power=count_power)


def fit(case, penalty, tol=tight, **options):
    """Solve with the case's loss."""
    return solve(case.problem, penalty, costs=case.costs, tol=tol, **options)


def weights_of(case, result):
    """Return {feature: weight}."""
    return dict(zip((feature_of(case.problem, n) for n in result.features), result.weights, strict=True))


def objective_at(case, penalty, weights):
    """Enumerated value plus the naive penalty at {feature: weight}."""
    features, w = list(weights), np.array(list(weights.values()))
    value = Enumeration(case.problem, features, case.costs).value(w) if features else value_at_zero(case)
    return value + penalty_of(case.problem, penalty, features, w)


def value_at_zero(case):
    """Value without weights: the log of the summed exponentials of the loss."""
    return Enumeration(case.problem, [], case.costs).value(np.zeros(0))


def reference(case, penalty):
    """Optimum over all candidates of the unmerged problem, by scipy on the enumerated objective."""
    unmerged = case.rebuilt(merge_twins=False)
    every = all_candidates(unmerged.problem)
    l1, l2 = unmerged.strengths(penalty.l1, every), unmerged.strengths(penalty.l2, every)
    l2 = l2 * np.array([count_scale(unmerged.problem, penalty, feature) for feature in every])
    enumeration = Enumeration(unmerged.problem, every, case.costs)
    optimum, w = enumeration.minimum(l1, l2)
    return optimum, dict(zip(every, w, strict=True)), unmerged


def check_certificate(case, penalty, result):
    """The result's objective is that of its weights, and its gap is not below the true suboptimality."""
    assert np.all(np.diff(result.features) > 0)
    assert np.all(result.weights != 0.0)
    assert result.objective == pytest.approx(objective_at(case, penalty, weights_of(case, result)), rel=1e-9, abs=1e-9)
    optimum, _, _ = reference(case, penalty)
    assert result.objective - optimum <= result.gap + 1e-9
    return optimum


def toy(n_labels=3, seed=0, n_sentences=6, length=5):
    """A fixed case that takes several rounds."""
    rng = np.random.default_rng(seed)
    words = [[str(rng.choice(["a", "b", "ab", "ba", "é"])) for _ in range(length)] for _ in range(n_sentences)]
    text = intern_sentences(words)
    y = rng.integers(0, n_labels, text.n_tokens).astype(np.uint32)
    families = paper_families(1, 2, 1)
    problem = build_problem(text, y, n_labels, families)
    return Case(text, y, n_labels, families, None, np.zeros(n_sentences), problem)


def l1_of(case, strength):
    """The same l1 strength for all families."""
    return FamilyPenalty(np.full(len(case.families), strength), np.zeros(len(case.families)))


# ---- optimum ----


@settings(max_examples=40)
@given(training())
def test_reaches_the_optimum_of_the_unmerged_problem(found):
    """Screening, working sets and merged twins do not change the optimum that scipy finds over all candidates."""
    case, penalty = found
    result = fit(case, penalty)
    optimum = check_certificate(case, penalty, result)
    assert result.objective == pytest.approx(optimum, rel=1e-7, abs=1e-8)


@few
@given(training(max_labels=2, max_tags=4, min_tags=3, max_length=4))
def test_reaches_the_optimum_of_longer_patterns(found):
    """The same with patterns of 3 and 4 labels, where there is no exact Hessian."""
    case, penalty = found
    result = fit(case, penalty, tol=1e-6)
    assert result.status is Status.CONVERGED
    optimum = check_certificate(case, penalty, result)
    assert result.objective == pytest.approx(optimum, rel=1e-6, abs=1e-8)


@settings(max_examples=60)
@given(training(max_length=4, max_sentences=5))
def test_small_gaps_are_reached(found):
    """A relative gap below 1e-8 is reached for every norm."""
    case, penalty = found
    result = fit(case, penalty, tol=1e-8)
    assert result.status is Status.CONVERGED
    assert result.gap <= 1e-8 * result.objective
    assert result.relative_gap <= 1e-8


@few
@given(training(), st.sampled_from([0.5, 1e-1, 1e-2, 1e-3, 1e-5]))
def test_gap_bounds_the_suboptimality(found, tol):
    """Whatever the tolerance, the true suboptimality is below the reported gap."""
    case, penalty = found
    result = fit(case, penalty, tol=tol)
    assert result.gap <= tol * result.objective
    check_certificate(case, penalty, result)


@few
@given(training(norm="l1"))
def test_all_candidates_satisfy_the_optimality_conditions_of_l1(found):
    """Gradient -c sign(w) where there is weight and within c elsewhere, for every candidate, recomputed naively."""
    case, penalty = found
    check_kkt(case, penalty, fit(case, penalty))


@few
@given(training(merge_twins=False))
def test_all_candidates_satisfy_the_optimality_conditions(found):
    """For every norm, without merging, so that each feature has one family's strengths."""
    case, penalty = found
    check_kkt(case, penalty, fit(case, penalty))


def check_kkt(case, penalty, result):
    """Recompute the gradient of every candidate by enumeration."""
    weights = weights_of(case, result)
    candidates = all_candidates(case.problem)
    assert set(weights) <= set(candidates)
    gradients = Enumeration(case.problem, list(weights), case.costs).gradients(result.weights, candidates)
    # The gap is quadratic in the violation.
    slack = 10.0 * np.sqrt(max(result.gap, 1e-13))
    for feature, g in zip(candidates, gradients, strict=True):
        members = families_of(case.problem, feature.column, feature.k)
        l1, w = penalty.l1[members].min(), weights.get(feature, 0.0)
        smooth = g + penalty.l2[members[0]] * count_scale(case.problem, penalty, feature) * w
        if w == 0.0:
            assert abs(smooth) <= l1 + slack
        else:
            assert smooth == pytest.approx(-l1 * np.sign(w), abs=slack)


@few
@given(st.data())
def test_observed_candidates_only(data):
    """With candidates restricted, the optimum over the observed pairs; nothing else gets a weight."""
    restricted = data.draw(st.sampled_from(["observed", ("observed", "all"), ("all", "observed")]))
    case, penalty = data.draw(training(candidates=restricted))
    result = fit(case, penalty)
    assert set(weights_of(case, result)) <= set(all_candidates(case.problem))
    optimum = check_certificate(case, penalty, result)
    assert result.objective == pytest.approx(optimum, rel=1e-7, abs=1e-8)


@few
@given(training(max_labels=1))
def test_one_label_needs_no_weights(found):
    """Nothing to learn: no weights, objective 0, converged."""
    case, penalty = found
    result = fit(case, penalty)
    assert result.status is Status.CONVERGED
    assert np.all(np.abs(result.weights) < 1e-6)
    assert result.objective == pytest.approx(0.0, abs=1e-12)
    assert result.gap == pytest.approx(0.0, abs=1e-12)


@few
@given(training(max_sentences=1))
def test_one_sentence(found):
    """A corpus of one sentence, the empty one included."""
    case, penalty = found
    result = fit(case, penalty)
    optimum = check_certificate(case, penalty, result)
    assert result.objective == pytest.approx(optimum, rel=1e-7, abs=1e-8)


@few
@given(training(loss=True))
def test_loss_augmented_training(found):
    """The normalised Hamming loss inside the log-sum-exp: a bound on the loss itself."""
    case, penalty = found
    result = fit(case, penalty)
    optimum = check_certificate(case, penalty, result)
    assert result.objective == pytest.approx(optimum, rel=1e-7, abs=1e-8)
    plain = solve(case.problem, penalty, tol=tight)
    assert result.objective >= plain.objective - 1e-9


# ---- strengths at the ends ----


@few
@given(st.data())
def test_largest_gradient_is_the_largest_useful_strength(data):
    """Just above the largest |gradient at 0| all weights are zero, just below one is not."""
    case = data.draw(cases(**small))
    candidates = all_candidates(case.problem)
    gradients = Enumeration(case.problem, [], case.costs).gradients(np.zeros(0), candidates)
    largest = float(np.abs(gradients).max(initial=0.0))
    assume(largest > 1e-3)
    above, below = (fit(case, l1_of(case, largest * factor), tol=1e-12) for factor in (1.0 + 1e-6, 1.0 - 1e-3))
    assert len(above.features) == 0
    assert above.status is Status.CONVERGED
    assert above.objective == pytest.approx(value_at_zero(case), rel=1e-12)
    assert len(below.features) > 0


@few
@given(st.data())
def test_infinite_strength_switches_a_family_off(data):
    """The same optimum as without the family, under every norm and choice of candidates."""
    case, penalty = data.draw(training(candidates=data.draw(st.sampled_from(["all", "observed"]))))
    assume(len(case.families) > 1)
    off = data.draw(st.integers(0, len(case.families) - 1))
    l1 = penalty.l1.copy()
    l1[off] = np.inf
    result = fit(case, replace(penalty, l1=l1))
    rest = [i for i in range(len(case.families)) if i != off]
    problem = build_problem(
        case.text,
        case.y,
        case.n_labels,
        [case.families[i] for i in rest],
        weights=case.weights,
        candidates=case.problem.candidates,
    )
    other = solve(problem, replace(penalty, l1=penalty.l1[rest], l2=penalty.l2[rest]), costs=case.costs, tol=tight)
    assert result.objective == pytest.approx(other.objective, rel=1e-8, abs=1e-9)
    for f in weights_of(case, result):
        assert families_of(case.problem, f.column, f.k) != [off]


@pytest.mark.parametrize("free", ["all", "some"])
def test_strength_zero_is_uncertified(free):
    """Without a strength there is no bound; the run ends all the same, below the penalised objective."""
    case = toy()
    l1 = np.zeros(len(case.families))
    if free == "some":
        l1[1:] = 0.1
    result = solve(case.problem, FamilyPenalty(l1, np.zeros(len(l1))))
    assert result.status is Status.UNCERTIFIED
    assert result.gap == np.inf
    assert result.n_passes <= 201
    penalised = solve(case.problem, l1_of(case, 0.1), tol=1e-6)
    assert result.objective < penalised.objective


def test_strength_zero_at_a_minimiser_is_uncertified():
    """Labels without any information: the gradient vanishes at 0, but that is no certificate."""
    text = intern_sentences([["a"], ["a"]])
    problem = build_problem(text, np.array([0, 1], np.uint32), 2, [Family("word", (WORD,))])
    result = solve(problem, FamilyPenalty(np.zeros(1), np.zeros(1)))
    assert result.status is Status.UNCERTIFIED
    assert result.objective == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("inference", ["dense", "patterns"])
def test_strength_zero_down_to_an_objective_of_zero(inference):
    """Labels that the words tell: the objective underflows on the way."""
    X = [["a", "b", "c", "a"], ["b", "c"], ["c"]] * 2
    y = [["A", "B", "A", "B"], ["B", "A"], ["A"]] * 2
    tagger = VCRF(recipe="paper", tags=3, base_strength=0, inference=inference, max_passes=2000, n_jobs=1)
    with pytest.warns(ConvergenceWarning):
        tagger.fit(X, y)
    assert tagger.status_ is Status.UNCERTIFIED
    assert abs(tagger.objective_) < 1e-6


# ---- reductions ----


def expand(case, unmerged, penalty, result):
    """Weights of the unmerged problem from the shares of the merged ones."""
    bound = penalty.bind(case.problem)
    columns = {}
    for c in range(len(unmerged.problem.columns)):
        (source,) = sources_of(unmerged.problem, c)
        columns.setdefault((source, frozenset(column_of(unmerged.problem, c).items())), []).append(c)
    weights, taken = {}, {}
    for feature, w in weights_of(case, result).items():
        (group,) = bound.groups_of(np.array([number_of(case.problem, feature)], np.int64))
        sources = bound.member_sources[bound.ptr[group] : bound.ptr[group + 1]]
        where = frozenset(column_of(case.problem, feature.column).items())
        for member, share in bound.shares(int(group), float(w)):
            source = case.problem.sources[sources[member]]
            # Twins inside one source are columns of their own: the copies take turns.
            copies = columns[source, where]
            turn = taken.setdefault((source, where), {}).setdefault(feature.column, len(taken[source, where]))
            weights[Feature(copies[turn], feature.k, feature.code)] = share
    return weights


@settings(max_examples=40)
@given(training())
def test_merged_twins_share_their_weight_at_no_cost(found):
    """Splitting the merged weights by `shares` gives weights of the unmerged problem with the same objective."""
    case, penalty = found
    merged = fit(case, penalty)
    unmerged = case.rebuilt(merge_twins=False)
    shares = expand(case, unmerged, penalty, merged)
    assert objective_at(unmerged, penalty, shares) == pytest.approx(merged.objective, rel=1e-9, abs=1e-10)
    alone = fit(unmerged, penalty)
    assert alone.objective == pytest.approx(merged.objective, rel=1e-8, abs=1e-9)
    if np.any(penalty.l2):
        # Strictly convex: one solution.
        direct = weights_of(unmerged, alone)
        for feature in set(shares) | set(direct):
            assert shares.get(feature, 0.0) == pytest.approx(direct.get(feature, 0.0), abs=1e-3)


@few
@given(training())
def test_screened_columns_carry_no_weight(found):
    """Without screening the optimum is the same, and what screening drops has no weight in scipy's optimum."""
    case, penalty = found
    screened, full = fit(case, penalty), fit(case, penalty, screen=False)
    assert screened.objective == pytest.approx(full.objective, rel=1e-9, abs=1e-10)
    _, weights, unmerged = reference(case, penalty)
    mass = unmerged.problem.column_mass
    for feature, w in weights.items():
        (family,) = families_of(unmerged.problem, feature.column, feature.k)
        if mass[feature.column] < penalty.l1[family] - 1e-6:
            assert abs(w) < 1e-4
    kept = 0
    for c, most in enumerate(case.problem.column_mass):
        families = [f for k in range(1, case.problem.order + 1) for f in families_of(case.problem, c, k)]
        kept += bool(np.any(most > penalty.l1[families]))
    assert screened.n_kept_columns == kept
    assert full.n_kept_columns == len(case.problem.columns)


# ---- starts and paths ----


@few
@given(training(), st.data())
def test_warm_start_reaches_the_same_objective(found, data):
    """From the solution at other strengths, under another norm, and from the solution itself."""
    case, penalty = found
    cold = fit(case, penalty)
    other = FamilyPenalty.from_strengths(data.draw(strengths(case)), data.draw(norms))
    for start in (fit(case, other, tol=1e-3), cold):
        warm = fit(case, penalty, start=start)
        assert warm.objective == pytest.approx(cold.objective, rel=1e-8, abs=1e-9)


@few
@given(st.data())
def test_start_with_features_that_are_switched_off_now(data):
    """Weights of a family whose strength became infinite are dropped from the start."""
    case, penalty = data.draw(training(norm="l1"))
    start = fit(case, penalty, tol=1e-3)
    l1 = penalty.l1.copy()
    l1[data.draw(st.integers(0, len(l1) - 1))] = np.inf
    strong = replace(penalty, l1=l1)
    warm, cold = fit(case, strong, start=start), fit(case, strong)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-8, abs=1e-9)


def test_start_with_pairs_of_a_word_that_are_switched_off_now():
    """The column itself stays: only its patterns of length 2 lose their family."""
    text = intern_sentences([["a", "b", "a"], ["b", "a", "b"]])
    y = np.array([0, 1, 1, 1, 0, 1], np.uint32)
    problem = build_problem(text, y, 2, [Family("word", (WORD,)), Family("word pairs", (WORD,), 2)])
    start = solve(problem, FamilyPenalty(np.array([0.1, 0.01]), np.zeros(2)))
    assert np.any(problem.split_features(start.features)[1] == 2)
    strong = FamilyPenalty(np.array([0.01, np.inf]), np.zeros(2))
    warm, cold = solve(problem, strong, tol=tight, start=start), solve(problem, strong, tol=tight)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-8)
    assert np.all(problem.split_features(warm.features)[1] == 1)


@few
@given(st.data())
def test_path_equals_separate_runs(data):
    """Each point of a path has the objective of a run of its own."""
    case = data.draw(cases(**small))
    norm = data.draw(norms)
    path = [FamilyPenalty.from_strengths(np.full(len(case.families), c), norm) for c in (0.3, 0.1, 0.03, 0.01)]
    results = list(solve_path(case.problem, path, tol=tight, costs=case.costs))
    assert len(results) == len(path)
    for penalty, result in zip(path, results, strict=True):
        assert result.objective == pytest.approx(fit(case, penalty).objective, rel=1e-8, abs=1e-9)
    assert all(a.objective >= b.objective - 1e-9 for a, b in pairwise(results))


# ---- same bytes ----


@few
@given(training(max_sentences=5, max_length=4, max_tags=2), st.integers(1, 4))
def test_runs_and_threads_give_the_same_bytes(found, n_tokens):
    """Two runs, and 1 or 2 threads, agree in every bit of weights, objective and gap."""
    case, penalty = found
    saved = chain._TOKENS_PER_BLOCK
    chain._TOKENS_PER_BLOCK = n_tokens  # several blocks, so that the threads share the work
    try:
        results = [fit(case, penalty, tol=1e-6, threads=threads) for threads in (1, 1, 2)]
    finally:
        chain._TOKENS_PER_BLOCK = saved
    first = results[0]
    for other in results[1:]:
        assert other.features.tobytes() == first.features.tobytes()
        assert other.weights.tobytes() == first.weights.tobytes()
        assert (other.objective, other.gap, other.n_passes) == (first.objective, first.gap, first.n_passes)


def test_arguments_are_left_unchanged():
    """Penalty, start and labels are not written to."""
    case = toy()
    penalty = l1_of(case, 0.05)
    start = solve(case.problem, l1_of(case, 0.2))
    before = [a.copy() for a in (penalty.l1, penalty.l2, start.features, start.weights, case.y, case.costs)]
    fit(case, penalty, start=start)
    for old, new in zip(
        before, (penalty.l1, penalty.l2, start.features, start.weights, case.y, case.costs), strict=True
    ):
        np.testing.assert_array_equal(old, new)


# ---- stopping ----


def stop_at(n, how):
    """Return a callback that stops at its n-th call."""
    calls = []

    def callback(record):
        calls.append(record)
        if len(calls) == n:
            if how == "interrupt":
                raise KeyboardInterrupt
            return True
        return None

    return callback


@pytest.mark.parametrize("how", ["return", "interrupt"])
@pytest.mark.parametrize("norm", ["l1", "l2", "elastic"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_interrupted_run_returns_the_best_weights(n, norm, how):
    """Stopping from the callback, by value or by Ctrl-C, keeps the best weights and their certificate."""
    case = toy()
    penalty = FamilyPenalty.from_strengths(np.full(len(case.families), 0.02), norm)
    full = fit(case, penalty)
    result = fit(case, penalty, callback=stop_at(n, how))
    # The last scan may find that the interrupted weights are already good enough: the gap decides, nothing else.
    is_stopped = n <= len(full.history) and result.relative_gap > tight
    assert result.status is (Status.INTERRUPTED if is_stopped else Status.CONVERGED)
    assert result.objective <= min(record.objective for record in result.history) + 1e-12
    assert np.isfinite(result.gap)
    assert result.objective - result.gap <= full.objective + 1e-9
    assert result.objective == pytest.approx(objective_at(case, penalty, weights_of(case, result)), rel=1e-9)


@settings(max_examples=40)
@given(training(), st.integers(1, 12), st.sampled_from(["return", "interrupt"]))
def test_any_interruption_is_certified(found, n, how):
    """On any problem and at any record: the right status, and a gap not below the true suboptimality."""
    case, penalty = found
    result = fit(case, penalty, callback=stop_at(n, how))
    assert result.status in (Status.INTERRUPTED, Status.CONVERGED)
    assert result.status is Status.CONVERGED or len(result.history) >= n
    check_certificate(case, penalty, result)


@settings(max_examples=60)
@given(training(), st.integers(1, 40))
def test_pass_limit_returns_the_best_weights(found, max_passes):
    """The limit is kept (but for a scan, a Hessian and the final scan), with a certificate and the right status."""
    case, penalty = found
    result = fit(case, penalty, max_passes=max_passes)
    assert result.status in (Status.MAX_PASSES, Status.CONVERGED)
    assert result.n_passes <= max_passes + 3
    if result.status is Status.MAX_PASSES:
        assert result.gap > tight * result.objective
    check_certificate(case, penalty, result)


@pytest.mark.parametrize("max_passes", [*range(1, 31), 40, 50, 60])
def test_pass_limit_on_a_longer_run(max_passes):
    """Wherever the limit falls, the objective is not above that of the best record so far."""
    case = toy()
    result = fit(case, l1_of(case, 0.01), max_passes=max_passes)
    assert result.status in (Status.MAX_PASSES, Status.CONVERGED)
    assert result.n_passes <= max_passes + 3
    assert result.objective <= value_at_zero(case) + 1e-12
    assert result.objective <= min(record.objective for record in result.history) + 1e-12
    assert result.objective == pytest.approx(objective_at(case, l1_of(case, 0.01), weights_of(case, result)), rel=1e-9)


def test_records_follow_the_run():
    """Passes and the best objective of the records are monotone; the last record is the result."""
    case = toy()
    seen = []
    result = fit(case, l1_of(case, 0.02), tol=1e-8, callback=lambda record: seen.append(record))
    assert seen == result.history
    assert [r.n_passes for r in seen] == sorted(r.n_passes for r in seen)
    gaps = [r.gap for r in seen if r.phase == "scan"]
    assert gaps == sorted(gaps, reverse=True)
    assert seen[-1].gap == result.gap
    assert seen[-1].n_active == len(result.features)


@few
@given(training())
def test_kkt_violation_vanishes_at_the_optimum(found):
    """The reported violation is that of the optimality conditions: small at a tight solution, for every norm."""
    case, penalty = found
    result = fit(case, penalty)
    assert 0.0 <= result.kkt_violation <= 0.01


# ---- special equals general, metamorphic ----


def regression(norm, strength, n_sentences):
    """Scikit-learn's multinomial logistic regression of the same objective (times m)."""
    is_new = signature(LogisticRegression).parameters["penalty"].default == "deprecated"
    kind = {"l1_ratio": {"l1": 1.0, "l2": 0.0}[norm]} if is_new else {"penalty": norm}
    return LogisticRegression(
        C=1.0 / (n_sentences * strength), fit_intercept=False, tol=1e-10, max_iter=100_000, random_state=0,
        solver={"l1": "saga", "l2": "lbfgs"}[norm], **kind,
    )  # fmt: skip


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_single_tokens_are_multinomial_logistic_regression(norm, seed):
    """Sentences of one token with rows of numbers: the objective of scikit-learn's solution."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, 4))
    y = np.concatenate([np.arange(3), rng.integers(0, 3, 27)]).astype(np.uint32)
    text = read_attributes([[row] for row in rows])
    families = [Family("numbers", tuple(NamedFeature(name) for name in text.source_names))]
    problem = build_problem(text, y, 3, families)
    strength = 0.03
    penalty = FamilyPenalty.from_strengths(np.array([strength]), norm)
    result = solve(problem, penalty, tol=1e-10)
    coef = regression(norm, strength, len(rows)).fit(rows, y).coef_

    def objective(weights):
        scores = rows @ weights.T
        loss = np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(y)), y])
        return loss + strength * (np.abs(weights).sum() if norm == "l1" else 0.5 * np.square(weights).sum())

    mine = np.zeros((3, 4))
    for number, w in zip(result.features, result.weights, strict=True):
        feature = feature_of(problem, number)
        (source,) = sources_of(problem, feature.column)
        mine[feature.code, int(source.name[1:])] = w
    assert result.objective == pytest.approx(objective(mine), rel=1e-10)
    assert result.objective == pytest.approx(objective(coef), rel=1e-6)


def twice(case):
    """Return the case with every sentence given twice."""
    text, ptr = case.text, case.problem.sent_ptr
    two = Text(np.concatenate([ptr, ptr[1:] + ptr[-1]]), text.words, np.tile(text.word_ids, 2))
    y = np.tile(case.y, 2)
    weights = None if case.weights is None else np.tile(case.weights, 2) / 2.0
    problem = build_problem(two, y, case.n_labels, case.families, weights=weights)
    return replace(case, text=two, y=y, weights=weights, costs=np.tile(case.costs, 2), problem=problem)


@few
@given(training())
def test_every_sentence_twice_changes_nothing(found):
    """The value is a mean: with all sentences doubled the optimum stays, unless counts matter."""
    case, penalty = found
    assume(type(case.text) is Text)
    penalty = replace(penalty, count_power=0.0)
    assert fit(twice(case), penalty).objective == pytest.approx(fit(case, penalty).objective, rel=1e-8, abs=1e-9)


@few
@given(training(), st.randoms(use_true_random=False))
def test_permuted_labels_permute_the_weights(found, random):
    """Labels are names: the objective stays, and with an l2 part (one solution) the weights follow."""
    case, penalty = found
    order = list(range(case.n_labels))
    random.shuffle(order)
    other = case.rebuilt(y=np.array(order, np.uint32)[case.y])
    first, second = fit(case, penalty), fit(other, penalty)
    assert second.objective == pytest.approx(first.objective, rel=1e-8, abs=1e-9)
    if np.any(penalty.l2):
        expected = {}
        for (column, k, code), w in weights_of(case, first).items():
            labels = [code // case.n_labels**i % case.n_labels for i in range(k)]
            expected[Feature(column, k, sum(order[b] * case.n_labels**i for i, b in enumerate(labels)))] = w
        found = weights_of(other, second)
        for feature in set(found) | set(expected):
            assert found.get(feature, 0.0) == pytest.approx(expected.get(feature, 0.0), abs=1e-3)


def test_a_column_given_twice_halves_the_weights_of_l2():
    """Two equal families under L2 with strength c are one family with strength c / 2."""
    case = toy()
    single = [Family("word", (WORD,)), Family("pairs", (BIAS,), 2)]
    double = [*single, Family("again", (replace(WORD, pad=True),))]
    one = build_problem(case.text, case.y, 3, single)
    two = build_problem(case.text, case.y, 3, double)
    first = solve(one, FamilyPenalty(np.zeros(2), np.array([0.05, 0.1])), tol=1e-9)
    second = solve(two, FamilyPenalty(np.zeros(3), np.array([0.1, 0.1, 0.1])), tol=1e-9)
    assert second.objective == pytest.approx(first.objective, rel=1e-8)


# ---- a longer run: several rounds, Newton phase ----


def longer_sentences(tags, norm):
    """Labels that follow the word and the label before, with noise: a problem and a penalty."""
    rng = np.random.default_rng(tags)
    words = [[str(rng.choice(["a", "b", "ab", "ba", "aba"])) for _ in range(8)] for _ in range(20)]
    text = intern_sentences(words)
    y = [0]
    for t in range(1, text.n_tokens):
        y.append(int((text.word_ids[t] + y[-1]) % 3 if rng.random() < 0.7 else rng.integers(3)))
    problem = build_problem(text, np.array(y, np.uint32), 3, paper_families(1, tags, 1))
    return problem, FamilyPenalty.from_strengths(np.full(len(problem.families), 0.05), norm)


@pytest.mark.parametrize("norm", ["l1", "l2", "elastic"])
@pytest.mark.parametrize("tags", [1, 2, 3])
def test_longer_sentences_reach_a_tiny_gap(norm, tags):
    """Beyond enumeration: several rounds and a Newton phase (to order 2), alone and from a start."""
    problem, penalty = longer_sentences(tags, norm)
    tol = 1e-8 if tags <= 2 else 1e-5
    result = solve(problem, penalty, tol=tol)
    assert result.status is Status.CONVERGED
    loose = solve(problem, FamilyPenalty(2.0 * penalty.l1, 2.0 * penalty.l2), tol=1e-2)
    again = solve(problem, penalty, tol=tol, start=loose)
    assert again.objective == pytest.approx(result.objective, rel=2.0 * tol)


@pytest.mark.parametrize("norm", ["l1", "l2", "elastic"])
@pytest.mark.parametrize("tags", [1, 2])
def test_a_tiny_gap_is_reached_without_newton_steps(norm, tags, monkeypatch):
    """Decreases are below the rounding of objectives long before the gap is closed: gradients tell the points apart."""
    monkeypatch.setattr(NewtonPhase, "may_model", lambda *_: False)
    problem, penalty = longer_sentences(tags, norm)
    result = solve(problem, penalty, tol=1e-10, max_passes=1_000)
    assert result.status is Status.CONVERGED
    assert result.gap <= 1e-10 * result.objective
