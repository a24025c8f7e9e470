"""Rows in registers against numpy: all sizes, any place inside an array, and nothing else is written."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from vcrf.kernels import pairs
from vcrf.kernels.rows import (
    MOST,
    add_row,
    add_times,
    level_row,
    multiply_rows,
    padded,
    soften_row,
    step_row,
    sum_rows,
)
from vcrf.kernels.vectors import add_combination

SIZES = [*range(1, 41), 65, 70]
U = np.uint64


@numba.njit
def _add(x, u, out, o, size):
    add_row(x, u, out, o, size)


@numba.njit
def _add_times(x, u, factor, out, o, size):
    add_times(x, u, factor, out, o, size)


@numba.njit
def _sum(table, rows, first, n, out, o, size):
    sum_rows(table, rows, first, n, out, o, size)


@numba.njit
def _multiply(x, u, y, v, factor, out, o, size):
    multiply_rows(x, u, y, v, factor, out, o, size)


@numba.njit
def _soften(z, o, limit, factor, near, square, score, free, at, size):
    soften_row(z, o, limit, factor, near, square, score, at, free, at, size)


@numba.njit
def _step(matrix, x, u, node, v, out, o, n, size):
    return step_row(matrix, U(0), x, u, node, v, out, o, n, size)


@numba.njit
def _level(x, u, least, ends, out, o, n, size):
    level_row(x, u, least, ends, out, o, n, size)


@numba.njit
def _outer(rows, r, x, u, step, n, weight, out, o, size):
    add_combination(rows, r, x, u, step, n, weight, out, o, size)


@numba.njit
def _padded(n):
    return padded(n)


@pytest.fixture(params=SIZES)
def size(request):
    """A number of labels."""
    return request.param


@pytest.fixture
def draw(size):
    """Random numbers."""
    return np.random.default_rng(size)


def test_a_row_is_added(size, draw):
    """Target += source."""
    x, out = draw.normal(size=size + 3), draw.normal(size=size + 9)
    want = out.copy()
    want[5 : 5 + size] += x[3:]
    _add(x, U(3), out, U(5), U(size))
    np.testing.assert_array_equal(out, want)


def test_a_row_is_added_a_number_of_times(size, draw):
    """Target += factor * source, with 4 bytes a number."""
    x, out = draw.normal(size=size + 3).astype(np.float32), draw.normal(size=size + 9).astype(np.float32)
    want = out.copy()
    want[5 : 5 + size] += np.float32(0.3) * x[3:]
    _add_times(x, U(3), np.float32(0.3), out, U(5), U(size))
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(out[5 + size :], want[5 + size :])


@pytest.mark.parametrize("n_rows", [0, 1, 2, 3, 8])
def test_rows_of_a_table_are_summed(size, draw, n_rows):
    """None of them is zeros."""
    table, rows, out = (
        draw.normal(size=(6, size)),
        draw.integers(6, size=12).astype(np.uint32),
        np.full(size + 4, np.pi),
    )
    _sum(table.reshape(-1), rows, U(2), U(n_rows), out, U(1), U(size))
    np.testing.assert_allclose(out[1 : 1 + size], table[rows[2 : 2 + n_rows]].sum(axis=0), rtol=1e-13, atol=1e-14)
    assert out[0] == np.pi
    assert np.all(out[1 + size :] == np.pi)


def test_rows_are_multiplied(size, draw):
    """Rows of three arrays."""
    x, y, out = draw.normal(size=size + 2), draw.normal(size=size + 1), np.full(size + 9, np.pi)
    _multiply(x, U(2), y, U(1), 0.7, out, U(4), U(size))
    np.testing.assert_allclose(out[4 : 4 + size], 0.7 * x[2:] * y[1:], rtol=1e-14)
    assert np.all(out[:4] == np.pi)
    assert np.all(out[4 + size :] == np.pi)


def test_weights_are_thresholded(size, draw):
    """Scores, and what is free, against the definition."""
    z, score, free = (draw.normal(size=size + 4).astype(np.float32) for _ in range(3))
    here, limit, factor = slice(2, 2 + size), np.float32(0.6), np.float32(1.7)
    old, before = score.copy(), free.copy()
    _soften(z, U(3), limit, factor, np.float32(0.3), np.float32(2.0), score, free, U(2), U(size))
    x = z[3 : 3 + size]
    np.testing.assert_allclose(
        score[here], old[here] + factor * np.sign(x) * np.maximum(np.abs(x) - limit, 0.0), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(free[here], before[here] + 2.0 * (np.abs(x) > 0.3), rtol=1e-6)
    np.testing.assert_array_equal(score[2 + size :], old[2 + size :])
    np.testing.assert_array_equal(free[:2], before[:2])


def test_an_infinite_limit_leaves_nothing(size, draw):
    """A family that is switched off."""
    z = draw.normal(size=size).astype(np.float32)
    score, free = np.zeros(size, np.float32), np.zeros(size, np.float32)
    limit = np.float32(np.inf)
    _soften(z, U(0), limit, np.float32(1.0), limit, np.float32(1.0), score, free, U(0), U(size))
    assert not score.any()
    assert not free.any()


def test_combinations_of_rows_are_added(size, draw):
    """The column of x is read with a step."""
    x, rows, out = draw.normal(size=(7, size)), draw.normal(size=(7, size)), draw.normal(size=size)
    for n in range(7):
        found = out.copy()
        _outer(rows.reshape(-1), U(size), x.reshape(-1), U(size - 1), U(size), U(n), 0.3, found, U(0), U(size))
        np.testing.assert_allclose(found, out + 0.3 * x[:n, -1] @ rows[1 : 1 + n], rtol=1e-12, atol=1e-13)


def test_padded_rows_are_whole_registers(size):
    """Up to MOST numbers."""
    assert _padded(size) == (-(-size // 4) * 4 if size <= MOST else size)


@pytest.mark.parametrize("n", range(1, MOST + 1))
def test_a_step_of_padded_rows(n):
    """Products, weighted, and their sum."""
    draw, size = np.random.default_rng(n), -(-n // 4) * 4
    matrix, x, node, out = (
        np.zeros((n, size)),
        draw.normal(size=size),
        draw.normal(size=size + 4),
        np.full(size + 4, np.pi),
    )
    matrix[:, :n] = draw.normal(size=(n, n))
    total = _step(matrix.reshape(-1), x, U(0), node, U(4), out, U(2), U(n), U(size))
    want = node[4:] * (x[:n] @ matrix)
    np.testing.assert_allclose(out[2 : 2 + size], want, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(total, want.sum(), rtol=1e-11, atol=1e-12)
    assert np.all(out[2 + size :] == np.pi)


@pytest.mark.parametrize("n", range(1, MOST + 1))
def test_a_row_is_lowered_to_its_largest_number(n):
    """Numbers past its end count for nothing, whatever they are."""
    draw, size = np.random.default_rng(n), -(-n // 4) * 4
    for past in (np.nan, np.inf, -np.inf, 1e9):
        x, out, ends = np.concatenate([[past], draw.normal(size=n), np.full(3, past)]), np.empty(size), np.empty(2)
        _level(x, U(1), -1.0, ends, out, U(0), U(n), U(size))
        inside = x[1 : 1 + n]
        assert ends.tolist() == [inside.max(), inside.min()]
        np.testing.assert_array_equal(out[:n], np.maximum(inside - inside.max(), -1.0))
        assert np.all(np.isfinite(out))


@numba.njit
def _forward_backward(node, table, turned, length, n, weight):
    size = padded(n)
    alpha, beta, back, scale = np.empty(len(node)), np.empty(len(node)), np.empty(len(node)), np.empty(length + 1)
    rows, columns, sums = np.empty(n * size), np.empty(n * size), np.zeros(n * size)
    pairs.pad_table(table, n, rows)
    pairs.pad_table(turned, n, columns)
    log_z = pairs.forward(node, rows, length, n, alpha, scale)
    pairs.backward(node, columns, length, n, scale, beta, back)
    posterior = np.empty(length * n)
    pairs.posteriors(alpha, beta, length, n, weight, posterior, 0)
    pairs.add_pairs(alpha, back, length, n, weight, sums)
    return log_z, posterior.reshape(length, n), sums.reshape(n, size)[:, :n]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 12, 17, 32, 33, 40])
@pytest.mark.parametrize("spread", [1.0, 40.0, 250.0])
def test_forward_backward_where_messages_become_small_and_large(n, spread):
    """Against the log domain, with potentials that make the sums leave every range."""
    draw, length, size = np.random.default_rng(n), 30, -(-n // 4) * 4 if n <= MOST else n
    scores, pair = -spread * draw.random((length, n)), -spread * draw.random((n, n))
    scores[: length // 2] += 0.5 * spread * (spread < 250.0)
    node = np.ones((length, size))
    node[:, :n] = np.exp(scores)
    table = np.exp(pair)
    log_z, posterior, sums = _forward_backward(
        node.reshape(-1), table.reshape(-1), table.T.reshape(-1).copy(), length, n, 0.5
    )
    alpha, beta = np.zeros((length, n)), np.zeros((length, n))
    alpha[0] = scores[0]
    for t in range(1, length):
        alpha[t] = scores[t] + np.logaddexp.reduce(alpha[t - 1][:, None] + pair, axis=0)
    for t in range(length - 1, 0, -1):
        beta[t - 1] = np.logaddexp.reduce(pair + (scores[t] + beta[t])[None], axis=1)
    want = np.logaddexp.reduce(alpha[-1])
    np.testing.assert_allclose(log_z, want, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(posterior, 0.5 * np.exp(alpha + beta - want), rtol=1e-9, atol=1e-12)
    of_pairs = [np.exp(alpha[t - 1][:, None] + pair + (scores[t] + beta[t])[None] - want) for t in range(1, length)]
    np.testing.assert_allclose(sums * table, 0.5 * np.sum(of_pairs, axis=0), rtol=1e-9, atol=1e-12)
