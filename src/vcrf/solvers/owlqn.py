"""Quasi-Newton steps for a smooth function plus sum_j c_j |w_j|.

Far from the optimum: OWL-QN (Andrew and Gao, 2007). The L-BFGS direction of the pseudo-gradient is cut to its
components that descend, and the step is projected on the orthant of the current signs.
Near the optimum, where OWL-QN crawls because half of its direction is cut away: the secants are restricted to
the free weights, so that the direction is a quasi-Newton step of the face, and nothing needs to be cut.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from vcrf.types import Bools, Floats, Ints


def pseudo_gradient(w: Floats, g: Floats, c: Floats) -> Floats:
    """Minus the steepest descent direction of f + sum c|w|; zero exactly at a minimiser (MATH 5.3)."""
    at_zero = np.sign(g) * np.maximum(np.abs(g) - c, 0.0)
    return np.where(w != 0.0, g + c * np.sign(w), at_zero)


def orthant_of(w: Floats, pseudo: Floats) -> Floats:
    """Signs inside which the next point must stay."""
    return np.where(w != 0.0, np.sign(w), -np.sign(pseudo))


class LbfgsMemory:
    """The last few steps and gradient changes, and products with the inverse Hessian that they suggest."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pairs: deque[tuple[Floats, Floats]] = deque(maxlen=size)

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, step: Floats, change: Floats) -> None:
        if float(step @ change) > 1e-12 * float(change @ change):
            self._pairs.append((step, change))

    def clear(self) -> None:
        self._pairs.clear()

    def resize(self, kept: Ints, where: Ints, n: int) -> None:
        """Follow a change of the working set: coordinates `kept` move to `where` of n; new ones have no history."""
        pairs = list(self._pairs)
        self._pairs.clear()
        for old_step, old_change in pairs:
            step, change = np.zeros(n), np.zeros(n)
            step[where], change[where] = old_step[kept], old_change[kept]
            self.add(step, change)

    def direction(self, pseudo: Floats, free: Bools | None) -> Floats:
        """Minus the approximate inverse Hessian times the pseudo-gradient, on the free coordinates if given."""
        d = -pseudo
        shares: list[tuple[Floats, Floats, float, float]] = []
        for full_step, full_change in reversed(self._pairs):
            step, change = (full_step, full_change) if free is None else (full_step * free, full_change * free)
            curvature = float(step @ change)
            if curvature > 1e-12 * float(change @ change):
                share = float(step @ d) / curvature
                shares.append((step, change, curvature, share))
                d -= share * change
        if shares:
            _, change, curvature, _ = shares[0]
            d *= curvature / float(change @ change)
        for step, change, curvature, share in reversed(shares):
            d += (share - float(change @ d) / curvature) * step
        return d if free is None else d * free
