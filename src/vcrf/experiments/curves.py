"""Error against sparsity where a grid has one strength at a time: the L1-CRF's curve and one of each method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from vcrf.experiments.plan import Cell
from vcrf.experiments.tasks import PathPoint
from vcrf.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Points = Mapping[Cell, Mapping[int, list[PathPoint]]]
_COUNTS = {"n_active": "weights, twins counted once", "n_attributes": "attributes, twins counted"}


def curves(results: Points) -> Figure:
    """A row for each data set: error against weights, and against attributes with twins. Means over runs.

    `results` has the points of each run of each cell; all cells of one share of noise.
    """
    names = list(dict.fromkeys(cell.dataset for cell in results))
    figure = new_figure(10.0, 3.8 * len(names))
    for row, name in zip(figure.subplots(len(names), 2, squeeze=False), names, strict=True):
        own = {cell.method: list(runs.values()) for cell, runs in results.items() if cell.dataset == name}
        lines = {"L1-CRF": _axis(next(iter(own.values())), is_crf=True)}
        lines |= {"VCRF" if method == "paper" else method: _axis(runs) for method, runs in own.items()}
        for axes, (count, label) in zip(row, _COUNTS.items(), strict=True):
            for method, points in lines.items():
                x = [np.mean([getattr(point, count) for point in runs]) for runs in points]
                y = [100.0 * np.mean([point.test_wrong / point.test_tokens for point in runs]) for runs in points]
                axes.plot(x, y, marker=".", lw=2.0 if method == "L1-CRF" else 1.0, label=method)
            axes.set(xscale="symlog", xlabel=label, ylabel="token error (%)", title=name)
            axes.legend(fontsize="x-small")
    return figure


def _axis(runs: Iterable[list[PathPoint]], is_crf: bool = False) -> list[tuple[PathPoint, ...]]:
    """Points of all runs at each strength of an axis, from strong to weak. (0, 0) is on neither."""
    ordered = [
        sorted(
            (
                p
                for p in points
                if (p.complexity_strength == 0.0 < p.base_strength if is_crf else p.complexity_strength)
            ),
            key=lambda p: -p.complexity_strength - p.base_strength,
        )
        for points in runs
    ]
    return list(zip(*ordered, strict=True))
