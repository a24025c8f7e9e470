"""What compiles for long is told of once, whoever calls the library."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vcrf import kernels
from vcrf.kernels import _notice


def compiling(module: str) -> Any:
    """The event of a function's compilation."""
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


@pytest.mark.parametrize(
    ("module", "n_silent", "n_lines"), [("vcrf.kernels.x", 0, 1), ("user", 0, 0), ("vcrf.x", 1, 0)]
)
def test_long_compiling_is_told_once(
    module: str, n_silent: int, n_lines: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of vcrf's own kernels, before the long one ends, unless a command tells of it itself."""
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(_notice.time, "perf_counter", lambda: float(next(clock)))
    notice = _notice.Notice()
    notice.n_silent = n_silent
    notice.on_start(compiling(module))
    for _ in range(3):
        notice.on_start(compiling("numba.np"))
        notice.on_end(compiling("numba.np"))
    notice.on_end(compiling(module))
    notice.on_start(compiling(module))
    notice.on_end(compiling(module))
    assert len(caplog.records) == n_lines
    assert all("`vcrf info --compile` does it ahead" in record.message for record in caplog.records)


def test_commands_tell_of_it_themselves() -> None:
    """While they watch, the log is silent."""
    with kernels.compiling.watch_compiling(lambda: None):
        assert _notice.NOTICE.n_silent > 0
    assert _notice.NOTICE.n_silent == 0
