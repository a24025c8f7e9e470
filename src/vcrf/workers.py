"""Threads: a loop is cut into fixed blocks, whatever the number of threads, so that results do not depend on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

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
    """Bounds of blocks of rows with about the same number of entries each."""
    targets = np.linspace(0, ptr[-1], n_blocks + 1)[1:-1]
    inner = np.searchsorted(ptr, targets).tolist()
    return sorted({0, *inner, len(ptr) - 1})
