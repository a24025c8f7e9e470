"""Where a run of the working-set solver is: weights, value and gradient."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vcrf.solvers.owlqn import pseudo_gradient
from vcrf.structures.structure import FeaturePlan
from vcrf.types import Floats, Ints


def rounding(objective: float, w: Floats) -> float:
    """How far an objective may be off: a value is a difference of log-partitions and scores."""
    return 1e-15 * (1.0 + objective + float(np.abs(w).max(initial=0.0)))


@dataclass
class State:
    """Weights on a working set, with value and gradient of the smooth part there."""

    plan: FeaturePlan
    groups: Ints
    thresholds: Floats
    w: Floats
    value: float = np.inf  # F alone
    smooth: float = np.inf  # F + l2 part
    g_value: Floats = field(default_factory=lambda: np.zeros(0))
    g: Floats = field(default_factory=lambda: np.zeros(0))
    warm: Any = None  # what a pass nearby can begin from

    @property
    def objective(self) -> float:
        return self.smooth + float(self.thresholds @ np.abs(self.w))

    @property
    def pseudo(self) -> Floats:
        return pseudo_gradient(self.w, self.g, self.thresholds)

    @property
    def rounding(self) -> float:
        """How far the objective may be off."""
        return rounding(self.objective, self.w)

    @property
    def steepness(self) -> float:
        """Length of the pseudo-gradient."""
        return float(np.linalg.norm(self.pseudo))
