"""Empirical margin losses of scores h on a sample, exactly.

    additive        mean of min(M, max(0, max_{y' != y} L(y', y) + tau - (h(x, y) - h(x, y')) / rho))
    multiplicative  mean of min(M, max(0, max_{y' != y} L(y', y) (1 + tau - (h(x, y) - h(x, y')) / rho)))

Both grow with the loss of a rival y' and with its score, so that the rivals that no other beats in both (a frontier)
give both losses for every rho and tau.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.decoding.potentials import Potentials
from vcrf.errors import BudgetError, InputError
from vcrf.lattice.lattice import sentence_loss
from vcrf.losses import Loss
from vcrf.types import Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.kernels.log_domain import SentenceLoss

# Numbers in the tables of one sentence: half a gigabyte.
_MAX_TABLE = 1 << 25


@dataclass(frozen=True, eq=False)
class MarginFrontier:
    """For each sentence the rivals of the true labels that are best for some trade-off of loss and score.

    Attributes
    ----------
    ptr, losses, leads : CSR by sentence; the loss of a rival and its score less that of the truth
    risks : (n_sentences,) loss of the predicted labels
    loss_bound : M, no loss is larger
    weights : (n_sentences,) of the sentences in the means, summing to 1; empty if all are equal
    """

    ptr: Ints
    losses: Floats
    leads: Floats
    risks: Floats
    loss_bound: float
    weights: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def n_sentences(self) -> int:
        return len(self.risks)

    @property
    def risk(self) -> float:
        """Mean loss of the predicted labels."""
        return self._mean(self.risks)

    def additive(self, rho: float, tau: float = 0.0) -> float:
        """The additive margin loss at margin rho."""
        return self._mean(self.additive_losses(rho, tau))

    def multiplicative(self, rho: float, tau: float = 0.0) -> float:
        """The multiplicative margin loss at margin rho."""
        return self._mean(self.multiplicative_losses(rho, tau))

    def additive_losses(self, rho: float, tau: float = 0.0) -> Floats:
        """The same sentence by sentence."""
        check_rho(rho)
        check_tau(tau)
        return self._clipped(self.losses + tau + self.leads / rho)

    def multiplicative_losses(self, rho: float, tau: float = 0.0) -> Floats:
        """The same sentence by sentence."""
        check_rho(rho)
        check_tau(tau)
        return self._clipped(self.losses * (1.0 + tau + self.leads / rho))

    def _mean(self, values: Floats) -> float:
        return float(self.weights @ values if len(self.weights) else values.mean())

    def _clipped(self, values: Floats) -> Floats:
        out = np.zeros(self.n_sentences)
        filled = np.flatnonzero(self.ptr[1:] > self.ptr[:-1])
        if len(filled):
            out[filled] = np.clip(np.maximum.reduceat(values, self.ptr[filled]), 0.0, self.loss_bound)
        return out


def margin_frontier(scores: Potentials, y: UInts32 | Ints, loss: Loss) -> MarginFrontier:
    """Compute the frontier of every sentence.

    Parameters
    ----------
    scores : of all label sequences, `Model.potentials(text)`
    y : (n_tokens,) numbers of the true labels
    loss : any

    Raises
    ------
    BudgetError
        When a sentence has too many rivals of different losses; `additive_losses` needs no frontier.
    """
    losses: list[Floats] = []
    leads: list[Floats] = []
    for i in range(len(scores)):
        found, better = _frontier(scores, i, _labels(scores, y, i), loss)
        losses.append(found)
        leads.append(better)
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(found) for found in losses], dtype=np.int64)])
    return MarginFrontier(
        ptr, np.concatenate([np.zeros(0), *losses]), np.concatenate([np.zeros(0), *leads]),
        _risks(scores, y, loss), sample_loss_bound(scores, loss),
    )  # fmt: skip


def additive_losses(scores: Potentials, y: UInts32 | Ints, loss: Loss, rho: float, tau: float = 0.0) -> Floats:
    """Additive margin loss of each sentence by loss-augmented decoding that leaves the true labels out."""
    check_rho(rho)
    check_tau(tau)
    found = np.zeros(len(scores))
    for i in range(len(scores)):
        labels = _labels(scores, y, i)
        if len(labels):
            rivals, lattice = _rivals(loss, labels, scores.n_labels), scores.lattice(i)
            steps = lattice.steps._replace(node=lattice.steps.node / rho, arcs=lattice.steps.arcs / rho)
            found[i] = kernels.log_domain.best_score(steps, rivals) - lattice.score(labels) / rho + tau
    return np.clip(found, 0.0, sample_loss_bound(scores, loss))


def sample_loss_bound(scores: Potentials, loss: Loss) -> float:
    """M for sentences no longer than the longest of the sample.

    Raises
    ------
    InputError
        When the loss has no bound.
    """
    lengths = np.unique(np.diff(scores.sent_ptr)).tolist()
    return check_loss_bound(max((loss.bound(length, scores.n_labels) for length in lengths), default=0.0))


def check_rho(rho: float) -> None:
    """Refuse a margin that is none, and those whose squares leave the range of numbers."""
    if not 0.0 < rho < np.inf:
        raise InputError(f"`rho` must be a positive number, the margin, got {rho!r}.")
    if not 1e-100 <= rho <= 1e100:
        raise InputError(f"`rho` must be a margin between 1e-100 and 1e100, got {rho!r}.")


def check_tau(tau: float) -> None:
    """Refuse a negative tau."""
    if not 0.0 <= tau < np.inf:
        raise InputError(f"tau must be a number that is not negative, got {tau!r}.")


def check_loss_bound(loss_bound: float) -> float:
    """Refuse a loss without a bound: no statement of these holds for it."""
    if not 0.0 <= loss_bound < np.inf:
        raise InputError(
            f"The loss has no bound (M = {loss_bound!r}), and every bound on the risk needs one. Use a loss with a "
            "largest value: a normalised one, or one that is capped."
        )
    return float(loss_bound)


def _labels(scores: Potentials, y: UInts32 | Ints, i: int) -> Ints:
    return np.asarray(y[scores.sent_ptr[i] : scores.sent_ptr[i + 1]], np.int64)


def _frontier(scores: Potentials, i: int, labels: Ints, loss: Loss) -> tuple[Floats, Floats]:
    if not len(labels):
        return np.zeros(0), np.zeros(0)
    rivals, lattice = _rivals(loss, labels, scores.n_labels), scores.lattice(i)
    n_states = len(lattice.steps.table) * int(np.diff(rivals.ptr).max())
    room = len(labels) + 2
    while n_states * room <= _MAX_TABLE:
        losses, leads = np.empty(room), np.empty(room)
        n = kernels.frontier.frontier(lattice.steps, rivals, losses, leads)
        if n >= 0:
            return losses[:n].copy(), leads[:n] - lattice.score(labels)
        room *= 2
    raise BudgetError(
        f"Sentence {i} ({len(labels)} tokens, {scores.n_labels} labels, order {scores.order}) has more than "
        f"{room // 2:,} rivals of different losses in {n_states:,} states. Use a loss with fewer values, or the "
        "additive margin loss alone (additive_losses)."
    )


def _rivals(loss: Loss, labels: Ints, n_labels: int) -> SentenceLoss:
    """The loss of all label sequences but the true one."""
    return sentence_loss(loss.automaton(labels, n_labels).without(labels))


def _risks(scores: Potentials, y: UInts32 | Ints, loss: Loss) -> Floats:
    predicted = scores.decode()
    pairs = [(np.asarray(found, np.int64), _labels(scores, y, i)) for i, found in enumerate(predicted)]
    return np.array([loss(found, true) if len(true) else 0.0 for found, true in pairs], np.float64)
