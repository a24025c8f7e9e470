"""What a solver returns: weights with their certificate, and how it went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from vcrf.types import Floats, Ints


class Status(Enum):
    """Why the solver stopped."""

    CONVERGED = "The relative duality gap is below the tolerance."
    MAX_PASSES = "The limit on passes over the data was reached before the tolerance."
    STATIONARY = "The optimality conditions hold to the tolerance; with labels left open there is no certificate."
    INTERRUPTED = "The run was interrupted; these are the best weights so far."
    CHOSEN = "These weights had the best error on the development set; the gap is that of these weights."
    SETTLED = (
        "The objective hardly moves any more, and Newton steps are not to be had (for all of 24,000 weights at most)."
    )
    STALLED = "No further decrease is possible in double precision; the gap is above the tolerance."
    UNCERTIFIED = "Some feature has strength 0, so that there is no certificate; no more passes, or no more progress."


@dataclass(frozen=True)
class IterationRecord:
    """State after one round of the solver. `gap` is inf until a scan of all candidates has certified it.

    `dev_error` is the token error on the development set, if there is one.
    """

    n_passes: int
    seconds: float
    objective: float
    gap: float
    kkt_violation: float
    n_active: int
    n_working: int
    phase: str
    dev_error: float | None = None


Callback = Callable[[IterationRecord], bool | None]
"""Receives a record after each round; returning True asks the solver to stop with the best weights so far."""


class Watch(Protocol):
    """Sees the weights after each round, may say that it is enough, and which weights it prefers."""

    def look(self, record: IterationRecord, features: Ints, w: Floats) -> IterationRecord:
        """Take note of the weights; the record returned goes into the history."""

    @property
    def is_enough(self) -> bool:
        """Whether the solver should stop."""

    @property
    def preferred(self) -> tuple[Ints, Floats] | None:
        """Features and weights to return in place of the last ones; None means the last ones."""


@dataclass(frozen=True)
class SolverResult:
    """Weights of the features that are not zero, and the certificate.

    Attributes
    ----------
    features : (n_active,) int64, sorted feature numbers (see `Problem`)
    weights : (n_active,) float64, none zero
    objective : value of the problem at the weights, in its units (mean over sentences + penalty)
    gap : certified bound on objective - optimum
    kkt_violation : largest violation of the optimality conditions relative to the feature's strength
    n_kept_columns : columns left by count screening
    """

    features: Ints
    weights: Floats
    objective: float
    gap: float
    kkt_violation: float
    status: Status
    n_passes: int
    seconds: float
    history: list[IterationRecord] = field(default_factory=list)
    n_kept_columns: int = 0

    @property
    def n_active(self) -> int:
        """Number of features with a weight."""
        return len(self.features)

    @property
    def relative_gap(self) -> float:
        """Gap / objective; 0 if both are 0."""
        return self.gap / self.objective if self.objective > 0.0 else float(np.sign(self.gap))
