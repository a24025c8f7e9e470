"""The maximum surrogates in training: m3n and structsvm, whose gradients come from best label sequences.

    m3n         f_i = max(0, max_y loss(y) + w.delta(y))
    structsvm   f_i = max(0, max_y loss(y) (1 + w.delta(y)))          delta(y) = Psi(x_i, y) - Psi(x_i, y_i)

Each label sequence y gives a cut: f_i >= a + w.d with a = loss(y) and d = slope * delta(y), slope = 1 or loss(y).

The paper's first forms, with the largest term in place of the sum, are curves of a maximum over the wrong sequences:

    crf-max           f_i = log(1 + exp(b_i)),   b_i = max_{y != y_i} loss(y) + w.delta(y)
    exponential-max   f_i = exp(b_i)
    structboost-max   f_i = exp(b_i),            b_i = max_y log loss(y) + w.delta(y)

A curve is convex and increasing, so that its tangent at t = b_i(w) gives a cut too: with b_i >= a + w.delta(y),

    f_i >= curve(t) + curve'(t) (a - t) + curve'(t) w.delta(y)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from vcrf.errors import InputError
from vcrf.losses import Loss
from vcrf.losses.automaton import TINY, LossAutomaton
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

# Added to every loss where the maximum may be negative: what is found is what is worth more than 0, and a curve at
# minus this is 0 in double precision.
_SHIFT = 1000.0
# Tangents are taken no farther out: beyond, exp leaves the range of numbers.
_STEEPEST = 30.0


@dataclass(frozen=True)
class Curve:
    """A convex, increasing function of a maximum, 0 at minus infinity; `is_bounded` if its slope is at most 1."""

    value: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    is_bounded: bool


def _sigmoid(b: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -b))


_SOFTPLUS = Curve(lambda b: np.logaddexp(0.0, b), _sigmoid, is_bounded=True)
_EXP = Curve(np.exp, np.exp, is_bounded=False)
CURVES = {"crf-max": _SOFTPLUS, "structboost-max": _EXP, "exponential-max": _EXP}
KINDS = ("m3n", "structsvm", *CURVES)


@dataclass(frozen=True, eq=False)
class MaxChoice:
    """A maximum surrogate with its loss; for structsvm `valued` are automata whose last states tell the loss.

    `smooth` is crf with the same loss: at temperature T, f_T(w) = T f_{loss/T}(w/T) tends to m3n as T to 0. For the
    kinds with a curve `wrong` are automata of the wrong sequences, with the shift.
    """

    kind: str
    loss: CompiledLoss
    smooth: SmoothChoice
    valued: CompiledLoss | None = None
    wrong: CompiledLoss | None = None

    @property
    def curve(self) -> Curve | None:
        """The curve of the maximum, if it has one."""
        return CURVES.get(self.kind)

    def mass(self, problem: Problem) -> Floats:
        """Largest |subgradient| of a feature of each column: its mass, times the largest slope."""
        if self.curve is not None and not self.curve.is_bounded:
            return np.full(len(problem.columns), np.inf)
        slope = float(self.loss.largest.max(initial=0.0)) if self.kind == "structsvm" else 1.0
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
    if kind == "structsvm":
        valued = join_automata(problem, lambda y: loss.automaton(y, problem.n_labels).with_values())
        return MaxChoice(kind, compiled, smooth, valued)
    only_wrong = _of_logarithm if kind == "structboost-max" else _of_others
    wrong = join_automata(problem, lambda y: only_wrong(loss.automaton(y, problem.n_labels), y), check=False)
    return MaxChoice(kind, compiled, smooth, wrong=wrong)


def _of_others(automaton: LossAutomaton, y: Ints) -> LossAutomaton:
    """The loss of the sequences other than the truth, shifted."""
    return replace(automaton.without(y), init=automaton.init + _SHIFT)


def _of_logarithm(automaton: LossAutomaton, y: Ints) -> LossAutomaton:  # noqa: ARG001 - the truth has no loss
    """The logarithm of the loss, of the sequences that have one, shifted."""
    valued = automaton.with_values()
    with np.errstate(divide="ignore"):
        final = np.log(np.where(valued.final > TINY, valued.final, 0.0))
    return replace(valued, final=final, init=_SHIFT)


class MaxObjective:
    """Best label sequences at some weights, and the scan of all candidates at a mixture of sequences.

    Attributes
    ----------
    n_passes : passes over the data so far
    """

    def __init__(self, chain: Chain, choice: MaxChoice) -> None:
        self.chain, self.problem, self.mass = chain, chain.problem, choice.mass(chain.problem)
        self.n_passes = 0
        self._curve = choice.curve
        self._loss: MarginLoss | SlackLoss = MarginLoss.of(choice.loss if choice.wrong is None else choice.wrong)
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
        found = find_best(self.chain.prepare_dense(plan, w, no_loss, Purpose.GRADIENT, 2), self._loss, self._kappas)
        return found if self._curve is None else _on_curve(self._curve, found)

    def check_memory(self, limits: dict[int, Floats]) -> None:
        """Refuse, before any work, a problem whose scan would not fit."""
        check_memory(self.chain, self.chain.wanted(self.mass, limits))

    def scan_mixture(self, mixture: Mixture, limits: dict[int, Floats]) -> Scan:
        """All candidates whose |g| exceeds their limit, g = sum of shares * (Psi(sequence) - Psi(truth))."""
        return scan_mixture(self.chain, mixture, self.chain.wanted(self.mass, limits))


def _on_curve(curve: Curve, found: BestOutputs) -> BestOutputs:
    """Values of the curve, and the tangents there as cuts: intercepts in place of losses, and slopes."""
    is_there = found.values > 0.0
    b = np.where(is_there, found.values - _SHIFT, -np.inf)
    at = np.minimum(b, _STEEPEST)
    with np.errstate(over="ignore"):
        values, slopes = curve.value(b), curve.slope(at)
    behind = np.where(is_there, at - (found.losses - _SHIFT), 0.0)  # t - a
    return found._replace(values=values, slopes=slopes, losses=curve.value(at) - slopes * behind)
