"""The progress line."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from vcrf.cli.progress import TrainingProgress
from vcrf.cli.task_progress import TaskProgress
from vcrf.experiments.methods import Method
from vcrf.experiments.plan import Progress
from vcrf.experiments.scheduling import Outcome
from vcrf.experiments.tasks import PathTask, Settings
from vcrf.solvers.result import IterationRecord


@pytest.mark.parametrize("title", ["training", "tuning 16/80"])
def test_bar_clock_and_facts_fit_80_columns(title: str) -> None:
    """On one line, nothing cut."""
    out = StringIO()
    progress = TrainingProgress(1e-3, console=Console(file=out, width=80, force_terminal=True, color_system=None))
    with progress:
        progress.begin(title)
        for gap in (0.5, 6.6e-3):
            progress.update(IterationRecord(123, 4.0, 1.0, gap, 0.1, 1_234_567, 2_000_000, "steps", 0.1234))
    line = out.getvalue().splitlines()[-2]  # the last one shows the cursor again
    for part in (title, "━", "0:00:0", "gap 6.6e-03/0.001", "1,234,567 feat.", "dev 12.3%"):
        assert part in line, out.getvalue()


def test_tasks_done_and_time_left_fit_80_columns() -> None:
    """On one line, nothing cut; without a terminal a line that names the task."""
    task = PathTask("twitter-tweebank", "", "xpos", Method.of("paper"), 1e-5, (0.1,), 4, 0.2, Settings(), "1")
    steps = [Progress(0, 160, None, None), Progress(12, 160, 3723.0, Outcome(task, None))]
    out = StringIO()
    with TaskProgress(Console(file=out, width=80, force_terminal=True, color_system=None)) as progress:
        for step in steps:
            progress.update(step)
    line = out.getvalue().splitlines()[-2]
    for part in ("12/160 tasks ╸", "0:00:0", "about 1:02:03 left", "twitter-tweebank, run 4"):
        assert part in line, out.getvalue()


def test_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """The first and the last are always written."""
    task = PathTask("tamil", "", "upos", Method.of("paper"), 1e-5, (0.1,), 4, 0.2, Settings(), "1")
    with TaskProgress() as progress:
        for n in (0, 1, 2):
            progress.update(Progress(n, 2, 59.6 if n else None, Outcome(task, None) if n else None))
    first, last = capsys.readouterr().err.splitlines()
    assert first == "0/2 tasks  0:00"
    assert last == "2/2 tasks  0:00  about 1:00 left  tamil paper run 4 noise 0.2 complexity strength 1e-05"
