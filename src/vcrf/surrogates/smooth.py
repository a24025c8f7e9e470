"""A smooth objective: an outer function of a structure's sums. All that a smooth solver calls.

crf           mean of f_i,          f_i = log sum_y exp(loss(y) + w.(Psi(x_i, y) - Psi(x_i, y_i)))
exponential   log-mean of f_i                    = log(1 + mean of sum_{y != y_i} exp(loss(y) + w.delta(y)))
structboost   log-mean of log F_i,  F_i = sum_y loss(y) exp(w.delta(y))
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from vcrf.structures.structure import Ascent, FeaturePlan, PlanPotentials, Purpose, Scan, Strengths, Structure, Sums
from vcrf.surrogates.outer import Outer
from vcrf.surrogates.similar import SimilarLoss, add_between
from vcrf.types import Bools, Floats, Ints, UInts32


class Surrogate(Protocol):
    """Which objective is minimised: built for a problem once it is known which columns can carry weight."""

    def mass(self, problem: Any) -> Floats:
        """Largest |gradient| that a feature of each column can have."""

    def build(self, problem: Any, keep: Bools, threads: int = 1, lattice: str = "auto") -> SmoothObjective:
        """The objective."""


@dataclass(frozen=True, eq=False)
class Point:
    """Value and gradient at some weights of a plan; they belong to it for ever."""

    plan: FeaturePlan
    w: Floats
    value: float
    gradient: Floats
    sums: Any

    @property
    def warm(self) -> Any:
        """What a pass at weights nearby can begin from."""
        return self.sums.warm


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
        loss: Any,
        weights: Floats,
        mass: Floats,
        has_hessian: bool = True,
    ) -> None:
        self.structure, self.outer, self.loss = structure, outer, loss
        self.weights, self.mass = weights, mass
        self.has_hessian = has_hessian and structure.has_hessian
        self.n_passes = 0

    @cached_property
    def _similar(self) -> SimilarLoss:
        return SimilarLoss(self.loss)

    @property
    def keep(self) -> Bools:
        """The columns that can carry weight."""
        return self.structure.keep

    @property
    def is_convex(self) -> bool:
        """Whether F is; else there is no certificate."""
        return self.structure.is_convex

    def work(self, columns: UInts32, kinds: UInts32) -> Ints:
        """Entries that features add to each pass; 0 where they cost nothing."""
        return self.structure.work(columns, kinds)

    @property
    def hessian_in_passes(self) -> float:
        """What a Hessian costs, about."""
        return self.structure.hessian_in_passes

    def compile(self, features: Ints) -> FeaturePlan:
        """Arrays for a sorted set of features."""
        return self.structure.compile(features)

    def close(self) -> None:
        """End the threads."""
        self.structure.close()

    def at(self, plan: FeaturePlan, w: Floats, warm: Any = None) -> Point:
        """One pass: value and gradient on the plan's features; `warm` is that of a point nearby."""
        return self._point(self.structure.prepare(plan, w, self.loss, warm=warm))

    def curvature(self, point: Point, variances: Any) -> Floats:
        """A diagonal for the scale of steps; `variances` are those of the last scan, or None."""
        return self.structure.curvature(point.sums, variances)

    def scan(
        self, plan: FeaturePlan, w: Floats, limits: dict[int, Floats], may_stop: bool = False, warm: Any = None
    ) -> tuple[Point, Scan]:
        """One pass, and all candidates whose |gradient| exceeds their limit.

        limits[kind] is (n_columns,), the limit of parts of a kind with each column; inf = no candidate.
        Nothing is stored for the candidates that stay below it.
        """
        wanted = self.structure.wanted(self.mass, limits)
        point = self._point(self.structure.prepare(plan, w, self.loss, Purpose.SCAN, wanted.order, warm))
        return point, self.structure.scan(point.sums, point.gradient, wanted, may_stop)

    def hessian(
        self, plan: FeaturePlan, w: Floats, chosen: Ints, stride: int = 1, scale: float = np.inf
    ) -> Floats | None:
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

    def ascent(self, strengths: Strengths) -> Ascent | None:
        """Dual ascent; None where the structure has none, or where F is not a mean."""
        return self.structure.ascent(self.loss, self.weights, strengths) if self.outer.is_linear else None

    def _sums(self, potentials: PlanPotentials, loss: Any) -> tuple[float, Sums]:
        """One pass, and F; where the shares follow from the values, in two sweeps, values first."""
        self.n_passes += 1
        if self.outer.is_linear:
            sums = potentials.sums(loss, self.weights)
            return self.outer(sums.values, self.weights)[0], sums
        value, shares = self.outer(potentials.values(loss), self.weights)
        return value, potentials.sums(loss, shares)

    def _point(self, potentials: PlanPotentials) -> Point:
        value, sums = self._sums(potentials, self.loss)
        return Point(potentials.plan, potentials.w, value, self.structure.gradient(sums), sums)
