"""Newton steps with the Hessian on the free weights: how a small gap is reached.

The quadratic model with the l1 part is solved by coordinate descent, so that weights may change sign or leave
zero inside one step; the result is a direction for a line search on the objective itself. A Hessian costs as much as
hundreds of passes and changes little near the optimum, so that one serves many steps.
"""

from __future__ import annotations

import numpy as np

from vcrf.solvers.faces import FaceFactor
from vcrf.solvers.quadratic import QuadraticModel
from vcrf.structures.structure import FeaturePlan
from vcrf.surrogates.smooth import SmoothObjective
from vcrf.types import Bools, Floats, Ints

# Rounds of coordinate descent and direct solves, and solves of one round.
_ROUNDS, _CROSSINGS = 25, 20
# A coordinate that is not there: no finite gradient moves it from zero.
_PINNED = 1e300


def build_model(
    objective: SmoothObjective, plan: FeaturePlan, w: Floats, chosen: Ints, stride: int = 1, scale: float = np.inf
) -> QuadraticModel:
    """Hessian at w on the features `chosen` (indices into the plan), from one of `stride` examples.

    `scale` is the size of the gradients that it has to be fine enough for, where it is not exact.
    """
    hessian = objective.hessian(plan, w, chosen, stride, scale)
    if hessian is None:
        raise TypeError("Newton steps need an objective with a Hessian: see `has_hessian`.")
    diagonal = np.diag_indices(len(chosen))
    hessian[diagonal] += 1e-12 + 1e-9 * hessian[diagonal]
    return QuadraticModel(plan.features[chosen], hessian)


def spread(model: QuadraticModel, features: Ints, g: Floats, w: Floats, c: Floats) -> tuple[Floats, Floats, Floats]:
    """g, w and c of the model's features; those that `features` (sorted) lacks are pinned at zero."""
    present, where = model.places(features)
    return np.where(present, g[where], 0.0), np.where(present, w[where], 0.0), np.where(present, c[where], _PINNED)


def newton_direction(
    model: QuadraticModel, g: Floats, w: Floats, c: Floats, tol: float, enough: float = 0.01, close: float = 0.0
) -> Floats:
    """Minimiser d of the model q(d) = g.d + d.H d/2 + sum c|w + d| (all arguments on the model's features).

    Coordinate descent finds which weights are zero and the signs of the others; given these the model is
    smooth, and a direct solve finishes what coordinate descent would take thousands of sweeps for. Rounds end
    when one brings less than the share `enough` of the whole decrease, or leaves no violation of the model's optimality
    conditions above `close` thresholds: the model itself is only so good.
    """
    d, product = np.zeros(len(g)), np.zeros(len(g))
    first = value = _model_value(g, w, c, d, product)
    for block in model.blocks():
        for _ in range(_ROUNDS):
            # Small moves of coordinate descent do not mean that it is done: on a flat face it only crawls.
            model.descend(g, w, c, tol, d, product)
            d = _improve_on_face(model, block, g, w, c, d, model.product(d))
            product = model.product(d)
            before, value = value, _model_value(g, w, c, d, product)
            if before - value <= enough * (first - value) or _violation(g, w, c, d, product) <= close:
                break
    return d


def _improve_on_face(
    model: QuadraticModel, block: Ints, g: Floats, w: Floats, c: Floats, d: Floats, product: Floats
) -> Floats:
    """Move to the minimiser of the model on the face of w + d, or towards it; of weights of the block alone.

    Weights that would change sign are sent to zero, and the others solved for again, until all keep their signs. Then
    the model is smooth on the way there, and the best point of the way is taken. Weights without a threshold may change
    their signs: for them zero is a number like any other.
    """
    u, free = w + d, np.zeros(len(w), bool)
    free[block], sign = (u[block] != 0.0) | (c[block] == 0.0), np.sign(u) * (c > 0.0)
    target = np.where(free, -(g + product + c * sign), 0.0)
    if not np.any(target):
        return d
    factor, none = model.factor(block, free, c), np.zeros(0, np.int64)
    straight = factor.solve(free, target, none, np.zeros(0))
    kinked = np.where(c > 0.0, u, 0.0)
    move, gone = _keep_signs(factor, free, target, kinked, straight)
    step = _best_step(model, kinked, move, target)
    if step <= 0.0:
        move, gone = straight, none
        step = _best_step(model, kinked, move, target)
    moved = u + step * move
    moved[moved * sign < 0.0] = 0.0
    moved[gone if step == 1.0 else none] = 0.0
    return moved - w


def _keep_signs(factor: FaceFactor, free: Bools, target: Floats, u: Floats, straight: Floats) -> tuple[Floats, Ints]:
    """A move like `straight` with which no weight of u changes its sign, and the weights that it takes to zero."""
    move, gone = straight, np.zeros(0, np.int64)
    for _ in range(_CROSSINGS):
        crossing = np.setdiff1d(np.flatnonzero((u + move) * u < 0.0), gone)
        if len(crossing) == 0:
            return move, gone
        gone = np.union1d(gone, crossing)
        move = factor.solve(free, target, gone, -u[gone])
    return straight, gone[:0]


def _best_step(model: QuadraticModel, u: Floats, move: Floats, target: Floats) -> float:
    """The least value of the model on the way from u to u + move, as far as no weight changes its sign."""
    towards = np.flatnonzero(u * move < 0.0)
    furthest = float((-u[towards] / move[towards]).min(initial=1.0))
    curvature = float(move @ model.product(move))
    best = float(target @ move) / curvature if curvature > 0.0 else 1.0
    return min(best, furthest)


def _violation(g: Floats, w: Floats, c: Floats, d: Floats, product: Floats) -> float:
    """Largest violation of the optimality conditions of the model, in thresholds (infinite where one is zero)."""
    u, slope = w + d, g + product
    off = np.where(u != 0.0, np.abs(slope + c * np.sign(u)), np.maximum(np.abs(slope) - c, 0.0))
    with np.errstate(divide="ignore"):
        return float(np.divide(off, c, out=np.zeros(len(off)), where=off > 0.0).max(initial=0.0))


def _model_value(g: Floats, w: Floats, c: Floats, d: Floats, product: Floats) -> float:
    return float(g @ d + 0.5 * (d @ product) + c @ np.abs(w + d))
