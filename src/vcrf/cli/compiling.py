"""Telling the user that the first run compiles, and how long it took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vcrf.cli.output import say


@contextmanager
def compile_notice() -> Iterator[None]:
    """Say once that kernels are being compiled, and afterwards how long that took."""
    from vcrf.kernels.compiling import watch_compiling

    with watch_compiling(
        lambda: say("Compiling kernels: only on the first run, later ones find them on disk.")
    ) as spent:
        yield
    if spent.seconds > 0.0:
        say(f"Compiled in {spent.seconds:.1f} s.")
