"""Losses that compare runs of n labels where they stand: the aligned n-gram loss, the default "ngram"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vcrf.errors import InputError
from vcrf.losses.automaton import LossAutomaton
from vcrf.losses.hamming import token_share
from vcrf.losses.loss import Loss
from vcrf.types import Ints


@dataclass(frozen=True)
class AlignedNgramLoss(Loss):
    """Share (or number) of positions where the last n labels are not those of the reference.

        L(y, y_true) = sum_t [y_{t-n+1..t} != y_true_{t-n+1..t}]  (/ l),   shorter runs at the start

    n = 1 is Hamming. One wrong label costs n positions: isolated errors cost more than neighbouring ones.

    Parameters
    ----------
    n : int
    normalised : bool
        Divide by the length l.
    """

    n: int = 2
    normalised: bool = True

    is_symmetric = True

    def __post_init__(self) -> None:
        check_n(self.n)

    def _bound(self, length: int, n_labels: int) -> float:
        """M: 1 if normalised, else the length."""
        return float(n_labels > 1) * length * token_share(length, self.normalised)

    def _value(self, y: Ints, y_true: Ints) -> float:
        errors = np.concatenate([np.zeros(self.n), np.cumsum(y != y_true)])
        is_wrong = errors[self.n :] > errors[: len(y)]  # some of the last n labels
        return float(is_wrong.sum() * token_share(len(y), self.normalised))

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        """State after t labels: how many of the last ones are right, at most n - 1."""
        length = len(y_true)
        widths = np.minimum(np.arange(length + 1), self.n - 1) + 1
        state_ptr = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        layer = np.repeat(np.arange(length), widths[:-1])  # of each state
        run = np.arange(state_ptr[-2]) - state_ptr[layer]
        is_right = y_true[layer, None] == np.arange(n_labels)
        grown = np.minimum(run + 1, self.n - 1)
        following = np.where(is_right, grown[:, None], 0)
        is_free = is_right & (run == widths[layer] - 1)[:, None]  # all of the window is right
        cost = ~is_free * token_share(length, self.normalised)
        return LossAutomaton(n_labels, state_ptr, following, cost, np.zeros(widths[-1]))


def check_n(n: object) -> None:
    """Refuse an n that is not a positive integer."""
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise InputError(f"n must be a positive integer, got {n!r}.")
