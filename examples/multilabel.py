"""
Several labels an example
=========================

Several labels an example: MultiLabelCRF with no pairs, a tree of pairs, and all pairs, on invented examples.

Each label follows its own feature, and exactly one or two of the labels belong to an example: only pairs can know that.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from vcrf import MultiLabelCRF
from vcrf.plots import new_figure, save_figure

N_LABELS = 5


def draw_examples(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features of noise around the labels."""
    Y = np.zeros((n, N_LABELS), int)
    for row in Y:
        row[rng.choice(N_LABELS, rng.integers(1, 3), replace=False)] = 1
    return np.hstack([1.5 * Y + rng.normal(size=Y.shape), rng.normal(size=(n, 10))]), Y


def main(picture: str | None = None) -> None:
    """Train three times and compare."""
    rng = np.random.default_rng(0)
    (X, Y), (X_test, Y_test) = draw_examples(300, rng), draw_examples(300, rng)
    rows = {}
    for edges in ("none", "tree", "full"):
        crf = MultiLabelCRF(edges).fit(X, Y)
        wrong = (crf.set_params(decode="marginals").predict(X_test) != Y_test).mean()
        whole = crf.set_params(decode="map").score(X_test, Y_test)
        print(f"{edges:4s}: {wrong:.1%} of single labels wrong, {whole:.1%} of rows right as a whole")
        rows[edges] = 100.0 * whole
    if picture:
        figure = new_figure(5.0, 3.2)
        axes = figure.subplots()
        axes.bar(["no pairs", "a tree of pairs", "all pairs"], list(rows.values()))
        axes.set(ylabel="rows right as a whole (%)", title="What pairs of labels know")
        save_figure(figure, Path(picture))


if __name__ == "__main__":
    main(*sys.argv[1:2])
