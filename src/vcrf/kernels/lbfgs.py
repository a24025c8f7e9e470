"""The two-loop recursion of L-BFGS, on the free coordinates."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, outer_fast_kernel
from vcrf.types import Bools, Floats, Ints


@inner_fast_kernel
def _dot(x: Floats, y: Floats, free: Bools) -> float:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i] if free[i] else 0.0
    return total


@inner_fast_kernel
def _scaled_square(x: Floats, scale: Floats, free: Bools) -> float:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * scale[i] * x[i] if free[i] else 0.0
    return total


@inner_fast_kernel
def _add(x: Floats, scale: float, out: Floats) -> None:
    for i in range(len(x)):
        out[i] += scale * x[i]


@outer_fast_kernel
def two_loop(steps: Floats, changes: Floats, newest_first: Ints, inverse: Floats, free: Bools, d: Floats) -> None:
    """D <- approximate inverse Hessian times d; pairs and d are read on the free coordinates only.

    The secants correct the diagonal `inverse`, scaled to fit the newest of them.
    Pairs without positive curvature on the free coordinates are passed over.
    """
    n = len(newest_first)
    shares, curvatures = np.zeros(n), np.zeros(n)
    scale = 1.0
    is_scaled = False
    for k in range(n):
        step, change = steps[newest_first[k]], changes[newest_first[k]]
        curvature, size = _dot(step, change, free), _scaled_square(change, inverse, free)
        if not curvature > 1e-12 * size:
            continue
        if not is_scaled:
            scale, is_scaled = curvature / size, True
        curvatures[k] = curvature
        shares[k] = _dot(step, d, free) / curvature
        _add(change, -shares[k], d)
    for i in range(len(d)):
        d[i] *= scale * inverse[i]
    for k in range(n - 1, -1, -1):
        if curvatures[k] > 0.0:
            step, change = steps[newest_first[k]], changes[newest_first[k]]
            _add(step, shares[k] - _dot(change, d, free) / curvatures[k], d)
    for i in range(len(d)):
        d[i] = d[i] if free[i] else 0.0
