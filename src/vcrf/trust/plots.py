"""Pictures of trust, with matplotlib (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vcrf.plots import new_figure, save_figure
from vcrf.trust.reliability import Reliability
from vcrf.trust.selective import percent
from vcrf.trust.table import TrustTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_reliability(sides: Mapping[str, Reliability], path: Path) -> None:
    """Draw the share of right labels against the probability that was claimed."""
    figure = new_figure(6.0, 5.0)
    _draw_reliability(figure.subplots(), sides)
    save_figure(figure, path)


def plot_trust(table: TrustTable, path: Path) -> None:
    """Draw the error against the share accepted, below what is certified, and the reliability diagram."""
    figure = new_figure(11.0, 5.0)
    left, right = figure.subplots(1, 2)
    left.plot(table.share, table.error, color="black", label="error here")
    _draw_promises(left, table)
    left.set(xlabel=f"share of {table.unit}s accepted", ylabel="share of errors among them", title="Risk and coverage")
    left.set_ylim(bottom=0.0)
    left.legend()
    _draw_reliability(right, {"as trained": table.reliability})
    save_figure(figure, path)


def _draw_promises(axes: Axes, table: TrustTable) -> None:
    """The rows as points, and for each confidence the band of errors that is certified."""
    for confidence in sorted({row.acceptance.confidence for row in table.rows}):
        band = table.band(confidence)
        (line,) = axes.plot(band.share, band.max_error, label=f"certified with {percent(confidence)} confidence")
        axes.fill_between(band.share, 0.0, band.max_error, color=line.get_color(), alpha=0.1)
        rows = [row for row in table.rows if row.acceptance.confidence == confidence and row.acceptance.is_any]
        promised = [row.acceptance.max_error for row in rows]
        axes.plot([row.share for row in rows], promised, "o", color=line.get_color())


def _draw_reliability(axes: Axes, sides: Mapping[str, Reliability]) -> None:
    axes.plot([0.0, 1.0], [0.0, 1.0], color="grey", linestyle="--")
    for name, side in sides.items():
        filled = np.flatnonzero(side.n_tokens)
        label = f"{name}: expected calibration error {side.error:.2%}"
        axes.plot(side.sureness[filled], side.accuracy[filled], marker="o", label=label)
    axes.set(xlabel="probability of the label", ylabel="share of right labels", title="Reliability")
    axes.legend()
