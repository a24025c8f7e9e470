"""Coordinate descent, group by group, on the quadratic model of `solvers.group_model`."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.types import Floats, Ints


@inner_fast_kernel
def _add_product(rows: Floats, first: int, last: int, x: Floats, out: Floats) -> None:
    """Out += rows' x over the rows of a group; x is numbered from its first."""
    for j in range(first, last):
        for i in range(rows.shape[1]):
            out[i] += rows[j, i] * x[j - first]


@inner_fast_kernel
def _dot(x: Floats, y: Floats) -> float:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@inner_kernel
def _shrunk(target: Floats, n: int, limit: float, out: Floats) -> None:
    """The first n of the target, shortened by the limit."""
    square = 0.0
    for j in range(n):
        square += target[j] * target[j]
    scale = 1.0 - limit / np.sqrt(square) if square > limit * limit else 0.0
    for j in range(n):
        out[j] = scale * target[j]


@kernel
def sweep(
    first: Ints, strengths: Floats, g: Floats, w: Floats, diagonal: Floats, left: Floats, right: Floats,
    bounds: Floats, d: Floats, product: Floats,
) -> None:  # fmt: skip
    """One descent over all groups on g.d + d'(diag - left right')d / 2 + sum_G c_G ||w_G + d_G||, in place.

    Parameters
    ----------
    first : (n_groups + 1,) first feature of each group, with the end
    strengths : (n_groups,) c_G
    left, right : (n, rank), with left right' symmetric
    bounds : (n_groups,) each at most about the largest curvature inside the group; raised where a step shows more
    product : (rank,) right' d
    """
    rank, widest = left.shape[1], 0
    for group in range(len(strengths)):
        widest = max(widest, first[group + 1] - first[group])
    slope, target, move = np.zeros(widest), np.zeros(widest), np.zeros(widest)
    on_left, on_right = np.zeros(rank), np.zeros(rank)
    for group in range(len(strengths)):
        begin, end = first[group], first[group + 1]
        n = end - begin
        for j in range(n):
            slope[j] = g[begin + j] + diagonal[begin + j] * d[begin + j] - _dot(left[begin + j], product)
        for _ in range(20):
            for j in range(n):
                target[j] = w[begin + j] + d[begin + j] - slope[j] / bounds[group]
            _shrunk(target, n, strengths[group] / bounds[group], move)
            size, curved = 0.0, 0.0
            for j in range(n):
                move[j] -= w[begin + j] + d[begin + j]
                size += move[j] * move[j]
                curved += diagonal[begin + j] * move[j] * move[j]
            on_left[:], on_right[:] = 0.0, 0.0
            if size == 0.0:
                break
            _add_product(left, begin, end, move, on_left)
            _add_product(right, begin, end, move, on_right)
            curved -= _dot(on_left, on_right)
            # A step that follows too low a bound may go up.
            if curved <= bounds[group] * size * (1.0 + 1e-9):
                break
            bounds[group] = 1.2 * curved / size
        for j in range(n):
            d[begin + j] += move[j]
        for i in range(rank):
            product[i] += on_right[i]
