"""The quadratic model of the group norm: its matrix, its Newton step and its minimiser against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from vcrf import M3N
from vcrf.solvers.group_model import Groups, QuasiNewtonModel
from vcrf.types import Floats


def random_model(seed: int, n_pairs: int) -> tuple[QuasiNewtonModel, Floats]:
    """A model from steps on a random quadratic, and the BFGS matrix made one pair after the other."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 9)
    n = int(sizes.sum())
    groups = Groups(sizes, rng.uniform(0.1, 1.5, len(sizes)))
    root = rng.normal(size=(n, n))
    hessian = root @ root.T / n + 0.05 * np.eye(n)
    steps = rng.normal(size=(n_pairs, n))
    changes = steps @ hessian
    diagonal = rng.uniform(0.2, 3.0, n)
    if not n_pairs:
        return QuasiNewtonModel(groups, diagonal, steps, changes), np.diag(diagonal)
    scale = changes[-1] @ (changes[-1] / diagonal) / (steps[-1] @ changes[-1])
    matrix = np.diag(scale * diagonal)
    for s, y in zip(steps, changes, strict=True):
        image = matrix @ s
        matrix = matrix - np.outer(image, image) / (s @ image) + np.outer(y, y) / (s @ y)
    return QuasiNewtonModel(groups, diagonal, steps, changes), matrix


def shrink(groups: Groups, x: Floats, length: float) -> Floats:
    """Proximal operator of the group norm."""
    norms = np.maximum(groups.norms(x), 1e-300)
    return x * np.maximum(1.0 - length * groups.strengths / norms, 0.0)[groups.of]


@pytest.mark.parametrize("n_pairs", [0, 1, 6])
def test_the_matrix_is_that_of_bfgs(n_pairs: int) -> None:
    """Compact form and updates one after the other."""
    for seed in range(5):
        model, matrix = random_model(seed, n_pairs)
        x = np.random.default_rng(seed + 100).normal(size=len(matrix))
        np.testing.assert_allclose(model.times(x), matrix @ x, atol=1e-9)


@pytest.mark.parametrize("n_pairs", [0, 1, 6])
def test_the_direction_minimises_the_model(n_pairs: int) -> None:
    """With groups that are zero among the rest."""
    n_zero = 0
    for seed in range(12):
        model, matrix = random_model(seed, n_pairs)
        rng, groups = np.random.default_rng(seed + 50), model.groups
        g = rng.normal(size=len(matrix))
        w = rng.normal(size=len(matrix)) * rng.integers(0, 2, len(groups))[groups.of]
        d = model.direction(g, w, enough=1e-12)
        length = 1.0 / float(np.linalg.eigvalsh(matrix)[-1])
        # At the minimiser, and only there, a proximal step stays where it is.
        again = shrink(groups, w + d - length * (g + matrix @ d), length)
        np.testing.assert_allclose(again, w + d, atol=1e-5)
        expected = g @ d + 0.5 * d @ matrix @ d + groups.strengths @ groups.norms(w + d)
        assert model.value(g, w, d) == pytest.approx(float(expected))
        n_zero += np.count_nonzero(groups.norms(w + d) == 0.0)
    assert n_zero > 0


def test_the_newton_step_on_the_groups_in_use_solves_the_dense_system() -> None:
    """Sherman, Morrison and Woodbury's formulas."""
    for seed in range(5):
        model, matrix = random_model(seed, 4)
        rng, groups = np.random.default_rng(seed), model.groups
        is_used = rng.integers(0, 2, len(groups)).astype(bool)
        is_used[0] = True
        used = is_used[groups.of]
        u = np.where(used, rng.normal(size=len(matrix)), 0.0)
        norms = groups.norms(u)
        inward = np.where(used, groups.strengths[groups.of] / np.where(used, norms[groups.of], 1.0), 0.0)
        unit = np.where(used, u / np.where(used, norms[groups.of], 1.0), 0.0)
        residual = np.where(used, rng.normal(size=len(matrix)), 0.0)
        same = groups.of[:, None] == groups.of
        dense = matrix + np.diag(inward) - np.where(same, inward[:, None] * np.outer(unit, unit), 0.0)
        expected = np.linalg.solve(dense[np.ix_(used, used)], residual[used])
        np.testing.assert_allclose(model._solve(residual, inward, unit, used), expected, atol=1e-9)


def test_sweeps_never_raise_the_model_though_the_bounds_begin_too_low() -> None:
    """A bound is raised before its step is taken."""
    from vcrf.kernels.group_model import sweep

    for seed in range(8):
        model, matrix = random_model(seed, 5)
        rng, groups = np.random.default_rng(seed), model.groups
        g, w = 3.0 * rng.normal(size=len(matrix)), rng.normal(size=len(matrix))
        d, product = np.zeros(len(w)), np.zeros(model.left.shape[1])
        bounds = np.full(len(groups), 1e-3)
        value = model.value(g, w, d)
        for _ in range(30):
            sweep(groups.first, groups.strengths, g, w, model.diagonal, model.left, model.right, bounds, d, product)
            before, value = value, model.value(g, w, d)
            assert value <= before + 1e-9 * abs(before)
        np.testing.assert_allclose(product, model.right.T @ d, atol=1e-8)


def test_pairs_that_contradict_each_other_give_no_direction_instead_of_one_without_end() -> None:
    """Steps back along one line out of saturated posteriors: rounding leaves directions in which the model falls."""
    n, n_refused = 12, 0
    sizes = [1e-43, 1e-17, 1e-14, 3e-7, 3e-3, 2e-2]
    groups = Groups(np.full(n // 2, 2, np.int64), np.full(n // 2, 1e-3))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        line = rng.normal(size=n)
        steps = np.outer(100.0 * 0.6 ** np.arange(len(sizes)), line).astype(np.float32).astype(np.float64)
        changes = np.outer(sizes, line) * rng.uniform(0.5, 2.0, n)
        model = QuasiNewtonModel(groups, np.full(n, 0.1), steps, changes)
        with np.errstate(over="raise", invalid="raise"):
            d = model.direction(rng.normal(size=n), rng.normal(size=n), enough=1e-12)
        n_refused += d is None
        assert d is None or d @ model.times(d) > 0.0
    assert n_refused > 0


def test_a_fit_whose_old_pairs_contradict_each_other_is_certified_without_a_warning() -> None:
    """A case of the campaign: the model's steps grew to 1e176."""
    tagger = M3N(base_strength=0.00524, inference="dense", loss="edit:band=1", norm="group", recipe="paper", tags=4)
    X = [[["w=b", "w=é"]], [[], []], [["w=Ab-1"]]]
    tagger.fit(X, [[0], [0, 1], [1]], sample_weight=[0.75, 1.0, 1.5])
    assert tagger.gap_ <= tagger.tol_ * tagger.objective_
