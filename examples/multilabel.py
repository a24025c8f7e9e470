"""
Several labels an example
=========================

Several labels an example: MultiLabelCRF with no pairs, a tree of pairs, and all pairs, on invented examples.

Each label follows its own feature, and exactly one or two of the labels belong to an example: only pairs can know that.
"""

from __future__ import annotations

import numpy as np

from vcrf import MultiLabelCRF

N_LABELS = 5


def draw_examples(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features of noise around the labels."""
    Y = np.zeros((n, N_LABELS), int)
    for row in Y:
        row[rng.choice(N_LABELS, rng.integers(1, 3), replace=False)] = 1
    return np.hstack([1.5 * Y + rng.normal(size=Y.shape), rng.normal(size=(n, 10))]), Y


def main() -> None:
    """Train three times and compare."""
    rng = np.random.default_rng(0)
    (X, Y), (X_test, Y_test) = draw_examples(300, rng), draw_examples(300, rng)
    for edges in ("none", "tree", "full"):
        crf = MultiLabelCRF(edges).fit(X, Y)
        wrong = (crf.set_params(decode="marginals").predict(X_test) != Y_test).mean()
        whole = crf.set_params(decode="map").score(X_test, Y_test)
        print(f"{edges:4s}: {wrong:.1%} of single labels wrong, {whole:.1%} of rows right as a whole")


if __name__ == "__main__":
    main()
