"""Pictures of bounds, with matplotlib (the extra `plots`)."""

from __future__ import annotations

from pathlib import Path

from vcrf.complexity.report import RiskReport
from vcrf.plots import new_figure, save_figure


def plot_bounds(report: RiskReport, path: Path) -> None:
    """Draw every bound against the margin, beside the margin losses and the largest loss M."""
    figure = new_figure(11.0, 5.0)
    frontier = report.frontier
    for axes, margin in zip(figure.subplots(1, 2, sharey=True), ("additive", "multiplicative"), strict=True):
        for (name, kind), totals in report.curves.items():
            if kind == margin:
                axes.plot(report.rhos, totals, label=name)
        loss_at = frontier.additive if margin == "additive" else frontier.multiplicative
        axes.plot(report.rhos, [loss_at(rho) for rho in report.rhos], "k--", label="empirical margin loss")
        axes.axhline(frontier.loss_bound, color="grey", label="largest loss: vacuous above")
        axes.set(
            xscale="log", yscale="log", xlabel="margin rho", title=f"{margin} margin",
            ylim=(None, 1e3 * max(frontier.loss_bound, 1e-3)),
        )  # fmt: skip
    axes.legend(fontsize=7)
    save_figure(figure, path)
