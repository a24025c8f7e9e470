"""Quasi-Newton steps of a working-set run: OWL-QN far from the optimum, then on the face of the free weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf.solvers.owlqn import LbfgsMemory, orthant_of
from vcrf.solvers.policy import STEPS
from vcrf.solvers.state import State
from vcrf.types import Floats

if TYPE_CHECKING:
    from vcrf.solvers.working_set import _WorkingSetRun


def _shorten(slope: float, rise: float) -> float:
    """Where the parabola through a step's start, its slope there and its end has its minimum, in the step's units."""
    if not (slope < 0.0 and np.isfinite(rise)):
        return 0.5
    return min(max(0.5 * slope / (slope - rise), 0.1), 0.7)


def _is_closer(state: State, new: State, slope: float) -> bool:
    """Whether a step that objectives cannot judge has a smaller gradient at its end.

    Near the optimum decreases are of second order in the violations, and the gap is of first: they drown in the
    rounding of objectives while gradients still tell points apart. What the objective can rise by is bounded by the
    slope at the end, since it is convex.
    """
    rounding = state.rounding
    if -slope > rounding or not new.objective <= state.objective + 100.0 * rounding:
        return False
    if float(new.pseudo @ (new.w - state.w)) > rounding:
        return False
    return new.steepness <= 0.9 * state.steepness


class QuasiNewtonPhase:
    """Quasi-Newton steps of one run.

    Attributes
    ----------
    memory : secant pairs and curvatures
    on_face : whether directions are those on the weights that are free, which need no cuts
    """

    def __init__(self, run: _WorkingSetRun) -> None:
        self.run, self.memory, self.on_face = run, LbfgsMemory(STEPS.memory), False

    def scale(self, state: State, curvature: Floats) -> None:
        """Give the memory the curvatures of the surrogate at a state.

        At the optimum sum (truth - p) = c for a weight, and sum p (1 - p) is not much smaller: a floor for features
        whose posteriors are saturated on the way.
        """
        curvature = curvature + self.run.penalty_curvature(state.groups, state.w)
        floor = np.maximum(1e-3 * state.thresholds, 1e-8 * curvature.max(initial=1e-300))
        self.memory.inverse = 1.0 / np.maximum(curvature, floor)

    def minimise(self, state: State, target: float, max_steps: int) -> State:
        """Quasi-Newton steps until the gap on the working set is below target, max_steps at the most."""
        n_cut, n_flat, least, bound = 0, 0, state.steepness, 0.0
        self.run.settling.begin_round(state.objective)
        for i in range(1, max_steps + 1):
            # The bound of an earlier step holds on: what is dropped on the way only raises the optimum.
            bound = max(bound, self.run.bound_on_working_set(state))
            if state.objective - bound <= target * state.objective or self.run.is_certified_at(state.objective):
                break
            new, trials = self._step(state)
            if new is None:
                break
            n_cut += trials > 1
            # Steps that must be shortened say that OWL-QN's cut directions do not fit any more.
            self.on_face = self.on_face or n_cut > 0.15 * max_steps
            is_flat = state.objective - new.objective <= state.rounding and new.steepness > 0.9 * least
            n_flat, least, state = n_flat + 1 if is_flat else 0, min(least, new.steepness), new
            if n_flat == STEPS.most_flat:
                break
            if self.run.settling.is_slow(state.objective) and self.run.has_to_settle(state):
                break
            if i % 10 == 0:
                self.run.report_state(state, "face" if self.on_face else "owlqn")
                state = self.run.drop_idle(state)
        return state

    def _step(self, state: State) -> tuple[State | None, int]:
        """One quasi-Newton step; steepest descent if its direction leads nowhere; None if nothing decreases."""
        new, trials = self._search(state)
        if new is None and len(self.memory):
            self.memory.clear()
            new, trials = self._search(state)
        if new is None and self.run.refusal is not None:
            # The shortest step of all could not be evaluated either.
            raise self.run.refusal
        return new, trials

    def _search(self, state: State) -> tuple[State | None, int]:
        """Backtracking on the arc projected on the orthant, each time to the minimum of a parabola."""
        pseudo = state.pseudo
        free = (state.w != 0.0) | (pseudo != 0.0)
        d = self.memory.direction(pseudo, free if self.on_face else None)
        cut = d * pseudo >= 0.0
        d[cut & (state.w == 0.0) if self.on_face else cut] = 0.0
        # Nor is it a direction of descent where secants of saturated posteriors overflow.
        if not -np.inf < float(d @ pseudo) < 0.0:
            self.memory.clear()
            d = -pseudo
        # Where curvatures vanish a step may leave the range of numbers.
        longest = STEPS.longest * (1.0 + float(np.abs(state.w).max(initial=0.0)))
        d *= min(1.0, longest / max(float(np.abs(d).max(initial=0.0)), 1e-300))
        step = 1.0 if len(self.memory) else 1.0 / max(float(np.linalg.norm(pseudo)), 1e-300)
        orthant = orthant_of(state.w, pseudo)
        for trials in range(1, 30):
            w = state.w + step * d
            w[(w * orthant <= 0.0) & (state.thresholds > 0.0)] = 0.0
            new = self.run.try_weights(state, w)
            slope = float(pseudo @ (w - state.w))
            if new.objective <= state.objective + 1e-4 * slope or _is_closer(state, new, slope):
                self.memory.add(w - state.w, new.g - state.g)
                return new, trials
            step *= _shorten(slope, new.objective - state.objective)
        return None, trials
