"""Tagging on the pattern automaton against tables of all arcs and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from strategies import on_automaton, potentials
from vcrf import VCRF
from vcrf.decoding import arcs
from vcrf.decoding.arcs import PatternPotentials, tag_patterns
from vcrf.decoding.restrict import forbid
from vcrf.errors import BudgetError
from vcrf.lattice.automaton import Prices

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def check(ours, dense):
    """Labels, marginals, partition functions and single lattices are those of the tables."""
    for i in range(len(dense)):
        n = int(dense.sent_ptr[i + 1] - dense.sent_ptr[i])
        if n:
            scores = oracles.potentials_scores(dense, i)
            labels = oracles.all_sequences(n, dense.n_labels)
            np.testing.assert_array_equal(ours.decode()[i], labels[oracles.best(scores)])
            ranks = oracles.kbest(scores, 4)
            np.testing.assert_array_equal(ours.lattice(i).kbest(4)[0], labels[ranks])
    np.testing.assert_allclose(ours.log_partitions(), dense.log_partitions(), **CLOSE)
    for row, expected in zip(ours.label_marginals(), dense.label_marginals(), strict=True):
        np.testing.assert_allclose(row, expected, **CLOSE)


@settings(max_examples=80)
@given(potentials())
def test_labels_and_posteriors_equal_enumeration(dense):
    """Any order, ties, local patterns, empty sentences, scores too large for scaled messages."""
    check(on_automaton(dense), dense)


@settings(max_examples=40)
@given(potentials(), st.integers(0, 2**32 - 1))
def test_constraints_hold(dense, seed):
    """Forbidden labels and pairs, and some sentences taken twice."""
    rng = np.random.default_rng(seed)
    allowed = rng.random(dense.node.shape) < 0.8
    allowed[:, 0] = True
    pairs = rng.random((dense.n_labels, dense.n_labels)) < 0.8
    pairs[:, 0] = True
    which = rng.integers(len(dense), size=3)
    check(forbid(on_automaton(dense), allowed, pairs).take(which), forbid(dense, allowed, pairs).take(which))


def test_a_model_tags_alike_on_both(monkeypatch):
    """Labels, probabilities, k-best, draws and explanations of a model of order 4."""
    from vcrf.labelling.explain import explain

    rng = np.random.default_rng(0)
    X = [[str(w) for w in rng.integers(0, 9, 10)] for _ in range(40)]
    y = [[["A", "B", "C", "D"][(int(s[max(t - 2, 0)]) + int(s[t])) % 4] for t in range(len(s))] for s in X]
    tagger = VCRF(recipe="paper", tags=4, words=0, affix=0, base_strength=0.02, tol=0.02).fit(X, y)
    assert tagger.model_.order > 2
    found = []
    for cost in (1e9, 0.0):
        monkeypatch.setattr(arcs, "DECODING_PRICES", Prices(cost, 0.0))
        tagger.model_ = type(tagger.model_)(**tagger.model_.__getstate__())
        kind = type(next(iter(tagger._potentials(X[:5]))))
        best = tagger.predict_kbest(X[:5], 3, constraints=[("A", "B")])
        found.append(
            (
                kind is PatternPotentials,
                tagger.predict(X),
                np.array([[list(row.values()) for row in s] for s in tagger.predict_marginals(X)]),
                [[labels for labels, _ in sentence] for sentence in best],
                np.array([p for sentence in best for _, p in sentence]),
                tagger.sequence_probability(X[:5], y[:5]),
                [e.runner_up for e in explain(tagger, X[0])],
            )
        )
    assert [kind for kind, *_ in found] == [False, True]
    for one, two in zip(*(parts[1:] for parts in found), strict=True):
        if isinstance(one, np.ndarray) or isinstance(one[0], float):
            np.testing.assert_allclose(one, two, **CLOSE)
        else:
            assert one == two
    assert tagger.sample(X[:2], 3, random_state=0)[1][2]


def test_a_lattice_beyond_the_budget_is_refused(monkeypatch):
    """The message says how long the sentence is; labels need no lattice."""
    patterns = tag_patterns(2, np.array([3], np.uint32), np.array([5], np.uint32), np.ones(1), np.ones(1, bool))
    from vcrf.kernels.scores import LocalScores

    none = np.zeros(0, np.uint32)
    local = LocalScores(np.zeros(8, np.int64), none, none, np.zeros(0))
    scores = PatternPotentials(np.array([0, 7]), np.zeros((7, 2)), {}, local, 3, None, patterns)
    monkeypatch.setattr(arcs, "MAX_LATTICE", 50)
    with pytest.raises(BudgetError, match="7 tokens"):
        scores.lattice(0)
    assert len(scores.decode()[0]) == 7
