"""The dense lattice against enumeration, closed forms and the golden values."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from strategies import lattices
from vcrf.errors import InputError
from vcrf.kernels import log_domain
from vcrf.lattice import DenseLattice

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def scores_of(lattice):
    """Enumerate the scores, in the order of `sequences_of`."""
    return oracles.sequence_scores(lattice.arcs, lattice.order, lattice.n_labels)


def sequences_of(lattice):
    """All label sequences of a lattice."""
    return oracles.all_sequences(lattice.n_positions, lattice.n_labels)


def random_lattice(n_positions, n_labels, order, seed=0, scale=1.0):
    """Draw normal weights for every arc."""
    rng = np.random.default_rng(seed)
    return DenseLattice(scale * rng.normal(size=(n_positions, n_labels ** (order - 1), n_labels)), n_labels, order)


def chain(n_positions, seed=0):
    """Build a lattice of pairs with three labels whose transitions are the same everywhere, and its table."""
    table = np.random.default_rng(seed).normal(size=(3, 3))
    return DenseLattice.from_scores(np.zeros((n_positions, 3)), {2: table}), table


# ---- against enumeration ----


@given(lattices(feasible=False))
def test_log_partition_is_the_sum_over_all_sequences(lattice):
    """The forward recursion misses no sequence and counts none twice, also when all are forbidden."""
    np.testing.assert_allclose(lattice.log_partition(), oracles.log_partition(scores_of(lattice)), **CLOSE)


@given(lattices(), st.integers(1, 6))
def test_pattern_marginals_equal_enumeration(lattice, k):
    """Marginals of runs shorter than, equal to and longer than the order, in the documented code."""
    expected = oracles.pattern_marginals(scores_of(lattice), lattice.n_positions, lattice.n_labels, k)
    np.testing.assert_allclose(lattice.pattern_marginals(k), expected, **CLOSE)


@given(lattices())
def test_arc_marginals_are_a_distribution_at_every_position(lattice):
    """Arc marginals have the arcs' shape, sum to one, and are zero on histories that do not exist."""
    marginals = lattice.arc_marginals()
    assert marginals.shape == lattice.arcs.shape
    np.testing.assert_allclose(marginals.sum(axis=(1, 2)), 1.0, **CLOSE)
    for t in range(lattice.n_positions):
        assert not marginals[t, lattice.n_labels**t :].any()


@given(lattices())
def test_label_marginals_are_patterns_of_length_one(lattice):
    """Label marginals are the row-stochastic special case."""
    np.testing.assert_array_equal(lattice.label_marginals(), lattice.pattern_marginals(1))
    np.testing.assert_allclose(lattice.label_marginals().sum(axis=1), 1.0, **CLOSE)


@given(lattices())
def test_entropy_equals_enumeration(lattice):
    """Entropy from the conditionals is that of the sequences, and never negative."""
    expected = oracles.entropy(oracles.probabilities(scores_of(lattice)))
    np.testing.assert_allclose(lattice.entropy(), expected, **CLOSE)
    assert lattice.entropy() >= 0.0


@given(lattices(), st.integers(0, 2**32 - 1))
def test_expected_equals_enumeration(lattice, seed):
    """Expectations of arc values, as losses and features need them."""
    values = np.random.default_rng(seed).normal(size=lattice.arcs.shape)
    totals = oracles.sequence_scores(values, lattice.order, lattice.n_labels)
    expected = oracles.expectation(oracles.probabilities(scores_of(lattice)), totals)
    np.testing.assert_allclose(lattice.expected(values), expected, **CLOSE)


@given(lattices())
def test_expected_score_and_entropy_add_up_to_the_log_partition(lattice):
    """Expected score plus entropy is logZ, with -inf scores on impossible arcs."""
    total = lattice.expected(lattice.arcs) + lattice.entropy()
    np.testing.assert_allclose(total, lattice.log_partition(), **CLOSE)


@given(lattices())
def test_score_and_log_prob_of_every_sequence(lattice):
    """Single sequences get the enumerated score and log posterior, -inf when forbidden."""
    scores = scores_of(lattice)
    log_z = oracles.log_partition(scores)
    for rank in range(0, len(scores), max(1, len(scores) // 20)):
        labels = sequences_of(lattice)[rank]
        assert lattice.score(labels) == scores[rank]
        np.testing.assert_allclose(lattice.log_prob(labels), scores[rank] - log_z, **CLOSE)


@given(lattices())
def test_viterbi_is_the_first_best_sequence(lattice):
    """The argmax and its score; ties go to the lexicographically first sequence."""
    scores = scores_of(lattice)
    labels, score = lattice.viterbi()
    np.testing.assert_array_equal(labels, sequences_of(lattice)[oracles.best(scores)])
    assert score == scores.max()


@given(lattices(feasible=False), st.integers(1, 40))
def test_kbest_is_the_head_of_the_sorted_enumeration(lattice, k):
    """k-best lists are exact, in order, tied sequences included, and stop at forbidden ones."""
    scores = scores_of(lattice)
    ranks = oracles.kbest(scores, k)
    sequences, found = lattice.kbest(k)
    np.testing.assert_array_equal(sequences, sequences_of(lattice)[ranks])
    np.testing.assert_array_equal(found, scores[ranks])


def test_kbest_can_list_everything():
    """Asking for more than exist returns each sequence once, without allocating for the rest."""
    lattice = random_lattice(4, 3, order=3)
    sequences, scores = lattice.kbest(10**12)
    assert len(np.unique(sequences, axis=0)) == 81
    np.testing.assert_allclose(scores, np.sort(scores_of(lattice))[::-1], rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_sampling_frequencies(order):
    """Samples follow the posterior: Pearson's statistic below its 0.9999 quantile, and nothing forbidden."""
    lattice = random_lattice(3, 3, order).forbid([(0, 1)])
    n = 20_000
    codes = oracles.pattern_codes(lattice.sample(n, rng=7), 0, 3, 3)
    expected = n * oracles.probabilities(scores_of(lattice))
    observed = np.bincount(codes, minlength=27)
    possible = expected > 0
    assert not observed[~possible].any()
    statistic = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    assert statistic < 55.5  # chi-square quantile at 26 degrees of freedom (fewer here: stricter if anything)


def test_sampling_is_reproducible():
    """A seed and a generator with that seed give the same draws."""
    lattice = random_lattice(5, 3, order=2)
    np.testing.assert_array_equal(lattice.sample(4, 3), lattice.sample(4, np.random.default_rng(3)))


def test_sampling_never_rounds_into_a_forbidden_label():
    """A uniform above a row's rounded sum gets the last possible label, not a forbidden one behind it."""
    row = np.array([0.25, 0.5, 0.0])
    assert [log_domain.draw(row, uniform) for uniform in (0.1, 0.25, 0.7, 0.9)] == [0, 1, 1, 1]


# ---- special equals general ----


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_zero_scores_count_sequences(order):
    """Z of zero weights is the number of sequences, and all marginals are uniform."""
    lattice = DenseLattice.from_scores(np.zeros((5, 3)), order=order)
    assert lattice.log_partition() == pytest.approx(5 * np.log(3))
    assert lattice.entropy() == pytest.approx(5 * np.log(3))
    np.testing.assert_allclose(lattice.pattern_marginals(2)[1:], 1 / 9)


@given(lattices(max_positions=5, orders=(1, 3)), st.integers(0, 2))
def test_a_higher_order_changes_nothing(lattice, extra):
    """An order-3 lattice whose weights only see pairs is the order-2 lattice."""
    raised = lattice.to_order(lattice.order + extra)
    assert raised.order == lattice.order + extra
    np.testing.assert_array_equal(scores_of(raised), scores_of(lattice))
    np.testing.assert_allclose(raised.log_partition(), lattice.log_partition(), **CLOSE)
    np.testing.assert_allclose(raised.pattern_marginals(4), lattice.pattern_marginals(4), **CLOSE)
    np.testing.assert_allclose(raised.entropy(), lattice.entropy(), **CLOSE)
    np.testing.assert_array_equal(raised.viterbi()[0], lattice.viterbi()[0])


def test_length_one_is_softmax():
    """One position is multi-class logistic regression at every order."""
    node = np.array([[0.5, -1.0, 2.0]])
    softmax = np.exp(node) / np.exp(node).sum()
    for order in (1, 2, 4):
        lattice = DenseLattice.from_scores(node, order=order)
        np.testing.assert_allclose(lattice.label_marginals(), softmax)


def test_empty_sentence():
    """No position: one empty sequence with score 0 and probability 1."""
    for order in (1, 3):
        lattice = DenseLattice.from_scores(np.zeros((0, 2)), order=order).forbid([(0, 1)])
        assert lattice.log_partition() == 0.0
        assert lattice.entropy() == 0.0
        assert lattice.score([]) == lattice.log_prob([]) == 0.0
        assert lattice.expected(lattice.arcs) == 0.0
        assert lattice.arc_marginals().shape == lattice.arcs.shape
        assert lattice.pattern_marginals(1).shape == (0, 2)
        assert lattice.pattern_marginals(5).shape == (0, 32)
        assert lattice.viterbi()[0].shape == (0,)
        assert lattice.viterbi()[1] == 0.0
        assert lattice.kbest(3)[0].shape == (1, 0)
        assert lattice.sample(3, 0).shape == (3, 0)
        assert lattice.allow(np.zeros((0, 2), dtype=bool)).log_partition() == 0.0


# ---- building and restricting ----


@pytest.mark.parametrize("order", [None, 4])
def test_from_scores_applies_patterns_where_they_fit(order):
    """Tables of length k count at t >= k-1 only, in row-major order, the oldest label first."""
    rng = np.random.default_rng(0)
    node, unigrams, pairs, triples = (rng.normal(size=s) for s in [(4, 2), (2,), (2, 2), (2, 2, 2)])
    lattice = DenseLattice.from_scores(node, {3: triples, 2: pairs.ravel(), 1: unigrams}, order=order)
    assert lattice.order == (order or 3)
    for y in oracles.all_sequences(4, 2):
        score = sum(node[t, y[t]] + unigrams[y[t]] for t in range(4))
        score += sum(pairs[y[t - 1], y[t]] for t in range(1, 4))
        score += sum(triples[y[t - 2], y[t - 1], y[t]] for t in range(2, 4))
        assert lattice.score(y) == pytest.approx(score)


@given(lattices(), st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_forbid_removes_exactly_the_sequences_with_a_pair(lattice, pairs):
    """Forbidden transitions, at every order and every position after the first."""
    pairs = {(a, b) for a, b in pairs if max(a, b) < lattice.n_labels}
    restricted = lattice.forbid(pairs)
    bad = [any(pair in pairs for pair in itertools.pairwise(y)) for y in sequences_of(lattice).tolist()]
    np.testing.assert_array_equal(scores_of(restricted), np.where(bad, -np.inf, scores_of(lattice)))


@given(lattices(), st.integers(0, 2**32 - 1))
def test_allow_keeps_exactly_the_sequences_inside_the_mask(lattice, seed):
    """Partial annotation: labels outside the mask vanish, the rest keep their scores."""
    masks = np.random.default_rng(seed).random((lattice.n_positions, lattice.n_labels)) < 0.7
    inside = masks[np.arange(lattice.n_positions), sequences_of(lattice)].all(axis=1)
    expected = np.where(inside, scores_of(lattice), -np.inf)
    np.testing.assert_array_equal(scores_of(lattice.allow(masks)), expected)


def test_restrictions_leave_the_original_alone():
    """Forbidding and allowing return new lattices."""
    lattice = random_lattice(3, 2, order=2)
    before = lattice.arcs.copy()
    lattice.forbid([(0, 0)])
    lattice.allow(np.eye(3, 2, dtype=bool))
    np.testing.assert_array_equal(lattice.arcs, before)


def test_views_are_accepted():
    """Arcs may be a strided or read-only view."""
    arcs = np.random.default_rng(0).normal(size=(2, 3, 4)).T[:, :, 0]
    view = np.broadcast_to(arcs[:, None, :3], (4, 3, 3))
    lattice = DenseLattice(view, 3, 2)
    expected = oracles.log_partition(scores_of(lattice))
    assert lattice.log_partition() == pytest.approx(expected)
    assert lattice.viterbi()[1] == pytest.approx(scores_of(lattice).max())


# ---- long sequences and large weights ----


def test_ten_thousand_independent_positions():
    """Order 1 has a closed form: log-sum-exp, softmax and entropy position by position."""
    node = np.random.default_rng(1).normal(size=(10_000, 5))
    lattice = DenseLattice.from_scores(node, order=2)
    log_totals = np.log(np.exp(node).sum(axis=1))
    softmax = np.exp(node - log_totals[:, None])
    assert lattice.log_partition() == pytest.approx(log_totals.sum(), rel=1e-13)
    np.testing.assert_allclose(lattice.label_marginals(), softmax, rtol=1e-11)
    assert lattice.entropy() == pytest.approx(-(softmax * np.log(softmax)).sum(), rel=1e-12)
    labels, score = lattice.viterbi()
    np.testing.assert_array_equal(labels, node.argmax(axis=1))
    assert score == pytest.approx(node.max(axis=1).sum(), rel=1e-13)
    sequences, scores = lattice.kbest(3)
    np.testing.assert_array_equal(sequences[0], labels)
    gaps = np.sort(node.max(axis=1) - np.partition(node, -2, axis=1)[:, -2])
    np.testing.assert_allclose(scores[0] - scores[1:], gaps[:2], atol=1e-9)


def test_ten_thousand_positions_of_a_chain_follow_the_perron_root():
    """Far from the ends, logZ grows by log of the Perron root and marginals are left times right vector."""
    n_positions = 10_000
    lattice, table = chain(n_positions)
    roots, right = np.linalg.eig(np.exp(table))
    left_roots, left = np.linalg.eig(np.exp(table).T)
    root = roots.real.max()
    r, left_vector = right[:, roots.real.argmax()].real, left[:, left_roots.real.argmax()].real
    log_z = (n_positions - 1) * np.log(root) + np.log(r.sum() * left_vector.sum() / (left_vector @ r))
    assert lattice.log_partition() == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(lattice.label_marginals()[5_000], left_vector * r / (left_vector @ r), rtol=1e-10)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_huge_weights_on_a_long_sequence(order):
    """Weights of 1e5 over 10,000 positions: no overflow, marginals still sum to one to the last digits."""
    lattice = random_lattice(10_000, 3, order, scale=1e5)
    np.testing.assert_allclose(lattice.arc_marginals().sum(axis=(1, 2)), 1.0, rtol=0, atol=1e-11)
    labels, score = lattice.viterbi()
    assert lattice.score(labels) == pytest.approx(score, rel=1e-13)
    # Near-ties are the only uncertainty left, and logZ of 1e9 has seven digits after the point.
    assert lattice.log_partition() - score == pytest.approx(-lattice.log_prob(labels), abs=1e-4)
    assert -1.0 < lattice.log_prob(labels) <= 0.0
    assert lattice.log_prob(lattice.sample(1, 0)[0]) > -20.0


def test_huge_common_weights_cancel():
    """A constant of 1e5 on every arc leaves the posterior, and shifts logZ by T * 1e5."""
    lattice = random_lattice(200, 4, order=2)
    shifted = DenseLattice(lattice.arcs + 1e5, 4, 2)
    np.testing.assert_allclose(shifted.arc_marginals(), lattice.arc_marginals(), atol=1e-9)
    assert shifted.entropy() == pytest.approx(lattice.entropy(), rel=1e-9)
    assert shifted.log_partition() == pytest.approx(lattice.log_partition() + 200e5, rel=1e-13)


# ---- golden values: 3 labels, 5 positions, s(y) = sum sin(3t + y_t) + sum cos(y_{t-1} - 2 y_t) / 2 ----

GOLD = [0, 1, 2, 1, 0]
HAMMING = (np.arange(3)[None, :] != np.array(GOLD)[:, None]) / 5


def golden_lattice(cost=0.0):
    """Scores s(y) above, plus a cost per position and label."""
    t, b = np.arange(5)[:, None], np.arange(3)[None, :]
    return DenseLattice.from_scores(np.sin(3 * t + b) + cost, {2: np.cos(b.T - 2 * b) / 2})


def test_golden_values_without_loss():
    """Score of the reference, best sequence, margin and log partition."""
    lattice = golden_lattice()
    labels, score = lattice.viterbi()
    assert lattice.score(GOLD) == pytest.approx(-0.780957, abs=5e-7)
    assert labels.tolist() == [1, 0, 0, 0, 2]
    assert score == pytest.approx(3.049231, abs=5e-7)
    assert lattice.score(GOLD) - score == pytest.approx(-3.830187, abs=5e-7)
    assert lattice.log_partition() == pytest.approx(6.685213, abs=5e-7)


def test_golden_values_with_hamming_loss():
    """Surrogate value, expected loss, entropy and reference probability under scores plus loss."""
    lattice = golden_lattice(cost=HAMMING)
    gold_score = lattice.score(GOLD)  # the loss of the reference is 0
    costs = HAMMING[:, None, :]
    assert lattice.log_partition() - gold_score == pytest.approx(8.224072, abs=5e-7)
    assert lattice.expected(costs) == pytest.approx(0.775191, abs=5e-7)
    assert lattice.entropy() == pytest.approx(4.863566, abs=5e-7)
    assert np.exp(lattice.log_prob(GOLD)) == pytest.approx(0.000268, abs=5e-7)
    assert lattice.viterbi()[1] - gold_score == pytest.approx(4.830187, abs=5e-7)
    loss_free = golden_lattice()
    log_boost = loss_free.log_partition() - gold_score + np.log(loss_free.expected(costs))
    assert log_boost == pytest.approx(7.165177, abs=5e-7)


def test_dual_value_of_the_posterior():
    """E_q[L] + H(q) from the lattice is the enumerated dual value, and f_i = dual + E_q[s] - s(y_i)."""
    lattice = golden_lattice(cost=HAMMING)
    probs = oracles.probabilities(scores_of(lattice))
    costs = HAMMING[np.arange(5), oracles.all_sequences(5, 3)].sum(axis=1)
    dual = lattice.expected(HAMMING[:, None, :]) + lattice.entropy()
    assert dual == pytest.approx(oracles.dual_value(probs, costs))
    assert dual + lattice.expected(golden_lattice().arcs) == pytest.approx(lattice.log_partition())


# ---- errors ----

IMPOSSIBLE = r"Every label sequence .* forbidden.* passes position 2 .*Loosen allow\(\)"


@pytest.mark.parametrize(
    "ask",
    [
        lambda lattice: lattice.arc_marginals(),
        lambda lattice: lattice.label_marginals(),
        lambda lattice: lattice.entropy(),
        lambda lattice: lattice.expected(0.0),
        lambda lattice: lattice.viterbi(),
        lambda lattice: lattice.sample(1, 0),
        lambda lattice: lattice.log_prob([0, 0, 0, 0]),
    ],
)
def test_an_impossible_lattice_has_no_posterior(ask):
    """Asking for what does not exist says at which position the last sequence ends; no NaN."""
    masks = np.array([[True, False], [True, True], [False, False], [True, True]])
    lattice = random_lattice(4, 2, order=2).allow(masks)
    assert lattice.log_partition() == -np.inf
    assert lattice.kbest(3)[0].shape == (0, 4)
    with pytest.raises(InputError, match=IMPOSSIBLE):
        ask(lattice)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: DenseLattice(np.zeros((2, 2, 3)), 3, 2),
            r"shape \(n_positions, 3, 3\): got float64 .*2, 2, 3",
        ),
        (lambda: DenseLattice([[[0.0]]], 1, 1), "got no array"),
        (lambda: DenseLattice(np.zeros((2, 1, 3), dtype=np.float32), 3, 1), "got float32"),
        (lambda: DenseLattice(np.zeros((2, 1, 0)), 0, 1), "at least 1 label and order 1: got n_labels=0"),
        (lambda: DenseLattice(np.full((2, 3, 3), np.nan), 3, 2), r"NaN or \+inf at position 0 "),
        (lambda: DenseLattice(np.array([[[0.0]], [[np.inf]]]), 1, 1), r"NaN or \+inf at position 1 "),
        (lambda: DenseLattice.from_scores(np.zeros(3)), r"\(n_positions, n_labels\): got \(3,\)"),
        (lambda: DenseLattice.from_scores(np.zeros((2, 3)), {2: np.zeros(8)}), r"needs 3\*\*2 = 9 scores"),
        (lambda: DenseLattice.from_scores(np.zeros((2, 3)), {0: np.zeros(1)}), "at least 1: got 0"),
        (lambda: DenseLattice.from_scores(np.zeros((2, 2)), {2: np.zeros(4)}, order=1), "at least 2, got 1"),
        (lambda: random_lattice(2, 2, 2).to_order(1), "only be raised .* has 2, got 1"),
        (lambda: random_lattice(2, 2, 2).forbid([(0, 2)]), r"labels in 0\.\.1: got \(0, 2\)"),
        (lambda: random_lattice(2, 2, 2).allow(np.ones((2, 2))), r"bool mask of shape \(2, 2\): got float64"),
        (lambda: random_lattice(2, 2, 2).allow(np.ones((3, 2), dtype=bool)), r"got bool of shape \(3, 2\)"),
        (lambda: random_lattice(2, 2, 2).kbest(0), "kbest needs k of at least 1: got 0"),
        (lambda: random_lattice(2, 2, 2).pattern_marginals(0), "at least 1: got 0"),
        (lambda: random_lattice(2, 2, 2).expected(np.zeros((2, 3))), r"broadcast .* got \(2, 3\)"),
        (lambda: random_lattice(2, 2, 2).score([0]), r"shape \(2,\): got \(1,\)"),
        (lambda: random_lattice(2, 2, 2).score([0, 2]), r"integers in 0\.\.1: got int64 from 0 to 2"),
        (lambda: random_lattice(2, 2, 2).score([0.0, 1.0]), "got float64"),
    ],
)
def test_wrong_input_says_what_was_expected(build, message):
    """Errors name the expected and the given, before any kernel runs."""
    with pytest.raises(InputError, match=message):
        build()


def test_importing_lattices_does_not_import_numba():
    """Numba costs half a second: it is paid when a lattice is used, not when it is imported."""
    code = "import sys, vcrf.lattice; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
