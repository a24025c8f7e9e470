"""The one place where numba is configured: every compiled loop of vcrf is decorated here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

# Reassociation and fused multiply-add let sums be vectorised. NaN and infinity keep their meaning
# (forbidden arcs are -inf), so "nnan" and "ninf" stay off.
_FAST = {"reassoc", "contract", "arcp", "nsz"}


def kernel(function: F) -> F:
    """Compile a plain function on arrays: cached on disk, GIL released, IEEE semantics."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast(F, compiled)


def fast_kernel(function: F) -> F:
    """Like `kernel`, and sums may be reordered (the same way on every run).

    Inlined into its callers: else the run that compiles would call the function compiled by itself, later runs the copy
    in the caller's cached code, and the two may order sums differently.
    """
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST, forceinline=True)(function)
    return cast(F, compiled)
