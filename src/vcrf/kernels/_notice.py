"""One line in the log when a program has waited some seconds for kernels to be compiled, and nobody has said why."""

from __future__ import annotations

import logging
import time
from typing import Any

from numba.core import event

from vcrf.kernels._cache import are_kept

_log = logging.getLogger("vcrf.kernels")

# Seconds of compiling, all kernels together, that need no explanation.
PATIENCE = 3.0


class Notice(event.Listener):
    """Adds up the time; what users compile of their own does not count.

    Attributes
    ----------
    n_silent : how many others tell of it just now
    """

    def __init__(self) -> None:
        self.n_silent = 0
        self._spent, self._began, self._depth = 0.0, 0.0, 0
        self._is_ours = self._is_said = False

    def on_start(self, event: Any) -> None:
        """A kernel, or one that it calls: a long one is told of before it ends."""
        if self._depth == 0:
            function = getattr(event.data.get("dispatcher"), "py_func", None)
            self._is_ours = (getattr(function, "__module__", None) or "").startswith("vcrf.")
            self._began = time.perf_counter()
        self._depth += 1
        self._look()

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        """The end of one of them."""
        self._look()
        self._depth -= 1
        if self._depth == 0 and self._is_ours:
            self._spent += time.perf_counter() - self._began

    def _look(self) -> None:
        if self._is_said or self.n_silent or not self._is_ours:
            return
        if self._spent + time.perf_counter() - self._began > PATIENCE:
            self._is_said = True
            _log.warning(
                "vcrf compiles what is used for the first time on this machine%s: up to a minute. "
                "`vcrf info --compile` does it ahead.",
                ", once" if are_kept() else "",
            )


NOTICE = Notice()
event.register("numba:compile", NOTICE)  # type: ignore[no-untyped-call]
