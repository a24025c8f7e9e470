"""Dual ascent on chains: each visit against enumeration, sums that follow from the posteriors, and where it ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from enumeration import Enumeration, feature_of
from oracles import all_sequences
from small_problems import cases, strengths
from vcrf import VCRF
from vcrf.data import SyntheticLanguage
from vcrf.losses import get_loss
from vcrf.penalties import FamilyPenalty
from vcrf.solvers.dual_start import rounds, strengths_of
from vcrf.solvers.result import Status
from vcrf.solvers.working_set import solve
from vcrf.structures.ascent import ChainAscent
from vcrf.surrogates.choice import choose

norms = st.sampled_from(["l2", "elastic"])
candidates = st.sampled_from(["all", "observed"])


@st.composite
def ascents(draw):
    """A case, its ascent after some visits, and the numbers of the sentences visited."""
    case = draw(cases(max_labels=3, max_tags=2, max_length=4, max_sentences=3, candidates=draw(candidates)))
    penalty = FamilyPenalty.from_strengths(
        draw(strengths(case)), draw(norms), count_power=draw(st.sampled_from([0.0, 0.5]))
    )
    assume(np.all(np.isfinite(penalty.l1)) and np.all(penalty.l2 > 1e-3))
    chain = case.surrogate().structure
    ascent = ChainAscent(
        chain, case.surrogate().loss, case.problem.weights, strengths_of(case.problem, penalty.bind(case.problem))
    )
    for i in draw(st.lists(st.integers(0, ascent.n_examples - 1), max_size=8)):
        ascent.visit(np.array([i]))
    return case, ascent


def posterior_of(case, ascent, i):
    """Enumerated posteriors of single labels (n, L) and sums of those of pairs (L, L) at the ascent's weights."""
    features, w = ascent.weights()
    enumeration = Enumeration(case.problem, [feature_of(case.problem, f) for f in features], case.costs)
    n, n_labels = int(np.diff(case.problem.sent_ptr)[i]), case.n_labels
    p, sequences = enumeration.probabilities(i, w), all_sequences(n, n_labels)
    labels, pairs = np.zeros((n, n_labels)), np.zeros((n_labels, n_labels))
    for t in range(n):
        np.add.at(labels[t], sequences[:, t], p)
        if t:
            np.add.at(pairs, (sequences[:, t - 1], sequences[:, t]), p)
    return labels, pairs


@settings(max_examples=60)
@given(ascents(), st.data())
def test_a_visit_steps_towards_the_posterior(drawn, data):
    """One step, of one length, towards the enumerated posterior at the weights; what is left is measured as defined."""
    case, ascent = drawn
    i = data.draw(st.integers(0, ascent.n_examples - 1))
    assume(np.abs(ascent.weights()[1]).max(initial=0.0) < 20.0)
    t0, t1 = case.problem.sent_ptr[i : i + 2]
    labels, pairs = posterior_of(case, ascent, i)
    old = ascent._dual.labels[t0:t1].astype(float)
    old_pairs = ascent._dual.pair_sums[i].copy() if len(ascent._dual.pair_sums) else None
    ascent.visit(np.array([i]))
    new, u = ascent._dual.labels[t0:t1], labels - old
    left = float((u**2 / np.maximum(0.5 * (labels + old), 1e-9)).sum())
    assert ascent.left[i] == pytest.approx(left, rel=2e-3, abs=1e-5)
    gamma = float(((new - old) * u).sum() / max((u**2).sum(), 1e-12))
    assert -1e-6 <= gamma <= 1.0 + 1e-4 or left < 1e-6
    np.testing.assert_allclose(new - old, gamma * u, atol=2e-5)
    if old_pairs is not None:
        step = gamma * (pairs.reshape(-1) - old_pairs)
        np.testing.assert_allclose(ascent._dual.pair_sums[i] - old_pairs, step, atol=5e-5)


@settings(max_examples=60)
@given(ascents())
def test_sums_follow_from_the_posteriors(drawn):
    """Sums of candidates are z = sum_i v_i (features of the truth - features of the dual posterior), others are 0."""
    case, ascent = drawn
    problem, dual, members = case.problem, ascent._dual, ascent._members
    truth = np.eye(case.n_labels)[problem.y]
    residuals = problem.token_weights[:, None] * (truth - dual.labels)
    for row, c in enumerate(ascent._columns):
        first, last = problem.columns.ptr[c : c + 2]
        values = problem.columns.values[first:last] if len(problem.columns.values) else np.ones(last - first)
        here = values @ residuals[problem.columns.positions[first:last]]
        is_candidate = members.labels[row] if len(members.labels) else 1.0
        np.testing.assert_allclose(dual.columns[row], here * is_candidate, atol=1e-5)
    assert not dual.columns[len(ascent._columns) :].any()  # they only fill registers up
    if len(dual.pair_sums):
        sums = (problem.weights[:, None] * (ascent._true_pairs() - dual.pair_sums)).sum(axis=0)
        np.testing.assert_allclose(dual.pairs.reshape(-1), sums * members.pair_labels.reshape(-1), atol=1e-5)


@settings(max_examples=40)
@given(cases(max_labels=3, max_tags=3, max_length=4, max_sentences=4, candidates="all"), norms, st.data())
def test_the_optimum_is_the_same(case, norm, data):
    """A start changes the way, not the end."""
    penalty = FamilyPenalty.from_strengths(data.draw(strengths(case)), norm)
    plain, begun = (
        solve(case.problem, penalty, costs=case.costs, tol=1e-6, dual_start=start) for start in (False, True)
    )
    assert plain.status is begun.status is Status.CONVERGED
    assert begun.objective == pytest.approx(plain.objective, abs=plain.gap + begun.gap + 1e-12)


def corpus(n=120):
    """Sentences with labels."""
    found = SyntheticLanguage(n_labels=5, n_stems=60).sample(n, seed=3)
    return found.tokens, found.labels


def test_it_saves_passes():
    """The first certified objective is a fraction of that at zero."""
    tokens, labels = corpus()
    plain, begun = (VCRF(dual_start=start).fit(tokens, labels) for start in (False, True))
    assert begun.result_.n_passes < plain.result_.n_passes
    assert begun.history_[0].objective < 0.1 * plain.history_[0].objective
    assert begun.objective_ == pytest.approx(plain.objective_, abs=plain.gap_ + begun.gap_)


def test_threads_change_nothing():
    """The ascent is serial, the steps do not depend on threads."""
    tokens, labels = corpus(60)
    one, two = (VCRF(n_jobs=n).fit(tokens, labels) for n in (1, 2))
    assert np.array_equal(one.result_.weights, two.result_.weights)
    assert np.array_equal(one.result_.features, two.result_.features)


def test_a_limit_on_passes_ends_it_with_what_it_has():
    """Its rounds are passes; the weights found so far are certified."""
    tokens, labels = corpus(60)
    with pytest.warns(UserWarning, match="passes"):
        tagger = VCRF(max_passes=3).fit(tokens, labels)
    assert tagger.status_ is Status.MAX_PASSES
    assert tagger.n_active_ > 0
    assert np.isfinite(tagger.gap_)


def test_where_there_is_none():
    """Loss automata, and labels left open."""
    tokens, labels = corpus(20)
    for tagger in (VCRF(loss="edit"), VCRF(loss="ngram")):
        data = tagger._read(tokens, labels, None)
        assert not _has_ascent(tagger, data)
    labels[0][0] = None
    tagger = VCRF()
    assert not _has_ascent(tagger, tagger._read(tokens, labels, None))


def _has_ascent(tagger, data):
    built = data.surrogate.build(data.problem, np.ones(len(data.problem.columns), bool))
    return built.ascent(strengths_of(data.problem, tagger._penalty(data).bind(data.problem))) is not None


def test_only_a_mean_has_one():
    """The outer function of the exponential surrogate is a log."""
    tokens, labels = corpus(20)
    tagger = VCRF()
    data = tagger._read(tokens, labels, None)
    loss = get_loss("hamming").for_labels(data.classes)
    assert _has_ascent(tagger, data)
    assert not _has_ascent(tagger, data._replace(surrogate=choose(data.problem, "exponential", loss)))


def test_too_many_labels_take_too_much_memory():
    """The sums of pairs grow with the square of the labels."""
    tokens = [["w"] * 3 for _ in range(200)]
    labels = [[f"L{i}", "a", "b"] for i in range(200)]
    tagger = VCRF()
    assert not _has_ascent(tagger, tagger._read(tokens, labels, None))


class Falling:
    """An ascent whose visits leave what it is told."""

    def __init__(self, left):
        self.n_visits, self.orders, self._left = 0, [], left

    @property
    def left(self):
        return np.full(4, self._left[self.n_visits - 1] if self.n_visits else np.inf)

    def visit(self, order):
        self.n_visits += 1
        self.orders.append(order)


def test_rounds_end_when_little_is_left():
    """A hundredth of what the first one found."""
    ascent = Falling([100.0 * 0.5**i for i in range(50)])
    assert len(list(rounds(ascent))) == 8
    assert ascent.left[0] <= 1.0 < 2.0 * ascent.left[0]


def test_rounds_end_when_they_find_no_less():
    """Three rounds that leave more than four fifths; a number of rounds in any case."""
    assert len(list(rounds(Falling([100.0, 60.0, 30.0, 28.0, 27.0, 26.0, 25.0, 24.0])))) == 6
    assert len(list(rounds(Falling([100.0 * 0.92**i for i in range(100)])))) == 40


def test_each_example_is_visited_in_the_first_rounds():
    """Afterwards they are drawn; always the same ones."""
    one, two = Falling([100.0 * 0.5**i for i in range(50)]), Falling([100.0 * 0.5**i for i in range(50)])
    list(rounds(one))
    list(rounds(two))
    assert all(sorted(order) == [0, 1, 2, 3] for order in one.orders[:2])
    assert all(np.array_equal(a, b) for a, b in zip(one.orders, two.orders, strict=True))


def test_an_interrupted_ascent_leaves_a_start_as_it_is():
    """What was there is better than what has hardly begun."""
    tokens, labels = corpus(60)
    old = VCRF().fit(tokens[:30], labels[:30])
    with pytest.warns(UserWarning, match="passes"):
        tagger = VCRF(max_passes=2).fit(tokens, labels, start=old)
    first = VCRF().fit(tokens, labels, start=old).history_[0]
    assert tagger.objective_ < 3.0 * first.objective
