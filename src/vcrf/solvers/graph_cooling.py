"""m3n on graphs: temperatures fall until the gap is closed.

Each temperature is a crf of graphs, exact or relaxed, from the solution before. The value of m3n itself is the sum of
the maxima of the blocks, which on an exact graph is the maximum; on a relaxed one it is the bound that decoding finds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vcrf.penalties import FamilyPenalty, need_families
from vcrf.problem.graphs import GraphProblem
from vcrf.solvers.cooling import Cooling, CoolingPoint
from vcrf.solvers.result import SolverResult, Status
from vcrf.solvers.run import Interrupted, RunOptions
from vcrf.surrogates.graphs import GraphMaxChoice
from vcrf.types import Floats, Ints


def solve_graph_max(
    problem: GraphProblem,
    penalty: FamilyPenalty,
    choice: GraphMaxChoice,
    how: RunOptions,
    start: SolverResult | None = None,
) -> SolverResult:
    """Minimise m3n of graphs to a certified relative gap; parameters as in `working_set.solve`."""
    need_families(penalty, "`solve_graph_max`")
    return GraphCooling(problem, penalty, choice, how).run(start)


class GraphCooling(Cooling):
    """One run."""

    _last = 1e-7  # of the largest loss: below it, sums in double precision say nothing new

    @property
    def _smooth_choice(self) -> Any:
        return self.choice.smooth

    def _is_too_cold(self, smooth: Any, start: SolverResult) -> bool:  # noqa: ARG002 - all is in the log domain
        return False

    def _look_at(self, features: Ints, w: Floats) -> CoolingPoint:
        values = self.objective.values(self.objective.compile(features), w)
        return CoolingPoint(features, w.copy(), float(self.problem.weights @ values) + self._penalty_of(features, w))

    def _solve(self) -> Status:
        self._first_points(self.start)
        self._cool(self.start)
        if self.is_certified or not np.any(self.choice.loss.largest):
            return Status.CONVERGED
        raise Interrupted(Status.STALLED)
