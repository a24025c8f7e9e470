"""A smooth objective: an outer function of a structure's sums. All that a smooth solver calls.

crf           mean of f_i,          f_i = log sum_y exp(loss(y) + w.(Psi(x_i, y) - Psi(x_i, y_i)))
exponential   log-mean of f_i                    = log(1 + mean of sum_{y != y_i} exp(loss(y) + w.delta(y)))
structboost   log-mean of log F_i,  F_i = sum_y loss(y) exp(w.delta(y))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from vcrf.structures.chain import Purpose
from vcrf.structures.plan import Plan
from vcrf.structures.scan import Scan, Wanted
from vcrf.structures.sums import Potentials, Sums, Variances
from vcrf.structures.training_loss import TrainingLoss
from vcrf.surrogates.outer import Outer
from vcrf.surrogates.similar import SimilarLoss, add_between
from vcrf.types import Bools, Floats, Ints


class Structure(Protocol):
    """What is summed over: a chain of labels, or any other structure. It keeps nothing between two calls."""

    keep: Bools

    def compile(self, features: Ints) -> Plan:
        """Arrays for a sorted set of features."""

    def prepare(
        self, plan: Plan, w: Floats, loss: TrainingLoss, purpose: Purpose = Purpose.GRADIENT, order: int = 1
    ) -> Potentials:
        """The plan at the weights; its `values` and `sums` are passes over the data."""

    def gradient(self, sums: Sums) -> Floats:
        """Gradient of sum_i weight_i value_i on the plan's features."""

    def curvature(self, sums: Sums, variances: Variances) -> Floats:
        """A diagonal for the scale of steps."""

    def wanted(self, mass: Floats, limits: dict[int, Floats]) -> Wanted:
        """What a scan with these limits looks at."""

    def scan(self, sums: Sums, gradient: Floats, wanted: Wanted, may_stop: bool = False) -> Scan:
        """All candidates whose |gradient| exceeds their limit."""

    @property
    def has_hessian(self) -> bool:
        """Whether there is a Hessian."""

    @property
    def hessian_in_passes(self) -> float:
        """What a Hessian costs, about."""

    def hessian(self, sums: Sums, chosen: Ints, stride: int = 1, scale: float = np.inf) -> Floats:
        """Weighted sum of the covariances of the chosen features."""

    def sentence_gradients(self, sums: Sums, chosen: Ints) -> Iterator[tuple[Floats, Floats]]:
        """Weights of the examples and their weighted gradients, some at a time."""

    def close(self) -> None:
        """End the threads."""


@dataclass(frozen=True, eq=False)
class Point:
    """Value and gradient at some weights of a plan; they belong to it for ever."""

    plan: Plan
    w: Floats
    value: float
    gradient: Floats
    sums: Sums


class SmoothObjective:
    """F(w), its gradient, the scan of all candidates and Newton's Hessian.

    Parameters
    ----------
    structure, outer, loss
    weights : (n_examples,) of each example
    mass : (n_columns,) largest |gradient| that a feature of each column can have
    has_hessian : False does without Newton steps where they are to be had

    Attributes
    ----------
    n_passes : passes over the data so far
    """

    def __init__(
        self,
        structure: Structure,
        outer: Outer,
        loss: TrainingLoss,
        weights: Floats,
        mass: Floats,
        has_hessian: bool = True,
    ) -> None:
        self.structure, self.outer, self.loss = structure, outer, loss
        self.weights, self.mass = weights, mass
        self.has_hessian = has_hessian and structure.has_hessian
        self.n_passes = 0
        self._similar = SimilarLoss(loss)

    @property
    def keep(self) -> Bools:
        """The columns that can carry weight."""
        return self.structure.keep

    @property
    def hessian_in_passes(self) -> float:
        """What a Hessian costs, about."""
        return self.structure.hessian_in_passes

    def compile(self, features: Ints) -> Plan:
        """Arrays for a sorted set of features."""
        return self.structure.compile(features)

    def close(self) -> None:
        """End the threads."""
        self.structure.close()

    def at(self, plan: Plan, w: Floats) -> Point:
        """One pass: value and gradient on the plan's features."""
        return self._point(self.structure.prepare(plan, w, self.loss))

    def curvature(self, point: Point, variances: Variances) -> Floats:
        """A diagonal for the scale of steps; `variances` are those of the last scan."""
        return self.structure.curvature(point.sums, variances)

    def scan(self, plan: Plan, w: Floats, limits: dict[int, Floats], may_stop: bool = False) -> tuple[Point, Scan]:
        """One pass, and all candidates whose |gradient| exceeds their limit.

        limits[kind] is (n_columns,), the limit of parts of a kind with each column; inf = no candidate.
        Nothing is stored for the candidates that stay below it.
        """
        wanted = self.structure.wanted(self.mass, limits)
        point = self._point(self.structure.prepare(plan, w, self.loss, Purpose.SCAN, wanted.order))
        return point, self.structure.scan(point.sums, point.gradient, wanted, may_stop)

    def hessian(self, plan: Plan, w: Floats, chosen: Ints, stride: int = 1, scale: float = np.inf) -> Floats | None:
        """Hessian at w on the chosen features (indices into the plan), from one of `stride` examples; None if none.

        Exact with stride 1, without a loss automaton, on the dense lattice; else that of a similar objective. Newton
        steps are then quasi-Newton steps: they are searched along, and certified, with the objective itself.
        """
        if not self.has_hessian:
            return None
        if self.outer.is_linear:
            loss = self._similar.even
            _, sums = self._sums(self.structure.prepare(plan, w, loss, Purpose.HESSIAN), loss)
            return self.structure.hessian(sums, chosen, stride, scale)
        if self.loss.automata is None:
            _, sums = self._sums(self.structure.prepare(plan, w, self.loss, Purpose.HESSIAN), self.loss)
        else:
            _, here = self._sums(self.structure.prepare(plan, w, self.loss, Purpose.GRADIENT, 2), self.loss)
            sums, n_passes = self._similar.sums(self.structure, plan, w, self.weights, here)
            self.n_passes += n_passes
        out = self.structure.hessian(sums, chosen, stride, scale)
        add_between(out, self.structure.sentence_gradients(sums, chosen))
        return out

    def _sums(self, potentials: Potentials, loss: TrainingLoss) -> tuple[float, Sums]:
        """One pass, and F; where the shares follow from the values, in two sweeps, values first."""
        self.n_passes += 1
        if self.outer.is_linear:
            sums = potentials.sums(loss, self.weights)
            return self.outer(sums.values, self.weights)[0], sums
        value, shares = self.outer(potentials.values(loss), self.weights)
        return value, potentials.sums(loss, shares)

    def _point(self, potentials: Potentials) -> Point:
        value, sums = self._sums(potentials, self.loss)
        return Point(potentials.plan, potentials.w, value, self.structure.gradient(sums), sums)
