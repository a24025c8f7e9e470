"""Losses that add a cost a position, a function of the last q labels of both sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vcrf.errors import InputError
from vcrf.losses.automaton import LayerBuilder, LossAutomaton
from vcrf.losses.hamming import token_share
from vcrf.losses.loss import Loss
from vcrf.losses.ngram import check_n
from vcrf.types import Floats, Ints

Windows = tuple[int, ...]

# Pairs of windows whose costs are asked for to find the bound of a function.
_MAX_WINDOWS = 1_000_000

_ADVICE = "Use a lower order, or raise max_states."


@dataclass(frozen=True, eq=False)
class MarkovLoss(Loss):
    """Any loss that is a sum over positions of a cost of two windows of q labels.

        L(y, y_true) = sum_t cost(t, y_{t-q+1..t}, y_true_{t-q+1..t})  (/ l),   shorter windows at the start

    Parameters
    ----------
    order : int
        q; 1 compares labels, 2 pairs of labels.
    cost : callable or array
        A function (position, candidate's window, reference's window) -> number, windows being tuples of numbers of
        labels; or an array of 2 q axes, cost[candidate's window + reference's window], which counts full windows only.
    normalised : bool
        Divide by the length l.
    largest : float, optional
        The largest cost of a window, for the bound, when `cost` is a function and there are many labels.
    max_states : int
        Budget of the automaton before it is made minimal.
    """

    order: int
    cost: Callable[[int, Windows, Windows], float] | Any
    normalised: bool = False
    largest: float | None = None
    max_states: int = 50_000

    def __post_init__(self) -> None:
        check_n(self.order)
        table = self._table
        if table is not None and (table.ndim != 2 * self.order or len(set(table.shape)) != 1):
            raise InputError(
                f"A table of a Markov loss of order {self.order} needs {2 * self.order} axes of equal length "
                f"(candidate's labels, then the reference's), got shape {table.shape}."
            )

    def _bound(self, length: int, n_labels: int) -> float:
        """M: the sum of the largest costs of a window at each position."""
        if self._table is not None:
            windows = max(length - self.order + 1, 0)
            return float(self._table.max(initial=0.0)) * windows * token_share(length, self.normalised)
        if self.largest is not None:
            return self.largest * length * token_share(length, self.normalised)
        if length * n_labels ** (2 * self.order) > _MAX_WINDOWS:
            raise InputError(
                "The bound of this Markov loss takes too long to find by trying all windows: pass largest=, the "
                "largest cost of a window. (automaton(y_true).largest() is exact for one reference.)"
            )
        total = 0.0
        for t in range(length):
            choices = list(np.ndindex((n_labels,) * min(t + 1, self.order)))
            total += max(self._window_cost(t, window, reference) for window in choices for reference in choices)
        return total * token_share(length, self.normalised)

    @cached_property
    def _table(self) -> Floats | None:
        return None if callable(self.cost) else np.asarray(self.cost, np.float64)

    def _known_labels(self) -> int | None:
        return None if self._table is None else len(self._table)

    def _window_cost(self, t: int, window: Windows, reference: Windows) -> float:
        if self._table is None:
            return float(self.cost(t, window, reference))
        return float(self._table[window + reference]) if len(window) == self.order else 0.0

    def _value(self, y: Ints, y_true: Ints) -> float:
        pairs = zip(_windows(y, self.order), _windows(y_true, self.order), strict=True)
        total = sum(self._window_cost(t, window, reference) for t, (window, reference) in enumerate(pairs))
        return total * token_share(len(y_true), self.normalised)

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        """State: the last q - 1 labels, as a number with the oldest label most significant."""
        share = token_share(len(y_true), self.normalised)
        builder = LayerBuilder(n_labels, self.max_states, _ADVICE)
        history = 0  # labels that the state remembers
        for t, reference in enumerate(_windows(y_true, self.order)):
            kept = min(history + 1, self.order - 1)
            builder.reserve(n_labels**history)
            shape = (n_labels,) * (history + 1)
            costs = np.array([self._window_cost(t, window, reference) for window in np.ndindex(shape)])
            following = np.arange(n_labels ** (history + 1)) % n_labels**kept
            builder.add(following.reshape(-1, n_labels), share * costs.reshape(-1, n_labels))
            history = kept
        return builder.finish(np.zeros(n_labels**history))


def _windows(y: Ints, order: int) -> Iterator[Windows]:
    labels = y.tolist()
    for t in range(len(labels)):
        yield tuple(labels[max(0, t - order + 1) : t + 1])
