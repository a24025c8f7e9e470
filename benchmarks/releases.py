"""Two versions of the program in turn: processor seconds and peak memory of training, test error, certified gap.

    python benchmarks/releases.py OLD NEW [tamil basque ...]

OLD and NEW are folders of the project's source (`git worktree add ../old COMMIT`). Both are run by this Python, one
after the other on each treebank, each in a process of its own on one thread, after a small fit that loads what is
compiled. The treebanks are read from `../shared/data`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

from accuracy import FIRST, LABELS, MORE

_RUN = """
import json, resource, sys, time
import peers
from vcrf import VCRF
from vcrf.metrics import token_error
name, label = sys.argv[1:]
X, y = peers.read_treebank(name, "train", label)
X_test, y_test = peers.read_treebank(name, "test", label)
VCRF(n_jobs=1, tol=1e-3).fit(X[:30], y[:30])
began = time.process_time()
tagger = VCRF(n_jobs=1).fit(X, y)
seconds = time.process_time() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
error = token_error(y_test, tagger.predict(X_test)).rate
print(json.dumps([seconds, peak, error, tagger.gap_ / tagger.objective_, tagger.result_.n_passes]))
"""


def train(source: Path, name: str) -> list[float]:
    """Seconds, peak, error, relative gap and passes of one version."""
    here = str(Path(__file__).resolve().parent)
    one_thread = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    paths = os.pathsep.join([str(source / "src"), here])
    command = [sys.executable, "-c", _RUN, name, LABELS.get(name, "upos")]
    done = subprocess.run(
        command, check=True, env=os.environ | one_thread | {"PYTHONPATH": paths}, capture_output=True, text=True
    )
    return list(map(float, json.loads(done.stdout.splitlines()[-1])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("names", nargs="*", default=FIRST + MORE)
    options = parser.parse_args()
    ratios = []
    print("| treebank | passes | processor seconds | times faster | test error | relative gap | peak memory |")
    print("|---|---|---|---|---|---|---|")
    for name in options.names:
        old, new = (train(source.resolve(), name) for source in (options.old, options.new))
        ratios.append(old[0] / new[0])
        print(
            f"| {name} | {old[4]:.0f}, {new[4]:.0f} | {old[0]:.1f}, {new[0]:.1f} | {ratios[-1]:.1f} | "
            f"{old[2]:.2%}, {new[2]:.2%} | {old[3]:.1e}, {new[3]:.1e} | {old[1] / 1e6:.0f}, {new[1] / 1e6:.0f} MB |",
            flush=True,
        )
    print(f"\nGeometric mean: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} times faster")


if __name__ == "__main__":
    main()
