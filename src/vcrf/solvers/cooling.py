"""Maximum surrogates by falling temperatures: a smooth problem tends to one that is not.

The crf surrogate with loss / T at w / T, times T, is smooth and tends to m3n as T falls to 0. Its solution is a start
for other methods, or all there is; its posterior gives a lower bound for m3n, tight as T tends to 0: a distribution of
outputs with mean loss A and mean features g gives P* >= theta A - Omega*(theta g), and no smoothing enters it.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vcrf.errors import InputError
from vcrf.penalties import FamilyPenalty
from vcrf.solvers.certificate import Certificate, certify
from vcrf.solvers.policy import CUTS, MAX_PASSES
from vcrf.solvers.result import IterationRecord, SolverResult, Status
from vcrf.solvers.run import Interrupted, Run, RunOptions, Standing
from vcrf.structures.structure import Scan
from vcrf.types import Bools, Floats, Ints


@dataclass
class CoolingPoint:
    """Weights of a working set with their objective."""

    features: Ints
    w: Floats
    objective: float = np.inf


class Cooling(Run):
    """A run at falling temperatures; a subclass evaluates the problem itself, and may go on from there.

    Attributes
    ----------
    limits : what a scan compares |g| with, by kind
    best : the best weights so far
    """

    def __init__(self, problem: Any, penalty: FamilyPenalty, choice: Any, how: RunOptions) -> None:
        self.problem: Any = problem
        self.threads, self.lattice = how.threads, how.lattice
        self.penalty = penalty.bind(problem)
        self.family_penalty, self.choice = penalty, choice
        keep = self._set_limits(choice.mass(problem))
        self.objective = choice.build(problem, keep, self.threads, self.lattice)
        super().__init__(self.objective, how)
        self.best = CoolingPoint(np.zeros(0, np.int64), np.zeros(0))

    def _set_limits(self, mass: Floats) -> Bools:
        """Set what a scan compares |g| with; returns the columns that can carry weight."""
        self.limits = {k: self.penalty.column_thresholds(k) for k in self.problem.kinds}
        if not self.penalty.is_smooth_part and not all(np.all(limit > 0.0) for limit in self.limits.values()):
            raise InputError("Some family has strength 0: with m3n and structsvm every strength must be positive.")
        keep = np.zeros(len(self.problem.columns), bool)
        for limit in self.limits.values():
            keep |= mass > limit
        return keep

    @abstractmethod
    def _look_at(self, features: Ints, w: Floats) -> CoolingPoint:
        """The exact objective at some weights."""

    @property
    def _smooth_choice(self) -> Any:
        """Quasi-Newton steps are enough for a start, at a fraction of the time."""
        return replace(self.choice.smooth, has_hessian=False)

    @property
    def _last(self) -> float:
        """The last temperature, as a share of the largest loss."""
        if self.choice.curve is not None:
            return 0.0
        return CUTS.last_m3n if self.choice.kind == "m3n" else CUTS.last_structsvm

    @property
    def _n_working(self) -> int:
        return len(self.best.features)

    def standing(self) -> Standing:
        return Standing(self.best.features, self.best.w, self.best.objective, self._n_working)

    def _begin(self, start: SolverResult | None) -> None:
        self.start = start

    def _adopt(self, features: Ints, w: Floats) -> None:
        self.best = self._look_at(features, w)

    def _first_points(self, start: SolverResult | None) -> None:
        """Look at zero, and at the start."""
        zero = self._look_at(np.zeros(0, np.int64), np.zeros(0))
        self.best = zero
        if start is not None and len(start.features):
            column, _, _ = self.problem.split_features(start.features)
            kept = self.objective.keep[column] & np.isfinite(self.penalty.thresholds(start.features))
            point = self._look_at(start.features[kept], start.weights[kept])
            self.best = min(zero, point, key=lambda p: p.objective)

    def _cool(self, start: SolverResult | None) -> None:
        """Minimise the smooth surrogate at falling temperatures: for m3n until its gap is closed, else for a start.

        With u = w / T the problem at temperature T is T times crf with loss / T and an l2 part of T times the strength.
        """
        penalty = self.family_penalty
        smooth = self._smooth_choice
        scale = float(self.problem.weights @ self.choice.loss.largest) / max(float(self.problem.weights.sum()), 1e-300)
        # Only m3n with an l2 part can end here: for others it is a start, and their certificates take too long.
        most = MAX_PASSES if self.choice.kind == "m3n" and self.penalty.is_smooth_part else CUTS.smooth_passes
        share, last, result, before = CUTS.first, self._last, start, 1.0
        if last == 0.0 and scale > 0.0:
            # The maximum of a curve: crf as it is begins near enough, and no temperature leads to the end.
            share = last = 1.0 / scale
        while scale > 0.0 and not self.is_certified:
            temperature = share * scale
            if result is not None:
                result = replace(result, weights=result.weights * (before / temperature))
                if self._is_too_cold(smooth.scaled(1.0 / temperature), result):
                    break
            how = RunOptions(
                max(0.3 * self.tol, 0.3 * share), max(min(self.max_passes - self.objective.n_passes, most), 1),
                self.threads, self._relay, lattice=self.lattice,
            )  # fmt: skip
            result = self._smooth_result(
                penalty.with_l2_times(temperature), smooth.scaled(1.0 / temperature), how, result
            )
            self.objective.n_passes += result.n_passes
            before = temperature
            self._see_smooth(result, temperature)
            self.report("smooth")
            if result.status is Status.INTERRUPTED:
                raise Interrupted(Status.INTERRUPTED)
            self.check_limit()
            share *= CUTS.factor
            if share < last:
                break

    def _smooth_result(
        self, penalty: FamilyPenalty, choice: Any, how: RunOptions, start: SolverResult | None
    ) -> SolverResult:
        from vcrf.solvers.working_set import solve

        # From the weights of the temperature before, dual ascent only adds features that steps take away again.
        return solve(self.problem, penalty, surrogate=choice, start=start, dual_start=start is None, **vars(how))

    def _is_too_cold(self, smooth: Any, start: SolverResult) -> bool:
        """Whether potentials divided by the temperature leave the range of scaled messages in many examples."""
        objective = smooth.build(self.problem, self.objective.keep, self.threads, self.lattice)
        point = objective.at(objective.compile(start.features), start.weights)
        objective.close()
        self.objective.n_passes += 1
        return int(point.sums.n_hard) > CUTS.most_hard * len(self.problem.weights)

    def _relay(self, record: IterationRecord) -> bool | None:
        """Show the user's callback the state of the problem itself, not that of the smooth one."""
        if self.callback is None:
            return None
        n_passes = self.objective.n_passes + record.n_passes
        return self.callback(
            replace(
                record,
                n_passes=n_passes,
                seconds=time.perf_counter() - self.began,
                objective=self.best.objective,
                gap=self.gap,
            )
        )

    def _see_smooth(self, result: SolverResult, temperature: float) -> None:
        """Objective at the smooth solution, and for m3n the lower bound of its posterior.

        q is a distribution of outputs, as the multipliers are, and its mean loss and mean features are exact.
        """
        point = self._look_at(result.features, temperature * result.weights)
        if point.objective < self.best.objective:
            self.best = point
        if self.choice.kind != "m3n":
            return
        smooth = self.choice.smooth.scaled(1.0 / temperature).build(
            self.problem, self.objective.keep, self.threads, self.lattice
        )
        active = smooth.compile(result.features)
        # Mean losses come with a scan; this one looks at no candidate.
        nothing = {k: np.full(len(limit), np.inf) for k, limit in self.limits.items()}
        here, _ = smooth.scan(active, result.weights, nothing)
        mean = temperature * float(self.problem.weights @ here.sums.mean_losses())
        found = self._smooth_bound(lambda limits: smooth.scan(active, result.weights, limits)[1], mean)
        smooth.close()
        if found.lower_bound > self.lower_bound:
            self.raise_bound(found.lower_bound, found.excess)

    def _penalty_of(self, features: Ints, w: Floats) -> float:
        groups = self.penalty.groups_of(features)
        return self.penalty.smooth(groups, w)[0] + float(self.penalty.group_thresholds[groups] @ np.abs(w))

    def _smooth_bound(self, scan_all: Callable[[dict[int, Floats]], Scan], value: float) -> Certificate:
        """Lower bound from the mean loss of a posterior."""
        return self._bound(scan_all, value)[0]

    def _bound(self, scan_all: Callable[[dict[int, Floats]], Scan], value: float) -> tuple[Certificate, Scan]:
        """Lower bound from a mixture's mean loss, and the candidates that exceed their threshold."""
        scan = scan_all(self.limits)
        return certify(self.penalty, value, scan.features, scan.gradients), scan
