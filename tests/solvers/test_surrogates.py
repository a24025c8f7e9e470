"""Training with every surrogate: the objective is that of enumeration, and the optimum lies within the gap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from enumeration import all_candidates, feature_of
from small_problems import cases, penalty_of
from surrogate_values import Losses, linear_minimum, smooth_minimum, soft_maximum
from vcrf import M3N, VCRF, StructSVM, VExponential, VStructBoost
from vcrf.data import SyntheticLanguage
from vcrf.errors import BudgetError, InputError
from vcrf.losses import AlignedNgramLoss, EditLoss, HammingLoss, ZeroOneLoss
from vcrf.penalties import FamilyPenalty
from vcrf.solvers.cutting_plane import solve_max
from vcrf.solvers.group import solve_group
from vcrf.solvers.result import Status
from vcrf.solvers.run import RunOptions
from vcrf.solvers.working_set import solve
from vcrf.surrogates.choice import choose
from vcrf.surrogates.maximum import choose_max


class PlainLosses(Losses):
    """Enumeration of the paper's own objectives: without the logarithm of 1 + them."""

    def surrogate(self, kind, w):
        value, gradient = super().surrogate(kind, w)
        return np.expm1(value), np.exp(value) * gradient


LOSSES = [HammingLoss(), AlignedNgramLoss(2), EditLoss(), ZeroOneLoss()]


@pytest.mark.parametrize("kind", ["structboost", "exponential"])
@settings(max_examples=10)
@given(st.data())
def test_the_papers_own_objectives_reach_their_certificate(kind, data):
    """Without the logarithm: value, optimum and gap, and the same solution as with it at strength c / (1 + F)."""
    case = data.draw(cases(max_labels=3, max_length=3, max_tags=2, max_sentences=3, merge_twins=False))
    if case.weights is not None:
        case = case.rebuilt(weights=case.weights / case.weights.sum(), merge_twins=False)
    loss = data.draw(st.sampled_from(LOSSES))
    penalty = FamilyPenalty.from_strengths(np.full(len(case.families), 0.2), "l1")
    choice = choose(case.problem, kind, loss, logarithm=False)
    result = solve(case.problem, penalty, surrogate=choice, tol=1e-5, max_passes=3_000)
    features = [feature_of(case.problem, number) for number in result.features]
    value, _ = PlainLosses(case.problem, features, loss).surrogate(kind, result.weights)
    assert result.objective == pytest.approx(value + 0.2 * np.abs(result.weights).sum(), rel=1e-8, abs=1e-10)
    every = all_candidates(case.problem)
    l1, l2 = (case.strengths(strengths, every) for strengths in (penalty.l1, penalty.l2))
    optimum = smooth_minimum(PlainLosses(case.problem, every, loss), kind, l1, l2)
    assert optimum - 1e-7 <= result.objective <= optimum + result.gap + 1e-6
    weaker = FamilyPenalty(penalty.l1 / (1.0 + value), penalty.l2)
    same = solve(case.problem, weaker, surrogate=choose(case.problem, kind, loss), tol=1e-7, max_passes=3_000)
    assert np.expm1(same.objective - weaker.l1[0] * np.abs(same.weights).sum()) == pytest.approx(
        value, rel=1e-2, abs=1e-3
    )


def test_sums_beyond_double_precision_are_refused():
    """A sentence of some thousand tokens has too many label sequences."""
    corpus = SyntheticLanguage(n_labels=4, n_stems=20).sample(3, seed=1)
    X, y = [corpus.tokens[0] * 300], [corpus.labels[0] * 300]
    with pytest.raises(BudgetError, match="beyond double precision"):
        VStructBoost(logarithm=False).fit(X, y)
    with pytest.raises(InputError, match="`logarithm=False` is for structboost and exponential, not for crf"):
        VCRF(logarithm=False).fit(X, y)
    short = [["a", "b"], ["b", "a"]], [["A", "B"], ["B", "A"]]
    own, usual = (VStructBoost(recipe="paper", logarithm=log, affix=1).fit(*short) for log in (False, True))
    assert own.status_ is Status.CONVERGED
    assert own.objective_ != usual.objective_


def check(case, kind, loss, penalty, result):
    """The objective by enumeration; returns everything for the optimum."""
    features = [feature_of(case.problem, number) for number in result.features]
    value, _ = Losses(case.problem, features, loss).surrogate(kind, result.weights)
    expected = value + penalty_of(case.problem, penalty, features, result.weights)
    assert result.objective == pytest.approx(expected, rel=1e-8, abs=1e-10)
    every = all_candidates(case.problem)
    l1, l2 = (case.strengths(strengths, every) for strengths in (penalty.l1, penalty.l2))
    return Losses(case.problem, every, loss), l1, l2


@pytest.mark.parametrize("lattice", ["auto", "patterns"])
@pytest.mark.parametrize("kind", ["crf", "structboost", "exponential"])
@settings(max_examples=7)
@given(st.data())
def test_smooth_surrogates_reach_their_certificate(kind, lattice, data):
    """The optimum lies within the gap, for L1 and the elastic net, on both lattices."""
    max_tags = 4 if lattice == "patterns" else 2
    case = data.draw(cases(max_labels=3, max_length=4, max_tags=max_tags, max_sentences=3, merge_twins=False))
    loss = data.draw(st.sampled_from(LOSSES))
    norm = data.draw(st.sampled_from(["l1", "elastic", "l2"]))
    if case.weights is not None:
        case = case.rebuilt(weights=case.weights / case.weights.sum(), merge_twins=False)
    penalty = FamilyPenalty.from_strengths(np.full(len(case.families), 0.05), norm)
    choice = choose(case.problem, kind, loss)
    result = solve(case.problem, penalty, surrogate=choice, tol=1e-3, max_passes=3_000, lattice=lattice)
    truth, l1, l2 = check(case, kind, loss, penalty, result)
    optimum = smooth_minimum(truth, kind, l1, l2)
    assert optimum - 1e-7 <= result.objective <= optimum + result.gap + 1e-7
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("lattice", ["auto", "patterns"])
@pytest.mark.parametrize("kind", ["m3n", "structsvm"])
@settings(max_examples=7)
@given(st.data())
def test_maximum_surrogates_reach_their_certificate(kind, lattice, data):
    """The optimum, by linear programming, lies within the gap of the surrogate itself, on both lattices."""
    max_tags = 4 if lattice == "patterns" else 2
    case = data.draw(cases(max_labels=3, max_length=4, max_tags=max_tags, max_sentences=3, merge_twins=False))
    loss = data.draw(st.sampled_from(LOSSES))
    penalty = FamilyPenalty.from_strengths(np.full(len(case.families), 0.03), "l1")
    choice = choose_max(case.problem, kind, loss)
    result = solve_max(case.problem, penalty, choice, RunOptions(tol=1e-2, max_passes=4_000, lattice=lattice))
    truth, l1, _ = check(case, kind, loss, penalty, result)
    optimum = linear_minimum(truth, kind, l1)
    assert optimum - 1e-7 <= result.objective <= optimum + result.gap + 1e-7
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("kind", ["m3n", "structsvm"])
@pytest.mark.parametrize("norm", ["l2", "elastic"])
@settings(max_examples=4)
@given(st.data())
def test_maximum_surrogates_with_an_l2_part(kind, norm, data):
    """Converged, and no weights tried have a smaller objective than the certified bound."""
    case = data.draw(cases(max_labels=3, max_length=4, max_tags=2, max_sentences=3, merge_twins=False))
    loss = data.draw(st.sampled_from(LOSSES))
    penalty = FamilyPenalty.from_strengths(np.full(len(case.families), 0.05), norm)
    result = solve_max(
        case.problem, penalty, choose_max(case.problem, kind, loss), RunOptions(tol=1e-2, max_passes=4_000)
    )
    truth, l1, l2 = check(case, kind, loss, penalty, result)
    assert result.status is Status.CONVERGED
    rng = np.random.default_rng(0)
    every = {feature: j for j, feature in enumerate(truth.features)}
    w = np.zeros(len(every))
    w[[every[feature_of(case.problem, number)] for number in result.features]] = result.weights
    best, scale = w, 0.3
    for _ in range(150):  # random search from the solution
        trial = best + scale * rng.normal(size=len(w)) * (rng.random(len(w)) < 0.3)
        values = [truth.surrogate(kind, x)[0] + l1 @ np.abs(x) + 0.5 * l2 @ x**2 for x in (best, trial)]
        best, scale = (trial, scale) if values[1] < values[0] else (best, 0.98 * scale)
        assert min(values) >= result.objective - result.gap - 1e-9


@pytest.mark.parametrize(("estimator", "tags"), [(VCRF, 2), (VCRF, 3), (VStructBoost, 2), (VExponential, 2)])
@pytest.mark.parametrize("loss", [HammingLoss(), AlignedNgramLoss(2), EditLoss()])
def test_smooth_surrogates_take_newton_steps(estimator, loss, tags):
    """With L1 alone quasi-Newton steps leave the gap open; steps with the Hessian of a similar loss close it."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20).sample(30, seed=3)
    tagger = estimator(recipe="paper", tags=tags, loss=loss, norm="l1", base_strength=0.02, tol=1e-7)
    tagger.fit(corpus.tokens, corpus.labels)
    assert tagger.status_ is Status.CONVERGED
    assert "newton" in {record.phase for record in tagger.history_}


@pytest.mark.parametrize("loss", [HammingLoss(), AlignedNgramLoss(2), EditLoss()])
def test_each_temperature_of_m3n_gives_a_lower_bound(loss):
    """The posterior of crf is a distribution of label sequences: its mean loss bounds the optimum from below."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20).sample(8, seed=3)
    tagger = M3N(recipe="paper", loss=loss, norm="l1", base_strength=0.05).fit(corpus.tokens, corpus.labels)
    records = [record for record in tagger.history_ if record.phase == "smooth"]
    assert len(records) > 1
    assert all(0.0 < record.objective - record.gap <= tagger.objective_ for record in records)


@settings(max_examples=3)
@given(cases(max_labels=3, max_length=3))
def test_refusals(case):
    """No loss where one is needed, an unknown surrogate, a strength of 0 without an l2 part."""
    assume(case.problem.n_tokens)
    for kind in ("m3n", "structsvm"):
        with pytest.raises(InputError, match="needs a loss"):
            choose_max(case.problem, kind, None)
    with pytest.raises(InputError, match="multiplies by the loss"):
        choose(case.problem, "structboost", None)
    with pytest.raises(InputError, match="one of crf"):
        choose(case.problem, "hinge", None)
    with pytest.raises(InputError, match="one of m3n"):
        choose_max(case.problem, "crf", HammingLoss())
    zero = FamilyPenalty.from_strengths(np.zeros(len(case.families)), "l1")
    with pytest.raises(InputError, match="must be positive"):
        solve_max(case.problem, zero, choose_max(case.problem, "m3n", HammingLoss()), RunOptions())


@pytest.mark.parametrize("lattice", ["dense", "patterns"])
@pytest.mark.parametrize("kind", ["crf", "structboost", "m3n", "structsvm"])
@settings(max_examples=6)
@given(st.data())
def test_group_norm_reaches_its_certificate(kind, lattice, data):
    """The optimum of F + sum_G c ||w_G||, found by a smooth norm from above, lies within the gap, on both lattices."""
    tags = {"min_tags": 2, "max_tags": 3} if lattice == "patterns" else {"max_tags": 2}
    case = data.draw(cases(max_labels=3, max_length=4, max_sentences=3, merge_twins=False, **tags))
    if case.weights is not None:
        case = case.rebuilt(weights=case.weights / case.weights.sum(), merge_twins=False)
    loss, c = data.draw(st.sampled_from(LOSSES)), 0.05
    penalty = FamilyPenalty.from_strengths(np.full(len(case.families), c), "group")
    if kind in ("m3n", "structsvm"):
        result = solve_max(
            case.problem,
            penalty,
            choose_max(case.problem, kind, loss),
            RunOptions(tol=1e-2, lattice=lattice),
            is_group=True,
        )
    else:
        result = solve_group(
            case.problem, penalty, choose(case.problem, kind, loss), RunOptions(tol=1e-3, lattice=lattice)
        )
    assert result.status is Status.CONVERGED
    every = all_candidates(case.problem)
    truth = Losses(case.problem, every, loss)
    groups = np.unique([f.column * 10 + f.k for f in every], return_inverse=True)[1] if every else np.zeros(0, int)
    w = np.zeros(len(every))
    w[[every.index(feature_of(case.problem, number)) for number in result.features]] = result.weights

    def objective(x, smoothing=0.0):
        norms = np.sqrt(np.bincount(groups, x**2) + smoothing**2)
        is_soft = kind in ("m3n", "structsvm") and smoothing > 0.0
        value, g = soft_maximum(truth, kind, x, smoothing) if is_soft else truth.surrogate(kind, x)
        g = np.zeros(len(x)) if g is None else g
        slope = x / np.maximum(norms, 1e-300)[groups] if len(x) else x
        return value + c * norms.sum(), g + c * slope

    assert result.objective == pytest.approx(objective(w)[0], rel=1e-8, abs=1e-10)
    best = result.objective
    for smoothing in (1e-2, 1e-4, 1e-6) if len(w) else ():
        w = minimize(objective, w, (smoothing,), jac=True, method="L-BFGS-B", options={"maxiter": 2_000}).x
        best = min(best, objective(w)[0])
    assert result.objective - result.gap <= best + 1e-9
    assert best >= result.objective - 0.02 * abs(result.objective) - 1e-9


def test_a_master_problem_that_is_slow_to_solve():
    """No new label sequence, no new feature, and the gap does not move: the run goes on with more sweeps."""
    X = [
        [[], ["w=é"], []],
        [[], ["w=ab"]],
        [["w=Ab-1", "w=é"], [], ["w=é"], ["w=b"]],
        [["w=ab", "w=b"], [], ["w=ab"], []],
    ]
    y, loss = [[0, 0, 1], [1, 1], [1, 1, 1, 1], [0, 0, 0, 0]], "hamming:normalised=False,cost=3"
    tagger = StructSVM(recipe="paper", base_strength=0.005670591422676358, loss=loss, norm="group", tags=1).fit(X, y)
    assert tagger.status_ is Status.CONVERGED
