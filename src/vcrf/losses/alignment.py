"""Local alignment (Smith and Waterman 1981) as a loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vcrf.errors import InputError
from vcrf.losses.alternatives import Alternatives
from vcrf.losses.automaton import LossAutomaton
from vcrf.losses.hamming import token_share
from vcrf.losses.loss import Loss
from vcrf.types import Floats, Ints

_ADVICE = "It grows exponentially with the length: use it for short sequences, use EditLoss, or raise max_states."


@dataclass(frozen=True)
class SmithWatermanLoss(Loss):
    """What the best local alignment of the candidate with the reference lacks of a perfect one.

        H[i, j] = max(0, H[i-1, j-1] + (match if equal else -mismatch), H[i-1, j] - gap, H[i, j-1] - gap)
        L(y, y_true) = match * l - max H

    Parameters
    ----------
    match, mismatch, gap : float
        A match gains, a mismatch and a gap cost.
    normalised : bool
        Divide by match * l: between 0 and 1.
    max_states : int
        Budget of the automaton before it is made minimal.
    """

    match: float = 2.0
    mismatch: float = 1.0
    gap: float = 1.0
    normalised: bool = False
    max_states: int = 50_000

    is_symmetric = True

    def __post_init__(self) -> None:
        for name in ("match", "mismatch", "gap"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0) or (name == "match" and value == 0):
                raise InputError(f"{name} must be a positive number, got {value!r}.")

    def _bound(self, length: int, n_labels: int) -> float:
        """M: match * l, nothing aligned."""
        return self._scale(length) * self.match * length if n_labels > 1 else 0.0

    def _scale(self, length: int) -> float:
        return token_share(length, True) / self.match if self.normalised else 1.0

    def _value(self, y: Ints, y_true: Ints) -> float:
        """O(len(y)) numpy operations: with cumulated gaps, the row is a running maximum."""
        row, best = np.zeros(len(y_true) + 1), 0.0
        gaps = self.gap * np.arange(len(y_true) + 1)
        for label in y.tolist():
            moved = row - self.gap
            moved[1:] = np.maximum(moved[1:], row[:-1] + np.where(y_true == label, self.match, -self.mismatch))
            row = np.maximum.accumulate(np.maximum(moved, 0.0) + gaps) - gaps
            best = max(best, float(row.max()))
        return (self.match * len(y_true) - best) * self._scale(len(y_true))

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        built = _local_alternatives(y_true, n_labels, self._gains(n_labels), self.gap)
        automaton = built.build(self.max_states, _ADVICE)
        shifted = LossAutomaton(
            n_labels,
            automaton.state_ptr,
            automaton.next,
            automaton.cost,
            automaton.final,
            automaton.init + self.match * len(y_true),
        )
        return shifted.scaled(self._scale(len(y_true)))

    def _gains(self, n_labels: int) -> Floats:
        return np.where(np.eye(n_labels, dtype=bool), self.match, -self.mismatch)


def _local_alternatives(y_true: Ints, n_labels: int, gains: Floats, gap: float) -> Alternatives:
    """Nodes 0 .. l: aligned up to j labels of the reference; then: not begun, ended. Only beginning with a match."""
    length = len(y_true)
    before, ended = length + 1, length + 2
    start, final = np.full(length + 3, np.inf), np.full(length + 3, np.inf)
    start[before] = final[before] = final[ended] = 0.0
    ways = Alternatives(length, n_labels, start, final)
    t, b, j = np.ogrid[:length, :n_labels, :length]
    group, anywhere = t * n_labels + b, (t >= 0) & (b >= 0) & (j >= 0)
    ways.reading.add(group, before, j + 1, -gains[b, y_true[j]], anywhere & (y_true[j] == b))
    ways.reading.add(group, j, j + 1, -gains[b, y_true[j]], anywhere)
    ways.reading.add(group, j + 1, j + 1, gap, anywhere)
    groups = np.arange(length * n_labels)
    for node in (before, ended):
        ways.reading.add(groups, node, node, 0.0, groups >= 0)
    t, j = np.ogrid[: length + 1, :length]
    ways.silent.add(t, j, j + 1, gap, (t >= 0) & (j >= 1))
    ways.silent.add(t, j + 1, ended, 0.0, (t >= 0) & (j >= 0))
    return ways
