"""Two versions of the program in turn: what the engine takes for each kind of work, and the memory it needs.

    python benchmarks/engine.py OLD NEW [--rounds 3] [--work order-3 losses-edit ...]

OLD and NEW are folders of the project's source (`git worktree add ../old COMMIT`). Each kind of work (orders, losses,
surrogates, the drop-in, tagging) is run by both in processes of their own, which take turns, on one thread, after a
small run that loads what is compiled. Seconds are processor time, the least of the rounds. A pass is the time of a
training divided by its passes: versions may need another number of them. The treebanks are read from
`../shared/data`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# What all kinds of work begin with: `data` reads a treebank, `paper` is the sparse form in every version.
_BEGIN = """
import json, resource, time, warnings
import peers, vcrf
from vcrf import VCRF, VStructBoost, VExponential, M3N, StructSVM
warnings.simplefilter("ignore")
def data(name, n, tag="upos"):
    X, y = peers.read_treebank(name, "train", tag)
    return X[:n], y[:n]
paper = {"recipe": "paper"} if "recipe" in VCRF().get_params() else {}
def timed(fit, X, y):
    fit(X[:20], y[:20])
    began = time.process_time()
    tagger = fit(X, y)
    tell(time.process_time() - began, tagger.result_.n_passes, tagger.objective_)
def least(call, repeats):
    call()
    times = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)
def tell(seconds, n, value):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([seconds, n, value, peak]))
"""

_ORDER = """
X, y = data("english", 1000, {tag!r})
timed(lambda X, y: VCRF(**paper, tags={order}, norm="l1", base_strength=2 / len(X), n_jobs=1).fit(X, y), X, y)
"""
_LOSS = """
X, y = data("tamil", 400)
timed(lambda X, y: {estimator}(loss={loss!r}, n_jobs=1, {more}).fit(X, y), X, y)
"""
_DROP_IN = """
from vcrf.compat import CRF
X, y = data("basque", 1500)
X = [peers.usual_attributes(x) for x in X]
CRF(c1=0.5, c2=0.0, n_jobs=1).fit(X[:20], y[:20])
began = time.process_time()
crf = CRF(c1=0.5, c2=0.0, n_jobs=1).fit(X, y)
tell(time.process_time() - began, crf.n_iter_ if hasattr(crf, "n_iter_") else 1, crf.objective_)
"""
_TAGGING = """
X, y = data("english", 1500)
tagger = VCRF(tags={order}, n_jobs=1, max_passes=40, tol=0.5).fit(X, y)
X_test, _ = peers.read_treebank("english", "test")
tell(least(lambda: tagger.{call}(X_test), 7), 1, 0.0)
"""

WORK = {
    "drop-in": _DROP_IN,
    **{f"order-{k}": _ORDER.format(tag="upos", order=k) for k in (2, 3, 4)},
    **{f"order-{k}-48-labels": _ORDER.format(tag="xpos", order=k) for k in (2, 3)},
    **{f"losses-{name}": _LOSS.format(estimator="VCRF", loss=name, more="") for name in ("hamming", "ngram", "edit")},
    "losses-ngram-order-3": _LOSS.format(estimator="VCRF", loss="ngram", more="tags=3"),
    "structboost-ngram": _LOSS.format(estimator="VStructBoost", loss="ngram", more=""),
    "m3n": _LOSS.format(estimator="M3N", loss="hamming", more="max_passes=60"),
    "structsvm": _LOSS.format(estimator="StructSVM", loss="hamming", more="max_passes=60"),
    **{f"tagging-order-{k}": _TAGGING.format(order=k, call="predict") for k in (2, 3)},
    **{f"marginals-order-{k}": _TAGGING.format(order=k, call="predict_marginals") for k in (2, 3)},
}


def run(source: Path, work: str) -> list[Any]:
    """Seconds, passes, objective and peak memory in MB of one version; nothing where it fails."""
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("NUMBA", "OMP", "OPENBLAS")}
    paths = os.pathsep.join([str(source / "src"), str(Path(__file__).resolve().parent)])
    command = [sys.executable, "-c", _BEGIN + WORK[work]]
    environment = os.environ | one_thread | {"PYTHONPATH": paths}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(f"{source.name}, {work}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return []
    return list(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--work", nargs="+", choices=list(WORK), default=list(WORK))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| work | seconds | new / old | passes | a pass, new / old | objectives differ by | peak memory, MB |")
    print("|---|---|---|---|---|---|---|")
    ratios = []
    for work in options.work:
        runs = [[run(source.resolve(), work) for source in (options.old, options.new)] for _ in range(options.rounds)]
        old, new = (min(filter(None, side), default=[]) for side in zip(*runs, strict=True))
        if not old or not new:
            continue
        ratio, passes = new[0] / old[0], (new[0] / new[1]) / (old[0] / old[1])
        ratios.append(ratio)
        change = abs(new[2] - old[2]) / max(abs(old[2]), 1e-300)
        print(
            f"| {work} | {old[0]:.3f}, {new[0]:.3f} | {ratio:.2f} | {old[1]}, {new[1]} | {passes:.2f} | "
            f"{change:.1e} | {old[3]:.0f}, {new[3]:.0f} |",
            flush=True,
        )
    print(f"\nGeometric mean of new / old: {math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1)):.2f}")


if __name__ == "__main__":
    main()
