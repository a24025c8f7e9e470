"""The pass over pairs of labels with plain patterns of three: against enumeration, and against the dense lattice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enumeration import Enumeration, all_candidates, number_of
from objectives import objective, scan_of
from small_problems import WORD
from vcrf.families import BIAS, END, START, Family, intern_sentences
from vcrf.problem import build_problem
from vcrf.structures.chain import Chain
from vcrf.structures.structure import Purpose
from vcrf.structures.training_loss import TrainingLoss
from vcrf.structures.triples import TriplePotentials, triple_potentials

PLAIN = [Family("bias", (BIAS,)), Family("word", (WORD,)), Family("pairs", (BIAS,), 2), Family("triples", (BIAS,), 3)]
FAMILIES = [*PLAIN, Family("ends", (START, END)), Family("pairs at ends", (START, END), 2)]


def problem_of(rng, n_labels, lengths, candidates="all", families=FAMILIES):
    """Build a problem of sentences of these lengths."""
    text = intern_sentences([[str(rng.choice(["a", "b", "ab"])) for _ in range(n)] for n in lengths])
    y = rng.integers(0, n_labels, text.n_tokens).astype(np.uint32)
    weights = rng.integers(1, 5, len(lengths)) / 8.0
    return build_problem(text, y, n_labels, families, weights=weights, candidates=candidates)


@st.composite
def drawn(draw, scales):
    """A problem of few label sequences, costs, a sorted choice of its features, and weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    problem = problem_of(rng, draw(st.integers(1, 3)), lengths, draw(st.sampled_from(["all", "observed"])))
    costs = np.array([1.0 / max(n, 1) for n in lengths]) * draw(st.sampled_from([0.0, 1.0]))
    every = all_candidates(problem)
    features = [f for f in every if rng.random() < draw(st.sampled_from([0.2, 0.7]))]
    return problem, costs, features, draw(st.sampled_from(scales)) * rng.normal(size=len(features))


@settings(max_examples=80)
@given(drawn([0.3, 3.0, 30.0, 1e3, 1e5]))
def test_value_gradient_and_scan_equal_enumeration(case):
    """With factors of triples near 0, sentences of no token, of one, and wide ones, a loss, and few candidates."""
    problem, costs, features, w = case
    found = objective("crf", problem, costs, lattice="auto")
    numbers = np.array([number_of(problem, f) for f in features], np.int64)
    plan, loss = found.compile(numbers), found.loss
    potentials = triple_potentials(found.structure, plan, w, is_scan=False)
    expected, scale = Enumeration(problem, features, costs), 1.0 + np.abs(w).max(initial=0.0)
    sums = potentials.sums(loss, problem.weights)
    value, gradient = found.outer(sums.values, problem.weights)[0], found.structure.gradient(sums)
    assert value == pytest.approx(expected.value(w), rel=1e-9, abs=1e-12 * scale)
    np.testing.assert_allclose(gradient, expected.gradient(w), rtol=1e-9, atol=1e-12 * scale)
    assert found.outer(potentials.values(loss), problem.weights)[0] == pytest.approx(value, rel=1e-12, abs=1e-12)

    limits = {k: np.where(problem.has_order(k), 0.05, np.inf) for k in problem.kinds}
    scanned_value, scan = scan_of(found, plan, w, limits)
    every = all_candidates(problem)
    gradients = expected.gradients(w, every)
    assert scanned_value == pytest.approx(value, rel=1e-12, abs=1e-12)
    is_clear = np.abs(np.abs(gradients) - 0.05) > 1e-8
    is_found = np.isin([number_of(problem, f) for f in every], scan.features)
    np.testing.assert_array_equal(is_found[is_clear], np.abs(gradients[is_clear]) > 0.05)
    np.testing.assert_allclose(scan.gradients, gradients[is_found], rtol=1e-8, atol=1e-11 * scale)


@pytest.mark.parametrize("families", [PLAIN, FAMILIES])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 8, 17])
def test_any_number_of_labels(n_labels, families):
    """The same as on the dense lattice, with lanes of all kinds; variances too, where no pairs have words."""
    rng = np.random.default_rng(n_labels)
    lengths = [0, 1, 2, 3, 4, 5, 6, 9, 30, 90, 1, 1]
    problem, keep = problem_of(rng, n_labels, lengths, families=families), None
    keep = np.ones(len(problem.columns), bool)
    loss = TrainingLoss(0.5 * np.ones(len(lengths)))
    chain, dense = Chain(problem, keep), Chain(problem, keep, lattice="dense")
    every = np.array([number_of(problem, f) for f in all_candidates(problem)], np.int64)
    features = every[rng.random(len(every)) < 0.4]
    w = 2.0 * rng.normal(size=len(features))
    plan, other = chain.compile(features), dense.compile(features)
    sums = chain.prepare(plan, w, loss, Purpose.SCAN, 3).sums(loss, problem.weights)
    kept = dense.prepare(other, w, loss, Purpose.SCAN, 3).sums(loss, problem.weights)
    np.testing.assert_allclose(sums.values, kept.values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums.residuals, kept.residuals, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(sums.slot_residuals, kept.slot_residuals, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(chain.gradient(sums), dense.gradient(kept), rtol=1e-9, atol=1e-13)
    if families is PLAIN:
        np.testing.assert_allclose(sums.messages.triple_variances, kept.variances, rtol=1e-8, atol=1e-13)


def test_a_factor_that_differences_would_lose_is_summed_in_full():
    """Where nearly all mass is in a triple that its own weight forbids, nothing but the others' small mass is left."""
    problem = problem_of(np.random.default_rng(1), 3, [4, 4, 5], families=PLAIN)
    chain, dense = (Chain(problem, np.ones(len(problem.columns), bool), lattice=kind) for kind in ("auto", "dense"))
    bias = np.array([problem.bias_column] * 3, np.uint32)
    kinds, codes = np.array([2, 3, 3], np.uint32), np.array([0, 0, 5], np.uint32)
    features = np.sort(problem.join_features(bias, kinds, codes))
    loss = TrainingLoss(np.zeros(3))
    for first, second in [(60.0, -60.0), (40.0, -35.0), (5.0, 80.0)]:
        w = np.array([first, second, 1.0])
        sums = triple_potentials(chain, chain.compile(features), w, is_scan=False).sums(loss, problem.weights)
        full = dense.prepare(dense.compile(features), w, loss).sums(loss, problem.weights)
        np.testing.assert_allclose(chain.gradient(sums), dense.gradient(full), rtol=1e-11, atol=1e-16)


def test_results_do_not_depend_on_threads():
    """Gradients and scans are the same to the last bit."""
    rng = np.random.default_rng(4)
    problem = problem_of(rng, 5, rng.integers(0, 30, 900))
    every = np.array([number_of(problem, f) for f in all_candidates(problem)], np.int64)
    w, loss = rng.normal(size=len(every)), TrainingLoss(np.zeros(900))
    limits = {k: np.where(problem.has_order(k), 0.05, np.inf) for k in problem.kinds}
    found = []
    for threads in (1, 3):
        chain = Chain(problem, np.ones(len(problem.columns), bool), threads)
        assert chain.n_blocks > 2
        plan, wanted = chain.compile(every), chain.wanted(np.full(len(problem.columns), np.inf), limits)
        sums = chain.prepare(plan, w, loss, Purpose.SCAN, 3).sums(loss, problem.weights)
        scan = chain.scan(sums, chain.gradient(sums), wanted)
        gradient = chain.gradient(triple_potentials(chain, plan, w, is_scan=False).sums(loss, problem.weights))
        found.append((gradient.tobytes(), scan.features.tobytes(), scan.gradients.tobytes()))
        chain.close()
    assert found[0] == found[1]


def test_what_is_left_to_other_passes():
    """Triples with words, many labels, best sequences and loss automata, and a lattice that was asked for."""
    text = intern_sentences([["a", "b", "a"], ["b"]])
    y = np.array([0, 1, 1, 0], np.uint32)
    lexical = build_problem(text, y, 2, [*PLAIN, Family("triples with words", (WORD,), 3)])
    plain = build_problem(text, y, 2, PLAIN)
    many = build_problem(text, y, 40, PLAIN)
    kept = {kind: np.ones(len(problem.columns), bool) for kind, problem in (("l", lexical), ("p", plain), ("m", many))}
    assert not Chain(lexical, kept["l"]).has_plain_triples
    assert not Chain(many, kept["m"]).has_plain_triples
    assert not Chain(plain, kept["p"], lattice="patterns").has_plain_triples
    assert not Chain(plain, kept["p"], keeps_arcs=True).has_plain_triples
    assert Chain(plain, kept["p"]).has_plain_triples


def test_the_cheaper_pass_is_taken():
    """Few triples are left to the automaton; with many, and for scans, states are pairs of labels."""
    rng = np.random.default_rng(0)
    problem = problem_of(rng, 20, [5, 6])
    chain, loss = Chain(problem, np.ones(len(problem.columns), bool)), TrainingLoss(np.zeros(2))
    for n_triples, is_here in (3, False), (3000, True):
        codes = np.sort(rng.choice(8000, n_triples, replace=False)).astype(np.uint32)
        plan = chain.compile(problem.join_features(np.full(n_triples, problem.bias_column, np.uint32), 3, codes))
        w = np.zeros(n_triples)
        assert isinstance(chain.prepare(plan, w, loss), TriplePotentials) == is_here
        assert isinstance(chain.prepare(plan, w, loss, Purpose.SCAN, 3), TriplePotentials)
