"""`vcrf.compat.CRF` beside sklearn_crfsuite, as users call both: processor seconds and their ratios.

    python benchmarks/dropin.py basque            # UPOS of the treebank in ../shared/data
    python benchmarks/dropin.py names-english     # runs of PROPN as entities, in BIO
    python benchmarks/dropin.py invented --names 500000

Features are the usual dicts, with a numeric bias. Fits have default stopping, or --max-iterations. Times are processor
time, all threads together; --jobs 1 for one thread, as CRFsuite has. Predictions are those of the whole test set, the
first time and again, and of one sentence.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn_crfsuite
from peers import read_treebank

from vcrf.compat import CRF

Dicts = list[list[dict[str, Any]]]
Labels = list[list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["basque", "tamil", "english", "names-english", "invented"])
    parser.add_argument("--names", type=int, default=20_000, help="distinct feature names of the invented task")
    parser.add_argument("--c1", type=float, default=0.1)
    parser.add_argument("--c2", type=float, default=0.1)
    parser.add_argument("--max-iterations", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    (X, y), (X_test, y_test) = invented(args.names) if args.task == "invented" else treebank(args.task)
    n_names = len({name for sentence in X for token in sentence for name in token})
    print(f"{len(X):,} sentences, {sum(map(len, X)):,} tokens, {n_names:,} feature names")
    CRF().fit([[{"a": 1.0}, {"a": "b"}]], [["A", "B"]])  # compile
    options = {"c1": args.c1, "c2": args.c2, "max_iterations": args.max_iterations}
    theirs, their_seconds = timed(lambda: sklearn_crfsuite.CRF(**options).fit(X, y))
    warnings.simplefilter("ignore")
    ours, seconds = timed(lambda: CRF(**options, n_jobs=args.jobs).fit(X, y))
    print(f"fit: CRFsuite {their_seconds:.2f} s, vcrf {seconds:.2f} s, ratio {their_seconds / seconds:.1f}")
    print(f"     vcrf ended {ours.status_.name}, objective {ours.objective_:.3f}, gap {ours.gap_:.3g}")
    print(f"     token accuracy: CRFsuite {theirs.score(X_test, y_test):.4f}, vcrf {ours.score(X_test, y_test):.4f}")
    compare_predictions(theirs, ours, X_test)


def compare_predictions(theirs: Any, ours: CRF, X: Dicts) -> None:
    """On the test set, which `ours` has seen in scoring only: forgotten, then known; and on single sentences."""
    ours.model_.__dict__.pop("attributes", None)
    _, reference = timed(lambda: [theirs.predict([sentence]) for sentence in X])
    ours.predict(X[:1])  # the tables of weights
    _, first = timed(lambda: ours.predict(X))
    _, again = timed(lambda: ours.predict(X))
    print(
        f"predict, {len(X):,} sentences: CRFsuite {reference:.3f} s, vcrf {first:.3f} s and again {again:.3f} s, "
        f"ratios {reference / first:.2f} and {reference / again:.2f}"
    )
    for n in (5, 10, 20, 40):
        sentence = min(X, key=lambda x: abs(len(x) - n))
        ours.predict_single(sentence)
        _, theirs_one = timed(lambda x=sentence: [theirs.predict_single(x) for _ in range(1000)])
        _, ours_one = timed(lambda x=sentence: [ours.predict_single(x) for _ in range(1000)])
        print(
            f"one sentence of {len(sentence)} tokens: CRFsuite {1e3 * theirs_one:.0f}, vcrf {1e3 * ours_one:.0f} "
            f"microseconds, ratio {theirs_one / ours_one:.2f}"
        )


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def treebank(task: str) -> tuple[tuple[Dicts, Labels], tuple[Dicts, Labels]]:
    parts = []
    for split in ("train", "test"):
        tokens, labels = read_treebank(task.removeprefix("names-"), split)
        y = [entities(tags) for tags in labels] if task.startswith("names-") else labels
        parts.append(([features(sentence) for sentence in tokens], y))
    return parts[0], parts[1]


def entities(tags: list[str]) -> list[str]:
    """Runs of proper nouns as entities, in BIO."""
    before = ["", *tags[:-1]]
    return [
        ("I-NAME" if b == "PROPN" else "B-NAME") if t == "PROPN" else "O" for b, t in zip(before, tags, strict=True)
    ]


def features(tokens: list[str]) -> list[dict[str, Any]]:
    """The features that most scripts have: the word and its neighbours, endings and shapes, a bias that is a number."""
    rows = []
    for t, word in enumerate(tokens):
        row: dict[str, Any] = {"bias": 1.0, "word[-3:]": word[-3:], "word[-2:]": word[-2:], **around("", word)}
        row |= around("-1:", tokens[t - 1]) if t else {"BOS": True}
        row |= around("+1:", tokens[t + 1]) if t + 1 < len(tokens) else {"EOS": True}
        rows.append(row)
    return rows


def around(where: str, word: str) -> dict[str, Any]:
    return {
        f"{where}word.lower()": word.lower(), f"{where}word.istitle()": word.istitle(),
        f"{where}word.isupper()": word.isupper(), f"{where}word.isdigit()": word.isdigit(),
    }  # fmt: skip


def invented(n_names: int) -> tuple[tuple[Dicts, Labels], tuple[Dicts, Labels]]:
    """One feature name an attribute, {"f_17": 1.0}: names drawn with frequencies that fall as 1 / sqrt(rank)."""
    rng = np.random.default_rng(0)
    heights = np.cumsum(1.0 / np.sqrt(np.arange(1, n_names + 1)))
    X: Dicts = []
    y: Labels = []
    n_sentences = max(1_000, n_names // 60)
    for length in rng.integers(5, 26, n_sentences + 200).tolist():
        ids = np.searchsorted(heights, rng.random((length, 8)) * heights[-1])
        X.append([{f"f_{i}": 1.0 for i in row} for row in ids.tolist()])
        y.append([f"L{(row[0] + row[1] // 7) % 8}" for row in ids.tolist()])
    return (X[:n_sentences], y[:n_sentences]), (X[n_sentences:], y[n_sentences:])


if __name__ == "__main__":
    main()
