"""SIGTERM and SIGHUP do what Ctrl-C does, and whoever ignores them goes on to do so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from commands import conllu, environment, feed, plain_signals, start
from vcrf.cli.interrupts import exit_code, stoppable
from vcrf.data import Corpus, SyntheticLanguage
from vcrf.estimators.file import load
from vcrf.model.file import load_model

if os.name == "nt":
    pytest.skip("signals", allow_module_level=True)
import fcntl
import pty
import termios

ENDS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture(scope="module")
def long_training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data that take many seconds to learn."""
    path = tmp_path_factory.mktemp("long") / "long.conllu"
    path.write_text(conllu(SyntheticLanguage().sample(600)), encoding="utf-8")
    return path


def wait_for(process: subprocess.Popen[bytes], sign: bytes, times: int = 1) -> None:
    """Wait for so many lines with the sign on stderr."""
    assert process.stderr is not None
    for _ in range(times):
        while sign not in (line := process.stderr.readline()):
            assert line, "the command ended before"


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_train_saves_the_model_reached(number: int, code: int, long_training: Path, tmp_path: Path) -> None:
    """As Ctrl-C does; the exit code is 128 + the signal."""
    path = tmp_path / "m.vcrf"
    with start("train", long_training, "-o", path, "--recipe", "paper", "--base-strength", 1e-4) as process:
        wait_for(process, b"training", 3)
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert b"Interrupted: the model is the best so far" in err
    assert load(path).status_.name == "INTERRUPTED"
    assert [file.name for file in tmp_path.iterdir()] == ["m.vcrf"]


@pytest.mark.parametrize(("number", "code"), [*ENDS, (signal.SIGINT, 130)])
def test_tag_leaves_the_old_file_and_nothing_else(
    number: int, code: int, model: Path, corpus: Corpus, tmp_path: Path
) -> None:
    """While it waits for more input."""
    path = tmp_path / "out.conllu"
    path.write_text("old")
    with start("tag", model, "-", "-o", path) as process:
        feed(process, conllu(corpus[:20]).encode())
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"Interrupted: no file was written." in err
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["out.conllu"]


class Deaf:
    """Python drops whatever is raised while it is collected."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_that_python_loses_comes_again() -> None:
    """An interrupt cannot be raised in a callback."""

    def work() -> None:
        Deaf()
        time.sleep(5.0)
        pytest.fail("the signal is lost")

    with pytest.raises(KeyboardInterrupt), stoppable():
        work()
    assert exit_code() == 143


def test_a_signal_waits_for_the_compiler() -> None:
    """An exception in one of its callbacks would end the process."""
    done = []

    def work() -> None:
        compiler = {"__name__": "llvmlite.binding", "signal": signal, "time": time, "done": done}
        exec("signal.raise_signal(signal.SIGHUP)\ntime.sleep(0.2)\ndone.append(True)", compiler)
        time.sleep(5.0)
        pytest.fail("the signal is lost")

    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored
    try:
        with pytest.raises(KeyboardInterrupt), stoppable():
            work()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert done == [True]
    assert exit_code() == 129


def test_nohup_stays_nohup(long_training: Path, tmp_path: Path) -> None:
    """A process that is to ignore SIGHUP does so, and answers SIGTERM."""

    def ignore() -> None:
        plain_signals()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    path = tmp_path / "m.vcrf"
    with start(
        "train", long_training, "-o", path, "--recipe", "paper", "--base-strength", 1e-4, preexec_fn=ignore
    ) as process:
        wait_for(process, b"training", 2)
        process.send_signal(signal.SIGHUP)
        wait_for(process, b"training", 2)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 143
    assert load_model(path).n_labels


def test_a_terminal_that_is_closed_does_not_lose_the_model(long_training: Path, tmp_path: Path) -> None:
    """SIGHUP comes, and nothing can be written to the terminal any more."""
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        plain_signals()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    path = tmp_path / "m.vcrf"
    args: Any = [
        sys.executable, "-m", "vcrf", "train", str(long_training), "-o", str(path), "--recipe", "paper",
        "--base-strength", "1e-4",
    ]  # fmt: skip
    process = subprocess.Popen(
        args, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, preexec_fn=take_terminal,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while shown.count(b"gap ") < 3:
        shown += os.read(ours, 1000)
    os.close(ours)
    process.wait(timeout=120)
    assert process.returncode in (129, 1)  # 1: the last line could not be written
    assert load(path).status_.name == "INTERRUPTED"


def test_reproduce_stops_and_goes_on(tmp_path: Path) -> None:
    """The exit code says that it was ended, and the same command does the rest."""
    data = tmp_path / "invented.conllu"
    data.write_text(conllu(SyntheticLanguage(n_labels=4, n_stems=40).sample(40)), encoding="utf-8")
    args = ("reproduce", "--data", data, "--words", 1, "--affix", 1, "--grid", "quick", "--max-passes", 5)
    args = (*args, "--tables", "results", "--runs", 1, "-o", tmp_path / "out")
    with start(*args, "--jobs", 2, start_new_session=True) as process:
        wait_for(process, b"3 tasks, 0 of them")
        os.killpg(process.pid, signal.SIGHUP)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 129, err.decode()
    assert b"the same command goes on" in err
    assert b"Traceback" not in err
    with start(*args, "--jobs", 1) as process:
        process.communicate(timeout=240)
    assert process.returncode == 0


@pytest.mark.parametrize("command", ["show {model}", "show {model} --json", "tag {model} {text}", "info", "--help"])
def test_a_full_standard_output_is_named(command: str, model: Path, corpus: Corpus, tmp_path: Path) -> None:
    """The system's word alone does not say which output is full, nor what to do."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    text = tmp_path / "in.conllu"
    text.write_text(conllu(corpus[:5]))
    with Path("/dev/full").open("wb") as full:
        process = start(*command.format(model=model, text=text).split(), stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.decode().splitlines()[-1].startswith("vcrf: standard output: cannot be written: No space left on device")
    assert b"Traceback" not in err


def test_a_limit_on_the_size_of_files_is_told_with_the_file(model: Path, corpus: Corpus, tmp_path: Path) -> None:
    """The old file stays, and nothing else."""
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    path = tmp_path / "out.conllu"
    path.write_text("old")
    with start("tag", model, "-", "-o", path, preexec_fn=limit) as process:
        _, err = process.communicate(conllu(corpus).encode(), timeout=60)
    assert process.returncode == 1
    assert f"vcrf: {path}: cannot be written: File too large. Raise the limit" in err.decode()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["out.conllu"]


@pytest.mark.parametrize("stream", ["2>/dev/full", "2>&-"])
def test_messages_that_cannot_be_written_lose_no_work(stream: str, tmp_path: Path) -> None:
    """A full disk under the log does not end the command."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    text = tmp_path / "in.txt"
    text.write_text("a b c\n" * 50)
    out = tmp_path / "words"
    shell = f"{sys.executable} -m vcrf classes {text} -o {out} --number 2 {stream}"
    done = subprocess.run(["sh", "-c", shell], env=environment(), check=False, timeout=120)
    assert done.returncode == 0
    assert out.exists()
