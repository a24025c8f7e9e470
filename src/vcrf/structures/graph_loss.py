"""The task loss of graphs: a cost of each assignment of each part, 0 at the truth. It goes into the scores."""

from __future__ import annotations

from dataclasses import dataclass

from vcrf.types import Floats


@dataclass(frozen=True, eq=False)
class GraphLoss:
    """The loss of every training graph.

    Attributes
    ----------
    table : what each assignment of each part costs, in the layout of the scores; empty without a loss
    picks : the sum is of loss(y) exp(score(y)), not of exp(loss(y) + score(y))
    """

    table: Floats
    picks: bool = False
    automata = None

    def scaled(self, factor: float) -> GraphLoss:
        """The loss times a factor."""
        return GraphLoss(factor * self.table, self.picks)

    def added_to(self, scores: Floats) -> Floats:
        """Scores with the loss."""
        return scores + self.table if len(self.table) and not self.picks else scores
