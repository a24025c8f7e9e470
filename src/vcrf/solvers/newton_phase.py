"""Newton steps of a working-set run: when they are worth their Hessian, on all weights or on the most curved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf.solvers.newton import build_model, newton_direction, spread
from vcrf.solvers.policy import NEWTON, Facts, Phase, StepFacts, Verdict
from vcrf.solvers.quadratic import QuadraticModel
from vcrf.solvers.state import State

if TYPE_CHECKING:
    from vcrf.solvers.working_set import _WorkingSetRun


class NewtonPhase:
    """Newton steps of one run.

    Attributes
    ----------
    model, block : quadratic models of all weights that may move, and of the most curved ones
    n_rest : rounds of quasi-Newton steps to go before Newton steps are tried again
    is_block_enough : Newton steps on the most curved weights, with quasi-Newton steps on all, come to a moderate gap
        in half the time that exact Hessians of thousands of weights take. They do not come to a small one, and may
        settle. On a pattern automaton a pass costs more and a Hessian less: all weights at once.
    is_large_round : whether the last round was with many weights
    most_weights : that Newton steps are taken on
    fineness : share of the least threshold that a Hessian on the automaton has to be fine enough for
    is_waiting : whether quasi-Newton steps have to settle first
    """

    def __init__(self, run: _WorkingSetRun, is_settling: bool, is_waiting: bool) -> None:
        self.run, self.n_rest, self.is_large_round, self.is_waiting = run, 0, False, is_waiting
        self.policy = NEWTON.for_cost(run.objective.hessian_in_passes)
        self.model: QuadraticModel | None = None
        self.block: QuadraticModel | None = None
        self.is_block_enough = run.tol >= self.policy.block_tol and not run.penalty.is_smooth_part
        self.most_weights = self.policy.many if is_settling or run.penalty.is_smooth_part else self.policy.most
        self.fineness = 1.0

    def decide(self, state: State) -> Phase:
        """Which steps are worth taking on the working set."""
        facts = self._facts(state)
        self.n_rest = max(self.n_rest - 1, 0)
        return self.policy.decide(facts, self.can_model(facts.n_free))

    def is_worth_polishing(self, state: State) -> bool:
        """Whether the most curved weights are worth Newton steps of their own."""
        facts = self._facts(state)
        return self.policy.is_worth_polishing(facts, self.can_model(facts.n_free))

    def _facts(self, state: State) -> Facts:
        run, is_l1 = self.run, not self.run.penalty.is_smooth_part
        return Facts(
            n_free=int(np.count_nonzero((state.w != 0.0) | (state.pseudo != 0.0))),
            # With an l2 part the gradient exceeds the threshold even at the optimum; the conditions' violation tells.
            distance=run.excess if is_l1 else run.violation,
            mean_violation=self._mean_violation(state),
            excess=run.excess,
            on_face=run.quasi_newton.on_face,
            is_l1=is_l1,
            is_resting=self.n_rest > 0,
            has_hessian=run.objective.has_hessian,
        )

    def scan_share(self, state: State) -> float:
        """Share of its threshold that a gradient has to exceed for the working set."""
        n_weights = int(np.count_nonzero(state.w))
        on_l1_face = self.run.quasi_newton.on_face and not self.run.penalty.is_smooth_part
        return self.policy.scan_share(n_weights, on_l1_face, self.can_model(n_weights))

    def can_model(self, n_free: int) -> bool:
        """Whether Newton steps on all weights are wanted and can be had."""
        return (n_free <= self.policy.few or not self.is_block_enough) and self.may_model(n_free)

    def may_model(self, n_free: int) -> bool:
        """Whether Newton steps on all weights can be had."""
        return not self.is_waiting and self.run.objective.has_hessian and 0 < n_free <= self.most_weights

    def minimise(self, state: State) -> State:
        """Newton steps until the gap on the working set is far below the certified one, or a step does not help."""
        gap, error = self.run.gap_on_working_set(state), self._total_violation(state)
        enough = self._enough(state, is_large=False)
        for _ in range(self.policy.steps):
            if gap <= enough or self.run.is_certified_at(state.objective):
                break
            if self.is_large_round and self.model is None:
                # What a scan finds had better be in the next Hessian.
                break
            is_new, model = self._renew_model(state)
            self.is_large_round = is_large = len(model.features) > self.policy.many
            if is_large:
                enough = max(enough, self._enough(state, is_large))
            new, length = self._step(state, model)
            state = state if new is None else new
            self.run.report_state(state, "newton")
            before, gap = (gap, error), self.run.gap_on_working_set(state)
            error = self._total_violation(state)
            step = StepFacts(length, is_new, is_large, gap / before[0], error / max(before[1], 1e-300))
            verdict = self.policy.judge(step)
            if verdict is not Verdict.KEEP:
                self.model = None
            if verdict is Verdict.REST:
                self.n_rest, self.fineness = self.policy.rest, self.policy.finer * self.fineness
                break
        self.run.quasi_newton.memory.clear()
        return state

    def _enough(self, state: State, is_large: bool) -> float:
        return self.policy.enough(self.run.tol * state.objective, self.run.gap_at(state.objective), is_large)

    def polish(self, state: State) -> State:
        """Newton steps on the most curved weights, where there are too many for Newton steps on all.

        Near the optimum of an L1 problem the largest violations are those of a few hundred features that are nearly
        everywhere. A relative violation of 1 % is then a weight that is wrong by 1 % of c_j / curvature, which the
        objective hardly feels, and the certificate does.
        """
        if self.block is None or not np.all(np.isin(self.block.features, state.plan.features)):
            self.run.check_limit()
            self.block = self._block(state)
        violation = self._violation_inside(state)
        for _ in range(self.policy.block_steps):
            new, length = self._step(state, self.block)
            if new is None or length < self.policy.short:
                self.block = None
            if new is None:
                break
            state = new
            self.run.report_state(state, "newton")
            before, violation = violation, self._violation_inside(state)
            if violation > 0.5 * before or self.block is None:
                break
        return state

    def _step(self, state: State, model: QuadraticModel) -> tuple[State | None, float]:
        """One step and its length, found by halving; None if no length decreases the objective."""
        g, w, c = spread(model, state.plan.features, state.g, state.w, state.thresholds)
        present, where = model.places(state.plan.features)
        curved = np.where(present, self.run.penalty_curvature(state.groups, state.w)[where], 0.0)
        kept = model.curvature
        model.set_curvature(kept + curved)
        # With many weights a rough solution: the next step has a better gradient.
        is_large = len(model.features) > self.policy.many
        close = max(0.3 * self.run.tol, self.policy.rough * self._violation_inside(state)) if is_large else 0.0
        if not is_large and not self.run.penalty.is_smooth_part:
            # Along a flat direction a violation is not worth a move of more than about 1.
            model.set_damping(self.policy.flat * self._violation_inside(state))
        least = 1e-4 * self.run.tol**2 * state.objective / max(len(w), 1)
        found = newton_direction(model, g, w, c, least, close=close)
        model.set_curvature(kept)
        d = np.zeros(len(state.w))
        d[where[present]] = found[present]
        if not np.all(np.isfinite(d)):
            return None, 0.0
        predicted = float(state.g @ d) + float(state.thresholds @ (np.abs(state.w + d) - np.abs(state.w)))
        noise, step = state.rounding, 1.0
        while step > 1e-3:
            new = self.run.try_weights(state, state.w + step * d)
            is_lower = new.objective <= state.objective + 0.1 * step * predicted + noise
            if is_lower or (is_large and self._is_closer(state, new)):
                break
            step *= 0.5
        return (new if step > 1e-3 else None), step

    def _is_closer(self, state: State, new: State) -> bool:
        """Whether the gap on the working set is halved, and the objective higher by next to nothing of it.

        Near the optimum the objective is flat, and no measure of a step. With few weights it is the better one: two
        points, one of the lower objective and one of the smaller gap, would be visited in turn.
        """
        gap = self.run.gap_on_working_set(state)
        return new.objective <= state.objective + 1e-3 * gap and self.run.gap_on_working_set(new) <= 0.5 * gap

    def _renew_model(self, state: State) -> tuple[bool, QuadraticModel]:
        """The last Hessian, unless it lacks a weight that may move; whether it is new, and the model."""
        moving = np.flatnonzero((state.w != 0.0) | (state.pseudo != 0.0))
        if self.model is not None:
            is_known = np.isin(state.plan.features[moving], self.model.features, assume_unique=True)
            if np.all(is_known):
                return False, self.model
        self.run.check_limit()
        # With many weights a wider choice: a feature that begins to move later means a new Hessian.
        is_many = len(moving) > self.policy.many
        chosen = np.flatnonzero(
            (state.w != 0.0)
            | (np.abs(state.g) > (self.policy.wider if is_many else self.policy.choice) * state.thresholds)
        )
        if len(chosen) > self.policy.most:
            chosen = moving
        self.model = None  # before the new one is built: there is room for one
        scale = self.fineness * float(state.thresholds[chosen].min(initial=np.inf))
        self.model = build_model(self.run.objective, state.plan, state.w, chosen, scale=scale)
        return True, self.model

    def _block(self, state: State) -> QuadraticModel:
        """Model of the most curved weights, from a sample of the sentences; of those that the sample knows."""
        curvature = np.where(state.w != 0.0, self.run.curvature(state), 0.0)
        most = np.sort(np.argsort(-curvature, kind="stable")[: self.policy.block])
        problem = self.run.problem
        stride = max(min(problem.n_instances // self.policy.block_instances, len(problem.weights) // 50), 1)
        model = build_model(self.run.objective, state.plan, state.w, most, stride)
        known = np.flatnonzero(model.curvature > 0.1 * curvature[most])
        return QuadraticModel(model.features[known], model.hessian[np.ix_(known, known)])

    def _mean_violation(self, state: State) -> float:
        """Sum of |w| times the violation of its condition, as a share of the objective: what the gap costs at best."""
        return float(np.abs(state.w) @ np.abs(state.pseudo)) / max(state.objective, 1e-300)

    def _total_violation(self, state: State) -> float:
        """Sum of the violations in the working set, each relative to its threshold."""
        return float((np.abs(state.pseudo) / np.maximum(state.thresholds, 1e-300)).sum())

    def _violation_inside(self, state: State) -> float:
        """Largest violation in the working set, relative to the threshold."""
        return float((np.abs(state.pseudo) / np.maximum(state.thresholds, 1e-300)).max(initial=0.0))
