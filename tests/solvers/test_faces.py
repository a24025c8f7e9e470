"""Solves on faces close to one that was factored, against solves from nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcrf.solvers import faces
from vcrf.solvers.faces import FaceFactor

many = settings(max_examples=150)


@st.composite
def matrices(draw):
    """A positive definite matrix of 2 to 9 rows, thresholds, and a generator of faces."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 9))
    root = rng.normal(size=(n, n))
    return root.T @ root + 0.3 * np.eye(n), rng.uniform(0.1, 2.0, n), rng


def solve_anew(matrix, free, target, fixed, moves):
    """The same, without a factor of another face."""
    x = np.zeros(len(free))
    x[fixed] = moves
    rest = np.setdiff1d(np.flatnonzero(free), fixed)
    right = target[rest] - matrix[np.ix_(rest, fixed)] @ moves
    x[rest] = np.linalg.solve(matrix[np.ix_(rest, rest)], right)
    return x


@many
@given(matrices())
def test_faces_that_differ_in_any_way(drawn):
    """Weights enter, leave, come back and are sent to given places: one factor serves, call after call."""
    matrix, c, rng = drawn
    n = len(c)
    base = rng.random(n) < 0.6
    base[rng.integers(n)] = True
    factor = FaceFactor(matrix, base, c)
    damped = matrix + np.diag(factor.damping)
    for _ in range(5):
        free = rng.random(n) < 0.6
        target = np.where(free, rng.normal(size=n), 0.0)
        fixed = np.flatnonzero(free & (rng.random(n) < 0.3))
        moves = rng.normal(size=len(fixed))
        found = factor.solve(free, target, fixed, moves)
        # A fixed weight moves as it is told: the damping of the others alone acts.
        np.testing.assert_allclose(found, solve_anew(damped, free, target, fixed, moves), rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(found[fixed], moves)
        np.testing.assert_array_equal(found[~free], 0.0)


@many
@given(matrices())
def test_factors_in_single_precision(drawn):
    """More damping, the same to its rounding."""
    matrix, c, rng = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faces, "_MAX_DOUBLE", 0)
        factor = FaceFactor(matrix.astype(np.float32), np.ones(len(c), bool), c)
    assert factor.type == np.float32
    target = rng.normal(size=len(c))
    none = np.zeros(0, np.int64)
    found = factor.solve(np.ones(len(c), bool), target, none, np.zeros(0))
    expected = np.linalg.solve(matrix + np.diag(factor.damping), target)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_an_indefinite_matrix_is_damped_until_it_has_a_factor():
    """Rounding of a flat matrix: what is added grows, and is told."""
    matrix = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-6]])
    factor = FaceFactor(matrix, np.ones(2, bool), np.ones(2))
    assert 1e-7 < factor.damping[0] < 1e-3
    with pytest.raises(np.linalg.LinAlgError):
        FaceFactor(np.array([[1.0, 1e9], [1e9, 1.0]]), np.ones(2, bool), np.ones(2))


def test_when_a_face_is_close():
    """Few changes, and few columns kept of earlier ones."""
    n = 40
    factor = FaceFactor(np.eye(n), np.arange(n) < 30, np.ones(n))
    assert factor.is_close(np.arange(n) < 30)
    assert factor.is_close(np.arange(n) < 33)
    assert not factor.is_close(np.arange(n) < 34)
    none = np.zeros(0, np.int64)
    for first in range(3):
        factor.solve((np.arange(n) < 30) & (np.arange(n) != first), np.ones(n), none, np.zeros(0))
    assert factor.is_close(np.arange(n) < 29)
    assert not factor.is_close(np.arange(n) < 28)
