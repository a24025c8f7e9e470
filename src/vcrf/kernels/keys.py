"""Sums by key that are made once for a working set: entries of keys, and variances for the scale of steps."""

from __future__ import annotations

from vcrf.kernels._jit import kernel
from vcrf.types import Floats, Ints, UInts32


@kernel
def count_entries(col_ptr: Ints, col_keys: UInts32, n_features: Ints, row_offset: int, counts: Ints) -> None:
    """counts[row] += features of each column that has the key of the row."""
    for c in range(len(col_ptr) - 1):
        for j in range(col_ptr[c], col_ptr[c + 1] if n_features[c] > 0 else col_ptr[c]):
            counts[row_offset + col_keys[j]] += n_features[c]


@kernel
def key_variances(
    key_ptr: Ints, key_positions: UInts32, row_ptr: Ints, residuals: Floats, weights: Floats, first: int, last: int,
    out: Floats,
) -> None:  # fmt: skip
    """out[row] = sum of |r| - r^2 / weight over the positions of each key that has an entry; weights (n_tokens,)."""
    for row in range(first, last):
        if row_ptr[row + 1] == row_ptr[row]:
            continue
        out[row] = 0.0
        for j in range(key_ptr[row], key_ptr[row + 1]):
            t = key_positions[j]
            for b in range(residuals.shape[1]):
                size = abs(residuals[t, b])
                out[row, b] += size - size * size / weights[t]
