"""The maximum surrogates in training: m3n and structsvm, whose gradients come from best label sequences.

    m3n         f_i = max(0, max_y loss(y) + w.delta(y))
    structsvm   f_i = max(0, max_y loss(y) (1 + w.delta(y)))          delta(y) = Psi(x_i, y) - Psi(x_i, y_i)

Each label sequence y gives a cut: f_i >= a + w.d with a = loss(y) and d = slope * delta(y), slope = 1 or loss(y).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vcrf.errors import InputError
from vcrf.losses import Loss
from vcrf.problem import Problem
from vcrf.structures.best import MarginLoss, SlackLoss, find_best
from vcrf.structures.chain import Chain
from vcrf.structures.compiled_loss import CompiledLoss, compile_loss, join_automata
from vcrf.structures.mixture import check_memory, scan_mixture
from vcrf.structures.output_rows import OutputRows
from vcrf.structures.outputs import BestOutputs, Mixture, Outputs
from vcrf.structures.plan import ChainPlan
from vcrf.structures.structure import Purpose, Scan
from vcrf.structures.training_loss import TrainingLoss
from vcrf.surrogates.choice import SmoothChoice, choose
from vcrf.types import Bools, Floats, Ints

KINDS = ("m3n", "structsvm")


@dataclass(frozen=True, eq=False)
class MaxChoice:
    """A maximum surrogate with its loss; for structsvm `valued` are automata whose last states tell the loss.

    `smooth` is crf with the same loss: at temperature T, f_T(w) = T f_{loss/T}(w/T) tends to m3n as T to 0.
    """

    kind: str
    loss: CompiledLoss
    smooth: SmoothChoice
    valued: CompiledLoss | None = None

    def mass(self, problem: Problem) -> Floats:
        """Largest |subgradient| of a feature of each column: its mass, times the largest slope."""
        slope = 1.0 if self.kind == "m3n" else float(self.loss.largest.max(initial=0.0))
        return problem.column_mass * slope

    def build(self, problem: Problem, keep: Bools, threads: int = 1, lattice: str = "auto") -> MaxObjective:
        """The objective, on the lattice asked for: see `structures.chain.is_dense`."""
        return MaxObjective(Chain(problem, keep, threads, lattice, keeps_arcs=True), self)


def choose_max(problem: Problem, kind: str, loss: Loss | None) -> MaxChoice:
    """The surrogate `kind` of a loss for a problem."""
    if kind not in KINDS:
        raise InputError(f"`surrogate` must be one of {', '.join(KINDS)}, got {kind!r}.")
    if loss is None:
        raise InputError(
            f"The surrogate {kind} needs a loss: without one it is 0 at w = 0. Give one, `loss='hamming'` for instance."
        )
    smooth = choose(problem, "crf", loss)
    compiled = compile_loss(problem, loss)
    if kind == "m3n":
        return MaxChoice(kind, compiled, smooth)
    valued = join_automata(problem, lambda y: loss.automaton(y, problem.n_labels).with_values())
    return MaxChoice(kind, compiled, smooth, valued)


class MaxObjective:
    """Best label sequences at some weights, and the scan of all candidates at a mixture of sequences.

    Attributes
    ----------
    n_passes : passes over the data so far
    """

    def __init__(self, chain: Chain, choice: MaxChoice) -> None:
        self.chain, self.problem, self.mass = chain, chain.problem, choice.mass(chain.problem)
        self.n_passes = 0
        self._loss: MarginLoss | SlackLoss = MarginLoss.of(choice.loss)
        if choice.valued is not None:
            self._loss = SlackLoss.of(chain.problem, choice.loss, choice.valued)
        # For slack rescaling: a guess for each sentence, see `kernels.margin`; at w = 0 it is right.
        self._kappas = 1.0 / np.maximum(choice.loss.largest, 1e-300)

    @property
    def keep(self) -> Bools:
        """The columns that can carry weight."""
        return self.chain.keep

    def compile(self, features: Ints) -> ChainPlan:
        """Arrays for a sorted set of features."""
        return self.chain.compile_dense(features)

    def close(self) -> None:
        """End the threads."""
        self.chain.close()

    @property
    def truth(self) -> Outputs:
        """The true outputs."""
        return Outputs(np.arange(len(self.problem.weights)), self.problem.sent_ptr, self.problem.y)

    def rows(self, plan: ChainPlan) -> OutputRows:
        """What the features of a plan are in outputs, beside the truth."""
        return OutputRows(self.problem, plan)

    def find_best(self, plan: ChainPlan, w: Floats) -> BestOutputs:
        """The sequences worth the most at w; their values are f_i."""
        self.n_passes += 1
        no_loss = TrainingLoss(np.zeros(self.problem.text.n_sentences))
        return find_best(self.chain.prepare_dense(plan, w, no_loss, Purpose.GRADIENT, 2), self._loss, self._kappas)

    def check_memory(self, limits: dict[int, Floats]) -> None:
        """Refuse, before any work, a problem whose scan would not fit."""
        check_memory(self.chain, self.chain.wanted(self.mass, limits))

    def scan_mixture(self, mixture: Mixture, limits: dict[int, Floats]) -> Scan:
        """All candidates whose |g| exceeds their limit, g = sum of shares * (Psi(sequence) - Psi(truth))."""
        return scan_mixture(self.chain, mixture, self.chain.wanted(self.mass, limits))
