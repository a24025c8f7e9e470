"""What longer tag patterns bring: token error at orders 1 .. 5 by cross-validation, L1-CRF beside VCRF.

    python benchmarks/order_effect.py [tamil:upos twitter-tweebank:xpos basque:upos] [--orders 1 2 3 4 5] [--folds 5]
                                      [--sentences 600] [--occurrences 1] [--share 0 1]

All sentences of the training split (at most `--sentences`) are cut into folds; each is held out once. The strength of
family k is occurrences / m * (1 - share + share * r_k / r), r_k its complexity and r the mean complexity at order 2:
share 0 is the L1-CRF, share 1 the VCRF without a base strength. Nothing is chosen on the held-out data. `patterns` are
the tag patterns with a weight by length (2, 3, ...), mean over the folds.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import peers

from vcrf import VCRF
from vcrf.families import default_families, intern_sentences, paper_complexities


def complexity_scale(X: list[list[str]], n_labels: int) -> float:
    """Mean complexity of the families of order 2: the unit of strengths."""
    return float(np.mean(paper_complexities(default_families(tags=2), intern_sentences(X), n_labels)))


def evaluate(name: str, tag: str, order: int, share: float, options: argparse.Namespace) -> None:
    X, y = peers.read_treebank(name, "train", tag)
    X, y = X[: options.sentences], y[: options.sentences]
    fold = np.random.default_rng(0).permutation(len(X)) % options.folds
    unit = complexity_scale(X, len({label for labels in y for label in labels}))
    errors, patterns, gaps = [], [], []
    for held in range(options.folds):
        train, test = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
        m = len(train)
        tagger = VCRF(
            tags=order, base_strength=(1.0 - share) * options.occurrences / m,
            complexity_strength=share * options.occurrences / m / unit, tol=options.tol, n_jobs=options.jobs,
        ).fit([X[i] for i in train], [y[i] for i in train])  # fmt: skip
        errors.append(1.0 - tagger.score([X[i] for i in test], [y[i] for i in test]))
        lengths = tagger.model_.lengths
        patterns.append([int((lengths == k).sum()) for k in range(2, order + 1)])
        gaps.append(tagger.gap_ / tagger.objective_)
    spread = np.std(errors, ddof=1) / np.sqrt(len(errors))
    used = np.round(np.mean(patterns, axis=0)).astype(int).tolist() if order > 1 else []
    print(
        f"{name}:{tag} order {order} share {share:g}: token error {np.mean(errors):.2%} +- {spread:.2%}  "
        f"patterns {used}  largest gap {max(gaps):.0e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", type=peers.dataset, default=["tamil:upos", "twitter-tweebank:xpos", "basque:upos"]
    )
    parser.add_argument("--orders", nargs="+", type=peers.at_least(1), default=[1, 2, 3, 4, 5])
    parser.add_argument("--folds", type=peers.at_least(2), default=5)
    parser.add_argument("--sentences", type=peers.at_least(1), default=600)
    parser.add_argument("--occurrences", type=float, default=1.0)
    parser.add_argument("--share", nargs="+", type=float, default=[0.0, 1.0])
    parser.add_argument("--tol", type=float, default=0.01)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for given in options.names:
        name, _, tag = given.partition(":")
        for order in options.orders:
            for share in options.share:
                evaluate(name, tag or "upos", order, share, options)


if __name__ == "__main__":
    main()
