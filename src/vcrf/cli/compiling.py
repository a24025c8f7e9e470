"""Loading the compiler quickly, and telling the user that the first run compiles."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vcrf import kernels
from vcrf.cli.output import say


@contextmanager
def compile_notice(then: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Say once that kernels are being compiled, and afterwards how long that took; `then` is called when it begins.

    A user need not know what a kernel is: that the program gets ready, how long that may take, and that it is once.
    """

    def tell() -> None:
        are_kept = kernels.compiling.are_kept()
        then()
        say(f"Preparing this part of the program for this machine{', once' if are_kept else ''}: up to a minute.")

    with kernels.compiling.watch_compiling(tell) as spent:
        yield
    if spent.seconds > 0.0:
        say(f"Prepared in {spent.seconds:.0f} s.")


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


class Beside:
    """Another process that compiles what is needed later, where there is a core for it and kernels are kept."""

    def __init__(self, call: str) -> None:
        """`call` is a function without arguments, as module:name."""
        self._call = call
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin; what both compile at once is compiled twice, and kept once."""
        from vcrf.arguments.running import n_threads

        if n_threads(None) < 2 or not kernels.compiling.are_kept():
            return
        module, _, name = self._call.partition(":")
        command = [sys.executable, "-P", "-c", f"from {module} import {name}; {name}()"]
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null)

    def end(self) -> None:
        """End it, wherever it is."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
