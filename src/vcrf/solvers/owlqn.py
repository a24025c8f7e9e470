"""Quasi-Newton steps for a smooth function plus sum_j c_j |w_j|.

Far from the optimum: OWL-QN (Andrew and Gao, 2007). The L-BFGS direction of the pseudo-gradient is cut to its
components that descend, and the step is projected on the orthant of the current signs.
Near the optimum, where OWL-QN crawls because half of its direction is cut away: the secants are restricted to
the free weights, so that the direction is a quasi-Newton step of the face, and nothing needs to be cut.
"""

from __future__ import annotations

import numpy as np

from vcrf import kernels, scratch
from vcrf.types import Bools, Floats, Floats32, Ints

Pair = Floats | Floats32


def pseudo_gradient(w: Floats, g: Floats, c: Floats) -> Floats:
    """Minus the steepest descent direction of f + sum c|w|; zero exactly at a minimiser."""
    at_zero = np.sign(g) * np.maximum(np.abs(g) - c, 0.0)
    return np.where(w != 0.0, g + c * np.sign(w), at_zero)


def orthant_of(w: Floats, pseudo: Floats) -> Floats:
    """Signs inside which the next point must stay."""
    return np.where(w != 0.0, np.sign(w), -np.sign(pseudo))


class LbfgsMemory:
    """The last few steps and gradient changes, and products with the inverse Hessian that they suggest.

    `inverse` is the diagonal that they correct. Frequent and rare features differ in curvature by four orders of
    magnitude; with a diagonal that knows it, half the passes do. Pairs have 4 bytes a number: they suggest, no more.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._steps = np.zeros((size, 0), np.float32)
        self._changes = np.zeros((size, 0), np.float32)
        self._order: list[int] = []  # slots, oldest first
        self.inverse = np.zeros(0)

    def __len__(self) -> int:
        return len(self._order)

    def add(self, step: Floats, change: Floats) -> None:
        """Remember a pair, if it has positive curvature, also once it is rounded; the oldest gives way."""
        if not (is_curved(step, change) and is_curved(step.astype(np.float32), change.astype(np.float32))):
            return
        if self._steps.shape[1] != len(step):
            self._order = []
            self._steps = self._changes = np.zeros((0, 0), np.float32)  # the old ones go before the new ones come
            shape = self.size, len(step)
            self._steps, self._changes = scratch.zeros(shape, np.float32), scratch.zeros(shape, np.float32)
        is_full = len(self._order) == self.size
        slot = self._order.pop(0) if is_full else min(set(range(self.size)) - set(self._order))
        self._steps[slot], self._changes[slot] = step, change
        self._order.append(slot)

    def clear(self) -> None:
        """Forget everything."""
        self._order = []

    def resize(self, kept: Ints, where: Ints, n: int) -> None:
        """Follow a change of the working set: coordinates `kept` move to `where` of n; new ones have no history."""
        self._steps = _moved(self._steps, self._order, kept, where, n)
        self._changes = _moved(self._changes, self._order, kept, where, n)
        self._order = [slot for slot in self._order if is_curved(self._steps[slot], self._changes[slot])]

    def pairs(self) -> tuple[Floats, Floats]:
        """Steps and changes, oldest first."""
        return self._steps[self._order].astype(np.float64), self._changes[self._order].astype(np.float64)

    def direction(self, pseudo: Floats, free: Bools | None) -> Floats:
        """Minus the approximate inverse Hessian times the pseudo-gradient, on the free coordinates if given."""
        d = -pseudo
        if self._order:
            mask = np.ones(len(d), bool) if free is None else free
            inverse = self.inverse if len(self.inverse) == len(d) else np.ones(len(d))
            kernels.lbfgs.two_loop(self._steps, self._changes, np.array(self._order[::-1], np.int64), inverse, mask, d)
        return d if free is None else d * free


def is_curved(step: Pair, change: Pair) -> bool:
    """Whether a pair has positive curvature."""
    return float(step @ change) > 1e-12 * float(change @ change)


def _moved(rows: Floats32, used: list[int], kept: Ints, where: Ints, n: int) -> Floats32:
    """The rows in use with the coordinates `kept` at `where` of n."""
    out = scratch.zeros((len(rows), n), np.float32)
    if rows.shape[1]:
        for slot in used:
            out[slot, where] = rows[slot, kept]
    return out
