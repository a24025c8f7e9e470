"""Losses that add one cost a token: Hamming, cost matrices, class weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from vcrf.errors import InputError
from vcrf.losses.automaton import LossAutomaton
from vcrf.losses.loss import Loss
from vcrf.types import Floats, Ints


@dataclass(frozen=True)
class HammingLoss(Loss):
    """Share of wrong labels, or their number.

        L(y, y_true) = cost * sum_t [y_t != y_true_t]  (/ l)

    Parameters
    ----------
    normalised : bool
        Divide by the length l: the share of wrong labels, between 0 and 1.
    cost : float
        What a wrong label costs, positive.
    """

    normalised: bool = True
    cost: float = 1.0

    is_symmetric = True

    def __post_init__(self) -> None:
        if not 0.0 < self.cost < np.inf:
            raise InputError(f"The cost of a wrong label must be positive and finite, got {self.cost!r}.")

    def token_cost(self, length: int) -> float:
        """What one wrong label costs in a sentence of this length."""
        return self.cost * token_share(length, self.normalised)

    def _bound(self, length: int, n_labels: int) -> float:
        """M: the cost if normalised, else times the length."""
        return self.cost * float(n_labels > 1) * (1.0 if self.normalised and length else float(length))

    def token_costs(self, n_labels: int) -> Floats:
        """The cost for a wrong label."""
        return self.cost * (1.0 - np.eye(n_labels))

    def _value(self, y: Ints, y_true: Ints) -> float:
        return float((y != y_true).sum() * self.token_cost(len(y_true)))

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        wrong = y_true[:, None] != np.arange(n_labels)
        return additive(wrong * self.token_cost(len(y_true)))


@dataclass(frozen=True, eq=False)
class WeightedHammingLoss(Loss):
    """A cost for every wrong label: by a matrix, or by the reference's label (class weights).

        L(y, y_true) = sum_t costs[y_t, y_true_t]  (/ l)

    Parameters
    ----------
    costs : (n_labels, n_labels) array, costs[candidate, reference] with a zero diagonal; or (n_labels,) array,
        what a wrong label costs where that label is right; or a dict {label: cost} or
        {(candidate, reference): cost}, whose missing entries are 1
    normalised : bool
        Divide by the length l.
    labels : sequence, optional
        Names of the labels in order, for a dict; `for_labels` and the estimators set it.
    """

    costs: Any
    normalised: bool = True
    labels: Sequence[Hashable] | None = None

    def _bound(self, length: int, n_labels: int) -> float:  # noqa: ARG002
        """M: the largest cost of a token, times the length if not normalised."""
        largest = float(self.matrix.max(initial=0.0))
        return largest * length * token_share(length, self.normalised)

    def token_costs(self, n_labels: int) -> Floats:
        """The cost matrix."""
        self._n_labels(np.zeros(0, np.int64), n_labels)
        return self.matrix

    def for_labels(self, labels: Sequence[Hashable]) -> WeightedHammingLoss:
        """The loss with its dict read in this order of labels."""
        return replace(self, labels=tuple(labels)) if isinstance(self.costs, Mapping) else self

    @cached_property
    def matrix(self) -> Floats:
        """Costs (candidate, reference)."""
        matrix = _cost_matrix(self.costs, self.labels)
        if not np.isfinite(matrix).all() or (matrix < 0).any():
            worst = matrix[~(np.isfinite(matrix) & (matrix >= 0))][0]
            raise InputError(f"WeightedHammingLoss needs costs that are finite and at least 0, got {worst}.")
        if np.diag(matrix).any():
            at = int(np.flatnonzero(np.diag(matrix))[0])
            raise InputError(f"A right label must cost 0: costs[{at}, {at}] is {matrix[at, at]}.")
        return matrix

    def _known_labels(self) -> int:
        return len(self.matrix)

    def _value(self, y: Ints, y_true: Ints) -> float:
        return float(self.matrix[y, y_true].sum() * token_share(len(y_true), self.normalised))

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:  # noqa: ARG002
        return additive(self.matrix[:, y_true].T * token_share(len(y_true), self.normalised))


def additive(costs: Floats) -> LossAutomaton:
    """One state a layer; costs[t, b] of label b at position t."""
    length, n_labels = costs.shape
    state_ptr = np.arange(length + 2, dtype=np.int64)
    following = np.zeros((length, n_labels), np.int64)
    return LossAutomaton(n_labels, state_ptr, following, np.ascontiguousarray(costs, np.float64), np.zeros(1))


def token_share(length: int, normalised: bool) -> float:
    """What a token's cost is multiplied with."""
    return 1.0 / max(length, 1) if normalised else 1.0


def _cost_matrix(costs: Any, labels: Sequence[Hashable] | None) -> Floats:
    if isinstance(costs, Mapping):
        return _named_costs(costs, labels)
    matrix = np.array(costs, np.float64)
    if matrix.ndim == 1:
        return np.where(np.eye(len(matrix), dtype=bool), 0.0, matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise InputError(
            "WeightedHammingLoss needs a square matrix costs[candidate, reference] or one cost a label, "
            f"got an array of shape {matrix.shape}."
        )
    return matrix


def _named_costs(costs: Mapping[Any, float], labels: Sequence[Hashable] | None) -> Floats:
    if labels is None:
        raise InputError("Costs given by label need the order of the labels: call loss.for_labels(classes_) first.")
    number = {label: i for i, label in enumerate(labels)}
    matrix = 1.0 - np.eye(len(number))
    for name, cost in costs.items():
        if name in number:
            matrix[:, number[name]] = cost
            matrix[number[name], number[name]] = 0.0
        elif isinstance(name, tuple) and len(name) == 2 and name[0] in number and name[1] in number:
            matrix[number[name[0]], number[name[1]]] = cost
        else:
            raise InputError(f"WeightedHammingLoss has a cost for {name!r}, which is not among the labels {labels}.")
    return matrix
