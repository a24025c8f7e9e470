"""Pictures of the experiments, with matplotlib (the extra `plots`)."""

from __future__ import annotations

import io
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from vcrf.experiments.comparison import Summary, difference
from vcrf.experiments.curves import curves
from vcrf.experiments.document import Picture
from vcrf.experiments.plan import Cell, Results
from vcrf.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PAPER_FAMILY = re.compile(r"H\((\d+),(\d+),(\d+)\)")


def draw(results: Results) -> list[Picture]:
    """All pictures; raises MissingExtraError without matplotlib."""
    pictures = []
    for noise in results.plan.noises:
        cells = results.cells(noise)
        if not cells:
            continue
        with_noise = f" ({noise:.0%} noise)" if noise else ""
        suffix = "-noise" if noise else ""
        pictures += [
            _path_picture(results, cells, suffix, with_noise),
            Picture(
                f"families{suffix}",
                "Shares of the families in the chosen models, by what a feature reads: k1 words and k2 tags for the "
                "paper's families; for others tag patterns by their length, and else what is read of the text"
                f"{with_noise}.",
                _svg(_families(results, cells)),
            ),
            Picture(
                f"difference{suffix}",
                f"Token error of VCRF less that of L1-CRF: each run, mean and 95 % interval{with_noise}.",
                _svg(_differences(results, cells)),
            ),
        ]
    return pictures


def _path_picture(results: Results, cells: list[Cell], suffix: str, with_noise: str) -> Picture:
    if results.plan.grid.is_axes:
        text = (
            "Test error against sparsity, one strength at a time, mean over runs{}. The L1-CRF is the axis of base "
            "strengths, the others are axes of complexity strengths."
        )
        return Picture(
            f"path{suffix}", text.format(with_noise), _svg(curves({cell: results.points[cell] for cell in cells}))
        )
    text = (
        "Test error against features along the grid, mean over runs{}. A line is a complexity strength, from the "
        "strongest to the weakest base strength; 0 is the L1-CRF."
    )
    return Picture(f"path{suffix}", text.format(with_noise), _svg(_paths(results, cells)))


def _svg(figure: Figure) -> str:
    import matplotlib as mpl

    out = io.StringIO()
    # A salt of its own and no date: the same results give the same bytes.
    with mpl.rc_context({"svg.hashsalt": "vcrf"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def _paths(results: Results, cells: list[Cell]) -> Figure:
    n_columns = min(len(cells), 3)
    n_rows = -(-len(cells) // n_columns)
    figure = new_figure(4.6 * n_columns, 3.8 * n_rows)
    places = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes, cell in zip(places, cells, strict=False):
        _draw_path(axes, results, cell)
    for axes in places[len(cells) :]:  # of the last row
        axes.remove()
    return figure


def _draw_path(axes: Axes, results: Results, cell: Cell) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    grid, runs = results.plan.grid, list(results.points[cell].values())
    for complexity in grid.complexity_strengths:
        features, errors = [], []
        for base in grid.base_strengths:
            points = [p for run in runs for p in run if (p.complexity_strength, p.base_strength) == (complexity, base)]
            if not points:  # (0, 0) of a method that needs a penalty
                continue
            features.append(np.mean([p.n_active for p in points]))
            errors.append(100.0 * np.mean([p.test_wrong / p.test_tokens for p in points]))
        is_crf = complexity == 0.0
        axes.plot(
            features, errors, marker=".", lw=2.0 if is_crf else 1.0, color="black" if is_crf else None,
            label=f"{complexity:g}", zorder=3 if is_crf else 2,
        )  # fmt: skip
    axes.set(xscale="symlog", xlabel="features", ylabel="token error (%)")
    if any(p.test_wrong for run in runs for p in run):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title(f"{cell.dataset}, {cell.method}", fontsize="medium")
    axes.legend(title="complexity strength", fontsize="x-small", title_fontsize="x-small")


def _families(results: Results, cells: list[Cell]) -> Figure:
    from matplotlib import colormaps

    shares = {}
    for cell in cells:
        shares[f"{cell.dataset} {cell.method}\nVCRF"] = _share(results.vcrf(cell))
        shares[f"{cell.dataset} {cell.method}\nL1-CRF"] = _share(results.crf(cell))
    kinds = sorted({kind for share in shares.values() for kind in share})
    colours = colormaps["tab20"].colors  # type: ignore[attr-defined]
    figure = new_figure(9.0, 1.2 + 0.45 * len(shares))
    axes = figure.subplots()
    left = np.zeros(len(shares))
    for i, kind in enumerate(kinds):
        width = np.array([share.get(kind, 0.0) for share in shares.values()])
        hatch = "///" if i >= len(colours) else None
        axes.barh(range(len(shares)), width, left=left, label=kind, color=colours[i % len(colours)], hatch=hatch)
        left += width
    axes.set_yticks(range(len(shares)), list(shares), fontsize="x-small")
    axes.invert_yaxis()
    axes.set(xlabel="share of the features (%)")
    axes.legend(fontsize="x-small", bbox_to_anchor=(1.01, 1.0), loc="upper left")
    return figure


def _share(summary: Summary) -> dict[str, float]:
    """Per cent of the features of each kind, over all runs."""
    counts: Counter[str] = Counter()
    for point in summary.chosen:
        for name, n in point.families.items():
            counts[_kind(name)] += n
    return {kind: 100.0 * n / counts.total() for kind, n in counts.items()}


def _kind(family: str) -> str:
    """What its features read, whatever the length of an affix and whichever the neighbour."""
    found = _PAPER_FAMILY.fullmatch(family)
    if found:
        return f"k1 = {found[1]}, k2 = {found[2]}"
    return family if family.startswith("tags:") else re.split(r"[:\[]", family)[0]


def _differences(results: Results, cells: list[Cell]) -> Figure:
    figure = new_figure(7.5, 1.2 + 0.5 * len(cells))
    axes = figure.subplots()
    for row, cell in enumerate(cells):
        found = difference(results.vcrf(cell).token, results.crf(cell).token)
        axes.plot(found.values, np.full(len(found.values), row), "o", ms=4, mfc="none", color="C0")
        error = [[found.mean - found.low], [found.high - found.mean]]
        axes.errorbar([found.mean], [row], xerr=error, fmt="D", ms=5, capsize=3, color="black")
    axes.axvline(0.0, color="grey", lw=1.0)
    axes.set_yticks(range(len(cells)), [f"{cell.dataset} {cell.method}" for cell in cells], fontsize="small")
    axes.invert_yaxis()
    axes.set(xlabel="token error of VCRF less L1-CRF (points of per cent; left of 0: VCRF is better)")
    return figure
