"""Gradient steps: each is the definition, taken on every weight; the certificate is that of the other solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from enumeration import Enumeration, all_candidates, number_of
from small_problems import cases, strengths
from vcrf import M3N, VCRF
from vcrf.data import SyntheticLanguage
from vcrf.errors import BudgetError, InputError
from vcrf.families import Family, intern_sentences, paper_families
from vcrf.families.templates import BIAS, Template
from vcrf.model.build import split_features
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem
from vcrf.solvers import sgd
from vcrf.solvers.result import Status
from vcrf.solvers.run import RunOptions
from vcrf.solvers.sgd import RULES, Steps, solve_by_steps
from vcrf.solvers.working_set import solve
from vcrf.structures.training_loss import TrainingLoss

small = {"max_labels": 3, "max_tags": 2, "max_length": 3, "max_sentences": 3}


@st.composite
def training(draw, **options):
    """A case whose attributes are all columns of their own, strengths, and how to step."""
    case = draw(cases(**{**small, **options})).rebuilt(merge_twins=False)
    l1 = draw(strengths(case)) * 1.0371  # no multiple of a step
    steps = Steps(
        draw(st.sampled_from(RULES)), draw(st.sampled_from([0.03, 0.3])), draw(st.sampled_from([0.0, 0.5])),
        draw(st.sampled_from(sgd.KAPPAS)), draw(st.integers(0, 5)), draw(st.booleans()),
    )  # fmt: skip
    return case, FamilyPenalty(l1, np.zeros(len(l1))), steps


def gradient_of(enumeration, i, w):
    """Gradient of the value of one sentence: posterior mean of the counts less those of the truth."""
    counts = enumeration.counts[i]
    scores = counts @ w + enumeration.losses[i]
    p = np.exp(scores - scores.max())
    return p @ counts / p.sum() - counts[enumeration.gold[i]]


def by_definition(case, l1, steps, n_passes):
    """All weights, all steps: nothing is lazy."""
    every = all_candidates(case.problem)
    c = case.strengths(l1, every)
    enumeration = Enumeration(case.problem, every, case.costs)
    m, w, paid, due = len(case.problem.weights), np.zeros(len(every)), np.zeros(len(every)), 0.0
    kappa = {"1/m": 1.0 / m, "1": 1.0, "m": m}[steps.kappa]
    for number in range(n_passes):
        eta = steps.eta / (1.0 + steps.decay * number)
        order = np.random.default_rng([steps.seed, number]).permutation(m)
        for chosen in [range(m)] if steps.is_batch else [[i] for i in order]:
            scale = case.problem.weights if steps.is_batch else m * case.problem.weights
            g = sum(scale[i] * gradient_of(enumeration, i, w) for i in chosen)
            due += eta * kappa
            if steps.rule == "subgradient":
                w = w - eta * (g + kappa * c * np.sign(w))
                # At a gradient of 0 but for rounding the sign, and with it the next step, is anyone's guess.
                moves = np.any([np.ptp(enumeration.counts[i], axis=0) > 0.0 for i in chosen], axis=0)
                assume(not np.any(np.abs(w[moves]) < 1e-9))
                continue
            x = w - eta * g
            if steps.rule == "fobos":
                w = np.sign(x) * np.maximum(np.abs(x) - eta * kappa * c, 0.0)
            else:
                w = np.where(x > 0.0, np.maximum(0.0, x - (c * due + paid)), np.minimum(0.0, x + (c * due - paid)))
                paid = paid + w - x
    return {number_of(case.problem, f): value for f, value in zip(every, w, strict=True)}


def run(case, penalty, steps, n_passes, problem=None):
    """The same by the solver."""
    problem = case.problem if problem is None else problem
    return solve_by_steps(problem, penalty, TrainingLoss(case.costs), steps, RunOptions(tol=1e-9, max_passes=n_passes))


@settings(max_examples=80)
@given(training())
def test_lazy_steps_are_the_definition(found):
    """Three passes of each rule, kappa and decay, against eager steps on enumerated gradients."""
    case, penalty, steps = found
    result = run(case, penalty, steps, 3)
    if result.status is Status.CONVERGED:  # gd ended before
        return
    weights = dict(zip(result.features.tolist(), result.weights.tolist(), strict=True))
    for feature, w in by_definition(case, penalty.l1, steps, 3).items():
        assert weights.pop(feature, 0.0) == pytest.approx(w, rel=1e-9, abs=1e-11)
    assert not weights


@settings(max_examples=30)
@given(training())
def test_twins_move_alike(found):
    """Merged where they have the same families, twins have together what they have apart."""
    case, penalty, steps = found
    merged = case.rebuilt(merge_twins="families")
    apart, together = run(case, penalty, steps, 2), run(merged, penalty, steps, 2)
    assert together.objective == pytest.approx(apart.objective, rel=1e-9)
    assert together.gap == pytest.approx(apart.gap, rel=1e-7, abs=1e-9)
    one, other = (
        split_features(c.problem, penalty.bind(c.problem), r.features, r.weights)
        for c, r in ((case, apart), (merged, together))
    )
    for n, (a, b) in enumerate(((one, other), (other, one))):
        for s in np.unique(a.sources):
            x, y = np.sort(a.of_source(s).weights), np.sort(b.of_source(s).weights)
            assert x == pytest.approx(y, rel=1e-8, abs=1e-12), n


@settings(max_examples=30)
@given(training())
def test_the_certificate_is_true_and_that_of_the_other_solver(found):
    """Objective and gap at the end are what the working set, unscreened, says of the same weights; the gap holds."""
    case, penalty, steps = found
    result = run(case, penalty, steps, 2)
    again = solve(case.problem, penalty, costs=case.costs, tol=1e9, start=result, screen=False)
    assert again.objective == pytest.approx(result.objective, rel=1e-9, abs=1e-12)
    if not steps.is_batch:  # gd keeps the best of the bounds of all passes
        assert again.gap == pytest.approx(result.gap, rel=1e-7, abs=1e-9)
    optimum = solve(case.problem, penalty, costs=case.costs, tol=1e-9).objective
    assert result.objective - result.gap <= optimum + 1e-9


@pytest.fixture(scope="module")
def language():
    """A problem of invented sentences, and strengths."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20).sample(12, seed=2)
    labels = sorted(corpus.label_set)
    y = np.array([labels.index(z) for sentence in corpus.labels for z in sentence], np.uint32)
    families = paper_families(1, 2, 1)
    problem = build_problem(intern_sentences(corpus.tokens), y, len(labels), families, merge_twins="families")
    return problem, FamilyPenalty(np.linspace(0.05, 0.08, len(families)), np.zeros(len(families)))


@pytest.mark.parametrize("rule", ["fobos", "cumulative"])
def test_steps_that_grow_shorter_come_to_the_optimum(language, rule):
    """With kappa = 1; constant steps do not."""
    problem, penalty = language
    loss = TrainingLoss(np.zeros(problem.text.n_sentences))
    optimum = solve(problem, penalty, tol=1e-7).objective
    falling = [
        solve_by_steps(problem, penalty, loss, Steps(rule, 0.1, 0.1), RunOptions(max_passes=n)).objective
        for n in (50, 300, 1000)
    ]
    assert falling[0] > falling[1] > falling[2] >= optimum
    assert falling[2] < 1.02 * optimum
    biased = solve_by_steps(problem, penalty, loss, Steps(rule, 0.1, 0.1, "1/m"), RunOptions(max_passes=50))
    assert biased.objective > 1.05 * optimum


def test_gradient_descent_ends_where_the_gap_is_met(language):
    """With a status that says so."""
    problem, penalty = language
    loss = TrainingLoss(np.zeros(problem.text.n_sentences))
    result = solve_by_steps(
        problem, penalty, loss, Steps(eta=0.2, is_batch=True), RunOptions(tol=0.05, max_passes=2000)
    )
    assert result.status is Status.CONVERGED
    assert result.gap <= 0.05 * result.objective
    assert result.n_passes < 2000
    assert [record.phase for record in result.history] == ["steps"] * (result.n_passes - 1)


def test_hard_scores_stay_finite(language):
    """Steps that are far too long leave the range of exponentials, and no NaN."""
    problem, penalty = language
    loss = TrainingLoss(np.zeros(problem.text.n_sentences))
    for kappa in ("1/m", "1"):
        result = solve_by_steps(problem, penalty, loss, Steps(eta=300.0, kappa=kappa), RunOptions(max_passes=3))
        again = solve(problem, penalty, tol=1e9, start=result)
        assert np.isfinite(result.objective)
        assert result.objective == pytest.approx(again.objective, rel=1e-6)


def test_the_estimator_steps_by_seed_and_whatever_the_threads():
    """The same bytes from the same seed; another order from another."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20).sample(12, seed=2)
    options = {"recipe": "paper", "families": "paper", "words": 1, "affix": 1, "max_passes": 3}
    fit = [
        VCRF(**options, solver="sgd", kappa="m", base_strength=1e-3, random_state=seed, n_jobs=jobs)
        for seed, jobs in ((0, 1), (0, 2), (1, 1))
    ]
    fit.append(VCRF(**options, n_jobs=1))
    with pytest.warns(UserWarning, match="passes"):
        one, two, other, _ = [tagger.fit(corpus.tokens, corpus.labels).result_ for tagger in fit]
    assert one.weights.tobytes() == two.weights.tobytes()
    assert one.features.tobytes() == two.features.tobytes()
    assert one.weights.tobytes() != other.weights.tobytes()
    assert fit[0].n_candidates_ == fit[-1].n_candidates_


def test_no_strength_no_certificate(language):
    """(0, 0) goes on and claims nothing."""
    problem, penalty = language
    free = FamilyPenalty(np.zeros(len(penalty.l1)), penalty.l2)
    result = solve_by_steps(
        problem, free, TrainingLoss(np.zeros(problem.text.n_sentences)), Steps(), RunOptions(max_passes=2)
    )
    assert result.status is Status.UNCERTIFIED
    assert result.gap == np.inf


def test_an_interrupted_run_is_certified_where_it_stands(language):
    """The callback ends it after a pass; its weights have paid what they owe."""
    problem, penalty = language
    loss = TrainingLoss(np.zeros(problem.text.n_sentences))
    stopped = solve_by_steps(problem, penalty, loss, Steps(), RunOptions(callback=lambda record: record.n_passes == 2))
    whole = solve_by_steps(problem, penalty, loss, Steps(), RunOptions(max_passes=2))
    assert stopped.status is Status.INTERRUPTED
    assert stopped.weights.tobytes() == whole.weights.tobytes()
    assert stopped.gap == whole.gap
    warm = solve_by_steps(problem, penalty, loss, Steps(eta=1e-9), RunOptions(max_passes=1), start=whole)
    assert warm.objective == pytest.approx(whole.objective, rel=1e-5)


@pytest.mark.parametrize(
    ("tagger", "said"),
    [
        (VCRF(solver="sgd"), "needs `norm='l1'`"),
        (VCRF(recipe="paper", solver="gd", norm="group"), "needs `norm='l1'`"),
        (M3N(recipe="paper", solver="sgd"), "not for m3n"),
        (VCRF(recipe="paper", solver="sgd", loss="edit"), "no loss but the Hamming loss"),
        (VCRF(recipe="paper", solver="sgd", tags=3), "2 labels at the most"),
        (VCRF(recipe="paper", solver="sgd", candidates="observed"), "candidates='all'"),
        (VCRF(recipe="paper", solver="adam"), "`solver` must be 'certified', 'sgd' or 'gd'"),
        (VCRF(recipe="paper", solver="sgd", kappa="2"), "`kappa` must be '1/m', '1' or 'm'"),
        (VCRF(recipe="paper", solver="sgd", eta=0.0), "`eta` must be a positive number"),
    ],
)
def test_what_steps_cannot_do_is_refused_by_name(tagger, said):
    """Before anything is trained."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20).sample(4, seed=2)
    with pytest.raises(InputError, match=said):
        tagger.fit(corpus.tokens, corpus.labels)


def test_open_labels_and_too_many_candidates_are_refused(monkeypatch):
    """The others that depend on the data."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20).sample(4, seed=2)
    tagger = VCRF(recipe="paper", solver="sgd")
    with pytest.raises(InputError, match="every token"):
        tagger.fit(corpus.tokens, [[None, *labels[1:]] for labels in corpus.labels])
    monkeypatch.setattr(sgd, "MAX_WEIGHTS", 10)
    with pytest.raises(BudgetError, match="the budget is 10"):
        tagger.fit(corpus.tokens, corpus.labels)


def test_sources_of_other_families_stay_apart():
    """Twins of the same families are merged, others are not."""
    text = intern_sentences([["a", "b"], ["a"]])
    word, first = Template(((0, "word"),)), Template(((0, "prefix:1"),))
    families = [Family("words", (word, first)), Family("bias", (BIAS,), 2), Family("bias", (BIAS,), 1)]
    y = np.array([0, 1, 0], np.uint32)
    assert len(build_problem(text, y, 2, families, merge_twins="families").columns) == 3
    split = [Family("words", (word,)), Family("first", (first,)), *families[1:]]
    assert len(build_problem(text, y, 2, split, merge_twins="families").columns) == 5
    assert len(build_problem(text, y, 2, split).columns) == 3
