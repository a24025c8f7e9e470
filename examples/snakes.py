"""
Snakes on a grid
================

Grids: where each cell of a snake is in the snake. Colours say where the snake goes next, not how far it has come.

Each cell alone knows little; edges between neighbours, described by the colours around both ends, carry the number from
the head to the tail. The sums over a grid are relaxed here, and the labels are proven best where the bound says so.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from vcrf import Graph, GraphCRF
from vcrf.graphs import draw_grid, from_grid
from vcrf.plots import new_figure, save_figure

SIZE, LENGTH = 6, 6
STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))


def draw_snake(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Colours (0 is the ground, then the four ways to the next cell, last the tail) and labels of a grid."""
    while True:
        at, way = tuple(rng.integers(0, SIZE, 2).tolist()), []
        colours, labels = np.zeros((2, SIZE, SIZE), int)
        for place in range(1, LENGTH + 1):
            labels[at] = place
            free = [
                (k, (at[0] + a, at[1] + b))
                for k, (a, b) in enumerate(STEPS)
                if 0 <= at[0] + a < SIZE and 0 <= at[1] + b < SIZE and not labels[at[0] + a, at[1] + b]
            ]
            if place == LENGTH or not free:
                break
            k, following = free[rng.integers(len(free))]
            colours[at] = 1 + k
            way.append(at)
            at = following
        if len(way) == LENGTH - 1:
            colours[at] = 5
            return colours, labels


def graph_of(colours: np.ndarray) -> Graph:
    """Flags of the colours of the 3x3 cells around each; edges have those of both ends."""
    padded = np.pad(colours, 1, constant_values=6)
    around = [np.eye(7)[padded[a : a + SIZE, b : b + SIZE]] for a in range(3) for b in range(3)]
    return from_grid(np.concatenate(around, axis=2), edge_features="ends")


def main(picture: str | None = None) -> None:
    """Train with and without edges, and label new grids."""
    rng = np.random.default_rng(0)
    drawn = [draw_snake(rng) for _ in range(60)]
    X, y = [graph_of(colours) for colours, _ in drawn], [labels.ravel().tolist() for _, labels in drawn]
    alone = [Graph(graph.nodes) for graph in X]
    for name, graphs in (("cells alone", alone), ("grid", X)):
        crf = GraphCRF(base_strength=3e-3, tol=1e-2, block_width=1, max_table=1000).fit(graphs[:40], y[:40])
        found = crf.certify(graphs[40:])
        cells = [
            (a, b) for one, labels in zip(found, y[40:], strict=True) for a, b in zip(one.labels, labels, strict=True)
        ]
        right = np.mean([a == b for a, b in cells if b])
        proven = sum(one.is_proven for one in found)
        kind = "relaxed" if crf.is_relaxed_ else "exact"
        print(f"{name}: {right:.1%} of the snakes' cells right, {proven} of {len(found)} grids proven best ({kind})")
    if picture:
        figure = new_figure(7.0, 3.0)
        for axes, title, values in zip(
            figure.subplots(1, 3), ("what is seen", "true", "found"),
            (drawn[40][0].ravel().tolist(), y[40], found[0].labels), strict=True,
        ):  # fmt: skip
            draw_grid((SIZE, SIZE), values, axes=axes)
            axes.set_title(title)
        save_figure(figure, Path(picture))


if __name__ == "__main__":
    main(*sys.argv[1:2])
