"""The group norm: all labels of an attribute in a family come in together or not at all.

    min_w  F(w) + sum over groups G of c_G ||w_G||_2

A group is a column with all its tag patterns of one length; c_G is the strength of its family, of the cheapest one if
twins of several families share the column (the merged penalty is then the smallest, as for L1).
The certificate is that of L1 with norms of groups: P* >= theta (F(w) - w.g), theta = 1 / max(1, max_G ||g_G|| / c_G)
over ALL groups.

On a working set of groups, quasi-Newton steps on the forward-backward envelope (PANOC: Stella, Themelis, Sopasakis and
Patrinos, 2017). With z(w) the proximal step from w in a metric M (one number a group, from the curvatures of the last
scan), the envelope is the model that z minimises:

    E(w) = F(w) + g.(z - w) + 1/2 (z - w)' M (z - w) + sum_G c_G ||z_G||

Where M bounds the curvature, E has the minimum of the objective, P(z(w)) <= E(w), and no kinks: a group may come and go
along a quasi-Newton step. (Steps on the objective itself stop at kinks: on Tamil the gap stayed at a half.)
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
from vcrf.types import Floats, Ints

_MAX_PASSES = 10_000
_MEMORY = 30
# Times the largest weight.
_LONGEST_STEP = 10.0
# Steps between two looks at the metric and the gap.
_PERIOD = 10


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
    if problem.is_partial:
        raise InputError("norm='group' needs the label of every token, some are left open: use norm='l1' or 'elastic'.")
    from threadpoolctl import threadpool_limits

    # One BLAS thread, as in `working_set.solve`.
    with threadpool_limits(1):
        return _Run(problem, penalty, choice, tol, max_passes or _MAX_PASSES, threads, callback, watch).run(start)


class _Point(NamedTuple):
    """Weights on the working set, with value and gradient of the surrogate and the objective."""

    w: Floats
    value: float
    g: Floats
    objective: float


class _Envelope(NamedTuple):
    """A point with its envelope's value, its proximal step and M (w - step), which is zero at the optimum."""

    point: _Point
    value: float
    step: Floats
    residual: Floats


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
        self.memory = LbfgsMemory(_MEMORY)
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
        n_steps, n_idle, best_gap = 30, 0, np.inf
        try:
            while True:
                self._certify()
                self._report()
                if self._gap() <= self.tol * self.point.objective:
                    break
                before, gap = self.point.objective, self._gap()
                self._minimise(n_steps, max(0.1 * gap / before, 0.5 * self.tol))
                n_steps = min(int(1.3 * n_steps), 300)
                is_idle = before - self.point.objective <= 1e-15 * before and gap >= best_gap
                n_idle, best_gap = n_idle + 1 if is_idle else 0, min(gap, best_gap)
                if n_idle > 8:
                    raise _Stop(Status.STALLED)
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
        self.curvature = np.maximum(largest, np.maximum(1e-3 * self.strengths, 1e-8 * float(largest.max(initial=0.0))))

    def _gap(self) -> float:
        return max(self.point.objective - self.lower_bound, 0.0)

    # ----- minimise on the working set

    def _minimise(self, n_steps: int, target: float) -> None:
        """Quasi-Newton steps until the gap would be below the target if no group outside were violated."""
        self.memory.clear()
        here = self._soften()
        for i in range(1, n_steps + 1):
            here = self._move(here)
            if i % _PERIOD == 0 or i == n_steps:
                self._check_limit()
                new = self._evaluate(here.step)
                if new.objective < self.point.objective:
                    self.point = new
                if self._gap_on_working_set() <= target * self.point.objective:
                    return
                if self._is_too_soft(here, new):
                    here = self._stiffen(here.point)

    def _soften(self) -> _Envelope:
        """The envelope at the best point, in a metric as soft as seems safe."""
        self.stiffness *= 0.7
        here = self._envelope(self.point)
        while self._is_too_soft(here, self._evaluate(here.step)):
            self._check_limit()
            here = self._stiffen(here.point)
        return here

    def _stiffen(self, point: _Point) -> _Envelope:
        self.stiffness *= 2.0
        self.memory.clear()
        return self._envelope(point)

    def _is_too_soft(self, here: _Envelope, new: _Point) -> bool:
        """Whether the objective at the proximal step exceeds the model that the step minimises."""
        return new.objective > here.value + 1e-12 * (1.0 + abs(here.value)) and self.stiffness < 1e12

    def _envelope(self, point: _Point) -> _Envelope:
        metric = self.stiffness * self.curvature
        wide = metric[self.group]
        step = self._shrink(point.w - point.g / wide, 1.0 / metric)
        move = step - point.w
        model = point.value + float(point.g @ move) + 0.5 * float(move**2 @ wide)
        return _Envelope(point, model + float(self.strengths @ self._norms(step)), step, -wide * move)

    def _move(self, here: _Envelope) -> _Envelope:
        """The quasi-Newton step, or between it and the proximal step, so that the envelope falls."""
        self.memory.inverse = 1.0 / (self.stiffness * self.curvature[self.group])
        proximal = here.step - here.point.w
        d = self.memory.direction(here.residual, None) if len(self.memory) else proximal
        # Curvatures vanish where posteriors are saturated: such steps would leave the range of numbers.
        longest = _LONGEST_STEP * (1.0 + float(np.abs(here.point.w).max(initial=0.0)))
        d, proximal = (x * min(1.0, longest / max(float(np.abs(x).max(initial=0.0)), 1e-300)) for x in (d, proximal))
        share = 1.0
        while True:
            self._check_limit()
            new = self._envelope(self._evaluate(here.point.w + share * d + (1.0 - share) * proximal))
            if new.value <= here.value + 1e-4 * float(here.residual @ proximal) or share == 0.0:
                break
            share = 0.4 * share if share > 0.05 else 0.0
        if new.value < self.lower_bound:
            # No envelope is below the optimum unless the metric is too soft.
            return self._stiffen(self.point)
        self.memory.add(new.point.w - here.point.w, new.residual - here.residual)
        return new

    def _gap_on_working_set(self) -> float:
        point = self.point
        worst = float((self._norms(point.g) / self.strengths).max(initial=1.0))
        return point.objective - (point.value - float(point.w @ point.g)) / worst

    def _check_limit(self) -> None:
        if self.surrogate.n_passes >= self.max_passes:
            raise _Stop(Status.MAX_PASSES)

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
