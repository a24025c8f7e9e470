"""Which smooth surrogate is minimised, with which loss: what the solver needs to know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from vcrf.errors import InputError
from vcrf.losses import HammingLoss, Loss
from vcrf.problem import Problem
from vcrf.surrogates.compiled_loss import CompiledLoss, compile_loss
from vcrf.surrogates.crf import CrfSurrogate, n_blocks
from vcrf.surrogates.effort import check_effort
from vcrf.surrogates.pattern_product import (
    PatternExponential,
    PatternExponentialProduct,
    PatternProductSurrogate,
    PatternStructBoost,
)
from vcrf.surrogates.patterns import PatternSurrogate, is_dense
from vcrf.surrogates.product import (
    ExponentialProductSurrogate,
    ExponentialSurrogate,
    ProductSurrogate,
    StructBoostSurrogate,
    largest_sentence_mass,
)
from vcrf.types import Bools, Floats

SMOOTH = ("crf", "structboost", "exponential")


@dataclass(frozen=True, eq=False)
class SmoothChoice:
    """A smooth surrogate with its loss, ready to be built for a problem.

    `loss` is None where the loss is Hamming, or none: the plain lattice with costs does then.
    """

    kind: str
    loss: CompiledLoss | None
    costs: Floats
    has_hessian: bool = True  # False does without Newton steps where they are to be had

    def column_mass(self, problem: Problem) -> Floats:
        """Largest |gradient| that a feature of each column can have."""
        return problem.column_mass if self.kind == "crf" else largest_sentence_mass(problem)

    def scaled(self, factor: float) -> SmoothChoice:
        """The same with the loss times a factor."""
        loss = self.loss
        if loss is not None:
            cost, final, init, largest = (factor * x for x in (loss.cost, loss.final, loss.init, loss.largest))
            loss = replace(loss, cost=cost, final=final, init=init, largest=largest)
        return replace(self, loss=loss, costs=factor * self.costs)

    def build(self, problem: Problem, keep: Bools, threads: int, lattice: str = "auto") -> CrfSurrogate:
        """The surrogate, on the lattice asked for: see `is_dense`."""
        dense, patterns = _CLASSES[self.kind, self.loss is None]
        given = self.costs if self.loss is None else self.loss
        surrogate: CrfSurrogate
        is_on_dense = is_dense(problem, lattice, keeps_arcs=self.loss is not None)
        check_effort(problem, keep, threads, n_blocks(problem), is_on_dense)
        if is_on_dense:
            surrogate = dense(problem, keep, given, threads)
        else:
            surrogate = patterns(problem, keep, given, threads, is_forced=lattice == "patterns")
        surrogate.column_mass = self.column_mass(problem)
        surrogate.has_hessian = surrogate.has_hessian and self.has_hessian
        return surrogate


# By surrogate, and whether the loss is Hamming or none: on the dense lattice, and on the automaton.
_CLASSES: dict[tuple[str, bool], tuple[Callable[..., CrfSurrogate], Callable[..., CrfSurrogate]]] = {
    ("crf", True): (CrfSurrogate, PatternSurrogate),
    ("crf", False): (ProductSurrogate, PatternProductSurrogate),
    ("exponential", True): (ExponentialSurrogate, PatternExponential),
    ("exponential", False): (ExponentialProductSurrogate, PatternExponentialProduct),
    ("structboost", False): (StructBoostSurrogate, PatternStructBoost),
}


def choose(problem: Problem, kind: str, loss: Loss | None) -> SmoothChoice:
    """The surrogate `kind` of a loss (None: no loss) for a problem."""
    if kind not in SMOOTH:
        raise InputError(f"surrogate must be one of {', '.join(SMOOTH)}, got {kind!r}.")
    none = np.zeros(problem.text.n_sentences)
    if problem.is_partial and kind != "crf":
        raise InputError(f"The surrogate {kind} needs the label of every token: some are left open. Use crf.")
    if loss is None:
        if kind == "structboost":
            raise InputError(
                "structboost multiplies by the loss: without one there is nothing to minimise. Give a loss."
            )
        return SmoothChoice(kind, None, none)
    if type(loss) is HammingLoss and kind != "structboost":
        # No automata are needed, nor would they do where labels are open: a label that is allowed costs nothing.
        return SmoothChoice(kind, None, np.array([loss.token_cost(int(n)) for n in np.diff(problem.sent_ptr)]))
    compiled = compile_loss(problem, loss)
    costs = compiled.hamming_costs(problem) if kind != "structboost" else None
    if costs is not None:
        return SmoothChoice(kind, None, costs)
    return SmoothChoice(kind, compiled, none)
