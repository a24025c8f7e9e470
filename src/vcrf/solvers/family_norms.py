"""Norms of whole families: the penalty of voted risk minimisation over the balls of H_p.

    min_w  P(w) = F(w) + sum_k c_k ||w_k||_p,        ||w_k||_p = (sum_j s_j |w_j|^p)^(1/p),  1 < p <= 2

with s_j = 1, or the attribute's count to a power. For every eta > 0 (Young's inequality)

    ||w_k||_p <= ||w_k||_p^p eta^(1-p) / p + eta (p - 1) / p,        equal at eta = ||w_k||_p,

and the right-hand side is convex in both. So families' norms become powers with strengths c_k eta_k^(1-p), which the
working-set solver minimises, and eta_k follows. A family whose gradient is shorter than its strength shrinks to 0.

Lower bound: with the dual norm ||g_k||_q = (sum_j s_j^(1-q) |g_j|^q)^(1/q), 1/p + 1/q = 1, over ALL candidates, and
theta = min(1, min_k c_k / ||g_k||_q), P* >= theta (F(w) - w.g).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vcrf.errors import InputError
from vcrf.penalties import BoundPenalty, FamilyPenalty, need_families
from vcrf.problem import Candidates
from vcrf.solvers.result import IterationRecord, SolverResult, Status
from vcrf.solvers.run import Interrupted, Run, RunOptions, Standing
from vcrf.solvers.working_set import solve
from vcrf.structures.structure import Scan
from vcrf.surrogates.smooth import Surrogate
from vcrf.types import Floats, Ints

# Where eta begins, and the least: a family below it has no weights but for the certificate.
_FIRST, _LEAST = 10.0, 1e-8
# Times the majorant's own step in log eta; and how long a step may be.
_MOST_FACTOR, _LONGEST = 2.0, 5.0
# The relative gap of the weights at some eta: the first, the factor after a round of no use, and a share of the least.
_INNER_TOL, _CLOSER, _CLOSEST = 0.1, 0.4, 1e-4
# Rounds in a row without a fifth less gap.
_MOST_IDLE = 40


def solve_family_norms(
    problem: Candidates,
    penalty: FamilyPenalty,
    choice: Surrogate,
    how: RunOptions,
    start: SolverResult | None = None,
    dual_start: bool = True,
) -> SolverResult:
    """Minimise with norms of families; `penalty` is that of the powers at eta = 1. Else as `working_set.solve`.

    Twins of several families must not be merged (`build_problem(merge_twins="families")`).
    """
    need_families(penalty, "`solve_family_norms`")
    return _FamilyRun(problem, penalty, choice, how, dual_start).run(start)


class _FamilyRun(Run):
    def __init__(
        self,
        problem: Candidates,
        penalty: FamilyPenalty,
        choice: Surrogate,
        how: RunOptions,
        dual_start: bool,
    ) -> None:
        if penalty.own is not None or not np.all(penalty.l2 > 0.0):
            raise InputError("`norm='family'` needs a positive strength for each family, and none of single features.")
        self.problem, self.family_penalty, self.choice = problem, penalty, choice
        self.norms = _Norms(penalty.bind(problem))
        self.options: dict[str, Any] = {"threads": how.threads, "lattice": how.lattice, "dual_start": dual_start}
        self.limits = {k: self.norms.penalty.column_thresholds(k) for k in problem.kinds}
        self.objective = choice.build(problem, np.ones(len(problem.columns), bool), how.threads, how.lattice)
        if not self.objective.is_convex:
            raise InputError(
                "`norm='family'` needs the label of every token, some are left open: use `norm='l1'` or 'elastic'."
            )
        super().__init__(self.objective, how)
        self.inner_tol = _INNER_TOL
        self.here = Standing(np.zeros(0, np.int64), np.zeros(0), np.inf, 0)

    def standing(self) -> Standing:
        return self.here

    def _begin(self, start: SolverResult | None) -> None:
        none = np.zeros(0, np.int64), np.zeros(0)
        self._stand(*(none if start is None else (start.features, start.weights)))

    def _adopt(self, features: Ints, w: Floats) -> None:
        self._stand(features, w)

    def _stand(self, features: Ints, w: Floats) -> tuple[Floats, float]:
        """Certify some weights, and stand there if they are the best so far; the families' norms and the objective."""
        plan = self.objective.compile(features)
        point, scan = self.objective.scan(plan, w, self.limits)
        sizes = self.norms.of(features, w)
        bound, excess = self.norms.certify(point.value - float(point.w @ point.gradient), scan)
        self.raise_bound(bound, excess)
        objective = point.value + float(self.norms.strengths @ sizes)
        if objective <= self.here.objective:
            self.here = Standing(features, w, objective, len(features))
        return sizes, objective

    def _solve(self) -> Status:
        here = self.here
        sizes = self.norms.of(here.features, here.w)
        eta = _Eta(np.where(sizes > 0.0, sizes, _FIRST))
        result: SolverResult | None = None
        if len(here.features):
            result = SolverResult(here.features, here.w, np.inf, np.inf, np.inf, Status.CONVERGED, 0, 0.0, [], 0)
        n_idle, least = 0, np.inf
        while not self.is_certified:
            self.check_limit()
            result = self._at(eta.now, result)
            sizes, objective = self._stand(result.features, result.weights)
            self.report("families")
            if result.status is Status.INTERRUPTED:
                raise Interrupted(Status.INTERRUPTED)
            n_idle, least = (0, self.gap) if self.gap < 0.8 * least else (n_idle + 1, least)
            if n_idle:
                # The norm of a gradient feels errors of the weights that their objective does not.
                self.inner_tol = max(_CLOSER * self.inner_tol, _CLOSEST * self.tol)
            if n_idle > _MOST_IDLE:
                raise Interrupted(Status.STALLED)
            eta.move(sizes, objective)
        return Status.CONVERGED

    def _at(self, eta: Floats, start: SolverResult | None) -> SolverResult:
        """The weights at some eta."""
        result = solve(
            self.problem, self.family_penalty.times(eta ** (1.0 - self.norms.p)), surrogate=self.choice,
            tol=self.inner_tol, max_passes=max(self.max_passes - self.objective.n_passes, 1),
            start=start, callback=self._relay, **self.options,
        )  # fmt: skip
        self.objective.n_passes += result.n_passes
        return result

    def _relay(self, record: IterationRecord) -> bool | None:
        """Show the user's callback the state of the problem itself."""
        if self.callback is None:
            return None
        n_passes = self.objective.n_passes + record.n_passes
        return self.callback(replace(record, n_passes=n_passes, objective=self.here.objective, gap=self.gap))


class _Eta:
    """The families' norms as they are believed to become: steps in log eta, longer than the majorant's own.

    Its own steps never raise the objective; where longer ones have, the last good place takes its own step.
    """

    def __init__(self, first: Floats) -> None:
        self.now, self._factor, self._least = first, 1.0, np.inf
        self._good = first, np.zeros(len(first))

    def move(self, sizes: Floats, objective: float) -> None:
        """The next eta, from the families' norms at this one."""
        if objective <= self._least:
            self._least, self._factor = objective, min(1.5 * self._factor, _MOST_FACTOR)
            self._good = self.now, np.log(np.maximum(sizes, _LEAST) / self.now)
        else:
            self._factor = 1.0
        eta, step = self._good
        self.now = np.maximum(eta * np.exp(np.clip(self._factor * step, -_LONGEST, _LONGEST)), _LEAST)


class _Norms:
    """The families' norms and their dual ones, of merged features."""

    def __init__(self, penalty: BoundPenalty) -> None:
        self.penalty, self.strengths = penalty, penalty.penalty.l2
        powers = penalty.penalty.powers
        self.p = 2.0 if powers is None else float(powers[0])
        self.q = self.p / (self.p - 1.0)
        self._scale = penalty.member_l2 / self.strengths[penalty.member_families]  # s_j
        # What a gradient's power q counts in each family: the sum over a group's members, (n_groups,) of one family.
        group = np.repeat(np.arange(len(penalty.ptr) - 1), np.diff(penalty.ptr))
        family = np.full(len(penalty.ptr) - 1, -1)
        family[group] = penalty.member_families
        if np.any(family[group] != penalty.member_families):
            raise InputError("Twins of several families are merged: families' norms need them apart.")
        self._family_of = family
        self._times = np.bincount(group, self._scale ** (1.0 - self.q), len(family))

    def of(self, features: Ints, w: Floats) -> Floats:
        """||w_k||_p of each family."""
        _, member, parts = self.penalty.split(self.penalty.groups_of(features), w)
        powers = self._scale[member] * np.abs(parts) ** self.p
        return np.asarray(self._sums(self.penalty.member_families[member], powers) ** (1.0 / self.p))

    def certify(self, intercept: float, scan: Scan) -> tuple[float, float]:
        """Lower bound, and the largest relative excess of a family's gradient."""
        groups = self.penalty.groups_of(scan.features)
        size = np.abs(scan.gradients)
        largest = float(size.max(initial=0.0)) or 1.0
        sums = self._sums(self._family_of[groups], self._times[groups] * (size / largest) ** self.q)
        worst = float((largest * sums ** (1.0 / self.q) / self.strengths).max(initial=1.0))
        return max(intercept / worst, 0.0), worst - 1.0

    def _sums(self, families: Ints, values: Floats) -> Floats:
        return np.asarray(np.bincount(families, values, len(self.strengths)), np.float64)
