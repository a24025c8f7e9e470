"""Every surrogate with every loss: what a loss costs a pass, and whether training on a loss lowers it.

    python benchmarks/losses.py [--costs english] [--data tamil] [--jobs 1] [--only costs errors]

Costs: time per token of one value-and-gradient pass (one thread, order 2, weights of a short training) relative to the
crf surrogate without a loss. Errors: all estimators with their defaults and the Hamming, edit and bigram losses, train
split to test split; token error, sentence error, mean edit distance (number of edits a sentence), mean bigram loss,
processor seconds of training, certificate. Nothing is tuned on the test split. The treebanks are read from
`../shared/data`. Times are those of the processor, so that other work on the machine counts little; compile time stays
aside (a small fit comes first).
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import peers

import vcrf
from vcrf.losses import AlignedNgramLoss, EditLoss, get_loss
from vcrf.metrics import sentence_error, token_error
from vcrf.surrogates.choice import choose
from vcrf.surrogates.maximum import choose_max

LOSSES = ("hamming", "ngram", "edit")
ESTIMATORS = ("VCRF", "VStructBoost", "VExponential", "M3N", "StructSVM")


def best_time(function: Any, repeats: int = 7) -> float:
    """Least time of a few calls."""
    function()
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def show_costs(name: str, n_sentences: int) -> None:
    """Time per token of a pass."""
    X, y = peers.read_treebank(name, "train")
    X, y = X[:n_sentences], y[:n_sentences]
    tagger = vcrf.VCRF(max_passes=60, tol=0.5)
    problem = tagger._read(X, y, None).problem
    trained = tagger.fit(X, y).result_
    keep = np.ones(len(problem.columns), bool)
    print(f"{name}: {len(X)} sentences, {problem.n_tokens:,} tokens, {problem.n_labels} labels, order 2")
    plain = None
    for kind in ("crf", "exponential", "structboost", "m3n", "structsvm"):
        for loss in (None, *LOSSES):
            if loss is None and kind not in ("crf", "exponential"):
                continue
            if kind in ("m3n", "structsvm"):
                maximum = choose_max(problem, kind, get_loss(loss)).build(problem, keep, 1)
                active = maximum.compile(trained.features)
                seconds = best_time(lambda s=maximum, a=active: s.find_best(a, trained.weights))
            else:
                surrogate = choose(problem, kind, get_loss(loss)).build(problem, keep, 1)
                active = surrogate.compile(trained.features)
                seconds = best_time(lambda s=surrogate, a=active: s.at(a, trained.weights))
            plain = plain or seconds
            microseconds = 1e6 * seconds / problem.n_tokens
            print(f"  {kind:12s} {loss or 'none':8s} {microseconds:7.2f} us/token  {seconds / plain:6.2f}x", flush=True)


def mean_loss(loss: Any, y: list[Any], predicted: list[Any]) -> float:
    """Mean over sentences."""
    return float(np.mean([loss(list(p), list(t)) for t, p in zip(y, predicted, strict=True)]))


def show_errors(name: str, jobs: int, estimators: list[str]) -> None:
    """Train every estimator with every loss."""
    X, y = peers.read_treebank(name, "train")
    X_test, y_test = peers.read_treebank(name, "test")
    edits, bigrams = EditLoss(band=None), AlignedNgramLoss(2)
    print(f"\n{name}: train {len(X)} sentences, test {len(X_test)}")
    print("estimator    loss     token  sentence  edits  bigrams   cpu secs  rel. gap  passes  weights  status")
    for estimator in estimators:
        losses = (None, *LOSSES) if estimator == "VCRF" else LOSSES
        for loss in losses:
            tagger = getattr(vcrf, estimator)(loss=loss, n_jobs=jobs)
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tagger.fit(X, y)
            seconds = time.process_time() - began
            found = tagger.predict(X_test)
            print(
                f"{estimator:12s} {loss or 'none':8s} {token_error(y_test, found).rate:6.2%} "
                f"{sentence_error(y_test, found).rate:8.2%} {mean_loss(edits, y_test, found):7.3f} "
                f"{mean_loss(bigrams, y_test, found):7.4f} {seconds:9.1f} {tagger.gap_ / tagger.objective_:9.1e} "
                f"{tagger.result_.n_passes:7d} {tagger.n_active_:8,d}  {tagger.status_.name}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--costs", default="english", help="treebank for the costs")
    parser.add_argument("--sentences", type=int, default=1000, help="how many of its sentences")
    parser.add_argument("--data", default="tamil", help="treebank for the errors")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--estimators", nargs="*", default=list(ESTIMATORS))
    parser.add_argument("--only", nargs="*", choices=["costs", "errors"], default=["costs", "errors"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for estimator in ("VCRF", *options.estimators):
        getattr(vcrf, estimator)(loss="ngram").fit([["a", "b", "c"]], [["A", "B", "C"]])
    if "costs" in options.only:
        show_costs(options.costs, options.sentences)
    if "errors" in options.only:
        show_errors(options.data, options.jobs, options.estimators)


if __name__ == "__main__":
    main()
