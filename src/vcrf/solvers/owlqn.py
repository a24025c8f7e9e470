"""OWL-QN (Andrew and Gao, 2007): L-BFGS for a smooth function plus sum_j c_j |w_j|.

Each step stays inside one orthant, in which the penalty is linear: the direction comes from the smooth
curvature and the pseudo-gradient, weights that would change sign stop at zero.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from vcrf.types import Floats


def pseudo_gradient(w: Floats, g: Floats, c: Floats) -> Floats:
    """Minus the steepest descent direction of f + sum c|w|; its norm is the KKT violation (MATH 5.3)."""
    at_zero = np.sign(g) * np.maximum(np.abs(g) - c, 0.0)
    return np.where(w != 0.0, g + c * np.sign(w), at_zero)


def orthant_of(w: Floats, pseudo: Floats) -> Floats:
    """Signs inside which the next point must stay."""
    return np.where(w != 0.0, np.sign(w), -np.sign(pseudo))


class LbfgsMemory:
    """The last few steps and gradient changes, and the two-loop product with the inverse Hessian."""

    def __init__(self, size: int = 10) -> None:
        self._pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=size)

    def add(self, step: Floats, change: Floats) -> None:
        curvature = float(step @ change)
        if curvature > 1e-12 * float(change @ change):
            self._pairs.append((step, change, curvature))

    def restrict(self, kept: np.ndarray) -> None:
        """Keep only some coordinates: the secants of a subspace are still secants."""
        pairs = [(s[kept], y[kept]) for s, y, _ in self._pairs]
        self._pairs.clear()
        for s, y in pairs:
            self.add(s, y)

    def direction(self, gradient: Floats) -> Floats:
        """Minus the approximate inverse Hessian times the gradient."""
        d = -gradient
        if not self._pairs:
            return d
        shares = []
        for s, y, curvature in reversed(self._pairs):
            share = float(s @ d) / curvature
            shares.append(share)
            d -= share * y
        s, y, curvature = self._pairs[-1]
        d *= curvature / float(y @ y)
        for (s, y, curvature), share in zip(self._pairs, reversed(shares), strict=True):
            d += (share - float(y @ d) / curvature) * s
        return d
