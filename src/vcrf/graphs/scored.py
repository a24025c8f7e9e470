"""Scores that decompose over the factors of a graph, and exact inference with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from vcrf.errors import InputError
from vcrf.graphs.elimination import MAX_TABLE, Elimination
from vcrf.graphs.graph import Factor, FactorGraph
from vcrf.lattice import DenseLattice
from vcrf.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class ScoredGraph:
    """score(y) = sum_f tables[f][y_f].

    Parameters
    ----------
    graph : FactorGraph
    tables : one array for each factor, of the shape of its variables' values; -inf forbids an assignment
    max_table : entries of the largest table that exact inference may make

    Examples
    --------
    >>> from vcrf.graphs import chain
    >>> graph = chain(2, 2)
    >>> scored = ScoredGraph(graph, [[0.0, 1.0], [0.0, 0.0], [[0.0, 0.0], [2.0, 0.0]]])
    >>> labels, score = scored.best()
    >>> labels.tolist(), score
    ([1, 0], 3.0)
    """

    graph: FactorGraph
    tables: Sequence[npt.ArrayLike]
    max_table: int = MAX_TABLE

    def __post_init__(self) -> None:
        if len(self.tables) != self.graph.n_factors:
            raise InputError(f"Expected a table for each of {self.graph.n_factors} factors, got {len(self.tables)}.")
        for f, table in enumerate(self._arrays):
            if table.shape != self.graph.shape(f):
                raise InputError(
                    f"The table of factor {f} ({self.graph.factors[f].kind}) needs shape {self.graph.shape(f)}, one "
                    f"axis for each of its variables: got {table.shape}."
                )
            if not np.all(table < np.inf):
                raise InputError(f"The table of factor {f} has NaN or +inf; scores are finite, or -inf to forbid.")

    @classmethod
    def from_weights(
        cls, graph: FactorGraph, weights: Mapping[str, npt.ArrayLike], max_table: int = MAX_TABLE
    ) -> ScoredGraph:
        """Linear scores: tables[f] = sum over the factor's attributes of value * weights[name].

        `weights` has for each attribute one weight an assignment, in the shape of the factor's table; attributes that
        are not there have weight 0.
        """
        tables = []
        for f, factor in enumerate(graph.factors):
            table = np.zeros(graph.shape(f))
            for name, value in factor.attributes:
                given = np.asarray(weights.get(name, 0.0), np.float64)
                if name in weights and given.shape != table.shape:
                    raise InputError(f"The weights of {name!r} need shape {table.shape}, got {given.shape}.")
                table = table + value * given
            tables.append(table)
        return cls(graph, tables, max_table)

    @classmethod
    def from_lattice(cls, lattice: DenseLattice) -> ScoredGraph:
        """The chain of a lattice: one factor a position, on the last `order` labels."""
        n, n_labels, order = lattice.n_positions, lattice.n_labels, lattice.order
        factors, tables = [], []
        for t in range(n):
            scope = tuple(range(max(0, t - order + 1), t + 1))
            factors.append(Factor(scope, "arcs"))
            arcs = lattice.arcs[t, : n_labels ** (len(scope) - 1)]
            tables.append(np.ascontiguousarray(arcs).reshape((n_labels,) * len(scope)))
        return cls(FactorGraph((n_labels,) * n, tuple(factors)), tables)

    def plus(self, factors: Sequence[Factor], tables: Sequence[npt.ArrayLike]) -> ScoredGraph:
        """The sum of these scores and those of further factors: a loss, for instance."""
        return ScoredGraph(self.graph.with_factors(factors), [*self.tables, *tables], self.max_table)

    def plus_hamming(self, y_true: npt.ArrayLike, cost: float | None = None) -> ScoredGraph:
        """Add the Hamming loss against y_true: `cost` for every wrong variable, by default 1 / n_variables."""
        truth = self._checked(y_true)
        each = 1.0 / max(self.graph.n_variables, 1) if cost is None else cost
        factors = [Factor((v,), "loss") for v in range(self.graph.n_variables)]
        tables = [each * (np.arange(card) != truth[v]) for v, card in enumerate(self.graph.cards)]
        return self.plus(factors, tables)

    def score(self, y: npt.ArrayLike) -> float:
        """Score of one assignment, (n_variables,)."""
        values = self._checked(y)
        return float(
            sum(
                table[tuple(values[v] for v in factor.scope)]
                for factor, table in zip(self.graph.factors, self._arrays, strict=True)
            )
        )

    def log_partition(self) -> float:
        """Log of the sum over assignments of exp(score); -inf when all are forbidden."""
        return self._sums.value

    def marginals(self) -> list[Floats]:
        """Posterior of each factor's assignments, in the shapes of the tables."""
        if self._sums.value == -np.inf:
            raise InputError("Every assignment of this graph is forbidden, so it has no posterior: loosen the -inf.")
        return self._sums.gradients()

    def variable_marginals(self) -> list[Floats]:
        """Posterior of each variable's values."""
        n = self.graph.n_factors
        factors = [Factor((v,), "variable") for v in range(self.graph.n_variables)]
        return self.plus(factors, [np.zeros(card) for card in self.graph.cards]).marginals()[n:]

    def best(self) -> tuple[Ints, float]:
        """Find a best assignment and its score."""
        found = self._eliminated(is_sum=False)
        if found.value == -np.inf:
            raise InputError("Every assignment of this graph is forbidden, so none is best: loosen the -inf.")
        return found.best(), found.value

    @cached_property
    def _arrays(self) -> list[Floats]:
        return [np.asarray(table, np.float64) for table in self.tables]

    @cached_property
    def _sums(self) -> Elimination:
        return self._eliminated(is_sum=True)

    def _eliminated(self, is_sum: bool) -> Elimination:
        scopes = [factor.scope for factor in self.graph.factors]
        return Elimination(self.graph.cards, scopes, self._arrays, is_sum, self.max_table)

    def _checked(self, y: npt.ArrayLike) -> Ints:
        values = np.asarray(y)
        cards = np.array(self.graph.cards)
        if values.shape != cards.shape or not np.all((values >= 0) & (values < cards)):
            raise InputError(f"An assignment has {len(cards)} values, each below its variable's {self.graph.cards}.")
        return values.astype(np.int64)
