"""What the machine has."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

# What mallopt takes: arrays of so many bytes get pages of their own, and so many free bytes stay with the process.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGE, _MOST_FREE = 1 << 21, 1 << 23
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def total_memory() -> float:
    """Bytes of memory that this process can have; infinite where that is not known."""
    found = math.inf
    with suppress(AttributeError, ValueError, OSError):  # not on Windows
        found = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _LIMITS:  # of a container; "max" is none
        with suppress(OSError, ValueError):
            found = min(found, float(Path(path).read_text(encoding="ascii")))
    return found


def give_memory_back() -> None:
    """Have memory of large arrays go back to the system as soon as nobody holds them, where that can be said.

    glibc learns from the first large ones that are let go to keep the next: a tenth of the peak of a training.
    """
    import ctypes

    with suppress(OSError, AttributeError):  # another libc, or none to ask
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(_MMAP_THRESHOLD, _LARGE)
        libc.mallopt(_TRIM_THRESHOLD, _MOST_FREE)
