"""Progress of training on stderr: a bar on a terminal, a line a second elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from vcrf.cli.output import say

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from vcrf.solvers.result import IterationRecord

_SECONDS_BETWEEN_LINES = 1.0


class Shown:
    """A bar, where there is a terminal or a console, drawn between entering and leaving the context."""

    def __init__(self, make_bar: Callable[[Console | None], Progress], console: Console | None) -> None:
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._bar = make_bar(console) if is_terminal or console else None

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar:
            with suppress(OSError):  # the terminal may be gone
                self._bar.stop()


class TrainingProgress(Shown):
    """Shows the relative gap falling to the tolerance; its `callback` is an estimator's. Use it as a context."""

    def __init__(self, tol: float, title: str = "training", console: Console | None = None) -> None:
        super().__init__(_bar, console)
        self._tol = tol
        self._title = title
        self._first_gap = math.inf
        self._last_line = -math.inf
        self.more: Callable[[], str] = str  # what else there is to say
        self._task = self._bar.add_task(title, total=1.0, facts="") if self._bar else None
        # A plain function: scikit-learn copies the parameters of an estimator, and a bar cannot be copied.
        self.callback = lambda record: self.update(record)

    def begin(self, title: str) -> None:
        """Show another title from now on, with a bar that begins anew."""
        self._title, self._first_gap, self._last_line = title, math.inf, -math.inf
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=title, completed=0.0)

    def update(self, record: IterationRecord) -> None:
        """Show a record."""
        gap = record.gap / record.objective if record.objective > 0.0 else 0.0
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task, completed=self._share(gap), facts=_short_facts(record, gap, self._tol) + self.more()
            )
        elif time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES or gap <= self._tol:
            self._last_line = time.monotonic()
            say(f"{self._title} {record.seconds:7.1f} s {_facts(record, gap, self._tol)}{self.more()}")

    def _share(self, gap: float) -> float:
        """How far the gap has come from its first value to the tolerance, in decades."""
        if gap <= self._tol:
            return 1.0
        if not math.isfinite(gap):
            return 0.0
        self._first_gap = min(self._first_gap, 1.0) if math.isfinite(self._first_gap) else max(gap, 2 * self._tol)
        whole = math.log(self._first_gap / self._tol)
        return min(1.0, max(0.0, math.log(self._first_gap / gap) / whole))


def _facts(record: IterationRecord, gap: float, tol: float) -> str:
    shown = f"{gap:.1e} of {tol:g}" if math.isfinite(gap) else "not certified yet"
    facts = f"{record.n_passes:5d} passes  relative gap {shown}  {record.n_active:,} features"
    return facts if record.dev_error is None else f"{facts}  development error {record.dev_error:.2%}"


def _short_facts(record: IterationRecord, gap: float, tol: float) -> str:
    """What fits beside bar and clock in 80 columns."""
    shown = f"gap {gap:.1e}/{tol:g}" if math.isfinite(gap) else "no gap yet"
    facts = f"{shown}  {record.n_active:,} feat."
    return facts if record.dev_error is None else f"{facts}  dev {record.dev_error:.1%}"


def _bar(console: Console | None) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=10),
        TimeElapsedColumn(),
        TextColumn("{task.fields[facts]}", markup=False),
        console=console or Console(stderr=True, highlight=False),
    )
