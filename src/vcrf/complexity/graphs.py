"""The features of factor graphs, for their complexity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vcrf.complexity.counts import Block, FeatureCounts, Incidence
from vcrf.errors import InputError
from vcrf.graphs.graph import FactorGraph
from vcrf.types import Floats


def graph_counts(graphs: Sequence[FactorGraph], kind: str | None = None, factors: str = "joint") -> FeatureCounts:
    """Features of a sample of graphs: attributes x assignments.

    Parameters
    ----------
    graphs : one for each example
    kind : only the features on factors of this kind (a family)
    factors : "joint" counts all factors of a graph in |F_i|, "family" only those of the kind
    """
    if factors not in ("joint", "family"):
        raise InputError(f"`factors` must be 'joint' or 'family', got {factors!r}.")
    shapes: dict[str, tuple[int, ...]] = {}
    builders: dict[int, _BlockBuilder] = {}
    for graph in graphs:
        chosen = [f for f, factor in enumerate(graph.factors) if kind in (None, factor.kind)]
        size = float(graph.n_factors if factors == "joint" else len(chosen))
        for f in chosen:
            for name, _ in graph.factors[f].attributes:
                _check_shape(name, shapes.setdefault(name, graph.shape(f)), graph.shape(f))
            n = graph.n_assignments(f)
            builders.setdefault(n, _BlockBuilder()).add(graph.factors[f].attributes, size)
    return FeatureCounts(tuple(builder.block(n) for n, builder in sorted(builders.items())), len(graphs))


def dense_features(graphs: Sequence[FactorGraph]) -> list[list[Floats]]:
    """Psi_f(x_i, y) of every factor and assignment as `dense_complexity` takes them; for small graphs."""
    columns: dict[tuple[str, int], int] = {}
    for graph in graphs:
        for f, factor in enumerate(graph.factors):
            for name, _ in factor.attributes:
                for z in range(graph.n_assignments(f)):
                    columns.setdefault((name, z), len(columns))
    examples = []
    for graph in graphs:
        rows = [np.zeros((graph.n_assignments(f), len(columns))) for f in range(graph.n_factors)]
        for psi, factor in zip(rows, graph.factors, strict=True):
            for name, value in factor.attributes:
                for z in range(len(psi)):
                    psi[z, columns[name, z]] += value
        examples.append(rows)
    return examples


class _BlockBuilder:
    """Factors with label sets of one size."""

    def __init__(self) -> None:
        self.sizes: list[float] = []
        self.found: dict[str, dict[int, float]] = {}

    def add(self, attributes: Sequence[tuple[str, float]], size: float) -> None:
        row = len(self.sizes)
        self.sizes.append(size)
        for name, value in attributes:
            at = self.found.setdefault(name, {})
            at[row] = at.get(row, 0.0) + value

    def block(self, n_assignments: int) -> Block:
        listed = list(self.found.values())
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(at) for at in listed], dtype=np.int64)])
        factors = np.array([row for at in listed for row in at], np.int64)
        values = np.array([value for at in listed for value in at.values()], np.float64)
        incidence = Incidence(
            ptr, factors, values if np.any(values != 1.0) else np.zeros(0), np.array(self.sizes, np.float64)
        )
        return Block(incidence, n_assignments, np.arange(len(listed)), np.ones(len(listed), np.int64))


def _check_shape(name: str, known: tuple[int, ...], here: tuple[int, ...]) -> None:
    if known != here:
        raise InputError(
            f"Attribute {name!r} stands at factors of shapes {known} and {here}: a feature has one weight an "
            "assignment, so that its factors need variables with the same numbers of values. Use two names."
        )
