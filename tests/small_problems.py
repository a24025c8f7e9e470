"""Strategies for training problems small enough to enumerate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from enumeration import all_candidates, column_of, families_of, number_of
from objectives import objective
from vcrf.families import (
    BIAS,
    END,
    START,
    Family,
    NamedFeature,
    Template,
    intern_sentences,
    paper_families,
    read_attributes,
    transition_families,
)
from vcrf.problem import Problem, build_problem
from vcrf.structures import pairs, scan

WORD = Template(((0, "word"),))
_WORDS = ["a", "b", "ab", "ba", "é"]
_NUMBERS = [-2.0, -0.5, 0.25, 1.0, 1.5]


@contextmanager
def pairs_kept(is_kept: bool) -> Iterator[None]:
    """Make scans keep the residuals of label pairs, or sum the posteriors anew for each column."""
    saved = scan._PAIR_USES
    scan._PAIR_USES = 0 if is_kept else 10**9
    try:
        yield
    finally:
        scan._PAIR_USES = saved


@contextmanager
def for_few_labels() -> Iterator[None]:
    """Small problems take the pairs that have a weight, and classes of labels, too, however many."""
    saved = pairs.MANY_LABELS, pairs._ARCS_PER_PAIR, pairs._ARCS_PER_CLASS_PAIR, pairs.TOKENS
    pairs.MANY_LABELS, pairs._ARCS_PER_PAIR, pairs._ARCS_PER_CLASS_PAIR, pairs.TOKENS = 1, 0, 0, 4
    try:
        yield
    finally:
        pairs.MANY_LABELS, pairs._ARCS_PER_PAIR, pairs._ARCS_PER_CLASS_PAIR, pairs.TOKENS = saved


@dataclass(frozen=True, repr=False)
class Case:
    """A problem, what it was built from, and the loss of one wrong label in each sentence."""

    text: Any
    y: Any
    n_labels: int
    families: list[Family]
    weights: Any
    costs: Any
    problem: Problem

    def __repr__(self) -> str:
        names = [f"{family.name}:{family.tags}" for family in self.families]
        return (
            f"Case({self.n_labels} labels, y={self.y.tolist()}, sent_ptr={self.problem.sent_ptr.tolist()}, "
            f"families={names}, weights={self.weights}, costs={self.costs})"
        )

    def _repr_pretty_(self, printer, _cycle):
        # Hypothesis shows dataclasses field by field: pages of arrays.
        printer.text(repr(self))

    def rebuilt(self, **changes):
        """Return the same case with other options of build_problem, or other y."""
        y = changes.pop("y", self.y)
        options = {"weights": self.weights, "candidates": self.problem.candidates, **changes}
        return replace(self, y=y, problem=build_problem(self.text, y, self.n_labels, self.families, **options))

    def surrogate(self, threads=1):
        """Return the surrogate with no column screened."""
        return objective("crf", self.problem, self.costs, threads=threads)

    def strengths(self, strengths, candidates):
        """Return the strength of each candidate of an unmerged problem, by its only family."""
        return np.array([strengths[families_of(self.problem, f.column, f.k)[0]] for f in candidates], np.float64)


def _words(rng, lengths):
    return [[str(rng.choice(_WORDS)) for _ in range(n)] for n in lengths]


def _token(rng):
    """Return attributes of one token: maybe an indicator, several of one name, numbers, or none at all."""
    token = {}
    if rng.random() < 0.6:
        token["a"] = str(rng.choice(["x", "y"]))
    if rng.random() < 0.4:
        token["s"] = {str(item) for item in rng.choice(["x", "y", "z"], 2)}
    if rng.random() < 0.5:
        token["n"] = float(rng.choice(_NUMBERS))
    if rng.random() < 0.4:
        token["v"] = {str(item): float(rng.choice(_NUMBERS)) for item in rng.choice(["x", "y"], 2)}
    return token


def _families(draw, text, kind, tags):
    if kind == "paper":
        return paper_families(draw(st.integers(0, 1)), tags, draw(st.integers(0, 1)))
    if kind == "words":
        # A family of length k only: the other lengths of the same column are no candidates.
        lexical = [Family(f"word x{k}", (WORD,), k) for k in range(1, tags + 1) if k == tags or draw(st.booleans())]
        return lexical + transition_families(tags)
    names = [Family(f"{name} x{k}", (NamedFeature(name),), k) for name in text.source_names for k in range(1, tags + 1)]
    if kind == "given" or not names:
        plain = [Family("bias", (BIAS,), k) for k in range(1, tags + 1)]
        return names + plain + [Family("ends", (START, END), 1)]
    return names  # no plain tag patterns at all


@st.composite
def cases(
    draw,
    max_labels=4,
    max_tags=4,
    max_length=6,
    max_sentences=4,
    candidates="all",
    merge_twins=True,
    loss=None,
    min_tags=1,
):
    """Problems with up to 4**6 label sequences a sentence; lengths 0 and 1, one label, weights, numbers."""
    n_labels = draw(st.integers(1, max_labels))
    lengths = draw(st.lists(st.integers(0, max_length), min_size=1, max_size=max_sentences))
    tags = draw(st.integers(min_tags, max_tags))
    kind = draw(st.sampled_from(["paper", "words", "given", "numbers"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind in ("given", "numbers"):
        text = read_attributes([[_token(rng) for _ in range(n)] for n in lengths])
    else:
        text = intern_sentences(_words(rng, lengths))
    families = _families(draw, text, kind, tags)
    y = rng.integers(0, n_labels, text.n_tokens).astype(np.uint32)
    weights = rng.integers(1, 5, len(lengths)) / 8.0 if draw(st.booleans()) else None
    loss = draw(st.booleans()) if loss is None else loss
    costs = np.array([1.0 / max(n, 1) for n in lengths]) if loss else np.zeros(len(lengths))
    problem = build_problem(
        text, y, n_labels, families, weights=weights, candidates=candidates, merge_twins=merge_twins
    )
    return Case(text, y, n_labels, families, weights, costs, problem)


@st.composite
def active_sets(draw, case, scales=(0.3, 3.0, 30.0), max_size=24, max_order=None):
    """Some candidates of the case in order, their numbers, and weights."""
    every = [f for f in all_candidates(case.problem) if max_order is None or f.k <= max_order]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.integers(0, min(max_size, len(every))))
    # Long patterns are most of the candidates: draw the length first, so that all lengths are common.
    ks = sorted({f.k for f in every})
    chosen = set()
    for _ in range(size):
        k = rng.choice(ks)
        of_length = [f for f in every if f.k == k]
        chosen.add(of_length[rng.integers(len(of_length))])
    features = sorted(chosen)
    numbers = np.array([number_of(case.problem, f) for f in features], np.int64)
    w = draw(st.sampled_from(scales)) * rng.normal(size=len(features))
    return features, numbers, w


@st.composite
def strengths(draw, case, values=(0.01, 0.03, 0.1, 0.3)):
    """One strength per family, often the same for all."""
    if draw(st.booleans()):
        return np.full(len(case.families), draw(st.sampled_from(values)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.choice(values, len(case.families))


def merged_cost(w, l1, l2):
    """Least sum of l1_k |w_k| + l2_k w_k^2 / 2 over the splits of w among members, by bisection."""
    if w == 0.0:
        return 0.0
    if not np.any(l2):
        return float(np.min(l1)) * abs(w)
    low, high = 0.0, float(np.max(l1) + abs(w) * np.max(l2))
    for _ in range(200):
        slope = 0.5 * (low + high)
        if np.sum(np.maximum(slope - l1, 0.0) / l2) < abs(w):
            low = slope
        else:
            high = slope
    shares = np.maximum(high - l1, 0.0) / l2
    return float(l1 @ shares + 0.5 * l2 @ shares**2)


def penalty_of(problem, penalty, features, w):
    """Penalty of the weights of merged features: the cheapest split of each among its families."""
    total = 0.0
    for feature, weight in zip(features, w, strict=True):
        members = families_of(problem, feature.column, feature.k)
        total += merged_cost(
            float(weight), penalty.l1[members], penalty.l2[members] * count_scale(problem, penalty, feature)
        )
    return total


def count_scale(problem, penalty, feature):
    """How much the count of a feature's attribute multiplies its l2 strength."""
    return max(len(column_of(problem, feature.column)), 1) ** penalty.count_power
