"""The figures that README and docs show: kept in results/figures.json with version, commit, machine and command.

    python benchmarks/figures.py                        # measure those of README: about an hour on two cores
    python benchmarks/figures.py error-tamil speed-tamil
    python benchmarks/figures.py --list
    python benchmarks/figures.py --write                # measure nothing, write the pages again from the file
    python benchmarks/figures.py --keep order-measured --command "python benchmarks/order.py --jobs 1"

A figure that is measured again replaces the old one; the others stay, each with the version that it belongs to.
What other benchmarks print is kept by `--keep`: put the new table into its block in the page first
(`tools/figure_blocks.py` says what a block is). `tests/test_figures.py` fails when a page shows a figure that is not in
the file, and when README shows one of another minor version. The treebanks are read from `../shared/data`.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peers
from accuracy import LABELS, run_crfsuite, run_vcrf
from training import ours

import vcrf
from vcrf import VCRF
from vcrf.compat import CRF
from vcrf.metrics import token_error

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import figure_blocks  # noqa: E402

NAMES = {
    "tamil": "Tamil", "basque": "Basque", "english": "English", "hindi": "Hindi", "dutch-alpino": "Dutch",
    "finnish-tdt": "Finnish (TDT)", "finnish-ftb": "Finnish (FTB)", "twitter-tweebank": "Twitter",
}  # fmt: skip

Values = dict[str, Any]


def error(name: str) -> Values:
    """Token error out of the box, beside CRFsuite with the usual attributes; train split to test split."""
    label = LABELS.get(name, "upos")
    X, y = peers.read_treebank(name, "train", label)
    X_test, y_test = peers.read_treebank(name, "test", label)
    mine, theirs = run_vcrf(X, y, X_test), run_crfsuite(X, y, X_test, 0.1, 0.1)
    return {
        "what": f"{NAMES[name]}, {len(X):,} sentences: wrong labels",
        "ours": f"{100 * token_error(y_test, mine.predictions).rate:.2f} %",
        "crfsuite": f"{100 * token_error(y_test, theirs.predictions).rate:.2f} %",
        "seconds": [mine.seconds, theirs.seconds],
    }


def speed(name: str) -> Values:
    """Seconds to CRFsuite's final objective, the same attributes and the same problem, two threads."""
    tokens, labels = peers.read_treebank(name, "train")
    X = [peers.usual_attributes(sentence) for sentence in tokens]
    options: dict[str, Any] = {"c1": 0.5, "c2": 0.0, "all_possible_states": False}
    CRF(n_jobs=2, max_iterations=30, **options).fit(X[:40], labels[:40])
    theirs = peers.train_crfsuite(X, labels, **options)
    _, seconds, record = ours(X, labels, options | {"n_jobs": 2}, theirs.objective)
    total = theirs.seconds + theirs.append_seconds
    return {
        "what": f"{NAMES[name]}: seconds to the same L1 objective",
        "ours": f"{seconds:.1f} s",
        "crfsuite": f"{total:.1f} s",
        "passes": record.n_passes,
        "iterations": len(theirs.iterations),
    }


def accepted(name: str) -> Values:
    """Share of the test tokens that can be accepted unseen with at most 1 % error, calibrated on the dev split."""
    X, y = peers.read_treebank(name, "train")
    X_dev, y_dev = peers.read_treebank(name, "dev")
    X_test, y_test = peers.read_treebank(name, "test")
    tagger = VCRF().fit(X, y).calibrate(X_dev, y_dev)
    found = tagger.predict_selective(X_test, max_error=0.01)
    pairs = [
        mine == true
        for flags, labels, truth in zip(found.accepted, found.labels, y_test, strict=True)
        for is_accepted, mine, true in zip(flags, labels, truth, strict=True)
        if is_accepted
    ]
    share = len(pairs) / sum(map(len, y_test))
    wrong = 1.0 - sum(pairs) / max(len(pairs), 1)
    return {
        "what": f"{NAMES[name]}: labels accepted unseen at 1 % error (wrong among them)",
        "ours": f"{100 * share:.1f} % ({100 * wrong:.2f} %)",
        "crfsuite": "",
    }


FIGURES: dict[str, tuple[Callable[[str], Values], str]] = {
    **{f"error-{name}": (error, name) for name in NAMES},
    **{f"speed-{name}": (speed, name) for name in ("tamil", "basque")},
    **{f"accepted-{name}": (accepted, name) for name in ("basque", "hindi")},
}


def machine() -> str:
    """Cores and architecture; no name of a host."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def facts(command: str) -> dict[str, str]:
    """Where a figure of now comes from."""
    return {"command": command, "version": vcrf.__version__, "commit": commit(), "machine": machine()}


def measure(names: list[str]) -> None:
    """Measure and keep each figure at once: what is done stays if the rest is stopped."""
    for name in names:
        function, data = FIGURES[name]
        began = time.perf_counter()
        values = function(data) | {
            **facts(f"python benchmarks/figures.py {name}"), "took": round(time.perf_counter() - began, 1),
        }  # fmt: skip
        known = figure_blocks.read()
        known[name] = values
        order = [key for key in FIGURES if key in known] + [key for key in known if key not in FIGURES]
        figure_blocks.save({key: known[key] for key in order})
        print(f"{name}: {values['ours']}, CRFsuite {values['crfsuite'] or '-'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FIGURE")
    parser.add_argument("--list", action="store_true", help="names of the figures")
    parser.add_argument("--write", action="store_true", help="measure nothing")
    parser.add_argument("--keep", metavar="NAME", help="the table of this block, as it stands in its page")
    parser.add_argument("--command", default="", help="with --keep: what printed the table")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in FIGURES]
    if unknown:
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    if options.list:
        print("\n".join(FIGURES))
        return
    if options.keep:
        figure_blocks.keep(options.keep, facts(options.command))
    elif not options.write:
        VCRF().fit([["a", "b", "c"]], [["A", "B", "C"]])
        measure(options.names or list(FIGURES))
    figure_blocks.write_pages()


if __name__ == "__main__":
    main()
