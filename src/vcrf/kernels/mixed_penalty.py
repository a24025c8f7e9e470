"""Penalties of merged columns whose members have norms of their own: the infimal convolution in general.

The member k of a column pays l1_k |w| + l2_k |w|**p_k / p_k, 1 < p_k <= 2, or l1_k |w| alone where l2_k is 0. With
e_k = 1 / (p_k - 1) its share at slope mu is ((mu - l1_k)_+ / l2_k)**e_k; a member that pays l1 alone takes what the
others leave once mu has come to its strength, and mu comes no further.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.types import Floats, Ints

# Newton's steps for the slope, which come from above and never pass it: the shares are convex in the slope.
_MOST_STEPS = 100


@inner_kernel
def _shares(mu: float, first: int, last: int, l1: Floats, l2: Floats, power: Floats) -> tuple[float, float]:
    """Sum of the shares of members with an l2 part at a slope, and its derivative."""
    total = rise = 0.0
    for k in range(first, last):
        excess = mu - l1[k]
        if l2[k] > 0.0 and excess > 0.0:
            e = 1.0 / (power[k] - 1.0)
            share = (excess / l2[k]) ** e
            total += share
            rise += e * share / excess
    return total, rise


@inner_kernel
def _slope_of(size: float, first: int, last: int, l1: Floats, l2: Floats, power: Floats) -> float:
    """The slope at which the shares of members with an l2 part add up to the size; inf if there are none."""
    low, high, n = np.inf, np.inf, 0
    for k in range(first, last):
        n += l2[k] > 0.0 and l1[k] < np.inf
    for k in range(first, last):
        if l2[k] > 0.0 and l1[k] < np.inf:
            # One of the shares is at least size / n, and none is larger than the size.
            low = min(low, l1[k] + l2[k] * (size / n) ** (power[k] - 1.0))
            high = min(high, l1[k] + l2[k] * size ** (power[k] - 1.0))
    if n <= 1 or _shares(low, first, last, l1, l2, power)[0] >= size:
        return low
    mu = high
    for _ in range(_MOST_STEPS):
        total, rise = _shares(mu, first, last, l1, l2, power)
        step = (total - size) / rise if rise > 0.0 else 0.0
        if not step > 1e-16 * mu:
            break
        mu = max(mu - step, low)
    return mu


@kernel
def slopes(
    groups: Ints, size: Floats, ptr: Ints, l1: Floats, l2: Floats, power: Floats, caps: Floats, slope: Floats,
    value: Floats,
) -> None:  # fmt: skip
    """Slope and value of each merged penalty at |W| = size; caps are the least strengths of members with l1 alone."""
    for j in range(len(groups)):
        first, last, cap = ptr[groups[j]], ptr[groups[j] + 1], caps[groups[j]]
        mu = min(_slope_of(size[j], first, last, l1, l2, power), cap)
        total, left = 0.0, size[j]
        for k in range(first, last):
            excess = mu - l1[k]
            if l2[k] > 0.0 and excess > 0.0:
                share = (excess / l2[k]) ** (1.0 / (power[k] - 1.0))
                total += l1[k] * share + l2[k] * share ** power[k] / power[k]
                left -= share
        slope[j] = mu
        value[j] = total + (cap * max(left, 0.0) if mu == cap and cap < np.inf else 0.0)


@kernel
def conjugates(
    groups: Ints, size: Floats, theta: float, ptr: Ints, l1: Floats, l2: Floats, power: Floats
) -> tuple[float, float]:
    """Sum of the conjugates at theta |g| and its slope in theta; infinite beyond the strength of an l1 alone."""
    total = slope = 0.0
    for j in range(len(groups)):
        for k in range(ptr[groups[j]], ptr[groups[j] + 1]):
            excess = theta * size[j] - l1[k]
            if excess > 0.0:
                if l2[k] == 0.0:
                    if excess > 1e-12 * l1[k]:
                        return np.inf, np.inf
                    continue
                share = (excess / l2[k]) ** (1.0 / (power[k] - 1.0))
                total += excess * share * (1.0 - 1.0 / power[k])
                slope += size[j] * share
    return total, slope
