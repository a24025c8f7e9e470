"""Whether anything is wrong at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vcrf.losses.automaton import LossAutomaton
from vcrf.losses.loss import Loss
from vcrf.types import Ints


@dataclass(frozen=True)
class ZeroOneLoss(Loss):
    """1 for every sequence but the reference."""

    is_symmetric = True

    def _bound(self, length: int, n_labels: int) -> float:
        """M: 1."""
        return float(length > 0 and n_labels > 1)

    def _value(self, y: Ints, y_true: Ints) -> float:
        return float((y != y_true).any())

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        """Two states a layer: right so far, or not; the first error costs 1."""
        length = len(y_true)
        widths = np.minimum(np.arange(length + 1), 1) + 1
        state_ptr = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        layer = np.repeat(np.arange(length), widths[:-1])
        is_lost = (np.arange(state_ptr[-2]) > state_ptr[layer])[:, None]
        is_wrong = y_true[layer, None] != np.arange(n_labels)
        return LossAutomaton(
            n_labels,
            state_ptr,
            (is_wrong | is_lost).astype(np.int64),
            (is_wrong & ~is_lost).astype(np.float64),
            np.zeros(widths[-1]),
        )
