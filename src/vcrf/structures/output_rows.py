"""Rows d = slope (Psi(y) - Psi(truth)) of label sequences on the features of a plan, for cutting planes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.problem import Problem
from vcrf.structures.outputs import Outputs
from vcrf.structures.plan import ChainPlan
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.kernels.cuts import PathFiring


class OutputRows:
    """Rows of outputs on one plan."""

    def __init__(self, problem: Problem, plan: ChainPlan) -> None:
        self._problem, self._n_features, self._firing, self._room = problem, len(plan), _firing(problem, plan), 1024

    def of(self, outputs: Outputs, slopes: Floats) -> tuple[Ints, Ints, Floats]:
        """CSR rows: ptr, columns, values."""
        row_ptr, problem = np.zeros(outputs.n + 1, np.int64), self._problem
        while True:
            index, value = np.empty(self._room, np.int64), np.empty(self._room)
            n = kernels.cuts.cut_rows(
                self._firing, self._n_features, problem.sent_ptr, problem.y, problem.n_labels, outputs.example,
                outputs.ptr, outputs.labels, slopes, row_ptr, index, value,
            )  # fmt: skip
            if n <= self._room:
                return row_ptr, index[:n], value[:n]
            self._room = int(1.1 * n)


def _firing(problem: Problem, plan: ChainPlan) -> PathFiring:
    """Rows, plain patterns as a sorted map, and corrections of the plan, for `kernels.cuts.cut_rows`."""
    order = max(plan.order, 1)
    sizes = np.array([problem.n_labels**d for d in range(1, order + 1)], np.int64)
    offsets = np.concatenate([np.zeros(2, np.int64), np.cumsum(sizes)])
    numbers = offsets[plan.table_sizes] + plan.table_codes.astype(np.int64)
    by_number = np.argsort(numbers)
    return kernels.cuts.PathFiring(
        plan.rows, plan.row_ptr, plan.row_labels, plan.row_features, plan.row_values, offsets, numbers[by_number],
        plan.table_features[by_number], order, plan.cor_ptr, plan.cor_size, plan.cor_code, plan.cor_feature,
        plan.cor_values,
    )  # fmt: skip
