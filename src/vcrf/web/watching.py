"""A training that is under way, for the page to look at."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from vcrf.web.views import history_view

if TYPE_CHECKING:
    from vcrf.solvers.result import IterationRecord


class LiveTraining:
    """Records as they come; `see` is called by the solver, `view` by the page.

    A search over strengths trains many times: a record with fewer passes than the one before begins a new history.
    """

    def __init__(self, name: str, tol: float | None = None) -> None:
        self.name, self.tol = name, tol
        self.is_running, self.title, self.status = True, "training", ""
        self._records: list[IterationRecord] = []
        self._lock = threading.Lock()
        self.seen_end = threading.Event()
        self.is_watched = False

    def see(self, record: IterationRecord) -> None:
        """Keep a record."""
        with self._lock:
            if self._records and record.n_passes < self._records[-1].n_passes:
                self._records = []
            self._records.append(record)

    def end(self, status: str) -> None:
        """Note that no more records come, and why."""
        self.status, self.is_running = status, False

    def view(self) -> dict[str, Any]:
        """What is there so far."""
        self.is_watched = True
        with self._lock:
            records = list(self._records)
        is_running = self.is_running
        if not is_running:
            self.seen_end.set()
        last = records[-1] if records else None
        return history_view(
            records, self.name, is_running=is_running, tol=self.tol, title=self.title, status=self.status or None,
            n_active=last.n_active if last else None, objective=last.objective if last else None,
            gap=last.gap if last else None, seconds=last.seconds if last else None,
        )  # fmt: skip
