"""Token error out of the box: VCRF() beside CRFsuite and Vowpal Wabbit, train split to test split.

    python benchmarks/accuracy.py [tamil basque english ...] [--c1 0.1] [--c2 0.1] [--only vcrf]

Nothing is tuned on the test split: VCRF has its defaults, CRFsuite the given c1 and c2, Vowpal Wabbit its own defaults
with 5 passes; both peers read the same 19 attributes a token (`peers.usual_attributes`). Seconds are wall time of
training: from lists of words (ours), from dicts of attributes in memory (CRFsuite), from a text file of attributes
(Vowpal Wabbit). Compile time stays aside (a small fit comes first). The treebanks are read from `../shared/data`; where
one has no universal tags, its own tags are taken.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import peers
from vowpal import train_vowpal

from vcrf import VCRF
from vcrf.metrics import compare, sentence_error, token_error

FIRST = ["tamil", "basque", "english"]
MORE = ["hindi", "dutch-alpino", "finnish-tdt", "finnish-ftb", "twitter-tweebank"]
LABELS = {"twitter-tweebank": "xpos"}


class Run(NamedTuple):
    """What one tool took and gave."""

    tool: str
    predictions: list[Any]
    seconds: float
    n_bytes: int
    size: str


def run_vcrf(X: list[Any], y: list[Any], X_test: list[Any]) -> Run:
    began = time.perf_counter()
    tagger = VCRF().fit(X, y)
    seconds = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.vcrf"
        tagger.save(path)
        n_bytes = path.stat().st_size
    gap = tagger.gap_ / tagger.objective_
    size = f"{tagger.n_active_:,} weights, relative gap {gap:.1e}, {tagger.result_.n_passes} passes"
    return Run("VCRF()", tagger.predict(X_test), seconds, n_bytes, size)


def run_crfsuite(X: list[Any], y: list[Any], X_test: list[Any], c1: float, c2: float) -> Run:
    attributes, test = ([peers.usual_attributes(x) for x in part] for part in (X, X_test))
    theirs = peers.train_crfsuite(attributes, y, c1, c2, X_test=test)
    n_weights = len(theirs.state_features) + len(theirs.transitions)
    return Run("CRFsuite", theirs.predictions, theirs.seconds, theirs.model_bytes, f"{n_weights:,} weights")


def run_vowpal(X: list[Any], y: list[Any], X_test: list[Any]) -> Run:
    theirs = train_vowpal(X, y, X_test)
    return Run("Vowpal W.", theirs.predictions, theirs.seconds, theirs.model_bytes, "")


def show(name: str, y: list[Any], run: Run) -> None:
    token, sentence = token_error(y, run.predictions), sentence_error(y, run.predictions)
    print(
        f"{name:17s} {run.tool:9s} token error {token.rate:6.2%} ({token.low:.2%} to {token.high:.2%})  "
        f"sentence error {sentence.rate:6.2%} ({sentence.low:.2%} to {sentence.high:.2%})  {run.seconds:6.1f} s  "
        f"{run.n_bytes / 1e6:5.1f} MB  {run.size}",
        flush=True,
    )


def run_all(name: str, tools: list[str], c1: float, c2: float) -> None:
    label = LABELS.get(name, "upos")
    X, y = peers.read_treebank(name, "train", label)
    X_test, y_test = peers.read_treebank(name, "test", label)
    ours = run_vcrf(X, y, X_test) if "vcrf" in tools else None
    if ours:
        show(name, y_test, ours)
    others = [run_crfsuite(X, y, X_test, c1, c2)] if "crfsuite" in tools else []
    others += [run_vowpal(X, y, X_test)] if "vowpal" in tools else []
    for other in others:
        show(name, y_test, other)
        if ours:
            found = compare(y_test, ours.predictions, other.predictions)
            low, high = 100 * found.low, 100 * found.high
            print(
                f"{'':17s} VCRF() less {other.tool}: {100 * found.difference:+.2f} points "
                f"({low:+.2f} to {high:+.2f}), p = {found.p_value:.2g}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=FIRST + MORE)
    parser.add_argument("--c1", type=float, default=0.1)
    parser.add_argument("--c2", type=float, default=0.1)
    parser.add_argument("--only", nargs="+", choices=["vcrf", "crfsuite", "vowpal"])
    options = parser.parse_args()
    VCRF().fit([["a", "b", "c"]], [["A", "B", "C"]])
    warnings.simplefilter("default")
    for name in options.names:
        run_all(name, options.only or ["vcrf", "crfsuite", "vowpal"], options.c1, options.c2)
    print(f"Peak memory of this process (all sets; CRFsuite runs in its own): {peers.peak_bytes() / 1e9:.1f} GB")


if __name__ == "__main__":
    main()
