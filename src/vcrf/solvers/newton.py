"""Newton steps with the exact Hessian on the free weights: how a small gap is reached.

The quadratic model with the l1 part is solved by coordinate descent, so that weights may change sign or leave
zero inside one step; the result is a direction for a line search on the objective itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.surrogates.active import ActiveSet
from vcrf.surrogates.crf import CrfSurrogate
from vcrf.types import Floats, Ints

# The model takes 8 n^2 bytes, and a direct solve n^3 / 3 multiplications: a second at this size.
MAX_WEIGHTS = 4_000
# How coordinate descent and direct solves alternate.
_SWEEPS = 10
_ROUNDS = 25


class QuadraticModel(NamedTuple):
    """Hessian of the smooth part on the chosen weights."""

    chosen: Ints
    hessian: Floats


def can_model(surrogate: CrfSurrogate, n_weights: int) -> bool:
    """Whether the exact Hessian is available: chains of order up to 2 and not too many weights."""
    return surrogate.problem.order <= 2 and 0 < n_weights <= MAX_WEIGHTS


def build_model(surrogate: CrfSurrogate, active: ActiveSet, w: Floats, chosen: Ints, extra: Floats) -> QuadraticModel:
    """Exact Hessian at w on the features `chosen` (indices into the active set), plus a diagonal `extra`."""
    hessian = surrogate.hessian(active, w, chosen)
    diagonal = np.diag_indices(len(chosen))
    hessian[diagonal] += extra + 1e-12 + 1e-9 * hessian[diagonal]
    return QuadraticModel(chosen, hessian)


def newton_direction(
    model: QuadraticModel, g: Floats, w: Floats, c: Floats, tol: float, enough: float = 0.01
) -> Floats:
    """Minimiser d of the model q(d) = g.d + d.H d/2 + sum c|w + d| (all arguments on the chosen weights).

    Coordinate descent finds which weights are zero and the signs of the others; given these the model is
    smooth, and a direct solve finishes what coordinate descent would take thousands of sweeps for. Rounds end
    when one brings less than the share `enough` of the whole decrease: the model itself is only so good.
    """
    from vcrf.kernels import hessian

    d, product = np.zeros(len(g)), np.zeros(len(g))
    damping = 1e-2
    first = value = _model_value(g, w, c, d, product)
    for _ in range(_ROUNDS):
        # Small moves of coordinate descent do not mean that it is done: on a flat face it only crawls.
        hessian.l1_quadratic(model.hessian, g, w, c, tol, _SWEEPS, d, product)
        d, product = _improve_on_face(model.hessian, g, w, c, d, product, damping)
        damping = max(0.3 * damping, 1e-9)
        before, value = value, _model_value(g, w, c, d, product)
        if before - value <= enough * (first - value):
            break
    return d


def _improve_on_face(
    matrix: Floats, g: Floats, w: Floats, c: Floats, d: Floats, product: Floats, damping: float
) -> tuple[Floats, Floats]:
    """Move towards the minimiser of the model on the face of w + d; weights that would change sign stop at zero.

    Features that nearly repeat each other make the face flat: `damping` keeps the move from running along it.
    """
    from scipy.linalg import cho_factor, cho_solve

    u = w + d
    free = np.flatnonzero(u)
    if len(free) == 0:
        return d, product
    block = matrix[np.ix_(free, free)]
    block[np.diag_indices(len(free))] *= 1.0 + damping
    move = np.zeros(len(u))
    factor = cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
    move[free] = cho_solve(factor, -(g + product + c * np.sign(u))[free], check_finite=False)
    value, step = _model_value(g, w, c, d, product), 1.0
    while step > 1e-3:
        target = u + step * move
        target[target * u <= 0.0] = 0.0
        trial = target - w
        trial_product = matrix @ trial
        if _model_value(g, w, c, trial, trial_product) < value:
            return trial, trial_product
        step *= 0.5
    return d, product


def _model_value(g: Floats, w: Floats, c: Floats, d: Floats, product: Floats) -> float:
    return float(g @ d + 0.5 * (d @ product) + c @ np.abs(w + d))
