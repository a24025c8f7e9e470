"""
Named entities
==============

People, places and organisations as spans (BIO). Constraints keep to valid sequences; scores count whole entities, with
intervals. The argument, if there is one, is the path of a picture.
"""

from __future__ import annotations

import sys
from pathlib import Path

from vcrf import VCRF
from vcrf.data import small_english
from vcrf.metrics import entity_f1_interval, entity_scores
from vcrf.plots import new_figure, save_figure


def main(picture: str | None = None) -> None:
    """Learn from few and from more sentences."""
    corpus = small_english(900, labels="entities")
    test = corpus[600:]
    points = []
    for n in (50, 100, 200, 400, 600):
        train = corpus[:n]
        predicted = VCRF(constraints="BIO").fit(train.tokens, train.labels).predict(test.tokens)
        f1 = entity_scores(test.labels, predicted).overall.f1
        points.append((n, f1, *entity_f1_interval(test.labels, predicted)))
        print(f"{n:4d} sentences: F1 {f1:.1%}")
    if picture:
        draw(points, Path(picture))


def draw(points: list[tuple[float, ...]], path: Path) -> None:
    """F1 by the number of sentences, with 95 % intervals."""
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    n, f1, low, high = zip(*points, strict=True)
    axes.fill_between(n, [100 * x for x in low], [100 * x for x in high], alpha=0.2)
    axes.plot(n, [100 * x for x in f1], marker="o")
    axes.set(xlabel="sentences to learn from", ylabel="F1 of entities (%)", title="Entities found, with 95 % intervals")
    save_figure(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
