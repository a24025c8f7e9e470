"""The training's surrogates of any loss, on the product lattice, against enumeration of every label sequence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from enumeration import LossEnumeration, all_candidates, feature_of, number_of
from objectives import maximum, objective, scan_of, value_and_gradient
from small_problems import WORD, active_sets, cases, pairs_kept
from vcrf import VCRF
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError
from vcrf.families import Family, intern_sentences, transition_families
from vcrf.kernels import potentials
from vcrf.lattice import DenseLattice
from vcrf.losses import AlignedNgramLoss, EditLoss, HammingLoss, LossAutomaton, WeightedHammingLoss, ZeroOneLoss
from vcrf.problem import build_problem
from vcrf.structures import chain
from vcrf.structures.compiled_loss import compile_loss, join_automata
from vcrf.structures.hard import lattice_arcs
from vcrf.structures.structure import Purpose
from vcrf.structures.tables import build_tables, key_scores, slot_corrections
from vcrf.structures.training_loss import TrainingLoss
from vcrf.surrogates import evaluate
from vcrf.workers import Workers

few = settings(max_examples=25)
LOSSES = [HammingLoss(), AlignedNgramLoss(2), ZeroOneLoss(), HammingLoss() + 2.0 * AlignedNgramLoss(3)]


def expected_of(kind, problem, features, loss, w):
    """Return value and gradient by enumeration."""
    truth = LossEnumeration(problem, features, loss)
    if kind == "crf":
        return truth.value(w), truth.gradient(w)
    return truth.mean_exponential(w, kind == "structboost")


def check(kind, case, features, loss, w, rtol=1e-9):
    """Compare value and gradient."""
    numbers = np.array([number_of(case.problem, f) for f in features], np.int64)
    surrogate = objective(kind, case.problem, loss)
    value, gradient = value_and_gradient(surrogate, surrogate.compile(numbers), w)
    expected, slope = expected_of(kind, case.problem, features, loss, w)
    scale = 1.0 + np.abs(w).max(initial=0.0)
    np.testing.assert_allclose(value, expected, rtol=rtol, atol=1e-11 * scale)
    np.testing.assert_allclose(gradient, slope, rtol=rtol, atol=1e-11 * scale)


KINDS = ["crf", "structboost", "exponential"]


@pytest.mark.parametrize("kind", KINDS)
@few
@given(st.data())
def test_value_and_gradient_equal_enumeration(kind, data):
    """Any loss, order, sentence weights, numbers and overlapping patterns."""
    case = data.draw(cases(max_length=5))
    features, _, w = data.draw(active_sets(case, scales=(0.3, 3.0)))
    check(kind, case, features, data.draw(st.sampled_from(LOSSES)), w)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(st.data())
def test_large_weights_and_losses_leave_the_scaled_messages(kind, data):
    """Scores or losses that span more than 600 nats are done in the log domain."""
    case = data.draw(cases(max_length=4, max_tags=3))
    features, _, w = data.draw(active_sets(case, scales=(1.0, 300.0, 1e3)))
    loss = 700.0 * AlignedNgramLoss(2) if data.draw(st.booleans()) and kind == "crf" else AlignedNgramLoss(2)
    check(kind, case, features, loss, w, rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@few
@given(st.data())
def test_scan_finds_every_gradient_above_its_limit(kind, data):
    """All candidates, in or out of the active set, of all pattern lengths."""
    case = data.draw(cases(max_length=4, max_tags=3))
    features, numbers, w = data.draw(active_sets(case, scales=(0.5, 2.0, 300.0)))
    loss = data.draw(st.sampled_from(LOSSES))
    surrogate = objective(kind, case.problem, loss)
    limit = data.draw(st.sampled_from([0.0, 0.02, 0.1]))
    limits = {k: np.full(len(case.problem.columns), np.inf) for k in range(1, case.problem.order + 1)}
    for f in all_candidates(case.problem):
        limits[f.k][f.column] = limit
    with pairs_kept(data.draw(st.booleans())):
        value, scan = scan_of(surrogate, surrogate.compile(numbers), w, limits)
    every = all_candidates(case.problem)
    wide = np.zeros(len(every))
    wide[[every.index(f) for f in features]] = w
    expected, gradients = expected_of(kind, case.problem, every, loss, wide)
    scale = 1.0 + np.abs(w).max(initial=0.0)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-11 * scale)
    found = {feature_of(case.problem, n): g for n, g in zip(scan.features, scan.gradients, strict=True)}
    for f, g in zip(every, gradients, strict=True):
        if abs(abs(g) - limit) > 1e-9:
            assert (f in found) == (abs(g) > limit)
            if f in found:
                assert found[f] == pytest.approx(g, rel=1e-8, abs=1e-11)
    mass = surrogate.mass
    assert all(abs(g) <= mass[f.column] + 1e-9 for f, g in found.items())


@few
@given(st.data())
def test_a_scan_finds_the_mean_losses(data):
    """At order 1 too, where it keeps no posteriors of arcs; a pass after it leaves them alone, hard sentences too."""
    case = data.draw(cases(max_length=4, max_tags=3))
    features, numbers, w = data.draw(active_sets(case, scales=(0.5, 2.0, 100.0, 300.0, 1e3)))
    loss = data.draw(st.sampled_from([*LOSSES, EditLoss()]))
    surrogate, truth = objective("crf", case.problem, loss), LossEnumeration(case.problem, features, loss)
    nothing = {k: np.full(len(case.problem.columns), np.inf) for k in range(1, case.problem.order + 1)}
    point, _ = surrogate.scan(surrogate.compile(numbers), w, nothing)
    surrogate.at(surrogate.compile(numbers), 0.5 * w)
    expected = [oracles.probabilities(truth.scores(i, w)) @ truth.losses[i] for i in range(len(truth.weights))]
    np.testing.assert_allclose(point.sums.mean_losses(), expected, rtol=1e-9, atol=1e-12)


@few
@given(st.data())
def test_hamming_on_the_product_is_the_fast_path(data):
    """One state a layer: the plain chain with costs, for crf and for the exponential surrogate."""
    case = data.draw(cases(loss=True))
    _, numbers, w = data.draw(active_sets(case, scales=(0.5, 2.0)))
    loss = compile_loss(case.problem, HammingLoss())
    if case.n_labels > 1:
        np.testing.assert_allclose(loss.hamming_costs(case.problem), case.costs * (np.diff(case.problem.sent_ptr) > 0))
    for kind in ("crf", "exponential"):
        general, fast = objective(kind, case.problem, loss), objective(kind, case.problem, case.costs)
        value, gradient = value_and_gradient(general, general.compile(numbers), w)
        expected, slope = value_and_gradient(fast, fast.compile(numbers), w)
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-10)


@few
@given(cases(max_length=4))
def test_only_the_hamming_loss_takes_the_fast_path(case):
    """A cost that depends on the label, or on the label before, does not."""
    costs = np.arange(case.n_labels)[:, None] + np.ones(case.n_labels)
    weighted = WeightedHammingLoss(costs * (1.0 - np.eye(case.n_labels)))
    lengths = np.diff(case.problem.sent_ptr)
    if case.n_labels > 2 and lengths.max() > 1:
        assert compile_loss(case.problem, weighted).hamming_costs(case.problem) is None
        assert compile_loss(case.problem, ZeroOneLoss()).hamming_costs(case.problem) is None


@few
@given(cases(max_length=5), st.integers(2, 4))
def test_threads_do_not_change_a_bit(case, threads):
    """Blocks and the order of their sums are fixed."""
    numbers = np.array([number_of(case.problem, f) for f in all_candidates(case.problem)[:20]], np.int64)
    w = np.linspace(-1.0, 1.0, len(numbers))
    found = []
    for n in (1, threads):
        usual = chain._TOKENS_PER_BLOCK
        chain._TOKENS_PER_BLOCK = 2
        try:
            surrogate = objective("structboost", case.problem, AlignedNgramLoss(2), threads=n)
        finally:
            chain._TOKENS_PER_BLOCK = usual
        found.append(value_and_gradient(surrogate, surrogate.compile(numbers), w))
    assert found[0][0] == found[1][0]
    assert np.array_equal(found[0][1], found[1][1])


@few
@given(cases(max_length=4))
def test_bad_losses_are_refused(case):
    """Infinite, negative, or not 0 at the truth."""

    def with_cost(value):
        def automaton(y):
            built = HammingLoss().automaton(y, case.n_labels)
            cost = built.cost.copy()
            cost[0, int(y[0]) if value == 0.5 else (int(y[0]) + 1) % case.n_labels] = value
            return LossAutomaton(built.n_labels, built.state_ptr, built.next, cost, built.final)

        return automaton

    if case.n_labels > 1 and case.problem.n_tokens:
        for value, words in ((np.inf, "infinite"), (-1.0, "negative"), (0.5, "must be 0")):
            with pytest.raises(InputError, match=words):
                join_automata(case.problem, with_cost(value))


@few
@given(st.data())
def test_slack_rescaling_is_exact_whatever_the_guess(data):
    """The largest loss * (1 + score difference) by enumeration; the guess only decides how much is looked at."""
    case = data.draw(cases(max_length=5, max_tags=3))
    features, _, w = data.draw(active_sets(case, scales=(0.1, 1.0, 10.0)))
    loss, problem = data.draw(st.sampled_from([*LOSSES, 0.5 * EditLoss() + HammingLoss()])), case.problem
    surrogate = maximum("structsvm", problem, loss)
    surrogate._kappas *= data.draw(st.sampled_from([1e-3, 0.3, 1.0, 3.0, 1e3]))
    active = surrogate.compile(np.array([number_of(problem, f) for f in features], np.int64))
    truth = LossEnumeration(problem, features, loss)
    for _ in range(2):  # the second time with the guesses of the first
        best = surrogate.find_best(active, w)
        for i in range(problem.text.n_sentences):
            gains = (truth.counts[i] - truth.counts[i][truth.gold[i]]) @ w
            products = truth.losses[i] * (1.0 + gains)
            tiny = 1e-10 * (1.0 + np.abs(truth.losses[i]).max() * np.abs(gains).max())
            assert best.values[i] == pytest.approx(max(0.0, products.max()), abs=tiny)
            y = problem.y[problem.sent_ptr[i] : problem.sent_ptr[i + 1]]
            labels = best.outputs.labels_of(i)
            sequences = oracles.all_sequences(len(y), problem.n_labels)
            found = next(k for k, z in enumerate(sequences) if list(z) == labels.tolist())
            assert max(products[found], 0.0) == pytest.approx(best.values[i], abs=tiny)
            assert best.slopes[i] == best.losses[i] == pytest.approx(truth.losses[i][found] if best.values[i] else 0.0)


@pytest.mark.parametrize("kind", ["m3n", "structsvm"])
@pytest.mark.parametrize("length", [1, 2, 40, 70])
def test_best_sequences_of_long_sentences(kind, length):
    """Any length, against the lattice of one sentence: numbers of label sequences do not fit into 64 bits."""
    rng = np.random.default_rng(length)
    text = intern_sentences([[str(rng.integers(5)) for _ in range(length)] for _ in range(3)])
    y = rng.integers(4, size=text.n_tokens).astype(np.uint32)
    families = [Family("word", (WORD,)), *transition_families(3)]
    problem = build_problem(text, y, 4, families)
    loss = AlignedNgramLoss(2)
    surrogate = maximum(kind, problem, loss)
    numbers = np.array([number_of(problem, f) for f in all_candidates(problem) if rng.random() < 0.3], np.int64)
    w = 0.3 * rng.normal(size=len(numbers))
    active = surrogate.compile(numbers)
    best = surrogate.find_best(active, w)
    tables = build_tables(active, w, 4, 3)
    scores = key_scores(active, w, np.empty((len(active.row_ptr) - 1, 4)), Workers(1))
    for i in range(3):
        first, last = problem.sent_ptr[i], problem.sent_ptr[i + 1]
        node = np.empty((last - first) * 4)
        potentials.node_scores(active.rows, scores, first, last, node)
        arcs = lattice_arcs(node.reshape(-1, 4), int(first), 4, tables, slot_corrections(active, w, Workers(1)))
        truth = y[first:last].astype(np.int64)
        lattice = DenseLattice(arcs, 4, 3)
        expected = evaluate(kind, lattice, loss.automaton(truth, 4), truth)
        assert best.values[i] == pytest.approx(expected.value, abs=1e-9)
        labels = best.outputs.labels_of(i).astype(np.int64)
        assert best.losses[i] == pytest.approx(loss(labels, truth))
        slope = 1.0 if kind == "m3n" else best.losses[i]
        worth = best.losses[i] + slope * (lattice.score(labels) - lattice.score(truth))
        assert worth == pytest.approx(expected.value, abs=1e-9)


def differences(surrogate, active, w, step=1e-4):
    """Return the Hessian by differences of the gradient."""
    columns = []
    for j in range(len(w)):
        nudge = step * (np.arange(len(w)) == j)
        above, below = (value_and_gradient(surrogate, active, x)[1] for x in (w + nudge, w - nudge))
        columns.append((above - below) / (2 * step))
    return np.array(columns).reshape(len(w), len(w)).T


@pytest.mark.parametrize("lattice", ["dense", "patterns"])
@few
@given(st.data())
def test_hessian_of_the_exponential_surrogate(lattice, data):
    """With the Hamming loss it is exact, but for what the chain forgets, and for draws on the automaton."""
    case = data.draw(cases(max_tags=2 if lattice == "dense" else 4, max_length=4))
    _, numbers, w = data.draw(active_sets(case, max_size=16))
    surrogate = objective("exponential", case.problem, case.costs, lattice)
    active = surrogate.compile(numbers)
    expected = differences(surrogate, active, w)
    found = surrogate.hessian(active, w, np.arange(len(w)))
    tolerance = 5e-3 if lattice == "dense" else 2e-2
    np.testing.assert_allclose(found, expected, atol=tolerance * (1.0 + np.abs(expected).max(initial=0.0)))


@settings(max_examples=20)
@given(st.data())
def test_gradients_of_single_sentences(data):
    """They sum to the gradient, on both lattices, also where sentences are done in the log domain."""
    case = data.draw(cases(max_length=4))
    _, numbers, w = data.draw(active_sets(case, scales=(0.3, 3.0, 400.0)))
    for lattice in ("dense", "patterns") if case.problem.order <= 2 else ("patterns",):
        chain = objective("crf", case.problem, case.costs, lattice).structure
        loss = TrainingLoss(case.costs)
        sums = chain.prepare(chain.compile(numbers), w, loss, Purpose.HESSIAN).sums(loss, case.problem.weights)
        chosen = np.arange(0, len(numbers), 2)
        weights, rows = zip(*chain.sentence_gradients(sums, chosen), strict=True)
        np.testing.assert_array_equal(np.concatenate(weights), case.problem.weights)
        scale = 1.0 + np.abs(w).max(initial=0.0)
        np.testing.assert_allclose(
            np.sum(np.concatenate(rows), axis=0), chain.gradient(sums)[chosen], atol=1e-11 * scale
        )


@pytest.mark.parametrize("lattice", ["dense", "patterns"])
@pytest.mark.parametrize("kind", ["structboost", "exponential"])
@pytest.mark.parametrize("loss", [HammingLoss(), AlignedNgramLoss(2), EditLoss()])
def test_hessian_of_a_similar_surrogate(kind, loss, lattice):
    """It proposes steps only, but with the right curvature: along any direction within a half of the true one."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20).sample(12, seed=3)
    trained = VCRF(recipe="paper", norm="l1", base_strength=0.03).fit(corpus.tokens, corpus.labels)
    problem = trained._read(corpus.tokens, corpus.labels, None).problem
    w = trained.result_.weights
    for scale in (0.3, 1.0):
        surrogate = objective(kind, problem, loss, lattice)
        active = surrogate.compile(trained.result_.features)
        expected = differences(surrogate, active, scale * w)
        found = surrogate.hessian(active, scale * w, np.arange(len(w)))
        assert np.linalg.norm(found - expected) < 0.15 * np.linalg.norm(expected)
        rng = np.random.default_rng(0)
        for d in rng.normal(size=(50, len(w))):
            assert 0.6 < (d @ found @ d) / (d @ expected @ d) < 1.7
