"""What longer tag patterns bring: token error at orders 1 .. 5 by cross-validation, L1-CRF beside VCRF.

    python benchmarks/order_effect.py [tamil:upos twitter-tweebank:xpos basque:upos] [--orders 1 2 3 4 5] [--folds 5]
                                      [--sentences 600] [--occurrences 1] [--share 0 1]

Prints a Markdown table. All sentences of the training split (at most `--sentences`) are cut into folds; each
is held out once. The strength of family k is occurrences / m * (1 - share + share * r_k / r), r_k its complexity and r
the mean complexity at order 2: share 0 is the L1-CRF, share 1 the VCRF without a base strength. Nothing is chosen on
the held-out data. Errors are means over the folds with their standard errors, differences those of the same folds.
`patterns` are the tag patterns with a weight by length (2, 3, ...), mean over the folds.
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np
import peers

from vcrf import VCRF
from vcrf.families import default_families, intern_sentences, paper_complexities


def complexity_scale(X: list[list[str]], n_labels: int) -> float:
    """Mean complexity of the families of order 2: the unit of strengths."""
    return float(np.mean(paper_complexities(default_families(tags=2), intern_sentences(X), n_labels)))


class Cell(NamedTuple):
    """One order and share: token errors of the folds, patterns used by length, the largest relative gap."""

    errors: np.ndarray
    patterns: list[int]
    gap: float


def evaluate(name: str, tag: str, order: int, share: float, options: argparse.Namespace) -> Cell:
    X, y = peers.read_treebank(name, "train", tag)
    X, y = X[: options.sentences], y[: options.sentences]
    fold = np.random.default_rng(0).permutation(len(X)) % options.folds
    unit = complexity_scale(X, len({label for labels in y for label in labels}))
    errors, patterns, gaps = [], [], []
    for held in range(options.folds):
        train, test = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        m = len(train)
        tagger = VCRF(
 recipe="paper",
            tags=order, base_strength=(1.0 - share) * options.occurrences / m,
            complexity_strength=share * options.occurrences / m / unit, tol=options.tol, n_jobs=options.jobs,
        ).fit([X[i] for i in train], [y[i] for i in train])  # fmt: skip
        errors.append(1.0 - tagger.score([X[i] for i in test], [y[i] for i in test]))
        lengths = tagger.model_.lengths
        patterns.append([int((lengths == k).sum()) for k in range(2, order + 1)])
        gaps.append(tagger.gap_ / tagger.objective_)
    used = np.round(np.mean(patterns, axis=0)).astype(int).tolist() if order > 1 else []
    return Cell(np.array(errors), used, max(gaps))


def spread(values: np.ndarray) -> str:
    """Mean and standard error in per cent."""
    return f"{100 * values.mean():.2f} ± {100 * np.std(values, ddof=1) / np.sqrt(len(values)):.2f}"


def row(cells: list[Cell], two: list[Cell] | None) -> str:
    """Each share's error, patterns and difference from its order 2; the last share's difference from the first."""
    parts = []
    for k, cell in enumerate(cells):
        to_two = "" if two is None else spread(cell.errors - two[k].errors)
        parts.append(f"{spread(cell.errors)} | {to_two} | {', '.join(map(str, cell.patterns))}")
    between = spread(cells[-1].errors - cells[0].errors) if len(cells) > 1 else ""
    return f"{' | '.join(parts)} | {between} | {max(cell.gap for cell in cells):.0e} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", type=peers.dataset, default=["tamil:upos", "twitter-tweebank:xpos", "basque:upos"]
    )
    parser.add_argument("--orders", nargs="+", type=peers.at_least(1), default=[1, 2, 3, 4, 5])
    parser.add_argument("--folds", type=peers.at_least(2), default=5)
    parser.add_argument("--sentences", type=peers.at_least(1), default=600)
    parser.add_argument("--occurrences", type=peers.positive, default=1.0)
    parser.add_argument("--share", nargs="+", type=float, default=[0.0, 1.0])
    parser.add_argument("--tol", type=peers.positive, default=0.01)
    parser.add_argument("--jobs", type=peers.at_least(1), default=2)
    options = parser.parse_args()
    if not all(0.0 <= share <= 1.0 for share in options.share):
        parser.error("--share: expected numbers from 0 to 1")
    if options.sentences < 2 * options.folds:
        parser.error(f"--sentences {options.sentences}: expected at least two for each of {options.folds} folds")
    warnings.simplefilter("ignore")
    columns = "".join(f" error, share {share:g} | to order 2 | patterns |" for share in options.share)
    header = f"| data | order |{columns} last share - first | largest gap |"
    print(header, "|" + "---|" * (header.count("|") - 1), sep="\n", flush=True)
    for given in options.names:
        name, _, tag = given.partition(":")
        two = None
        for order in options.orders:
            cells = [evaluate(name, tag, order, share, options) for share in options.share]
            two = cells if order == 2 else two
            print(f"| {given} | {order} | {row(cells, None if order <= 2 else two)}", flush=True)


if __name__ == "__main__":
    main()
