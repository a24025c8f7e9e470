"""Solves on the faces of a quadratic model, many from one Cholesky factor.

A face is the set of weights that are not zero. From one step to the next tens of weights enter or leave it, and a
factor of ten thousand weights takes seconds. So the factor of one face serves for those close to it: with M the
matrix on that face, U its columns of the weights that entered, S their own block, and E unit columns for those that
left,

    [ M   U   E ] [x]   [r ]
    [ U'  S   0 ] [y] = [r']    W = [U E]:   (W' M^-1 W - diag(S, 0)) [y; l] = W' M^-1 r - [r'; t],
    [ E'  0   0 ] [l]   [t ]                 x = M^-1 (r - W [y; l])

t are the moves that weights which left are to make. M^-1 W is kept: a weight costs one solve, once.
"""

from __future__ import annotations

import numpy as np

from vcrf.types import Bools, Floats, Ints

# Columns of weights that have entered or left that are kept, and of small faces this share of it; changes count twice,
# as each may bring others.
_MOST_COLUMNS, _MOST_SHARE = 1_000, 0.2
# Up to so many weights the factor is in double precision.
_MAX_DOUBLE = 14_000
# What is added to the diagonal, in thresholds: directions flatter than that are not sought. For Hessians in double
# precision, in single precision, and, at least, for factors in single precision.
DAMPING, DAMPING_SINGLE, _DAMPING_FACTOR = 1e-9, 1e-3, 1e-2


class FaceFactor:
    """A factor of hessian + damping on the weights `free`; c are the thresholds of all, the unit of the damping."""

    def __init__(self, hessian: Floats, free: Bools, c: Floats, damping: float = DAMPING) -> None:
        self.hessian, self.base = hessian, np.flatnonzero(free)
        self.type = np.dtype(np.float64 if len(self.base) <= _MAX_DOUBLE else np.float32)
        self.damping, self.factor = self._factor(c, damping)
        self.place = np.full(len(free), -1, np.int64)
        self.place[self.base] = np.arange(len(self.base))
        self.number: dict[int, int] = {}  # of the column of each weight that has entered or left
        self.columns = np.zeros((0, len(self.base)), self.type)  # rows of W'
        self.solved = np.zeros((0, len(self.base)), self.type)  # rows of (M^-1 W)'
        self.cross = np.zeros((0, 0))  # W' M^-1 W

    def _factor(self, c: Floats, damping: float) -> tuple[Floats, tuple[Floats, bool]]:
        """What is added to the diagonal, and the factor: rounding can make a flat matrix indefinite, and it grows."""
        from scipy.linalg import LinAlgError, cho_factor

        share = max(damping, _DAMPING_FACTOR) if self.type == np.float32 else damping
        curvature = self.hessian.diagonal().astype(np.float64)
        # The thresholds are the measure: where a direction has less curvature than that, a move changes the gradients
        # by little that the certificate feels. The curvature is none: that of frequent features is thousands of c.
        unit = np.where(c > 0.0, np.minimum(c, curvature), curvature)
        while True:
            matrix = self.hessian[np.ix_(self.base, self.base)].astype(self.type, copy=False)
            matrix[np.diag_indices(len(matrix))] += (share * unit[self.base]).astype(self.type)
            try:
                return share * unit, cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                if share > 10.0:
                    raise
                share *= 100.0

    def is_close(self, free: Bools) -> bool:
        """Whether a face differs from the one that was factored by few weights."""
        changes = int(np.count_nonzero(free)) + len(self.base) - 2 * int(np.count_nonzero(free[self.base]))
        return 2 * changes + len(self.number) <= min(_MOST_COLUMNS, _MOST_SHARE * len(self.base))

    def _inverse(self, target: Floats) -> Floats:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self.factor, target.astype(self.type, copy=False), check_finite=False))

    def _columns_of(self, weights: Ints) -> Ints:
        """Numbers of the columns of these weights, those that are new solved for together."""
        new = np.array([j for j in weights.tolist() if j not in self.number], np.int64)
        if len(new):
            columns = np.zeros((len(new), len(self.base)), self.type)
            for k, j in enumerate(new.tolist()):
                if self.place[j] >= 0:
                    columns[k, self.place[j]] = 1.0
                else:
                    columns[k] = self.hessian[j, self.base]
                self.number[j] = len(self.number)
            solved = self._inverse(columns.T).T
            side, corner = self.columns @ solved.T, columns @ solved.T
            self.cross = np.block([[self.cross, side], [side.T, 0.5 * (corner + corner.T)]]).astype(np.float64)
            self.columns = np.concatenate([self.columns, columns])
            self.solved = np.concatenate([self.solved, solved])
        return np.array([self.number[j] for j in weights.tolist()], np.int64)

    def solve(self, free: Bools, target: Floats, fixed: Ints, moves: Floats) -> Floats:
        """Solve (H + damping) x = target on the weights `free`, but x = moves on `fixed`, some of them; 0 elsewhere."""
        x, stays = np.zeros(len(free)), free.copy()
        x[fixed], stays[fixed] = moves, False
        entered = np.flatnonzero(stays & (self.place < 0))
        left = self.base[~stays[self.base]]
        # Weights that are fixed and not in the factored face act on the others by their columns.
        beyond = fixed[self.place[fixed] < 0]
        right = target[self.base] - self.hessian[np.ix_(self.base, beyond)] @ x[beyond]
        base = self._inverse(right).astype(np.float64)
        if len(entered) + len(left):
            which = self._columns_of(np.concatenate([entered, left]))
            matrix = self.cross[np.ix_(which, which)].copy()
            matrix[: len(entered), : len(entered)] -= self.hessian[np.ix_(entered, entered)]
            matrix[: len(entered), : len(entered)] -= np.diag(self.damping[entered])
            side = target[entered] - self.hessian[np.ix_(entered, beyond)] @ x[beyond]
            known = np.concatenate([side, x[left]])
            z = np.linalg.solve(matrix, self.columns[which] @ base - known)
            base -= z @ self.solved[which]
            x[entered] = z[: len(entered)]
            base[self.place[left]] = x[left]
        x[self.base] = base
        return x
