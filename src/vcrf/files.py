"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from vcrf.errors import InputError


def check_target(path: Path) -> Path:
    """Return the file that a path leads to; raise InputError when it cannot be written."""
    target = path.resolve()  # a link stays and leads to the new file
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no directory {target.parent}. Create it first, or choose another path.")
    if target.exists() and not target.is_file():
        raise InputError(f"{path}: not a regular file. Choose another path.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{path}: the directory {target.parent} cannot be written. Choose another path.")
    return target


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file under another name; at the end it is synced and moved to `path`, on an error removed.

    Raises
    ------
    InputError
        When the path cannot be a file.
    OSError
        When writing fails; the old file is then as it was.
    """
    target = check_target(path)
    draft = target.with_name(f".{secrets.token_hex(8)}.vcrf.tmp")
    try:
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        draft.replace(target)
    except BaseException:  # Ctrl-C too: no draft stays behind; nothing is swallowed
        draft.unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


def _sync_directory(directory: Path) -> None:
    """Make the move itself last, where a directory can be synced (not on Windows)."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
