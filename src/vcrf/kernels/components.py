"""Component values of labels: sums over the labels of a value, and scores handed to all of them."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.types import Floats, Ints, UInts32


@kernel
def sum_labels(of_labels: Floats, ptr: Ints, values: UInts32, out: Floats) -> None:
    """out[i, v] = sum of of_labels[i, l] over the labels l that have value v; `ptr`, `values` are by label."""
    for i in range(len(of_labels)):
        for label in range(of_labels.shape[1]):
            x = of_labels[i, label]
            for j in range(ptr[label], ptr[label + 1]):
                out[i, values[j]] += x


@kernel
def add_scores(
    row_ptr: Ints, row_values: UInts32, features: UInts32, factors: Floats, w: Floats, ptr: Ints, labels: UInts32,
    first: int, last: int, out: Floats,
) -> None:  # fmt: skip
    """out[row, l] += scores of the row's values that l has; `factors` is empty for indicators."""
    n_values = len(ptr) - 1
    score, is_there = np.zeros(n_values), np.zeros(n_values, np.bool_)
    touched = np.empty(n_values, np.int64)
    for row in range(first, last):
        n = 0
        for j in range(row_ptr[row], row_ptr[row + 1]):
            v = row_values[j]
            if not is_there[v]:
                is_there[v] = True
                touched[n] = v
                n += 1
            score[v] += w[features[j]] * (factors[j] if len(factors) > 0 else 1.0)
        for i in range(n):
            v = touched[i]
            x = score[v]
            score[v], is_there[v] = 0.0, False
            if x != 0.0:
                for j in range(ptr[v], ptr[v + 1]):
                    out[row, labels[j]] += x
