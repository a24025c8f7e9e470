"""Pictures of graphs: Graphviz text, and matplotlib (the extra `plots`).

Every `draw` takes a file to write (.png, .svg, .pdf) or axes to draw into, and gives the axes back.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf.errors import InputError
from vcrf.graphs.example import Graph
from vcrf.graphs.graph import FactorGraph
from vcrf.plots import new_figure, save_figure
from vcrf.types import Floats, Label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vcrf.graphs.kinds import PartKinds

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


# ------------------------------------------------------------------------------------ graphs with labels


def draw_graph(
    graph: Graph, labels: Sequence[Label | None] | None = None,
    marginals: Sequence[Mapping[Label, float]] | None = None, path: str | os.PathLike[str] | None = None,
    axes: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw nodes in the colours of their labels, and edges in those of their types.

    Parameters
    ----------
    graph : Graph
        Its `places` say where the nodes are; without them they stand on a circle.
    labels : one a node, optional
        Without them the likeliest of the marginals.
    marginals : one mapping from labels to probabilities a node, optional
        As `predict_marginals` gives for a graph: the less likely a node's label, the paler the node.
    """
    if labels is None and marginals is not None:
        labels = [max(one, key=lambda label: one[label]) for one in marginals]
    names: Sequence[Label | None] = [None] * graph.n_nodes if labels is None else labels
    for what, given in (("labels", names), ("marginals", marginals)):
        if given is not None and len(given) != graph.n_nodes:
            raise InputError(f"`{what}` has {len(given)} entries for {graph.n_nodes} nodes: expected one each.")
    places = _circle(graph.n_nodes) if graph.places is None else np.asarray(graph.places, np.float64)
    own, axes = _axes(axes, *_size(places))
    _draw_edges(axes, graph, places)
    known = _distinct(names)
    for v, label in enumerate(names):
        sure = 1.0 if marginals is None or label is None else float(marginals[v].get(label, 0.0))
        colour = "white" if label is None else f"C{known.index(label) % 10}"
        x, y = places[v].tolist()
        axes.scatter([x], [y], s=330, color="white", zorder=2)  # no edge shines through
        axes.scatter([x], [y], s=330, facecolor=colour, alpha=0.15 + 0.85 * sure, edgecolor="black", zorder=3)
        axes.annotate("" if label is None else str(label), (x, y), ha="center", va="center", fontsize=7, zorder=4)
    axes.set_axis_off()
    axes.margins(0.15)
    if len(graph.edges):
        axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4, frameon=False)
    return _saved(own, axes, path)


def draw_grid(
    shape: tuple[int, int], values: Any, path: str | os.PathLike[str] | None = None, axes: Axes | None = None
) -> Axes:
    """Draw a picture of the nodes of a grid: labels in colours, probabilities as a heat map.

    Parameters
    ----------
    shape : (n_rows, n_columns)
    values : one a cell, row by row
        Labels (str or int), numbers with a point, or mappings from labels to probabilities: then that of the likeliest.
    """
    n_rows, n_columns = shape
    listed = values.ravel().tolist() if isinstance(values, np.ndarray) else list(values)
    if len(listed) != n_rows * n_columns:
        raise InputError(f"There are {len(listed)} values for {n_rows} x {n_columns} cells: expected one each.")
    if listed and isinstance(listed[0], Mapping):
        listed = [max(one.values()) for one in listed]
    own, axes = _axes(axes, 1.8 + 0.25 * n_columns, 0.8 + 0.25 * n_rows)
    if all(isinstance(value, float) for value in listed):
        heat = np.array(listed).reshape(shape)
        is_share = bool(heat.min(initial=0.0) >= 0.0 and heat.max(initial=0.0) <= 1.0)
        low, high = (0.0, 1.0) if is_share else (None, None)
        picture = axes.imshow(heat, cmap="viridis", vmin=low, vmax=high)
        axes.figure.colorbar(picture, ax=axes, shrink=0.8)
    else:
        _draw_labels(axes, listed, shape)
    axes.set_xticks([])
    axes.set_yticks([])
    return _saved(own, axes, path)


def draw_tables(model: Any, path: str | os.PathLike[str] | None = None) -> list[Axes]:
    """Draw what a fitted `GraphCRF` learned of each kind of edges: the weight of every pair of labels by itself.

    Rows are the labels of the first node, columns of the second: red pairs go together, blue ones do not.
    """
    found = getattr(model, "model_", model)
    kinds: PartKinds = found.kinds
    pairs = [k for k, kind in enumerate(kinds.kinds, 1) if len(kind.types) == 2]
    if not pairs:
        raise InputError("The model has no edges, and no tables to draw.")
    n_columns = min(3, len(pairs))
    n_rows = math.ceil(len(pairs) / n_columns)
    figure = new_figure(3.6 * n_columns, 3.2 * n_rows)
    every = list(np.ravel(figure.subplots(n_rows, n_columns, squeeze=False)))
    tables = {k: found.table(f"{kinds.full_name(k)} bias") for k in pairs}
    most = max(max(float(np.abs(table).max()) for table in tables.values()), 1e-12)
    for axes, (k, table) in zip(every, tables.items(), strict=False):
        picture = axes.imshow(table, cmap="RdBu_r", vmin=-most, vmax=most)
        first, second = (list(map(str, kinds.labels[t])) for t in kinds.kinds[k - 1].types)
        axes.set_yticks(range(len(first)), first, fontsize=7)
        axes.set_xticks(range(len(second)), second, fontsize=7, rotation=90)
        axes.set_title(kinds.full_name(k), fontsize=9)
    for axes in every[len(pairs) :]:
        axes.set_axis_off()
    figure.colorbar(picture, ax=every, shrink=0.8)
    if path is not None:
        save_figure(figure, Path(path))
    return every[: len(pairs)]


def draw_training(history: Sequence[Any], path: str | os.PathLike[str] | None = None, axes: Axes | None = None) -> Axes:
    """Draw the objective and its certified lower bound over passes, from the `history_` of an estimator."""
    if not history:
        raise InputError("The history is empty: expected the `history_` of a fitted estimator.")
    own, axes = _axes(axes, 6.0, 4.0)
    axes.plot([r.n_passes for r in history], [r.objective for r in history], marker=".", label="objective")
    certified = [r for r in history if r.gap < math.inf]
    # The best bound so far holds for good.
    bounds = np.maximum.accumulate([r.objective - r.gap for r in certified] or [0.0])
    if certified:
        axes.plot([r.n_passes for r in certified], bounds, marker=".", label="lower bound of the optimum")
    axes.set(xlabel="passes", ylabel="nats an example", title="Objective and certificate")
    axes.legend()
    return _saved(own, axes, path)


def _axes(axes: Axes | None, width: float, height: float) -> tuple[Figure | None, Axes]:
    """Given ones, or those of a figure of our own."""
    if axes is not None:
        return None, axes
    figure = new_figure(width, height)
    return figure, figure.subplots()


def _saved(own: Figure | None, axes: Axes, path: str | os.PathLike[str] | None) -> Axes:
    if own is not None and path is not None:
        save_figure(own, Path(path))
    return axes


def _circle(n: int) -> Floats:
    angles = 2.0 * np.pi * np.arange(n) / max(n, 1)
    return np.column_stack([np.sin(angles), np.cos(angles)]) * max(1.0, n / 6.0)


def _size(places: Floats) -> tuple[float, float]:
    """Inches: a step of 1 is seen, and no picture is larger than a page."""
    spans = np.ptp(places, axis=0) if len(places) else np.zeros(2)
    return float(np.clip(2.0 + 0.8 * spans[0], 3.0, 16.0)), float(np.clip(1.8 + 0.8 * spans[1], 2.4, 16.0))


def _draw_edges(axes: Axes, graph: Graph, places: Floats) -> None:
    types = ["edge"] * len(graph.edges) if graph.edge_type is None else list(graph.edge_type)
    for i, kind in enumerate(dict.fromkeys(types)):
        label = kind
        for (a, b), t in zip(graph.edges.tolist(), types, strict=True):
            if t == kind:
                axes.plot(
                    *_line_between(places[a], places[b]), color=f"C{i % 10}", linewidth=1.2, zorder=1, label=label
                )
                label = "_"  # one entry of the legend a type


def _line_between(a: Floats, b: Floats) -> Floats:
    """Points of an edge, (2, n): a long one on a level would hide those below it, and bends upwards."""
    span = abs(float(b[0] - a[0]))
    if a[1] != b[1] or span <= 1.0:
        return np.stack([a, b], axis=1)
    t = np.linspace(0.0, 1.0, 25)
    return np.stack([a[0] + t * (b[0] - a[0]), a[1] + 0.8 * np.sqrt(span) * t * (1.0 - t)])


def _draw_labels(axes: Axes, labels: list[Any], shape: tuple[int, int]) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    known = _distinct(labels)
    colours = [f"C{i % 10}" for i in range(len(known))]
    numbers = np.array([known.index(label) for label in labels]).reshape(shape)
    axes.imshow(numbers, cmap=ListedColormap(colours), vmin=-0.5, vmax=len(known) - 0.5)
    handles = [Patch(color=colour, label=str(label)) for colour, label in zip(colours, known, strict=True)]
    axes.legend(handles=handles, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _distinct(labels: Sequence[Label | None]) -> list[Label]:
    """Sorted, so that a label has the same colour in every picture of the same labels."""
    return sorted({label for label in labels if label is not None}, key=lambda label: (isinstance(label, str), label))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
