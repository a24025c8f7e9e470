"""Error against sparsity where a grid has one strength at a time: the L1-CRF's curve and one of each method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf.experiments.plan import Cell, Results
from vcrf.experiments.tasks import Point
from vcrf.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COUNTS = {"n_active": "weights, twins counted once", "n_attributes": "attributes, twins counted"}


def curves(results: Results, cells: list[Cell]) -> Figure:
    """A row for each data set: error against weights, and against attributes with twins. Means over runs."""
    names = list(dict.fromkeys(cell.dataset for cell in cells))
    figure = new_figure(10.0, 3.8 * len(names))
    for row, name in zip(figure.subplots(len(names), 2, squeeze=False), names, strict=True):
        own = [cell for cell in cells if cell.dataset == name]
        lines = {"L1-CRF": _axis(results, own[0], is_crf=True)}
        lines |= {"VCRF" if cell.method == "paper" else cell.method: _axis(results, cell) for cell in own}
        for axes, (count, label) in zip(row, _COUNTS.items(), strict=True):
            for method, points in lines.items():
                x = [np.mean([getattr(point, count) for point in runs]) for runs in points]
                y = [100.0 * np.mean([point.test_wrong / point.test_tokens for point in runs]) for runs in points]
                axes.plot(x, y, marker=".", lw=2.0 if method == "L1-CRF" else 1.0, label=method)
            axes.set(xscale="symlog", xlabel=label, ylabel="token error (%)", title=name)
            axes.legend(fontsize="x-small")
    return figure


def _axis(results: Results, cell: Cell, is_crf: bool = False) -> list[tuple[Point, ...]]:
    """Points of all runs at each strength of an axis, from strong to weak. (0, 0) is on neither."""
    runs = [
        sorted(
            (
                p
                for p in points
                if (p.complexity_strength == 0.0 < p.base_strength if is_crf else p.complexity_strength)
            ),
            key=lambda p: -p.complexity_strength - p.base_strength,
        )
        for points in results.points[cell].values()
    ]
    return list(zip(*runs, strict=True))
