"""Which surrogate of graphs is minimised, with which loss."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from vcrf.errors import InputError
from vcrf.problem.graphs import GraphProblem
from vcrf.structures.graph import GraphPlan, GraphStructure
from vcrf.structures.graph_loss import GraphLoss
from vcrf.surrogates.choice import OUTER
from vcrf.surrogates.smooth import SmoothObjective
from vcrf.types import Bools, Floats, Ints


def choose_graphs(problem: GraphProblem, kind: str, loss: GraphLoss) -> GraphChoice:
    """The surrogate `kind` of a loss for a problem of graphs; what it cannot do is refused by name."""
    if kind not in OUTER:
        raise InputError(f"`surrogate` must be one of {', '.join([*OUTER, 'm3n'])} for graphs, got {kind!r}.")
    if kind == "structboost" and not np.any(loss.table):
        raise InputError("structboost multiplies by the loss: without one there is nothing to minimise. Give a loss.")
    if kind != "crf" and not problem.layout.is_exact.all():
        raise InputError(
            f"The surrogate {kind} needs exact sums, and some graph takes tables of more than "
            f"{problem.layout.schedules.max_table:,} entries. Use crf, or raise `max_table`."
        )
    if kind != "crf" and problem.is_partial:
        raise InputError(f"The surrogate {kind} needs the label of every node: some are left open. Use crf.")
    return GraphChoice(kind, replace(loss, picks=kind == "structboost"))


def choose_graph_max(problem: GraphProblem, loss: GraphLoss) -> GraphMaxChoice:
    """The surrogate m3n of a loss for a problem of graphs."""
    if not np.any(loss.table):
        raise InputError(
            "The surrogate m3n needs a loss: without one it is 0 at w = 0. Give one, `loss='hamming'` for instance."
        )
    if problem.is_partial:
        raise InputError("The surrogate m3n needs the label of every node: some are left open. Use crf.")
    return GraphMaxChoice(GraphMaxLoss(loss, _largest(problem, loss)), GraphChoice("crf", loss))


def _largest(problem: GraphProblem, loss: GraphLoss) -> Floats:
    """A bound on the loss of each graph: the sum of the largest costs of its parts."""
    starts = problem.layout.score_ptr[:-1]
    by_part = np.maximum.reduceat(loss.table, starts) if len(starts) else np.zeros(0)
    return np.asarray(np.bincount(problem.example_of, by_part, len(problem.weights)), np.float64)


@dataclass(frozen=True, eq=False)
class GraphChoice:
    """A smooth surrogate of graphs with its loss, ready to be built for a problem."""

    kind: str
    loss: GraphLoss

    def mass(self, problem: GraphProblem) -> Floats:
        """Largest |gradient| that a feature of each column can have."""
        return OUTER[self.kind].mass(problem)

    def scaled(self, factor: float) -> GraphChoice:
        """The same with the loss times a factor."""
        return replace(self, loss=self.loss.scaled(factor))

    def build(self, problem: GraphProblem, keep: Bools, threads: int = 1, lattice: str = "auto") -> SmoothObjective:  # noqa: ARG002
        """The objective."""
        structure = GraphStructure(problem, keep, threads)
        return SmoothObjective(structure, OUTER[self.kind], self.loss, problem.weights, self.mass(problem))


@dataclass(frozen=True, eq=False)
class GraphMaxLoss:
    """A loss of graphs with a bound on that of each."""

    loss: GraphLoss
    largest: Floats


@dataclass(frozen=True, eq=False)
class GraphMaxChoice:
    """m3n of graphs with its loss; `smooth` is crf with the same loss, which tends to it as temperatures fall."""

    loss: GraphMaxLoss
    smooth: GraphChoice
    kind = "m3n"

    def mass(self, problem: GraphProblem) -> Floats:
        """Largest |subgradient| of a feature of each column."""
        return problem.column_mass

    def build(self, problem: GraphProblem, keep: Bools, threads: int = 1, lattice: str = "auto") -> GraphMaxObjective:  # noqa: ARG002
        """The objective."""
        return GraphMaxObjective(GraphStructure(problem, keep, threads), self.loss.loss)


class GraphMaxObjective:
    """The value of m3n: the best assignment's loss and score, less the score of the truth.

    Attributes
    ----------
    n_passes : passes over the data so far
    """

    def __init__(self, structure: GraphStructure, loss: GraphLoss) -> None:
        self.structure, self.loss, self.n_passes = structure, loss, 0

    @property
    def keep(self) -> Bools:
        """The columns that can carry weight."""
        return self.structure.keep

    def compile(self, features: Ints) -> GraphPlan:
        """Arrays for a sorted set of features."""
        return self.structure.compile(features)

    def values(self, plan: GraphPlan, w: Floats) -> Floats:
        """f_i: on relaxed graphs the bound on the maximum that decoding finds."""
        self.n_passes += 1
        potentials = self.structure.prepare(plan, w, self.loss)
        best = self.structure.inference.best(self.loss.added_to(potentials.scores))
        return np.maximum(best.bounds - potentials.truth(), 0.0)

    def close(self) -> None:
        """End the threads."""
        self.structure.close()
