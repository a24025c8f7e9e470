"""The two-loop recursion of L-BFGS, on the free coordinates."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import outer_fast_kernel
from vcrf.types import Bools, Floats, Floats32, Ints


@outer_fast_kernel
def two_loop(steps: Floats32, changes: Floats32, newest_first: Ints, inverse: Floats, free: Bools, d: Floats) -> None:
    """D <- approximate inverse Hessian times d; pairs and d are read on the free coordinates only.

    The secants correct the diagonal `inverse`, scaled to fit the newest of them. Pairs, one a row, have 4 bytes a
    number; sums have 8. Pairs without positive curvature on the free coordinates are passed over.
    """
    n, n_pairs = np.uint64(len(d)), len(newest_first)
    step, change = steps.reshape(-1), changes.reshape(-1)
    shares, curvatures = np.zeros(n_pairs), np.zeros(n_pairs)
    scale = 1.0
    is_scaled = False
    for k in range(n_pairs):
        at = np.uint64(newest_first[k]) * n
        curvature = size = share = 0.0
        for i in range(n):
            s, c = np.float64(step[at + i]), np.float64(change[at + i])
            curvature += s * c if free[i] else 0.0
            size += c * inverse[i] * c if free[i] else 0.0
            share += s * d[i] if free[i] else 0.0
        if not curvature > 1e-12 * size:
            continue
        if not is_scaled:
            scale, is_scaled = curvature / size, True
        curvatures[k], shares[k] = curvature, share / curvature
        for i in range(n):
            d[i] -= shares[k] * np.float64(change[at + i])
    for i in range(n):
        d[i] *= scale * inverse[i]
    for k in range(n_pairs - 1, -1, -1):
        if curvatures[k] > 0.0:
            at, share = np.uint64(newest_first[k]) * n, 0.0
            for i in range(n):
                share += np.float64(change[at + i]) * d[i] if free[i] else 0.0
            share = shares[k] - share / curvatures[k]
            for i in range(n):
                d[i] += share * np.float64(step[at + i])
    for i in range(n):
        d[i] = d[i] if free[i] else 0.0
