"""Newton steps with the Hessian on the free weights: how a small gap is reached.

The quadratic model with the l1 part is solved by coordinate descent, so that weights may change sign or leave
zero inside one step; the result is a direction for a line search on the objective itself. A Hessian costs as much as
hundreds of passes and changes little near the optimum, so that one serves many steps.
"""

from __future__ import annotations

import numpy as np

from vcrf.surrogates.active import ActiveSet
from vcrf.surrogates.crf import CrfSurrogate
from vcrf.types import Bools, Floats, Ints

# The model takes 8 n^2 bytes, and a direct solve n^3 / 3 multiplications: a second at this size.
MAX_WEIGHTS = 4_000
# Up to so many weights a Hessian is cheap enough to be taken even for a moderate gap.
FEW_WEIGHTS = 2_500
# Of larger problems the most curved weights are done, from a sample of about so many tokens.
BLOCK = 600
BLOCK_TOKENS = 8_000
# How coordinate descent and direct solves alternate.
_SWEEPS = 10
_ROUNDS = 25
# A coordinate that is not there: no finite gradient moves it from zero.
_PINNED = 1e300


class QuadraticModel:
    """Hessian of the smooth part on some features, given by their numbers (sorted)."""

    def __init__(self, features: Ints, hessian: Floats) -> None:
        self.features, self.hessian = features, hessian

    def places(self, features: Ints) -> tuple[Bools, Ints]:
        """Which of the model's features are among those given (sorted), and where."""
        where = np.minimum(np.searchsorted(features, self.features), max(len(features) - 1, 0))
        return features[where] == self.features, where


def has_hessian(surrogate: CrfSurrogate) -> bool:
    """Whether there is a Hessian: all labels known, and on the dense lattice patterns of 2 labels at the most."""
    limit = surrogate.hessian_order
    is_short = limit is None or surrogate.problem.order <= limit
    return surrogate.has_hessian and is_short and not surrogate.problem.is_partial


def can_model(surrogate: CrfSurrogate, n_weights: int) -> bool:
    """Whether there is an exact Hessian, and not of too many weights."""
    return has_hessian(surrogate) and 0 < n_weights <= MAX_WEIGHTS


def build_model(surrogate: CrfSurrogate, active: ActiveSet, w: Floats, chosen: Ints, stride: int = 1) -> QuadraticModel:
    """Hessian at w on the features `chosen` (indices into the active set), from one of `stride` sentences."""
    hessian = surrogate.hessian(active, w, chosen, stride)
    diagonal = np.diag_indices(len(chosen))
    hessian[diagonal] += 1e-12 + 1e-9 * hessian[diagonal]
    return QuadraticModel(active.features[chosen], hessian)


def spread(model: QuadraticModel, features: Ints, g: Floats, w: Floats, c: Floats) -> tuple[Floats, Floats, Floats]:
    """g, w and c of the model's features; those that `features` (sorted) lacks are pinned at zero."""
    present, where = model.places(features)
    return np.where(present, g[where], 0.0), np.where(present, w[where], 0.0), np.where(present, c[where], _PINNED)


def newton_direction(
    model: QuadraticModel, g: Floats, w: Floats, c: Floats, tol: float, enough: float = 0.01
) -> Floats:
    """Minimiser d of the model q(d) = g.d + d.H d/2 + sum c|w + d| (all arguments on the model's features).

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
        d, product = _improve_on_face(model, g, w, c, d, product, damping)
        damping = max(0.3 * damping, 1e-9)
        before, value = value, _model_value(g, w, c, d, product)
        if before - value <= enough * (first - value):
            break
    return d


def _improve_on_face(
    model: QuadraticModel, g: Floats, w: Floats, c: Floats, d: Floats, product: Floats, damping: float
) -> tuple[Floats, Floats]:
    """Move towards the minimiser of the model on the face of w + d; weights that would change sign stop at zero.

    Features that nearly repeat each other make the face flat: `damping` keeps the move from running along it.
    """
    u = w + d
    free = u != 0.0
    if not np.any(free):
        return d, product
    move = _solve_on_face(model, free, np.where(free, -(g + product + c * np.sign(u)), 0.0), damping)
    value, step = _model_value(g, w, c, d, product), 1.0
    while step > 1e-3:
        target = u + step * move
        target[target * u <= 0.0] = 0.0
        trial = target - w
        trial_product = model.hessian @ trial
        if _model_value(g, w, c, trial, trial_product) < value:
            return trial, trial_product
        step *= 0.5
    return d, product


def _solve_on_face(model: QuadraticModel, free: Bools, target: Floats, damping: float) -> Floats:
    """Solve (H + damping diag H) x = target on the free coordinates; x = 0 elsewhere.

    Rounding can leave a flat face indefinite: the damping then grows until the factor exists.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    which = np.flatnonzero(free)
    x = np.zeros(len(free))
    while damping <= 1.0:
        block = model.hessian[np.ix_(which, which)]
        block[np.diag_indices(len(which))] *= 1.0 + damping
        try:
            factor = cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            damping *= 10.0
            continue
        x[which] = cho_solve(factor, target[which], check_finite=False)
        break
    return x


def _model_value(g: Floats, w: Floats, c: Floats, d: Floats, product: Floats) -> float:
    return float(g @ d + 0.5 * (d @ product) + c @ np.abs(w + d))
