"""A billion candidate features: Basque, H(k1<=3, k2<=2, k3<=3), trained to a certified gap.

    python benchmarks/wide.py [--base 1e-3 1e-4] [--complexity 1e-2] [--tol 1e-3]

Reads `../shared/data/basque.conllu.gz`, takes 3/5 of the sentences (seeded), and prints for each pair of
strengths the seconds, the peak memory, the certified gap and what the reductions left. A first small fit
compiles the kernels, so that compile time stays aside.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from peers import peak_bytes

from vcrf import VCRF, read_corpus

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "basque.conllu.gz"


def sample(share: float, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    corpus = read_corpus(DATA)
    chosen = random.Random(seed).sample(range(len(corpus)), int(share * len(corpus)))
    return [corpus.tokens[i] for i in chosen], [corpus.labels[i] for i in chosen]


def train(X: list[list[str]], y: list[list[str]], complexity: float, base: float, tol: float, jobs: int) -> VCRF:
    tagger = VCRF(
        recipe="paper",
        families="paper",
        words=3,
        tags=2,
        affix=3,
        complexity_strength=complexity,
        base_strength=base,
        tol=tol,
        n_jobs=jobs,
    )
    return tagger.fit(X, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--complexity", type=float, nargs="+", default=[1e-2])
    parser.add_argument("--base", type=float, nargs="+", default=[1e-3])
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    X, y = sample(0.6, options.seed)
    began = time.perf_counter()
    train(X[:60], y[:60], 1e-2, 1e-2, 1e-2, options.jobs)
    print(f"{len(X)} sentences, {sum(map(len, X))} tokens; compiling took {time.perf_counter() - began:.1f} s")
    print(
        "complexity  base    seconds  solving  relative gap  candidates     columns  kept     active  passes  peak MB"
    )
    for complexity in options.complexity:
        for base in options.base:
            began = time.perf_counter()
            tagger = train(X, y, complexity, base, options.tol, options.jobs)
            result = tagger.result_
            print(
                f"{complexity:<10g}  {base:<6g}  {time.perf_counter() - began:7.1f}  {result.seconds:7.1f}  "
                f"{result.relative_gap:12.2e}  {tagger.n_candidates_:<13,d}  {tagger.n_columns_:<7d}  "
                f"{result.n_kept_columns:<7d}  {tagger.n_active_:<6d}  {result.n_passes:<6d}  "
                f"{peak_bytes() / 1e6:7.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
