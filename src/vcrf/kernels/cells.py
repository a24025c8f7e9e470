"""Residuals of the labels that each token may have, one after the other: what a scan of single labels reads."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import kernel, outer_fast_kernel
from vcrf.kernels.token_rows import LabelCells
from vcrf.types import Floats, Ints, UInts32


@outer_fast_kernel
def scan_cells(
    ptr: Ints, positions: UInts32, values: Floats, columns: UInts32, limits: Floats,
    allowed_ptr: Ints, allowed: UInts32, sets: LabelCells, n_labels: int, residuals: Floats,
    found_column: UInts32, found_code: UInts32, found_grad: Floats,
) -> int:  # fmt: skip
    """`kernels.gradient.scan_labels` on cells."""
    n = np.uint64(n_labels)
    one = np.empty(1)
    one[0] = 1.0
    value, step = (values, 1) if len(values) else (one, 0)
    g = np.empty(n_labels)
    restricted, n_found = len(allowed_ptr) > 0, 0
    for i in range(len(columns)):
        for b in range(n):
            g[b] = 0.0
        for j in range(ptr[columns[i]], ptr[columns[i] + np.uint32(1)]):
            t, v = np.int64(positions[j]), value[j * step]
            s, at = np.int64(sets.of_token[t]), np.uint64(sets.cells[t])
            first = np.uint64(sets.ptr[s])
            size = np.uint64(sets.ptr[s + 1]) - first
            if size == n:
                for b in range(n):
                    g[b] += v * residuals[at + b]
            else:
                for b in range(size):
                    g[np.uint64(sets.labels[first + b])] += v * residuals[at + b]
        begin = allowed_ptr[i] if restricted else 0
        end = allowed_ptr[i + 1] if restricted else n_labels
        for j in range(begin, end):
            code = np.int64(allowed[j]) if restricted else j
            if abs(g[code]) > limits[i]:
                if n_found < len(found_code):
                    found_column[n_found], found_code[n_found], found_grad[n_found] = columns[i], code, g[code]
                n_found += 1
    return n_found


@kernel
def sum_values(sets: LabelCells, ptr: Ints, values: UInts32, residuals: Floats, out: Floats) -> None:
    """out[t, v] = the sum of the residuals of the labels that have value v; `ptr`, `values` are by label."""
    for t in range(len(out)):
        s, at = np.int64(sets.of_token[t]), sets.cells[t]
        for k in range(sets.ptr[s], sets.ptr[s + 1]):
            x = residuals[at + k - sets.ptr[s]]
            for j in range(ptr[sets.labels[k]], ptr[sets.labels[k] + np.uint32(1)]):
                out[t, values[j]] += x


@kernel
def sum_labels(sets: LabelCells, residuals: Floats, out: Floats) -> None:
    """out[label] += the residuals of all tokens."""
    for t in range(len(sets.of_token)):
        s, at = np.int64(sets.of_token[t]), sets.cells[t]
        for k in range(sets.ptr[s], sets.ptr[s + 1]):
            out[sets.labels[k]] += residuals[at + k - sets.ptr[s]]


@kernel
def subtract_cells(sets: LabelCells, residuals: Floats, of: LabelCells, others: Floats) -> None:
    """Subtract numbers of some of the labels from those of all."""
    for t in range(len(sets.of_token)):
        s, r = np.int64(sets.of_token[t]), np.int64(of.of_token[t])
        k = sets.ptr[s]
        for j in range(of.ptr[r], of.ptr[r + 1]):
            while sets.labels[k] < of.labels[j]:
                k += 1
            residuals[sets.cells[t] + k - sets.ptr[s]] -= others[of.cells[t] + j - of.ptr[r]]
