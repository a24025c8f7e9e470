"""VCRF() with nothing set on the paper's folds: run i trains on three of five folds and is tested on fold i + 1.

    python benchmarks/protocol.py [tamil twitter basque english] [--runs 5] [--seed 0]

The folds are those of `vcrf reproduce` (the same seed gives the same ones), so that the errors can be laid beside its
tables. Nothing is chosen: the validation fold is not read. The treebanks are read from `../shared/data`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import peers

from vcrf import VCRF
from vcrf.experiments.datasets import find_data, read_dataset, unpack
from vcrf.experiments.protocol import N_FOLDS, parts_of_run
from vcrf.metrics import sentence_error, token_error
from vcrf.types import Floats


def one_run(tokens: list[list[str]], labels: list[list[str]], seed: int, run: int) -> tuple[float, float, int]:
    """Token error and sentence error in per cent, and the number of weights."""
    parts = parts_of_run(len(tokens), seed, run)
    tagger = VCRF().fit([tokens[i] for i in parts.train], [labels[i] for i in parts.train])
    true, found = [labels[i] for i in parts.test], tagger.predict([tokens[i] for i in parts.test])
    return 100 * token_error(true, found).rate, 100 * sentence_error(true, found).rate, tagger.n_active_


def shown(errors: Floats) -> str:
    """Mean and standard deviation of a sample; one run has none."""
    return f"{errors.mean():.2f} ± {errors.std(ddof=1):.2f} %" if len(errors) > 1 else f"{errors[0]:.2f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["tamil", "twitter", "basque", "english"])
    parser.add_argument("--runs", type=int, default=N_FOLDS, help="the first so many of the five runs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for file in find_data([peers.DATA_FOLDER], options.names, None):
        tokens, labels = unpack(read_dataset(file).blob)
        began = time.process_time()
        token, sentence, weights = np.array([one_run(tokens, labels, options.seed, i) for i in range(options.runs)]).T
        print(
            f"{file.name:18s} {options.runs} runs  token error {shown(token)}  sentence error {shown(sentence)}  "
            f"{weights.mean():,.0f} weights  {time.process_time() - began:.0f} processor seconds",
            flush=True,
        )


if __name__ == "__main__":
    main()
