"""Bundles of UPOS and features: whole labels with and without components, CRFsuite beside them, growth with labels.

    python benchmarks/morphology.py [tamil:upos+feats basque:upos+feats tamil:xpos] [--sentences N] [--limit S]
                                    [--systems whole components pairs known crfsuite half
                                     partial] [--jobs 1]
    python benchmarks/morphology.py --growth 100 200 500 1000 2000 [--tokens 5000]

Prints Markdown rows as they end, each of a process of its own, and the difference that components make. Trees are
`../shared/data/graphs/NAME-trees.conllu.gz`; trained on the split train, measured on test. `whole` is `VCRF()`,
`components` adds `components="all"`, or "positions"; `pairs` adds `component_pairs="all"` to that, and `known` adds
`known_labels=5`. `half` takes the first half of the sentences with components, `partial` that and the UPOS of the rest.
CRFsuite gets the usual attributes (see `peers`) and its default L2 strength, by `--passes` iterations at the most, and
is ended after `--limit` seconds of the processor.
`--growth` takes invented sentences with so many labels at a fixed number of tokens: seconds a pass, the mean of the
first 30 at order 2, scans among them. Seconds are those of the processor; compiling is not in them.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from vcrf import VCRF
from vcrf.data import open_bundles, read_corpus
from vcrf.data.bundles import is_bundle
from vcrf.metrics import compare, morphology, token_error

TREES = Path(__file__).parents[2] / "shared" / "data" / "graphs"
SYSTEMS = ("whole", "components", "pairs", "known", "crfsuite")
# Two tagsets: the first half of the sentences alone, and with the other half's UPOS.
HALVES = ("half", "partial")
# Whose differences are printed.
PAIRED = (("whole", "components"), ("components", "pairs"), ("components", "known"), ("crfsuite", "components"), HALVES)


def _read(name: str, tag: str, split: str, options: argparse.Namespace) -> tuple[Any, Any]:
    path = Path(options.trees) / f"{name}-trees.conllu.gz"
    corpus = read_corpus(path, tag, split=split)
    n = options.sentences if split == "train" and options.sentences else len(corpus)
    return corpus.tokens[:n], corpus.labels[:n]


def _train(system: str, X: Any, y: Any, X_test: Any, options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """Predicted labels, and what is to be said of training."""
    if system == "crfsuite":
        return _train_crfsuite(X, y, X_test, options)
    more: dict[str, Any] = {}
    if system != "whole":
        more["components"] = "all" if is_bundle(y[0][0]) else "positions"
    if system == "pairs":
        more["component_pairs"] = "all"
    if system == "known":
        more["known_labels"] = 5
    if system in HALVES:
        X, y = _halves(X, y, system)
    VCRF(**more).fit([["a", "b"]] * 2, [["U=A", "U=B"]] * 2 if is_bundle(y[0][0]) else [["AB", "AC"]] * 2)
    began = time.process_time()
    tagger = VCRF(**more, n_jobs=options.jobs, callback=lambda _: time.process_time() - began > options.limit).fit(X, y)
    return tagger.predict(X_test), {
        "cpu": time.process_time() - began,
        "passes": tagger.result_.n_passes,
        "gap": tagger.gap_ / tagger.objective_,
        "status": tagger.status_.name,
    }


def _halves(X: Any, y: Any, system: str) -> tuple[Any, Any]:
    """The first half, and of the other half the sets of labels that have the same UPOS."""
    n = len(X) // 2
    if system == "half":
        return X[:n], y[:n]
    labels = {label for sentence in y[:n] for label in sentence}
    upos = [[label.partition("|")[0] for label in sentence] for sentence in y[n:]]
    return X, y[:n] + open_bundles(upos, labels)


def _train_crfsuite(X: Any, y: Any, X_test: Any, options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    import peers
    import pycrfsuite

    spent = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (spent + int(options.limit), spent + int(options.limit) + 1))
    trainer = pycrfsuite.Trainer(verbose=False)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(pycrfsuite.ItemSequence(peers.usual_attributes(tokens)), labels)
    trainer.set_params({"max_iterations": options.passes})
    began, model = time.process_time(), f"/tmp/morphology-{time.time_ns()}.crfsuite"
    trainer.train(model)
    cpu = time.process_time() - began
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    predicted = [tagger.tag(pycrfsuite.ItemSequence(peers.usual_attributes(tokens))) for tokens in X_test]
    Path(model).unlink()
    return predicted, {"cpu": cpu, "passes": options.passes, "gap": float("nan"), "status": "?"}


def measure(name: str, tag: str, system: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train and tag once, in this process."""
    warnings.simplefilter("ignore")
    X, y = _read(name, tag, "train", options)
    X_test, y_test = _read(name, tag, "test", options)
    predicted, facts = _train(system, X, y, X_test, options)
    error = token_error(y_test, predicted)
    labels = sorted({label for sentence in y for label in sentence})
    found = {}
    if all(is_bundle(label) for label in labels):
        of_parts = morphology(y_test, predicted)
        found = {name: share.rate for name, share in {**of_parts.columns, **of_parts.features}.items()}
    return {
        **facts, "labels": len(labels), "tokens": sum(map(len, X)), "sentences": len(X), "error": error.rate,
        "low": error.low, "high": error.high, "parts": found, "true": y_test, "predicted": predicted,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def _invented(n_labels: int, n_tokens: int) -> tuple[Any, Any]:
    """Sentences of ten words: each label once, the others as often as 1 / rank; a word tells a few labels apart."""
    rng = np.random.default_rng(1)
    share = 1.0 / np.arange(1, n_labels + 1)
    drawn = rng.choice(n_labels, max(n_tokens - n_labels, 0), p=share / share.sum())
    labels = rng.permutation(np.concatenate([np.arange(n_labels), drawn]))
    words = [f"{label // 3}s{rng.integers(5)}" for label in labels.tolist()]
    parts = range(0, len(labels), 10)
    return [words[i : i + 10] for i in parts], [[f"L{label}" for label in labels[i : i + 10].tolist()] for i in parts]


def grow(n_labels: int, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of a pass with its gradient and of a scan, at weights after a few rounds."""
    warnings.simplefilter("ignore")
    X, y = _invented(n_labels, options.tokens)
    seen: list[tuple[float, int]] = []
    VCRF(n_jobs=1, max_passes=30, callback=lambda record: seen.append((time.process_time(), record.n_passes))).fit(X, y)
    (began, first), (ended, last) = seen[0], seen[-1]
    return {
        "labels": n_labels,
        "tokens": sum(map(len, X)),
        "pass": (ended - began) / max(last - first, 1),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _apart(command: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """What a process of its own prints; if it fails, {"failed": why}."""
    more = ["--trees", options.trees, "--jobs", str(options.jobs), "--limit", str(options.limit), "--passes",
            str(options.passes), "--tokens", str(options.tokens)]  # fmt: skip
    if options.sentences:
        more += ["--sentences", str(options.sentences)]
    done = subprocess.run([sys.executable, __file__, *command, *more], capture_output=True, text=True, check=False)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"failed": f"ended after {options.limit:.0f} s of the processor"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["?"])[-1][:100]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _row(data: str, system: str, found: dict[str, Any]) -> str:
    if "failed" in found:
        return f"| {data} | {system} | {found['failed']} |"
    parts = found["parts"]
    shown = " | ".join(f"{100 * parts[name]:.2f}" if name in parts else "" for name in ("UPOS", "UFeats", "Case"))
    return (
        f"| {data}, {found['sentences']:,} sentences, {found['labels']} labels | {system} | {100 * found['error']:.2f} "
        f"({100 * found['low']:.2f} to {100 * found['high']:.2f}) | {shown} | {found['cpu']:.0f} | {found['passes']} | "
        f"{found['gap']:.1e} | {found['megabytes']:.0f} |"
    )


def _difference(runs: dict[str, dict[str, Any]], first: str, second: str) -> str:
    """Errors of two systems on the same sentences, by permutation of sentences."""
    a, b = runs.get(first, {}), runs.get(second, {})
    if "predicted" not in a or "predicted" not in b:
        return ""
    found = compare(a["true"], a["predicted"], b["predicted"])
    return (
        f"{first} less {second}: {100 * found.difference:+.2f} ({100 * found.low:+.2f} to {100 * found.high:+.2f}), "
        f"p = {found.p_value:.2g}"
    )


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="*", default=["tamil:upos+feats", "basque:upos+feats", "tamil:xpos"])
    parser.add_argument("--systems", nargs="*", default=SYSTEMS, choices=SYSTEMS + HALVES)
    parser.add_argument("--growth", nargs="*", type=int)
    parser.add_argument("--sentences", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--trees", default=str(TREES))
    parser.add_argument("--one", default="")
    options = parser.parse_args()
    if options.one:
        name, _, tag = options.data[0].partition(":")
        found = (
            grow(int(options.one), options) if options.growth is not None else measure(name, tag, options.one, options)
        )
        print(json.dumps(found))
        return
    if options.growth is not None:
        print("| labels | tokens | seconds a pass | MB |\n|---|---|---|---|")
        rows = [_apart(["--growth", "--one", str(n)], options) for n in options.growth]
        for row in rows:
            print(f"| {row['labels']:,} | {row['tokens']:,} | {row['pass']:.3f} | {row['megabytes']:.0f} |", flush=True)
        slope = np.polyfit(np.log([row["labels"] for row in rows]), np.log([row["pass"] for row in rows]), 1)[0]
        print(f"slope of a pass: {slope:.2f}")
        return
    print("| data | system | whole-label error % | UPOS | UFeats | Case | cpu s | passes | relative gap | MB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for data in options.data:
        runs: dict[str, dict[str, Any]] = {}
        for system in options.systems:
            runs[system] = _apart([data, "--one", system], options)
            print(_row(data, system, runs[system]), flush=True)
        for first, second in PAIRED:
            print(_difference(runs, first, second), flush=True)


if __name__ == "__main__":
    main()
