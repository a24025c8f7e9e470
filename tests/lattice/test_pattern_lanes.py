"""One token of several sentences side by side on a pattern automaton: against sums over the table of all arcs."""

from __future__ import annotations

import numpy as np
import pytest

from vcrf.kernels import pattern_changes, pattern_groups, pattern_lanes, pattern_sweeps
from vcrf.kernels.product import no_loss
from vcrf.kernels.scores import LocalArcs
from vcrf.lattice.automaton import build_automaton, make_graph


class Token:
    """Random messages and factors of one token in each lane, with patterns of these tokens alone.

    `value[p, b, lane]` is the factor of what context p takes with label b.
    """

    def __init__(self, seed, n_labels, order, lanes, smallest):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(2, order + 1, 12)
        codes = np.array([rng.integers(0, n_labels**k) for k in sizes])
        order_of = np.lexsort((codes, sizes))
        self.automaton = build_automaton(n_labels, sizes[order_of], codes[order_of])
        self.graph, self.lanes, self.n_labels = make_graph(self.automaton), lanes, n_labels
        n_arcs, n_states = self.automaton.n_arcs, self.automaton.n_states
        self.factor, self.back = rng.random(n_arcs) + 0.1, rng.random(n_states * lanes)
        self.alpha = rng.random(n_states * lanes)
        ptr = np.concatenate([[0], np.cumsum(rng.integers(0, 4, lanes))])
        z = np.exp(rng.uniform(np.log(smallest), 2.0, ptr[-1]))
        self.local = LocalArcs(ptr, rng.integers(0, n_arcs, ptr[-1]).astype(np.uint32), np.log(z), z)
        self.pairs = pattern_lanes.pair_factors(n_labels, self.graph.long_pairs, self.factor)
        self.changes = pattern_changes.make_changes(n_arcs)
        table = self.automaton.table.astype(np.int64)
        self.target = self.automaton.arc_state[table]
        self.times = np.ones((n_arcs, lanes))
        for lane in range(lanes):
            for j in range(ptr[lane], ptr[lane + 1]):
                self.times[self.ends_with(j), lane] *= z[j]
        self.value = self.factor[table][:, :, None] * self.times[table]

    def ends_with(self, j):
        """Arcs that end with local pattern j."""
        automaton, arc = self.automaton, self.local.arc[j]
        return automaton.by_rank[automaton.rank[arc] : automaton.rank_end[arc]]

    def is_clean(self):
        """Whether the scratch is as it was."""
        return not np.any(self.changes.times) and not np.any(self.changes.value)


TOKENS = [
    (seed, n_labels, order, lanes) for seed in range(8) for n_labels, order, lanes in ((1, 3, 1), (3, 4, 1), (3, 4, 5))
]


@pytest.mark.parametrize("smallest", [0.1, 1e-12])
@pytest.mark.parametrize(("seed", "n_labels", "order", "lanes"), TOKENS)
def test_rows_are_sums_over_the_table(seed, n_labels, order, lanes, smallest):
    """Also where a factor of 1e-12 takes nearly all of a row away: differences would lose its digits."""
    token = Token(seed, n_labels, order, lanes, smallest)
    n_states = token.automaton.n_states
    extra, beta = np.zeros(n_states * lanes), np.empty(n_states * lanes)
    for lane in range(lanes):
        pattern_changes.change_rows(
            lanes, lane, lane, n_labels, token.local, token.graph, token.factor, token.back, 0, token.changes, extra
        )
    pattern_lanes.sum_rows(
        lanes, np.arange(lanes), n_labels, token.graph, token.factor, token.pairs, token.local, token.back, 0, extra,
        beta,
    )  # fmt: skip
    expected = np.einsum("pbl,pbl->pl", token.value, token.back.reshape(-1, lanes)[token.target])
    np.testing.assert_allclose(beta.reshape(-1, lanes), expected, rtol=1e-10)
    assert token.is_clean()
    assert not np.any(extra)


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize(("seed", "n_labels", "order", "lanes"), TOKENS)
def test_arcs_take_what_the_table_says(seed, n_labels, order, lanes, is_full):
    """Mass that enters each context, posteriors of arcs and of the patterns of this token alone."""
    token = Token(seed, n_labels, order, lanes, 0.1)
    n_states, n_arcs = token.automaton.n_states, token.automaton.n_arcs
    new, counts, out = np.empty(n_states * lanes), np.zeros(n_arcs), np.zeros(len(token.local.arc))
    back, alpha = token.back.reshape(-1, lanes), token.alpha.reshape(-1, lanes).copy()
    # Every lane is a sentence whose second token this is: sentences begin one token earlier.
    ones, weights = np.ones(lanes, np.int64), np.ones(lanes)
    group = pattern_groups.Group(
        no_loss(), False, np.arange(lanes), np.arange(lanes) - 1, 2 * ones, weights, weights, 0 * ones,
        np.tile(np.arange(lanes + 1), (3, 1)), lanes * ones,
    )  # fmt: skip
    arcs = pattern_sweeps.Weighted(token.graph, token.factor, token.local, token.pairs, token.changes)
    if is_full:
        taken = np.empty(n_arcs * lanes)
        pattern_sweeps.take_in_full(group, 1, n_labels, arcs, token.alpha, token.back, taken, new, counts, out)
    else:
        pair_counts = np.zeros((n_labels, n_labels))
        pattern_sweeps.take_by_differences(
            group.start, group.length, group.lanes, 1, n_labels, arcs, token.alpha, token.back, new, pair_counts,
            counts, out,
        )  # fmt: skip
        pattern_lanes.add_pairs(token.pairs, pair_counts, counts)
    mass, posteriors = np.zeros((n_states, lanes)), np.zeros((n_arcs, lanes))
    entering = token.value * alpha[:, None, :]
    np.add.at(mass, token.target, entering)
    np.add.at(posteriors, token.automaton.table.astype(np.int64), entering * back[token.target])
    np.testing.assert_allclose(new.reshape(-1, lanes), mass, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(counts, posteriors.sum(axis=1), rtol=1e-10, atol=1e-12)
    for lane in range(lanes):
        for j in range(token.local.ptr[lane], token.local.ptr[lane + 1]):
            np.testing.assert_allclose(out[j], posteriors[token.ends_with(j), lane].sum(), rtol=1e-10, atol=1e-12)
    assert token.is_clean()
