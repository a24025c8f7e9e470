"""Arrays that grow with the data: in memory, or in files when there is a budget for memory.

    with Scratch(2_000_000_000):
        a = scratch.empty(10**9, np.uint32)     # in a file without a name; outside of a Scratch: numpy.empty

A file is mapped into memory, so that kernels and numpy see an array like any other, and every sum is the same to the
last bit. What has been touched is resident; as soon as the process has more resident than its budget, all pages of such
files are let go, and come back from the system's cache, or from the disk, when they are touched again. Files have no
name: nothing is left of them, whatever ends the process.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vcrf.errors import InputError, WriteError

_UNITS = {"": 1, **{f"{letter}{end}": 1000**i for i, letter in enumerate("KMGT", 1) for end in ("", "B")}}
_UNITS |= {f"{letter}IB": 1024**i for i, letter in enumerate("KMGT", 1)} | {"B": 1}
# Smaller arrays are in memory.
_LEAST_BYTES = 1 << 18
# Arrays that nobody holds any more are kept for the next of the same size: new pages cost more than old ones.
_MOST_SPARE = 4
# So often the resident memory is looked at, and no pages are let go for less than so many bytes.
_SECONDS, _WORTH = 0.02, 1 << 25

_active: ContextVar[Scratch | None] = ContextVar("scratch", default=None)


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """As `numpy.empty`."""
    scratch = _active.get()
    return np.empty(shape, dtype) if scratch is None else scratch.array(shape, np.dtype(dtype), is_zero=False)


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """As `numpy.zeros`."""
    scratch = _active.get()
    return np.zeros(shape, dtype) if scratch is None else scratch.array(shape, np.dtype(dtype), is_zero=True)


def keep(array: NDArray[Any]) -> NDArray[Any]:
    """The array, or a copy of it in a file."""
    if _active.get() is None or array.nbytes < _LEAST_BYTES:
        return array
    out = empty(array.shape, array.dtype)
    out[...] = array
    return out


def concatenate(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """As `numpy.concatenate`."""
    out = empty((sum(len(array) for array in arrays), *arrays[0].shape[1:]), np.result_type(*arrays))
    return np.concatenate(arrays, out=out)


def read_size(value: object) -> int:
    """Bytes of "2GB", "500 MB", "1.5GiB" or a number of bytes."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    text = value.strip().upper() if isinstance(value, str) else ""
    digits = text.rstrip("BIKMGT ")
    unit = text[len(digits) :].strip()
    with suppress(ValueError, KeyError, OverflowError):
        size = int(float(digits) * _UNITS[unit])
        if size > 0:
            return size
    raise InputError(f"`memory={value}`: expected a size such as 2GB, 500MB or 1.5GiB, or a number of bytes.")


@contextmanager
def within(memory: object) -> Iterator[None]:
    """A context with a budget, None for none; one that is inside of another has the arrays of that."""
    if memory is None or _active.get() is not None:
        yield
        return
    with Scratch(read_size(memory)):
        yield


def check_room(n_bytes: float) -> None:
    """Refuse to begin what will not fit on the disk, if arrays are in files."""
    scratch = _active.get()
    if scratch is not None:
        scratch.check_room(n_bytes)


def room() -> float:
    """Bytes that are free for files; 0 where arrays are in memory."""
    scratch = _active.get()
    return 0.0 if scratch is None else float(shutil.disk_usage(scratch.directory).free)


class Scratch:
    """Within it arrays of this module are in files, and the process has about so many bytes resident.

    Parameters
    ----------
    budget : bytes
    directory : where the files are; by default that of the system for temporary files (TMPDIR)

    Attributes
    ----------
    used, peak : bytes in files now, and at most
    """

    def __init__(self, budget: int, directory: Path | None = None) -> None:
        self.budget = budget
        self.directory = Path(tempfile.gettempdir()) if directory is None else directory
        self.used = self.peak = 0
        self._maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        self._spare: list[mmap.mmap] = []
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> Scratch:
        self._stack.callback(_active.reset, _active.set(self))
        keeper = threading.Thread(target=self._keep_resident_small, daemon=True)
        self._stack.callback(keeper.join)
        self._stack.callback(self._is_over.set)
        keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._spare.clear()

    def check_room(self, n_bytes: float) -> None:
        """Refuse to begin what will not fit on the disk."""
        free = shutil.disk_usage(self.directory).free
        if n_bytes > free:
            raise self._full(f"about {n_bytes / 1e6:,.0f} MB are needed, {free / 1e6:,.0f} MB are free")

    def array(self, shape: int | tuple[int, ...], dtype: np.dtype[Any], is_zero: bool) -> NDArray[Any]:
        """An array in a file, if it is large."""
        n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if n_bytes < _LEAST_BYTES:
            return np.zeros(shape, dtype)
        with self._lock:
            found = next((i for i, spare in enumerate(self._spare) if len(spare) == n_bytes), None)
            block = None if found is None else self._spare.pop(found)
        is_new = block is None
        block = self._new(n_bytes) if block is None else block
        flat = np.frombuffer(block, dtype)
        weakref.finalize(flat, self._give_back, block).atexit = False
        out = flat.reshape(shape)
        if is_zero and not is_new:
            out[...] = 0
        return out

    def _new(self, n_bytes: int) -> mmap.mmap:
        try:
            with tempfile.TemporaryFile(dir=self.directory, buffering=0) as file:
                if hasattr(os, "posix_fallocate"):  # else a full disk would end the process when a page is written
                    os.posix_fallocate(file.fileno(), 0, n_bytes)
                else:
                    file.truncate(n_bytes)
                block = mmap.mmap(file.fileno(), n_bytes)
        except OSError as error:
            raise self._full(error.strerror or str(error)) from error
        with self._lock:
            self._maps.add(block)
            self.used += n_bytes
            self.peak = max(self.peak, self.used)
        weakref.finalize(block, self._forget, n_bytes).atexit = False
        return block

    def _give_back(self, block: mmap.mmap) -> None:
        # Not under the lock: the collector may call this in the middle of anything.
        if not self._is_over.is_set() and len(self._spare) < _MOST_SPARE:
            self._spare.append(block)

    def _forget(self, n_bytes: int) -> None:
        self.used -= n_bytes

    def _full(self, reason: str) -> WriteError:
        return WriteError(
            f"{self.directory}: no room for the files of `memory`: {reason}. Free some space there, or set TMPDIR to a "
            "directory on a larger disk."
        )

    # ----- resident memory

    def _keep_resident_small(self) -> None:
        while not self._is_over.wait(_SECONDS):
            resident, in_files = resident_bytes()
            if resident > self.budget and in_files > _WORTH:
                self.trim()

    def trim(self) -> None:
        """Let go of all pages: what was written to them is in the system's cache, and on its way to the disk."""
        if not hasattr(mmap.mmap, "madvise"):  # Windows trims by itself
            return
        with self._lock:
            blocks = list(self._maps)
        for block in blocks:
            block.madvise(mmap.MADV_DONTNEED)


def resident_bytes() -> tuple[int, int]:
    """Resident bytes of the process, and those of them that are of files; without /proc as many as there can be."""
    try:
        fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except OSError:
        return 1 << 62, 1 << 62
    page = mmap.PAGESIZE
    return int(fields[1]) * page, int(fields[2]) * page
