"""The pattern automaton against its definition, and lattices on it against enumeration and the dense lattice."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from vcrf.errors import InputError
from vcrf.lattice import DenseLattice, PatternLattice, build_automaton
from vcrf.lattice.automaton import find_arcs

CLOSE = {"rtol": 1e-9, "atol": 1e-9}
few = settings(max_examples=60)


def digits(code, k, n_labels):
    """Labels of a pattern, the oldest first."""
    return tuple(int(code) // n_labels ** (k - 1 - i) % n_labels for i in range(k))


def suffixes(labels):
    """All suffixes, the longest first."""
    return [labels[i:] for i in range(len(labels))]


@st.composite
def patterns(draw, max_labels=4, max_order=5, max_size=12):
    """Number of labels, and sizes and codes of some patterns of two labels or more."""
    n_labels = draw(st.integers(1, max_labels))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = rng.integers(2, draw(st.integers(2, max_order)) + 1, draw(st.integers(0, max_size)))
    codes = [rng.integers(n_labels**k) for k in sizes.tolist()]
    return n_labels, sizes.astype(np.uint32), np.array(codes, np.uint32)


@st.composite
def pattern_lattices(draw):
    """A lattice, and the dense one with the same scores; ties, -inf, large scores, patterns that fire once."""
    n_labels, sizes, codes = draw(patterns(max_labels=3, max_order=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 5))
    palette = np.array([-1.0, 0.0, 0.5, 2.0, draw(st.sampled_from([0.25, 300.0, 1e5, -np.inf]))])
    node = rng.choice(palette[:4], (n, n_labels))
    node[rng.integers(n), rng.integers(n_labels)] = rng.choice(palette[3:])
    automaton = build_automaton(n_labels, sizes, codes)
    order = max(automaton.order, 2)
    arcs = np.zeros((n, automaton.n_arcs))
    dense = np.zeros((n, n_labels ** (order - 1), n_labels)) + node[:, None, :]
    for k, code, arc in zip(sizes.tolist(), codes.tolist(), find_arcs(automaton, sizes, codes), strict=True):
        # Some patterns score everywhere, some at one position.
        where = range(k - 1, n) if rng.random() < 0.5 else [int(rng.integers(n))]
        for t in where:
            score = rng.choice(palette[:4])
            arcs[t, automaton.by_rank[automaton.rank[arc] : automaton.rank_end[arc]]] += score
            if t >= k - 1:
                flat = dense[t].reshape(-1, n_labels**k) if t >= order - 1 else None
                if flat is not None:
                    flat[:, code] += score
                else:
                    short = dense[t, : n_labels**t].reshape(-1, n_labels**k)
                    short[:, code] += score
    return PatternLattice(automaton, node, arcs), DenseLattice(dense, n_labels, order)


def scores_of(dense):
    """Enumerate the scores."""
    return oracles.sequence_scores(dense.arcs, dense.order, dense.n_labels)


# ---- the automaton ----


@given(patterns())
def test_contexts_and_moves_follow_the_definition(drawn):
    """States are the parts of the patterns' beginnings; a move enters the longest context that then ends there."""
    n_labels, sizes, codes = drawn
    automaton = build_automaton(n_labels, sizes, codes)
    asked = {digits(code, k, n_labels) for k, code in zip(sizes.tolist(), codes.tolist(), strict=True)}
    begins = [z[:-1] for z in asked]
    contexts = {(a,) for a in range(n_labels)} | {
        z[i:j] for z in begins for i in range(len(z)) for j in range(i + 1, len(z) + 1)
    }
    states = [
        digits(code, k, n_labels) for k, code in zip(automaton.size.tolist(), automaton.code.tolist(), strict=True)
    ]
    assert len(states) == len(contexts)
    assert set(states) == contexts
    origin = np.concatenate(
        [np.repeat(np.arange(n_labels), n_labels), np.repeat(np.arange(len(states)), np.diff(automaton.arc_ptr))]
    )
    arcs = [(*states[p], int(b)) for p, b in zip(origin, automaton.arc_label, strict=True)]
    assert [arcs[arc] for arc in find_arcs(automaton, sizes, codes)] == [
        digits(code, k, n_labels) for k, code in zip(sizes.tolist(), codes.tolist(), strict=True)
    ]
    for p, state in enumerate(states):
        assert states[automaton.fail[p]] == state[1:] if len(state) > 1 else automaton.fail[p] == -1
        for b in range(n_labels):
            arc = automaton.table[p, b]
            assert arcs[arc] == next(z for z in suffixes((*state, b)) if z in arcs)
            assert states[automaton.arc_state[arc]] == next(z for z in suffixes((*state, b)) if z in contexts)
    for i, arc in enumerate(arcs):
        under = {j for j, other in enumerate(arcs) if arc in suffixes(other)}
        assert under == set(automaton.by_rank[automaton.rank[i] : automaton.rank_end[i]].tolist())


# ---- lattices ----


@few
@given(pattern_lattices(), st.integers(1, 12))
def test_sums_and_best_sequences_equal_enumeration(drawn, k):
    """Partition function, marginals, entropy, k-best and single scores are those of all sequences."""
    lattice, dense = drawn
    scores = scores_of(dense)
    np.testing.assert_allclose(lattice.log_partition(), oracles.log_partition(scores), **CLOSE)
    if scores.max() == -np.inf:
        with pytest.raises(InputError, match="forbidden"):
            lattice.label_marginals()
        return
    np.testing.assert_allclose(lattice.label_marginals(), dense.label_marginals(), **CLOSE)
    np.testing.assert_allclose(lattice.entropy(), dense.entropy(), **CLOSE)
    ranks = oracles.kbest(scores, k)
    everything = oracles.all_sequences(dense.n_positions, dense.n_labels)
    sequences, found = lattice.kbest(k)
    np.testing.assert_array_equal(sequences, everything[ranks])
    np.testing.assert_allclose(found, scores[ranks], rtol=1e-12)
    np.testing.assert_array_equal(lattice.viterbi()[0], everything[ranks[0]])
    for rank in ranks[:3]:
        np.testing.assert_allclose(lattice.score(everything[rank]), scores[rank], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(lattice.log_prob(everything[rank]), dense.log_prob(everything[rank]), **CLOSE)


@few
@given(pattern_lattices(), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_marginals_of_any_run(drawn, k, seed):
    """Runs of labels shorter and longer than any context, active or not."""
    lattice, dense = drawn
    scores = scores_of(dense)
    if scores.max() == -np.inf:
        return
    expected = oracles.pattern_marginals(scores, dense.n_positions, dense.n_labels, k)
    for code in np.random.default_rng(seed).integers(dense.n_labels**k, size=3).tolist():
        found = lattice.pattern_marginal(digits(code, k, dense.n_labels))
        np.testing.assert_allclose(found, expected[:, code], **CLOSE)


@few
@given(pattern_lattices(), st.data())
def test_restrictions_are_those_of_the_dense_lattice(drawn, data):
    """Masks and forbidden pairs, on arcs of longer contexts too."""
    lattice, dense = drawn
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    masks = rng.random((dense.n_positions, dense.n_labels)) < 0.8
    pairs = [tuple(rng.integers(dense.n_labels, size=2).tolist()) for _ in range(2)]
    ours, theirs = lattice.allow(masks).forbid(pairs), dense.allow(masks).forbid(pairs)
    np.testing.assert_allclose(ours.log_partition(), theirs.log_partition(), **CLOSE)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_sampling_frequencies(order):
    """Draws follow the posterior by enumeration: Pearson's statistic below its 0.9999 quantile, at every order."""
    n_labels, n, rng = 3, 4, np.random.default_rng(order)
    sizes = np.repeat(np.arange(2, order + 1), 3).astype(np.uint32)
    codes = np.concatenate([rng.choice(n_labels**k, 3, replace=False) for k in range(2, order + 1)] or [np.zeros(0)])
    automaton = build_automaton(n_labels, sizes, codes.astype(np.uint32))
    node, weights = rng.normal(size=(n, n_labels)), 1.5 * rng.normal(size=len(sizes))
    scored = [(digits(c, k, n_labels), w) for k, c, w in zip(sizes.tolist(), codes, weights, strict=True)]
    arcs = np.zeros(automaton.n_arcs)
    for arc, weight in zip(find_arcs(automaton, sizes, codes.astype(np.uint32)), weights, strict=True):
        arcs[automaton.by_rank[automaton.rank[arc] : automaton.rank_end[arc]]] += weight
    lattice = PatternLattice(automaton, node, np.tile(arcs, (n, 1))).forbid([(0, 1)])
    everything = oracles.all_sequences(n, n_labels)
    scores = np.array([
        -np.inf if any(pair == (0, 1) for pair in pairwise(y))
        else sum(node[t, y[t]] + sum(w for z, w in scored if y[: t + 1][-len(z) :] == z) for t in range(n))
        for y in map(tuple, everything.tolist())
    ])  # fmt: skip
    expected = 20_000 * np.exp(scores - oracles.log_partition(scores))
    observed = np.bincount(oracles.pattern_codes(lattice.sample(20_000, rng=7), 0, n, n_labels), minlength=81)
    possible = expected > 0
    assert not observed[~possible].any()
    statistic = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    assert statistic < possible.sum() + 3.72 * np.sqrt(2 * possible.sum()) + 10


def test_wrong_shapes_and_weights_are_refused():
    """Scores of another shape, NaN and a run of unknown labels are errors that say so."""
    automaton = build_automaton(2, np.zeros(0, np.uint32), np.zeros(0, np.uint32))
    with pytest.raises(InputError, match="arc scores"):
        PatternLattice(automaton, np.zeros((2, 2)), np.zeros((2, 3)))
    with pytest.raises(InputError, match="NaN"):
        PatternLattice(automaton, np.full((2, 2), np.nan), np.zeros((2, 4)))
    lattice = PatternLattice(automaton, np.zeros((2, 2)), np.zeros((2, 4)))
    for wrong in (lambda: lattice.pattern_marginal([2]), lambda: lattice.allow(np.ones((1, 2), bool)),
                  lambda: lattice.forbid([(0, 2)]), lambda: lattice.kbest(0), lambda: lattice.score([0])):  # fmt: skip
        with pytest.raises(InputError):
            wrong()
