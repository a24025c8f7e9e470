"""
Shapes of factor graphs
=======================

Draw the factor graphs of docs/graphs.md: a chain, a chain with skips, a tree and a grid.

The argument is the picture's path, docs/graphs.png by default.
"""

from __future__ import annotations

import sys
from pathlib import Path

from vcrf.graphs import chain, draw, grid, skip_chain, tree
from vcrf.plots import new_figure, save_figure

GRAPHS = {
    "chain(5, 3)": chain(5, 3),
    "skip_chain(5, 3, [(0, 3)])": skip_chain(5, 3, [(0, 3)]),
    "tree([-1, 0, 0, 1, 1], 3)": tree([-1, 0, 0, 1, 1], 3),
    "grid(3, 3, 2)": grid(3, 3, 2),
}


def main(path: Path) -> None:
    """Four graphs in one picture."""
    figure = new_figure(9.0, 6.5)
    for (title, graph), axes in zip(GRAPHS.items(), figure.subplots(2, 2).flat, strict=True):
        draw(graph, axes=axes)
        axes.set_title(title, fontsize=9)
    save_figure(figure, path)
    print(f"{path}: {len(GRAPHS)} graphs")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/graphs.png"))
