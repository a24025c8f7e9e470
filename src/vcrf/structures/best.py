"""Best label sequences with a loss: the value and the slope of a maximum surrogate in each sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf import kernels
from vcrf.problem import Problem
from vcrf.structures.arcs import ArcPotentials
from vcrf.structures.compiled_loss import CompiledLoss
from vcrf.structures.dense import DensePotentials
from vcrf.structures.outputs import BestOutputs, Outputs
from vcrf.structures.sums import ChainPotentials
from vcrf.structures.training_loss import TrainingLoss
from vcrf.types import Floats

if TYPE_CHECKING:
    from vcrf.kernels.margin import Additive
    from vcrf.kernels.product import LossArrays


@dataclass(frozen=True, eq=False)
class MarginLoss:
    """Loss automata for max_y loss(y) + score(y)."""

    automata: LossArrays

    @classmethod
    def of(cls, loss: CompiledLoss) -> MarginLoss:
        """The automata that add up the loss."""
        return cls(_arrays(loss))


@dataclass(frozen=True, eq=False)
class SlackLoss:
    """Loss automata for max_y loss(y) (1 + score(y) - score(truth)).

    The last states of `valued` tell the loss; `additive` adds it up, and says where the rows of `valued` lie in it.
    """

    valued: LossArrays
    additive: Additive

    @classmethod
    def of(cls, problem: Problem, loss: CompiledLoss, valued: CompiledLoss) -> SlackLoss:
        """From the automata that add up the loss, and those that tell it."""
        automata = _arrays(loss)
        origin, spent = np.zeros(len(valued.cost), np.int64), np.zeros(len(valued.cost))
        kernels.margin.find_origins(
            problem.sent_ptr, valued.first, valued.successor.reshape(-1), automata, problem.n_labels, origin, spent
        )
        only_grows = loss.cost.min(initial=0.0) >= 0.0 and loss.final.min(initial=0.0) >= 0.0
        additive = kernels.margin.Additive(
            automata, loss.largest, origin, spent, spent if only_grows else np.zeros_like(spent)
        )
        return cls(_arrays(replace(valued, final=np.maximum(valued.final, 0.0))), additive)


def find_best(potentials: ChainPotentials, loss: MarginLoss | SlackLoss, kappas: Floats) -> BestOutputs:
    """The sequences worth the most; their values are not negative.

    `kappas` (n_sentences,) are guesses for slack rescaling, see `kernels.margin`; better ones are written to it.
    """
    chain, plan, problem = potentials.chain, potentials.plan, potentials.chain.problem
    n = problem.text.n_sentences
    best = kernels.margin.Best(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(problem.n_tokens, np.uint32))
    parts: tuple[Any, ...]
    if isinstance(potentials, DensePotentials):
        parts = plan.rows, potentials.scores, potentials.tables, potentials.corrections
        sweeps: tuple[Any, Any] = kernels.product_max.max_pass, kernels.product_max.slack_pass
    elif isinstance(potentials, ArcPotentials):
        parts = plan.rows, potentials.scores, potentials.by_arcs.graph, potentials.arcs.log, potentials.local
        sweeps = kernels.pattern_max.max_pass, kernels.pattern_max.slack_pass
    else:
        raise TypeError(f"No maximum over label sequences with {type(potentials).__name__}.")

    def block(first: int, last: int) -> None:
        given = problem.sent_ptr, problem.y, first, last, problem.n_labels
        if isinstance(loss, MarginLoss):
            sweeps[0](*given, loss.automata, *parts, best)
        else:
            sweeps[1](*given, loss.valued, loss.additive, *parts, kappas, best)

    chain.workers.run(block, chain.sentence_bounds)
    return BestOutputs(best.values, best.losses, best.slopes, Outputs(np.arange(n), problem.sent_ptr, best.labels))


def _arrays(loss: CompiledLoss) -> LossArrays:
    """The automata with their costs as they are."""
    return TrainingLoss(np.zeros(0), loss, picks=True).arrays
