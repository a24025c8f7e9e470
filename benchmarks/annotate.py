"""A simulated annotation campaign: token error against labelled sentences and tokens, random beside each strategy.

    python benchmarks/annotate.py [tamil basque english] [--first 100] [--step 100] [--last 600] [--pool 3000]

The pool is the beginning of the train split. A campaign begins with the same random sentences, trains, has the model
choose the next ones (`tagger.suggest`), takes their labels from the treebank, and goes on with a warm start. The error
is that on the test split; sentences differ in length, so that both sentences and tokens are shown.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
import peers
from accuracy import LABELS

from vcrf import VCRF
from vcrf.metrics import token_error


class Strategy(NamedTuple):
    """How the next sentences are chosen; without `by` at random."""

    name: str
    by: str = ""
    per: str = "sentence"
    diversity: float = 0.0


STRATEGIES = [
    Strategy("random"),
    Strategy("least-confidence a sentence", "least-confidence"),
    Strategy("least-confidence a token", "least-confidence", "token"),
    Strategy("margin a token", "margin", "token"),
    Strategy("entropy a token", "entropy", "token"),
    Strategy("least-confidence a token, diversity 0.5", "least-confidence", "token", 0.5),
]


def campaign(pool: Any, test: Any, strategy: Strategy, sizes: range, seed: int) -> list[tuple[int, int, float]]:
    """Sentences, tokens and test error after each round."""
    X, y = pool
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(X))[: sizes[0]].tolist()
    tagger, found = None, []
    for size in sizes:
        if tagger is not None:
            chosen += following(tagger, X, chosen, size - len(chosen), strategy, rng)
        tagger = VCRF().fit([X[i] for i in chosen], [y[i] for i in chosen], start=tagger)
        error = token_error(test[1], tagger.predict(test[0])).rate
        found.append((len(chosen), sum(len(X[i]) for i in chosen), error))
    return found


def following(
    tagger: VCRF, X: list[Any], chosen: list[int], n: int, strategy: Strategy, rng: np.random.Generator
) -> list[int]:  # fmt: skip
    """The next n sentences."""
    left = sorted(set(range(len(X))) - set(chosen))
    if not strategy.by:
        return rng.permutation(left)[:n].tolist()
    found = tagger.suggest([X[i] for i in left], n, strategy.by, strategy.per, strategy.diversity)
    return [left[suggestion.number] for suggestion in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["tamil", "basque", "english"])
    for name, default in (("first", 100), ("step", 100), ("last", 600), ("pool", 3000), ("seeds", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    for name in options.names:
        label = LABELS.get(name, "upos")
        X, y = peers.read_treebank(name, "train", label)
        pool, test = (X[: options.pool], y[: options.pool]), peers.read_treebank(name, "test", label)
        sizes = range(options.first, min(options.last, len(pool[0])) + 1, options.step)
        for strategy in STRATEGIES:
            runs = [campaign(pool, test, strategy, sizes, seed) for seed in range(options.seeds)]
            means = np.mean(runs, axis=0)
            shown = ", ".join(f"{n:.0f} ({tokens:,.0f} tokens) {error:.2%}" for n, tokens, error in means)
            print(f"{name}, {strategy.name}: {shown}", flush=True)


if __name__ == "__main__":
    main()
