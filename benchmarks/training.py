"""Training time to the same objective: CRFsuite beside vcrf, same attributes, in one run.

    python benchmarks/training.py [basque tamil english] [--c1 0.5] [--states observed all] [--jobs 2]

CRFsuite trains to its own convergence in a process of its own; vcrf is then timed until its objective (the same
function: sum of NLL + c1 |w|_1) is not above CRFsuite's final one. Both times start from the attribute dicts in
memory: CRFsuite's includes appending them, ours reading them. Compile time stays aside (a small fit comes first).
The treebanks are read from `../shared/data`.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import peers

from vcrf.compat import CRF
from vcrf.solvers.result import IterationRecord


def ours(X: list[Any], y: list[Any], options: dict[str, Any], target: float) -> tuple[CRF, float, IterationRecord]:
    """Fit until the objective is not above the target; returns the seconds of the whole fit."""
    reached: list[IterationRecord] = []

    def at_target(record: IterationRecord) -> bool:
        reached.append(record)
        return record.objective * len(X) <= target

    crf = CRF(callback=at_target, max_iterations=5000, tol=1e-6, **options)
    began = time.perf_counter()
    crf.fit(X, y)
    return crf, time.perf_counter() - began, reached[-1]


def compare(name: str, c1: float, states: str, jobs: int) -> None:
    tokens, labels = peers.read_treebank(name, "train")
    X = [peers.usual_attributes(sentence) for sentence in tokens]
    test_tokens, test_labels = peers.read_treebank(name, "test")
    X_test = [peers.usual_attributes(sentence) for sentence in test_tokens]
    options = {"c1": c1, "c2": 0.0, "all_possible_states": states == "all"}
    CRF(n_jobs=jobs, max_iterations=30, **options).fit(X[:40], labels[:40])
    theirs = peers.train_crfsuite(X, labels, X_test=X_test, **options)
    crf, seconds, record = ours(X, labels, options | {"n_jobs": jobs}, theirs.objective)
    total = theirs.seconds + theirs.append_seconds
    same = sum(
        a == b for p, q in zip(theirs.predictions, crf.predict(X_test), strict=True) for a, b in zip(p, q, strict=True)
    )
    n_test = sum(map(len, test_labels))
    print(
        f"{name:8s} {states:8s}  CRFsuite {total:7.1f} s ({len(theirs.iterations)} iterations, objective "
        f"{theirs.objective:.3f})   vcrf {seconds:6.1f} s ({record.n_passes} passes, solving {record.seconds:.1f} s, "
        f"objective {crf.objective_:.3f})   ratio {total / seconds:5.1f}   same labels on test {same / n_test:.4f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["tamil", "basque"])
    parser.add_argument("--c1", type=float, default=0.5)
    parser.add_argument("--states", nargs="+", default=["observed", "all"], choices=["observed", "all"])
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    for name in options.names:
        for states in options.states:
            compare(name, options.c1, states, options.jobs)


if __name__ == "__main__":
    main()
