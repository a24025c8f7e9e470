"""Quadratic models of the smooth part for Newton steps: a Hessian on some features, dense or sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Of a sparse model so many of the most curved weights are solved for directly, and more for a small gap. The others
# hardly touch each other, and coordinate descent is done with them in a few sweeps.
_DIRECT, _MORE_DIRECT = 2_000, 4_000
_SMALL_TOL = 1e-3


class QuadraticModel:
    """Hessian of the smooth part on some features, given by their numbers (sorted)."""

    n_sweeps, least_damping = 10, 1e-9

    def __init__(self, features: Ints, hessian: Floats) -> None:
        self.features, self.hessian = features, hessian

    def places(self, features: Ints) -> tuple[Bools, Ints]:
        """Which of the model's features are among those given (sorted), and where."""
        where = np.minimum(np.searchsorted(features, self.features), max(len(features) - 1, 0))
        return features[where] == self.features, where

    @property
    def curvature(self) -> Floats:
        """The diagonal."""
        return np.array(self.hessian.diagonal())

    def set_curvature(self, values: Floats) -> None:
        """Put these values on the diagonal."""
        self.hessian[np.diag_indices(len(values))] = values

    def product(self, d: Floats) -> Floats:
        """H d."""
        return np.asarray(self.hessian @ d)

    def solve(self, which: Ints, extra: Floats, target: Floats) -> Floats:
        """Solve (H + diag(extra)) x = target on the coordinates `which`."""
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(_factor(self.hessian[np.ix_(which, which)], extra), target, check_finite=False))

    def descend(self, g: Floats, w: Floats, c: Floats, tol: float, d: Floats, product: Floats) -> None:
        """Coordinate descent on g.d + d.H d/2 + sum c|w + d|, in place; product = H d."""
        from vcrf.kernels import quadratic

        quadratic.descend_dense(self.hessian, g, w, c, tol, self.n_sweeps, d, product)


class SparseModel(QuadraticModel):
    """The same for many features, as a sparse matrix: features of rare words only meet a few others.

    Entries below cut * sqrt(c_i c_j) are left out: moved by 1, a weight changes no gradient by more of its threshold.
    """

    n_sweeps = 30

    def __init__(self, features: Ints, matrix: csr_array, tol: float) -> None:
        self.features, self.matrix, self.tol = features, matrix, tol
        # Along directions that are much flatter the solution is not sought: hundreds of weights would change sign, one
        # after the other, for a decrease of the gap that does not count.
        self.least_damping = min(10.0 * tol, 1e-2)
        self.n_direct = _MORE_DIRECT if tol < _SMALL_TOL else _DIRECT
        self.last: tuple[Ints, Floats, tuple[Floats, bool]] | None = None  # coordinates, damping and their factor

    @classmethod
    def of(cls, model: QuadraticModel, c: Floats, cut: float, tol: float) -> SparseModel:
        """The sparse model of a dense one, for a relative gap of `tol`; c are the thresholds."""
        from scipy.sparse import csr_array

        from vcrf.kernels import quadratic

        ptr, index, values = quadratic.compress(model.hessian, cut, np.sqrt(c))
        return cls(model.features, csr_array((values, index, ptr), shape=model.hessian.shape), tol)

    def extended(self, features: Ints, rows: Floats, corner: Floats) -> SparseModel:
        """With a few more features: `rows` are theirs with the old ones, `corner` with each other."""
        from scipy.sparse import block_array, csr_array

        joined = np.concatenate([self.features, features])
        order = np.argsort(joined, kind="stable")
        side = csr_array(rows)
        matrix = csr_array(block_array([[self.matrix, side.T], [side, csr_array(corner)]], format="csr"))
        return SparseModel(joined[order], csr_array(matrix[order][:, order]), self.tol)

    @property
    def curvature(self) -> Floats:
        """The diagonal."""
        return np.array(self.matrix.diagonal())

    def set_curvature(self, values: Floats) -> None:
        """Put these values on the diagonal."""
        self.matrix.setdiag(values)

    def product(self, d: Floats) -> Floats:
        """H d."""
        return np.asarray(self.matrix @ d)

    def solve(self, which: Ints, extra: Floats, target: Floats) -> Floats:
        """Of the most curved among the coordinates `which`, given the others."""
        from scipy.linalg import cho_solve

        most = np.sort(np.argsort(-self.curvature[which], kind="stable")[: self.n_direct])
        direct, extra = which[most], extra[most]
        if self.last is None or not (np.array_equal(self.last[0], direct) and np.array_equal(self.last[1], extra)):
            self.last = direct, extra, _factor(self.matrix[direct][:, direct].toarray(), extra)
        x = np.zeros(len(which))
        x[most] = cho_solve(self.last[2], target[most], check_finite=False)
        return x

    def descend(self, g: Floats, w: Floats, c: Floats, tol: float, d: Floats, product: Floats) -> None:
        """As in the dense model."""
        from vcrf.kernels import quadratic

        matrix = self.matrix
        quadratic.descend_sparse(
            matrix.indptr, matrix.indices, matrix.data, self.curvature, g, w, c, tol, self.n_sweeps, d, product
        )


def _factor(matrix: Floats, extra: Floats) -> tuple[Floats, bool]:
    """Cholesky factor of matrix + diag(extra).

    Rounding, or entries left out, can make a flat matrix indefinite: what is added then grows until a factor exists.
    """
    from scipy.linalg import LinAlgError, cho_factor

    diagonal = np.diag_indices(len(matrix))
    curvature, share = matrix[diagonal].copy(), 0.0
    while True:
        damped = matrix.copy()
        damped[diagonal] = curvature * (1.0 + share) + extra
        try:
            factor: tuple[Floats, bool] = cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            if share > 1.0:
                raise
            share = max(100.0 * share, 1e-8)
        else:
            return factor
