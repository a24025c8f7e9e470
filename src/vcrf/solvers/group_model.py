"""The quadratic model of a smooth function with the group norm, and its minimiser.

    q(d) = g.d + d'B d / 2 + sum_G c_G ||w_G + d_G||

B is the BFGS matrix of the last steps in its compact form (Byrd, Nocedal and Schnabel, 1994), a diagonal less a product
of low rank: B = D - U K U'. Minimising q takes no pass over the data. Coordinate descent over the groups finds those
that are zero; on the others q is smooth, with the curvature c_G / ||u|| (I - uu' / ||u||^2) of the norm at u = w + d,
and one Newton step there costs products with U.
"""

from __future__ import annotations

import numpy as np

from vcrf import kernels
from vcrf.types import Bools, Floats, Ints

# How coordinate descent and Newton steps alternate.
_SWEEPS = 3
_ROUNDS = 12
# Pairs have 4 bytes a number: B and its diagonal differ by less than this share of d'Dd where no digit of d'Bd is left.
_DIGITS = 1e-9


class Groups:
    """Groups of features that lie next to each other, with their strengths."""

    def __init__(self, sizes: Ints, strengths: Floats) -> None:
        self.first = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        self.of = np.repeat(np.arange(len(sizes)), sizes)
        self.strengths = strengths

    def __len__(self) -> int:
        return len(self.strengths)

    def sums(self, x: Floats) -> Floats:
        """Sum of each group."""
        return np.asarray(np.bincount(self.of, x, len(self)), np.float64)

    def norms(self, x: Floats) -> Floats:
        """Norm of each group."""
        return np.sqrt(self.sums(x * x))

    def penalty(self, w: Floats) -> float:
        """Sum of the strengths times the norms."""
        return float(self.strengths @ self.norms(w))


class QuasiNewtonModel:
    """B from pairs of steps and changes of the gradient, oldest first (each (m, n)), and a positive diagonal."""

    def __init__(self, groups: Groups, diagonal: Floats, steps: Floats, changes: Floats) -> None:
        self.groups = groups
        m = len(steps)
        if m == 0:
            self.diagonal, self.middle = diagonal, np.zeros((0, 0))
            self.left = self.right = np.zeros((len(diagonal), 0))
            return
        products = steps @ changes.T
        # The scale at which the diagonal explains the newest change.
        newest = changes[-1]
        self.diagonal = diagonal * (float(newest @ (newest / diagonal)) / products[-1, -1])
        scaled = steps * self.diagonal
        below = np.tril(products, -1)
        self.middle = np.block([[scaled @ steps.T, below], [below.T, -np.diag(np.diag(products))]])
        self.right = np.ascontiguousarray(np.concatenate([scaled, changes]).T)
        self.left = self.right @ np.linalg.inv(self.middle)

    def direction(self, g: Floats, w: Floats, enough: float = 0.1) -> Floats | None:
        """Minimiser of q, until a round brings less than the share `enough` of the whole decrease; None if q has none.

        On paper B is positive definite. Where old pairs contradict each other by their rounding it is not, and q falls
        for ever.
        """
        groups = self.groups
        d, product = np.zeros(len(w)), np.zeros(self.left.shape[1])
        largest = np.zeros(len(groups))
        np.maximum.at(largest, groups.of, self.diagonal - np.einsum("ij,ij->i", self.left, self.right))
        bounds = np.maximum(largest, 1e-12 * float(self.diagonal.max(initial=0.0)))
        first = value = self.value(g, w, d)
        for _ in range(_ROUNDS):
            for _ in range(_SWEEPS):
                kernels.group_model.sweep(
                    groups.first, groups.strengths, g, w, self.diagonal, self.left, self.right, bounds, d, product
                )
            d = self._improve_on_face(g, w, d)
            if not self._is_curved(d):
                return None
            product = self.right.T @ d
            before, value = value, self.value(g, w, d)
            if before - value <= enough * (first - value):
                break
        return d

    def value(self, g: Floats, w: Floats, d: Floats) -> float:
        """q(d)."""
        return float(g @ d) + 0.5 * float(d @ self.times(d)) + self.groups.penalty(w + d)

    def _is_curved(self, d: Floats) -> bool:
        return bool(d @ self.times(d) >= _DIGITS * (d @ (self.diagonal * d)))

    def times(self, d: Floats) -> Floats:
        """B d."""
        return np.asarray(self.diagonal * d - self.left @ (self.right.T @ d))

    def _improve_on_face(self, g: Floats, w: Floats, d: Floats) -> Floats:
        """Towards the minimiser of q with the same groups in use; groups that would turn round become zero."""
        groups, u = self.groups, w + d
        norms = groups.norms(u)
        used = norms[groups.of] > 0.0
        if not np.any(used):
            return d
        inward = np.divide(groups.strengths, norms, out=np.zeros(len(norms)), where=norms > 0.0)[groups.of]
        residual = np.where(used, g + self.times(d) + inward * u, 0.0)
        move = np.zeros(len(u))
        move[used] = -self._solve(residual, inward, u / np.maximum(norms[groups.of], 1e-300), used)
        value, step = self.value(g, w, d), 1.0
        while step > 1e-2:
            target = u + step * move
            target[(groups.sums(target * u) <= 0.0)[groups.of]] = 0.0
            if self.value(g, w, target - w) < value:
                return target - w
            step *= 0.5
        return d

    def _solve(self, residual: Floats, inward: Floats, unit: Floats, used: Bools) -> Floats:
        """(B + curvature of the norms)^-1 residual on the features in use.

        Without U K U' a group's block is E - inward unit unit', E = D + inward: Sherman and Morrison's formula inverts
        it. U K U' comes in by Woodbury's.
        """
        groups = self.groups
        large = self.diagonal + inward
        shrunk = unit / large
        share = np.divide(inward, np.maximum(1.0 - inward * groups.sums(unit * shrunk)[groups.of], 1e-14))
        x = (residual + share * groups.sums(shrunk * residual)[groups.of] * unit)[used] / large[used]
        if not len(self.middle):
            return np.asarray(x)
        right, of = self.right[used], groups.of[used]
        columns = right / large[used, None]
        starts = np.flatnonzero(np.concatenate([[True], of[1:] != of[:-1]]))
        along = np.add.reduceat(shrunk[used, None] * right, starts)
        columns += (share * shrunk)[used, None] * np.repeat(along, np.diff(np.append(starts, len(of))), axis=0)
        inner = self.middle - right.T @ columns
        return np.asarray(x + columns @ np.linalg.solve(inner, right.T @ x))
