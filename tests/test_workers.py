"""Threads of this process, and those of BLAS."""

from __future__ import annotations

import threading

import numpy as np
from threadpoolctl import threadpool_info

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


def test_a_part_of_the_pointers_is_cut_evenly() -> None:
    """Also where it begins in the middle."""
    ptr = np.array([0, 4, 8, 12, 16, 20, 24, 28, 32])
    assert cut(ptr, 4) == [0, 2, 4, 6, 8]
    assert cut(ptr[4:], 2) == [0, 2, 4]
