"""The duality gap of any weights, from an affine lower bound a + g.w of F and the scan of all candidates.

F is not negative, so for 0 <= theta <= 1 and every w*:

    F(w*) >= theta F(w*) >= theta (a + g.w*),   hence   P* >= theta a - Omega*(theta g),

Omega* the conjugate of the penalty: 0 inside the box |theta g_j| <= c_j for L1, a sum of squared excesses with an l2
part. Only candidates whose |g_j| exceeds their threshold contribute: the scan gives exactly these.

The tangent of a convex F at w is such an affine function, with a = F(w) - w.g; a mixture of outputs is another, with a
its mean loss; and so is what a relaxed structure finds, whose value and marginals do not belong to one point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.penalties import FeaturePenalty
from vcrf.types import Floats, Ints

# Looks for the best theta, halving where it lies.
_HALVINGS = 8


class Certificate(NamedTuple):
    """Lower bound on the optimum and largest relative excess max_j |g_j| / c_j - 1 (0 if none)."""

    lower_bound: float
    excess: float


def certify(penalty: FeaturePenalty, intercept: float, features: Ints, slopes: Floats) -> Certificate:
    """Best lower bound over theta, from an affine function a + g.w that lies below F everywhere.

    Parameters
    ----------
    penalty
    intercept : a; where F and its gradient are exact, F(w) - w.g
    features, slopes : all candidates with |g_j| above the l1 part of their penalty, and their g_j
    """
    return certify_groups(penalty, intercept, penalty.groups_of(features), slopes)


def certify_groups(penalty: FeaturePenalty, intercept: float, groups: Ints, slopes: Floats) -> Certificate:
    """The same with the penalty's groups of the candidates in place of the candidates."""
    thresholds = penalty.group_thresholds[groups]
    size = np.abs(slopes)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(size > 0.0, size / thresholds, 0.0)
    worst = float(ratios.max(initial=1.0))
    inside = intercept / worst if np.isfinite(worst) else 0.0
    if not penalty.is_smooth_part:
        return Certificate(max(inside, 0.0), worst - 1.0)
    return Certificate(max(inside, 0.0, _best_bound(penalty, intercept, groups, size)), worst - 1.0)


def _best_bound(penalty: FeaturePenalty, intercept: float, groups: Ints, size: Floats) -> float:
    """Max over theta of theta a - Omega*(theta g), which is concave; near the optimum theta is 1.

    Where the penalty's slope has an end, that of a member that pays l1 alone, theta |g| must not exceed it.
    """
    most = 1.0
    caps = penalty.largest_slopes
    if caps is not None:
        most = float(np.min(caps[groups] / np.maximum(size, 1e-300), initial=1.0))
    best, first, last, theta = -np.inf, 0.0, most, most
    for _ in range(_HALVINGS):
        value, slope = penalty.conjugate_along(groups, size, theta)
        best = max(best, theta * intercept - value)
        if slope <= intercept:
            first = theta
        else:
            last = theta
        if first == most:
            break
        theta = 0.5 * (first + last)
    return best
