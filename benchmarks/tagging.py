"""Tagging speed from lists of words: vcrf beside python-crfsuite with the usual attributes extracted in Python.

    python benchmarks/tagging.py [english] [--sentences 4000] [--repeat 5]

Both train on the first sentences of the train split and label the test split, one thread, order 2. Times are processor
times, the least of the repetitions: attribute extraction and labelling for CRFsuite, `predict` for vcrf. The first
`predict`, which scores the words for the first time, is shown apart. The treebank is read from `../shared/data`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peers
import pycrfsuite

from vcrf import VCRF


def seconds(function: Callable[[], Any], repeat: int) -> float:
    """Least processor time of a call."""
    times = []
    for _ in range(repeat):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def crfsuite_tagger(X: list[Any], y: list[Any], folder: Path) -> pycrfsuite.Tagger:
    trainer = pycrfsuite.Trainer(verbose=False)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(peers.usual_attributes(tokens), labels)
    trainer.set_params({"c1": 0.1, "c2": 0.1, "max_iterations": 60})
    trainer.train(str(folder / "model.crfsuite"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "model.crfsuite"))
    return tagger


def run(name: str, n_sentences: int, repeat: int) -> None:
    X, y = (part[:n_sentences] for part in peers.read_treebank(name, "train"))
    X_test, _ = peers.read_treebank(name, "test")
    n_tokens = sum(map(len, X_test))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # speed does not depend on the last digits of the optimum
        tagger = VCRF(tol=0.02).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        peer = crfsuite_tagger(X, y, Path(folder))
        theirs = n_tokens / seconds(lambda: [peer.tag(peers.usual_attributes(x)) for x in X_test], repeat)
    VCRF().fit(X[:3], y[:3]).predict(X_test[:1])  # compiles, with other words
    first = n_tokens / seconds(lambda: tagger.predict(X_test), 1)
    ours = n_tokens / seconds(lambda: tagger.predict(X_test), repeat)
    print(
        f"{name}: {n_tokens:,} tokens; tokens/s of one core: CRFsuite {theirs:,.0f}, vcrf {ours:,.0f} "
        f"(first time {first:,.0f}); ratio {ours / theirs:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["english"])
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    for name in options.names:
        run(name, options.sentences, options.repeat)


if __name__ == "__main__":
    main()
