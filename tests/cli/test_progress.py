"""The progress line."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from vcrf.cli.progress import TrainingProgress
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
