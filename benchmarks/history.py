"""A history of six quick benchmarks, to see at once when a change makes something slower.

    python benchmarks/history.py              # measure, and add a line to results/history.csv
    python benchmarks/history.py --show       # the last lines, with the change to the line before

Times are processor seconds of one thread, the least of three runs after one that compiles; the corpus comes with the
library, so that any machine can have a history of its own. Lines of different machines are not compared.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from figures import commit, machine

import vcrf
from vcrf import VCRF, load
from vcrf.compat import CRF
from vcrf.data import Corpus, small_english
from vcrf.labelling.explain import explain

FILE = Path(__file__).resolve().parents[1] / "results" / "history.csv"
RUNS = 3


def benchmarks(corpus: Corpus, folder: Path) -> dict[str, Callable[[], object]]:
    """Name -> what is timed."""
    train = corpus[:400]
    tagger = VCRF(n_jobs=1).fit(train.tokens, train.labels)
    tagger.save(folder / "model.vcrf")
    dicts = [[{"w": word, "end": word[-2:]} for word in tokens] for tokens in train.tokens]
    return {
        "fit": lambda: VCRF(n_jobs=1).fit(train.tokens, train.labels),
        "fit_paper": lambda: VCRF(recipe="paper", base_strength=5e-3, n_jobs=1).fit(train.tokens, train.labels),
        "fit_crfsuite": lambda: CRF(c1=0.1, c2=0.1, n_jobs=1).fit(dicts, train.labels),
        "predict": lambda: load(folder / "model.vcrf").predict(corpus.tokens),
        "marginals": lambda: tagger.predict_marginals(corpus.tokens),
        "explain": lambda: [explain(tagger, tokens) for tokens in corpus.tokens[:50]],
    }


def least(work: Callable[[], object]) -> float:
    """Processor seconds of the quickest run; the first run compiles and does not count."""
    work()
    times = []
    for _ in range(RUNS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def measure() -> None:
    with tempfile.TemporaryDirectory() as folder:
        row = {"version": vcrf.__version__, "commit": commit(), "machine": machine()}
        for name, work in benchmarks(small_english(2000), Path(folder)).items():
            row[name] = f"{least(work):.3f}"
            print(f"{name}: {row[name]} s", flush=True)
    is_new = not FILE.exists()
    with FILE.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row))
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def show(n: int = 5) -> None:
    with FILE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for before, row in list(zip([None, *rows], rows, strict=False))[-n:]:
        changes = []
        for name in list(row)[3:]:
            change = ""
            if before is not None and before["machine"] == row["machine"] and float(before[name]) > 0.0:
                change = f" ({float(row[name]) / float(before[name]) - 1.0:+.0%})"
            changes.append(f"{name} {row[name]} s{change}")
        print(f"{row['version']} {row['commit']}: " + ", ".join(changes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="measure nothing")
    if not parser.parse_args().show:
        measure()
    show()


if __name__ == "__main__":
    main()
