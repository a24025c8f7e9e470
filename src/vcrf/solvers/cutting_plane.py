"""Cutting planes for the maximum surrogates (m3n, structsvm), which are convex but not smooth.

    min_w  P(w) = sum_i v_i f_i(w) + Omega(w),      f_i(w) = max(0, max_y a_i(y) + w.d_i(y))

First, temperatures: the crf surrogate with loss / T at w / T, times T, is smooth and tends to m3n. Its solution is a
start, and its posterior gives a lower bound for m3n, tight as T tends to 0. Then rounds: minimise with the label
sequences found so far (the master problem, `kernels.cuts`), find the best label sequences at the new weights (which
give P exactly, and new cuts), scan all candidate features at the master's multipliers (a lower bound on the optimum,
and the features to add). The master is stabilised by rho/2 ||w - centre||^2, the centre being the best weights so far
(a proximal bundle method).

Lower bound: multipliers lam_k >= 0 with sum_k lam_k <= v_i in each sentence give, for every w,
sum_i v_i f_i(w) >= sum_k lam_k (a_k + w.d_k), and so does theta lam for 0 <= theta <= 1. Hence with A = sum_k lam_k a_k
and g = sum_k lam_k d_k over ALL candidates, P* >= theta A - Omega*(theta g). No smoothing enters it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.penalties import FamilyPenalty
from vcrf.problem import Problem
from vcrf.solvers.cooling import MAX_PASSES, Cooling, Point
from vcrf.solvers.cut_set import Cuts, firing_of_cuts, rows_of_cuts
from vcrf.solvers.result import Callback, SolverResult, Status, Watch
from vcrf.solvers.run import Interrupted
from vcrf.structures.mixture import Mixture
from vcrf.structures.structure import Scan
from vcrf.surrogates.maximum import MaxChoice
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.kernels.margin import Best

# A cut that has had no multiplier for so many rounds is dropped.
_MAX_AGE = 60
# A feature without weight stays in the working set for so many rounds.
_MAX_IDLE = 5
# Times so many sweeps, with an l2 part or near the end, and else: there, new cuts are cheaper than an exact master.
_MASTER_ROUNDS = 20, 4
_MASTER_SWEEPS = 11
# Where a round has found nothing new, only the master can be wrong: the next one makes twice as many sweeps, up to so
# many times.
_MOST_EFFORT = 1024
# A step may be longer next time if it gained this share of what the master promised; m3n with an l2 part: if it gained.
_GOOD_STEP = 0.3
# Shares of the gap: a master that promises less, with a bound that loses more, leaves it to the multipliers.
_LITTLE, _LOST = 0.15, 0.3

# Sentences up to which block ascent keeps its label sequences and their inner products, about a megabyte each.
_MOST_SIMPLICES = 3_000


def solve_max(
    problem: Problem,
    penalty: FamilyPenalty,
    choice: MaxChoice,
    *,
    tol: float = 1e-2,
    max_passes: int | None = None,
    threads: int = 1,
    start: SolverResult | None = None,
    callback: Callback | None = None,
    watch: Watch | None = None,
    is_group: bool = False,
    lattice: str = "auto",
) -> SolverResult:
    """Minimise a maximum surrogate to a certified relative gap; parameters as in `working_set.solve`.

    With `is_group` the penalty is the group norm, and `penalty.l1` its strengths.
    A pass finds the best label sequence of every sentence. The gap is that of the surrogate itself.
    """
    from vcrf.solvers.group_cuts import GroupCuttingPlanes
    from vcrf.solvers.simplex_cuts import SimplexCuts

    is_simplex = penalty.is_l2_alone and problem.text.n_sentences <= _MOST_SIMPLICES
    kind = GroupCuttingPlanes if is_group else SimplexCuts if is_simplex else CuttingPlanes
    return kind(problem, penalty, choice, tol, max_passes or MAX_PASSES, threads, callback, watch, lattice).run(start)


class CuttingPlanes(Cooling):
    """One run; `group_cuts` has another penalty."""

    def __init__(
        self,
        problem: Problem,
        penalty: FamilyPenalty,
        choice: MaxChoice,
        tol: float,
        max_passes: int,
        threads: int,
        callback: Callback | None,
        watch: Watch | None,
        lattice: str,
    ) -> None:
        super().__init__(problem, penalty, choice, tol, max_passes, threads, callback, watch, lattice)
        self.objective.check_memory(self.limits)
        self.cuts = Cuts()
        self.known: set[tuple[int, bytes]] = set()
        self.active, self.w = self.objective.compile(self.best.features), self.best.w
        self._room = 0
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
            self.effort = 1 if n_new else min(2 * self.effort, _MOST_EFFORT) if is_idle else self.effort
            if n_idle > 30:
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
        firing = firing_of_cuts(self.problem, self.active)
        rows = rows_of_cuts(self.problem, firing, len(self.active), self.cuts, self._room)
        self._room = int(1.1 * len(rows[1]))
        counts = np.bincount(self.cuts.sentence, minlength=self.problem.text.n_sentences)
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
        is_fine = self.penalty.is_smooth_part or self.promised < _LITTLE * self.gap
        for _ in range(_MASTER_ROUNDS[0 if is_fine else 1]):
            gap = ascend(master, cuts.lam, g, self.w, self.effort * _MASTER_SWEEPS, enough)
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

    def _look_at(self, features: Ints, w: Floats) -> Point:
        """Exact objective; the sequences that attain it become cuts."""
        active = self.objective.compile(features)
        found = self.objective.find_best(active, w)
        self._n_new = self._add_cuts(found)
        value = float(self.problem.weights @ found.values)
        return Point(features, w.copy(), value + self._penalty_of(features, w))

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

        Where the master has little to promise beside the gap, and the bound is far below its value, the weights
        are good and the multipliers are not: with L1 they miss |g| <= c by rho |w - centre|. Then rho has to fall.
        Else a step that kept its promise may be longer next time; after many that did not help it must be shorter.
        """
        self.n_null = 0 if now < before else self.n_null + 1
        is_sure = self.choice.kind == "m3n" and self.penalty.is_smooth_part
        if self.promised < _LITTLE * self.gap and self.lost > _LOST * self.gap:
            self.rho *= 0.9
        elif before - now > (0.0 if is_sure else _GOOD_STEP * self.promised):
            self.rho *= 0.7
        elif self.n_null > 5:
            self.rho, self.n_null = 1.5 * self.rho, 0

    def _add_cuts(self, found: Best) -> int:
        ptr = self.problem.sent_ptr
        new = []
        for i in np.flatnonzero(found.values > 0.0).tolist():
            key = i, found.labels[ptr[i] : ptr[i + 1]].tobytes()
            if key not in self.known:
                self.known.add(key)
                new.append(i)
        which = np.array(new, np.int64)
        labels = [found.labels[ptr[i] : ptr[i + 1]] for i in new]
        lengths = [len(part) for part in labels]
        added = Cuts(
            which,
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.concatenate([np.zeros(0, np.uint32), *labels]),
            found.losses[which],
            found.slopes[which],
            np.zeros(len(which)),
            np.zeros(len(which), np.int64),
        )
        self.cuts = self._without_old(self.cuts).plus(added)
        return len(new)

    def _without_old(self, cuts: Cuts) -> Cuts:
        cuts.age = np.where(cuts.lam > 0.0, 0, cuts.age + 1)
        if np.count_nonzero(cuts.age > _MAX_AGE) < 0.3 * len(cuts):
            return cuts
        dropped = np.flatnonzero(cuts.age > _MAX_AGE)
        for c in dropped.tolist():
            labels = cuts.labels[cuts.label_ptr[c] : cuts.label_ptr[c + 1]]
            self.known.discard((int(cuts.sentence[c]), labels.tobytes()))
        return cuts.take(np.flatnonzero(cuts.age <= _MAX_AGE))

    def _certify(self) -> int:
        """Lower bound from a scan of all candidates; returns how many joined the working set."""
        cuts = self.cuts
        mixture = Mixture(cuts.sentence, cuts.label_ptr, cuts.labels, cuts.lam * cuts.slope)
        found, scan = self._bound(
            lambda limits: self.objective.scan_mixture(mixture, limits), float(cuts.lam @ cuts.intercept)
        )
        self.raise_bound(found.lower_bound, found.excess)
        self.lost = self.value - found.lower_bound
        return self._next_working_set(scan)

    def _next_working_set(self, scan: Scan) -> int:
        """Features with a weight, and all that exceed their threshold, or did a few rounds ago."""
        old = self.active.features
        wanted = np.union1d(np.union1d(old[self.w != 0.0], self.best.features), scan.features)
        # Multipliers of sequences that tie may change places for ever if each leaves no trace of the other.
        self.n_idle = np.where(np.isin(old, wanted, assume_unique=True), 0, self.n_idle + 1)
        stays = self.n_idle <= _MAX_IDLE
        new = np.setdiff1d(wanted, old, assume_unique=True)
        if len(new) or np.count_nonzero(stays) < 0.7 * len(old):
            self.active, self.w, idle = self.objective.compile(old[stays]), self.w[stays], self.n_idle[stays]
            features = np.union1d(old[stays], new)
            self._set_working_set(features)
            self.n_idle[np.searchsorted(features, old[stays])] = idle
        else:
            self._set_rows()
        return len(new)
