"""Penalties of merged columns: the infimal convolution of the members' penalties."""

from __future__ import annotations

from vcrf.kernels._jit import kernel
from vcrf.types import Floats, Ints


@kernel
def slopes(groups: Ints, size: Floats, ptr: Ints, l1: Floats, l2: Floats, slope: Floats, value: Floats) -> None:
    """Slope mu and value of each merged penalty at |W| = size, all l2 > 0.

    mu solves sum_k (mu - l1_k)_+ / l2_k = |W|; members of a group are sorted by l1. The value is the sum of
    l1_k w_k + l2_k w_k**2 / 2 at the optimal shares w_k = (mu - l1_k)_+ / l2_k.
    """
    for j in range(len(groups)):
        first, last = ptr[groups[j]], ptr[groups[j] + 1]
        inverse, weighted, mu = 0.0, 0.0, 0.0
        for k in range(first, last):
            if k > first and mu <= l1[k]:
                break
            inverse += 1.0 / l2[k]
            weighted += l1[k] / l2[k]
            mu = (size[j] + weighted) / inverse
        total = 0.0
        for k in range(first, last):
            share = (mu - l1[k]) / l2[k]
            if share > 0.0:
                total += l1[k] * share + 0.5 * l2[k] * share * share
        slope[j] = mu
        value[j] = total


@kernel
def conjugates(groups: Ints, size: Floats, theta: float, ptr: Ints, l1: Floats, l2: Floats) -> tuple[float, float]:
    """Sum of the conjugates at theta |g|, sum_j sum_k (theta |g_j| - l1_k)_+**2 / (2 l2_k), and its slope in theta."""
    total = slope = 0.0
    for j in range(len(groups)):
        for k in range(ptr[groups[j]], ptr[groups[j] + 1]):
            excess = theta * size[j] - l1[k]
            if excess > 0.0:
                share = excess / l2[k]
                total += 0.5 * excess * share
                slope += size[j] * share
    return total, slope
