"""Newton steps of a working-set run: when they are worth their Hessian, on all weights or on the most curved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf.solvers import newton
from vcrf.solvers.newton import build_model, can_model, newton_direction, spread
from vcrf.solvers.quadratic import QuadraticModel
from vcrf.solvers.state import State

if TYPE_CHECKING:
    from vcrf.solvers.working_set import _Run

# Newton steps are tried when the largest relative violation is below the first, or below the second with a mean
# violation below the third: a few frequent features are the last to come right. With many weights below the fourth, and
# on the automaton below the fifth.
_NEWTON_BELOW = 0.5
_NEWTON_BELOW_MOST = 5.0
_NEWTON_BELOW_MEAN = 3e-3
_NEWTON_BELOW_MANY = 2.0
_NEWTON_BELOW_PATTERNS = 100.0
# Newton steps on the most curved weights begin when no gradient exceeds its threshold by more than this share.
_POLISH_BELOW = 1.0
# Relative gap down to which Newton steps on the most curved weights are tried first.
_BLOCK_TOL = 1e-4
# Share of the threshold from which on the gradient of a zero weight brings it into a large model.
_WIDER = 0.9
# With a large model a scan comes when the gap on the working set is this share of the certified one.
_SCAN_BELOW = 0.1
# And its solutions may leave violations of this share of those before.
_ROUGH = 0.03
# Passes below which a Hessian is cheap: that of a pattern automaton.
_CHEAP_HESSIAN = 100.0
# Damping of steps with few weights, in violations.
_FLAT = 1.0


class NewtonPhase:
    """Newton steps of one run.

    Attributes
    ----------
    model, block : quadratic models of all weights that may move, and of the most curved ones
    n_rest : rounds of quasi-Newton steps to go before Newton steps are tried again
    is_block_enough : Newton steps on the most curved weights, with quasi-Newton steps on all, come to a moderate gap
        in half the time that exact Hessians of thousands of weights take. They do not come to a small one, and may
        settle. On a pattern automaton a pass costs more and a Hessian less: all weights at once.
    is_by_patterns : whether passes and Hessians are those of a pattern automaton
    is_large_round : whether the last round was with many weights
    most_weights : that Newton steps are taken on
    fineness : share of the least threshold that a Hessian on the automaton has to be fine enough for
    """

    def __init__(self, run: _Run) -> None:
        self.run, self.n_rest, self.is_large_round = run, 0, False
        self.model: QuadraticModel | None = None
        self.block: QuadraticModel | None = None
        self.is_by_patterns = run.objective.hessian_in_passes < _CHEAP_HESSIAN
        self.is_block_enough = run.tol >= _BLOCK_TOL and not run.penalty.is_smooth_part and not self.is_by_patterns
        self.most_weights = newton.MAX_WEIGHTS
        self.fineness = 1.0

    def is_near(self, state: State) -> bool:
        """Whether Newton steps are worth their Hessian: the face is nearly found and small enough."""
        n_free = int(np.count_nonzero((state.w != 0.0) | (state.pseudo != 0.0)))
        if self.n_rest > 0:
            self.n_rest -= 1
            return False
        # With an l2 part the gradient exceeds the threshold even at the optimum; the conditions' violation tells.
        distance = self.run.violation if self.run.penalty.is_smooth_part else self.run.excess
        # A Hessian on the automaton costs as much as fifty passes, on the dense lattice as hundreds.
        many = _NEWTON_BELOW_PATTERNS if self.is_by_patterns else _NEWTON_BELOW_MANY
        is_near = (
            distance < _NEWTON_BELOW
            or (distance < _NEWTON_BELOW_MOST and self._mean_violation(state) < _NEWTON_BELOW_MEAN)
            # With many weights the violations of the most curved ones stay, however many quasi-Newton steps are taken.
            or (distance < many and self.run.quasi_newton.on_face and n_free > newton.MAX_WEIGHTS)
        )
        return is_near and self.can_model(n_free)

    @property
    def _is_on_l1_face(self) -> bool:
        """Whether quasi-Newton steps have nearly found which weights an L1 penalty alone leaves at zero."""
        return self.run.quasi_newton.on_face and not self.run.penalty.is_smooth_part

    def scan_share(self, state: State) -> float:
        """Share of its threshold that a gradient has to exceed for the working set, next to a large model.

        What is close to its threshold moves with the next steps, and had better be in the model.
        """
        n_weights = int(np.count_nonzero(state.w))
        is_large = n_weights > newton.MAX_WEIGHTS and self._is_on_l1_face
        return _WIDER if is_large and self.can_model(n_weights) else 1.0

    def can_model(self, n_free: int) -> bool:
        """Whether Newton steps on all weights are wanted and can be had."""
        is_wanted = n_free <= newton.FEW_WEIGHTS or not self.is_block_enough
        return is_wanted and can_model(self.run.objective, n_free, self.most_weights)

    def minimise(self, state: State, target: float) -> State:
        """Newton steps until the gap on the working set is far below the certified one, or a step does not help."""
        enough = max(target * state.objective, 0.02 * self.run.gap_at(state.objective))
        gap, error = self.run.gap_on_working_set(state), self._total_violation(state)
        for _ in range(12):
            if gap <= enough:
                break
            if self.is_large_round and self.model is None:
                # What a scan finds had better be in the next Hessian.
                break
            is_new, model = self._renew_model(state)
            self.is_large_round = is_large = len(model.features) > newton.MAX_WEIGHTS
            # With many weights no step for a gap that is small enough as it is, nor for one far below that of other
            # weights, which a scan finds.
            if is_large:
                enough = max(
                    enough, 0.8 * self.run.tol * state.objective, _SCAN_BELOW * self.run.gap_at(state.objective)
                )
            new, step = self._step(state, model)
            state = state if new is None else new
            self.run.report_state(state, "newton")
            before, gap = (gap, error), self.run.gap_on_working_set(state)
            error = self._total_violation(state)
            # The gap is that of the worst weight: with many it may rest while thousands come right.
            left = min(gap / before[0], error / max(before[1], 1e-300)) if is_large else gap / before[0]
            if is_new and (step < 0.2 or (is_large and left > 0.9)):
                # Too far away, or too coarse: more quasi-Newton steps before the next attempt, with a finer model.
                self.n_rest, self.model = 2, None
                self.fineness *= 0.1
                break
            # A Hessian of many weights takes as long as ten steps.
            if step < 0.2 or left > (0.8 if is_large else 0.3):
                self.model = None
        self.run.quasi_newton.memory.clear()
        return state

    def polish(self, state: State) -> State:
        """Newton steps on the most curved weights, where there are too many for Newton steps on all.

        Near the optimum of an L1 problem the largest violations are those of a few hundred features that are nearly
        everywhere. A relative violation of 1 % is then a weight that is wrong by 1 % of c_j / curvature, which the
        objective hardly feels, and the certificate does.
        """
        n_free = int(np.count_nonzero((state.w != 0.0) | (state.pseudo != 0.0)))
        is_near = self._is_on_l1_face and self.run.excess < _POLISH_BELOW
        if not is_near or not self.run.objective.has_hessian or self.can_model(n_free):
            return state
        if self.block is None or not np.all(np.isin(self.block.features, state.plan.features)):
            self.run.check_limit()
            self.block = self._block(state)
        violation = self._violation_inside(state)
        for _ in range(4):
            new, step = self._step(state, self.block)
            if new is None or step < 0.2:
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
        is_large = len(model.features) > newton.MAX_WEIGHTS
        close = max(0.3 * self.run.tol, _ROUGH * self._violation_inside(state)) if is_large else 0.0
        if not is_large and not self.run.penalty.is_smooth_part:
            # Along a flat direction a violation is not worth a move of more than about 1.
            model.set_damping(_FLAT * self._violation_inside(state))
        least = 1e-4 * self.run.tol**2 * state.objective / max(len(w), 1)
        found = newton_direction(model, g, w, c, least, close=close)
        model.set_curvature(kept)
        d = np.zeros(len(state.w))
        d[where[present]] = found[present]
        if not np.all(np.isfinite(d)):
            return None, 0.0
        predicted = float(state.g @ d) + float(state.thresholds @ (np.abs(state.w + d) - np.abs(state.w)))
        # A value is a difference of log-partitions and scores: it cannot be told apart below their rounding.
        noise, step = 1e-15 * (1.0 + state.objective + float(np.abs(state.w).max(initial=0.0))), 1.0
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
        is_many = len(moving) > newton.MAX_WEIGHTS
        chosen = np.flatnonzero((state.w != 0.0) | (np.abs(state.g) > (_WIDER if is_many else 0.95) * state.thresholds))
        if len(chosen) > newton.MAX_LARGE_WEIGHTS:
            chosen = moving
        self.model = None  # before the new one is built: there is room for one
        scale = self.fineness * float(state.thresholds[chosen].min(initial=np.inf))
        self.model = build_model(self.run.objective, state.plan, state.w, chosen, scale=scale)
        return True, self.model

    def _block(self, state: State) -> QuadraticModel:
        """Model of the most curved weights, from a sample of the sentences; of those that the sample knows."""
        curvature = np.where(state.w != 0.0, self.run.curvature(state), 0.0)
        most = np.sort(np.argsort(-curvature, kind="stable")[: newton.BLOCK])
        problem = self.run.problem
        stride = max(min(problem.n_instances // newton.BLOCK_TOKENS, len(problem.weights) // 50), 1)
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
