"""Working-set solver: solve on a few features, scan all candidates, add the violators, until the gap certifies.

    min_w  F(w) + sum over families of l1_k ||w_k||_1 + l2_k ||w_k||^2 / 2

Rounds: minimise on the working set, scan every candidate in one pass without storing it (a lower bound on the
optimum comes with the scan), add the violators, drop the idle. Exact at the end: what was never in the working
set has been seen to satisfy the optimality conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vcrf.errors import BudgetError
from vcrf.penalties import FeaturePenalty, Penalty
from vcrf.problem import Candidates, Problem
from vcrf.solvers.certificate import certify, certify_groups
from vcrf.solvers.dual_start import is_usable, rounds, strengths_of
from vcrf.solvers.newton_phase import NewtonPhase
from vcrf.solvers.policy import MAX_PASSES, STEPS, Phase
from vcrf.solvers.quasi_newton_phase import QuasiNewtonPhase
from vcrf.solvers.result import Callback, SolverResult, Status, Watch
from vcrf.solvers.run import Interrupted, Run, RunOptions, Standing
from vcrf.solvers.settling import Settling
from vcrf.solvers.state import State
from vcrf.structures.structure import Scan
from vcrf.surrogates.choice import crf
from vcrf.surrogates.smooth import Point, Surrogate
from vcrf.types import Bools, Floats, Ints
from vcrf.workers import one_blas_thread

# Without an l1 part every candidate carries weight and must be held in memory.
MAX_DENSE_CANDIDATES = 50_000_000


def solve(
    problem: Candidates,
    penalty: Penalty,
    *,
    costs: Floats | None = None,
    tol: float = 1e-3,
    max_passes: int | None = None,
    threads: int = 1,
    start: SolverResult | None = None,
    callback: Callback | None = None,
    screen: bool = True,
    settle: float | None = None,
    settled_gap: float | None = None,
    watch: Watch | None = None,
    lattice: str = "auto",
    surrogate: Surrogate | None = None,
    dual_start: bool = True,
) -> SolverResult:
    """Minimise to a certified relative gap.

    Parameters
    ----------
    problem : Candidates, a `Problem` of sentences unless a surrogate is given
    penalty : FamilyPenalty, or one of another form
    costs : (n_sentences,) loss of one wrong label in each sentence (1/length is the normalised Hamming loss)
    tol : stop when gap <= tol * objective
    max_passes : stop after so many passes over the data (None: 20,000; 200 where there is no certificate); the
        last scan comes on top
    threads : the result does not depend on it
    start : warm start, for instance the result at neighbouring strengths
    callback : see `Callback`; Ctrl-C has the same effect as its returning True
    screen : leave out columns whose counts show that they stay at zero (False: keep all, for testing)
    settle : where Newton steps are out of reach (too many weights, or dense above order 2), stop when ten steps
        decrease the objective by less than a tenth of this share (None: a hundred passes by less than tol / 100, and
        the gap has to rest too)
    settled_gap : with `settle`, Newton steps wait until the others have settled by that rule, and are taken only where
        the relative gap is then above this (None: they do not wait)
    watch : see `Watch`; its preferred weights are certified and returned
    lattice : "dense", "patterns" or "auto", see `structures.chain.is_dense`
    surrogate : which one, and its loss (None: crf with `costs`)
    dual_start : with an l2 part and no start close by, begin by dual ascent where there is one; each of its rounds
        counts as a pass
    """
    has_to_settle = settle is not None and settle > 0.0
    gap_moves, settle = (STEPS.gap_moves, 0.01 * tol) if settle is None else (0.0, settle)
    with one_blas_thread():
        choice = crf(problem, costs) if surrogate is None else surrogate
        how = RunOptions(tol, max_passes, threads, callback, watch, lattice)
        run = _WorkingSetRun(
            problem, penalty.bind(problem), choice, how, screen, settle, gap_moves,
            settled_gap if has_to_settle else None, has_to_settle, dual_start,
        )  # fmt: skip
        return run.run(start)


def solve_path(
    problem: Problem,
    penalties: Sequence[Penalty],
    *,
    tol: float = 1e-3,
    threads: int = 1,
    **options: object,
) -> Iterator[SolverResult]:
    """Solve for each penalty in turn, each from the solution before: order them from strong to weak.

    An interrupted point is the last one. `VCRF.path` does the same for a grid of strengths.
    """
    result: SolverResult | None = None
    for penalty in penalties:
        result = solve(problem, penalty, tol=tol, threads=threads, start=result, **options)  # type: ignore[arg-type]
        yield result
        if result.status is Status.INTERRUPTED:
            return


class _WorkingSetRun(Run):
    """One call of `solve`."""

    def __init__(
        self,
        problem: Candidates,
        penalty: FeaturePenalty,
        choice: Surrogate,
        how: RunOptions,
        screen: bool,
        settle: float,
        gap_moves: float,
        settled_gap: float | None,
        has_to_settle: bool,
        dual_start: bool,
    ) -> None:
        self.problem, self.penalty, self.settle, self.gap_moves = problem, penalty, settle, gap_moves
        self.limits = {k: penalty.column_thresholds(k) for k in problem.kinds}
        self.is_penalised = penalty.is_smooth_part or all(np.all(limit > 0.0) for limit in self.limits.values())
        mass = choice.mass(problem)
        keep = self._can_carry_weight(mass) if screen else np.ones(len(problem.columns), bool)
        self.objective = choice.build(problem, keep, how.threads, how.lattice)
        super().__init__(self.objective, how, MAX_PASSES if self.is_penalised else 200)
        # Where the objective is not convex a stationary point is all there is.
        self.is_certifiable = self.is_penalised and self.objective.is_convex
        # Scans that may still leave out parts of larger kinds than the working set's by two or more.
        self.n_short_scans = problem.order
        self.variances: Any = None
        self.quasi_newton = QuasiNewtonPhase(self)
        self.may_ascend = dual_start and penalty.squares is not None
        self.mark = (0, np.inf, np.inf)  # passes, objective and gap when the decrease was last looked at
        self.settled_gap = settled_gap
        self.newton = NewtonPhase(self, has_to_settle, settled_gap is not None)
        self.settling = Settling(settle if has_to_settle else 0.0)
        self.excess = np.inf
        self.n_vain, self.least_gap = 0, np.inf
        self.refusal: BudgetError | None = None  # why the last trial could not be evaluated

    def _can_carry_weight(self, mass: Floats) -> Bools:
        """Count screening: |gradient| <= column mass at every w, so a smaller mass than c_j means w_j = 0."""
        keep = np.zeros(len(self.problem.columns), bool)
        for limit in self.limits.values():
            keep |= mass > limit
        return keep

    # ----- the outer loop

    def standing(self) -> Standing:
        return _standing(self.state)

    def _begin(self, start: SolverResult | None) -> None:
        none = np.zeros(0, np.int64), np.zeros(0)
        self.state = self._best = self._first_state(*(none if start is None else (start.features, start.weights)))

    def _solve(self) -> Status:
        n_idle, best_gap = 0, np.inf
        if self.may_ascend and not self._is_near(self.state):
            self._ascend()
        is_rough = self.penalty.is_smooth_part and len(self.state.plan) == 0
        n_steps = STEPS.first_steps if is_rough else STEPS.later_steps
        while True:
            self.state, point, scan = self._certify(self.state)
            self.report("scan")
            if self.is_certified:
                return Status.CONVERGED
            if not self.objective.is_convex and self.violation <= self.tol:
                return Status.STATIONARY
            self.check_limit()
            changes = self._changes(self.state, scan)
            if changes is None:
                self.quasi_newton.scale(self.state, self.objective.curvature(point, self.variances))
            del point, scan  # a pass has a number for each label at each token: it goes before the next one comes
            if changes is not None:
                self.state = self._change_working_set(self.state, *changes)
            before = self.state.objective
            self.state = self._minimise(self.state, n_steps)
            if self.is_certified:
                # The bound of the last scan is enough.
                self.report("step")
                return Status.CONVERGED
            self._check_settled(self.state)
            # Near the optimum the objective is flat in double precision while the gap still shrinks.
            is_idle = before - self.state.objective <= 1e-15 * before and not self.gap < 0.9 * best_gap
            n_idle = n_idle + 1 if is_idle else 0
            best_gap = min(best_gap, self.gap)
            if n_idle > 8:
                raise Interrupted(Status.STALLED)
            n_steps = min(max(int(1.3 * n_steps), STEPS.later_steps), STEPS.most_steps)

    def _is_near(self, state: State) -> bool:
        """Whether a warm start is so close to the optimum that steps from there come sooner to its end."""
        if not np.any(state.w):
            return False
        self.n_short_scans = 0
        self.state, _, _ = self._certify(state)
        return self.is_certifiable and self.gap <= STEPS.near * self.state.objective

    def _ascend(self) -> None:
        """Begin where dual ascent ends, if there is one; interrupted, where it is, unless there was a start."""
        strengths = strengths_of(self.problem, self.penalty)
        ascent = None if strengths is None else self.objective.ascent(strengths)
        if ascent is None:
            return
        is_over = not np.any(self.state.w)
        try:
            for _ in rounds(ascent):
                self.objective.n_passes += 1
                self.check_limit()
            is_over = True
        finally:
            features, w = ascent.weights()
            if is_over and is_usable(w):
                self.state = self._best = self._first_state(features, w)
                self.quasi_newton.on_face = True

    def _minimise(self, state: State, n_steps: int) -> State:
        """Newton steps near the optimum; else quasi-Newton steps, and Newton's on the most curved weights."""
        self.newton.is_large_round = False
        if self.newton.decide(state) is Phase.NEWTON:
            return self.newton.minimise(state)
        state = self.quasi_newton.minimise(state, self._target(state), n_steps)
        is_worth = self.settling.share == 0.0 and self.newton.is_worth_polishing(state)
        return self.newton.polish(state) if is_worth else state

    def _salvage(self, status: Status) -> Status:
        self.n_short_scans = 0
        self.state, _, _ = self._certify(self._best if self._best.objective <= self.state.objective else self.state)
        return Status.UNCERTIFIED if status is Status.STALLED and not self.is_penalised else status

    def _adopt(self, features: Ints, w: Floats) -> None:
        self.n_short_scans = 0
        self.state, _, _ = self._certify(self._compile(features, w))

    def _check_settled(self, state: State) -> None:
        """Stop where only Newton steps could close the gap, and they cannot be had.

        With labels left open there is no gap to close: the run ends at a stationary point.
        """
        if not self.objective.is_convex:
            return
        if self.settling.is_over and self.has_to_settle(state):
            self._end_settled()
            return
        now = self.objective.n_passes, state.objective, self.gap_at(state.objective)
        n_free = int(np.count_nonzero((state.w != 0.0) | (state.pseudo != 0.0)))
        if self.newton.is_large_round:
            # Their steps take seconds: what does not come closer with several of them will not.
            is_closer = now[2] < 0.9 * self.least_gap
            self.n_vain, self.least_gap = (0, now[2]) if is_closer else (self.n_vain + 1, self.least_gap)
            if self.n_vain >= self.newton.policy.most_vain:
                raise Interrupted(Status.SETTLED)
        has_model = self.n_vain < self.newton.policy.most_vain
        if (has_model and self.newton.can_model(n_free)) or not self.quasi_newton.on_face:
            self.mark = now
        elif now[0] >= self.mark[0] + 100:
            decrease = (self.mark[1] - now[1]) / max(now[1], 1e-300) * 100.0 / (now[0] - self.mark[0])
            # The objective is flat long before the gap, which feels every single violation.
            if decrease < (self.settle or 0.01 * self.tol) and not now[2] < self.gap_moves * self.mark[2]:
                if has_model and self.newton.may_model(n_free):
                    self.newton.is_block_enough = False
                elif self.settle > 0.0:
                    self._end_settled()
            self.mark = now

    def _end_settled(self) -> None:
        """The end of the run, unless Newton steps have waited for it, can be had, and are needed."""
        is_waiting, self.newton.is_waiting = self.newton.is_waiting, False
        if is_waiting and self.settled_gap is not None and not self.has_to_settle(self.state):
            self.n_short_scans = 0
            self.state, _, _ = self._certify(self.state)
            if self.gap > self.settled_gap * self.state.objective:
                return
        raise Interrupted(Status.SETTLED)

    def has_to_settle(self, state: State) -> bool:
        """Whether nothing but more quasi-Newton steps could close the gap, and the run was told when to end them."""
        n_free = int(np.count_nonzero((state.w != 0.0) | (state.pseudo != 0.0)))
        return self.settling.share > 0.0 and self.is_certifiable and not self.newton.may_model(n_free)

    def _first_state(self, features: Ints, w: Floats) -> State:
        """These weights, as far as they are candidates, on the features to begin with."""
        column, _, _ = self.problem.split_features(features)
        kept = self.objective.keep[column] & np.isfinite(self.penalty.thresholds(features))
        features, w = features[kept], w[kept]
        if not (self.penalty.is_smooth_part and np.any(self.penalty.group_thresholds == 0.0)):
            return self._compile(features, w)
        every = np.union1d(self._all_candidates(), features)
        weights = np.zeros(len(every))
        weights[np.searchsorted(every, features)] = w
        return self._compile(every, weights)

    def _all_candidates(self) -> Ints:
        """Every candidate without an l1 part: a penalty that is flat at zero leaves none there."""
        parts = []
        for k, limit in self.limits.items():
            width = self.problem.space.size(k)
            if self.problem.observed_for(k):
                codes = self.problem.observed(k)
                codes = codes[limit[codes // width] == 0.0]
                columns, code = np.divmod(codes, width)
            else:
                which = np.flatnonzero(limit == 0.0)
                if len(which) * width > MAX_DENSE_CANDIDATES:
                    raise BudgetError(
                        f"A norm without an l1 part keeps a weight for each of {len(which) * width:,} candidates; the "
                        f"budget is {MAX_DENSE_CANDIDATES:,}. Use `norm='elastic'`, fewer families, or only observed "
                        "candidates."
                    )
                columns, code = np.repeat(which, width), np.tile(np.arange(width), len(which))
            parts.append(self.problem.join_features(columns.astype(np.uint32), k, code.astype(np.uint32)))
        return np.sort(np.concatenate(parts))

    def _compile(self, features: Ints, w: Floats) -> State:
        groups = self.penalty.groups_of(features)
        return State(self.objective.compile(features), groups, self.penalty.group_thresholds[groups], w)

    # ----- evaluation and certificate

    def evaluate(self, state: State, w: Floats) -> State:
        """The state at other weights of the same working set."""
        self.check_limit()
        return self._see(state, self.objective.at(state.plan, w, state.warm))

    def _see(self, state: State, point: Point) -> State:
        """The state at a point of the same working set."""
        new = self._state(state, point)
        if new.objective < self._best.objective:
            self._best = new
        return new

    def _state(self, state: State, point: Point) -> State:
        extra, g_extra = self.penalty.smooth(state.groups, point.w)
        return State(
            state.plan, state.groups, state.thresholds, point.w, point.value, point.value + extra, point.gradient,
            point.gradient + g_extra, point.warm,
        )  # fmt: skip

    def curvature(self, state: State) -> Floats:
        """Curvatures of the surrogate at a state, for the price of a pass."""
        return self.objective.curvature(self.objective.at(state.plan, state.w, state.warm), self.variances)

    def try_weights(self, state: State, w: Floats) -> State:
        """As `evaluate` for a trial of a line search: infinity where such large weights are beyond the budget."""
        self.refusal = None
        try:
            return self.evaluate(state, w)
        except BudgetError as refusal:
            self.refusal = refusal
            return State(state.plan, state.groups, state.thresholds, w)

    @property
    def _out_of_passes(self) -> Status:
        return Status.MAX_PASSES if self.is_penalised else Status.UNCERTIFIED

    def _certify(self, state: State) -> tuple[State, Point, Scan]:
        """Value, gradient and lower bound from a scan of all candidates."""
        share = self.newton.scan_share(state)
        limits = self.limits if share == 1.0 else {k: share * limit for k, limit in self.limits.items()}
        point, scan = self.objective.scan(state.plan, state.w, limits, self.n_short_scans > 0, state.warm)
        self.n_short_scans -= not scan.is_complete
        self.variances = scan.variances
        if scan.is_complete:
            tangent = point.value - float(point.w @ point.gradient)
            intercept = tangent if scan.intercept is None else scan.intercept
            found = certify(self.penalty, intercept, scan.features, scan.gradients)
            self.lower_bound, self.excess = max(self.lower_bound, found.lower_bound), found.excess
        state = self._state(state, point)
        self.violation = self._kkt_violation(state, scan) if scan.is_complete else np.inf
        self._best = state
        return state, point, scan

    def _kkt_violation(self, state: State, scan: Scan) -> float:
        """Largest violation of the optimality conditions, relative to the feature's threshold.

        Weights: |g + c sign(w)|, zeros: (|g| - c)_+. Without an l1 part the scale is the largest gradient.
        """
        # Gradients of a loss that is nearly 0 may be too small to divide by.
        least = 1e-300 * float(np.abs(state.pseudo).max(initial=0.0))
        largest = max(float(np.abs(scan.gradients).max(initial=0.0)), least) or 1.0
        scale = np.where(state.thresholds > 0.0, state.thresholds, largest)
        inside = float((np.abs(state.pseudo) / scale).max(initial=0.0))
        outside = ~np.isin(scan.features, state.plan.features, assume_unique=True)
        thresholds = self.penalty.thresholds(scan.features[outside])
        beyond = np.abs(scan.gradients[outside]) - thresholds
        return max(inside, float((beyond / np.where(thresholds > 0.0, thresholds, largest)).max(initial=0.0)))

    def _changes(self, state: State, scan: Scan) -> tuple[Bools, Ints] | None:
        """What of the working set stays, and what comes: the violators; None where nothing needs to change."""
        idle = (state.w == 0.0) & (np.abs(state.g) < 0.9 * state.thresholds)
        new = self._most_violated(state, scan)
        return (~idle, new) if len(new) or np.count_nonzero(idle) > 0.3 * len(idle) else None

    def _most_violated(self, state: State, scan: Scan) -> Ints:
        """The violators to add: all that cost a pass nothing; of the others the worst.

        Some features cost work at each of their instances, as a longer tag pattern with a word does. Far from the
        optimum a billion candidates have millions of violators, most of which only stand for a few others.
        """
        is_new = ~np.isin(scan.features, state.plan.features, assume_unique=True)
        features, size = scan.features[is_new], np.abs(scan.gradients[is_new])
        column, kind, _ = self.problem.split_features(features)
        # One kind more at a time: with smaller parts in place, most of the larger ones are no violators any more.
        part_size = self.problem.part_sizes(kind)
        reach = max(state.plan.order + 1, int(min(part_size, default=2)))
        near = np.flatnonzero(part_size <= reach)
        features, size, column, kind = features[near], size[near], column[near], kind[near]
        work = self.objective.work(column, kind)
        costly = np.flatnonzero(work)
        ratio = size[costly] / np.maximum(self.penalty.thresholds(features[costly]), 1e-300)
        by_ratio = costly[np.argsort(-ratio, kind="stable")]
        budget = max(STEPS.entries * self.problem.n_instances, state.plan.work)
        left_out = np.zeros(len(features), bool)
        left_out[by_ratio[np.cumsum(work[by_ratio]) > budget]] = True
        features, size = features[~left_out], size[~left_out]
        n_first = STEPS.first_features * self.problem.n_instances
        if self.penalty.is_smooth_part and len(state.plan) == 0 and len(features) > n_first:
            excess = size - self.penalty.thresholds(features)
            features = np.sort(features[np.argsort(-excess, kind="stable")[:n_first]])
        return features

    def _change_working_set(self, state: State, kept: Bools, new: Ints) -> State:
        features = np.union1d(state.plan.features[kept], new)
        where = np.searchsorted(features, state.plan.features[kept])
        w = np.zeros(len(features))
        w[where] = state.w[kept]
        if len(new) > 0.2 * len(features):
            self.quasi_newton.memory.clear()
        else:
            self.quasi_newton.memory.resize(np.flatnonzero(kept), where, len(features))
        warm = state.warm
        state = self.state = self._best = self._compile(features, w)  # nobody holds the old one any more
        # A pass that is made even past the limit.
        point = self.objective.at(state.plan, w, warm)
        state = self._see(state, point)
        self.quasi_newton.scale(state, self.objective.curvature(point, self.variances))
        return state

    def penalty_curvature(self, groups: Ints, w: Floats) -> Floats:
        """Second derivative of the penalty's smooth part, by differences away from zero."""
        nudge = 1e-6 * (1.0 + np.abs(w)) * np.where(w >= 0.0, 1.0, -1.0)
        curved = (self.penalty.smooth(groups, w + nudge)[1] - self.penalty.smooth(groups, w)[1]) / nudge
        return np.maximum(curved, 0.0)

    def gap_at(self, objective: float) -> float:
        return super().gap_at(objective) if self.is_certifiable else np.inf

    def gap_on_working_set(self, state: State) -> float:
        """The gap if no candidate outside the working set were violated: when to stop minimising."""
        return state.objective - self.bound_on_working_set(state)

    def bound_on_working_set(self, state: State) -> float:
        """A lower bound on what weights of the working set come to."""
        exceeding = np.flatnonzero(np.abs(state.g_value) > state.thresholds)
        intercept = state.value - float(state.w @ state.g_value)
        found = certify_groups(self.penalty, intercept, state.groups[exceeding], state.g_value[exceeding])
        return max(found.lower_bound, 0.0)

    # ----- minimise on the working set

    def _target(self, state: State) -> float:
        """Relative gap on the working set to minimise to. Without a certificate every step that decreases is taken.

        Where there is one, an objective of 0 has the gap 0, and the run is over.
        """
        return max(0.1 * self.gap_at(state.objective) / state.objective, 0.5 * self.tol) if self.is_certifiable else 0.0

    def drop_idle(self, state: State) -> State:
        idle = (state.w == 0.0) & (np.abs(state.g) < 0.8 * state.thresholds)
        if np.count_nonzero(idle) < 0.3 * len(idle):
            return state
        return self._change_working_set(state, ~idle, np.zeros(0, np.int64))

    def report_state(self, state: State, phase: str) -> None:
        """A record of weights on the way."""
        self.report(phase, _standing(state))


def _standing(state: State) -> Standing:
    return Standing(state.plan.features, state.w, state.objective, len(state.plan))
