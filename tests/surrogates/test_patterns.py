"""The CRF surrogate on the pattern automaton against enumeration, and training on it against the dense lattice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enumeration import Enumeration, all_candidates, feature_of, number_of
from objectives import objective, scan_of, value_and_gradient
from partial_labels import PartialEnumeration, partial_cases
from small_problems import active_sets, cases, strengths
from vcrf import VCRF
from vcrf.data import SyntheticLanguage
from vcrf.errors import BudgetError, InputError
from vcrf.families import Family, Template, intern_sentences, paper_families, transition_families
from vcrf.kernels import (
    pattern_arcs,
    pattern_changes,
    pattern_groups,
    pattern_lanes,
    pattern_levels,
    pattern_pass,
    pattern_sweeps,
)
from vcrf.kernels import patterns as kernels
from vcrf.kernels.blocks import PassOutput
from vcrf.kernels.product import no_loss
from vcrf.losses import AlignedNgramLoss, HammingLoss
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem
from vcrf.solvers.group import solve_group
from vcrf.solvers.result import Status
from vcrf.solvers.run import RunOptions
from vcrf.solvers.working_set import solve
from vcrf.structures import arc_hessian, level_scan
from vcrf.structures.chain import Chain
from vcrf.surrogates.choice import choose

few = settings(max_examples=30)
WORD = Template(((0, "word"),))


def surrogate_of(case, threads=1):
    """The surrogate with every pass on the automaton, and no column screened."""
    return objective("crf", case.problem, case.costs, "patterns", threads)


def check(case, features, w, expected, rtol=1e-9):
    """Compare value and gradient with enumeration."""
    numbers = np.array([number_of(case.problem, f) for f in features], np.int64)
    surrogate = surrogate_of(case)
    value, gradient = value_and_gradient(surrogate, surrogate.compile(numbers), w)
    scale = 1.0 + np.abs(w).max(initial=0.0)
    np.testing.assert_allclose(value, expected.value(w), rtol=rtol, atol=1e-12 * scale)
    np.testing.assert_allclose(gradient, expected.gradient(w), rtol=rtol, atol=1e-11 * scale)


def check_scan(case, features, w, expected, limit, gradients):
    """Every candidate above its limit is found, with its gradient, and none below."""
    problem = case.problem
    candidates = all_candidates(problem)
    limits = {k: np.full(len(problem.columns), np.inf) for k in range(1, problem.order + 1)}
    for column, k, _ in candidates:
        limits[k][column] = limit * (1.0 + 0.2 * k)
    surrogate = surrogate_of(case)
    active = surrogate.compile(np.array([number_of(problem, f) for f in features], np.int64))
    point, scan = surrogate.scan(active, w, limits)
    assert scan.is_complete
    scale = 1.0 + np.abs(w).max(initial=0.0)
    np.testing.assert_allclose(point.value, expected.value(w), rtol=1e-9, atol=1e-12 * scale)
    found = dict(zip((feature_of(problem, f) for f in scan.features), scan.gradients.tolist(), strict=True))
    for feature, g in zip(candidates, gradients(w, candidates), strict=True):
        bound = limits[feature.k][feature.column]
        if feature in found:
            assert abs(g) > bound * (1.0 - 1e-5)
            np.testing.assert_allclose(found[feature], g, rtol=3e-6, atol=1e-9 * scale)
        else:
            assert abs(g) < bound * (1.0 + 1e-5)
    assert set(found) <= set(candidates)
    np.testing.assert_allclose(point.gradient, expected.gradient(w), rtol=1e-9, atol=1e-11 * scale)


@settings(max_examples=80)
@given(st.data())
def test_value_and_gradient_equal_enumeration(data):
    """Any order, loss, weights, numbers, lexical patterns; scores small, large, and too large for scaled messages."""
    case = data.draw(cases())
    features, _, w = data.draw(active_sets(case, scales=(0.3, 3.0, 30.0, 1e3, 1e5)))
    check(case, features, w, Enumeration(case.problem, features, case.costs))


@few
@given(st.data())
def test_rows_and_differences_agree(data):
    """Where differences would lose digits rows are summed in full: the same masses and counts."""
    case = data.draw(cases(min_tags=3).filter(lambda case: case.problem.n_tokens > 0))
    _, numbers, _ = data.draw(active_sets(case))
    rng = np.random.default_rng(0)
    surrogate = surrogate_of(case)
    here = surrogate.at(surrogate.compile(numbers), rng.normal(size=len(numbers))).sums.potentials
    found = [swept(case.problem, here, is_mild) for is_mild in (True, False)]
    for mild, full in zip(*found, strict=True):
        np.testing.assert_allclose(mild, full, rtol=1e-9, atol=1e-12)


def swept(problem, here, is_mild):
    """Counts of arcs, posteriors of labels and of local patterns of all sentences side by side."""
    ptr, n_labels, n_states = problem.sent_ptr, problem.n_labels, here.by_arcs.automaton.n_states
    which = np.flatnonzero(np.diff(ptr))
    loss, node = no_loss(), np.random.default_rng(1).random(problem.n_tokens * n_labels)
    arcs = pattern_sweeps.weighted(n_labels, here.by_arcs.graph, here.arcs.factor, here.local)
    group = pattern_groups.make_group.py_func(loss, False, which, ptr, np.ones(len(ptr)), node, 0, n_labels)
    largest = int(group.place[-1])
    m = pattern_sweeps.make_messages.py_func(n_labels, n_states, len(which), largest, False)
    pattern_sweeps.backward(group, n_labels, arcs, m, np.zeros(0))
    counts, labels = np.empty(len(here.arcs.factor)), np.empty(len(node))
    local = np.zeros(len(here.local.arc))
    assert pattern_sweeps.sweep_forward(group, n_labels, arcs, is_mild, m, counts, np.zeros(0), labels, local)
    return counts, labels, local


@settings(max_examples=80)
@given(st.data(), st.sampled_from([0.005, 0.05, 0.3]))
def test_scan_finds_every_candidate_above_its_limit(data, limit):
    """Patterns are skipped only where their parts show that they cannot exceed it."""
    case = data.draw(cases())
    features, _, w = data.draw(active_sets(case, scales=(0.3, 3.0, 1e3)))
    expected = Enumeration(case.problem, features, case.costs)
    check_scan(case, features, w, expected, limit, expected.gradients)


@settings(max_examples=80)
@given(st.data(), st.sampled_from([0.01, 0.05, 0.2, 0.5]), st.sampled_from([1.0, 0.01]))
def test_scan_bounds_the_norms_of_whole_groups(data, limit, pairs):
    """Of patterns never looked at too: no group that may exceed a limit has a norm above its bound."""
    case = data.draw(cases(min_tags=2))
    features, numbers, w = data.draw(active_sets(case, scales=(0.3, 3.0, 1e3)))
    problem, surrogate = case.problem, surrogate_of(case)
    candidates = all_candidates(problem)
    limits = {k: np.full(len(problem.columns), np.inf) for k in problem.kinds}
    for column, k, _ in candidates:
        limits[k][column] = limit * (1.0 + 0.2 * k) * (pairs if k <= 2 else 1.0)
    _, scan = scan_of(surrogate, surrogate.compile(numbers), w, limits)
    squares = {k: np.zeros(len(problem.columns)) for k in problem.kinds}
    largest = {k: np.zeros(len(problem.columns)) for k in problem.kinds}
    gradients = Enumeration(problem, features, case.costs).gradients(w, candidates)
    for (column, k, _), g in zip(candidates, gradients, strict=True):
        squares[k][column] += g**2
        largest[k][column] = max(largest[k][column], abs(g))
    for k in problem.kinds:
        # Where no bound is given, no gradient exceeds its limit.
        is_bounded = scan.norms[k] > 0.0
        assert np.all(np.sqrt(squares[k]) <= np.where(is_bounded, scan.norms[k], np.inf) * (1.0 + 1e-9) + 1e-12)
        assert np.all(largest[k] <= np.where(is_bounded, np.inf, limits[k]) * (1.0 + 1e-9))


def test_bounds_of_norms_with_words():
    """Pairs of labels with a word that are kept out count: nothing is looked at of the words' groups of length 3."""
    text = intern_sentences([["a", "b", "a", "b", "a", "b"]] * 2)
    problem = build_problem(text, np.zeros(12, np.uint32), 2, [Family("word", (WORD,), k) for k in (1, 2, 3)])
    limits = {1: np.full(2, 1e-3), 2: np.full(2, 1e-3), 3: np.full(2, 1.9)}
    surrogate = objective("crf", problem, np.zeros(2), "patterns")
    _, scan = scan_of(surrogate, surrogate.compile(np.zeros(0, np.int64)), np.zeros(0), limits)
    # Two tokens of each word have room for three labels: seven patterns of 1/8 at each, and the true one.
    assert np.all(problem.split_features(scan.features)[1] < 3)
    assert np.all(scan.norms[3] >= 2.0 * np.sqrt(7 / 64 + (7 / 8) ** 2))


def test_bounds_of_norms_are_of_use():
    """Most patterns are left out, and the bounds of their groups are not far above the norms."""
    problem = random_problem(n_sentences=60, n_labels=6, tags=4)
    bias, none = problem.bias_column, np.zeros(0, np.int64)
    surrogate = objective("crf", problem, np.zeros(60), "patterns")
    norms = []
    for limit in (0.0, 0.005):
        limits = {k: np.full(len(problem.columns), limit) for k in problem.kinds}
        _, scan = scan_of(surrogate, surrogate.compile(none), np.zeros(0), limits)
        norms.append([scan.norms[k][bias] for k in (2, 3, 4)])
    assert len(scan.features) < 0.5 * 6**4
    assert np.all(np.array(norms[0]) <= norms[1])
    np.testing.assert_allclose(norms[0][:2], norms[1][:2], rtol=0.02)
    np.testing.assert_allclose(norms[0][2], norms[1][2], rtol=0.3)


@few
@given(st.data(), st.sampled_from(["crf", "structboost"]))
def test_group_norm_ends_at_the_optimum_of_the_dense_lattice(data, kind):
    """The objectives differ by no more than the gaps, at orders up to 4, with groups of all lengths or few."""
    case = data.draw(cases(max_labels=3, max_length=5, min_tags=2, max_sentences=3))
    penalty = FamilyPenalty.from_strengths(data.draw(strengths(case, values=(0.03, 0.1, 0.3))), "group")
    choice = choose(case.problem, kind, HammingLoss() if kind == "crf" else AlignedNgramLoss(2))
    results = [
        solve_group(case.problem, penalty, choice, RunOptions(tol=1e-4, lattice=x))
        for x in ("dense", "patterns", "auto")
    ]
    for found in results:
        assert found.status is Status.CONVERGED
    for found in results[1:]:
        assert abs(found.objective - results[0].objective) <= max(found.gap, results[0].gap) + 1e-12


def test_groups_of_long_patterns_that_stay_out_cost_no_table(monkeypatch):
    """60 labels at order 4 with dear long patterns: certified without any of the 12,960,000; cheap ones are refused."""
    rng = np.random.default_rng(1)
    X = [[str(w) for w in rng.integers(0, 50, 12)] for _ in range(40)]
    y = np.concatenate([[(int(a) * 7 + int(b)) % 60 for a, b in zip(s, s[1:] + s[:1], strict=True)] for s in X])
    problem = build_problem(intern_sentences(X), y.astype(np.uint32), 60, transition_families(4))
    dear = np.array([0.3 if f.tags <= 2 else 5.0 for f in problem.families])
    choice = choose(problem, "crf", None)
    result = solve_group(problem, FamilyPenalty.from_strengths(dear, "group"), choice, RunOptions(tol=1e-2))
    assert result.status is Status.CONVERGED
    assert 2 in problem.split_features(result.features)[1]
    assert problem.split_features(result.features)[1].max() <= 2
    monkeypatch.setattr("vcrf.solvers.group.MAX_FEATURES", 10_000)
    with pytest.raises(BudgetError, match=r"takes all .* patterns of a length together"):
        solve_group(problem, FamilyPenalty.from_strengths(0.1 * dear, "group"), choice, RunOptions(tol=1e-2))


@few
@given(st.data(), st.sampled_from([0.01, 0.1]))
def test_scan_of_observed_candidates(data, limit):
    """Only pairs seen in training are candidates."""
    case = data.draw(cases(candidates=("all", "observed")))
    features, _, w = data.draw(active_sets(case, scales=(0.3, 3.0)))
    expected = Enumeration(case.problem, features, case.costs)
    check_scan(case, features, w, expected, limit, expected.gradients)


@few
@given(st.data(), st.sampled_from([0.01, 0.1]))
def test_labels_left_open(data, limit):
    """The sum over the allowed labels stands for the truth, in passes and in scans."""
    case = data.draw(partial_cases())
    if not case.problem.is_partial:
        return
    features, _, w = data.draw(active_sets(case, scales=(0.3, 3.0, 1e3)))
    check(case, features, w, PartialEnumeration(case.problem, features, case.costs))
    every = all_candidates(case.problem)
    gradients = lambda w, candidates: PartialEnumeration(case.problem, candidates, case.costs).gradient(  # noqa: E731
        np.array([dict(zip(features, w, strict=True)).get(f, 0.0) for f in candidates])
    )
    if len(every) < 400:
        expected = PartialEnumeration(case.problem, features, case.costs)
        check_scan(case, features, w, expected, limit, gradients)


def random_problem(n_sentences=30, n_labels=3, tags=4, seed=0, families=None):
    """Words and labels with some order in them."""
    rng = np.random.default_rng(seed)
    X = [[str(rng.integers(6)) for _ in range(rng.integers(1, 9))] for _ in range(n_sentences)]
    y, state = [], 0
    for sentence in X:
        for word in sentence:
            state = (2 * state + int(word)) % n_labels if rng.random() < 0.7 else int(rng.integers(n_labels))
            y.append(state)
    text = intern_sentences(X)
    return build_problem(text, np.array(y, np.uint32), n_labels, families or transition_families(tags))


@few
@given(st.data())
def test_training_ends_at_the_optimum_of_the_dense_lattice(data):
    """The objectives differ by no more than the gaps, whatever the order."""
    case = data.draw(cases(max_labels=3, max_length=5, min_tags=2))
    penalty = FamilyPenalty.from_strengths(data.draw(strengths(case)), data.draw(st.sampled_from(["l1", "elastic"])))
    results = [
        solve(case.problem, penalty, costs=case.costs, tol=1e-5, lattice=lattice)
        for lattice in ("dense", "patterns", "auto")
    ]
    for found in results[1:]:
        assert abs(found.objective - results[0].objective) <= max(found.gap, results[0].gap) + 1e-12
        assert found.gap <= max(1e-5 * found.objective, 1.5 * results[0].gap)


def test_threads_and_blocks_do_not_change_the_result(monkeypatch):
    """Sums have a fixed order."""
    problem = random_problem()
    monkeypatch.setattr("vcrf.structures.chain._TOKENS_PER_BLOCK", 16)
    penalty = FamilyPenalty.from_strengths(np.full(len(problem.families), 0.02), "l1")
    one, two = (solve(problem, penalty, threads=n, lattice="patterns", tol=1e-4) for n in (1, 2))
    np.testing.assert_array_equal(one.features, two.features)
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.gap == two.gap


def test_pairs_of_columns_are_summed_in_parts(monkeypatch):
    """A scan with room for few pairs at a time finds the same."""
    text = intern_sentences([["a", "b", "a", "c"], ["c", "a", "b", "b"]])
    y = np.array([0, 1, 0, 1, 1, 0, 0, 1], np.uint32)
    problem = build_problem(text, y, 2, paper_families(1, 3, 0))
    limits = {k: np.full(len(problem.columns), 0.05) for k in (1, 2, 3)}
    scans = []
    for room in (1 << 22, 4):
        monkeypatch.setattr(level_scan, "_MAX_SUMS", room)
        surrogate = objective("crf", problem, np.zeros(2), "patterns")
        scans.append(scan_of(surrogate, surrogate.compile(np.zeros(0, np.int64)), np.zeros(0), limits)[1])
    np.testing.assert_array_equal(scans[0].features, scans[1].features)
    np.testing.assert_array_equal(scans[0].gradients, scans[1].gradients)
    assert len(scans[0].features) > 20


def test_first_scans_go_one_label_further_than_the_working_set():
    """Without long patterns in the working set a scan with violators stops, and says so; complete ones find more."""
    problem = random_problem(tags=5)
    limits = {k: np.full(len(problem.columns), 0.01) for k in range(1, 6)}
    surrogate = objective("crf", problem, np.zeros(30), "patterns")
    empty = surrogate.compile(np.zeros(0, np.int64))
    _, scan = scan_of(surrogate, empty, np.zeros(0), limits, may_stop=True)
    assert not scan.is_complete
    assert problem.split_features(scan.features)[1].max() == 2
    _, scan = scan_of(surrogate, empty, np.zeros(0), limits)
    assert scan.is_complete
    assert problem.split_features(scan.features)[1].max() > 2


def test_the_lattice_is_chosen_by_its_cost():
    """Few long patterns over many labels go to the automaton, short ones and all patterns of few labels do not."""
    rng = np.random.default_rng(0)
    text = intern_sentences([["a"] * 40])
    problem = build_problem(text, rng.integers(0, 20, 40).astype(np.uint32), 20, transition_families(3))
    keep = np.ones(len(problem.columns), bool)
    surrogate = Chain(problem, keep)
    column = np.full(60, problem.bias_column, np.uint32)
    long = problem.join_features(column, 3, rng.choice(8000, 60, replace=False).astype(np.uint32))
    short = problem.join_features(column, 2, rng.choice(400, 60, replace=False).astype(np.uint32))
    assert surrogate.compile(np.sort(long)).arcs.is_cheap
    assert not surrogate.compile(np.sort(short)).arcs.is_cheap
    assert Chain(problem, keep, lattice="dense").is_dense
    small = random_problem(tags=2)
    keep = np.ones(len(small.columns), bool)
    assert Chain(small, keep).is_dense
    pairs = build_problem(text, rng.integers(0, 20, 40).astype(np.uint32), 20, transition_families(2))
    many = Chain(pairs, np.ones(len(pairs.columns), bool))
    assert not many.is_dense
    assert not many.compile(np.sort(short)).arcs.is_cheap  # only Hessians and scans are the automaton's
    with pytest.raises(InputError, match="inference"):
        Chain(small, keep, lattice="sparse")


def test_many_labels_of_order_two_have_the_optimum_of_the_dense_lattice():
    """Hessians of the automaton beside exact ones."""
    rng = np.random.default_rng(2)
    X = [[str(w) for w in rng.integers(0, 60, 8)] for _ in range(60)]
    y = [[f"T{(int(a) * 7 + int(b)) % 20}" for a, b in zip(s, s[1:] + s[:1], strict=True)] for s in X]
    found = [
        VCRF(recipe="paper", tags=2, words=0, affix=0, norm="l1", base_strength=0.01, inference=inference).fit(X, y)
        for inference in ("auto", "dense")
    ]
    assert all(tagger.gap_ <= 1e-3 * tagger.objective_ for tagger in found)
    assert found[0].objective_ == pytest.approx(found[1].objective_, rel=1e-3)


def test_sixty_labels_at_order_five():
    """Far beyond any dense lattice: it trains, tags and certifies; asked for, the dense one is refused."""
    rng = np.random.default_rng(1)
    X = [[str(w) for w in rng.integers(0, 200, 12)] for _ in range(60)]
    y = [[f"T{(int(a) * 7 + int(b)) % 60}" for a, b in zip(s, s[1:] + s[:1], strict=True)] for s in X]
    tagger = VCRF(recipe="paper", tags=5, words=0, affix=0, base_strength=1.0 / 60, tol=0.05).fit(X, y)
    assert tagger.gap_ <= 0.05 * tagger.objective_
    assert len(tagger.predict(X[:3])[0]) == 12
    with pytest.raises(BudgetError, match="dense"):
        VCRF(tags=5, words=0, affix=0, inference="dense").fit(X, y)


def test_patterns_join_although_shorter_ones_do_not():
    """Where only patterns of three labels can have weights, they are found, and the gap closes."""
    text = intern_sentences([["a"] * 6, ["a"] * 5])
    y = np.array([0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0], np.uint32)
    problem = build_problem(text, y, 2, transition_families(3))
    strengths = np.array([10.0 if f.name != "tags:3" else 0.05 for f in problem.families])
    for lattice in ("dense", "patterns"):
        result = solve(problem, FamilyPenalty.from_strengths(strengths, "l1"), tol=1e-5, lattice=lattice)
        assert result.status is Status.CONVERGED
        assert set(problem.split_features(result.features)[1].tolist()) == {3}


@few
@given(st.data())
def test_hessian_is_the_covariance_of_the_counts(data):
    """On the automaton, at orders 1 to 4, with words or without: exact where nothing is drawn, else close to it."""
    case = data.draw(cases(max_tags=4, max_length=4))
    features, numbers, w = data.draw(active_sets(case, scales=(0.3, 1.0), max_size=12))
    chosen, surrogate = np.arange(0, len(features), 2), surrogate_of(case, threads=2)
    active = surrogate.compile(numbers)
    expected = Enumeration(case.problem, features, case.costs).hessian(w)[np.ix_(chosen, chosen)]
    drawn = surrogate.hessian(active, w, chosen)
    # A draw has a posterior of 1e-3, and 4 tokens at the most are wrong with it.
    np.testing.assert_allclose(drawn, expected, atol=2e-2)
    assert np.linalg.eigvalsh(drawn).min(initial=0.0) > -5e-3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arc_hessian, "LEAST", (0.0, 0.0))
        exact = surrogate.hessian(active, w, chosen)
    np.testing.assert_allclose(exact, expected, atol=1e-9)


def test_sentences_side_by_side_and_one_by_one():
    """Groups of sentences of different lengths, one group not full, find what each sentence alone does."""
    problem, rng = random_problem(tags=4), np.random.default_rng(1)
    surrogate = objective("crf", problem, rng.random(30), "patterns")
    codes = rng.choice(problem.n_labels**4, 20, replace=False).astype(np.uint32)
    active = surrogate.compile(np.sort(problem.join_features(np.full(20, problem.bias_column, np.uint32), 4, codes)))
    sums = surrogate.at(active, rng.normal(size=20)).sums
    here = sums.potentials
    arcs, local, plan = here.arcs, here.local, active.arcs
    n_tokens, n_labels, sentences = problem.n_tokens, problem.n_labels, here.sentences(sums.loss, sums.weights)
    out = PassOutput(np.zeros(30), np.zeros(n_tokens * n_labels), np.zeros(0), np.zeros(30, np.uint32))
    counts = np.zeros(plan.automaton.n_arcs)
    for i in np.flatnonzero(np.diff(problem.sent_ptr)):
        pattern_pass.pattern_pass(
            sentences, no_loss(), False, i, i + 1, n_labels, active.rows, here.scores, plan.graph, arcs,
            here.corrections, local, False, False, counts, np.zeros(0), out,
        )  # fmt: skip
    kernels.sum_counts(plan.automaton.up, counts)
    np.testing.assert_allclose(sums.values, out.values, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(sums.residuals.ravel(), out.residuals, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(sums.counts, counts, rtol=1e-9, atol=1e-13)


def _leave_all(*args):
    """In the place of `level_lanes`: all sentences are left to the log domain, where they are one by one."""
    (sentences, first, last), output = args[:3], args[-2]
    output.hard[first:last] = np.diff(sentences.ptr)[first:last] > 0


@pytest.mark.parametrize("way", ["one by one", "in full"])
def test_scan_of_sentences_side_by_side(way, monkeypatch):
    """Patterns with words too, contexts longer than what is summed, groups of different lengths, one not full."""
    rng = np.random.default_rng(3)
    problem = random_problem(n_sentences=40, families=paper_families(1, 4, 0))
    surrogate = objective("crf", problem, rng.random(40), "patterns")
    surrogate.weights = surrogate.weights * rng.uniform(0.5, 2.0, 40)
    limits = {k: np.full(len(problem.columns), 0.002) for k in range(1, 5)}
    _, scan = scan_of(surrogate, surrogate.compile(np.zeros(0, np.int64)), np.zeros(0), limits)
    active, w = surrogate.compile(np.sort(rng.choice(scan.features, 80, replace=False))), rng.normal(size=80)
    _, scan = scan_of(surrogate, active, w, limits)
    variances = scan.variances
    lengths = problem.split_features(scan.features)[1]
    assert min(np.bincount(lengths.astype(np.int64))[1:]) > 20
    assert active.arcs.automaton.size.max() == 3
    if way == "one by one":
        monkeypatch.setattr(pattern_levels, "level_lanes", _leave_all)
    else:
        # No sum of differences passes for exact; the loops, and what they call, run in Python to see it.
        monkeypatch.setattr(pattern_levels, "EXACT", -1.0)
        inside = (pattern_levels, pattern_lanes, pattern_arcs, pattern_changes, pattern_groups, pattern_sweeps)
        for module in (*inside, kernels):
            for name, loop in list(vars(module).items()):
                is_inner = "no_cpython_wrapper" in getattr(loop, "targetoptions", {})
                if is_inner or (hasattr(loop, "py_func") and loop.__module__ in {each.__name__ for each in inside}):
                    monkeypatch.setattr(module, name, loop.py_func)
        monkeypatch.setattr(pattern_levels, "mass_of_arcs", lambda *args: args[-1].fill(np.nan))
    _, other = scan_of(surrogate, active, w, limits)
    np.testing.assert_array_equal(scan.features, other.features)
    np.testing.assert_allclose(scan.gradients, other.gradients, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(variances.features, other.variances.features)
    np.testing.assert_allclose(variances.variances, other.variances.variances, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tags", [3, 4])
def test_newton_steps_close_the_gap_at_higher_orders(tags):
    """With an L1 penalty alone, where quasi-Newton steps leave it open."""
    corpus = SyntheticLanguage(n_labels=4, n_stems=100, seed=3).sample(60, seed=4)
    tagger = VCRF(recipe="paper", tags=tags, base_strength=0.3 / 60, tol=1e-6, inference="patterns").fit(
        corpus.tokens, corpus.labels
    )
    assert tagger.status_ is Status.CONVERGED
    assert any(record.phase == "newton" for record in tagger.history_)
    assert tagger.result_.n_passes < 400
