"""Threads: a loop is cut into fixed blocks, whatever the number of threads, so that results do not depend on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from vcrf.types import Ints


class Workers:
    """Runs the blocks of a loop on a few threads; kernels release the GIL."""

    def __init__(self, threads: int) -> None:
        self.threads = max(1, threads)
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def run(self, function: Callable[[int, int], object], bounds: Sequence[int]) -> None:
        """Call function(first, last) for each block between two bounds."""
        blocks = [(a, b) for a, b in pairwise(bounds) if b > a]
        if self._pool is None or len(blocks) < 2:
            for a, b in blocks:
                function(a, b)
        else:
            for _ in self._pool.map(lambda block: function(*block), blocks):
                pass

    def run_each(self, function: Callable[[int], object], items: Sequence[int]) -> None:
        """Call function(item) for each of some items."""
        if self._pool is None or len(items) < 2:
            for item in items:
                function(item)
        else:
            for _ in self._pool.map(function, items):
                pass

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def cut(ptr: Ints, n_blocks: int) -> list[int]:
    """Bounds of blocks of rows with about the same number of entries each; `ptr` may be a part of the pointers."""
    targets = np.linspace(ptr[0], ptr[-1], n_blocks + 1)[1:-1]
    inner = np.searchsorted(ptr, targets).tolist()
    return sorted({0, *inner, len(ptr) - 1})


class _Blas:
    """The libraries of this process, and how many now want one thread of them.

    Limits are set and lifted by a thread of their own: only the thread that has set one can lift it.
    """

    def __init__(self) -> None:
        self._lock, self._n, self._limited = threading.Lock(), 0, ExitStack()

    @cached_property
    def _controller(self) -> Any:
        """Looking for libraries takes longer than a pass."""
        import scipy.linalg  # noqa: F401 - it has a library of its own, which has to be there to be found
        from threadpoolctl import ThreadpoolController

        return ThreadpoolController()

    def limit(self) -> None:
        with self._lock:
            self._n += 1
            if self._n == 1:
                thread = self._limited.enter_context(ThreadPoolExecutor(1))
                limit = thread.submit(self._controller.limit, limits=1).result()
                thread.submit(limit.__enter__).result()
                self._limited.callback(lambda: thread.submit(limit.__exit__, None, None, None).result())

    def restore(self) -> None:
        with self._lock:
            self._n -= 1
            if self._n == 0:
                self._limited.close()


_BLAS = _Blas()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One BLAS thread: sums of more would depend on their number, and spin on the cores that passes need.

    Until the last of several threads of this process that are inside has left.
    """
    _BLAS.limit()
    try:
        yield
    finally:
        _BLAS.restore()
