"""Warm start: passes from scratch, and from the models of all but some of the sentences.

python benchmarks/warm.py [tamil twitter-tweebank basque]
"""

from __future__ import annotations

import argparse
import time

import peers
from accuracy import LABELS

from vcrf import VCRF


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["tamil", "twitter-tweebank", "basque"])
    options = parser.parse_args()
    for name in options.names:
        X, y = peers.read_treebank(name, "train", LABELS.get(name, "upos"))
        for left_out in (None, 1, len(X) // 100, len(X) // 10):
            start = None if left_out is None else VCRF().fit(X[:-left_out], y[:-left_out])
            began = time.process_time()
            tagger = VCRF().fit(X, y, start=start)
            seconds = time.process_time() - began
            what = "from scratch" if start is None else f"{left_out} of {len(X)} sentences new"
            print(
                f"{name}, {what}: {tagger.result_.n_passes} passes, {seconds:.1f} s of processor time, objective "
                f"{tagger.objective_:.6f}, relative gap {tagger.result_.relative_gap:.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
