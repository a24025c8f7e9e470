"""The group norm: all labels of an attribute in a family come in together or not at all.

    min_w  F(w) + sum over groups G of c_G ||w_G||_2

A group is a column with all its tag patterns of one length; c_G is the strength of its family, of the cheapest one if
twins of several families share the column (the merged penalty is then the smallest, as for L1).
The certificate is that of L1 with norms of groups: P* >= theta (F(w) - w.g), theta = 1 / max(1, max_G ||g_G|| / c_G)
over ALL groups.

On a working set of groups, proximal quasi-Newton steps (Lee, Sun and Saunders, 2014): the quadratic model of F from the
last steps, with the norms as they are, is minimised without a pass over the data (`solvers.group_model`), and a line
search on the objective follows. Groups come and go inside a step, and the curvature of the norms, which is c / ||w_G||
and varies by orders of magnitude, need not be learnt from steps.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from vcrf.errors import BudgetError, InputError
from vcrf.penalties import FamilyPenalty
from vcrf.problem import Problem
from vcrf.solvers.group_model import Groups, QuasiNewtonModel
from vcrf.solvers.owlqn import LbfgsMemory
from vcrf.solvers.result import Callback, IterationRecord, SolverResult, Status, Watch
from vcrf.structures.plan import Plan
from vcrf.structures.scan import Scan
from vcrf.surrogates.choice import SmoothChoice
from vcrf.surrogates.smooth import Point
from vcrf.types import Floats, Ints

_MAX_PASSES = 10_000
_MEMORY = 8
MAX_FEATURES = 5_000_000
# Times the largest weight.
_LONGEST_STEP = 10.0


def solve_group(
    problem: Problem,
    penalty: FamilyPenalty,
    choice: SmoothChoice,
    *,
    tol: float = 1e-3,
    max_passes: int | None = None,
    threads: int = 1,
    start: SolverResult | None = None,
    callback: Callback | None = None,
    watch: Watch | None = None,
    lattice: str = "auto",
) -> SolverResult:
    """Minimise a smooth surrogate with the group norm; `penalty.l1` has the strengths. Else as `working_set.solve`."""
    if any(problem.observed_for(k) for k in problem.lengths):
        raise InputError("norm='group' takes all labels of an attribute together: use candidates='all'.")
    if problem.is_partial:
        raise InputError("norm='group' needs the label of every token, some are left open: use norm='l1' or 'elastic'.")
    from threadpoolctl import threadpool_limits

    # One BLAS thread, as in `working_set.solve`.
    with threadpool_limits(1):
        return _Run(problem, penalty, choice, tol, max_passes or _MAX_PASSES, threads, callback, watch, lattice).run(
            start
        )


def _check_size(problem: Problem, lengths: Ints) -> None:
    """Refuse more features than there is room for; a group has all patterns of its length."""
    n_features = sum(problem.n_labels**k for k in lengths.tolist())
    if n_features > MAX_FEATURES:
        raise BudgetError(
            f"norm='group' takes all {problem.n_labels**problem.order:,} patterns of a length together: "
            f"{len(lengths):,} groups of up to {int(lengths.max())} labels are {n_features:,} features; the budget is "
            f"{MAX_FEATURES:,}. Use greater strengths, a smaller `tags`, or norm='l1', which takes patterns one by one."
        )


class _Point(NamedTuple):
    """Weights on the working set, with value and gradient of the surrogate and the objective."""

    w: Floats
    value: float
    g: Floats
    objective: float


def _point(groups: Groups, found: Point) -> _Point:
    return _Point(found.w, found.value, found.gradient, found.value + groups.penalty(found.w))


class _Stop(Exception):
    def __init__(self, status: Status) -> None:
        self.status = status


class _Run:
    def __init__(
        self,
        problem: Problem,
        penalty: FamilyPenalty,
        choice: SmoothChoice,
        tol: float,
        max_passes: int,
        threads: int,
        callback: Callback | None,
        watch: Watch | None,
        lattice: str,
    ) -> None:
        self.problem, self.tol, self.max_passes, self.callback, self.watch = problem, tol, max_passes, callback, watch
        self.penalty = penalty.bind(problem)
        strengths = {k: self.penalty.column_thresholds(k) for k in problem.lengths}
        if not all(np.all(limit > 0.0) for limit in strengths.values()):
            raise InputError("Some family has strength 0: with norm='group' every strength must be positive.")
        self.column_strengths = strengths
        # A group whose norm exceeds c has an entry above c / sqrt(its size).
        self.limits = {k: limit / problem.n_labels ** (0.5 * k) for k, limit in strengths.items()}
        mass = choice.mass(problem)
        # ||g_G|| <= sqrt(2) mass: at each occurrence the marginals and the truth are two distributions.
        keep = np.zeros(len(problem.columns), bool)
        for limit in strengths.values():
            keep |= np.sqrt(2.0) * mass > limit
        self.objective = choice.build(problem, keep, threads, lattice)
        self.lower_bound, self.excess = 0.0, np.inf
        self.history: list[IterationRecord] = []
        self.began = time.perf_counter()
        self.memory = LbfgsMemory(_MEMORY)

    def run(self, start: SolverResult | None) -> SolverResult:
        status = Status.CONVERGED
        self.active, self.groups = self._working_set(start.features if start is not None else np.zeros(0, np.int64))
        w = np.zeros(len(self.active))
        if start is not None:
            where = np.minimum(np.searchsorted(self.active.features, start.features), max(len(w) - 1, 0))
            is_there = self.active.features[where] == start.features if len(w) else np.zeros(len(where), bool)
            w[where[is_there]] = start.weights[is_there]
        self.point = self._evaluate(self.active, self.groups, w)
        n_steps, n_idle, best_gap = 30, 0, np.inf
        try:
            while True:
                self._certify()
                self._report()
                if self._gap() <= self.tol * self.point.objective:
                    break
                before, gap = self.point.objective, self._gap()
                self._minimise(n_steps, max(0.1 * gap / before, 0.8 * self.tol))
                n_steps = min(int(1.3 * n_steps), 300)
                is_idle = before - self.point.objective <= 1e-15 * before and gap >= best_gap
                n_idle, best_gap = n_idle + 1 if is_idle else 0, min(gap, best_gap)
                if n_idle > 8:
                    raise _Stop(Status.STALLED)
        except (_Stop, KeyboardInterrupt) as stop:
            status = stop.status if isinstance(stop, _Stop) else Status.INTERRUPTED
            self.memory.clear()  # an interruption may have left it with the working set before
            self._certify()
            if self._gap() <= self.tol * self.point.objective:
                status = Status.CONVERGED
        finally:
            self.objective.close()
        return self._result(status)

    # ----- groups

    def _working_set(self, features: Ints) -> tuple[Plan, Groups]:
        """The working set of all groups that have one of the features."""
        problem = self.problem
        column, length, _ = problem.split_features(features)
        pairs = np.unique(column.astype(np.int64) * (problem.order + 1) + length)
        columns, lengths = np.divmod(pairs, problem.order + 1)
        _check_size(problem, lengths)
        parts = [
            problem.join_features(np.full(problem.n_labels**k, c, np.uint32), int(k), np.arange(problem.n_labels**k))
            for c, k in zip(columns.tolist(), lengths.tolist(), strict=True)
        ]
        active = self.objective.compile(np.concatenate([np.zeros(0, np.int64), *parts]))
        sizes = np.array([len(part) for part in parts], np.int64)
        first = np.cumsum(sizes) - sizes
        return active, Groups(sizes, self.penalty.thresholds(active.features[first]))

    def _suspects(self, scan: Scan) -> Ints:
        """Features of the groups whose norm may exceed their strength; the scan has bounds, or large entries."""
        if scan.norms is None:
            return scan.features
        found = []
        for k, norms in scan.norms.items():
            columns = np.flatnonzero(norms > self.column_strengths[k]).astype(np.uint32)
            found.append(self.problem.join_features(columns, k, np.zeros(len(columns), np.uint32)))
        return np.concatenate(found)

    # ----- evaluation and certificate

    def _evaluate(self, active: Plan, groups: Groups, w: Floats) -> _Point:
        return _point(groups, self.objective.at(active, w))

    def _try_weights(self, w: Floats) -> tuple[_Point, BudgetError | None]:
        """As `_evaluate` for a trial of a line search: infinity where such large weights are beyond the budget."""
        try:
            return self._evaluate(self.active, self.groups, w), None
        except BudgetError as refusal:
            return _Point(w, np.inf, np.zeros(len(w)), np.inf), refusal

    def _certify(self) -> None:
        """Lower bound from a scan; groups that exceed their strength join the working set.

        Working set and point change together, at the end: Ctrl-C may come at any time before.
        """
        w, features, groups = self.point.w, self.active.features, self.groups
        nonzero = np.flatnonzero(w)
        _, scan = self.objective.scan(self.objective.compile(features[nonzero]), w[nonzero], self.limits)
        used = features[(groups.norms(w) > 0.0)[groups.of]]
        active, groups = self._working_set(np.union1d(used, self._suspects(scan)))
        wide = np.zeros(len(active))
        wide[np.searchsorted(active.features, features[nonzero])] = w[nonzero]
        found = self.objective.at(active, wide)
        point = _point(groups, found)
        ratios = groups.norms(point.g) / groups.strengths
        excess = float(ratios.max(initial=1.0)) - 1.0
        bound = (point.value - float(wide @ point.g)) / (1.0 + excess)
        curvature = self.objective.curvature(found, scan.variances)
        kept = ((ratios > 0.9) | (groups.norms(wide) > 0.0))[groups.of]
        active, groups = self._working_set(active.features[kept])
        # At the optimum the variance of a group in use is about its strength; on the way it may vanish.
        floor = np.maximum(1e-3 * groups.strengths[groups.of], 1e-8 * float(curvature.max(initial=0.0)))
        curvature = np.maximum(curvature[kept], floor)
        point = _Point(wide[kept], point.value, point.g[kept], point.objective)
        self.lower_bound, self.excess = max(self.lower_bound, bound), excess
        self.active, self.groups, self.point, self.curvature = active, groups, point, curvature
        self._keep_secants(features)

    def _keep_secants(self, old: Ints) -> None:
        """Follow the change of the working set, unless most of it is new."""
        new = self.active.features
        kept = np.flatnonzero(np.isin(old, new, assume_unique=True))
        if len(new) - len(kept) > 0.2 * len(new):
            self.memory.clear()
        else:
            self.memory.resize(kept, np.searchsorted(new, old[kept]), len(new))

    def _gap(self) -> float:
        return max(self.point.objective - self.lower_bound, 0.0)

    # ----- minimise on the working set

    def _minimise(self, n_steps: int, target: float) -> None:
        """Steps until the gap would be below the target if no group outside were violated."""
        for _ in range(n_steps):
            if self._gap_on_working_set() <= target * self.point.objective:
                break
            self._check_limit()
            if not self._step():
                break

    def _step(self) -> bool:
        """One proximal quasi-Newton step; whether the objective could be lowered."""
        point = self.point
        model = QuasiNewtonModel(self.groups, self.curvature, *self.memory.pairs())
        d = model.direction(point.g, point.w)
        # Curvatures vanish where posteriors are saturated: such steps would leave the range of numbers.
        longest = _LONGEST_STEP * (1.0 + float(np.abs(point.w).max(initial=0.0)))
        d *= min(1.0, longest / max(float(np.abs(d).max(initial=0.0)), 1e-300))
        predicted = float(point.g @ d) + self.groups.penalty(point.w + d) - self.groups.penalty(point.w)
        step, refusal = 1.0, None
        while step > 1e-4:
            new, refusal = self._try_weights(point.w + step * d)
            if new.objective <= point.objective + 1e-4 * step * predicted:
                self.memory.add(new.w - point.w, new.g - point.g)
                self.point = new
                return True
            step *= 0.4
        if refusal is not None and not len(self.memory):
            # The shortest step of all could not be evaluated either, in the direction of the gradient.
            raise refusal
        self.memory.clear()
        return False

    def _gap_on_working_set(self) -> float:
        point = self.point
        worst = float((self.groups.norms(point.g) / self.groups.strengths).max(initial=1.0))
        return point.objective - (point.value - float(point.w @ point.g)) / worst

    def _check_limit(self) -> None:
        if self.objective.n_passes >= self.max_passes:
            raise _Stop(Status.MAX_PASSES)

    # ----- reporting

    def _report(self) -> None:
        point = self.point
        record = IterationRecord(
            self.objective.n_passes, time.perf_counter() - self.began, point.objective, self._gap(), self.excess,
            int(np.count_nonzero(point.w)), len(self.active), "group",
        )  # fmt: skip
        if self.watch is not None:
            record = self.watch.look(record, self.active.features, point.w)
        self.history.append(record)
        if self.watch is not None and self.watch.is_enough:
            raise _Stop(Status.CHOSEN)
        if self.callback is not None and self.callback(record):
            raise _Stop(Status.INTERRUPTED)

    def _result(self, status: Status) -> SolverResult:
        if self.watch is not None and self.watch.preferred is not None:
            features, w = self.watch.preferred
            self.active, self.groups = self._working_set(features)
            wide = np.zeros(len(self.active))
            wide[np.searchsorted(self.active.features, features)] = w
            self.point = self._evaluate(self.active, self.groups, wide)
            status = Status.CONVERGED if self._gap() <= self.tol * self.point.objective else Status.CHOSEN
        point, nonzero = self.point, np.flatnonzero(self.point.w)
        return SolverResult(
            self.active.features[nonzero], point.w[nonzero], point.objective, self._gap(), self.excess, status,
            self.objective.n_passes, time.perf_counter() - self.began, self.history,
            int(np.count_nonzero(self.objective.keep)),
        )  # fmt: skip
