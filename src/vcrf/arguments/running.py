"""Running the solver for an estimator: threads, limits, progress and warnings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

import numpy as np

from vcrf.arguments.kinds import Integer
from vcrf.errors import InputError
from vcrf.solvers.result import Callback, IterationRecord, SolverResult, Status

_THREADS = Integer("a number of threads", -(1 << 31))


def n_threads(n_jobs: int | None) -> int:
    """Threads for scikit-learn's n_jobs, except that None means all cores available to the process.

    With None the variable OMP_NUM_THREADS is a limit: joblib gives it to its workers, so that they share the cores.
    """
    if n_jobs is not None and (n_jobs == 0 or not _THREADS.accepts(n_jobs)):
        raise InputError(f"`n_jobs` must be positive, or None or -1 for all cores: got {n_jobs!r}.")
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    has_affinity = hasattr(os, "sched_getaffinity")
    n_cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    if n_jobs is None:
        n_cores = min(n_cores, _limit(n_cores))
    return max(1, n_cores + 1 + (n_jobs or -1))


def _limit(n_cores: int) -> int:
    """OMP_NUM_THREADS, its first number if it is a list; else all cores."""
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return max(1, int(given)) if given.isdecimal() else n_cores


def combined_callback(callback: Callback | None, verbose: bool) -> Callback | None:
    """Return one callback that reports on the terminal, if verbose, and calls the user's."""
    if not verbose:
        return callback
    report = _terminal_report()

    def both(record: IterationRecord) -> bool | None:
        report(record)
        return callback(record) if callback is not None else None

    return both


def terminal() -> Callable[[str], None]:
    """Return a function that writes a line to stderr."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    return lambda line: console.print(line, markup=False)


def _terminal_report() -> Callable[[IterationRecord], None]:
    write = terminal()

    def report(record: IterationRecord) -> None:
        is_certified = record.objective > 0.0 and record.gap < np.inf
        gap = f"{record.gap / record.objective:.1e}" if is_certified else "?"
        error = "" if record.dev_error is None else f"  dev error {100 * record.dev_error:.2f} %"
        write(
            f"{record.seconds:8.2f} s  {record.n_passes:5d} passes  objective {record.objective:.6f}  "
            f"relative gap {gap}  {record.n_active} active{error}"
        )

    return report


def warn_unless_converged(result: SolverResult, limit_name: str) -> None:
    """Warn about weights that are not certified to the tolerance, unless nothing else was to be expected."""
    from sklearn.exceptions import ConvergenceWarning

    if result.status not in (Status.CONVERGED, Status.CHOSEN, Status.STATIONARY):
        warnings.warn(
            f"{result.status.value} Relative gap {result.relative_gap:.2g} after {result.n_passes} passes. "
            f"The model is kept. To come closer raise `{limit_name}` or the strengths; if it will do, `tol`.",
            ConvergenceWarning,
            stacklevel=3,
        )
