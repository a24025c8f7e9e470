"""Gradient descent and stochastic gradient descent as the paper's appendix has them: for study, not for use.

    sgd   for each sentence in random order:  w <- step(w, grad f_i)      gd   once a pass:  w <- step(w, grad F)

The penalty of a step is kappa c_j |w_j|; how it is taken is the rule (`kernels.sgd`): the plain subgradient, FOBOS
(Duchi and Singer, 2009), or Tsuruoka's cumulative penalty (2009). With kappa = 1 a step is one of the objective F +
sum_j c_j |w_j|. The paper writes F_i with its 1/m and adds the whole penalty to each step; after division of the step
length by m that is kappa = m, a penalty m times too strong. With 1/m it is spread over the sentences twice.

Steps do not wait for a certificate. Where the run stops, the gradient of all candidates gives the same lower bound as
in `solvers.certificate`, so that the result says how far from the optimum it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vcrf import kernels
from vcrf.errors import BudgetError, InputError
from vcrf.penalties import BoundPenalty, FamilyPenalty, need_families
from vcrf.problem import Problem
from vcrf.solvers.result import SolverResult, Status
from vcrf.solvers.run import Run, RunOptions, Standing
from vcrf.structures.training_loss import TrainingLoss
from vcrf.types import Bools, Floats, Ints

RULES = ("fobos", "cumulative", "subgradient")
KAPPAS = ("1/m", "1", "m")
# Every candidate has a weight in memory, and one more number where gradients of all are taken.
MAX_WEIGHTS = 150_000_000
_MAX_PASSES = 50


@dataclass(frozen=True)
class Steps:
    """How to step.

    Attributes
    ----------
    rule : "fobos", "cumulative" or "subgradient": how the penalty is taken
    eta : length of the steps of the first pass
    decay : pass p = 0, 1, ... has steps of eta / (1 + decay p)
    kappa : the penalty's share of a step: "1/m", "1" or "m"
    seed : of the order of the sentences
    is_batch : one step a pass, along the gradient of all sentences
    """

    rule: str = "fobos"
    eta: float = 0.01
    decay: float = 0.0
    kappa: str = "1"
    seed: int = 0
    is_batch: bool = False

    def share(self, n_sentences: int) -> float:
        """Kappa as a number."""
        return {"1/m": 1.0 / n_sentences, "1": 1.0, "m": float(n_sentences)}[self.kappa]


def solve_by_steps(
    problem: Problem,
    penalty: FamilyPenalty,
    loss: TrainingLoss,
    steps: Steps,
    how: RunOptions,
    start: SolverResult | None = None,
) -> SolverResult:
    """Step through the sentences, `max_passes` times (None: 50), and certify where that leads; on one thread.

    Twins may be merged if they are of the same families (`build_problem(merge_twins="families")`): they move alike. A
    run ends earlier only where gd meets the gap. Passes of the certificate come on top.
    """
    _check(problem, penalty, loss)
    return _StepRun(problem, penalty.bind(problem), loss, steps, how).run(start)


def _check(problem: Problem, penalty: FamilyPenalty, loss: TrainingLoss) -> None:
    """Refuse by name what steps are not written for."""
    need_families(penalty, "`solve_by_steps`")
    if penalty.has_l2:
        raise InputError("`solver='sgd'` and 'gd' are written for `norm='l1'`: use it, or `solver='certified'`.")
    if loss.automata is not None or loss.picks:
        raise InputError(
            "`solver='sgd'` and 'gd' know no loss but the Hamming loss: use `loss='hamming'` or None, or "
            "`solver='certified'`."
        )
    if problem.is_partial:
        raise InputError("`solver='sgd'` and 'gd' need the label of every token. Use `solver='certified'`.")
    if any(problem.observed_for(k) for k in problem.kinds):
        raise InputError("`solver='sgd'` and 'gd' take all candidates: use `candidates='all'`.")
    if problem.order > 2:
        raise InputError(
            f"`solver='sgd'` and 'gd' have tag patterns of 2 labels at the most, got {problem.order}: lower `tags`, or "
            "use `solver='certified'`."
        )
    n_weights = len(problem.columns) * problem.space.stride
    if n_weights > MAX_WEIGHTS:
        raise BudgetError(
            f"`solver='sgd'` and 'gd' keep a weight for each of {n_weights:,} candidates; the budget is "
            f"{MAX_WEIGHTS:,}. Use `solver='certified'`, or fewer families."
        )


class EveryCandidate:
    """Weights of all candidates, the sentences as the kernels read them, and passes over these."""

    def __init__(self, problem: Problem, penalty: BoundPenalty, loss: TrainingLoss, rule: int) -> None:
        self.problem, self.rule, self.n_passes = problem, rule, 0
        self.n_sentences, self.n_labels = problem.text.n_sentences, problem.n_labels
        # A step counts a sentence as often as its weight says: once, unless they are weighted.
        scale = problem.weights * self.n_sentences
        self._data = kernels.blocks.Sentences(problem.sent_ptr, problem.y, loss.costs, scale, problem.allowed)
        self._mean = self._data._replace(weights=problem.weights)
        self._seen = _occurrences(problem)
        self.blocks = _blocks(problem, penalty)
        w = np.zeros(len(problem.columns) * problem.space.stride)
        is_cumulative = rule == kernels.sgd.CUMULATIVE
        self.weights = kernels.sgd.Weights(w, np.zeros(len(w) if is_cumulative else 0))
        self._work = _work(int(np.diff(problem.sent_ptr).max(initial=1)), self.n_labels)
        self.clock = self._length = 0.0

    @property
    def w(self) -> Floats:
        return self.weights.w

    @property
    def keep(self) -> Bools:
        """Nothing is screened."""
        return np.ones(len(self.problem.columns), bool)

    def close(self) -> None:
        """Nothing to end."""

    def set(self, features: Ints, w: Floats) -> None:
        """Stand at these weights, as far as they are candidates, all penalties paid."""
        column, kind, _ = self.problem.split_features(features)
        kept = np.isfinite(self.blocks.strength[kind.astype(np.int64) - 1, column])
        self.w[:] = 0.0
        self.w[features[kept]] = w[kept]
        self.blocks.is_live[:] = 0
        self.blocks.is_live[kind[kept].astype(np.int64) - 1, column[kept]] = 1
        self.blocks.last[:] = self.clock

    def visit(self, order: Ints, eta: float, kappa: float) -> Floats:
        """A step for each sentence; returns their values as they were met. All penalties are paid at the end."""
        self.n_passes += 1
        values, self._length = np.zeros(self.n_sentences), eta * kappa
        self.clock = kernels.sgd.visit(
            order, self._data, self._seen, self.n_labels, self.weights, self.blocks, self._work, self.rule, eta, kappa,
            self.clock, values,
        )  # fmt: skip
        self.settle()
        return values

    def settle(self) -> None:
        """Pay all penalties that are owed."""
        kernels.sgd.settle(self.weights, self.blocks, self.n_labels, self.rule, self.clock, self._length)

    def step(self, gradient: Floats, eta: float, kappa: float) -> None:
        """One step of all weights."""
        self._length = eta * kappa
        self.clock = kernels.sgd.step_all(
            self.weights, self.blocks, self.n_labels, gradient, self.rule, eta, kappa, self.clock
        )

    def gradient(self) -> tuple[float, Floats]:
        """F and its gradient on all candidates."""
        self.n_passes += 1
        out, values = np.zeros(len(self.w)), np.zeros(self.n_sentences)
        kernels.sgd.gradient(
            self._mean, self._seen, self.n_labels, self.w, self.blocks, self._work, out, values
        )  # fmt: skip
        return float(self.problem.weights @ values), out

    def penalty(self) -> tuple[float, int]:
        """The penalty of the weights, and how many of them are not 0."""
        return kernels.sgd.measure(self.w, self.blocks, self.n_labels)

    def violations(self, gradient: Floats) -> tuple[float, float]:
        """The largest |gradient| / strength, and the largest violation of the optimality conditions."""
        floor = float(max(gradient.max(initial=0.0), -gradient.min(initial=0.0))) or 1.0
        return kernels.sgd.violations(self.w, gradient, self.blocks, self.n_labels, floor)


def _occurrences(problem: Problem) -> kernels.sgd.SentenceColumns:
    """Columns of each sentence with their tokens, by sentence, column and token."""
    columns, example_of = problem.columns, problem.example_of
    sentence = example_of[columns.positions]
    order = np.argsort(sentence, kind="stable")  # positions are listed by column, and in order
    column = np.repeat(np.arange(len(columns)), np.diff(columns.ptr))[order]
    sentence = sentence[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (column[1:] != column[:-1]) | (sentence[1:] != sentence[:-1])
    first = np.flatnonzero(is_first)
    tokens = columns.positions[order] - problem.sent_ptr[sentence]
    return kernels.sgd.SentenceColumns(
        np.searchsorted(sentence[first], np.arange(problem.text.n_sentences + 1)).astype(np.int64),
        column[first], np.append(first, len(order)).astype(np.int64), tokens.astype(np.int64),
        columns.values[order] if len(columns.values) else np.zeros(0),
    )  # fmt: skip


def _blocks(problem: Problem, penalty: BoundPenalty) -> kernels.sgd.ColumnBlocks:
    """Strengths and twins of labels and of pairs with each column."""
    shape = 2, len(problem.columns)
    strength, twins = np.full(shape, np.inf), np.ones(shape)
    members = np.diff(penalty.ptr)
    for k in problem.kinds:
        strength[k - 1] = penalty.column_thresholds(k)
        twins[k - 1] = np.maximum(members[penalty.column_groups(k)], 1)
    return kernels.sgd.ColumnBlocks(problem.space.stride, strength, twins, np.zeros(shape), np.zeros(shape, np.uint8))


def _work(longest: int, n_labels: int) -> kernels.one_sentence.Work:
    n, size = longest * n_labels, n_labels * n_labels
    label, pairs = [np.zeros(n) for _ in range(6)], [np.zeros(longest * size) for _ in range(2)]
    return kernels.one_sentence.Work(
        label[0],
        pairs[0],
        label[1],
        pairs[1],
        label[2],
        label[3],
        label[4],
        label[5],
        np.zeros(n_labels),
        np.zeros(size),
        np.zeros(2 * longest),
    )


class _StepRun(Run):
    """One call of `solve_by_steps`."""

    def __init__(
        self,
        problem: Problem,
        penalty: BoundPenalty,
        loss: TrainingLoss,
        steps: Steps,
        how: RunOptions,
    ) -> None:
        self.penalty, self.steps = penalty, steps
        rules = {"fobos": kernels.sgd.FOBOS, "cumulative": kernels.sgd.CUMULATIVE}
        self.all = EveryCandidate(problem, penalty, loss, rules.get(steps.rule, kernels.sgd.SUBGRADIENT))
        super().__init__(self.all, how, _MAX_PASSES)
        strength = self.all.blocks.strength
        self.is_penalised = bool(np.all(strength > 0.0))
        self.kappa = steps.share(max(problem.text.n_sentences, 1))
        self.objective, self.n_active = np.inf, 0

    def standing(self) -> Standing:
        features = np.flatnonzero(self.all.w)
        return Standing(features, self.all.w[features], self.objective, self.n_active)

    def _begin(self, start: SolverResult | None) -> None:
        if start is not None:
            self.all.set(start.features, start.weights)

    def _solve(self) -> Status:
        for number in range(self.max_passes):
            eta = self.steps.eta / (1.0 + self.steps.decay * number)
            if self.steps.is_batch:
                gradient = self._certify()
                if self.is_certified:
                    return Status.CONVERGED
                self.report("steps", self._seen())
                self.all.step(gradient, eta, self.kappa)
            else:
                rng = np.random.default_rng([self.steps.seed, number])
                values = self.all.visit(rng.permutation(self.all.n_sentences), eta, self.kappa)
                # Each value is that of the weights of its moment: the objective is known at the end.
                self._stand(float(self.all.problem.weights @ values))
                self.report("steps", self._seen())
        self._certify()
        return Status.CONVERGED if self.is_certified else self._out_of_passes

    def _seen(self) -> Standing:
        """The weights, by feature if anybody looks at them."""
        if self.watch is not None:
            return self.standing()
        return Standing(np.zeros(0, np.int64), self.all.w, self.objective, self.n_active)

    def _salvage(self, status: Status) -> Status:
        self.all.settle()
        self._certify()
        return status

    def _adopt(self, features: Ints, w: Floats) -> None:
        self.all.set(features, w)
        self._certify()

    @property
    def _out_of_passes(self) -> Status:
        return Status.MAX_PASSES if self.is_penalised else Status.UNCERTIFIED

    def gap_at(self, objective: float) -> float:
        return super().gap_at(objective) if self.is_penalised else np.inf

    def _stand(self, value: float) -> None:
        penalty, self.n_active = self.all.penalty()
        self.objective = value + penalty

    def _certify(self) -> Floats:
        """Objective, lower bound and violation from the gradient of all candidates, which is returned."""
        value, gradient = self.all.gradient()
        self._stand(value)
        largest, violation = self.all.violations(gradient)
        # `solvers.certificate` for L1: of all candidates the largest ratio is enough.
        self.raise_bound(max((value - float(self.all.w @ gradient)) / max(largest, 1.0), 0.0), violation)
        return gradient
