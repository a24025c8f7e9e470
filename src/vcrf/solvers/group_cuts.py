"""Cutting planes (see `solvers.cutting_plane`) for the maximum surrogates with the group norm.

The conjugate of sum_G c_G ||w_G|| is 0 where ||g_G|| <= c_G for all groups: the lower bound is A / max(1, max_G
||g_G|| / c_G), over ALL groups. A scan finds the columns with a large entry, a second one all their entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.penalties import FamilyPenalty
from vcrf.solvers.certificate import Certificate
from vcrf.solvers.cutting_plane import CuttingPlanes
from vcrf.solvers.result import SolverResult
from vcrf.solvers.run import RunOptions
from vcrf.structures.structure import Scan
from vcrf.surrogates.choice import SmoothChoice
from vcrf.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from vcrf.kernels.cuts import Master


class GroupCuttingPlanes(CuttingPlanes):
    """One run with the group norm."""

    def _set_limits(self, mass: Floats) -> Bools:
        """A group whose norm exceeds c has an entry above c / sqrt(its size), and a mass above c / sqrt(2)."""
        problem = self.problem
        if any(problem.observed_for(k) for k in problem.kinds):
            raise InputError("`norm='group'` takes all labels of an attribute together: use `candidates='all'`.")
        self.strengths = strengths = {k: self.penalty.column_thresholds(k) for k in problem.kinds}
        if not all(np.all(limit > 0.0) for limit in strengths.values()):
            raise InputError("Some family has strength 0: with `norm='group'` every strength must be positive.")
        self.limits = {k: limit / problem.space.size(k) ** 0.5 for k, limit in strengths.items()}
        keep = np.zeros(len(problem.columns), bool)
        for limit in strengths.values():
            keep |= np.sqrt(2.0) * mass > limit
        return keep

    def _smooth_result(
        self, penalty: FamilyPenalty, choice: SmoothChoice, how: RunOptions, start: SolverResult | None
    ) -> SolverResult:
        from vcrf.solvers.group import solve_group

        return solve_group(self.problem, penalty, choice, how, start)

    def _smooth_bound(self, scan_all: Callable[[dict[int, Floats]], Scan], value: float) -> Certificate:
        scan = scan_all(self.limits)
        if scan.norms is None:
            return self._bound(scan_all, value)[0]
        # Under a posterior every pattern has a gradient: the bounds of a scan by length do for a start.
        worst = max([1.0, *(float((norms / self.strengths[k]).max(initial=0.0)) for k, norms in scan.norms.items())])
        return Certificate(max(value, 0.0) / worst if worst < np.inf else 0.0, worst - 1.0)

    def _bound(self, scan_all: Callable[[dict[int, Floats]], Scan], value: float) -> tuple[Certificate, Scan]:
        near = scan_all(self.limits)
        wanted = {k: np.full(len(limit), np.inf) for k, limit in self.limits.items()}
        for k, limit in wanted.items():
            limit[self._suspects(near, k)] = 0.0
        whole = scan_all(wanted)
        group, first = self.problem.space.groups(whole.features)
        norms = np.sqrt(np.bincount(group, whole.gradients**2, len(first) - 1))
        ratios = norms / self.penalty.thresholds(whole.features[first[:-1]])
        worst = float(ratios.max(initial=1.0))
        beyond = (ratios > 1.0)[group]
        return Certificate(max(value, 0.0) / worst, worst - 1.0), Scan(whole.features[beyond], whole.gradients[beyond])

    def _suspects(self, scan: Scan, kind: int) -> Ints:
        """Columns whose group of a kind may exceed its strength: the scan has bounds of norms, or large entries."""
        if scan.norms is not None:
            return np.flatnonzero(scan.norms[kind] > self.strengths[kind])
        column, kinds, _ = self.problem.split_features(scan.features)
        return np.unique(column[kinds == kind]).astype(np.int64)

    def _penalty_of(self, features: Ints, w: Floats) -> float:
        group, first = self.problem.space.groups(features)
        norms = np.sqrt(np.bincount(group, w**2, len(first) - 1))
        return float(self.penalty.thresholds(features[first[:-1]]) @ norms)

    def _master(self) -> Master:
        features = self.active.features
        group, first = self.problem.space.groups(features)
        strengths = self.penalty.thresholds(features[first[:-1]])
        return super()._master()._replace(groups=group, member_ptr=first, l1=strengths, l2=np.zeros(0))

    def _kernels(self) -> tuple[Callable[..., None], Callable[..., float]]:
        return kernels.group_cuts.group_weights_of, kernels.group_cuts.group_ascend
