"""Scores of the labels of one token from the features of its columns, and residuals handed back to these features.

A token has about thirty columns with features. What they add up is read by token: nothing is kept for each label at
each distinct set of attributes, so that memory follows tokens x columns and features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.types import Floats, Ints, UInts32


class LabelCells(NamedTuple):
    """Which labels each token may have.

    Token t has those of the set of_token[t], and set s is labels[ptr[s] : ptr[s + 1]], sorted. cells (n_tokens + 1,)
    say where the numbers of each token are, where there is one for each label that it may have.
    """

    of_token: UInts32
    ptr: Ints
    labels: UInts32
    cells: Ints


class SparseRows(NamedTuple):
    """CSR from tokens to columns, with the values of these if they are not all 1; from columns to codes and weights.

    A code is a label, or a component value.
    """

    token_ptr: Ints
    columns: UInts32
    values: Floats
    ptr: Ints
    codes: UInts32
    weights: Floats


class DenseRows(NamedTuple):
    """The same for columns with features of a good part of the labels: a table (n_columns, L)."""

    token_ptr: Ints
    columns: UInts32
    values: Floats
    table: Floats


class ValueSets(NamedTuple):
    """CSR from labels to their component values, of which there are n_values."""

    ptr: Ints
    values: UInts32
    n_values: int


class FeatureRows(NamedTuple):
    """Features of single labels and of component values at some weights; also sums for each of them."""

    sparse: SparseRows
    dense: DenseRows
    of_values: SparseRows
    sets: ValueSets


class Totals(NamedTuple):
    """A number for each feature, as in `FeatureRows`: of sparse rows, of the table, of component values."""

    sparse: Floats
    dense: Floats
    of_values: Floats


@inner_kernel
def find_label(labels: UInts32, label: int) -> int:
    """Where a label is in a sorted list; it has to be there."""
    low, high = 0, len(labels)
    if high > label and labels[label] == label:
        return label
    while high - low > 1:
        middle = (low + high) // 2
        if labels[middle] <= label:
            low = middle
        else:
            high = middle
    return low


@inner_fast_kernel
def _add_sparse(rows: SparseRows, t: int, out: Floats) -> None:
    """out[code] += value * weight of the features of the token's columns."""
    has_values = len(rows.values) > 0
    for j in range(rows.token_ptr[t], rows.token_ptr[t + 1]):
        c, v = np.int64(rows.columns[j]), (rows.values[j] if has_values else 1.0)
        for f in range(np.uint64(rows.ptr[c]), np.uint64(rows.ptr[c + 1])):
            out[np.uint64(rows.codes[f])] += v * rows.weights[f]


@inner_fast_kernel
def _add_table(rows: DenseRows, t: int, out: Floats) -> None:
    """Out += value * the table's row of each of the token's columns."""
    has_values = len(rows.values) > 0
    n, flat = np.uint64(len(out)), rows.table.reshape(-1)
    for j in range(rows.token_ptr[t], rows.token_ptr[t + 1]):
        at, v = np.uint64(rows.columns[j]) * n, (rows.values[j] if has_values else 1.0)
        for b in range(n):
            out[b] += v * flat[at + b]


@inner_fast_kernel
def _add_some(rows: DenseRows, t: int, labels: UInts32, out: Floats) -> None:
    """The same for some labels alone."""
    has_values = len(rows.values) > 0
    for j in range(rows.token_ptr[t], rows.token_ptr[t + 1]):
        c, v = np.int64(rows.columns[j]), (rows.values[j] if has_values else 1.0)
        for i in range(len(labels)):
            out[labels[i]] += v * rows.table[c, labels[i]]


@inner_fast_kernel
def _expand_values(sets: ValueSets, of_value: Floats, labels: UInts32, out: Floats) -> None:
    """out[l] += the sum of the numbers of the values that l has."""
    for i in range(len(labels)):
        label = np.int64(labels[i])
        total = 0.0
        for j in range(np.uint64(sets.ptr[label]), np.uint64(sets.ptr[label + 1])):
            total += of_value[np.uint64(sets.values[j])]
        out[label] += total


@inner_kernel
def token_scores(rows: FeatureRows, t: int, labels: UInts32, row: Floats, of_value: Floats, out: Floats) -> None:
    """Scores of some labels at a token; row (L,) and of_value (n_values,) are for scratch."""
    row[:] = 0.0
    _add_sparse(rows.sparse, t, row)
    if len(labels) == len(row):
        _add_table(rows.dense, t, row)
    else:
        _add_some(rows.dense, t, labels, row)
    if rows.of_values.token_ptr[t + 1] > rows.of_values.token_ptr[t]:
        of_value[:] = 0.0
        _add_sparse(rows.of_values, t, of_value)
        _expand_values(rows.sets, of_value, labels, row)
    for i in range(len(labels)):
        out[i] = row[labels[i]]


@inner_kernel
def _spread(x: Floats, weight: float) -> None:
    """|r| - r^2 / weight: the variance weight * p (1 - p) of a residual r = weight * (p - truth)."""
    for i in range(len(x)):
        x[i] = abs(x[i]) - x[i] * x[i] / weight


@inner_fast_kernel
def _sum_sparse(rows: SparseRows, t: int, is_squared: bool, x: Floats, out: Floats) -> None:
    """out[feature] += value * x[code], or value^2 * x[code]."""
    has_values = len(rows.values) > 0
    for j in range(rows.token_ptr[t], rows.token_ptr[t + 1]):
        c, v = np.int64(rows.columns[j]), (rows.values[j] if has_values else 1.0)
        v = v * v if is_squared else v
        for f in range(np.uint64(rows.ptr[c]), np.uint64(rows.ptr[c + 1])):
            out[f] += v * x[np.uint64(rows.codes[f])]


@inner_fast_kernel
def _sum_table(rows: DenseRows, t: int, is_squared: bool, labels: UInts32, x: Floats, out: Floats) -> None:
    """out[column, label] += value * x[label] of the labels, or value^2."""
    has_values, n = len(rows.values) > 0, np.uint64(len(x))
    flat = out.reshape(-1)
    for j in range(rows.token_ptr[t], rows.token_ptr[t + 1]):
        at, v = np.uint64(rows.columns[j]) * n, (rows.values[j] if has_values else 1.0)
        v = v * v if is_squared else v
        if len(labels) == len(x):
            for b in range(n):
                flat[at + b] += v * x[b]
        else:
            for i in range(len(labels)):
                flat[at + np.uint64(labels[i])] += v * x[labels[i]]


@kernel
def add_residuals(
    rows: FeatureRows, t: int, labels: UInts32, residual: Floats, weight: float, is_squared: bool, row: Floats,
    of_value: Floats, totals: Totals,
) -> None:  # fmt: skip
    """Add the residuals of a token's labels to the totals of its features; squared: variances and squared values."""
    has_values = rows.of_values.token_ptr[t + 1] > rows.of_values.token_ptr[t]
    if has_values:
        of_value[:] = 0.0
        for i in range(len(labels)):
            x = residual[i]
            for j in range(rows.sets.ptr[labels[i]], rows.sets.ptr[labels[i] + np.uint32(1)]):
                of_value[rows.sets.values[j]] += x
        if is_squared:
            _spread(of_value, weight)
        _sum_sparse(rows.of_values, t, is_squared, of_value, totals.of_values)
    if len(labels) < len(row):
        row[:] = 0.0
    for i in range(len(labels)):
        row[labels[i]] = residual[i]
    if is_squared:
        _spread(row, weight)
    _sum_sparse(rows.sparse, t, is_squared, row, totals.sparse)
    _sum_table(rows.dense, t, is_squared, labels, row, totals.dense)
