"""Loading the compiler quickly, and telling the user that the first run compiles."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from vcrf import kernels
from vcrf.cli.output import say


@contextmanager
def compile_notice() -> Iterator[None]:
    """Say once that kernels are being compiled, and afterwards how long that took."""

    def tell() -> None:
        are_kept = kernels.compiling.are_kept()
        say("Compiling kernels" + (": only on the first run, later ones find them on disk." if are_kept else " ..."))

    with kernels.compiling.watch_compiling(tell) as spent:
        yield
    if spent.seconds > 0.0:
        say(f"Compiled in {spent.seconds:.1f} s.")


def load_numba_without_scipy() -> None:
    """Import numba without scipy, which would take a sixth of the time of a short `vcrf tag`.

    numba imports scipy.linalg only to see whether there is a BLAS, and no kernel of ours uses one. Kernels of others
    that do could not be compiled any more: so this is for a process that is ours, not for the library.
    """
    if "scipy" in sys.modules or "numba" in sys.modules:
        return
    sys.modules["scipy"] = None  # type: ignore[assignment] # an import of it now fails
    try:
        import numba.np.arraymath  # noqa: F401 # it looks for the BLAS
    finally:
        del sys.modules["scipy"]
