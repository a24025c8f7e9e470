"""Margin losses by dynamic programming equal those by enumeration of every label sequence, for every loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import all_sequences, potentials_scores
from strategies import on_automaton
from vcrf.complexity import additive_losses, margin_frontier
from vcrf.complexity.margins import MarginFrontier
from vcrf.decoding.potentials import Potentials
from vcrf.errors import BudgetError, InputError
from vcrf.kernels.scores import LocalScores
from vcrf.losses import (
    AlignedNgramLoss,
    EditLoss,
    HammingLoss,
    Loss,
    NgramCountLoss,
    SmithWatermanLoss,
    WeightedHammingLoss,
    ZeroOneLoss,
)

COSTS = np.array([[0.0, 1.0, 0.3], [0.7, 0.0, 2.0], [0.1, 0.45, 0.0]])
LOSSES = [
    HammingLoss(),
    HammingLoss(normalised=False),
    ZeroOneLoss(),
    AlignedNgramLoss(2),
    EditLoss(),
    WeightedHammingLoss(COSTS),
    SmithWatermanLoss(),
    NgramCountLoss() + 0.01 * HammingLoss(),
]


def random_scores(seed: int, order: int, lengths: list[int], n_labels: int = 3, share: float = 1.0) -> Potentials:
    """Scores of sentences with local tag patterns and a share of the plain ones."""
    rng = np.random.default_rng(seed)
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(ptr[-1])
    tables = {k: rng.normal(size=n_labels**k) * (rng.random(n_labels**k) < share) for k in range(2, order + 1)}
    sizes = np.full(n, max(order, 2), np.uint32) if order > 1 else np.zeros(0, np.uint32)
    codes = rng.integers(0, n_labels**order, len(sizes)).astype(np.uint32)
    local_ptr = np.arange(n + 1) if order > 1 else np.zeros(n + 1, np.int64)
    local = LocalScores(local_ptr, sizes, codes, rng.normal(size=len(sizes)))
    return Potentials(ptr, rng.normal(size=(n, n_labels)), tables, local, order)


def by_enumeration(scores: Potentials, i: int, y: list[int], loss: Loss, rho: float, tau: float) -> tuple[float, float]:
    """Both margin losses of a sentence before clipping."""
    sequences = all_sequences(len(y), scores.n_labels)
    values = potentials_scores(scores, i)
    losses = np.array([loss(sequence, np.array(y)) for sequence in sequences])
    is_true = np.all(sequences == np.array(y), axis=1)
    leads = (values - values[is_true])[~is_true] / rho
    losses = losses[~is_true]
    return float(np.max(losses + tau + leads)), float(np.max(losses * (1.0 + tau + leads)))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: repr(loss)[:24])
@pytest.mark.parametrize("is_sparse", [False, True])
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), order=st.integers(1, 4), rho=st.sampled_from([0.05, 0.5, 3.0, 100.0]))
def test_margin_losses_equal_enumeration(loss: Loss, is_sparse: bool, seed: int, order: int, rho: float) -> None:
    """Additive by augmented decoding and the frontier, multiplicative by the frontier; dense and on the automaton."""
    lengths = [4, 1, 3]
    dense = random_scores(seed, order, lengths, share=0.3 if is_sparse else 1.0)
    scores = on_automaton(dense) if is_sparse else dense
    y = np.random.default_rng(seed + 1).integers(0, 3, 8)
    frontier = margin_frontier(scores, y, loss)
    bound = max(loss.bound(length, 3) for length in lengths)
    assert frontier.loss_bound == bound
    for tau in (0.0, 1.0):
        expected = [
            by_enumeration(dense, i, y[scores.sent_ptr[i] : scores.sent_ptr[i + 1]].tolist(), loss, rho, tau)
            for i in range(3)
        ]
        additive, multiplicative = np.clip(np.array(expected).T, 0.0, bound)
        np.testing.assert_allclose(frontier.additive_losses(rho, tau), additive, atol=1e-10)
        np.testing.assert_allclose(frontier.multiplicative_losses(rho, tau), multiplicative, atol=1e-9)
        np.testing.assert_allclose(additive_losses(scores, y, loss, rho, tau), additive, atol=1e-10)


def test_risk_is_below_both_margin_losses() -> None:
    """The loss of the prediction never exceeds a margin loss; as rho falls a wrong sentence costs M."""
    scores = random_scores(3, 2, [4] * 20)
    y = np.random.default_rng(4).integers(0, 3, 80)
    frontier = margin_frontier(scores, y, HammingLoss())
    for rho in (1e-3, 0.1, 1.0, 10.0, 1e3):
        assert np.all(frontier.risks <= frontier.additive_losses(rho) + 1e-12)
        assert np.all(frontier.risks <= frontier.multiplicative_losses(rho) + 1e-12)
        assert frontier.additive(rho) <= frontier.additive(rho, 1.0)
    assert frontier.additive(1e-9) == pytest.approx(np.mean(frontier.risks > 0.0))
    assert frontier.risk == pytest.approx(frontier.risks.mean())


def test_golden_value_of_the_notes() -> None:
    """D=3, l=5, y=(0,1,2,1,0): the best rival with Hamming / l is 4.830187 above, with edit distance 8.419789."""
    t, b = np.meshgrid(np.arange(5), np.arange(3), indexing="ij")
    before, here = np.meshgrid(np.arange(3), np.arange(3), indexing="ij")
    local = LocalScores(np.zeros(6, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0))
    tables = {2: (np.cos(before - 2.0 * here) / 2).reshape(-1)}
    scores = Potentials(np.array([0, 5]), np.sin(3.0 * t + b), tables, local, 2)
    y = np.array([0, 1, 2, 1, 0])
    for loss, value, slack in ((HammingLoss(), 4.830187, 4.830187), (EditLoss(normalised=False), 8.419789, 22.098947)):
        frontier = margin_frontier(scores, y, loss)
        assert float(np.max(frontier.losses + frontier.leads)) == pytest.approx(value, abs=1e-6)
        assert float(np.max(frontier.losses * (1 + frontier.leads))) == pytest.approx(slack, abs=1e-6)


def test_one_label_has_no_rival() -> None:
    """Nothing can go wrong: every margin loss is 0."""
    scores = random_scores(0, 1, [3], n_labels=1)
    frontier = margin_frontier(scores, np.zeros(3, np.int64), HammingLoss())
    assert frontier.additive(1.0) == frontier.multiplicative(1.0) == frontier.risk == 0.0


class UnboundedLoss(HammingLoss):
    """A loss that says it has no bound."""

    def bound(self, length: int, n_labels: int) -> float:  # noqa: ARG002
        """Infinite."""
        return float("inf")


def test_wrong_calls_say_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Margins, tau, unbounded losses and frontiers that are too large."""
    scores, y = random_scores(0, 2, [4]), np.zeros(4, np.int64)
    frontier = margin_frontier(scores, y, HammingLoss())
    for rho in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="`rho` must be a positive"):
            frontier.additive(rho)
        with pytest.raises(InputError, match="`rho` must be a positive"):
            additive_losses(scores, y, HammingLoss(), rho)
    with pytest.raises(InputError, match="tau"):
        frontier.multiplicative(1.0, -1.0)
    with pytest.raises(InputError, match="no bound"):
        margin_frontier(scores, y, UnboundedLoss())
    monkeypatch.setattr("vcrf.complexity.margins._MAX_TABLE", 17)
    with pytest.raises(BudgetError, match="additive_losses"):
        margin_frontier(scores, y, WeightedHammingLoss(COSTS))


def test_a_frontier_without_rivals_is_empty() -> None:
    """Sentences without an entry have loss 0."""
    empty = MarginFrontier(np.zeros(3, np.int64), np.zeros(0), np.zeros(0), np.zeros(2), 1.0)
    assert empty.additive_losses(1.0).tolist() == [0.0, 0.0]
