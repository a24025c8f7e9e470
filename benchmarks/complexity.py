"""Complexities of families on treebanks: their order, their cost, and what training with them brings.

    python benchmarks/complexity.py order [tamil basque english]     estimates beside the paper's formula
    python benchmarks/complexity.py wide                             English, over a billion candidates: seconds, memory
    python benchmarks/complexity.py cv [--preset paper] [--strength 1]   Tamil, cross-validation of the choices, paired

Reads `NAME.conllu.gz` from `../shared/data`, or from --data, the split train only.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from peers import peak_bytes

from vcrf import VCRF, read_corpus
from vcrf.arguments.inputs import label_numbers, read_text, sorted_classes
from vcrf.arguments.parameters import COMPLEXITIES
from vcrf.complexity import FamilyCounts, family_complexities, gaussian_integral, moment_bound, rademacher
from vcrf.data import Corpus
from vcrf.families import Family, default_families, paper_families
from vcrf.metrics import compare
from vcrf.problem import Problem, build_problem

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def problem_of(tokens: list[list[str]], labels: list[list[str]], families: list[Family]) -> Problem:
    classes = sorted_classes(labels)
    return build_problem(read_text(tokens), label_numbers(labels, classes), len(classes), families)


def ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values))


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def order(data: Path, names: list[str], words: int, tags: int, affix: int) -> None:
    for name in names:
        corpus = read_corpus(data / f"{name}.conllu.gz", tag="upos", split="train")
        problem = problem_of(corpus.tokens, corpus.labels, paper_families(words, tags, affix))
        counts = list(FamilyCounts(problem))
        estimates = [rademacher(family) for family in counts]
        found = {choice: family_complexities(choice, problem) for choice in ("paper", "general", "massart")}
        values = np.array([estimate.value for estimate in estimates])
        print(f"\n{name}: {len(corpus):,} sentences, {problem.n_labels} labels, {problem.n_candidates:,} candidates\n")
        print("| family | Monte Carlo | integral | moment | Massart | general | paper | rank | paper's rank |")
        print("|---|---|---|---|---|---|---|---|---|")
        for f in np.argsort(-values):
            family, estimate = problem.families[f], estimates[f]
            print(
                f"| {family.name} | {estimate.value:.4f} ± {estimate.half_width:.4f} | "
                f"{gaussian_integral(counts[f]):.4f} | {moment_bound(counts[f]):.4f} | {found['massart'][f]:.4f} | "
                f"{found['general'][f]:.4f} | {found['paper'][f]:.4f} | {ranks(-values)[f] + 1} | "
                f"{ranks(-found['paper'])[f] + 1} |"
            )
        for choice, numbers in found.items():
            print(f"rank correlation of the estimate with {choice}: {spearman(values, numbers):+.2f}")
        for k in range(1, tags + 1):
            mine = np.array([family.tags == k for family in problem.families])
            print(f"the same with the paper's among tag patterns of length {k}: "
                  f"{spearman(values[mine], found['paper'][mine]):+.2f}")  # fmt: skip


def wide(data: Path) -> None:
    corpus = read_corpus(data / "english.conllu.gz", tag="upos", split="train")
    rademacher(next(iter(FamilyCounts(problem_of(corpus.tokens[:50], corpus.labels[:50], default_families())))))
    before = peak_bytes()
    began = time.perf_counter()
    problem = problem_of(corpus.tokens, corpus.labels, paper_families(3, 2, 3))
    built = time.perf_counter()
    cpu = time.process_time()
    for choice in COMPLEXITIES[:4]:
        start = time.perf_counter()
        family_complexities(choice, problem)
        print(f"{choice:12} {time.perf_counter() - start:6.1f} s")
    start = time.perf_counter()
    for family in FamilyCounts(problem):
        moment_bound(family)
    print(f"{'moment bound':12} {time.perf_counter() - start:6.1f} s")
    print(
        f"{problem.n_candidates:,} candidates, {len(problem.families)} families, {len(problem.columns):,} columns; "
        f"reading {built - began:.1f} s, all complexities {time.perf_counter() - built:.1f} s "
        f"({time.process_time() - cpu:.1f} s of one core); peak {peak_bytes() / 1e9:.2f} GB, {before / 1e9:.2f} before"
    )


def complexities(choice: str, train: Corpus, families: list[Family]) -> dict[str, float]:
    """The choice's r_k with mean 1, so that one strength serves all; "uniform" is 1 everywhere."""
    if choice == "uniform":
        return {family.name: 1.0 for family in families}
    found = family_complexities(choice, problem_of(train.tokens, train.labels, families))
    return dict(zip([family.name for family in families], (found / found.mean()).tolist(), strict=True))


def cross_validate(data: Path, preset: str, folds: int, total: float, base_share: float, seed: int) -> None:
    corpus = read_corpus(data / "tamil.conllu.gz", tag="upos", split="train")
    fold_of = np.random.default_rng(seed).permutation(len(corpus)) % folds
    presets = {"default": default_families(), "paper words=2 tags=2 affix=3": paper_families(2, 2, 3)}
    for name, families in ((name, families) for name, families in presets.items() if name.startswith(preset)):
        labelled: dict[str, list[list[str]]] = {}
        active: dict[str, list[int]] = {}
        truth: list[list[str]] = []
        for fold in range(folds):
            train, test = part(corpus, fold_of != fold), part(corpus, fold_of == fold)
            truth += test.labels
            for choice in ("uniform", *COMPLEXITIES[:4]):
                tagger = VCRF(
 recipe="paper",
                    families=families, complexities=complexities(choice, train, families), norm="l1",
                    base_strength=base_share * total / len(train), n_jobs=1,
                    complexity_strength=(1.0 - base_share) * total / len(train),
                ).fit(train.tokens, train.labels)  # fmt: skip
                labelled.setdefault(choice, []).extend(tagger.predict(test.tokens))
                active.setdefault(choice, []).append(tagger.n_active_)
        print(f"\n{name}: {folds} folds, strength {total:g} / m, of it {base_share:.0%} the same for all families\n")
        print("| r_k | token error | active features | less uniform | 95 % interval | p |")
        print("|---|---|---|---|---|---|")
        for choice, found in labelled.items():
            c = compare(truth, found, labelled["uniform"])
            shown = f"{c.difference:+.2%} | {c.low:+.2%} to {c.high:+.2%} | {c.p_value:.2f}"
            print(f"| {choice} | {c.error_a:.2%} | {np.mean(active[choice]):,.0f} | {shown} |", flush=True)


def part(corpus: Corpus, chosen: np.ndarray) -> Corpus:
    kept = np.flatnonzero(chosen)
    return Corpus([corpus.tokens[i] for i in kept], [corpus.labels[i] for i in kept], [corpus.sources[i] for i in kept])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["order", "wide", "cv"])
    parser.add_argument("names", nargs="*", default=["tamil", "basque", "english"])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--words", type=int, default=2)
    parser.add_argument("--tags", type=int, default=3)
    parser.add_argument("--affix", type=int, default=3)
    parser.add_argument("--preset", choices=["default", "paper"], default="default")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--strength", type=float, default=0.5, help="in occurrences: divided by m")
    parser.add_argument("--base-share", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.what == "order":
        order(options.data, options.names, options.words, options.tags, options.affix)
    elif options.what == "wide":
        wide(options.data)
    else:
        cross_validate(options.data, options.preset, options.folds, options.strength, options.base_share, options.seed)


if __name__ == "__main__":
    main()
