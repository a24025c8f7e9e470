"""
The automata of training
========================

Sums over all label sequences are sums over the paths of an automaton. Its states are (last label, position), and an arc
carries exp of the scores that it completes: the paper's A. With a loss that adds up along the sentence, arcs that go
wrong carry its exponential too: A'. The argument, if there is one, is the path of a picture of both.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np

from vcrf.automata import PROBABILITY, Automaton, total_weight

LABELS = ["D", "N"]
TRUTH = ["D", "N", "N"]
# Scores of a label at a position, and of a pair of neighbours.
SCORES = np.array([[1.0, 0.0], [0.0, 0.5], [0.2, 0.8]])
PAIRS = np.array([[-0.5, 1.0], [0.0, 0.3]])


def weight(t: int, before: int | None, label: int, loss: float) -> float:
    """What an arc carries: exp of the scores it completes, and of the loss of a wrong label."""
    score = SCORES[t, label] + (0.0 if before is None else PAIRS[before, label])
    return float(np.exp(score + loss * (LABELS[label] != TRUTH[t])))


def state(t: int, label: int) -> int:
    """Number of the state after position t; 0 is where paths begin."""
    return 1 + t * len(LABELS) + label


def automaton(loss: float) -> Automaton:
    """A with no loss, A' with one."""
    arcs = [(0, z, z, weight(0, None, b, loss), state(0, b)) for b, z in enumerate(LABELS)]
    for t, a, (b, z) in itertools.product(range(1, len(TRUTH)), range(len(LABELS)), enumerate(LABELS)):
        arcs.append((state(t - 1, a), z, z, weight(t, a, b, loss), state(t, b)))
    final = {state(len(TRUTH) - 1, b): 1.0 for b in range(len(LABELS))}
    return Automaton.from_arcs(arcs, final, PROBABILITY)


def sum_of_paths(loss: float) -> float:
    """The same sum, sequence by sequence."""
    total = 0.0
    for y in itertools.product(range(len(LABELS)), repeat=len(TRUTH)):
        before = [None, *y]
        total += np.prod([weight(t, before[t], b, loss) for t, b in enumerate(y)])
    return total


def place(number: int) -> tuple[float, float]:
    """Where a state is drawn."""
    if number == 0:
        return 0.0, 0.5
    t, label = divmod(number - 1, len(LABELS))
    return t + 1.0, 1.0 - label


def draw(automata: dict[str, Automaton], path: Path) -> None:
    """One below the other: states as circles, arcs with label and weight; those of the truth are thick."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2 * len(automata)), layout="constrained")
    for axes, (title, made) in zip(figure.subplots(len(automata)), automata.items(), strict=True):
        for source, arc in made.all_arcs():
            (x, y), (to_x, to_y) = place(source), place(arc.to)
            t = (arc.to - 1) // len(LABELS)
            is_true = arc.input == TRUTH[t] and (source == 0 or LABELS[(source - 1) % len(LABELS)] == TRUTH[t - 1])
            arrow = {"arrowstyle": "->", "lw": 2.5 if is_true else 1.0, "shrinkA": 20, "shrinkB": 20}
            axes.annotate("", (to_x, to_y), (x, y), arrowprops=arrow)
            at = 0.35
            axes.text(
                x + at * (to_x - x), y + at * (to_y - y), f"{arc.input} / {arc.weight:.2f}", ha="center", va="center",
                fontsize=8, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )  # fmt: skip
        for number in range(made.n_states):
            x, y = place(number)
            t, label = divmod(number - 1, len(LABELS))
            name = f"{LABELS[label]}, {t + 1}" if number else "start"
            axes.text(x, y, name, ha="center", va="center", bbox={"boxstyle": "round", "facecolor": "#dbe9f6"})
        axes.set(title=title, xlim=(-0.4, len(TRUTH) + 0.4), ylim=(-0.35, 1.35))
        axes.axis("off")
    figure.savefig(path)


def main(picture: str | None = None) -> None:
    """Compare the automata's sums with those over all sequences, and draw both."""
    automata = {"A: scores alone": automaton(0.0), "A': with the Hamming loss": automaton(1.0)}
    for (name, made), loss in zip(automata.items(), (0.0, 1.0), strict=True):
        print(f"{name}: all paths {total_weight(made):.4f}, all label sequences {sum_of_paths(loss):.4f}")
    if picture:
        draw(automata, Path(picture))


if __name__ == "__main__":
    main(*sys.argv[1:2])
