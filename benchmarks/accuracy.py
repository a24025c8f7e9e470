"""Token error out of the box: VCRF() beside CRFsuite with the usual attributes, train split to test split.

    python benchmarks/accuracy.py [tamil basque english] [--c1 0.1] [--c2 0.1]

Nothing is tuned on the test split: VCRF has its defaults, CRFsuite the given c1 and c2. Seconds are those of training,
from lists of words (ours) and from dicts of attributes in memory (CRFsuite). The treebanks are read from
`../shared/data`. Compile time stays aside (a small fit comes first).
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import peers

from vcrf import VCRF
from vcrf.metrics import compare, sentence_error, token_error


def show(name: str, tool: str, y: list[Any], predicted: list[Any], seconds: float, n_active: int) -> None:
    token, sentence = token_error(y, predicted), sentence_error(y, predicted)
    print(
        f"{name:12s} {tool:10s} token error {token.rate:6.2%} ({token.low:.2%} to {token.high:.2%})  "
        f"sentence error {sentence.rate:6.2%}  {seconds:6.1f} s  {n_active:,} weights",
        flush=True,
    )


def run(name: str, c1: float, c2: float) -> None:
    X, y = peers.read_treebank(name, "train")
    X_test, y_test = peers.read_treebank(name, "test")
    began = time.perf_counter()
    tagger = VCRF().fit(X, y)
    seconds = time.perf_counter() - began
    ours = tagger.predict(X_test)
    show(name, "VCRF()", y_test, ours, seconds, tagger.n_active_)
    print(f"{'':12s} relative gap {tagger.gap_ / tagger.objective_:.1e} after {tagger.result_.n_passes} passes")
    theirs = peers.train_crfsuite(
        [peers.usual_attributes(x) for x in X], y, c1, c2, X_test=[peers.usual_attributes(x) for x in X_test]
    )
    n_weights = len(theirs.state_features) + len(theirs.transitions)
    show(name, "CRFsuite", y_test, theirs.predictions, theirs.seconds, n_weights)
    found = compare(y_test, ours, theirs.predictions)
    low, high = 100 * found.low, 100 * found.high
    print(
        f"{'':12s} difference {100 * found.difference:+.2f} ({low:+.2f} to {high:+.2f}), p = {found.p_value:.2g}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["tamil", "basque", "english"])
    parser.add_argument("--c1", type=float, default=0.1)
    parser.add_argument("--c2", type=float, default=0.1)
    options = parser.parse_args()
    VCRF().fit([["a", "b", "c"]], [["A", "B", "C"]])
    warnings.simplefilter("default")
    for name in options.names:
        run(name, options.c1, options.c2)


if __name__ == "__main__":
    main()
