"""Training and tagging at orders 1 .. 5 and the same strengths: the pattern automaton beside the dense lattice.

    python benchmarks/order.py [english:upos twitter-tweebank:xpos english:xpos] [--orders 1 2 3 4 5] [--sentences 1000]
                               [--occurrences 2] [--dense 5] [--dense-pass 2] [--jobs 2] [--limit 3600]

Prints a Markdown table, row by row as points end. Each point trains in a process of its own, so that its peak memory is
its own; one that fails or takes longer than `--limit` seconds has a row that says so, and the others go on.
`--occurrences` c is the strength c / m of every family (norm "l1"): a tag pattern needs more than c occurrences that
others do not explain. The dense lattice runs too from order 3 up to `--dense`, while a pass of it at one arc a
nanosecond takes less than `--dense-pass` seconds (at order 2 "auto" is the dense lattice). Seconds are those of the
processor and of the clock: on a busy machine they differ by more than the threads. Reading is included, compiling is
not. Tagging is that of the test split, once its words are known. The treebanks are read from `../shared/data`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import peers

from vcrf import VCRF
from vcrf.metrics import token_error


def measure(name: str, tag: str, order: int, inference: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train and tag once, in this process."""
    warnings.simplefilter("ignore")
    X, y = peers.read_treebank(name, "train", tag)
    X, y = X[: options.sentences], y[: options.sentences]
    X_test, y_test = peers.read_treebank(name, "test", tag)
    words, labels = [["a", "b", "c", "a", "b"]] * 2, [["A", "B", "C", "B", "A"]] * 2
    VCRF(recipe="paper", tags=order, base_strength=0.1, inference=inference).fit(words, labels).predict(words)
    strength = options.occurrences / len(X)
    began, cpu = time.perf_counter(), time.process_time()
    tagger = VCRF(
        recipe="paper", tags=order, norm="l1", base_strength=strength, inference=inference, n_jobs=options.jobs
    ).fit(X, y)
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


HEADER = (
    "| labels, tokens | order | lattice | cpu s | wall s | cpu to order 2 | cpu dense / automaton | passes "
    "| relative gap | patterns used (2, 3, ...) | tags tokens/s | MB | token error % |"
)


def run_apart(name: str, tag: str, order: int, inference: str, options: argparse.Namespace) -> dict[str, Any]:
    """The same in a process of its own; if it fails or takes too long, {"failed": why}."""
    command = [
        sys.executable, __file__, f"{name}:{tag}", "--one", inference, "--orders", str(order),
        "--sentences", str(options.sentences), "--occurrences", str(options.occurrences), "--jobs", str(options.jobs),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return {"failed": f"stopped after {options.limit:g} s"}
    except subprocess.CalledProcessError as error:
        last = error.stderr.strip().splitlines()[-1:] or [f"ended with status {error.returncode}"]
        return {"failed": last[0].replace("|", "/")}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def is_dense_too(order: int, found: dict[str, Any], options: argparse.Namespace) -> bool:
    """Whether the dense lattice runs beside the automaton; `found` is a point with the sizes, of any order."""
    if not 3 <= order <= options.dense or "labels" not in found:
        return False
    return bool(found["labels"] ** order * found["tokens"] < 1e9 * options.dense_pass)


def compare(name: str, tag: str, options: argparse.Namespace) -> None:
    """All orders of one treebank."""
    known: dict[str, Any] = {}
    base = None
    for order in options.orders:
        auto = run_apart(name, tag, order, "auto", options)
        known = auto if "labels" in auto else known
        base = auto.get("cpu") if order == 2 else base
        title = f"{name} {tag}" + (f": {known['labels']}, {known['tokens']:,}" if known else "")
        show(title, order, "auto", auto, base, None)
        if is_dense_too(order, known, options):
            dense = run_apart(name, tag, order, "dense", options)
            show(title, order, "dense", dense, base, auto.get("cpu"))


def show(
    title: str, order: int, lattice: str, found: dict[str, Any], base: float | None, automaton: float | None
) -> None:
    """Print a row."""
    start = f"| {title} | {order} | {lattice} |"
    if "failed" in found:
        print(f"{start} {found['failed']} | | | | | | | | | |", flush=True)
        return
    to_two = "" if base is None else f"{found['cpu'] / base:.2f}"
    to_automaton = "" if automaton is None else f"{found['cpu'] / automaton:.2f}"
    patterns = ", ".join(f"{n:,}" for n in found["patterns"])
    print(
        f"{start} {found['cpu']:.1f} | {found['seconds']:.1f} | {to_two} | {to_automaton} | {found['passes']} "
        f"| {found['gap']:.0e} | {patterns} | {found['tokens_per_second']:,.0f} | {found['megabytes']:.0f} "
        f"| {100 * found['error']:.2f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", type=peers.dataset, default=["english:upos", "twitter-tweebank:xpos", "english:xpos"]
    )
    parser.add_argument("--orders", nargs="+", type=peers.at_least(1), default=[1, 2, 3, 4, 5])
    parser.add_argument("--sentences", type=peers.at_least(1), default=1000)
    parser.add_argument("--occurrences", type=peers.positive, default=2.0)
    parser.add_argument("--dense", type=int, default=5, help="highest order of the dense lattice")
    parser.add_argument(
        "--dense-pass", type=peers.positive, default=2.0, help="longest pass of the dense lattice in seconds"
    )
    parser.add_argument("--jobs", type=peers.at_least(1), default=2)
    parser.add_argument("--limit", type=peers.positive, default=3600.0, help="seconds for one point")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.one:
        print(HEADER, "|" + "---|" * (HEADER.count("|") - 1), sep="\n", flush=True)
    for given in options.names:
        name, _, tag = given.partition(":")
        if options.one:
            print(json.dumps(measure(name, tag, options.orders[0], options.one, options)))
        else:
            compare(name, tag, options)


if __name__ == "__main__":
    main()
