"""Files that are written whole or not at all."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import environment
from vcrf import files
from vcrf.errors import WriteError
from vcrf.files import replacing, replacing_text

posix = pytest.mark.skipif(os.name == "nt", reason="signals and locks")

# Writes to a file and is killed, or waits, before that is complete.
WRITER = """
import os, signal, sys
from pathlib import Path
from vcrf import files
if sys.argv[2] == "named":
    files._UNNAMED = 0
with files.replacing(Path(sys.argv[1])) as file:
    file.write(b"half of")
    file.flush()
    if sys.argv[3] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    print("ready", flush=True)
    sys.stdin.read()
"""


def writer(path: Path, kind: str, end: str) -> subprocess.Popen[bytes]:
    """Start a process that writes to the path."""
    command = [sys.executable, "-c", WRITER, str(path), kind, end]
    return subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def names(directory: Path) -> list[str]:
    """What lies in a directory."""
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture(params=["unnamed", "named"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Drafts without a name, where the system has them, and with one."""
    if request.param == "named":
        monkeypatch.setattr(files, "_UNNAMED", 0)
    return str(request.param)


@pytest.mark.usefixtures("kind")
def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    """Nothing else stays in the directory; a new file has the mode of any other."""
    old, new, other = tmp_path / "old", tmp_path / "new", tmp_path / "other"
    old.write_text("old")
    old.chmod(0o640)
    other.write_text("any")
    for path in (old, new):
        with replacing(path) as file:
            file.write(b"new")
    assert old.read_bytes() == new.read_bytes() == b"new"
    assert (old.stat().st_mode & 0o777, new.stat().st_mode) == (0o640, other.stat().st_mode)
    assert names(tmp_path) == ["new", "old", "other"]


@pytest.mark.usefixtures("kind")
def test_an_error_leaves_the_old_file_alone(tmp_path: Path) -> None:
    """And no draft."""
    (tmp_path / "old").write_text("old")
    with pytest.raises(TypeError, match="bytes-like"), replacing(tmp_path / "old") as file:
        file.writelines([b"new", None])  # type: ignore[list-item]
    assert names(tmp_path) == ["old"]
    assert (tmp_path / "old").read_text() == "old"


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name")
def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    """A draft without a name ends with its process."""
    try:
        os.close(os.open(tmp_path, os.O_TMPFILE | os.O_RDWR))
    except OSError:
        pytest.skip("this file system has none")
    (tmp_path / "old").write_text("old")
    process = writer(tmp_path / "old", "unnamed", "kill")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert names(tmp_path) == ["old"]
    assert (tmp_path / "old").read_text() == "old"


@posix
def test_the_next_write_removes_what_a_kill_has_left(tmp_path: Path) -> None:
    """But not the draft of a process that is alive."""
    living = writer(tmp_path / "a", "named", "wait")
    assert living.stdout is not None
    assert living.stdout.readline() == b"ready\n"
    killed = writer(tmp_path / "b", "named", "kill")
    killed.communicate(timeout=60)
    assert len(names(tmp_path)) == 2
    with replacing(tmp_path / "c") as file:
        file.write(b"whole")
    assert len(names(tmp_path)) == 2
    living.communicate(b"", timeout=60)
    assert living.returncode == 0
    assert names(tmp_path) == ["a", "c"]


@posix
def test_without_proc_the_draft_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without a name may not be linked everywhere."""

    def refuse(*_args: object, **_options: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "no /proc")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o604)
    with replacing(tmp_path / "old") as file:
        file.write(b"new")
    assert (tmp_path / "old").read_bytes() == b"new"
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o604
    assert names(tmp_path) == ["old"]


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EROFS])
def test_a_failed_write_names_the_file_and_what_to_do(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the system says of it; the old file stays."""

    def refuse(_handle: int) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "old").write_text("old")
    monkeypatch.setattr(os, "fsync", refuse)
    message = f"old: cannot be written: {os.strerror(number)}. .* another disk"
    with pytest.raises(WriteError, match=message) as told, replacing(tmp_path / "old") as file:
        file.write(b"new")
    assert told.value.errno == number
    assert names(tmp_path) == ["old"]
    assert (tmp_path / "old").read_text() == "old"


@pytest.mark.parametrize(
    ("suffix", "opened"), [(".gz", gzip.open), (".BZ2", bz2.open), (".xz", lzma.open), (".txt", open), ("", open)]
)
def test_text_is_compressed_where_the_name_says_so(tmp_path: Path, suffix: str, opened: Any) -> None:
    """In the same bytes each time: neither the time nor the name is in them."""
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in paths:
        with replacing_text(path) as file:
            file.write(b"one\n")
            file.write("zw\u00f6lf\n".encode())
    with opened(paths[0], "rt", encoding="utf-8") as file:
        assert file.read() == "one\nzw\u00f6lf\n"
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_compressed_text_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    """As any file."""
    path = tmp_path / "a.gz"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing_text(path) as file:
        file.writelines([b"new", None])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.gz"]
