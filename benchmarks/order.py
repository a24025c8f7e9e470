"""Training and tagging at orders 1 .. 5 and the same strengths: the pattern automaton beside the dense lattice.

    python benchmarks/order.py [english:upos twitter-tweebank:xpos english:xpos] [--orders 1 2 3 4 5] [--sentences 2000]
                               [--occurrences 2] [--dense 3] [--jobs 2]

Each point trains in a process of its own, so that its peak memory is its own. `--occurrences` c is the strength c / m
of every family (norm "l1"): a tag pattern needs more than c occurrences that the others do not explain. `--dense` is
the highest order for which the dense lattice runs too. Seconds are wall clock and those of the processor (both are
shown: on a busy machine they differ); reading is included, compiling is not. Tagging is that of the test split, once
its words are known. The treebanks are read from `../shared/data`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings

import peers

from vcrf import VCRF
from vcrf.metrics import token_error


def measure(name: str, tag: str, order: int, inference: str, options: argparse.Namespace) -> dict[str, object]:
    """Train and tag once, in this process."""
    warnings.simplefilter("ignore")
    X, y = peers.read_treebank(name, "train", tag)
    X, y = X[: options.sentences], y[: options.sentences]
    X_test, y_test = peers.read_treebank(name, "test", tag)
    words, labels = [["a", "b", "c", "a", "b"]] * 2, [["A", "B", "C", "B", "A"]] * 2
    VCRF(tags=order, base_strength=0.1, inference=inference).fit(words, labels).predict(words)
    strength = options.occurrences / len(X)
    began, cpu = time.perf_counter(), time.process_time()
    tagger = VCRF(tags=order, base_strength=strength, inference=inference, n_jobs=options.jobs).fit(X, y)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    tagger.predict(X_test)
    began = time.process_time()
    predicted = tagger.predict(X_test)
    tagging = time.process_time() - began
    lengths = tagger.model_.lengths
    return {
        "seconds": seconds,
        "cpu": cpu,
        "passes": tagger.result_.n_passes,
        "solving": tagger.result_.seconds,
        "objective": tagger.objective_,
        "gap": tagger.gap_ / tagger.objective_,
        "patterns": [int((lengths == k).sum()) for k in range(2, order + 1)],
        "error": token_error(y_test, predicted).rate,
        "tokens_per_second": sum(map(len, X_test)) / tagging,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "labels": len(tagger.classes_),
        "tokens": sum(map(len, X)),
    }


def run_apart(name: str, tag: str, order: int, inference: str, options: argparse.Namespace) -> dict[str, object] | None:
    """The same in a process of its own; None if it fails or takes too long."""
    command = [
        sys.executable, __file__, f"{name}:{tag}", "--one", inference, "--orders", str(order),
        "--sentences", str(options.sentences), "--occurrences", str(options.occurrences), "--jobs", str(options.jobs),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=options.limit)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"  {inference} order {order}: {type(error).__name__}", flush=True)
        return None
    result: dict[str, object] = json.loads(done.stdout)
    return result


def compare(name: str, tag: str, options: argparse.Namespace) -> None:
    """All orders of one treebank."""
    base = None
    for order in options.orders:
        for inference in ("auto", "dense") if 3 <= order <= options.dense else ("auto",):
            found = run_apart(name, tag, order, inference, options)
            if found is None:
                continue
            if order == 2 and inference == "auto":
                base = found["cpu"]
            ratio = "" if base is None else f"{found['cpu'] / base:5.1f} x order 2"  # type: ignore[operator]
            print(
                f"{name}:{tag} {found['labels']} labels, {found['tokens']} tokens, order {order} {inference:5s} "
                f"{found['seconds']:7.1f} s ({found['cpu']:.1f} s cpu, {found['passes']} passes) {ratio}  "
                f"gap {found['gap']:.0e}  patterns {found['patterns']}  token error {found['error']:.2%}  "
                f"tags {found['tokens_per_second']:,.0f} tokens/s  {found['megabytes']:.0f} MB",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["english:upos", "twitter-tweebank:xpos", "english:xpos"])
    parser.add_argument("--orders", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--occurrences", type=float, default=2.0)
    parser.add_argument("--dense", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for one point")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for given in options.names:
        name, _, tag = given.partition(":")
        if options.one:
            print(json.dumps(measure(name, tag or "upos", options.orders[0], options.one, options)))
        else:
            compare(name, tag or "upos", options)


if __name__ == "__main__":
    main()
