"""Noticing that kernels are compiled: on the first run after installing, and after a change of processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from vcrf.kernels._cache import are_kept
from vcrf.kernels._notice import NOTICE

__all__ = ["CompileTime", "are_kept", "watch_compiling"]


class CompileTime(event.Listener):
    """Seconds spent compiling so far; nested compilations count once."""

    def __init__(self, on_first: Callable[[], None]) -> None:
        self.seconds = 0.0
        self._on_first = on_first
        self._has_begun = False
        self._depth = 0
        self._began = 0.0

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        if not self._has_begun:
            self._has_begun = True
            self._on_first()
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began


@contextmanager
def watch_compiling(on_first: Callable[[], None]) -> Iterator[CompileTime]:
    """Call `on_first` when the first kernel is compiled (not found on disk), and measure the time."""
    spent = CompileTime(on_first)
    NOTICE.n_silent += 1
    event.register("numba:compile", spent)  # type: ignore[no-untyped-call]
    try:
        yield spent
    finally:
        NOTICE.n_silent -= 1
        event.unregister("numba:compile", spent)  # type: ignore[no-untyped-call]
