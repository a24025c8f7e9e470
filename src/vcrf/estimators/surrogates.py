"""Estimators of the surrogates besides crf; parameters, methods and attributes are those of VCRF."""

from __future__ import annotations

from typing import Any

from vcrf.arguments import recipes
from vcrf.estimators.parameters import TrainingData
from vcrf.estimators.vcrf import VCRF
from vcrf.problem import Problem
from vcrf.solvers.result import SolverResult, Watch
from vcrf.types import Label

__all__ = ["M3N", "MaxCRF", "MaxExponential", "MaxStructBoost", "StructSVM", "VExponential", "VStructBoost"]


class VStructBoost(VCRF):
    """Voted Structured Boosting.

    Minimises

        log(1 + (1/m) sum_i sum_y loss(y, y_i) exp(w.(Psi(x_i, y) - Psi(x_i, y_i))))
            + sum_k (complexity_strength * r_k + base_strength) * ||w_k||_1

    The logarithm of 1 + the paper's objective has the same path of solutions, does not overflow, and has a minimum
    for every positive strength; `logarithm=False` minimises the paper's objective itself. Parameters, methods and
    attributes are those of `VCRF`; the loss, "hamming" unless given, must not be None, and the temperature is 1.
    """

    _kind = "structboost"
    _recipes = recipes.LOG_MEAN


class VExponential(VCRF):
    """The exponential surrogate.

    Minimises

        log (1/m) sum_i sum_y exp(loss(y, y_i) + w.(Psi(x_i, y) - Psi(x_i, y_i)))
            + sum_k (complexity_strength * r_k + base_strength) * ||w_k||_1

    Parameters, methods and attributes are those of `VCRF`; the loss is "hamming" unless given, and the temperature 1.
    """

    _kind = "exponential"
    _recipes = recipes.LOG_MEAN


class _MaxEstimator(VCRF):
    """What the estimators of maximum surrogates share."""

    _recipes = recipes.MAX_MARGIN
    _needs_penalty = True

    def _surrogate(self, problem: Problem, classes: list[Label]) -> Any:
        from vcrf.surrogates.maximum import choose_max

        return choose_max(problem, self._kind, self._loss(classes))

    def _run(self, data: TrainingData, start: SolverResult | None, watch: Watch | None) -> SolverResult:
        from vcrf.solvers.cutting_plane import solve_max
        from vcrf.structures.chain import check_lattice

        is_group = self._form()["norm"] == "group"
        check_lattice(self.inference)
        problem = data.problem
        return solve_max(problem, self._penalty(data), data.surrogate, self._running(watch), start, is_group)


class M3N(_MaxEstimator):
    """Max-margin Markov network, or structured SVM with margin rescaling.

    Minimises

        (1/m) sum_i max(0, max_y loss(y, y_i) + w.(Psi(x_i, y) - Psi(x_i, y_i)))
            + sum_k (complexity_strength * r_k + base_strength) * ||w_k||_1

    to a certified gap, 1 % of the objective by default (`tol`). The problem is not smooth; it is solved by cutting
    planes. Parameters, methods and attributes are those of `VCRF`; the loss, "hamming" unless given, must not be None,
    the temperature is 1, and `base_strength` None means 1 / m (in the paper's recipe 0.5 / m), because the loss is at
    most 1 a sentence.
    """

    _kind = "m3n"


class StructSVM(_MaxEstimator):
    """Structured SVM with slack rescaling, exact.

    Minimises

        (1/m) sum_i max(0, max_y loss(y, y_i) (1 + w.(Psi(x_i, y) - Psi(x_i, y_i))))
            + sum_k (complexity_strength * r_k + base_strength) * ||w_k||_1

    to a certified gap, 1 % of the objective by default (`tol`). The maximum is found for every value of the loss.
    Parameters, methods and attributes are those of `M3N`.
    """

    _kind = "structsvm"


class MaxCRF(_MaxEstimator):
    """The paper's bound on the loss before the sum: the worst wrong sequence alone.

    Minimises

        (1/m) sum_i max_{y != y_i} log(1 + exp(loss(y, y_i) + w.(Psi(x_i, y) - Psi(x_i, y_i))))
            + sum_k (complexity_strength * r_k + base_strength) * ||w_k||_1

    to a certified gap, 1 % of the objective by default (`tol`), by cutting planes. `VCRF` has the sum over all
    sequences in the logarithm, which is an upper bound. Parameters, methods and attributes are those of `M3N`.
    """

    _kind = "crf-max"


class MaxStructBoost(_MaxEstimator):
    """Voted Structured Boosting in its first form, with the maximum.

    Minimises

        (1/m) sum_i max_{y != y_i} loss(y, y_i) exp(w.(Psi(x_i, y) - Psi(x_i, y_i)))
            + sum_k (complexity_strength * r_k + base_strength) * ||w_k||_1

    to a certified gap, 1 % of the objective by default (`tol`), by cutting planes. Nothing overflows at w = 0, and no
    logarithm is taken. Parameters, methods and attributes are those of `M3N`.
    """

    _kind = "structboost-max"


class MaxExponential(_MaxEstimator):
    """The exponential surrogate with the maximum in place of the sum.

    Minimises

        (1/m) sum_i max_{y != y_i} exp(loss(y, y_i) + w.(Psi(x_i, y) - Psi(x_i, y_i)))
            + sum_k (complexity_strength * r_k + base_strength) * ||w_k||_1

    Parameters, methods and attributes are those of `M3N`.
    """

    _kind = "exponential-max"
