"""Scores of parts from weights of attributes, and back: gradients of weights from residuals of parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import fast_kernel, inner_kernel, kernel
from vcrf.types import Floats, Ints, UInts32


class PartColumns(NamedTuple):
    """Columns of each part (CSR), and where the scores of each part begin."""

    ptr: Ints
    columns: Ints
    values: Floats
    part_ptr: Ints


@fast_kernel
def add_row(out: Floats, value: float, row: Floats) -> None:
    """Out += value * row."""
    for a in range(len(out)):
        out[a] += value * row[a]


@kernel
def score_parts(first: int, last: int, found: PartColumns, row_of: Ints, table: Floats, out: Floats) -> None:
    """Scores of parts first .. last - 1: sums of value * weights, one row of weights a column; row_of < 0: none."""
    for p in range(first, last):
        begin, end = found.part_ptr[p], found.part_ptr[p + 1]
        scores = out[begin:end]
        scores[:] = 0.0
        for k in range(found.ptr[p], found.ptr[p + 1]):
            row = row_of[found.columns[k]]
            if row >= 0:
                add_row(scores, found.values[k], table[row : row + end - begin])


@inner_kernel
def column_row(
    c: int, ptr: Ints, positions: UInts32, values: Floats, part_ptr: Ints, residuals: Floats, is_squared: bool,
    row: Floats,
) -> int:  # fmt: skip
    """Gradients of all assignments of a column; returns their number. `values` is empty where all are 1.

    With squares of the values: variances of all assignments.
    """
    size = part_ptr[positions[ptr[c]] + 1] - part_ptr[positions[ptr[c]]]
    row[:size] = 0.0
    for k in range(ptr[c], ptr[c + 1]):
        at = part_ptr[positions[k]]
        value = values[k] if len(values) else 1.0
        add_row(row[:size], value**2 if is_squared else value, residuals[at : at + size])
    return int(size)


@kernel
def feature_gradient(
    first: int, last: int, columns: Ints, feature_ptr: Ints, assignments: UInts32, ptr: Ints, positions: UInts32,
    values: Floats, part_ptr: Ints, residuals: Floats, is_squared: bool, widest: int, out: Floats,
) -> None:  # fmt: skip
    """Gradients of the features of columns[first:last]; features feature_ptr[i] .. belong to columns[i]."""
    row = np.empty(widest)
    for i in range(first, last):
        column_row(columns[i], ptr, positions, values, part_ptr, residuals, is_squared, row)
        for f in range(feature_ptr[i], feature_ptr[i + 1]):
            out[f] = row[assignments[f]]


@kernel
def scan_columns(
    first: int, last: int, columns: Ints, limits: Floats, ptr: Ints, positions: UInts32, values: Floats, part_ptr: Ints,
    residuals: Floats, widest: int,
) -> tuple[Ints, Ints, Floats]:  # fmt: skip
    """Columns, assignments and gradients of all candidates of columns[first:last] above the limits of their columns."""
    row = np.empty(widest)
    n, room = 0, 1024
    found_columns, found_assignments, found = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    for i in range(first, last):
        c = columns[i]
        size = column_row(c, ptr, positions, values, part_ptr, residuals, False, row)
        if n + size > room:
            room = 2 * (n + size)
            wider_columns, wider_assignments, wider = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
            wider_columns[:n], wider_assignments[:n] = found_columns[:n], found_assignments[:n]
            wider[:n] = found[:n]
            found_columns, found_assignments, found = wider_columns, wider_assignments, wider
        for a in range(size):
            if abs(row[a]) > limits[c]:
                found_columns[n], found_assignments[n], found[n] = c, a, row[a]
                n += 1
    return found_columns[:n].copy(), found_assignments[:n].copy(), found[:n].copy()


@kernel
def score_entries(
    positions: UInts32, rows: UInts32, values: Floats, ptr: Ints, kinds: UInts32, codes: UInts32, weights: Floats,
    kind_of: Ints, part_ptr: Ints, out: Floats,
) -> None:  # fmt: skip
    """Add value * weight of every attribute of a model to the scores of its part; `values` is empty where all are 1.

    A file may be forged: weights of another kind than the part's would be written past its scores.
    """
    for k in range(len(positions)):
        row = rows[k]
        if row + 1 < len(ptr):
            kind, at = kind_of[positions[k]], part_ptr[positions[k]]
            value = values[k] if len(values) else 1.0
            for e in range(ptr[row], ptr[row + 1]):
                if kinds[e] == kind:
                    out[at + codes[e]] += value * weights[e]
