"""What the machine has."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

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
