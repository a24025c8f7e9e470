"""Where compiled kernels are kept: as numba does it, but whatever is wrong with the disk costs time alone."""

from __future__ import annotations

import functools
import hashlib
import logging
import multiprocessing
import os
import re
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

_log = logging.getLogger("vcrf.kernels")

_HOW = "Set NUMBA_CACHE_DIR to a directory that can be written to keep them."


class _KernelCache(FunctionCache):
    """numba's cache of one kernel; what cannot be read is compiled, what cannot be written is not kept.

    Machine code holds that of the kernels it calls. numba looks at a kernel's own file alone: here a change in any file
    that this one imports kernels from makes it compile again, or an upgrade would go on with parts of the old version.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        stamp = source_stamp(Path(function.__code__.co_filename))
        self._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call]
            cache_path=self._cache_path, filename_base=self._impl.filename_base, source_stamp=stamp
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001 - a file that is damaged raises whatever it likes
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call] # else it could not be written again either
            return None
        # Two processes that fill an empty cache at once may give one file to two signatures.
        return found if found is None or found.signature.args == tuple(sig) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            _say_once(f"Compiled kernels cannot be written to {self.cache_path}: {error.strerror or error}. {_HOW}")


@functools.cache
def source_stamp(path: Path) -> str:
    """A checksum of a file and of all files of kernels that it imports, directly or not."""
    files, found = {path}, [path]
    while found:
        new = {Path(__file__).with_name(f"{name}.py") for name in _imported(found.pop())} - files
        files |= new
        found.extend(new)
    return hashlib.sha256(b"".join(sorted(map(_digest, files)))).hexdigest()


@functools.cache
def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


@functools.cache
def _imported(path: Path) -> frozenset[str]:
    """Modules of kernels that a file imports from. Written in one way, which `tests/kernels/test_cache.py` checks."""
    return frozenset(re.findall(r"^from vcrf\.kernels\.(\w+) import", path.read_text("utf-8"), re.MULTILINE))


def cache_of(function: Callable[..., Any]) -> Any:
    """The cache of a kernel: where numba keeps it, else among the temporary files, else none."""
    try:
        return _KernelCache(function)
    except RuntimeError:  # neither the package nor the home directory can be written
        pass
    directory = _fallback()
    if directory is None:
        return NullCache()
    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, str(directory)
    try:
        return _KernelCache(function)
    except RuntimeError:  # the kernel has no source file, as in some bundles
        return NullCache()
    finally:
        config.CACHE_DIR = before


def are_kept() -> bool:
    """Whether kernels compiled now will be found by later processes, as far as is known."""
    return _fallback.cache_info().currsize == 0 or _fallback() is not None


@functools.cache
def _fallback() -> Path | None:
    """A directory for temporary files that is the user's own, told to the user; None if there is none."""
    where = "Neither the directory of vcrf nor that of numba's cache can be written: compiled kernels are kept "
    try:
        directory = Path(tempfile.gettempdir()) / f"vcrf-kernels-{os.getuid() if hasattr(os, 'getuid') else 0}"
        directory.mkdir(mode=0o700, exist_ok=True)
        is_good = _is_own(directory) and os.access(directory, os.W_OK)
    except OSError:
        is_good = False
    if not is_good:
        _say_once(f"{where}nowhere, and each process compiles them anew. {_HOW}")
        return None
    _say_once(f"{where}in {directory}, which may be emptied at any time. {_HOW}")
    return directory


def _is_own(directory: Path) -> bool:
    """Whether nobody else can put code there for us to run."""
    if os.name == "nt":  # the temporary files there are the user's own
        return True
    found = directory.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


@functools.cache
def _say_once(message: str) -> None:
    # A process that another one started would only repeat it.
    if multiprocessing.parent_process() is None:
        _log.warning(message)
