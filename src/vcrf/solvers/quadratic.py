"""The quadratic model of the smooth part for Newton steps: a Hessian on some features."""

from __future__ import annotations

import numpy as np

from vcrf import kernels
from vcrf.solvers.faces import DAMPING, DAMPING_SINGLE, FaceFactor
from vcrf.types import Bools, Floats, Ints

# The most curved weights of many, which are solved for first.
_FIRST = 2_000
# In thresholds.
_MOST_DAMPING = 1e-2


class QuadraticModel:
    """Hessian of the smooth part on some features, given by their numbers (sorted)."""

    n_sweeps = 4

    def __init__(self, features: Ints, hessian: Floats) -> None:
        self.features, self.hessian = features, hessian
        self._factors: dict[int, FaceFactor] = {}
        self.damping = DAMPING if hessian.dtype == np.float64 else DAMPING_SINGLE

    def places(self, features: Ints) -> tuple[Bools, Ints]:
        """Which of the model's features are among those given (sorted), and where."""
        where = np.minimum(np.searchsorted(features, self.features), max(len(features) - 1, 0))
        return features[where] == self.features, where

    @property
    def curvature(self) -> Floats:
        """The diagonal."""
        return self.hessian.diagonal().astype(np.float64)

    def set_curvature(self, values: Floats) -> None:
        """Put these values on the diagonal."""
        values = values.astype(self.hessian.dtype)
        if not np.array_equal(values, self.hessian.diagonal()):
            self.hessian[np.diag_indices(len(values))] = values
            self._factors.clear()

    def set_damping(self, damping: float) -> None:
        """Damp direct solves by so many thresholds, within limits."""
        self.damping = min(max(damping, DAMPING), _MOST_DAMPING)
        self._factors.clear()

    def product(self, d: Floats) -> Floats:
        """H d."""
        return (self.hessian @ d.astype(self.hessian.dtype)).astype(np.float64)

    def blocks(self) -> list[Ints]:
        """Which weights to solve for directly: all, but before the first time the most curved of many.

        These are where coordinate descent crawls, and with them in place the face is nearly that of the solution.
        """
        n = len(self.features)
        if n <= 2 * _FIRST or n in self._factors:
            return [np.arange(n)]
        return [np.sort(np.argsort(-self.curvature, kind="stable")[:_FIRST]), np.arange(n)]

    def factor(self, block: Ints, free: Bools, c: Floats) -> FaceFactor:
        """A factor to solve on the weights `free` of a block with; c are the thresholds."""
        factor = self._factors.get(len(block))
        if factor is None or not factor.is_close(free):
            factor = None
            self._factors.pop(len(block), None)  # before the new one is made: there is room for one
            factor = self._factors[len(block)] = FaceFactor(self.hessian, free, c, self.damping)
        return factor

    def descend(self, g: Floats, w: Floats, c: Floats, tol: float, d: Floats, product: Floats) -> None:
        """Coordinate descent on g.d + d.H d/2 + sum c|w + d|, in place; product = H d."""
        kernels.quadratic.descend_dense(self.hessian, g, w, c, tol, self.n_sweeps, d, product)
