"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from vcrf.errors import InputError, WriteError

# Only Linux can open a file without a name, which goes away with its process.
_UNNAMED = getattr(os, "O_TMPFILE", 0)
_DRAFTS = ".*.vcrf.tmp"
# Where there are no locks to tell whose process is dead, a draft that nobody has written to for an hour is stale.
_STALE_SECONDS = 3600.0

_ELSEWHERE = "choose a path on another disk"
_ADVICE = {
    errno.ENOSPC: f"Free some space, or {_ELSEWHERE}.",
    errno.EFBIG: f"Raise the limit on the size of files (`ulimit -f`), or {_ELSEWHERE}.",
    errno.EIO: f"The disk or the connection to it fails: {_ELSEWHERE}.",
    errno.EROFS: f"The disk is mounted for reading only: {_ELSEWHERE}.",
    getattr(errno, "EDQUOT", errno.ENOSPC): f"Free some space or have your quota raised, or {_ELSEWHERE}.",
}


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
    """Open a new file, without a name or under another one; at the end it is synced and moved to `path`.

    On an error it is gone. What a kill leaves of others in the directory is removed first.

    Raises
    ------
    InputError
        When the path cannot be a file.
    WriteError
        When there is no space, and the like; the old file is then as it was.
    """
    target = check_target(path)
    remove_stale_drafts(target.parent)
    with naming(str(path)):
        with contextlib.ExitStack() as stack:
            file, draft = _open_draft(target.parent, stack)
            yield file
            file.flush()
            if target.exists():
                _copy_mode(target, file, draft)
            os.fsync(file.fileno())
            if draft is None:
                draft = _give_name(file, target.parent, stack)
            _move(file, draft, target)
        _sync_directory(target.parent)


# Names of files that are compressed.
COMPRESSED = (".gz", ".bz2", ".xz")


@contextlib.contextmanager
def replacing_text(path: Path) -> Iterator[BinaryIO]:
    """Do as `replacing` for text, compressed where the name says so (.gz, .bz2, .xz); the same text, the same bytes."""
    with replacing(path) as file, _compressing(file, path.suffix.lower()) as text:
        yield text


def _compressing(file: BinaryIO, suffix: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """What writes to a file in the format of a suffix; closing it leaves the file open."""
    found: Any = contextlib.nullcontext(file)
    if suffix == ".gz":
        import gzip

        found = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)  # neither name nor time
    elif suffix == ".bz2":
        import bz2

        found = bz2.BZ2File(file, "wb")
    elif suffix == ".xz":
        import lzma

        found = lzma.LZMAFile(file, "wb")  # noqa: SIM115 - the caller closes it
    return cast("contextlib.AbstractContextManager[BinaryIO]", found)


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Complete the system's word on a failed write by what was written, and by what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in _ADVICE or isinstance(error, WriteError):
            raise
        raise write_error(name, error) from error


def write_error(name: str, error: OSError) -> WriteError:
    """The error that says which output could not be written, and what to do."""
    advice = _ADVICE.get(error.errno or 0, "Choose another path.")
    told = WriteError(f"{name}: cannot be written: {error.strerror or error}. {advice}")
    told.errno = error.errno
    return told


def remove_stale_drafts(directory: Path) -> None:
    """Remove drafts whose process was killed; those of living ones are locked."""
    for draft in directory.glob(_DRAFTS):
        with contextlib.suppress(OSError):  # of another user, or gone: it is only tidying up
            _remove_if_stale(draft)


# ------------------------------------------------------------------------------------ drafts


def _open_draft(directory: Path, stack: contextlib.ExitStack) -> tuple[BinaryIO, Path | None]:
    """A new file, locked, and its name if it has to have one; the stack closes and removes it."""
    if _UNNAMED:
        # Not all file systems have them; whatever else is wrong, a draft with a name tells.
        with contextlib.suppress(OSError):
            file: BinaryIO = stack.enter_context(
                os.fdopen(os.open(directory, _UNNAMED | os.O_RDWR | os.O_CLOEXEC, 0o666), "w+b")
            )
            _lock(file)
            return file, None
    return _open_named_draft(directory, stack)


def _open_named_draft(directory: Path, stack: contextlib.ExitStack) -> tuple[BinaryIO, Path]:
    while True:
        draft = _new_name(directory)
        stack.callback(draft.unlink, missing_ok=True)
        file = stack.enter_context(draft.open("x+b"))
        # Before it was locked, another process may have taken it for stale.
        if _lock(file) and draft.exists():
            return file, draft


def _give_name(file: BinaryIO, directory: Path, stack: contextlib.ExitStack) -> Path:
    """Name a file that has none: only a name can be moved over another."""
    draft = _new_name(directory)
    stack.callback(draft.unlink, missing_ok=True)
    try:
        os.link(f"/proc/self/fd/{file.fileno()}", draft, follow_symlinks=True)
    except OSError:  # no /proc, or a file system that cannot: a copy does too
        copy, draft = _open_named_draft(directory, stack)
        file.seek(0)
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.fchmod(copy.fileno(), stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        os.fsync(copy.fileno())
    return draft


def _new_name(directory: Path) -> Path:
    return directory / f".{secrets.token_hex(8)}.vcrf.tmp"


def _copy_mode(target: Path, file: BinaryIO, draft: Path | None) -> None:
    mode = stat.S_IMODE(target.stat().st_mode)
    if draft is None:
        os.fchmod(file.fileno(), mode)
    else:
        draft.chmod(mode)


def _move(file: BinaryIO, draft: Path, target: Path) -> None:
    if os.name == "nt":  # an open file cannot be moved there
        file.close()
    draft.replace(target)


def _lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed, where that can be done; False if another process has done so."""
    try:
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows; a file system without locks, where no draft is found stale either
        pass
    return True


def _remove_if_stale(draft: Path) -> None:
    try:
        import fcntl
    except ImportError:
        if time.time() - draft.stat().st_mtime > _STALE_SECONDS:
            draft.unlink()
        return
    # Not through a link, which may lead to a device that waits.
    handle = os.open(draft, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.unlink()  # with the lock: who has just made it sees that it is gone
    finally:
        os.close(handle)


def _sync_directory(directory: Path) -> None:
    """Make the move itself last, where a directory can be synced (not on Windows)."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
