"""Pictures of factor graphs: Graphviz text, and matplotlib (the extra `plots`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vcrf.graphs.graph import FactorGraph
from vcrf.plots import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Place = tuple[float, float]


def to_dot(graph: FactorGraph, title: str = "") -> str:
    """The graph in Graphviz' language: circles are variables, boxes factors; `dot -Tsvg` or `neato` draws it."""
    lines = ["graph factor_graph {", "  layout=neato; overlap=false; splines=true;"]
    if title:
        lines.append(f"  label={_quoted(title)};")
    lines += [f"  v{v} [shape=circle, label={_quoted(graph.name(v))}];" for v in range(graph.n_variables)]
    for f, factor in enumerate(graph.factors):
        lines.append(f"  f{f} [shape=box, style=filled, fillcolor=lightgrey, label={_quoted(factor.kind)}];")
        lines += [f"  f{f} -- v{v};" for v in factor.scope]
    return "\n".join([*lines, "}"]) + "\n"


def draw(graph: FactorGraph, path: str | os.PathLike[str] | None = None, axes: Axes | None = None) -> Axes:
    """Draw the graph with matplotlib, into a file (.png, .svg, .pdf) or into given axes."""
    places = graph.places or tuple((float(v), 0.0) for v in range(graph.n_variables))
    boxes = [_factor_place(factor.scope, places, f) for f, factor in enumerate(graph.factors)]
    figure = None
    if axes is None:
        width = max(x for x, _ in places) - min(x for x, _ in places) if places else 1.0
        height = max(y for _, y in places) - min(y for _, y in places) if places else 1.0
        figure = new_figure(2.0 + 1.2 * width, 2.4 + 1.2 * height)
        axes = figure.subplots()
    for factor, (x, y) in zip(graph.factors, boxes, strict=True):
        for v in factor.scope:
            axes.plot([x, places[v][0]], [y, places[v][1]], color="grey", linewidth=1, zorder=1)
    _draw_kinds(axes, graph, boxes)
    for v, (x, y) in enumerate(places):
        axes.scatter([x], [y], s=420, facecolor="white", edgecolor="black", zorder=3)
        axes.annotate(graph.name(v), (x, y), ha="center", va="center", fontsize=8, zorder=4)
    axes.set_axis_off()
    axes.margins(0.15)
    axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4, frameon=False)
    if figure is not None and path is not None:
        save_figure(figure, Path(path))
    return axes


def _draw_kinds(axes: Axes, graph: FactorGraph, boxes: list[Place]) -> None:
    kinds = list(dict.fromkeys(factor.kind for factor in graph.factors))
    for i, kind in enumerate(kinds):
        mine = [place for factor, place in zip(graph.factors, boxes, strict=True) if factor.kind == kind]
        axes.scatter(
            [x for x, _ in mine], [y for _, y in mine], s=70, marker="s", color=f"C{i}", label=kind, zorder=2
        )  # fmt: skip


def _factor_place(scope: tuple[int, ...], places: tuple[Place, ...], f: int) -> Place:
    """The middle of its variables; that of one variable hangs beside it, long ones on a line bend upwards."""
    if not scope:
        return (-1.0, 0.6 + 0.2 * f)
    xs, ys = [places[v][0] for v in scope], [places[v][1] for v in scope]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    if len(scope) == 1:
        is_line = len({height for _, height in places}) == 1
        return (x, y - 0.42) if is_line else (x + 0.32, y - 0.12)
    span = max(xs) - min(xs)
    # On a line a long factor would lie on the variables between.
    return (x, y + 0.28 * span) if max(ys) == min(ys) and span > 1.0 else (x, y)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
