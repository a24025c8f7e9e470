"""How kernels are compiled: each by its own rules, whoever calls it first."""

from __future__ import annotations

from vcrf.kernels._jit import fast_kernel, kernel

_ROUND = 6755399441055744.0


@kernel
def _rounded(x):
    """To the next integer; were sums reordered, nothing would be left of it."""
    return (x + _ROUND) - _ROUND


@fast_kernel
def _caller(x):
    return _rounded(x)


def test_a_kernel_called_first_by_a_fast_one_keeps_the_order_of_its_sums():
    """Else the caller's fast arithmetic would be handed on to it, and kept for all other callers."""
    assert _caller(0.3) == 0.0
    assert _rounded(0.3) == 0.0
    assert _rounded(2.6) == 3.0
