"""The group norm: all labels of an attribute in a family come in together or not at all.

    min_w  F(w) + sum over groups G of c_G ||w_G||_2

A group is a column with all its tag patterns of one length; c_G is the strength of its family, of the cheapest one if
twins of several families share the column (the merged penalty is then the smallest, as for L1).
Accelerated proximal gradient steps (FISTA with restarts) on a working set of groups find which groups are zero; a step
has one length in a group and another in the next, from the curvatures of the last scan. In between, quasi-Newton steps
on the groups that are not zero, where the norm is smooth. The certificate is that of L1 with norms of groups:
P* >= theta (F(w) - w.g), theta = 1 / max(1, max_G ||g_G|| / c_G) over ALL groups.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from vcrf.errors import InputError
from vcrf.penalties import FamilyPenalty
from vcrf.problem import Problem
from vcrf.solvers.owlqn import LbfgsMemory
from vcrf.solvers.result import Callback, IterationRecord, SolverResult, Status, Watch
from vcrf.surrogates.active import ActiveSet
from vcrf.surrogates.choice import SmoothChoice
from vcrf.types import Bools, Floats, Ints

_MAX_PASSES = 3_000


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
) -> SolverResult:
    """Minimise a smooth surrogate with the group norm; `penalty.l1` has the strengths. Else as `working_set.solve`."""
    if any(problem.observed_for(k) for k in problem.lengths):
        raise InputError("norm='group' takes all labels of an attribute together: use candidates='all'.")
    return _Run(problem, penalty, choice, tol, max_passes or _MAX_PASSES, threads, callback, watch).run(start)


class _Point(NamedTuple):
    """Weights on the working set, with value and gradient of the surrogate and the objective."""

    w: Floats
    value: float
    g: Floats
    objective: float


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
    ) -> None:
        self.problem, self.tol, self.max_passes, self.callback, self.watch = problem, tol, max_passes, callback, watch
        self.penalty = penalty.bind(problem)
        strengths = {k: self.penalty.column_thresholds(k) for k in problem.lengths}
        if not all(np.all(limit > 0.0) for limit in strengths.values()):
            raise InputError("Some family has strength 0: with norm='group' every strength must be positive.")
        # A group whose norm exceeds c has an entry above c / sqrt(its size).
        self.limits = {k: limit / problem.n_labels ** (0.5 * k) for k, limit in strengths.items()}
        mass = choice.column_mass(problem)
        # ||g_G|| <= sqrt(2) mass: at each occurrence the marginals and the truth are two distributions.
        keep = np.zeros(len(problem.columns), bool)
        for limit in strengths.values():
            keep |= np.sqrt(2.0) * mass > limit
        self.surrogate = choice.build(problem, keep, threads, "dense")
        self.surrogate.column_mass = np.full(len(mass), np.inf)
        self.lower_bound, self.excess = 0.0, np.inf
        self.history: list[IterationRecord] = []
        self.began = time.perf_counter()
        self.stiffness = 1.0

    def run(self, start: SolverResult | None) -> SolverResult:
        status = Status.CONVERGED
        self._set_groups(start.features if start is not None else np.zeros(0, np.int64))
        w = np.zeros(len(self.active))
        if start is not None:
            where = np.minimum(np.searchsorted(self.active.features, start.features), max(len(w) - 1, 0))
            is_there = self.active.features[where] == start.features if len(w) else np.zeros(len(where), bool)
            w[where[is_there]] = start.weights[is_there]
        self.point = self._evaluate(w)
        try:
            while True:
                self._certify()
                self._report()
                if self._gap() <= self.tol * self.point.objective:
                    break
                before = self.point.objective
                self._minimise()
                self._move_on_face()
                if before - self.point.objective < 0.01 * self.tol * before and not self._is_small_violation():
                    raise _Stop(Status.SETTLED)
        except (_Stop, KeyboardInterrupt) as stop:
            status = stop.status if isinstance(stop, _Stop) else Status.INTERRUPTED
            self._certify()
            if self._gap() <= self.tol * self.point.objective:
                status = Status.CONVERGED
        finally:
            self.surrogate.workers.close()
        return self._result(status)

    # ----- groups

    def _set_groups(self, features: Ints) -> None:
        """Make the working set of all groups that have one of the features."""
        problem = self.problem
        column, length, _ = problem.split_features(features)
        pairs = np.unique(column.astype(np.int64) * (problem.order + 1) + length)
        columns, lengths = np.divmod(pairs, problem.order + 1)
        parts = [
            problem.join_features(np.full(problem.n_labels**k, c, np.uint32), int(k), np.arange(problem.n_labels**k))
            for c, k in zip(columns.tolist(), lengths.tolist(), strict=True)
        ]
        self.active: ActiveSet = self.surrogate.compile(np.concatenate([np.zeros(0, np.int64), *parts]))
        sizes = np.array([len(part) for part in parts], np.int64)
        self.first = np.cumsum(sizes) - sizes
        self.group = np.repeat(np.arange(len(sizes)), sizes)
        thresholds = self.penalty.thresholds(self.active.features)
        self.strengths = thresholds[self.first] if len(sizes) else np.zeros(0)

    def _norms(self, x: Floats) -> Floats:
        """Norm of each group of the working set."""
        return np.sqrt(np.bincount(self.group, x**2, len(self.first)))

    def _shrink(self, x: Floats, steps: Floats) -> Floats:
        """Proximal operator: each group towards zero by step * c, or to zero."""
        norms = self._norms(x)
        scale = np.maximum(1.0 - steps * self.strengths / np.maximum(norms, 1e-300), 0.0)
        return x * scale[self.group]

    # ----- evaluation and certificate

    def _evaluate(self, w: Floats) -> _Point:
        value, g = self.surrogate.value_and_gradient(self.active, w)
        return _Point(w, value, g, value + float(self.strengths @ self._norms(w)))

    def _certify(self) -> None:
        """Lower bound from a scan; groups that exceed their strength join the working set."""
        w, features = self.point.w, self.active.features
        nonzero = np.flatnonzero(w)
        _, scan = self.surrogate.scan(self.surrogate.compile(features[nonzero]), w[nonzero], self.limits)
        used = features[np.repeat(self._norms(w) > 0.0, np.bincount(self.group, minlength=len(self.first)))]
        self._set_groups(np.union1d(used, scan.features))
        wide = np.zeros(len(self.active))
        wide[np.searchsorted(self.active.features, features[nonzero])] = w[nonzero]
        self.point = self._evaluate(wide)
        ratios = self._norms(self.point.g) / self.strengths
        self.excess = float(ratios.max(initial=1.0)) - 1.0
        bound = (self.point.value - float(wide @ self.point.g)) / (1.0 + self.excess)
        self.lower_bound = max(self.lower_bound, bound)
        curvature = self.surrogate.curvatures(self.active)
        stays = (ratios > 0.9) | (self._norms(wide) > 0.0)
        if not np.all(stays):
            kept = stays[self.group]
            g, w, curvature = self.point.g[kept], wide[kept], curvature[kept]
            self._set_groups(self.active.features[kept])
            self.point = _Point(w, self.point.value, g, self.point.objective)
        largest = np.zeros(len(self.first))
        np.maximum.at(largest, self.group, curvature)
        # At the optimum the variance of a group in use is about its strength; on the way it may vanish.
        self.curvature = np.maximum(largest, np.maximum(0.1 * self.strengths, 1e-3 * float(largest.max(initial=0.0))))

    def _is_small_violation(self) -> bool:
        """Whether the next scan may close the gap: its bound is only as good as the largest violation."""
        slope = self._slope(self.point, (self._norms(self.point.w) > 0.0)[self.group])
        return bool(np.all(self._norms(slope) <= self.tol * self.strengths))

    def _gap(self) -> float:
        return max(self.point.objective - self.lower_bound, 0.0)

    # ----- minimise on the working set

    def _minimise(self, n_steps: int = 20) -> None:
        """Accelerated steps; momentum starts again when the objective rises."""
        here, ahead, momentum = self.point, self.point, 1.0
        for _ in range(n_steps):
            self._check_limit()
            new = self._step(ahead)
            if new.objective > here.objective:
                if ahead is here:
                    break
                ahead, momentum = here, 1.0
                continue
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            push = (momentum - 1.0) / following
            before, here, momentum = here, new, following
            self.point = here
            ahead = self._evaluate(here.w + push * (here.w - before.w)) if push > 0.0 else here
        self.stiffness *= 0.7

    def _move_on_face(self, n_steps: int = 100) -> None:
        """Quasi-Newton steps on the groups in use: away from zero the norm is smooth."""
        memory = LbfgsMemory(30)
        memory.inverse = 1.0 / self.curvature[self.group]
        used = (self._norms(self.point.w) > 0.0)[self.group]
        for _ in range(n_steps):
            here = self.point
            slope = self._slope(here, used)
            d = memory.direction(slope, used)
            if not len(memory):
                d = -memory.inverse * slope
            decrease = float(d @ slope)
            if decrease >= -1e-12 * here.objective:
                return
            step = 1.0
            while True:
                self._check_limit()
                new = self._evaluate(here.w + step * d)
                if new.objective <= here.objective + 1e-4 * step * decrease:
                    break
                step *= 0.5
                if step < 1e-4:
                    return
            memory.add(new.w - here.w, self._slope(new, used) - slope)
            self.point = new

    def _slope(self, point: _Point, used: Bools) -> Floats:
        """Gradient of the objective on the groups in use."""
        scale = self.strengths / np.maximum(self._norms(point.w), 1e-12)
        return np.where(used, point.g + scale[self.group] * point.w, 0.0)

    def _check_limit(self) -> None:
        if self.surrogate.n_passes >= self.max_passes:
            raise _Stop(Status.MAX_PASSES)

    def _step(self, point: _Point) -> _Point:
        """One proximal step, its lengths shortened until the quadratic model is an upper bound."""
        while True:
            steps = 1.0 / (self.stiffness * self.curvature)
            w = self._shrink(point.w - steps[self.group] * point.g, steps)
            new = self._evaluate(w)
            move = w - point.w
            model = point.value + float(point.g @ move) + 0.5 * float((move**2) @ (1.0 / steps)[self.group])
            if new.value <= model + 1e-12 * (1.0 + abs(point.value)) or self.stiffness > 1e12:
                return new
            self.stiffness *= 2.0

    # ----- reporting

    def _report(self) -> None:
        point = self.point
        record = IterationRecord(
            self.surrogate.n_passes, time.perf_counter() - self.began, point.objective, self._gap(), self.excess,
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
            self._set_groups(features)
            wide = np.zeros(len(self.active))
            wide[np.searchsorted(self.active.features, features)] = w
            self.point = self._evaluate(wide)
            status = Status.CONVERGED if self._gap() <= self.tol * self.point.objective else Status.CHOSEN
        point, nonzero = self.point, np.flatnonzero(self.point.w)
        return SolverResult(
            self.active.features[nonzero], point.w[nonzero], point.objective, self._gap(), self.excess, status,
            self.surrogate.n_passes, time.perf_counter() - self.began, self.history,
            int(np.count_nonzero(self.surrogate.keep)),
        )  # fmt: skip
