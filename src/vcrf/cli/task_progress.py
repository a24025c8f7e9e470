"""Progress of the experiments on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from vcrf.cli.output import say
from vcrf.cli.progress import Shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

    from vcrf.experiments.plan import Progress

_SECONDS_BETWEEN_LINES = 5.0


class TaskProgress(Shown):
    """Shows how many tasks are done and how long the others may take. Use it as a context."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(_bar, console)
        self._task = self._bar.add_task("tasks", total=None, left="", latest="") if self._bar else None
        self._last_line = -_SECONDS_BETWEEN_LINES
        self._began = time.monotonic()

    def update(self, progress: Progress) -> None:
        """Show how far the work has come."""
        left = "" if progress.seconds_left is None else f"about {_duration(progress.seconds_left)} left"
        task = None if progress.latest is None else progress.latest.task
        if self._bar is not None and self._task is not None:
            latest = "" if task is None else f"{task.dataset}, run {task.run}"  # what fits in 80 columns
            self._bar.update(self._task, completed=progress.n_done, total=progress.n_all, left=left, latest=latest)
        elif time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES or progress.n_done == progress.n_all:
            self._last_line = time.monotonic()
            elapsed = _duration(time.monotonic() - self._began)
            latest = "" if task is None else task.describe()
            say("  ".join(filter(None, [f"{progress.n_done}/{progress.n_all} tasks", elapsed, left, latest])))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _bar(console: Console | None) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        MofNCompleteColumn(),
        TextColumn("tasks"),
        BarColumn(bar_width=10),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        TextColumn("{task.fields[latest]}", markup=False),
        console=console or Console(stderr=True, highlight=False),
    )
