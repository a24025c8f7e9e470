"""Threads of this process, and those of BLAS."""

from __future__ import annotations

import threading
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_info

from vcrf import M3N, VCRF
from vcrf.surrogates.smooth import SmoothObjective
from vcrf.workers import cut, one_blas_thread


def blas_threads() -> set[int]:
    """Of all libraries."""
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


def test_one_blas_thread_until_the_last_has_left() -> None:
    """Whoever came first may leave first; what was there before comes back."""
    before, both, left, seen = blas_threads(), threading.Barrier(2, timeout=60), threading.Event(), []

    def leave_first() -> None:
        with one_blas_thread():
            both.wait()
        left.set()

    def leave_last() -> None:
        with one_blas_thread():
            both.wait()
            left.wait(60)
            seen.append(blas_threads())

    threads = [threading.Thread(target=target) for target in (leave_first, leave_last)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [{1}]
    assert blas_threads() == before


def look_before(at: Callable[..., object], look: Callable[..., None]) -> Callable[..., object]:
    """The same, looked at before."""

    def found(*given: object) -> object:
        look()
        return at(*given)

    return found


def test_every_run_of_a_solver_has_one_blas_thread() -> None:
    """Passes that a run makes of its own, too, between those of the solver that it calls."""
    seen: list[set[int]] = []

    def look(*_: object) -> None:
        seen.append(blas_threads())

    X, y = [["a", "b"], ["b", "c", "a"]], [["P", "Q"], ["Q", "Q", "P"]]
    VCRF(norm="family", base_strength=0.1, affix=1, n_jobs=1, callback=look).fit(X, y)
    M3N(affix=1, n_jobs=1, callback=look).fit(X, y)
    tagger = VCRF(norm="l1", radius=0.1, base_strength=1.0, affix=1, n_jobs=1, callback=look)
    with patch("vcrf.surrogates.smooth.SmoothObjective.at", look_before(SmoothObjective.at, look)):
        tagger.fit(X, y)
    assert len(seen) > 3
    assert set.union(*seen) == {1}


def test_a_part_of_the_pointers_is_cut_evenly() -> None:
    """Also where it begins in the middle."""
    ptr = np.array([0, 4, 8, 12, 16, 20, 24, 28, 32])
    assert cut(ptr, 4) == [0, 2, 4, 6, 8]
    assert cut(ptr[4:], 2) == [0, 2, 4]
