"""Newton steps with the Hessian on the free weights: how a small gap is reached.

The quadratic model with the l1 part is solved by coordinate descent, so that weights may change sign or leave
zero inside one step; the result is a direction for a line search on the objective itself. A Hessian costs as much as
hundreds of passes and changes little near the optimum, so that one serves many steps.
"""

from __future__ import annotations

import numpy as np

from vcrf.solvers.quadratic import QuadraticModel, SparseModel
from vcrf.surrogates.active import ActiveSet
from vcrf.surrogates.crf import CrfSurrogate
from vcrf.types import Bools, Floats, Ints

# The model takes 8 n^2 bytes, and a direct solve n^3 / 3 multiplications: a second at this size.
MAX_WEIGHTS = 4_000
# Up to so many weights a Hessian is cheap enough to be taken even for a moderate gap.
FEW_WEIGHTS = 2_500
# Larger models are sparse. While one is built it takes 4 n^2 bytes: 2.3 GB at this size.
MAX_SPARSE_WEIGHTS = 24_000
_CUT = 1e-3
# Of the largest problems the most curved weights are done, from a sample of about so many tokens.
BLOCK = 600
BLOCK_TOKENS = 8_000
# Rounds of coordinate descent and a direct solve.
_ROUNDS = 25
# Of direct solves at first, in thresholds.
_DAMPING = 1e-2
# A coordinate that is not there: no finite gradient moves it from zero.
_PINNED = 1e300


def has_hessian(surrogate: CrfSurrogate) -> bool:
    """Whether there is a Hessian: all labels known, and on the dense lattice patterns of 2 labels at the most."""
    limit = surrogate.hessian_order
    is_short = limit is None or surrogate.problem.order <= limit
    return surrogate.has_hessian and is_short and not surrogate.problem.is_partial


def can_model(surrogate: CrfSurrogate, n_weights: int, limit: int = MAX_WEIGHTS) -> bool:
    """Whether there is an exact Hessian, and not of too many weights."""
    return has_hessian(surrogate) and 0 < n_weights <= limit


def build_model(surrogate: CrfSurrogate, active: ActiveSet, w: Floats, chosen: Ints, stride: int = 1) -> QuadraticModel:
    """Hessian at w on the features `chosen` (indices into the active set), from one of `stride` sentences."""
    hessian = surrogate.hessian(active, w, chosen, stride)
    diagonal = np.diag_indices(len(chosen))
    hessian[diagonal] += 1e-12 + 1e-9 * hessian[diagonal]
    return QuadraticModel(active.features[chosen], hessian)


def make_sparse(model: QuadraticModel, thresholds: Floats, tol: float) -> QuadraticModel:
    """A model of many features without the entries that are small by their thresholds."""
    if len(model.features) <= MAX_WEIGHTS:
        return model
    return SparseModel.of(model, thresholds, _CUT, tol)


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
    d, product = np.zeros(len(g)), np.zeros(len(g))
    faces = _Faces(model, c)
    first = value = _model_value(g, w, c, d, product)
    for _ in range(_ROUNDS):
        # Small moves of coordinate descent do not mean that it is done: on a flat face it only crawls.
        model.descend(g, w, c, tol, d, product)
        d, product = _improve_on_face(model, faces, g, w, c, d, product)
        before, value = value, _model_value(g, w, c, d, product)
        if before - value <= enough * (first - value):
            break
    return d


def _improve_on_face(
    model: QuadraticModel, faces: _Faces, g: Floats, w: Floats, c: Floats, d: Floats, product: Floats
) -> tuple[Floats, Floats]:
    """Move towards the minimiser of the model on the face of w + d; weights that would change sign stop at zero."""
    u = w + d
    move = faces.solve(u != 0.0, -(g + product + c * np.sign(u)))
    value, step = _model_value(g, w, c, d, product), 1.0
    while step > 1e-3:
        target = u + step * move
        target[target * u <= 0.0] = 0.0
        trial = target - w
        trial_product = model.product(trial)
        if _model_value(g, w, c, trial, trial_product) < value:
            d, product = trial, trial_product
            break
        step *= 0.5
    faces.learn(step)
    return d, product


class _Faces:
    """Solves on the faces of one model.

    Features that nearly repeat each other make a face flat, and a damping keeps moves from running along it. It is
    measured in thresholds c: where a direction has less curvature than that, a move changes the gradients by little
    that the certificate feels. The curvature itself is no measure: that of frequent features is thousands of times
    c, and so are the changes of the gradient along directions that are flat for them.
    """

    def __init__(self, model: QuadraticModel, c: Floats) -> None:
        self.model, self.damping = model, _DAMPING
        curvature = model.curvature
        self.unit = np.where(c > 0.0, np.minimum(c, curvature), curvature)

    def learn(self, step: float) -> None:
        """A move that had to be shortened went too far along a flat direction."""
        if step == 1.0:
            self.damping = max(0.3 * self.damping, self.model.least_damping)
        elif step < 0.5:
            self.damping = min(5.0 * self.damping, 1.0)

    def solve(self, free: Bools, target: Floats) -> Floats:
        """Solve (H + damping) x = target on the free coordinates; x = 0 elsewhere."""
        which = np.flatnonzero(free)
        x = np.zeros(len(free))
        if len(which):
            x[which] = self.model.solve(which, self.damping * self.unit[which], target[which])
        return x


def _model_value(g: Floats, w: Floats, c: Floats, d: Floats, product: Floats) -> float:
    return float(g @ d + 0.5 * (d @ product) + c @ np.abs(w + d))
