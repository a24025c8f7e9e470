"""Do the bounds hold, how loose are they, and how do they scale? A simulation with the true risk known exactly.

    python benchmarks/bound_holds.py [--draws 200] [--sizes 1000 10000 100000 1000000] [--plot docs/bounds.png]

A tiny invented language (few words, two or three labels, sentences of at most three tokens) lets every sentence be
enumerated with its probability: the risk of a model is a sum, and a sample of any size is one multinomial draw. For
each size and draw a VCRF is trained, every bound is computed from the sample alone, each at its best margin, and
compared with the true risk. Then the complexity of random corpora is measured against m, length, labels, order and
words, and the slopes in log-log scale are set beside those that the theorem predicts.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from vcrf import VCRF
from vcrf.complexity import (
    FamilyCounts,
    best_margin,
    l1_bound,
    l2_bound,
    margin_frontier,
    margin_grid,
    moment_bound,
    rademacher,
)
from vcrf.complexity.norms import weight_norms
from vcrf.complexity.report import bound_rules
from vcrf.data import SyntheticLanguage
from vcrf.families import BIAS, Family, Template, Text, intern_sentences
from vcrf.losses import HammingLoss
from vcrf.plots import new_figure, save_figure
from vcrf.problem import build_problem

FAMILIES = [Family("word", (Template(((0, "word"),)),)), Family("bias", (BIAS,)), Family("pairs", (BIAS,), 2)]


class World:
    """All sentences of a small language with their labels and probabilities."""

    def __init__(self, n_labels: int, n_words: int, max_length: int, ambiguity: float, seed: int) -> None:
        language = SyntheticLanguage(
            n_labels=n_labels, seed=seed, strengths=(0.3, 1.0), n_stems=n_words, n_suffixes=1, n_closed_words=1,
            ambiguity=ambiguity, mean_length=2.0, max_length=max_length,
        )  # fmt: skip
        forms = language.lexicon.forms
        self.labels = language.labels
        self.pairs = [
            (list(x), list(y))
            for n in range(1, max_length + 1)
            for x in itertools.product(forms, repeat=n)
            for y in itertools.product(self.labels, repeat=n)
        ]
        log_p = np.array([language.log_prob(x, y) for x, y in self.pairs])
        kept = np.flatnonzero(log_p > -np.inf)
        self.pairs = [self.pairs[i] for i in kept]
        self.probabilities = np.exp(log_p[kept]) / np.exp(log_p[kept]).sum()
        self.bayes = self._bayes(language)

    def _bayes(self, language: SyntheticLanguage) -> float:
        """Least possible risk."""
        best = {tuple(x): language.bayes_decode(x) for x, _ in self.pairs}
        wrong = [wrong_share(best[tuple(x)], y) for x, y in self.pairs]
        return float(self.probabilities @ np.array(wrong))


def wrong_share(predicted: list[str], true: list[str]) -> float:
    return float(np.mean([a != b for a, b in zip(predicted, true, strict=True)]))


def repeated(pairs: list[tuple[list[str], list[str]]], counts: np.ndarray) -> Text:
    """The text of a sample with multiplicities; complexities do not look at labels."""
    text = intern_sentences([x for x, _ in pairs])
    chosen = np.repeat(np.arange(len(pairs)), counts)
    lengths = np.diff(text.sent_ptr)[chosen]
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.repeat(text.sent_ptr[chosen] - ptr[:-1], lengths) + np.arange(ptr[-1])
    return Text(ptr, text.words, text.word_ids[tokens])


def one_draw(world: World, m: int, strength: float, delta: float, rng: np.random.Generator) -> dict[str, float]:
    """True risk, empirical risk and every bound of a model trained on a fresh sample."""
    drawn = rng.multinomial(m, world.probabilities)
    seen = np.flatnonzero(drawn)
    pairs, counts = [world.pairs[i] for i in seen], drawn[seen]
    tagger = VCRF(
        recipe="paper", families=FAMILIES, base_strength=strength, complexity_strength=0.0, tol=1e-2, n_jobs=1
    )
    tagger.fit([x for x, _ in pairs], [y for _, y in pairs], sample_weight=counts.astype(float))
    model = tagger.model_
    number = {label: i for i, label in enumerate(model.labels)}
    predicted = tagger.predict([x for x, _ in world.pairs])
    wrong = [wrong_share(p, true) for p, (_, true) in zip(predicted, world.pairs, strict=True)]
    text = intern_sentences([x for x, _ in pairs])
    y = np.array([number[label] for _, labels in pairs for label in labels], np.uint32)
    frontier = replace(margin_frontier(model.potentials(text), y, HammingLoss()), weights=counts / m)
    sample = repeated(pairs, counts)
    problem = build_problem(sample, np.zeros(sample.n_tokens, np.uint32), len(model.labels), FAMILIES)
    family_counts = FamilyCounts(problem, "joint")
    norms = weight_norms(model, family_counts)
    rules = bound_rules(family_counts, norms, frontier, delta)
    rhos = margin_grid(norms.l1, 60)
    found = {f"{name}|{margin}": best_margin(rule, rhos).total for (name, margin), rule in rules.items()}
    for (name, margin), rule in rules.items():
        at_one = rule(1.0)
        found[f"terms|{name}|{margin}"] = at_one.complexity + at_one.confidence
    return {"risk": float(world.probabilities @ np.array(wrong)), "empirical": frontier.risk, **found}


def simulate(world: World, m: int, strength: float, delta: float, draws: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([seed, m])
    rows = [one_draw(world, m, strength, delta, rng) for _ in range(draws)]
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def print_table(results: dict[int, dict[str, np.ndarray]], delta: float) -> None:
    draws = len(next(iter(results.values()))["risk"])
    print(f"\nEach cell: mean bound (share of {draws} draws in which it held; at least {1 - delta:g} is promised).")
    print("Slope: of complexity + confidence at rho = 1 against m, log-log; -1/2 is predicted.\n")
    sizes = list(results)
    print("| bound | margin | " + " | ".join(f"m = {m:,}" for m in sizes) + " | slope of the terms |")
    print("|---|---|" + "---|" * (len(sizes) + 1))
    for row in ("risk", "empirical"):
        cells = [f"{results[m][row].mean():.4f}" for m in sizes]
        print(f"| {'true risk' if row == 'risk' else 'empirical risk'} | | " + " | ".join(cells) + " | |")
    for key in results[sizes[0]]:
        if key in ("risk", "empirical") or key.startswith("terms"):
            continue
        terms = [float(results[m][f"terms|{key}"].mean()) for m in sizes]
        held = [float((results[m][key] >= results[m]["risk"]).mean()) for m in sizes]
        cells = [f"{results[m][key].mean():.3f} ({100 * h:.0f} %)" for m, h in zip(sizes, held, strict=True)]
        name, margin = key.split("|")
        print(f"| {name} | {margin} | " + " | ".join(cells) + f" | {slope(sizes, terms):+.2f} |")


def slope(xs: list[float], ys: list[float]) -> float:
    """Slope of log y against log x; not a number for a single point."""
    if len(xs) < 2:
        return math.nan
    return float(np.polyfit(np.log(xs), np.log(ys), 1)[0])


# ------------------------------------------------------------------------------------ scaling of the complexity


def random_text(m: int, length: int, n_words: int, rng: np.random.Generator) -> Text:
    ids = rng.integers(0, n_words, m * length).astype(np.uint32)
    return Text(np.arange(m + 1) * length, [f"w{i}" for i in range(n_words)], ids)


def measured(m: int, length: int, n_labels: int, order: int, n_words: int, seed: int) -> dict[str, float]:
    # The same number of factors for every order.
    text = random_text(m, length + order - BASE["order"], n_words, np.random.default_rng(seed))
    families = [Family("word", (Template(((0, "word"),)),), order)]
    problem = build_problem(text, np.zeros(text.n_tokens, np.uint32), n_labels, families)
    counts = FamilyCounts(problem).family(0)
    return {
        "estimate": rademacher(counts, draws=200).value, "moment": moment_bound(counts), "Massart": l1_bound(counts),
        "H_2": l2_bound(counts),
    }  # fmt: skip


def log_2n(v: dict[str, int]) -> float:
    return math.log(2 * v["n_words"] * v["n_labels"] ** v["order"])


# What varies, its values, and what the theorem says each quantity is proportional to (H_1; H_2).
SCALES = {
    "m": ([200, 800, 3200, 12800], "m^-1/2", lambda v: v["m"] ** -0.5, lambda v: v["m"] ** -0.5),
    "length": (
        [4, 8, 16, 32], "F = length - 1 (s = sum F n)", lambda v: v["length"] - 1, lambda v: v["length"] - 1,
    ),
    "n_labels": (
        [2, 4, 8, 16], "sqrt(log 2N); H_2: labels^(order/2)",
        lambda v: log_2n(v) ** 0.5, lambda v: v["n_labels"] ** (v["order"] / 2),
    ),
    "order": (
        [1, 2, 3, 4], "sqrt(log 2N), F held fixed; H_2: labels^(order/2)",
        lambda v: log_2n(v) ** 0.5, lambda v: v["n_labels"] ** (v["order"] / 2),
    ),
    "n_words": (
        [2, 8, 32, 128], "sqrt(s log 2N), s ~ 1/words; H_2: no change",
        lambda v: (log_2n(v) / v["n_words"]) ** 0.5, None,
    ),
}  # fmt: skip
BASE = {"m": 800, "length": 12, "n_labels": 3, "order": 2, "n_words": 16}


def print_scales() -> dict[str, tuple[list[int], dict[str, list[float]]]]:
    print("\nSlopes of log(complexity) against log(what Theorem 2 says it is proportional to): 1 means as predicted\n")
    print("| varied | values | proportional to | estimate | moment | Massart | H_2 |")
    print("|---|---|---|---|---|---|---|")
    kept = {}
    for name, (values, text, l1, l2) in SCALES.items():
        found = defaultdict(list)
        for value in values:
            for key, number in measured(**{**BASE, name: value}, seed=1).items():
                found[key].append(number)
        kept[name] = (values, dict(found))
        cells = []
        for key, numbers in found.items():
            law = l2 if key == "H_2" else l1
            if law is None:
                cells.append(f"x {numbers[-1] / numbers[0]:.2f} in all")
            else:
                cells.append(f"{slope([law({**BASE, name: v}) for v in values], numbers):.2f}")
        print(f"| {name} | {', '.join(map(str, values))} | {text} | " + " | ".join(cells) + " |")
    return kept


def draw(results: dict[int, dict[str, np.ndarray]], scales: dict, path: Path) -> None:
    figure = new_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2)
    sizes = list(results)
    for key in results[sizes[0]]:
        if key.endswith("|additive") and not key.startswith("terms"):
            left.plot(sizes, [results[m][key].mean() for m in sizes], marker=".", label=key.split("|")[0])
    left.plot(sizes, [results[m]["risk"].mean() for m in sizes], "k--", label="true risk")
    left.axhline(1.0, color="grey", linewidth=1)
    left.set(xscale="log", yscale="log", xlabel="examples m", ylabel="bound on the risk", title="Bounds and the truth")
    left.legend(fontsize=6)
    values, found = scales["m"]
    for key, numbers in found.items():
        right.plot(values, numbers, marker=".", label=key)
    right.plot(values, [found["estimate"][0] * (v / values[0]) ** -0.5 for v in values], "k:", label="slope -1/2")
    right.set(xscale="log", yscale="log", xlabel="examples m", ylabel="complexity", title="Factor graph complexity")
    right.legend(fontsize=7)
    save_figure(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--labels", type=int, default=3)
    parser.add_argument("--words", type=int, default=4)
    parser.add_argument("--max-length", type=int, default=2)
    parser.add_argument("--ambiguity", type=float, default=0.3)
    parser.add_argument("--strength", type=float, default=0.03)
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    world = World(options.labels, options.words, options.max_length, options.ambiguity, options.seed)
    print(f"{len(world.pairs)} pairs of sentence and labels; least possible risk {world.bayes:.4f}")
    results = {
        m: simulate(world, m, options.strength, options.delta, options.draws, options.seed) for m in options.sizes
    }
    print_table(results, options.delta)
    scales = print_scales()
    if options.plot:
        draw(results, scales, options.plot)


if __name__ == "__main__":
    main()
