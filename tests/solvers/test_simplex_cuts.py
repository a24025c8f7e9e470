"""Maximum surrogates with an l2 penalty alone: a general solver's optimum on all label sequences is within the gap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from enumeration import LossEnumeration, all_candidates, feature_of
from small_problems import cases
from vcrf import M3N, StructSVM
from vcrf.data import SyntheticLanguage
from vcrf.kernels import simplex_cuts as kernels
from vcrf.losses import AlignedNgramLoss, EditLoss, HammingLoss
from vcrf.penalties import FamilyPenalty
from vcrf.solvers import cutting_plane, simplex_cuts
from vcrf.solvers.cutting_plane import CuttingPlanes, solve_max
from vcrf.solvers.policy import CUTS, SIMPLEX
from vcrf.solvers.result import Status
from vcrf.solvers.run import RunOptions
from vcrf.solvers.simplex_cuts import SimplexCuts
from vcrf.surrogates.maximum import choose_max

LOSSES = [HammingLoss(), AlignedNgramLoss(2), EditLoss()]
KINDS = ["m3n", "structsvm"]


def cuts_of(truth, kind):
    """Sentence, intercept and row of each label sequence: value of the sentence >= intercept + row.w."""
    parts = []
    for i in range(len(truth.weights)):
        deltas = truth.counts[i] - truth.counts[i][truth.gold[i]]
        slopes = truth.losses[i] if kind == "structsvm" else np.ones(len(deltas))
        parts.append((np.full(len(deltas), i), truth.losses[i], slopes[:, None] * deltas))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def objective_of(weights, cuts, l2, w):
    """The problem's objective by enumeration."""
    sentence, intercept, rows = cuts
    values = np.zeros(len(weights))
    np.maximum.at(values, sentence, intercept + rows @ w)
    return weights @ values + 0.5 * l2 @ w**2


def least(weights, cuts, l2):
    """The smallest objective found: with all sequences' multipliers as variables, and with few weights by these too.

    The dual has a variable for each sequence, the primal problem one for each candidate: as a rule many more.
    """
    found = [_dual_weights(weights, cuts, l2)] + ([_primal_weights(weights, cuts, l2)] if len(l2) <= 30 else [])
    return min(objective_of(weights, cuts, l2, w) for w in found)


def _dual_weights(weights, cuts, l2):
    sentence, intercept, rows = cuts
    scaled = rows / np.sqrt(l2)
    gram = scaled @ scaled.T
    belongs = (sentence[:, None] == np.arange(len(weights))).astype(float)
    found = minimize(
        lambda lam: (0.5 * lam @ gram @ lam - lam @ intercept, gram @ lam - intercept), np.zeros(len(sentence)),
        jac=True, method="SLSQP", bounds=[(0.0, None)] * len(sentence), options={"ftol": 1e-14, "maxiter": 1_000},
        constraints={"type": "ineq", "fun": lambda lam: weights - lam @ belongs, "jac": lambda _: -belongs.T},
    )  # fmt: skip
    return -(found.x @ rows) / l2


def _primal_weights(weights, cuts, l2):
    """On (sqrt(l2) w, bounds of the sentences)."""
    sentence, intercept, rows = cuts
    n, m = len(l2), len(weights)
    slack = (sentence[:, None] == np.arange(m)).astype(float)
    matrix = np.hstack([-rows / np.sqrt(l2), slack])
    start = np.zeros(n + m)
    np.maximum.at(start[n:], sentence, intercept)
    found = minimize(
        lambda z: (0.5 * z[:n] @ z[:n] + weights @ z[n:], np.concatenate([z[:n], weights])), start, jac=True,
        method="SLSQP", bounds=[(None, None)] * n + [(0.0, None)] * m, options={"ftol": 1e-13, "maxiter": 1_000},
        constraints={"type": "ineq", "fun": lambda z: matrix @ z - intercept, "jac": lambda _: matrix},
    )  # fmt: skip
    return found.x[:n] / np.sqrt(l2)


@st.composite
def problems(draw, **options):
    """A case, a loss, and l2 strengths of its families."""
    case = draw(cases(max_labels=3, max_length=3, max_sentences=3, merge_twins=False, **options))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    strengths = rng.choice([0.03, 0.1, 0.3], len(case.families))
    return case, draw(st.sampled_from(LOSSES)), FamilyPenalty.from_strengths(strengths, "l2")


def weights_on(case, result, every):
    """The weights of a result among all candidates."""
    w = np.zeros(len(every))
    w[[every.index(feature_of(case.problem, number)) for number in result.features]] = result.weights
    return w


@pytest.mark.parametrize("lattice", ["auto", "patterns"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(st.data())
def test_the_optimum_lies_within_the_gap(kind, lattice, data):
    """The objective is that of enumeration; a general solver's optimum is less by no more than the gap."""
    case, loss, penalty = data.draw(problems(max_tags=3 if lattice == "patterns" else 2))
    result = solve_max(
        case.problem, penalty, choose_max(case.problem, kind, loss), RunOptions(tol=1e-5, lattice=lattice)
    )
    assert result.status is Status.CONVERGED
    every = all_candidates(case.problem)
    l2 = case.strengths(penalty.l2, every)
    truth = LossEnumeration(case.problem, every, loss)
    cuts = cuts_of(truth, kind)
    objective = objective_of(truth.weights, cuts, l2, weights_on(case, result, every))
    assert result.objective == pytest.approx(objective, rel=1e-9, abs=1e-12)
    optimum = least(truth.weights, cuts, l2) if every else objective
    # The general solver's own error is on the side of the optimum: its weights are worth no less.
    assert result.objective - result.gap <= optimum + 1e-12
    assert result.objective <= optimum * (1.0 + 1e-4) + 1e-9


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6)
@given(problems(max_tags=2))
def test_the_proximal_master_has_the_same_optimum(kind, drawn):
    """Both are certified, so that their intervals meet."""
    case, loss, penalty = drawn
    choice = choose_max(case.problem, kind, loss)
    ours, theirs = (
        method(case.problem, penalty, choice, RunOptions(1e-3, 5_000)).run(None)
        for method in (SimplexCuts, CuttingPlanes)
    )
    assert ours.status is theirs.status is Status.CONVERGED
    assert ours.objective - ours.gap <= theirs.objective + 1e-12
    assert theirs.objective - theirs.gap <= ours.objective + 1e-12


class _FromNothing(SimplexCuts):
    """Starts with no features: each scan adds some, and all rows are computed again."""

    def _cool(self, start):
        pass


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6)
@given(problems(max_tags=2))
def test_features_may_come_later(kind, drawn):
    """The scan finds them, and the optimum is the same."""
    case, loss, penalty = drawn
    choice = choose_max(case.problem, kind, loss)
    ours, late = (
        method(case.problem, penalty, choice, RunOptions(1e-4, 5_000)).run(None)
        for method in (SimplexCuts, _FromNothing)
    )
    assert late.status is Status.CONVERGED
    assert late.objective == pytest.approx(ours.objective, rel=1e-4, abs=1e-12)


@pytest.mark.parametrize("estimator", [M3N, StructSVM])
@pytest.mark.parametrize("loss", LOSSES)
def test_estimators_and_threads(estimator, loss, monkeypatch):
    """Certified, the same to the last bit with two threads; sequences dropped early come back."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20).sample(20, seed=3)
    form = {"recipe": "paper", "norm": "l2", "count_power": 0.35, "base_strength": 1.0 / len(corpus)}
    one, two = (estimator(**form, loss=loss, tol=1e-3, n_jobs=n).fit(corpus.tokens, corpus.labels) for n in (1, 2))
    assert one.status_ is Status.CONVERGED
    assert (one.objective_, one.gap_) == (two.objective_, two.gap_)
    monkeypatch.setattr(simplex_cuts, "SIMPLEX", replace(SIMPLEX, max_age=1))
    forgetful = estimator(**form, loss=loss, tol=1e-3).fit(corpus.tokens, corpus.labels)
    assert forgetful.status_ is Status.CONVERGED
    assert forgetful.objective_ == pytest.approx(one.objective_, rel=1e-3)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 3))
def test_steps_in_a_sentence(seed, n, n_sentences):
    """Sweeps reach the optimum of the cuts given; the weights are those of the multipliers, whose sums stay."""
    rng = np.random.default_rng(seed)
    scale, weights = rng.uniform(0.5, 2.0, 4), rng.uniform(0.2, 1.0, n_sentences)
    zeros = np.zeros(4)
    found = [simplex_cuts.Example(np.zeros(2, np.uint32), v) for v in weights]
    cuts = []
    for i, one in enumerate(found):
        for k in range(n):
            row = rng.integers(-2, 3, 4).astype(float)
            one.add(np.array([k, 1], np.uint32), rng.uniform(0.0, 2.0), 1.0)
            one.add_row(np.flatnonzero(row), row[row != 0.0], scale, zeros)
            cuts.append((i, one.intercept[-1], row))
    w = np.zeros(4)
    for _ in range(20_000):
        gaps = [
            kernels.ascend_sentence(
                one.row_ptr, one.columns, one.values, one.intercept, one.gram, scale, one.lam, w, 20, 0.0
            )
            for one in found
        ]
        if sum(gaps) <= 1e-10:
            break
    assert not zeros.any()
    rows = np.array([row for _, _, row in cuts])
    lam = np.concatenate([one.lam[1:] for one in found])
    np.testing.assert_allclose(w, -scale * (lam @ rows), atol=1e-9)
    for one, v in zip(found, weights, strict=True):
        assert one.lam.min() >= 0.0
        assert one.lam.sum() == pytest.approx(v, rel=1e-9)
    every = np.array([i for i, _, _ in cuts]), np.array([a for _, a, _ in cuts]), rows
    optimum = least(weights, every, 1.0 / scale)
    dual = lam @ every[1] - 0.5 * (w / scale) @ w
    assert dual == pytest.approx(optimum, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("weight", [0.1, 1.0])
def test_a_step_goes_to_the_best_point(weight):
    """Along the line from one sequence to another the dual is a parabola: its top, or the end of the multiplier."""
    scale, zeros = np.array([0.5, 1.0, 2.0]), np.zeros(3)
    rows, intercept = np.array([[1.0, 0.0, -1.0], [1.0, 2.0, 0.0]]), np.array([1.0, 1.5])
    one = simplex_cuts.Example(np.zeros(1, np.uint32), weight)
    for k in range(2):
        one.add(np.array([k + 1], np.uint32), intercept[k], 1.0)
        one.add_row(np.flatnonzero(rows[k]), rows[k][rows[k] != 0.0], scale, zeros)
    one.lam[:] = 0.0, weight, 0.0

    def dual(step):
        lam = np.array([weight - step, step])
        return lam @ intercept - 0.5 * scale @ (lam @ rows) ** 2

    w = -scale * weight * rows[0]
    before = kernels.ascend_sentence(
        one.row_ptr, one.columns, one.values, one.intercept, one.gram, scale, one.lam, w, 1, 0.0
    )
    worth = intercept + rows @ (-scale * weight * rows[0])
    assert worth[1] > max(worth[0], 0.0)
    assert before == pytest.approx(weight * (worth[1] - worth[0]))
    steps = np.linspace(0.0, weight, 100_001)
    assert one.lam[2] == pytest.approx(steps[np.argmax([dual(step) for step in steps])], abs=1e-4)
    assert (one.lam[1] == 0.0) == (weight == 0.1)
    np.testing.assert_allclose(w, -scale * (one.lam[1:] @ rows))


def test_old_sequences_go():
    """Those that stay keep their rows and inner products; one that has gone may come again."""
    rng = np.random.default_rng(0)
    scale, zeros = np.ones(5), np.zeros(5)
    one = simplex_cuts.Example(np.zeros(1, np.uint32), 1.0)
    rows = rng.normal(size=(6, 5))
    for k, row in enumerate(rows):
        one.add(np.array([k + 1], np.uint32), 1.0, 1.0)
        one.add_row(np.arange(5), row, scale, zeros)
    one.lam[[0, 2, 5]] = 0.0, 0.5, 0.5
    one.age[:] = SIMPLEX.max_age
    one.drop_old()
    assert one.labels[:, 0].tolist() == [0, 2, 5]
    kept = np.vstack([np.zeros(5), rows[[1, 4]]])
    np.testing.assert_allclose(one.gram, kept @ kept.T)
    np.testing.assert_allclose(one.values.reshape(2, 5), kept[1:])
    assert np.array([1], np.uint32).tobytes() not in one.known
    assert np.array([5], np.uint32).tobytes() in one.known


@pytest.mark.parametrize(("most", "is_simplex"), [(20, True), (19, False)])
def test_many_sentences_have_the_proximal_master(monkeypatch, most, is_simplex):
    """Inner products of the label sequences of every sentence are not kept for a large corpus."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20).sample(20, seed=3)
    monkeypatch.setattr(cutting_plane, "CUTS", replace(CUTS, most_simplices=most))
    seen = []
    run = SimplexCuts.run
    monkeypatch.setattr(SimplexCuts, "run", lambda self, start: seen.append(True) or run(self, start))
    found = M3N(recipe="paper", norm="l2", count_power=0.35, base_strength=1.0 / len(corpus)).fit(
        corpus.tokens, corpus.labels
    )
    assert found.status_ is Status.CONVERGED
    assert bool(seen) == is_simplex
