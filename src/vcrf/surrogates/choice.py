"""Which smooth surrogate is minimised, with which loss: what the solver needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from vcrf.errors import InputError
from vcrf.losses import HammingLoss, Loss
from vcrf.problem import Candidates, Problem
from vcrf.structures.chain import Chain
from vcrf.structures.compiled_loss import compile_loss
from vcrf.structures.training_loss import TrainingLoss
from vcrf.surrogates.outer import LogMean, Mean, MeanExp, Outer
from vcrf.surrogates.smooth import SmoothObjective
from vcrf.types import Bools, Floats

# The paper's smooth surrogates as outer functions of the log of a sum; see `surrogates.smooth`.
OUTER: dict[str, Outer] = {
    "crf": Mean(),
    "structboost": LogMean(is_in_values=False),
    "exponential": LogMean(is_in_values=True),
}
SMOOTH = tuple(OUTER)
# The same without the logarithm: the paper's own objectives.
_PLAIN: dict[str, Outer] = {
    "crf": Mean(),
    "structboost": MeanExp(is_in_values=False),
    "exponential": MeanExp(is_in_values=True),
}


@dataclass(frozen=True, eq=False)
class SmoothChoice:
    """A smooth surrogate with its loss, ready to be built for a problem."""

    kind: str
    loss: TrainingLoss
    has_hessian: bool = True  # False does without Newton steps where they are to be had
    logarithm: bool = True  # False: the paper's objective itself

    @property
    def outer(self) -> Outer:
        """The outer function."""
        return (OUTER if self.logarithm else _PLAIN)[self.kind]

    def mass(self, problem: Problem) -> Floats:
        """Largest |gradient| that a feature of each column can have."""
        return self.outer.mass(problem)

    def scaled(self, factor: float) -> SmoothChoice:
        """The same with the loss times a factor."""
        return replace(self, loss=self.loss.scaled(factor))

    def build(self, problem: Problem, keep: Bools, threads: int = 1, lattice: str = "auto") -> SmoothObjective:
        """The objective, on the lattice asked for: see `structures.chain.is_dense`."""
        chain = Chain(problem, keep, threads, lattice, keeps_arcs=self.loss.automata is not None)
        # The Hessians of `surrogates.similar` are those of logarithms.
        has_hessian = self.has_hessian and (self.logarithm or self.kind == "crf")
        return SmoothObjective(chain, self.outer, self.loss, problem.weights, self.mass(problem), has_hessian)


def crf(problem: Candidates, costs: Floats | None = None) -> SmoothChoice:
    """The crf surrogate with what a wrong label costs in each sentence, (n_sentences,); None: no loss."""
    return SmoothChoice("crf", TrainingLoss(np.zeros(len(problem.weights)) if costs is None else costs))


def choose(problem: Problem, kind: str, loss: Loss | None, logarithm: bool = True) -> SmoothChoice:
    """The surrogate `kind` of a loss (None: no loss) for a problem; without logarithm the paper's own objective."""
    return replace(_choose(problem, kind, loss), logarithm=logarithm)


def _choose(problem: Problem, kind: str, loss: Loss | None) -> SmoothChoice:
    if kind not in SMOOTH:
        raise InputError(f"`surrogate` must be one of {', '.join(SMOOTH)}, got {kind!r}.")
    none = np.zeros(problem.text.n_sentences)
    if problem.is_partial and kind != "crf":
        raise InputError(f"The surrogate {kind} needs the label of every token: some are left open. Use crf.")
    if loss is None:
        if kind == "structboost":
            raise InputError(
                "structboost multiplies by the loss: without one there is nothing to minimise. Give a loss."
            )
        return SmoothChoice(kind, TrainingLoss(none))
    if type(loss) is HammingLoss and kind != "structboost":
        # No automata are needed, nor would they do where labels are open: a label that is allowed costs nothing.
        by_length = [loss.token_cost(int(n)) for n in np.diff(problem.sent_ptr)]
        return SmoothChoice(kind, TrainingLoss(np.array(by_length, np.float64)))
    compiled = compile_loss(problem, loss)
    costs = compiled.hamming_costs(problem) if kind != "structboost" else None
    if costs is not None:
        return SmoothChoice(kind, TrainingLoss(costs))
    return SmoothChoice(kind, TrainingLoss(none, compiled, picks=kind == "structboost"))
