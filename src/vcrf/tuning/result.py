"""What a search over strengths found: a table, its best row and the estimator trained there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

    from vcrf.estimators import VCRF


@dataclass(frozen=True)
class TuneRow:
    """One point of the grid.

    Attributes
    ----------
    complexity_strength, base_strength : the point
    error : token error, the mean over folds or that of the development set
    error_std : standard deviation over folds; None with fewer than two
    n_active : features with a weight, the mean over folds
    relative_gap : the largest certified gap / objective of the folds
    seconds : time in the solver
    n_folds : folds that were done (1 for a development set)
    """

    complexity_strength: float
    base_strength: float
    error: float
    error_std: float | None
    n_active: float
    relative_gap: float
    seconds: float
    n_folds: int


@dataclass(frozen=True)
class TuneResult:
    """What `VCRF.tune` found.

    Attributes
    ----------
    rows : one a point of the grid, from strong to weak
    best : the row with the smallest error; of equal ones the sparsest
    estimator : VCRF, trained on all of X at the best point, to its own `tol`
    is_interrupted : whether the search was stopped early (Ctrl-C or the callback)
    """

    rows: list[TuneRow]
    best: TuneRow
    estimator: VCRF = field(repr=False)
    is_interrupted: bool = False

    def table(self) -> Table:
        """For the terminal, with the best row marked."""
        from rich.table import Table

        table = Table(*_HEADINGS)
        for column in table.columns:
            column.justify = "right"
        for row in self.rows:
            table.add_row(*_cells(row), style="bold" if row == self.best else None)
        return table

    def to_markdown(self) -> str:
        """For a page; the best row is bold."""
        lines = ["| " + " | ".join(_HEADINGS) + " |", "|" + "---:|" * len(_HEADINGS)]
        for row in self.rows:
            cells = [f"**{cell}**" if row == self.best and cell else cell for cell in _cells(row)]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def plot(self, path: str | Path) -> None:
        """Draw error and number of active features along the path into a file (.png, .svg or .pdf).

        Needs matplotlib, which comes with the extra ``plots``.
        """
        from vcrf.plots import new_figure, save_figure

        figure = new_figure(7.0, 6.0)
        above, below = figure.subplots(2, 1, sharex=True)
        _draw(above, self.rows, self.best, is_error=True)
        _draw(below, self.rows, self.best, is_error=False)
        above.set_ylabel("token error (%)")
        below.set_ylabel("active features")
        below.set_xlabel("base_strength")
        above.legend(title="complexity_strength", fontsize="small")
        save_figure(figure, Path(path))


_HEADINGS = ("complexity_strength", "base_strength", "error %", "std", "active", "relative gap", "seconds")


def _cells(row: TuneRow) -> list[str]:
    return [
        f"{row.complexity_strength:.3g}",
        f"{row.base_strength:.3g}",
        f"{100 * row.error:.2f}",
        "" if row.error_std is None else f"{100 * row.error_std:.2f}",
        f"{row.n_active:.0f}",
        f"{row.relative_gap:.1g}",
        f"{row.seconds:.1f}",
    ]


def _draw(axes: Axes, rows: list[TuneRow], best: TuneRow, is_error: bool) -> None:
    """One line a complexity strength over the base strengths, the best point ringed."""
    for complexity in sorted({row.complexity_strength for row in rows}):
        line = sorted((row for row in rows if row.complexity_strength == complexity), key=lambda row: row.base_strength)
        x, values = [row.base_strength for row in line], [_height(row, is_error) for row in line]
        spread = [100 * (row.error_std or 0.0) if is_error else 0.0 for row in line]
        axes.errorbar(x, values, yerr=spread if any(spread) else None, marker="o", capsize=2, label=f"{complexity:.3g}")
    axes.plot([best.base_strength], [_height(best, is_error)], "o", ms=13, mfc="none", mec="black")
    smallest = min((row.base_strength for row in rows if row.base_strength > 0.0), default=1.0)
    axes.set_xscale("symlog", linthresh=smallest)  # logarithmic, and 0 has a place
    ticks = sorted({row.base_strength for row in rows})
    axes.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks])
    axes.set_xticks([], minor=True)


def _height(row: TuneRow, is_error: bool) -> float:
    return 100 * row.error if is_error else row.n_active
