"""Where training begins: steps from zero beside dual ascent, to the same certificate, and the ratio of their times.

    python benchmarks/beginning.py [tamil twitter-tweebank basque ...] [--jobs 2]

Processor seconds, all threads together, of `fit` on the train split; token error on the test split.
"""

from __future__ import annotations

import argparse
import math
import time

import peers
from accuracy import LABELS

from vcrf import VCRF

ALL = ["tamil", "twitter-tweebank", "basque", "english", "finnish-tdt", "dutch-alpino", "finnish-ftb", "hindi"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=ALL)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for dual_start in (False, True):  # compile
        X, y = peers.read_treebank("tamil", "train", "upos")
        VCRF(n_jobs=options.jobs, dual_start=dual_start).fit(X[:100], y[:100])
    ratios = [compare(name, options.jobs) for name in options.names]
    print(f"geometric mean of the ratios: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")


def compare(name: str, jobs: int) -> float:
    X, y = peers.read_treebank(name, "train", LABELS.get(name, "upos"))
    X_test, y_test = peers.read_treebank(name, "test", LABELS.get(name, "upos"))
    seconds = []
    for dual_start in (False, True):
        began = time.process_time()
        tagger = VCRF(n_jobs=jobs, dual_start=dual_start).fit(X, y)
        seconds.append(time.process_time() - began)
        print(
            f"{name}, {'dual ascent' if dual_start else 'from zero'}: {tagger.result_.n_passes} passes, "
            f"{seconds[-1]:.1f} s, objective {tagger.objective_:.6f}, relative gap {tagger.result_.relative_gap:.1e}, "
            f"test error {1.0 - tagger.score(X_test, y_test):.2%}",
            flush=True,
        )
    print(f"{name}: {seconds[0] / seconds[1]:.2f} times faster", flush=True)
    return seconds[0] / seconds[1]


if __name__ == "__main__":
    main()
