"""The task loss as passes over the data see it: a cost of each wrong label, or an automaton of each sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.losses.automaton import LossAutomaton
from vcrf.problem import Problem
from vcrf.structures.compiled_loss import CompiledLoss
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class TrainingLoss:
    """The loss of every training sentence.

    Attributes
    ----------
    costs : (n_sentences,) what one wrong label costs, a Hamming loss; zeros with automata, or without a loss
    automata : any other loss
    picks : the sum is of loss(y) exp(score(y)), not of exp(loss(y) + score(y))
    """

    costs: Floats
    automata: CompiledLoss | None = None
    picks: bool = False

    def scaled(self, factor: float) -> TrainingLoss:
        """The loss times a factor."""
        loss = self.automata
        if loss is not None:
            cost, final, init, largest = (factor * x for x in (loss.cost, loss.final, loss.init, loss.largest))
            loss = replace(loss, cost=cost, final=final, init=init, largest=largest)
        return TrainingLoss(factor * self.costs, loss, self.picks)

    @property
    def lengths(self) -> Ints:
        """Number of labels of each sentence that has an automaton."""
        if self.automata is None:
            raise TypeError("Only a loss with automata knows the lengths of the sentences.")
        return self.automata.lengths

    def spread_evenly(self) -> TrainingLoss:
        """A Hamming loss with the same largest loss in each sentence."""
        if self.automata is None:
            return self
        return TrainingLoss(self.automata.largest / np.maximum(self.lengths, 1))

    @cached_property
    def arrays(self) -> kernels.product.LossArrays:
        """The automata for the kernels; without any, arrays of no rows."""
        loss = self.automata
        if loss is None:
            return kernels.product.no_loss()
        return kernels.product.LossArrays(
            loss.first, loss.width, loss.successor.reshape(-1), loss.cost.reshape(-1),
            self._factors(loss.cost).reshape(-1), loss.final_ptr, loss.final, self._factors(loss.final),
            self._factors(loss.init), np.zeros_like(loss.largest) if self.picks else loss.largest,
        )  # fmt: skip

    def _factors(self, cost: Floats) -> Floats:
        return cost if self.picks else np.exp(np.clip(cost, -700.0, 700.0))

    def automaton(self, problem: Problem, i: int) -> tuple[LossAutomaton, Floats]:
        """The automaton of a sentence for the log domain, and what its last states add: a picked loss by its log."""
        if self.automata is None:
            raise TypeError("A Hamming loss is in the scores of single labels: it needs no automaton.")
        automaton = self.automata.automaton(problem, i)
        if not self.picks:
            return automaton, automaton.final
        valued = automaton.with_values()
        return valued, valued.log_losses()
