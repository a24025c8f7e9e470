"""Products in registers against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from vcrf.kernels.vectors import WIDEST, products


@pytest.mark.parametrize("size", [*range(1, WIDEST + 8), 70])
def test_products_equal_numpy_and_write_nothing_else(size):
    """Sizes that 4 does not divide have a last register that overlaps the one before; large ones have loops."""
    draw = np.random.default_rng(size)
    matrix, x = draw.normal(size=3 + size * size), draw.normal(size=2 + size)
    out = np.full(5 + size + 5, np.pi)
    products(matrix, 3, x, 2, out, 5, size)
    np.testing.assert_allclose(out[5:-5], x[2:] @ matrix[3:].reshape(size, size), rtol=1e-13, atol=1e-13)
    assert np.all(out[:5] == np.pi)
    assert np.all(out[-5:] == np.pi)
