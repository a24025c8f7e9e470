"""Dual ascent on the cuts (see `kernels.cuts`) where the penalty is c_G ||w_G|| of groups of features.

With z = rho centre - g the weights of a group are (1 - c / ||z||)_+ z / rho. Along a direction `acc` of g, ||z||^2 is a
quadratic of the step: three numbers a group are enough.
A `Master` has here: groups = number of each feature's group, member_ptr = first feature of each group, l1 = strengths.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.cuts import Master, _choose, difference, move, next_step
from vcrf.types import Floats, Ints


@inner_kernel
def _set_group(master: Master, group: int, g: Floats, w: Floats) -> float:
    """Set the weights of a group from g; returns ||z||^2."""
    first, last = master.member_ptr[group], master.member_ptr[group + 1]
    square = 0.0
    for j in range(first, last):
        z = master.rho * master.centre[j] - g[j]
        square += z * z
    limit = master.l1[group]
    scale = (1.0 - limit / np.sqrt(square)) / master.rho if square > limit * limit else 0.0
    for j in range(first, last):
        w[j] = scale * (master.rho * master.centre[j] - g[j])
    return float(square)


@kernel
def group_weights_of(master: Master, g: Floats, w: Floats) -> None:
    """Set w from g, group by group."""
    for group in range(len(master.member_ptr) - 1):
        _set_group(master, group, g, w)


@inner_kernel
def _slope_at(
    master: Master, squares: Floats, along: Floats, sizes: Floats, found: Ints, n: int, step: float
) -> tuple[float, float]:
    """w(g + step acc).acc, and minus its derivative in the step."""
    product, curvature = 0.0, 0.0
    for i in range(n):
        group = found[i]
        limit = master.l1[group]
        square = squares[group] - 2.0 * step * along[group] + step * step * sizes[group]
        if square <= limit * limit:
            continue
        norm, inner = np.sqrt(square), along[group] - step * sizes[group]
        share = 1.0 - limit / norm
        product += share * inner / master.rho
        curvature += (share * sizes[group] + limit * inner * inner / (norm * square)) / master.rho
    return product, curvature


@inner_kernel
def _best_step(
    master: Master, squares: Floats, along: Floats, sizes: Floats, found: Ints, n: int, gain: float, largest: float
) -> float:
    """Maximiser in [0, largest] of the dual along a direction, which is concave: by Newton and bisection."""
    slope, curvature = _slope_at(master, squares, along, sizes, found, n, largest)
    if gain + slope >= 0.0:
        return largest
    low, high, step = 0.0, largest, 0.0
    slope, curvature = _slope_at(master, squares, along, sizes, found, n, 0.0)
    for _ in range(8):
        trial, low, high = next_step(step, gain + slope, curvature, low, high)
        if abs(trial - step) <= 1e-6 * largest:
            return trial
        step = trial
        slope, curvature = _slope_at(master, squares, along, sizes, found, n, step)
    return step


@kernel
def group_ascend(master: Master, lam: Floats, g: Floats, w: Floats, n_sweeps: int, enough: float) -> float:
    """As `kernels.cuts.ascend`."""
    n_features, n_groups = len(g), len(master.member_ptr) - 1
    acc, mark, touched = np.zeros(n_features), np.zeros(n_features, np.int64), np.zeros(n_features, np.int64)
    squares, along, sizes = np.zeros(n_groups), np.zeros(n_groups), np.zeros(n_groups)
    found, is_found = np.zeros(n_groups, np.int64), np.zeros(n_groups, np.bool_)
    is_live = np.ones(len(lam), np.bool_)
    for group in range(n_groups):
        squares[group] = _set_group(master, group, g, w)
    gap = np.inf
    for sweep in range(n_sweeps):
        all_cuts = sweep % 5 == 0
        total = 0.0
        for i in range(len(master.ptr) - 1):
            if master.ptr[i + 1] == master.ptr[i]:
                continue
            pair = _choose(master, i, lam, w, is_live, all_cuts)
            total += max(master.weights[i] * pair.top - pair.mean, 0.0)
            if pair.up == pair.down or pair.largest <= 0.0:
                continue
            n, gain = difference(master, pair, acc, mark, touched)
            n_found = 0
            for e in range(n):
                j = touched[e]
                mark[j] = 0
                group = master.groups[j]
                if not is_found[group]:
                    is_found[group], found[n_found] = True, group
                    along[group], sizes[group] = 0.0, 0.0
                    n_found += 1
                along[group] += (master.rho * master.centre[j] - g[j]) * acc[j]
                sizes[group] += acc[j] * acc[j]
            step = _best_step(master, squares, along, sizes, found, n_found, gain, pair.largest)
            move(pair, step, lam)
            for e in range(n):
                g[touched[e]] += step * acc[touched[e]]
            for e in range(n_found):
                is_found[found[e]] = False
                squares[found[e]] = _set_group(master, found[e], g, w)
        if all_cuts:
            gap = total
            if gap <= enough:
                break
    return gap
