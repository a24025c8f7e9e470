"""What the complexity of linear hypotheses depends on: where features occur, and the sizes of the factor graphs.

With w.Psi(x, y) = sum_f w.Psi_f(x, y_f) the empirical complexity is a mean over random signs e of a norm of

    V_j = sum_i sum_{f in F_i} sum_{y in Y_f} sqrt|F_i| e_{i,f,y} Psi_{f,j}(x_i, y)

A feature j is a column (an attribute, by the factors at which it occurs) with an assignment z of labels to a factor:
V_{a,z} = sum_{f of a} sqrt|F_i| value(a, f) e_{f,z}. The V of different assignments are independent and have
one distribution, so that columns are stored and assignments only counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vcrf.errors import InputError
from vcrf.types import Bools, Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.problem import Candidates


@dataclass(frozen=True, eq=False)
class Incidence:
    """Columns by the factors at which they occur.

    Attributes
    ----------
    ptr, factors : CSR, column c occurs at factors[ptr[c]:ptr[c+1]], each factor once
    values : (len(factors),) float64, or empty if all are 1
    sizes : (n_factors,) float64, |F_i| of the example of each factor; 0 where there is no factor
    """

    ptr: Ints
    factors: UInts32 | Ints
    values: Floats
    sizes: Floats

    @property
    def n_columns(self) -> int:
        return len(self.ptr) - 1

    @cached_property
    def variances(self) -> Floats:
        """v_a = sum_i |F_i| sum_{f of a in F_i} value**2, the variance of V_{a,z}; (n_columns,)."""
        terms = self.sizes[self.factors]
        return self._sums(terms * self.values**2 if len(self.values) else terms)

    @cached_property
    def sparsities(self) -> Floats:
        """The same with 1 for every value that is not 0: the sums under the maximum in the paper's s."""
        if not len(self.values):
            return self.variances
        return self._sums(self.sizes[self.factors] * (self.values != 0.0))

    def _sums(self, terms: Floats) -> Floats:
        # reduceat gives an empty column the next one's first term.
        filled = np.flatnonzero(self.ptr[1:] > self.ptr[:-1])
        out = np.zeros(self.n_columns)
        if len(filled):
            out[filled] = np.add.reduceat(terms, self.ptr[filled])
        return out

    def entries(self, columns: Ints) -> tuple[Ints, Ints]:
        """Row (number in `columns`) and place in `factors` of all occurrences of some columns."""
        counts = np.diff(self.ptr)[columns]
        rows = np.repeat(np.arange(len(columns)), counts)
        starts = np.cumsum(counts) - counts
        return rows, np.repeat(self.ptr[columns] - starts, counts) + np.arange(len(rows))


@dataclass(frozen=True, eq=False)
class Block:
    """Features of some columns with every assignment of one size; columns at the same factor share its signs.

    Attributes
    ----------
    incidence : where columns occur
    n_assignments : |Y_f| of the factors, n_labels**k for tag patterns of length k
    columns : (n,) int64, the columns that belong to the block
    multiplicities : (n,) int64, attributes that are merged into each column
    """

    incidence: Incidence
    n_assignments: int
    columns: Ints
    multiplicities: Ints

    @cached_property
    def variances(self) -> Floats:
        """v_a of the block's columns."""
        return self.incidence.variances[self.columns]

    @property
    def n_features(self) -> int:
        """Attributes x assignments; attributes that occur at the same factors count each."""
        return int(self.multiplicities.sum()) * self.n_assignments

    @cached_property
    def spectrum(self) -> tuple[Floats, Ints]:
        """Distinct variances, from small to large, and how many columns have each; zeros are left out."""
        found, counts = np.unique(self.variances, return_counts=True)
        kept = found > 0.0
        return found[kept], counts[kept].astype(np.int64)

    def take(self, columns: Bools | Ints) -> Block:
        """The block of some of its columns."""
        return Block(self.incidence, self.n_assignments, self.columns[columns], self.multiplicities[columns])


@dataclass(frozen=True, eq=False)
class FeatureCounts:
    """The features of a class of linear hypotheses on a sample.

    Attributes
    ----------
    blocks : features by the size of their factors' label sets; signs of different blocks are independent
    n_examples : m
    """

    blocks: tuple[Block, ...]
    n_examples: int

    def __post_init__(self) -> None:
        if self.n_examples < 1:
            raise InputError(f"A complexity needs at least one example, got {self.n_examples}.")

    @property
    def n_features(self) -> int:
        """N, the number of features that occur with any assignment of labels."""
        return sum(block.n_features for block in self.blocks)

    @property
    def max_variance(self) -> float:
        """Largest v_j."""
        return max((float(block.variances.max(initial=0.0)) for block in self.blocks), default=0.0)

    @property
    def sparsity(self) -> float:
        """The paper's s = max_j sum_i |F_i| #{f, y : Psi_{f,j}(x_i, y) != 0}."""
        found = (block.incidence.sparsities[block.columns].max(initial=0.0) for block in self.blocks)
        return max(map(float, found), default=0.0)

    @property
    def r_inf(self) -> float:
        """Largest |Psi_{f,j}(x_i, y)|."""
        return max((_largest_value(block) for block in self.blocks), default=0.0)

    @property
    def r_2(self) -> float:
        """Largest ||Psi_f(x_i, y)||_2 over factors f and assignments y."""
        return max((_largest_norm(block) for block in self.blocks), default=0.0)

    @property
    def total_size(self) -> float:
        """sum_i sum_{f in F_i} sum_{y in Y_f} |F_i|, over the factors at which some feature occurs."""
        return sum(float(block.incidence.sizes[_occupied(block)].sum()) * block.n_assignments for block in self.blocks)


def _entries(block: Block) -> tuple[Ints, Ints]:
    """Rows and places of a block's occurrences at factors that exist."""
    rows, places = block.incidence.entries(block.columns)
    there = block.incidence.sizes[block.incidence.factors[places]] > 0.0
    return rows[there], places[there]


def _largest_value(block: Block) -> float:
    if not len(block.incidence.values):
        return 1.0 if block.variances.any() else 0.0
    _, places = _entries(block)
    return float(np.abs(block.incidence.values[places]).max(initial=0.0))


def _largest_norm(block: Block) -> float:
    rows, places = _entries(block)
    squares = block.multiplicities[rows].astype(np.float64)
    if len(block.incidence.values):
        squares = squares * block.incidence.values[places] ** 2
    total = np.bincount(block.incidence.factors[places], squares, len(block.incidence.sizes))
    return float(np.sqrt(total.max(initial=0.0)))


def _occupied(block: Block) -> Ints:
    _, places = _entries(block)
    return np.unique(block.incidence.factors[places]).astype(np.int64)


# ------------------------------------------------------------------------------------ sequences


@dataclass(frozen=True, eq=False)
class FamilyCounts:
    """The features of a training problem, family by family.

    A family with tag patterns of length k has a factor at every position that k labels can end at. The size |F_i| is
    the number of these factors in the sentence (`factors="family"`: the family alone), or the number of factors of all
    lengths that the families have (`factors="joint"`: the graph of the whole model, for bounds on its risk).
    """

    problem: Candidates
    factors: str = "family"

    def __post_init__(self) -> None:
        if self.factors not in ("family", "joint"):
            raise InputError(f"`factors` must be 'family' or 'joint', got {self.factors!r}.")

    def __len__(self) -> int:
        return len(self.problem.families)

    def __iter__(self) -> Iterator[FeatureCounts]:
        return (self.family(f) for f in range(len(self)))

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the families' tag patterns."""
        return tuple(sorted({family.tags for family in self.problem.families}))

    def family(self, f: int) -> FeatureCounts:
        """The features of family f."""
        return FeatureCounts((self._block(self.problem.families[f].tags, f),), len(self.problem.weights))

    def union(self) -> FeatureCounts:
        """The features of all families together."""
        return FeatureCounts(tuple(self._block(k, None) for k in self.lengths), len(self.problem.weights))

    def graph_sizes(self, k: int) -> Floats:
        """|F_i| of each sentence, for features with k labels."""
        counted = (k,) if self.factors == "family" else self.lengths
        return np.asarray(np.sum([self.problem.n_parts(other) for other in counted], axis=0), np.float64)

    def factor_sizes(self, k: int) -> Floats:
        """|F_i| at every position that k labels can end at, else 0; (n_tokens,)."""
        return self._incidences[k].sizes

    def variances(self, k: int) -> Floats:
        """v_a of every column, with the factors of k labels; (n_columns,)."""
        return self._incidences[k].variances

    @cached_property
    def _incidences(self) -> dict[int, Incidence]:
        problem, columns = self.problem, self.problem.columns
        return {
            k: Incidence(
                columns.ptr,
                columns.positions,
                columns.values,
                np.where(problem.has_part(k), self.graph_sizes(k)[problem.example_of], 0.0),
            )
            for k in self.lengths
        }

    @cached_property
    def _class_members(self) -> tuple[Ints, Ints]:
        """All pairs of a class of columns and a source in it."""
        listed = self.problem.columns.class_sources
        classes = np.repeat(np.arange(len(listed)), [len(sources) for sources in listed])
        return classes, np.array([s for sources in listed for s in sources], np.int64)

    def _block(self, k: int, family: int | None) -> Block:
        """Columns with a member in the family (any, if None) that has patterns of length k."""
        problem = self.problem
        classes, sources = self._class_members
        found = problem.family_of[sources, k]
        counted = found >= 0 if family is None else found == family
        of_class = np.bincount(classes[counted], minlength=len(problem.columns.class_sources))
        members = of_class[problem.columns.classes]
        chosen = np.flatnonzero(members)
        return Block(self._incidences[k], problem.space.size(k), chosen, members[chosen])


def check_radius(radius: float) -> float:
    """Return the norm bound Lambda, refusing what is no radius."""
    if not 0.0 <= radius < np.inf:
        raise InputError(f"radius (the bound Lambda on the weights' norm) must be finite and not negative: {radius!r}.")
    return float(radius)
