"""A choice of features compiled for passes over weighted pairs: features of single labels by token, pairs in a list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.families.keys import take_rows
from vcrf.problem import Components, Problem
from vcrf.structures.plan import ChainPlan
from vcrf.structures.value_pairs import ValuePairs, value_pairs
from vcrf.types import Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.kernels.token_rows import DenseRows, FeatureRows, SparseRows, Totals

# Columns with features of more than one of so many labels are rows of a table.
_DENSE = 5


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Features of one kind: CSR from tokens to their columns, and from columns to the features' indices and codes."""

    token_ptr: Ints
    columns: UInts32
    values: Floats
    ptr: Ints
    codes: UInts32
    features: Ints

    @cached_property
    def places(self) -> Ints:
        """The column of each feature."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    def sparse(self, w: Floats) -> SparseRows:
        """As kernels take it, at some weights."""
        return kernels.token_rows.SparseRows(
            self.token_ptr, self.columns, self.values, self.ptr, self.codes, w[self.features]
        )

    def dense(self, w: Floats, n_labels: int) -> DenseRows:
        """The same as a table."""
        table = np.zeros((len(self.ptr) - 1, n_labels))
        table[self.places, self.codes] = w[self.features]
        return kernels.token_rows.DenseRows(self.token_ptr, self.columns, self.values, table)


@dataclass(frozen=True, eq=False)
class PairPlan:
    """A plan of `structures.pairs`.

    Attributes
    ----------
    features : sorted
    table_features, table_sizes, table_codes : pairs of labels: indices, 2, and label * L + label
    sparse, dense, of_values : features of single labels, and of component values
    components : of the problem
    compile_whole : compiles the plan for the dense lattice
    """

    features: Ints
    n_labels: int
    table_features: Ints
    table_sizes: UInts32
    table_codes: UInts32
    sparse: TokenRows
    dense: TokenRows
    of_values: TokenRows
    components: Components | None
    value_pairs: ValuePairs | None
    compile_whole: Callable[[Ints], ChainPlan]
    work = 0

    def __len__(self) -> int:
        return len(self.features)

    @property
    def order(self) -> int:
        """The length of the longest tag patterns."""
        has_pairs = len(self.table_features) or (self.value_pairs is not None and len(self.value_pairs))
        return 2 if has_pairs else 1

    @cached_property
    def whole(self) -> ChainPlan:
        """The same features for the dense lattice."""
        return self.compile_whole(self.features)

    def rows(self, w: Floats) -> FeatureRows:
        """Features of single labels at some weights."""
        table = self.components
        if table is None:
            sets = kernels.token_rows.ValueSets(np.zeros(self.n_labels + 1, np.int64), np.zeros(0, np.uint32), 0)
        else:
            sets = kernels.token_rows.ValueSets(*table.by_label, len(table))
        dense = self.dense.dense(w, self.n_labels)
        return kernels.token_rows.FeatureRows(self.sparse.sparse(w), dense, self.of_values.sparse(w), sets)

    def zeros(self) -> Totals:
        """No sums yet."""
        table = np.zeros((len(self.dense.ptr) - 1, self.n_labels))
        return kernels.token_rows.Totals(
            np.zeros(len(self.sparse.codes)), table, np.zeros(len(self.of_values.codes))
        )  # fmt: skip

    def gather(self, totals: Totals) -> Floats:
        """Sums by feature; those of pairs are 0."""
        out = np.zeros(len(self))
        out[self.sparse.features] = totals.sparse
        out[self.dense.features] = totals.dense[self.dense.places, self.dense.codes]
        out[self.of_values.features] = totals.of_values
        return out


def compile_pairs(problem: Problem, features: Ints, compile_whole: Callable[[Ints], ChainPlan]) -> PairPlan:
    """Arrays for a sorted set of features."""
    column, kind, code = problem.split_features(features)
    singles, pairs = (
        np.flatnonzero(kind == 1),
        np.flatnonzero(kind == 2) if problem.order > 1 else np.zeros(0, np.int64),
    )
    is_dense = _counts(column[singles]) * _DENSE > problem.n_labels
    of_values = np.flatnonzero(kind == problem.component_kind) if problem.component_kind else singles[:0]

    def rows(which: Ints) -> TokenRows:
        return _token_rows(problem, which, column[which], code[which])

    return PairPlan(
        features, problem.n_labels, pairs, kind[pairs], code[pairs], rows(singles[~is_dense]), rows(singles[is_dense]),
        rows(of_values), problem.components, value_pairs(problem, kind, code), compile_whole,
    )  # fmt: skip


def _counts(columns: UInts32) -> Ints:
    """How many of the features each one's column has."""
    _, which, counts = np.unique(columns, return_inverse=True, return_counts=True)
    return np.asarray(counts[which.reshape(-1)] if len(counts) else np.zeros(0, np.int64))


def _token_rows(problem: Problem, features: Ints, column: UInts32, code: UInts32) -> TokenRows:
    from scipy.sparse import csr_matrix

    used, counts = np.unique(column, return_counts=True)
    table = problem.columns
    ptr, positions, values = take_rows(table.ptr, table.positions, table.values, used.astype(np.int64))
    data = values if len(values) else np.ones(len(positions), np.int8)
    by_token = csr_matrix((data, positions, ptr), shape=(len(used), problem.n_tokens)).tocsc()
    return TokenRows(
        by_token.indptr.astype(np.int64), by_token.indices.astype(np.uint32),
        np.asarray(by_token.data if len(values) else np.zeros(0), np.float64),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), code, features,
    )  # fmt: skip
