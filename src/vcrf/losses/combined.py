"""Sums and multiples of losses, as in ``EditLoss() + 0.1 * HammingLoss()``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from vcrf.errors import InputError
from vcrf.losses.automaton import LossAutomaton
from vcrf.losses.loss import Loss
from vcrf.types import Floats, Ints


@dataclass(frozen=True)
class SumLoss(Loss):
    """The sum of several losses; its automaton's states are tuples of theirs.

    Parameters
    ----------
    losses : tuple of Loss
    """

    losses: tuple[Loss, ...]

    def __post_init__(self) -> None:
        if not self.losses:
            raise InputError("SumLoss needs at least one loss.")

    @property
    def is_symmetric(self) -> bool:  # type: ignore[override]
        """Whether all are."""
        return all(loss.is_symmetric for loss in self.losses)

    def _bound(self, length: int, n_labels: int) -> float:
        """M: the sum of theirs."""
        return sum(loss.bound(length, n_labels) for loss in self.losses)

    def for_labels(self, labels: Sequence[Hashable]) -> SumLoss:
        """The sum for labels in this order."""
        return replace(self, losses=tuple(loss.for_labels(labels) for loss in self.losses))

    def _known_labels(self) -> int | None:
        return _agreed(self.losses)

    def _value(self, y: Ints, y_true: Ints) -> float:
        return sum(loss._value(y, y_true) for loss in self.losses)

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        parts = [loss._automaton(y_true, n_labels).minimal() for loss in self.losses]
        return reduce(lambda a, b: a.plus(b, self.max_states), parts)


@dataclass(frozen=True)
class ScaledLoss(Loss):
    """A loss times a factor >= 0."""

    loss: Loss
    factor: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor >= 0):
            raise InputError(f"A loss can be multiplied with a finite factor of at least 0, got {self.factor}.")

    @property
    def is_symmetric(self) -> bool:  # type: ignore[override]
        """Whether the loss is."""
        return self.loss.is_symmetric

    def _bound(self, length: int, n_labels: int) -> float:
        """M: the factor times the loss's."""
        return self.factor * self.loss.bound(length, n_labels)

    def token_costs(self, n_labels: int) -> Floats | None:
        """Those of the loss: a factor does not matter."""
        return self.loss.token_costs(n_labels)

    def for_labels(self, labels: Sequence[Hashable]) -> ScaledLoss:
        """The multiple for labels in this order."""
        return replace(self, loss=self.loss.for_labels(labels))

    def _known_labels(self) -> int | None:
        return self.loss._known_labels()

    def _value(self, y: Ints, y_true: Ints) -> float:
        return self.factor * self.loss._value(y, y_true)

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        return self.loss._automaton(y_true, n_labels).scaled(self.factor)


def _agreed(losses: Sequence[Loss]) -> int | None:
    known = {loss._known_labels() for loss in losses} - {None}
    if len(known) > 1:
        raise InputError(f"The losses of a sum are defined for different numbers of labels: {sorted(map(str, known))}.")
    return known.pop() if known else None
