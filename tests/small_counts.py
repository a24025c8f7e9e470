"""Small cases whose complexity can be enumerated, as counts and as dense features."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from vcrf.complexity import Block, FeatureCounts, Incidence
from vcrf.families import Family, intern_sentences
from vcrf.problem import Problem, build_problem

Floats = NDArray[np.float64]


def problem_of(sentences: list[str], families: list[Family], n_labels: int) -> Problem:
    """A problem from sentences as text; complexities do not look at the labels."""
    text = intern_sentences([sentence.split() for sentence in sentences])
    return build_problem(text, np.zeros(text.n_tokens, np.uint32), n_labels, families)


def dense_family(problem: Problem, f: int, sizes: list[int] | None = None) -> list[list[Floats]]:
    """Psi_f(x_i, y) of a family from its definition: every attribute of every source is a feature of its own.

    `sizes` are |F_i|; by default the number of factors of the family itself, which `dense_complexity` counts. Others
    are put in by a scale.
    """
    family, text = problem.families[f], problem.text
    keys = [source.read(text) for source in family.sources]
    names = sorted({(s, int(key)) for s, found in enumerate(keys) for key in found.keys})
    at: dict[int, list[int]] = {}
    for s, found in enumerate(keys):
        for position, key in zip(found.positions.tolist(), found.keys.tolist(), strict=True):
            at.setdefault(position, []).append(names.index((s, key)))
    n_assignments = problem.n_labels**family.tags
    examples = []
    for i, (first, last) in enumerate(itertools.pairwise(text.sent_ptr.tolist())):
        ends = range(first + family.tags - 1, last)
        scale = 1.0 if sizes is None else np.sqrt(sizes[i] / max(len(ends), 1))
        factors = []
        for t in ends:
            psi = np.zeros((n_assignments, len(names), n_assignments))
            for a in at.get(t, []):
                psi[np.arange(n_assignments), a, np.arange(n_assignments)] = scale
            factors.append(psi.reshape(n_assignments, -1))
        examples.append(factors)
    return examples


def enumerate_norms(examples: list[list[Floats]], q: float) -> float:
    """E ||sum sqrt|F_i| e Psi||_q / m over all signs, with Python loops only."""
    rows = [np.sqrt(len(factors)) * row for factors in examples for factor in factors for row in factor]
    total, n = 0.0, 0
    for signs in itertools.product((-1.0, 1.0), repeat=len(rows)):
        v = np.abs(sum(sign * row for sign, row in zip(signs, rows, strict=True)))
        total += float(v.max() if np.isinf(q) else (v**q).sum() ** (1.0 / q))
        n += 1
    return total / n / len(examples)


def toy() -> FeatureCounts:
    """One template on 6 sentences, 3 labels, tag pairs with a factor at every position (the toy of the notes)."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 6, 6)
    attributes = rng.integers(0, 4, lengths.sum())
    ptr = np.concatenate([[0], np.cumsum(np.bincount(attributes, minlength=4))]).astype(np.int64)
    sizes = np.repeat(lengths, lengths).astype(np.float64)
    incidence = Incidence(ptr, np.argsort(attributes, kind="stable"), np.zeros(0), sizes)
    return FeatureCounts((Block(incidence, 9, np.arange(4), np.ones(4, np.int64)),), 6)
