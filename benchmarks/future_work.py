"""Losses, surrogates and norms: what the paper leaves to future work, with loss scale and strength decoupled.

    python benchmarks/future_work.py [--sentences 120] [--parts norms losses surrogates] [--treebanks tamil ...]
    python benchmarks/future_work.py --tables

Trains on the first sentences of a treebank's training split, for each row and each strength; the strength is chosen on
development sentences, and its errors on test sentences are what the tables show. A row has a loss of its own scale, so
that no scale is chosen by way of a strength. Points are written to results/future_work.csv as they are made, and
points that are there are not made again: the run can be stopped and goes on. `--tables` prints the tables of what is
there. A difference has the p of a paired t-test over the test sentences, two-sided and not corrected for the number of
rows.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import peers
from scipy.stats import ttest_rel

import vcrf

POINTS = Path(__file__).resolve().parents[1] / "results" / "future_work.csv"
FIELDS = [
    "treebank", "part", "row", "sentences", "strength", "dev", "test", "per_sentence", "objective", "gap", "status",
    "passes", "seconds",
]  # fmt: skip
NAMES = {"tamil": "Tamil", "twitter-tweebank": "Twitter", "basque": "Basque", "english": "English"}
TAGS = {"twitter-tweebank": "xpos"}
N_DEV, N_TEST = 200, 400
# Passes of maxima, which are dear; of the others 500.
MOST = dict.fromkeys(["M3N", "MaxCRF", "MaxStructBoost"], 100)


class Row(NamedTuple):
    """An estimator with its parameters, and base strengths in occurrences: they are divided by the sentences."""

    name: str
    estimator: str
    parameters: dict[str, Any]
    occurrences: tuple[float, ...]


_ELASTIC = {"norm": "elastic", "l1_ratio": 0.5}
_TOKEN = "normalised=False"


def _norms() -> list[Row]:
    usual = (0.03, 0.1, 0.3, 1.0)
    return [
        Row("L1", "VCRF", {"norm": "l1"}, usual),
        Row("p = 1.25", "VCRF", {"norm": "lp", "power": 1.25}, usual),
        Row("p = 1.5", "VCRF", {"norm": "lp", "power": 1.5}, usual),
        Row("L2", "VCRF", {"norm": "l2"}, usual),
        Row("elastic", "VCRF", dict(_ELASTIC), usual),
        Row("group", "VCRF", {"norm": "group"}, (0.1, 0.3, 1.0, 3.0)),
        Row("families' L2", "VCRF", {"norm": "family"}, (0.3, 1.0, 3.0, 10.0)),
    ]


def _losses() -> list[Row]:
    found: list[tuple[str, Any]] = [("none", None), ("hamming, at most 1 a sentence", "hamming")]
    found += [(f"{name}, 1 a wrong part", f"{name}:{_TOKEN}") for name in ("hamming", "ngram", "edit")]
    return [Row(name, "VCRF", {"loss": loss, **_ELASTIC}, (0.01, 0.03, 0.1, 0.3)) for name, loss in found]


def _surrogates() -> list[Row]:
    rows = [Row("VCRF, no loss", "VCRF", {"loss": None, **_ELASTIC}, (0.1, 0.3, 1.0))]
    ones = ("VCRF", "MaxCRF", "M3N", "VStructBoost", "MaxStructBoost")
    for scale, loss, names in (("a sentence", "hamming", ones), ("a token", f"hamming:{_TOKEN}", ones[:3])):
        for name in names:
            rows.append(Row(f"{name}, 1 {scale}", name, {"loss": loss, **_ELASTIC}, (0.1, 0.3, 1.0)))  # noqa: PERF401
    return rows


PARTS = {"norms": _norms, "losses": _losses, "surrogates": _surrogates}


def read(treebank: str, sentences: int) -> dict[str, tuple[list[list[str]], list[list[str]]]]:
    """Sentences to train on, to choose by (without a development split the next ones of training) and to test."""
    tag = TAGS.get(treebank, "upos")
    X, y = peers.read_treebank(treebank, "train", tag)
    try:
        dev = peers.read_treebank(treebank, "dev", tag)
    except ValueError:
        dev = X[sentences:], y[sentences:]
    test = peers.read_treebank(treebank, "test", tag)
    cut = {"train": ((X, y), sentences), "dev": (dev, N_DEV), "test": (test, N_TEST)}
    return {name: (tokens[:n], labels[:n]) for name, ((tokens, labels), n) in cut.items()}


def errors(tagger: Any, X: list[list[str]], y: list[list[str]]) -> list[int]:
    """Wrong labels of each sentence."""
    pairs = zip(tagger.predict(X), y, strict=True)
    return [sum(a != b for a, b in zip(ours, true, strict=True)) for ours, true in pairs]


def measure(treebank: str, part: str, row: Row, data: Any, sentences: int) -> list[dict[str, Any]]:
    """The row's points, from strong to weak."""
    X, y = data["train"]
    m = len(X)
    how = {
        "recipe": "paper",
        "tol": 2e-2,
        "n_jobs": 1,
        "max_passes": MOST.get(row.estimator, 500),
        "loss": None,
    } | row.parameters
    points, began = [], time.process_time()
    for tagger in getattr(vcrf, row.estimator)(**how).path(X, y, [(0.0, c / m) for c in row.occurrences]):
        counts = {split: errors(tagger, *data[split]) for split in ("dev", "test")}
        rates = {split: sum(counts[split]) / sum(map(len, data[split][1])) for split in counts}
        now = time.process_time()
        points.append({
            "treebank": treebank, "part": part, "row": row.name, "sentences": sentences,
            "strength": tagger.base_strength * m, "dev": rates["dev"], "test": rates["test"],
            "per_sentence": " ".join(map(str, counts["test"])), "objective": tagger.objective_, "gap": tagger.gap_,
            "status": tagger.status_.name, "passes": tagger.result_.n_passes, "seconds": now - began,
        })  # fmt: skip
        began = now
    return points


def run(options: argparse.Namespace) -> None:
    """Make the points that are not there."""
    done = {(p["treebank"], p["part"], p["row"], round(float(p["strength"]), 6)) for p in load()}
    is_new = not POINTS.exists()
    with POINTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for part in options.parts:
            for treebank in options.treebanks:
                data = read(treebank, options.sentences)
                for row in PARTS[part]():
                    missing = tuple(c for c in row.occurrences if (treebank, part, row.name, c) not in done)
                    if not missing:
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        points = measure(treebank, part, row._replace(occurrences=missing), data, options.sentences)
                    writer.writerows(points)
                    file.flush()
                    seconds = sum(p["seconds"] for p in points)
                    print(f"{treebank} {part} {row.name}: {seconds:.1f} s of the processor", flush=True)


def load() -> list[dict[str, str]]:
    """The points that are there."""
    if not POINTS.exists():
        return []
    with POINTS.open(newline="") as file:
        return list(csv.DictReader(file))


def chosen(points: list[dict[str, str]]) -> dict[str, str]:
    """The point with the least development error, the stronger one of equals."""
    return min(points, key=lambda p: (float(p["dev"]), -float(p["strength"])))


def cell(best: dict[str, str], base: dict[str, str]) -> str:
    """Test error, and the p of its difference from the first row; the strength chosen."""
    text = f"{100 * float(best['test']):.2f}"
    ours, theirs = (np.array(p["per_sentence"].split(), float) for p in (best, base))
    if np.any(ours != theirs):
        text += f" (p {ttest_rel(ours, theirs).pvalue:.2g})"
    mark = "" if best["status"] == "CONVERGED" else "*"
    return f"{text}, {float(best['strength']):g}{mark}"


def table(part: str) -> str:
    """Markdown."""
    points = [p for p in load() if p["part"] == part]
    treebanks = [t for t in NAMES if any(p["treebank"] == t for p in points)]
    lines = ["| |" + "".join(f" {NAMES[t]} |" for t in treebanks), "|---|" + "---|" * len(treebanks)]
    rows = PARTS[part]()
    for row in rows:
        cells = []
        for treebank in treebanks:
            here = [p for p in points if p["treebank"] == treebank]
            own, first = ([p for p in here if p["row"] == name] for name in (row.name, rows[0].name))
            cells.append(cell(chosen(own), chosen(first)) if own and first else "")
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=120)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--treebanks", nargs="+", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--tables", action="store_true")
    given = parser.parse_args()
    if not given.tables:
        run(given)
    for name in given.parts:
        print(f"\n{name}\n\n{table(name)}")
