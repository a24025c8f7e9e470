"""The one place where numba is configured: every compiled loop of vcrf is decorated here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import types

from vcrf.kernels._cache import cache_of

F = TypeVar("F", bound=Callable[..., Any])

# Reassociation and fused multiply-add let sums be vectorised. NaN and infinity keep their meaning
# (forbidden arcs are -inf), so "nnan" and "ninf" stay off.
_FAST = {"reassoc", "contract", "arcp", "nsz"}


# Nobody calls a kernel from C.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: F) -> F:
    """Compile a plain function on arrays: cached on disk, GIL released, IEEE semantics."""
    return _compiled(function)


def inner_kernel(function: F) -> F:
    """Like `kernel`, for what only kernels call: without what Python would call it by, which takes time to compile."""
    return _compiled(function, no_cpython_wrapper=True)


def fast_kernel(function: F) -> F:
    """Like `kernel`, and sums may be reordered (the same way on every run).

    Inlined into its callers: else the run that compiles would call the function compiled by itself, later runs the copy
    in the caller's cached code, and the two may order sums differently.
    """
    return _compiled(function, fastmath=_FAST, forceinline=True)


def inner_fast_kernel(function: F) -> F:
    """Like `fast_kernel`, for what only kernels call."""
    return _compiled(function, fastmath=_FAST, forceinline=True, no_cpython_wrapper=True)


def outer_fast_kernel(function: F) -> F:
    """Like `fast_kernel`, for what no kernel calls: nothing to inline, and one copy to compile."""
    return _compiled(function, fastmath=_FAST)


def _compiled(function: F, *, fastmath: Any = False, forceinline: bool = False, **options: Any) -> F:
    # Both are said even where they are off: what is left open numba takes from the caller that is being compiled, and
    # machine code would depend on who calls first.
    compiled: Any = numba.njit(fastmath=fastmath, forceinline=forceinline, **_OPTIONS, **options)(function)
    if hasattr(compiled, "enable_caching"):  # not with NUMBA_DISABLE_JIT=1, for debugging
        # As cache=True does, but a cache that cannot be had is no error.
        compiled._cache = cache_of(function)
        compiled.get_call_template = _without_literals(compiled.get_call_template)
    return cast(F, compiled)


def _without_literals(get_call_template: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """What kernels ask for when they call another: a number written in the call would make numba compile it anew."""
    unliteral: Any = types.unliteral

    def plain(kind: Any) -> Any:
        return unliteral(kind) if isinstance(kind, types.Literal) else kind

    def ask(args: Any, kws: Any) -> Any:
        return get_call_template(tuple(map(plain, args)), {name: plain(kind) for name, kind in dict(kws).items()})

    return ask
