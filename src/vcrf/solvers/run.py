"""What every run of a solver shares: limits, interrupts, watch, report and result."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from vcrf.solvers.policy import MAX_PASSES
from vcrf.solvers.result import Callback, IterationRecord, SolverResult, Status, Watch
from vcrf.types import Bools, Floats, Ints
from vcrf.workers import one_blas_thread

# Ends of a run that weights preferred by a watch do not change.
_CUT_SHORT = (Status.INTERRUPTED, Status.MAX_PASSES)


class Interrupted(Exception):
    """Ctrl-C, or the callback asked to stop, or the limit on passes was reached."""

    def __init__(self, status: Status) -> None:
        self.status = status


class Passes(Protocol):
    """What a run knows of its objective: passes so far, the columns that can carry weight, and its end."""

    n_passes: int

    @property
    def keep(self) -> Bools: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class RunOptions:
    """What every solver takes: how far to go, on what, and who looks on.

    Attributes
    ----------
    tol : stop when gap <= tol * objective
    max_passes : stop after so many passes over the data (None: the solver's own limit)
    threads : the result does not depend on it
    callback : see `Callback`; Ctrl-C has the same effect as its returning True
    watch : see `Watch`; its preferred weights are certified and returned
    lattice : "dense", "patterns" or "auto", see `structures.chain.is_dense`
    """

    tol: float = 1e-3
    max_passes: int | None = None
    threads: int = 1
    callback: Callback | None = None
    watch: Watch | None = None
    lattice: str = "auto"


class Standing(NamedTuple):
    """Where a run is: weights of a working set, and what they cost."""

    features: Ints
    w: Floats
    objective: float
    n_working: int


class Run(ABC):
    """One run.

    Attributes
    ----------
    lower_bound : certified, on the optimum
    violation : of the optimality conditions, as the certificate saw it last
    """

    def __init__(self, objective: Passes, how: RunOptions, most_passes: int = MAX_PASSES) -> None:
        self._passes, self.tol, self.callback, self.watch = objective, how.tol, how.callback, how.watch
        self.max_passes = most_passes if how.max_passes is None else how.max_passes
        self.lower_bound, self.violation = 0.0, np.inf
        self.history: list[IterationRecord] = []
        self.began = time.perf_counter()

    @abstractmethod
    def standing(self) -> Standing:
        """The weights to report, and to return if the run ends here."""

    @abstractmethod
    def _begin(self, start: SolverResult | None) -> None:
        """Stand somewhere: an interruption before that leaves nothing to return."""

    @abstractmethod
    def _solve(self) -> Status:
        """Until the gap is closed, or an `Interrupted`."""

    def _salvage(self, status: Status) -> Status:
        """After an interruption: certify the best weights so far; the status may say more."""
        return status

    @abstractmethod
    def _adopt(self, features: Ints, w: Floats) -> None:
        """Stand at these weights."""

    def run(self, start: SolverResult | None) -> SolverResult:
        """Solve, whatever the end."""
        with one_blas_thread():
            return self._run(start)

    def _run(self, start: SolverResult | None) -> SolverResult:
        try:
            self._begin(start)
            try:
                status = self._solve()
            except (Interrupted, KeyboardInterrupt) as stop:
                status = self._salvage(stop.status if isinstance(stop, Interrupted) else Status.INTERRUPTED)
                status = Status.CONVERGED if self.is_certified else status
            status = self._prefer(status)
        finally:
            self._passes.close()
        here, nonzero = self.standing(), np.flatnonzero(self.standing().w)
        return SolverResult(
            here.features[nonzero], here.w[nonzero], here.objective, self.gap, self.violation, status,
            self._passes.n_passes, time.perf_counter() - self.began, self.history,
            int(np.count_nonzero(self._passes.keep)),
        )  # fmt: skip

    def _prefer(self, status: Status) -> Status:
        """Stand at the weights that the watch prefers, certified like any others."""
        if self.watch is None or self.watch.preferred is None:
            return status
        self._adopt(*self.watch.preferred)
        if self.is_certified:
            return Status.CONVERGED
        return status if status in _CUT_SHORT else Status.CHOSEN

    # ----- the certificate

    @property
    def gap(self) -> float:
        """Objective less the lower bound."""
        return self.gap_at(self.standing().objective)

    def gap_at(self, objective: float) -> float:
        """The gap of another objective."""
        return float(max(objective - self.lower_bound, 0.0))

    @property
    def is_certified(self) -> bool:
        """Whether the gap is small enough."""
        return self.is_certified_at(self.standing().objective)

    def is_certified_at(self, objective: float) -> bool:
        """Whether the gap of another objective would be."""
        return bool(np.isfinite(objective)) and self.gap_at(objective) <= self.tol * objective

    def raise_bound(self, lower_bound: float, violation: float) -> None:
        """A scan of all candidates has found another lower bound."""
        self.lower_bound, self.violation = max(self.lower_bound, lower_bound), violation

    # ----- limits and reports

    def check_limit(self) -> None:
        """Stop where no pass is left."""
        if self._passes.n_passes >= self.max_passes:
            raise Interrupted(self._out_of_passes)

    @property
    def _out_of_passes(self) -> Status:
        return Status.MAX_PASSES

    def report(self, phase: str, here: Standing | None = None) -> None:
        """A record of where the run is, for the history, the watch and the callback, which may ask for its end."""
        here = self.standing() if here is None else here
        record = IterationRecord(
            self._passes.n_passes, time.perf_counter() - self.began, here.objective, self.gap_at(here.objective),
            self.violation, int(np.count_nonzero(here.w)), here.n_working, phase,
        )  # fmt: skip
        if self.watch is not None:
            record = self.watch.look(record, here.features, here.w)
        self.history.append(record)
        if self.watch is not None and self.watch.is_enough:
            raise Interrupted(Status.CHOSEN)
        if self.callback is not None and self.callback(record):
            raise Interrupted(Status.INTERRUPTED)
