"""The seam: what a structure is for objectives and solvers. A chain of labels is one; any factor graph may be."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np

from vcrf.types import Bools, Floats, Ints, UInts32


class Purpose(Enum):
    """What sums are for: their gradient, a scan of all candidates, or a Hessian."""

    GRADIENT = "gradient"
    SCAN = "scan"
    HESSIAN = "hessian"


class FeaturePlan(Protocol):
    """A sorted set of features, compiled: what one pass over the data reads."""

    @property
    def features(self) -> Ints:
        """Feature numbers."""

    @property
    def order(self) -> int:
        """The largest kind of parts in it, 1 at the least."""

    @property
    def work(self) -> int:
        """Entries of features that cost work at each of their instances."""

    def __len__(self) -> int: ...


class Sums(Protocol):
    """What one pass over the data finds: it belongs to its weights for ever."""

    @property
    def weights(self) -> Floats:
        """Of each example in the gradient."""

    @property
    def values(self) -> Floats:
        """Of each example: the log of the sum over all outputs, less the score of the truth."""

    def wrong_labels(self) -> Floats:
        """Mean number of wrong labels of each example."""

    @property
    def warm(self) -> Any:
        """What a pass at weights nearby can begin from; None if nothing."""


class PlanPotentials(Protocol):
    """A plan at some weights: all that a pass reads."""

    @property
    def plan(self) -> Any: ...
    @property
    def w(self) -> Floats: ...

    def values(self, loss: Any) -> Floats:
        """The log of the sum of each example, less the score of the truth."""

    def sums(self, loss: Any, weights: Floats) -> Any:
        """One pass, with so much weight on each example."""


class Scan(NamedTuple):
    """Candidates whose |gradient| exceeds their limit: feature numbers (sorted) and gradients.

    A scan that is not complete has left out larger parts: it finds violators, and certifies nothing.
    `norms`, where there are any, bound the norm of all gradients of each column (and kind) that can exceed a limit; of
    kind 1 it is inf where one exceeds its limit, and else 0. `variances` is what the structure
    remembers of it for the curvatures of later passes. `intercept`, of a relaxed structure: the gradients are then the
    slopes g of an affine function a + g.w that lies below F, and it is a; None: they are those of F itself.
    """

    features: Ints
    gradients: Floats
    is_complete: bool = True
    norms: dict[int, Floats] | None = None
    variances: Any = None
    intercept: float | None = None


class Wanted(NamedTuple):
    """What a scan looks at.

    limits[kind] is (n_columns,), the limit of parts of a kind with each column; inf = no candidate. mass[column] is the
    largest |gradient| that its features can have; columns[kind] are those that can exceed their limit. Kinds beyond
    `longest` are of parts that are no larger than `beyond`, the largest of those that are looked at.
    """

    limits: dict[int, Floats]
    mass: Floats
    columns: dict[int, Ints]
    longest: int = 1 << 30
    beyond: int = 1

    @property
    def order(self) -> int:
        """The largest kind that is looked at, 1 at the least."""
        return max([self.beyond, *(k for k, found in self.columns.items() if len(found) and k <= self.longest)])


def wanted(keep: Bools, mass: Floats, limits: dict[int, Floats]) -> Wanted:
    """The columns that a scan with these limits has to look at."""
    return Wanted(limits, mass, {k: np.flatnonzero(keep & (mass > limit)) for k, limit in limits.items()})


class Strengths(NamedTuple):
    """A penalty with an l2 part, as dual ascent sees it.

    groups[kind] is (n_columns,), the group of parts of a kind with each column, and limits[kind] their thresholds; the
    members of group g have l1[ptr[g] : ptr[g + 1]] and l2 likewise.
    """

    groups: dict[int, Ints]
    limits: dict[int, Floats]
    ptr: Ints
    l1: Floats
    l2: Floats


class Ascent(Protocol):
    """Dual ascent over examples: a distribution over the outputs of each, and weights that follow from them."""

    @property
    def left(self) -> Floats:
        """How far apart the last visit to each example found its two posteriors, (n_examples,); inf before."""

    def visit(self, order: Ints) -> None:
        """Visit examples, one after another."""

    def weights(self) -> tuple[Ints, Floats]:
        """Features, sorted, and their weights."""


class Structure(Protocol):
    """What is summed over: a chain of labels, or any other structure. It keeps nothing between two calls."""

    keep: Bools

    @property
    def is_convex(self) -> bool:
        """Whether the log of a sum is convex in the weights."""

    def compile(self, features: Ints) -> FeaturePlan:
        """Arrays for a sorted set of features."""

    def work(self, columns: UInts32, kinds: UInts32) -> Ints:
        """Entries that features add to each pass; 0 where they cost nothing."""

    def prepare(
        self,
        plan: Any,
        w: Floats,
        loss: Any,
        purpose: Purpose = Purpose.GRADIENT,
        order: int = 1,
        warm: Any = None,
    ) -> PlanPotentials:
        """The plan at the weights; its `values` and `sums` are passes over the data, from `warm` of a point nearby."""

    def gradient(self, sums: Any) -> Floats:
        """Gradient of sum_i weight_i value_i on the plan's features."""

    def curvature(self, sums: Any, variances: Any) -> Floats:
        """A diagonal for the scale of steps; `variances` are those of the last scan, or None."""

    def wanted(self, mass: Floats, limits: dict[int, Floats]) -> Wanted:
        """What a scan with these limits looks at."""

    def scan(self, sums: Any, gradient: Floats, wanted: Wanted, may_stop: bool = False) -> Scan:
        """All candidates whose |gradient| exceeds their limit."""

    @property
    def has_hessian(self) -> bool:
        """Whether there is a Hessian."""

    @property
    def hessian_in_passes(self) -> float:
        """What a Hessian costs, about."""

    def hessian(self, sums: Any, chosen: Ints, stride: int = 1, scale: float = np.inf) -> Floats:
        """Weighted sum of the covariances of the chosen features."""

    def sentence_gradients(self, sums: Any, chosen: Ints) -> Iterator[tuple[Floats, Floats]]:
        """Weights of the examples and their weighted gradients, some at a time."""

    def ascent(self, loss: Any, weights: Floats, strengths: Strengths) -> Ascent | None:
        """Dual ascent for the mean of the values, so much weight on each example; None if there is none."""

    def close(self) -> None:
        """End the threads."""
