"""
What to label next
==================

Sixty labelled sentences, and four hundred without labels. Sentences that the tagger asks for teach more than sentences
drawn at random. The argument, if there is one, is the path of a picture.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from vcrf import VCRF
from vcrf.data import Corpus, small_english
from vcrf.plots import new_figure, save_figure

FIRST, STEP, ROUNDS = 60, 60, 4


def campaign(corpus: Corpus, pool: Corpus, test: Corpus, asks: bool) -> list[tuple[int, float]]:
    """Tokens labelled, and the error on test, round by round."""
    tokens, labels, points = list(corpus.tokens), list(corpus.labels), []
    rng, left = random.Random(0), list(range(len(pool)))
    for _ in range(ROUNDS):
        tagger = VCRF(tol=0.01).fit(tokens, labels)
        points.append((sum(map(len, tokens)), 1.0 - tagger.score(test.tokens, test.labels)))
        rest = pool.take(left)
        found = tagger.suggest(rest.tokens, n=STEP, per="token", diversity=0.5) if asks else None
        chosen = [left[s.number] for s in found] if found is not None else rng.sample(left, STEP)
        tokens, labels = tokens + pool.take(chosen).tokens, labels + pool.take(chosen).labels
        left = [number for number in left if number not in set(chosen)]
    return points


def main(picture: str | None = None) -> None:
    """Two campaigns that begin alike."""
    corpus = small_english(900)
    first, pool, test = corpus[:FIRST], corpus[FIRST:500], corpus[500:]
    curves = {"drawn at random": campaign(first, pool, test, False), "asked for": campaign(first, pool, test, True)}
    for name, points in curves.items():
        print(f"{name}: {points[-1][0]:,} words labelled, {points[-1][1]:.1%} wrong")
    if picture:
        figure = new_figure(6.4, 4.0)
        axes = figure.subplots()
        for name, points in curves.items():
            axes.plot([n for n, _ in points], [100 * error for _, error in points], marker="o", label=name)
        axes.set(xlabel="words labelled", ylabel="wrong labels (%)", title="What a labelled word is worth")
        axes.legend()
        save_figure(figure, Path(picture))


if __name__ == "__main__":
    main(*sys.argv[1:2])
