"""Cutting planes for the maximum surrogates (m3n, structsvm), which are convex but not smooth.

    min_w  P(w) = sum_i v_i f_i(w) + Omega(w),      f_i(w) = max(0, max_y a_i(y) + w.d_i(y))

First, temperatures: the crf surrogate with loss / T at w / T, times T, is smooth and tends to m3n. Its solution is a
start, and its posterior gives a lower bound for m3n, tight as T tends to 0. Then rounds: minimise with the
outputs found so far (the master problem, `kernels.cuts`), find the best outputs at the new weights (which
give P exactly, and new cuts), scan all candidate features at the master's multipliers (a lower bound on the optimum,
and the features to add). The master is stabilised by rho/2 ||w - centre||^2, the centre being the best weights so far
(a proximal bundle method).

Lower bound: multipliers lam_k >= 0 with sum_k lam_k <= v_i in each example give, for every w,
sum_i v_i f_i(w) >= sum_k lam_k (a_k + w.d_k), and so does theta lam for 0 <= theta <= 1. Hence with A = sum_k lam_k a_k
and g = sum_k lam_k d_k over ALL candidates, P* >= theta A - Omega*(theta g). No smoothing enters it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vcrf import kernels
from vcrf.penalties import FamilyPenalty, need_families
from vcrf.problem.candidates import Candidates
from vcrf.solvers.cooling import Cooling, CoolingPoint
from vcrf.solvers.cut_set import Cuts
from vcrf.solvers.policy import CUTS
from vcrf.solvers.result import SolverResult, Status
from vcrf.solvers.run import Interrupted, RunOptions
from vcrf.structures.outputs import BestOutputs
from vcrf.structures.structure import Scan
from vcrf.surrogates.maximum import MaxChoice
from vcrf.types import Floats, Ints, UInts32

# A tangent with less slope says nothing.
_FLAT = 1e-12


def solve_max(
    problem: Candidates,
    penalty: FamilyPenalty,
    choice: MaxChoice,
    how: RunOptions,
    start: SolverResult | None = None,
    is_group: bool = False,
) -> SolverResult:
    """Minimise a maximum surrogate to a certified relative gap; parameters as in `working_set.solve`.

    With `is_group` the penalty is the group norm, and `penalty.l1` its strengths.
    A pass finds the best output of every example. The gap is that of the surrogate itself.
    """
    from vcrf.solvers.group_cuts import GroupCuttingPlanes
    from vcrf.solvers.simplex_cuts import SimplexCuts

    need_families(penalty, "`solve_max`")
    is_simplex = choice.curve is None and penalty.is_l2_alone and len(problem.weights) <= CUTS.most_simplices
    kind = GroupCuttingPlanes if is_group else SimplexCuts if is_simplex else CuttingPlanes
    return kind(problem, penalty, choice, how).run(start)


def _key_of(i: int, labels: UInts32, slope: float) -> tuple[int, bytes, str]:
    """What makes a cut; tangents of a curve at the same labels are others."""
    return i, labels.tobytes(), f"{slope:.6g}"


class CuttingPlanes(Cooling):
    """One run; `group_cuts` has another penalty."""

    def __init__(self, problem: Candidates, penalty: FamilyPenalty, choice: MaxChoice, how: RunOptions) -> None:
        super().__init__(problem, penalty, choice, how)
        self.objective.check_memory(self.limits)
        self.cuts = Cuts()
        self.known: set[tuple[int, bytes, str]] = set()
        self.active, self.w = self.objective.compile(self.best.features), self.best.w
        self.rho, self.n_null = 0.0, 0
        self.effort = 1
        # Of the last round: what the master is worth, what it promised to gain, by how much the bound is below it.
        self.value, self.promised, self.lost = 0.0, 0.0, 0.0

    # ----- the outer loop

    @property
    def _n_working(self) -> int:
        return len(self.active)

    def _solve(self) -> Status:
        self._first_points(self.start)
        self._cool(self.start)
        self._set_working_set(self.best.features)
        n_idle = 0
        while not self.is_certified:
            self.check_limit()
            gap = self.gap
            n_new = self._round()
            self.report("cuts")
            is_idle = n_new == 0 and self.gap > 0.999 * gap
            n_idle = n_idle + 1 if is_idle else 0
            self.effort = 1 if n_new else min(2 * self.effort, CUTS.most_effort) if is_idle else self.effort
            if n_idle > CUTS.most_vain:
                raise Interrupted(Status.STALLED)
        return Status.CONVERGED

    def _round(self) -> int:
        """Returns how many cuts and features are new."""
        self._solve_master()
        return self._evaluate() + self._certify()

    # ----- the master problem

    def _set_working_set(self, features: Ints) -> None:
        """Compile the features and the cuts' rows on them; the weights of those that stay are kept."""
        old, old_w = self.active.features, self.w
        self.active = self.objective.compile(features)
        self.w = np.zeros(len(features))
        where = np.searchsorted(features, old)
        self.w[where] = old_w
        self.n_idle = np.zeros(len(features), np.int64)
        self._set_rows()

    def _set_rows(self) -> None:
        """CSR rows of all cuts on the working set."""
        rows = self.objective.rows(self.active).of(self.cuts.outputs, self.cuts.slope)
        counts = np.bincount(self.cuts.outputs.example, minlength=len(self.problem.weights))
        self.rows = np.concatenate([[0], np.cumsum(counts)]), *rows

    def _master(self) -> kernels.cuts.Master:
        ptr, row_ptr, index, value = self.rows
        penalty = self.penalty
        centre = np.zeros(len(self.active))
        where = np.searchsorted(self.active.features, self.best.features)
        centre[where] = self.best.w
        return kernels.cuts.Master(
            ptr, row_ptr, index, value, self.cuts.intercept, self.problem.weights,
            penalty.groups_of(self.active.features), penalty.ptr,
            penalty.member_l1, penalty.member_l2, self.rho, centre,
        )  # fmt: skip

    def _solve_master(self) -> None:
        """Multipliers and weights of the cuts found so far, to a part of the decrease that they promise."""
        if self.rho == 0.0:
            self.rho = self._first_rho()
        master, cuts = self._master(), self.cuts
        g = np.zeros(len(self.active))
        kernels.cuts.sums(master, cuts.lam, g)
        weights_of, ascend = self._kernels()
        weights_of(master, g, self.w)
        enough = 0.0
        is_fine = self.penalty.is_smooth_part or self.promised < CUTS.little * self.gap
        for _ in range(CUTS.rounds if is_fine else CUTS.few_rounds):
            gap = ascend(master, cuts.lam, g, self.w, self.effort * CUTS.sweeps, enough)
            value = float(cuts.lam @ cuts.intercept + g @ self.w) + self._penalty_of(self.active.features, self.w)
            dual = value + 0.5 * self.rho * float(np.sum((self.w - master.centre) ** 2))
            enough = 0.2 * max(self.best.objective - dual, 0.1 * self.tol * self.best.objective)
            if gap <= enough:
                break
        self.value = value
        # The cuts' own value at w lies above `value` by the master's gap.
        self.promised = max(self.best.objective - value - gap, 0.0)

    def _kernels(self) -> tuple[Callable[..., None], Callable[..., float]]:
        """What sets weights from multipliers, and what ascends."""
        return kernels.cuts.weights_of, kernels.cuts.ascend

    def _first_rho(self) -> float:
        """Moving a weight by its own size costs as much as its l1 part, or its l2 part without one."""
        thresholds = self.penalty.group_thresholds
        finite = thresholds[np.isfinite(thresholds)]
        typical = float(np.median(finite)) if np.any(finite > 0.0) else float(np.median(self.penalty.member_l2))
        sizes = np.abs(self.best.w[self.best.w != 0.0])
        return typical / float(sizes.mean()) if len(sizes) else typical

    # ----- evaluation and certificate

    def _look_at(self, features: Ints, w: Floats) -> CoolingPoint:
        """Exact objective; the outputs that attain it become cuts."""
        active = self.objective.compile(features)
        found = self.objective.find_best(active, w)
        self._n_new = self._add_cuts(found)
        value = float(self.problem.weights @ found.values)
        return CoolingPoint(features, w.copy(), value + self._penalty_of(features, w))

    def _evaluate(self) -> int:
        """Objective at the master's weights; returns the number of new cuts."""
        before = self.best.objective
        nonzero = np.flatnonzero(self.w)
        point = self._look_at(self.active.features[nonzero], self.w[nonzero])
        if point.objective < self.best.objective:
            self.best = point
        self._adapt(before, point.objective)
        return self._n_new

    def _adapt(self, before: float, now: float) -> None:
        """Set the proximal term for the next round.

        After many steps that did not help the next one must be shorter.
        """
        self.n_null = 0 if now < before else self.n_null + 1
        is_sure = self.choice.kind == "m3n" and self.penalty.is_smooth_part
        rho = CUTS.next_rho(self.rho, self.gap, self.promised, self.lost, before - now, is_sure)
        if rho == self.rho and self.n_null > 5:
            rho, self.n_null = 1.5 * rho, 0
        self.rho = rho

    def _add_cuts(self, found: BestOutputs) -> int:
        new = []
        for i in np.flatnonzero((found.values > 0.0) & (found.slopes > _FLAT)).tolist():
            key = _key_of(i, found.outputs.labels_of(i), found.slopes[i])
            if key not in self.known:
                self.known.add(key)
                new.append(i)
        which = np.array(new, np.int64)
        added = found.outputs.take(which)
        self.cuts = self._without_old(self.cuts).plus(added, found.losses[which], found.slopes[which])
        return len(new)

    def _without_old(self, cuts: Cuts) -> Cuts:
        cuts.age = np.where(cuts.lam > 0.0, 0, cuts.age + 1)
        if np.count_nonzero(cuts.age > CUTS.max_age) < 0.3 * len(cuts):
            return cuts
        dropped = np.flatnonzero(cuts.age > CUTS.max_age)
        for c in dropped.tolist():
            self.known.discard(_key_of(int(cuts.outputs.example[c]), cuts.outputs.labels_of(c), cuts.slope[c]))
        return cuts.take(np.flatnonzero(cuts.age <= CUTS.max_age))

    def _certify(self) -> int:
        """Lower bound from a scan of all candidates; returns how many joined the working set."""
        cuts = self.cuts
        found, scan = self._bound(
            lambda limits: self.objective.scan_mixture(cuts.mixture, limits), float(cuts.lam @ cuts.intercept)
        )
        self.raise_bound(found.lower_bound, found.excess)
        self.lost = self.value - found.lower_bound
        return self._next_working_set(scan)

    def _next_working_set(self, scan: Scan) -> int:
        """Features with a weight, and all that exceed their threshold, or did a few rounds ago."""
        old = self.active.features
        wanted = np.union1d(np.union1d(old[self.w != 0.0], self.best.features), scan.features)
        # Multipliers of outputs that tie may change places for ever if each leaves no trace of the other.
        self.n_idle = np.where(np.isin(old, wanted, assume_unique=True), 0, self.n_idle + 1)
        stays = self.n_idle <= CUTS.max_idle
        new = np.setdiff1d(wanted, old, assume_unique=True)
        if len(new) or np.count_nonzero(stays) < 0.7 * len(old):
            self.active, self.w, idle = self.objective.compile(old[stays]), self.w[stays], self.n_idle[stays]
            features = np.union1d(old[stays], new)
            self._set_working_set(features)
            self.n_idle[np.searchsorted(features, old[stays])] = idle
        else:
            self._set_rows()
        return len(new)
