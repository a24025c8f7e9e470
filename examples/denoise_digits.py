"""
Denoising pictures
==================

Denoising: scikit-learn's digits in black and white, a sixth of the pixels flipped, and a grid that puts them right.

The argument, if there is one, is the path of a picture: the noisy digit, its marginals, and the labels found.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from vcrf import Graph, GraphCRF
from vcrf.graphs import draw_grid, from_grid
from vcrf.plots import new_figure, save_figure


def graph_of(noisy: np.ndarray) -> Graph:
    """Each pixel is described by the 3x3 noisy ones around it."""
    padded = np.pad(noisy, 1)
    around = [padded[a : a + 8, b : b + 8] for a in range(3) for b in range(3)]
    return from_grid(np.stack(around, axis=2).astype(float))


def main(path: str | None = None) -> None:
    """Train on 60 digits, put 60 others right."""
    rng = np.random.default_rng(0)
    clean = (load_digits().images[:120] > 7).astype(int)
    noisy = np.where(rng.random(clean.shape) < 1 / 6, 1 - clean, clean)
    X, y = [graph_of(image) for image in noisy], [image.ravel().tolist() for image in clean]
    print(f"as they came: {(noisy[60:] != clean[60:]).mean():.1%} of the pixels wrong")
    for name, graphs in (("pixels alone", [Graph(graph.nodes) for graph in X]), ("grid", X)):
        crf = GraphCRF(base_strength=1e-2, tol=1e-2).fit(graphs[:60], y[:60])
        print(f"{name}: {1 - crf.score(graphs[60:], y[60:]):.1%} wrong, relaxed: {crf.is_relaxed_}")
    if path is not None:
        figure = new_figure(9.0, 3.0)
        marginals = crf.predict_marginals(X[60:61])[0]
        shown = (noisy[60], np.array([node[1] for node in marginals]), crf.predict(X[60:61])[0])
        for axes, values in zip(figure.subplots(1, 3), shown, strict=True):
            draw_grid((8, 8), values, axes=axes)
        save_figure(figure, Path(path))


if __name__ == "__main__":
    main(*sys.argv[1:2])
