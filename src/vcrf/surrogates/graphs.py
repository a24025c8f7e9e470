"""Which surrogate of graphs is minimised, with which loss."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vcrf.errors import InputError
from vcrf.problem.graphs import GraphProblem
from vcrf.structures.graph import GraphStructure
from vcrf.structures.graph_loss import GraphLoss
from vcrf.surrogates.choice import OUTER
from vcrf.surrogates.smooth import SmoothObjective
from vcrf.types import Bools, Floats


def choose_graphs(problem: GraphProblem, kind: str, loss: GraphLoss) -> GraphChoice:
    """The surrogate `kind` of a loss for a problem of graphs; what it cannot do is refused by name."""
    if kind not in OUTER:
        raise InputError(f"`surrogate` must be one of {', '.join(OUTER)} for graphs, got {kind!r}.")
    if kind != "crf" and not problem.layout.is_exact.all():
        raise InputError(
            f"The surrogate {kind} needs exact sums, and some graph takes tables of more than "
            f"{problem.layout.schedules.max_table:,} entries. Use crf, or raise `max_table`."
        )
    if kind != "crf" and problem.is_partial:
        raise InputError(f"The surrogate {kind} needs the label of every node: some are left open. Use crf.")
    return GraphChoice(kind, loss)


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
