"""What each part of the default brings: token error by cross-validation inside the training splits, paired tests.

    python benchmarks/ablation.py [--sets tamil basque ...] [--variants NAME ...] [--threads 1] [--sentences 5000]

A variant is VCRF() with one thing changed. Tamil is cut into five folds; of the larger treebanks 2,500 training
sentences (1,500 of Hindi) are drawn and one fifth of them is held out. No development or test sentence is read. A
difference is tested against the default (or `--against NAME`) on the same held-out sentences (permutation test over
sentences): * stands for p < 0.05. Seconds are those of the processor, in training. The
treebanks are read from `../shared/data`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import peers

from vcrf import VCRF, vote
from vcrf.families import Family, default_families
from vcrf.metrics import compare, token_error

# Name, number of training sentences drawn (None: all), number of folds that are held out in turn.
SETS = {
    "tamil": (None, 5),
    "basque": (2500, 1),
    "english": (2500, 1),
    "finnish-tdt": (2500, 1),
    "dutch-alpino": (2500, 1),
    "hindi": (1500, 1),
}
FOLDS = 5
LOSS = "hamming:normalised=False,cost=3"  # what VCRF() takes


class Split(NamedTuple):
    """Training and held-out sentences."""

    X: list[Any]
    y: list[Any]
    X_held: list[Any]
    y_held: list[Any]


def without(*starts: str) -> list[Family]:
    """The default families but those whose name starts so."""
    return [family for family in default_families() if not family.name.startswith(starts)]


def without_around(start: str) -> list[Family]:
    """The default families but those of a neighbour: "affix:2[-1]", "shape[+1]"."""
    return [family for family in default_families() if not (family.name.startswith(start) and "[" in family.name)]


def without_own_affixes() -> list[Family]:
    return [family for family in default_families() if not (family.name.startswith("affix") and "[" not in family.name)]


VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "no lower case": {"families": lambda: without("lower")},
    "no shapes": {"families": lambda: without("shape", "long_shape", "kind", "length", "first")},
    "no long shape, length, first, kinds": {"families": lambda: without("long_shape", "length", "first", "kinds")},
    "affixes up to 4 only": {"affix": 4},
    "no affixes of the word": {"families": without_own_affixes},
    "no affixes of neighbours": {"families": lambda: without_around("affix")},
    "no words of neighbours": {"families": lambda: without_around("word")},
    "no word pairs": {"families": lambda: without("word pairs")},
    "no neighbours at all": {"words": 0},
    "tags = 1": {"tags": 1},
    "tags = 3": {"tags": 3},
    "no loss": {"loss": None},
    "L2, observed pairs": {"norm": "l2", "candidates": "observed", "base": 0.09},
    "elastic without counts": {"count_power": 0.0},
    "counts to the power 0.5": {"count_power": 0.5},
    "group norm": {"norm": "group", "base": 0.5},
    "no factors of families": {"factors": False},
    "vote of four bootstrap samples": {"vote": "samples"},
    "vote of four times 70 % of the families": {"vote": "families"},
    "vote of tags = 1, 2, 3": {"vote": "orders"},
    "L1, no loss, 0.5 / m": {"recipe": "paper"},
    "L1, 1 / m": {"norm": "l1", "base": 1.0},
    "paper's complexities added": {"complexity": 0.09, "base": 0.09},
    "paper's complexities alone": {"complexity": 0.09, "base": 0.0},
    "estimated complexities alone": {"complexity": 0.09, "base": 0.0, "complexities": "rademacher"},
    "feature complexities alone": {"complexity": 0.09, "base": 0.0, "complexities": "feature"},
    "feature complexities alone, without counts": {
        "complexity": 0.09, "base": 0.0, "complexities": "feature", "count_power": 0.0,
    },
    "feature complexities added": {"complexity": 0.09, "base": 0.09, "complexities": "feature"},
    "feature complexities, half and half": {"complexity": 0.045, "base": 0.045, "complexities": "feature"},
    "a little of them added, with factors": {
        "complexity": 0.03, "base": 0.09, "complexities": "feature", "factors": True,
    },
    "L1, 0.8 / m": {"norm": "l1", "base": 0.8},
    "L1, feature complexities alone": {"norm": "l1", "complexity": 1.0, "base": 0.0, "complexities": "feature"},
    "L1, feature complexities, half and half": {
        "norm": "l1", "complexity": 0.5, "base": 0.5, "complexities": "feature",
    },
}  # fmt: skip


def draw(name: str, sentences: int | None = None, seed: int = 0) -> list[Split]:
    """The splits of a treebank; of the larger ones so many sentences are drawn."""
    limit, n_held = SETS[name]
    limit = limit if sentences is None or limit is None else sentences
    X, y = peers.read_treebank(name, "train")
    order = np.random.default_rng(seed).permutation(len(X))[:limit]
    splits = []
    for fold in range(n_held):
        held = set(order[fold::FOLDS].tolist())
        rest = sorted(set(order.tolist()) - held)
        out = sorted(held)
        splits.append(Split([X[i] for i in rest], [y[i] for i in rest], [X[i] for i in out], [y[i] for i in out]))
    return splits


def estimator(variant: dict[str, Any], split: Split, threads: int | None) -> VCRF:
    """VCRF with the variant's parameters; strengths are given in occurrences, for a family of mean complexity."""
    options = {name: value() if callable(value) else value for name, value in variant.items()}
    base, complexity = options.pop("base", None), options.pop("complexity", None)
    if base is None and complexity is None:
        return VCRF(**options, n_jobs=threads)
    m = len(split.X)
    if complexity is not None:
        choice = options.get("complexities", "paper")
        measured = VCRF(recipe="paper", max_passes=1, complexities=choice, complexity_strength=0.0, n_jobs=threads)
        facts = measured.fit(split.X, split.y).families_
        complexity = complexity / m / float(np.mean([family.complexity for family in facts]))
    form = {"recipe": "paper", "norm": "elastic", "l1_ratio": 2 / 3, "count_power": 0.35, "loss": LOSS} | options
    return VCRF(**form, base_strength=base / m, complexity_strength=complexity, n_jobs=threads)


def voters(kind: str, split: Split, threads: int | None) -> list[VCRF]:
    """Four models to be averaged, three where they differ in their order."""
    rng, n = np.random.default_rng(0), len(split.X)
    if kind == "orders":
        return [VCRF(tags=tags, n_jobs=threads).fit(split.X, split.y) for tags in (1, 2, 3)]
    found = []
    for _ in range(4):
        if kind == "samples":
            drawn = rng.integers(n, size=n).tolist()
            found.append(VCRF(n_jobs=threads).fit([split.X[i] for i in drawn], [split.y[i] for i in drawn]))
        else:
            families = [family for family in default_families() if family.tags > 1 or rng.random() < 0.7]
            found.append(VCRF(families=families, n_jobs=threads).fit(split.X, split.y))
    return found


def run(split: Split, variant: dict[str, Any], threads: int | None) -> tuple[list[Any], float, int, int]:
    """Labels of the held-out sentences, seconds, passes and weights."""
    began = time.process_time()
    if "vote" in variant:
        taggers = voters(variant["vote"], split, threads)
    else:
        taggers = [estimator(variant, split, threads).fit(split.X, split.y)]
    tagger = taggers[0] if len(taggers) == 1 else vote(taggers)
    seconds, passes = time.process_time() - began, sum(one.result_.n_passes for one in taggers)
    n_weights = taggers[0].n_active_ if len(taggers) == 1 else len(tagger.model_.weights)
    return tagger.predict(split.X_held), seconds, passes, n_weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument(
        "--against", default="default", choices=list(VARIANTS), help="what differences are tested against"
    )
    parser.add_argument("--threads", type=int, help="threads of each training; all cores by default")
    parser.add_argument("--sentences", type=int, help="how many are drawn of the larger treebanks")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # variants may stop before they have converged
    splits = {name: draw(name, options.sentences) for name in options.sets}
    truth = {name: [y for split in parts for y in split.y_held] for name, parts in splits.items()}
    print("| variant | " + " | ".join(options.sets) + " | mean | weights | passes | seconds |")
    print("|---" * (len(options.sets) + 5) + "|")
    reference: dict[str, list[Any]] = {}
    for variant in [options.against, *(v for v in options.variants if v != options.against)]:
        cells, errors, seconds, passes, weights = [], [], 0.0, [], []
        for name, parts in splits.items():
            runs = [run(split, VARIANTS[variant], options.threads) for split in parts]
            found = [labels for one in runs for labels in one[0]]
            errors.append(100 * token_error(truth[name], found).rate)
            mark = ""
            if variant == options.against:
                reference[name] = found
            else:
                mark = "*" if compare(truth[name], found, reference[name]).p_value < 0.05 else ""
            cells.append(f"{errors[-1]:.2f}{mark}")
            seconds += sum(one[1] for one in runs)
            passes.append(np.mean([one[2] for one in runs]))
            weights.append(np.mean([one[3] for one in runs]))
        row = [variant, *cells, f"{np.mean(errors):.2f}", f"{np.mean(weights):,.0f}", f"{np.mean(passes):.0f}"]
        print("| " + " | ".join([*row, f"{seconds:.0f}"]) + " |", flush=True)


if __name__ == "__main__":
    main()
