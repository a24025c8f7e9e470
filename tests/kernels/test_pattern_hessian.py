"""Moves that are drawn for the Hessian on an automaton: what is rare at many tokens counts for what it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from objectives import objective
from vcrf.families import intern_sentences, paper_families
from vcrf.kernels.pattern_hessian import _draw, _uniform, scratch
from vcrf.problem import build_problem
from vcrf.structures.arc_hessian import LEAST

_OFFSETS = (np.arange(4_000) + 0.5) / 4_000


@settings(max_examples=60)
@given(
    st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=8),
    st.floats(1e-3, 1.0),
    st.sampled_from([1e-4, 1e-2, 0.1, 0.6]),
)
def test_moves_are_drawn_without_bias(values, prob, live):
    """For every offset the moves share the context's posterior; their means over the offsets are the posteriors."""
    values = np.array(values)
    moves = scratch(len(values), 4, 4, 4, 1)[0]
    mean, least = np.zeros(len(values)), min(live, prob)
    for offset in _OFFSETS:  # thousands: plain comparisons, not numpy's, which take most of the time
        n = _draw(prob, values, live, offset, 2, 0, moves)
        assert n >= 1
        joint, conditional = moves.joint[:n], moves.conditional[:n]
        assert abs(joint.sum() - prob) <= 1e-9 * prob
        assert (np.abs(conditional * prob - joint) <= 1e-12 * joint + 1e-15).all()
        assert (moves.source[:n] == 2).all()
        assert len(set(moves.label[:n].tolist())) == n
        mean[moves.label[:n]] += moves.joint[:n] / len(_OFFSETS)
    exact = prob * values / values.sum()
    # A grid of offsets counts an event of probability p / live to one of its points.
    np.testing.assert_allclose(mean, exact, atol=4.0 * max(least, live) / len(_OFFSETS) + 1e-12)
    is_frequent = exact >= live
    is_frequent[np.argmax(exact)] = False
    np.testing.assert_allclose(mean[is_frequent], exact[is_frequent], rtol=1e-9)


def test_offsets_are_even_and_the_same_every_time():
    """Of tokens and places: the mean, the spread and the neighbours of uniform numbers."""
    drawn = np.array([[_uniform(t, k) for k in range(20)] for t in range(2_000)])
    assert np.all((drawn >= 0.0) & (drawn < 1.0))
    assert abs(drawn.mean() - 0.5) < 0.01
    assert abs(drawn.var() - 1.0 / 12.0) < 0.003
    for other in (drawn[1:, :] * drawn[:-1, :], drawn[:, 1:] * drawn[:, :-1]):
        assert abs(other.mean() - 0.25) < 0.01
    assert _uniform(7, 3) == drawn[7, 3]


def test_what_is_rare_everywhere_adds_up():
    """A label with a posterior below the limit at each of 20,000 tokens: its variance is there, to the draws."""
    n = 2_000
    text = intern_sentences([["a"] * 10] * n)
    problem = build_problem(text, np.zeros(10 * n, np.uint32), 3, paper_families(0, 3, 0))
    surrogate = objective("crf", problem, np.zeros(n), "patterns")
    # The third label is at -8.5: a posterior of 2e-4 at each token, a fifth of the limit.
    labels = problem.join_features(np.full(3, problem.bias_column, np.uint32), 1, np.arange(3, dtype=np.uint32))
    pair = problem.join_features(np.full(1, problem.bias_column, np.uint32), 3, np.array([1], np.uint32))
    features = np.sort(np.concatenate([labels, pair]))
    w = np.zeros(4)
    w[np.searchsorted(features, labels)] = [0.0, -1.0, -8.5]
    active = surrogate.compile(features)
    found = surrogate.hessian(active, w, np.arange(4))
    third = int(np.searchsorted(features, labels[2]))
    p = np.exp(-8.5) / (1.0 + np.exp(-1.0) + np.exp(-8.5))
    assert p < 0.3 * LEAST[0]
    assert found[third, third] == pytest.approx(10 * p * (1 - p), rel=0.1)


def test_more_contexts_than_there_is_room_for():
    """With 300 labels alike more is drawn, and no posterior is lost: counts of all labels sum to the tokens."""
    n, n_labels = 40, 300
    text = intern_sentences([["a"] * 3] * n)
    problem = build_problem(text, np.zeros(3 * n, np.uint32), n_labels, paper_families(0, 2, 0))
    surrogate = objective("crf", problem, np.zeros(n), "patterns")
    numbers = np.arange(n_labels, dtype=np.uint32)
    labels = np.sort(problem.join_features(np.full(n_labels, problem.bias_column, np.uint32), 1, numbers))
    found = surrogate.hessian(surrogate.compile(labels), np.zeros(n_labels), np.arange(n_labels))
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-9)
    p = 1.0 / n_labels
    assert found.trace() == pytest.approx(3.0 * n_labels * p * (1.0 - p), rel=0.05)
