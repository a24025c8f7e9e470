"""
States of a machine
===================

Rows of numbers in place of words: three noisy sensors of a machine that is idle, busy or hot for a while. Positions on
their own are often wrong; a sequence knows that states last. The argument, if there is one, is the path of a picture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from vcrf import VCRF
from vcrf.plots import new_figure, save_figure

STATES = ["idle", "busy", "hot"]


def draw_machine(rng: np.random.Generator, length: int = 60) -> tuple[np.ndarray, list[str]]:
    """Readings and states."""
    states = [0]
    while len(states) < length:
        states.append(int(rng.integers(3)) if rng.random() < 0.12 else states[-1])
    return np.eye(3)[states] + rng.normal(0.0, 0.9, (length, 3)), [STATES[state] for state in states]


def main(picture: str | None = None) -> None:
    """Train with and without neighbours."""
    rng = np.random.default_rng(0)
    pairs = [draw_machine(rng) for _ in range(120)]
    X, y = [x for x, _ in pairs], [states for _, states in pairs]
    crfs = {"positions alone": VCRF(tags=1).fit(X[:80], y[:80]), "sequences": VCRF().fit(X[:80], y[:80])}
    for name, crf in crfs.items():
        print(f"{name}: {crf.score(X[80:], y[80:]):.1%} right")
    if picture:
        draw({"true": y[80]} | {name: crf.predict([X[80]])[0] for name, crf in crfs.items()}, Path(picture))


def draw(rows: dict[str, list[str]], path: Path) -> None:
    """One row of colours for each way."""
    figure = new_figure(7.0, 2.4)
    axes = figure.subplots()
    axes.imshow([[STATES.index(state) for state in states] for states in rows.values()], aspect="auto", cmap="viridis")
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set(xlabel="time", title="idle, busy and hot: true, and found")
    save_figure(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
