"""Ways to call the command line, and data for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import vcrf
from vcrf.cli.app import app
from vcrf.data import Corpus


def conllu(corpus: Corpus, split: str = "", xpos: Callable[[str], str] = str.upper) -> str:
    """The corpus as CoNLL-U, XPOS made from UPOS."""
    lines = []
    for tokens, labels, _ in zip(corpus.tokens, corpus.labels, corpus.sources, strict=True):
        lines += [f"# split = {split}"] if split else []
        for i, (token, label) in enumerate(zip(tokens, labels, strict=True), 1):
            lines.append(f"{i}\t{token}\t_\t{label}\t{xpos(label)}\t_\t_\t_\t_\tRef={i}")
        lines.append("")
    return "\n".join(lines) + "\n"


class Call:
    """Calls the command in this process; what it wrote is kept apart by stream."""

    def __call__(self, *args: object, given: str | bytes | None = None, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [str(arg) for arg in args], input=given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.stderr
        assert "Traceback" not in result.stderr
        return result


def environment() -> dict[str, str]:
    """The environment of a new process that finds this very package."""
    source = str(Path(vcrf.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}


def plain_signals() -> None:
    """Answer signals as a new process does: one from a background shell or nohup would ignore some."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def start(*args: object, **options: Any) -> subprocess.Popen[bytes]:
    """Start the command in a process of its own, which answers signals however these tests were started."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "vcrf", *map(str, args)]
    preexec = {"preexec_fn": plain_signals} if os.name == "posix" else {}
    return subprocess.Popen(command, env=environment(), **{**pipes, **preexec, **options})


def feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Write to the command, and wait until it has read all of it: it is then at work, however slow its start was."""
    import fcntl
    import termios

    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()
    left = bytearray(4)
    for _ in range(12_000):
        fcntl.ioctl(process.stdin.fileno(), termios.FIONREAD, left)
        if not any(left):
            return
        assert process.poll() is None, "the command ended before"
        time.sleep(0.01)
    raise AssertionError("the command does not read")
