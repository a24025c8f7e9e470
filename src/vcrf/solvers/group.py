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

from typing import NamedTuple

import numpy as np

from vcrf.errors import BudgetError, InputError
from vcrf.penalties import FamilyPenalty, need_families
from vcrf.problem import Candidates, PartSpace
from vcrf.solvers.group_model import Groups, QuasiNewtonModel
from vcrf.solvers.owlqn import LbfgsMemory
from vcrf.solvers.policy import GROUP_STEPS
from vcrf.solvers.result import SolverResult, Status
from vcrf.solvers.run import Interrupted, Run, RunOptions, Standing
from vcrf.solvers.state import rounding
from vcrf.structures.structure import FeaturePlan, Scan
from vcrf.surrogates.smooth import Point, Surrogate
from vcrf.types import Floats, Ints
from vcrf.workers import one_blas_thread

MAX_FEATURES = 5_000_000


def solve_group(
    problem: Candidates,
    penalty: FamilyPenalty,
    choice: Surrogate,
    how: RunOptions,
    start: SolverResult | None = None,
) -> SolverResult:
    """Minimise a smooth surrogate with the group norm; `penalty.l1` has the strengths. Else as `working_set.solve`."""
    need_families(penalty, "`solve_group`")
    if any(problem.observed_for(k) for k in problem.kinds):
        raise InputError("`norm='group'` takes all labels of an attribute together: use `candidates='all'`.")
    with one_blas_thread():
        return _GroupRun(problem, penalty, choice, how).run(start)


def _check_size(space: PartSpace, kinds: Ints) -> None:
    """Refuse more features than there is room for; a group has all assignments of its kind of parts."""
    n_features = sum(space.size(k) for k in kinds.tolist())
    if n_features > MAX_FEATURES:
        raise BudgetError(
            f"`norm='group'` takes all {max(space.sizes):,} patterns of a length together: "
            f"{len(kinds):,} groups of up to {int(kinds.max())} labels are {n_features:,} features; the budget is "
            f"{MAX_FEATURES:,}. Use greater strengths, a smaller `tags`, or `norm='l1'`, which takes them one by one."
        )


class _Point(NamedTuple):
    """Weights on the working set, with value and gradient of the surrogate and the objective."""

    w: Floats
    value: float
    g: Floats
    objective: float


def _point(groups: Groups, found: Point) -> _Point:
    return _Point(found.w, found.value, found.gradient, found.value + groups.penalty(found.w))


class _GroupRun(Run):
    def __init__(self, problem: Candidates, penalty: FamilyPenalty, choice: Surrogate, how: RunOptions) -> None:
        self.problem, self.penalty = problem, penalty.bind(problem)
        strengths = {k: self.penalty.column_thresholds(k) for k in problem.kinds}
        if not all(np.all(limit > 0.0) for limit in strengths.values()):
            raise InputError("Some family has strength 0: with `norm='group'` every strength must be positive.")
        self.column_strengths = strengths
        # A group whose norm exceeds c has an entry above c / sqrt(its size).
        self.limits = {k: limit / problem.space.size(k) ** 0.5 for k, limit in strengths.items()}
        mass = choice.mass(problem)
        # ||g_G|| <= sqrt(2) mass: at each occurrence the marginals and the truth are two distributions.
        keep = np.zeros(len(problem.columns), bool)
        for limit in strengths.values():
            keep |= np.sqrt(2.0) * mass > limit
        self.objective = choice.build(problem, keep, how.threads, how.lattice)
        if not self.objective.is_convex:
            raise InputError(
                "`norm='group'` needs the label of every token, some are left open: use `norm='l1'` or 'elastic'."
            )
        super().__init__(self.objective, how)
        self.memory = LbfgsMemory(GROUP_STEPS.memory)

    def standing(self) -> Standing:
        return Standing(self.active.features, self.point.w, self.point.objective, len(self.active))

    def _begin(self, start: SolverResult | None) -> None:
        none = np.zeros(0, np.int64), np.zeros(0)
        self._set(*(none if start is None else (start.features, start.weights)))

    def _set(self, features: Ints, weights: Floats) -> None:
        """Stand at weights of some features, as far as there are groups for them."""
        self.active, self.groups = self._working_set(features)
        w = np.zeros(len(self.active))
        where = np.minimum(np.searchsorted(self.active.features, features), max(len(w) - 1, 0))
        is_there = self.active.features[where] == features if len(w) else np.zeros(len(where), bool)
        w[where[is_there]] = weights[is_there]
        self.point = self._evaluate(self.active, self.groups, w)

    def _solve(self) -> Status:
        n_steps, n_idle, best_gap = 30, 0, np.inf
        while True:
            self._certify()
            self.report("group")
            if self.is_certified:
                return Status.CONVERGED
            before, gap = self.point.objective, self.gap
            self._minimise(n_steps, max(0.1 * gap / before, 0.8 * self.tol))
            n_steps = min(int(1.3 * n_steps), 300)
            is_idle = before - self.point.objective <= 1e-15 * before and gap >= best_gap
            n_idle, best_gap = n_idle + 1 if is_idle else 0, min(gap, best_gap)
            if n_idle > 8:
                raise Interrupted(Status.STALLED)

    def _salvage(self, status: Status) -> Status:
        self.memory.clear()  # an interruption may have left it with the working set before
        self._certify()
        return status

    def _adopt(self, features: Ints, w: Floats) -> None:
        self._set(features, w)

    # ----- groups

    def _working_set(self, features: Ints) -> tuple[FeaturePlan, Groups]:
        """The working set of all groups that have one of the features."""
        space = self.problem.space
        column, kind, _ = space.split(features)
        pairs = np.unique(column.astype(np.int64) * (len(space.sizes) + 1) + kind)
        columns, kinds = np.divmod(pairs, len(space.sizes) + 1)
        _check_size(space, kinds)
        parts = [
            space.join(np.full(space.size(k), c, np.uint32), k, np.arange(space.size(k), dtype=np.uint32))
            for c, k in zip(columns.tolist(), kinds.tolist(), strict=True)
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

    def _evaluate(self, active: FeaturePlan, groups: Groups, w: Floats) -> _Point:
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
        self.raise_bound(bound, excess)
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

    # ----- minimise on the working set

    def _minimise(self, n_steps: int, target: float) -> None:
        """Steps until the gap would be below the target if no group outside were violated."""
        for _ in range(n_steps):
            if self._gap_on_working_set() <= target * self.point.objective:
                break
            self.check_limit()
            if not self._step():
                self._settle(target)
                break

    def _step(self) -> bool:
        """One proximal quasi-Newton step; whether the objective could be lowered."""
        point, d = self.point, self._direction()
        predicted = float(point.g @ d) + self.groups.penalty(point.w + d) - self.groups.penalty(point.w)
        if -predicted <= GROUP_STEPS.blunt * rounding(point.objective, point.w):
            return False
        step, refusal = 1.0, None
        while step > 1e-4:
            new, refusal = self._try_weights(point.w + step * d)
            if new.objective <= point.objective + 1e-4 * step * predicted:
                self._move(new)
                return True
            step *= 0.4
        if refusal is not None and not len(self.memory):
            # The shortest step of all could not be evaluated either, in the direction of the gradient.
            raise refusal
        self.memory.clear()
        return False

    def _settle(self, target: float) -> None:
        """Steps of the model as they are, where objectives are rounded and judge none; the closest point is kept.

        Gradients are good to far more digits there than differences of objectives: the pairs go on being learnt.
        """
        closest, least, n_idle = self.point, self._gap_on_working_set(), 0
        highest = closest.objective + 100.0 * rounding(closest.objective, closest.w)
        try:
            while least > target * closest.objective and n_idle < GROUP_STEPS.idle:
                self.check_limit()
                new, _ = self._try_weights(self.point.w + self._direction())
                if not new.objective <= highest:
                    break
                self._move(new)
                gap = self._gap_on_working_set()
                n_idle = 0 if gap <= 0.9 * least else n_idle + 1
                if gap < least:
                    closest, least = new, gap
        finally:
            self.point = closest

    def _move(self, new: _Point) -> None:
        self.memory.add(new.w - self.point.w, new.g - self.point.g)
        self.point = new

    def _direction(self) -> Floats:
        """The minimiser of the model of as many of the newest pairs as have one; without any B is a diagonal."""
        steps, changes = self.memory.pairs()
        while True:
            model = QuasiNewtonModel(self.groups, self.curvature, steps, changes)
            d = model.direction(self.point.g, self.point.w)
            if d is not None:
                return self._of_bounded_length(d)
            older = (len(steps) + 1) // 2
            steps, changes = steps[older:], changes[older:]

    def _of_bounded_length(self, d: Floats) -> Floats:
        """Curvatures vanish where posteriors are saturated: such steps would leave the range of numbers."""
        longest = GROUP_STEPS.longest * (1.0 + float(np.abs(self.point.w).max(initial=0.0)))
        return d * min(1.0, longest / max(float(np.abs(d).max(initial=0.0)), 1e-300))

    def _gap_on_working_set(self) -> float:
        return self._gap_at(self.point)

    def _gap_at(self, point: _Point) -> float:
        worst = float((self.groups.norms(point.g) / self.groups.strengths).max(initial=1.0))
        return point.objective - (point.value - float(point.w @ point.g)) / worst
