"""Margin losses of graphs, by decoding with the loss.

    additive   mean of min(M, max(0, max_{y' != y} L(y', y) + tau - (h(x, y) - h(x, y')) / rho))

On a relaxed graph the maximum is replaced by its bound, and the margin loss by a larger one: bounds still hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vcrf.complexity.margins import check_rho, check_tau
from vcrf.graphs.inference import GraphInference
from vcrf.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class GraphMargins:
    """Margin losses of a sample of graphs.

    Attributes
    ----------
    infer : inference on the graphs
    scores : h of every part
    y : the true values
    loss : what each assignment of each part costs, in the layout of the scores
    loss_bound : M, no loss is larger
    """

    infer: GraphInference
    scores: Floats
    y: Ints
    loss: Floats
    loss_bound: float

    @property
    def n_sentences(self) -> int:
        """Number of graphs."""
        return self.infer.layout.n_examples

    @cached_property
    def risk(self) -> float:
        """Mean loss of the predicted labels."""
        found = self.infer.best(self.scores).y
        return float(self.infer.score(self.loss, found).mean())

    def additive(self, rho: float, tau: float = 0.0) -> float:
        """The additive margin loss at margin rho."""
        check_rho(rho)
        check_tau(tau)
        scores = self.loss + self.scores / rho
        truth = self.infer.score(self.scores, self.y) / rho
        leads = self._rivals(scores) - truth
        return float(np.clip(leads + tau, 0.0, self.loss_bound).mean())

    def multiplicative(self, rho: float, tau: float = 0.0) -> float:
        """A bound on the multiplicative margin loss: M where the loss of some rival has a positive factor, else 0."""
        check_rho(rho)
        check_tau(tau)
        leads = self._plain_leads / rho
        bound = self.loss_bound
        return float(np.where(1.0 + tau + leads > 0.0, bound, 0.0).mean())

    @cached_property
    def _plain_leads(self) -> Floats:
        return self._rivals(self.scores) - self.infer.score(self.scores, self.y)

    def _rivals(self, scores: Floats) -> Floats:
        """The best score of all assignments but the true one; -inf where there is no other."""
        layout, best = self.infer.layout, self.infer.best(scores)
        out = best.bounds.copy()
        is_true = np.maximum.reduceat(best.y != self.y, layout.variable_ptr[:-1]) == 0
        which = np.flatnonzero(is_true & layout.is_exact).tolist()
        out[which] = self.infer.second_best(scores, best.y, which)
        return out
