"""Coordinate descent for the quadratic model with an l1 part: min over d of g.d + d.H d/2 + sum_j c_j |w_j + d_j|."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.types import Bools, Floats

# Sweeps between two that visit every coordinate.
_PERIOD = 10


@inner_kernel
def _change(h: float, slope: float, old: float, c: float) -> float:
    """How the weight `old` changes to the minimum of slope.x + h x^2/2 + c |old + x|."""
    new, cut = old - slope / h, c / h
    new = new - cut if new > cut else (new + cut if new < -cut else 0.0)
    return new - old


@inner_kernel
def _is_done(largest: float, tol: float, sweep: int, is_full: bool, moving: Bools) -> tuple[bool, bool]:
    """Whether the sweeps are over, and whether the next one is full.

    After a full sweep only the coordinates that moved are visited, until they settle; then a full sweep checks.
    """
    if largest <= tol and is_full:
        return True, True
    is_next_full = largest <= tol or sweep % _PERIOD == _PERIOD - 1
    if is_next_full:
        moving[:] = True
    return False, is_next_full


@inner_fast_kernel
def _add_row(row: Floats, scale: float, out: Floats) -> None:
    for k in range(len(row)):
        out[k] += scale * row[k]


@kernel
def descend_dense(
    hessian: Floats, g: Floats, w: Floats, c: Floats, tol: float, max_sweeps: int, d: Floats, product: Floats
) -> int:
    """Minimise in place until no change gains more than `tol`; `product` = H d. Returns the number of sweeps."""
    moving, is_full = np.ones(len(g), np.bool_), True
    for sweep in range(max_sweeps):
        largest = 0.0
        for j in range(len(g)):
            if not moving[j]:
                continue
            h = hessian[j, j]
            change = _change(h, g[j] + product[j], w[j] + d[j], c[j])
            moving[j] = change != 0.0
            if change != 0.0:
                d[j] += change
                _add_row(hessian[j], change, product)
                largest = max(largest, h * change * change)
        is_over, is_full = _is_done(largest, tol, sweep, is_full, moving)
        if is_over:
            return sweep + 1
    return max_sweeps
