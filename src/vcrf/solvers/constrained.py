"""The constrained form: the surrogate alone, over the weights whose penalty is at most a radius.

    min_w F(w)   subject to   Omega(w) <= R

The penalised form with strengths times mu has the same solutions, at the mu where Omega(w(mu)) = R: it is looked for.
For every mu, with a lower bound B(mu) of the penalised optimum, F(w) >= B(mu) - mu Omega(w) >= B(mu) - mu R wherever
Omega(w) <= R. That is the certificate. Weights beyond the radius are pulled back to it: Omega is convex and 0 at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vcrf.penalties import FeaturePenalty
from vcrf.solvers.policy import MAX_PASSES
from vcrf.solvers.result import SolverResult, Status
from vcrf.types import Floats, Ints
from vcrf.workers import one_blas_thread

_MOST_POINTS = 60
# A penalised solution is as exact as this share of the gap that is asked for, and more so each time between two others.
_SHARE, _CLOSER, _CLOSEST = 0.2, 0.5, 1e-4
# Halvings of what weights beyond the radius are multiplied by.
_HALVINGS = 50
# From one mu to the next, until the radius lies between two.
_FACTOR = 4.0
# log(Omega / R) below which it is taken for this.
_LOWEST = -3.0
# Below this mu the constraint is taken to hold of itself.
_LEAST = 1e-9

Penalised = Callable[[float, "SolverResult | None", float, "int | None"], SolverResult]


class _Seen(NamedTuple):
    """A multiplier, by its logarithm, and log(Omega / R) at its weights."""

    log_mu: float
    excess: float


def penalty_of(penalty: FeaturePenalty, features: Ints, w: Floats) -> float:
    """Omega."""
    groups = penalty.groups_of(features)
    return penalty.smooth(groups, w)[0] + float(penalty.group_thresholds[groups] @ np.abs(w))


def solve_constrained(
    penalised: Penalised,
    value: Callable[[Ints, Floats], float],
    penalty: FeaturePenalty,
    radius: float,
    *,
    tol: float,
    max_passes: int | None = None,
    start: SolverResult | None = None,
) -> SolverResult:
    """Minimise F over Omega(w) <= radius to a certified relative gap.

    Parameters
    ----------
    penalised : minimises F + mu Omega, given mu, a start, a tolerance, and the passes that are left (None: its own
        limit); F is convex
    value : F at weights of some features
    penalty : Omega
    max_passes : limit on the passes at all multipliers together (None: 20,000)
    """
    with one_blas_thread():
        return _solve(penalised, value, penalty, radius, tol, max_passes, start)


def _solve(
    penalised: Penalised,
    value: Callable[[Ints, Floats], float],
    penalty: FeaturePenalty,
    radius: float,
    tol: float,
    max_passes: int | None,
    start: SolverResult | None,
) -> SolverResult:
    bound, passes, seconds, history, log_mu = 0.0, 0, 0.0, [], 0.0
    below: _Seen | None = None  # inside the radius
    above: _Seen | None = None
    best = SolverResult(
        np.zeros(0, np.int64), np.zeros(0), np.inf, np.inf, np.inf, Status.STALLED, 0, 0.0, [], 0
    )  # fmt: skip
    share, ended, most = _SHARE, Status.STALLED, MAX_PASSES if max_passes is None else max_passes
    for n in range(_MOST_POINTS):
        mu = float(np.exp(log_mu))
        result = start = penalised(mu, start, share * tol, None if max_passes is None else most - passes)
        passes, seconds = passes + result.n_passes, seconds + result.seconds
        history += result.history
        omega = penalty_of(penalty, result.features, result.weights)
        bound = max(bound, result.objective - result.gap - mu * radius)
        w = result.weights * _inside(penalty, result, omega, radius)
        objective = value(result.features, w)
        if objective < best.objective:
            best = replace(result, weights=w, objective=objective)
        # Penalised solutions that are as exact as was asked, and none that is near: no multiplier is left.
        ended = Status.STALLED if result.status is Status.CONVERGED else result.status
        if result.status is Status.INTERRUPTED or best.objective - bound <= tol * best.objective:
            break
        if passes >= most:
            ended = Status.MAX_PASSES
            break
        seen = _Seen(log_mu, float(np.log(max(omega, 1e-300) / radius)))
        below, above = (seen, above) if seen.excess <= 0.0 else (below, seen)
        if below is not None and above is not None:
            share = max(_CLOSER * share, _CLOSEST)
        log_mu = _next(below, above, is_middle=n % 3 == 2)
        if mu < _LEAST:
            break
    gap = max(best.objective - bound, 0.0)
    status = Status.CONVERGED if gap <= tol * best.objective else ended
    return replace(best, gap=gap, status=status, n_passes=passes, seconds=seconds, history=history)


def _inside(penalty: FeaturePenalty, result: SolverResult, omega: float, radius: float) -> float:
    """The largest factor, but for rounding, that brings weights inside the radius."""
    if omega <= radius:
        return 1.0
    first, last = radius / omega, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (first + last)
        is_inside = penalty_of(penalty, result.features, middle * result.weights) <= radius
        first, last = (middle, last) if is_inside else (first, middle)
    return first


def _next(below: _Seen | None, above: _Seen | None, is_middle: bool) -> float:
    """Where to look: farther out, or between two, in the middle or at the secant's root but not too near either end.

    Omega is 0 from some mu on, and its logarithm then no number to draw a secant by: the lowest counts as `_LOWEST`.
    """
    if below is None:
        return float(np.log(_FACTOR)) + (0.0 if above is None else above.log_mu)
    if above is None:
        return below.log_mu - float(np.log(_FACTOR))
    width = below.log_mu - above.log_mu
    if is_middle:
        return above.log_mu + 0.5 * width
    share = above.excess / (above.excess - max(below.excess, _LOWEST))
    return above.log_mu + width * min(max(share, 0.02), 0.98)
