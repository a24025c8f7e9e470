"""Small graphs, drawn: skeletons with types, factors of up to three variables, and symmetric pairs."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import logsumexp

from vcrf.graphs.inference import GraphInference
from vcrf.graphs.kinds import PartKind, PartKinds
from vcrf.graphs.layout import Skeleton, make_layout


def draw_skeletons(rng, n_graphs=2, most=6, cards=None, density=0.5, has_triples=True):
    """Kinds and skeletons of graphs with variables of two types."""
    cards = [int(c) for c in rng.integers(1, 5, 2)] if cards is None else cards
    kinds = [PartKind(f"type{t}", (t,)) for t in range(len(cards))]
    skeletons = []
    for _ in range(n_graphs):
        n = int(rng.integers(1, most + 1))
        types = rng.integers(0, len(cards), n)
        numbers, scopes = [int(t) + 1 for t in types], [(v,) for v in range(n)]
        joint = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < density]
        if has_triples and n >= 3:
            joint += [tuple(rng.permutation(n)[:3].tolist()) for _ in range(rng.integers(0, 3))]
        for scope in joint:
            ordered = tuple(int(v) for v in rng.permutation(scope))
            ends = tuple(int(types[v]) for v in ordered)
            is_symmetric = len(ends) == 2 and ends[0] == ends[1] and bool(rng.random() < 0.4)
            kind = PartKind("same" if is_symmetric else "joint", ends, is_symmetric)
            if kind not in kinds:
                kinds.append(kind)
            numbers.append(kinds.index(kind) + 1)
            scopes.append(ordered)
        skeletons.append(Skeleton(types.astype(np.int64), np.array(numbers, np.int64), tuple(scopes)))
    labels = tuple(tuple(range(card)) for card in cards)
    return PartKinds(tuple(f"type{t}" for t in range(len(cards))), labels, tuple(kinds)), skeletons


def inference_of(kinds, skeletons, max_table=10**6, width=1, threads=1):
    """Inference on them."""
    return GraphInference(make_layout(kinds, skeletons, max_table, width), threads)


def enumerated(layout, scores, i):
    """All assignments of an example and their scores."""
    first, last = layout.variable_ptr[i], layout.variable_ptr[i + 1]
    assignments = np.array(list(itertools.product(*(range(c) for c in layout.cards[first:last]))), np.int64)
    y = np.zeros(len(layout.types), np.int64)
    mine = slice(layout.part_ptr[i], layout.part_ptr[i + 1])
    totals = np.zeros(len(assignments))
    for k, values in enumerate(assignments):
        y[first:last] = values
        totals[k] = scores[layout.entries(y)[mine]].sum()
    return assignments, totals


def enumerated_marginals(layout, scores):
    """Log-partitions, marginals of all parts and entropies of the examples, by enumeration."""
    out, logs, entropies = np.zeros(len(scores)), [], []
    y = np.zeros(len(layout.types), np.int64)
    for i in range(layout.n_examples):
        assignments, totals = enumerated(layout, scores, i)
        log_z = logsumexp(totals)
        p = np.exp(totals - log_z)
        for values, share in zip(assignments, p, strict=True):
            y[layout.variable_ptr[i] : layout.variable_ptr[i + 1]] = values
            np.add.at(out, layout.entries(y)[layout.part_ptr[i] : layout.part_ptr[i + 1]], share)
        logs.append(log_z)
        entropies.append(log_z - p @ totals)
    return np.array(logs), out, np.array(entropies)
