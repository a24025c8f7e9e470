"""Commands that write over a good file and are killed at a random moment, by kill -9 or by a signal that they answer.

Afterwards the old file is there or a whole new one, nothing else lies beside it, the exit code says what happened, and
an experiment that goes on ends with the tables of one that was left alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from tests.campaign.part import Part
from tests.campaign.patience import Patience, end_of

from commands import conllu, start
from vcrf.data import SyntheticLanguage
from vcrf.estimators.file import load
from vcrf.files import replacing

_SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
# Processor seconds of a command.
_LIMIT = 300.0
_N_SENTENCES = 300
_TABLES = ("tables.md", "tables.json", "points.csv")
_BEST = b"Interrupted: the model is the best so far."
_NONE = b"Interrupted: no file was written."
_KEPT = b"Interrupted: what is done is kept"


@dataclass(frozen=True)
class State:
    """Data, a good model, and how long each command takes if it is left alone.

    Attributes
    ----------
    old : (model, labelled text) that lies where a command writes
    whole : labelled text as `tag` writes it
    tables : as `reproduce` writes them
    """

    directory: Path
    old: dict[str, bytes]
    whole: bytes
    tables: dict[str, bytes]
    seconds: dict[str, float]


def _prepare(directory: Path) -> State:
    os.environ["PYTHONFAULTHANDLER"] = "1"  # a crash tells where
    corpus = SyntheticLanguage(n_labels=8).sample(_N_SENTENCES)
    (directory / "train.conllu").write_text(conllu(corpus), encoding="utf-8")
    (directory / "few.conllu").write_text(conllu(corpus[:40]), encoding="utf-8")
    (directory / "text.conllu").write_text(conllu(corpus) * 40, encoding="utf-8")
    seconds: dict[str, float] = {}
    for name in _COMMANDS:
        for _ in range(2):  # the first may compile
            began = time.monotonic()
            process = start(*_arguments(name, directory, directory / f"good-{name}"))
            _, said = end_of(process, _LIMIT)
            if process.returncode:
                raise RuntimeError(said.decode())
            seconds[name] = time.monotonic() - began
    # As good a model, but another file than a whole run writes.
    process = start("train", directory / "few.conllu", "-o", directory / "good-model", "--max-passes", 3)
    _, said = end_of(process, _LIMIT)
    if not (directory / "good-model").exists():
        raise RuntimeError(said.decode())
    old = {"train": (directory / "good-model").read_bytes(), "tag": b"what was there before\n"}
    good = directory / "good-reproduce"
    tables = {name: (good / name).read_bytes() for name in _TABLES if good.exists()}
    return State(directory, old, (directory / "good-tag").read_bytes(), tables, seconds)


def _arguments(name: str, directory: Path, output: Path) -> list[object]:
    if name == "train":
        return [
            "train", directory / "train.conllu", "-o", output, "--recipe", "paper", "--base-strength", 1e-3,
            "--threads", 1,
        ]  # fmt: skip
    if name == "tag":
        return ["tag", directory / "good-train", directory / "text.conllu", "-o", output]
    small = ["--words", 1, "--affix", 1, "--grid", "quick", "--max-passes", 10, "--tables", "results", "--runs", 1]
    return ["reproduce", "--data", directory / "few.conllu", *small, "--jobs", 2, "-o", output]


def _attack(state: State, rng: np.random.Generator) -> str:
    name = str(rng.choice(list(_COMMANDS), p=[0.4, 0.4, 0.2]))
    number = int(rng.choice(_SIGNALS))
    # A terminal sends its signals to the whole group.
    is_group = bool(rng.random() < 0.5)
    return _case(state, name, number, is_group, 1.05 * state.seconds[name] * rng.random())


def _case(state: State, name: str, number: int, is_group: bool, moment: float) -> str:
    """Run a command, send it a signal after so many seconds, and look at what there is."""
    folder = state.directory / f"case-{time.monotonic_ns()}"
    folder.mkdir()
    output = folder / name
    if name in state.old:
        output.write_bytes(state.old[name])
    process = start(*_arguments(name, state.directory, output), start_new_session=True)
    code, said = _end(process, number, is_group, moment)
    try:
        end = _COMMANDS[name](state, folder, code, said)
        _check_code(code, number, said)
        _check_rest(folder, name, number)
    except AssertionError as error:
        when = (
            f"{name}, {signal.Signals(number).name} after {moment:.2f} s of {state.seconds[name]:.2f}, group {is_group}"
        )
        raise AssertionError(f"{when}: exit code {code}: {error}\n{said.decode(errors='replace')}") from None
    return f"{name} {end}"


def _end(process: subprocess.Popen[bytes], number: int, is_group: bool, moment: float) -> tuple[int, bytes]:
    """Send the signal at its moment; the exit code, and what was said."""
    try:
        _, said = process.communicate(timeout=moment)
    except subprocess.TimeoutExpired:
        (os.killpg if is_group else os.kill)(process.pid, number)
        _, said = end_of(process, _LIMIT)
    patience = Patience(lambda: _group(process.pid), working=10.0, asleep=10.0)
    while _is_alive(process.pid):
        if patience.is_over():
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError("a process of its group is still there after 10 s")
        time.sleep(0.02)
    return process.returncode, said


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _group(group: int) -> list[psutil.Process]:
    """The processes of a group."""
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group:
                found.append(process)
    return found


def _check_code(code: int, number: int, said: bytes) -> None:
    """0 if it was done before; a signal that is answered is 128 more, and kills only an interpreter that just began."""
    if code == 1 and number == signal.SIGINT and said.startswith(b"Could not import runpy module"):
        return  # Python's own words before the first line of ours
    assert code in (0, -number, 128 + number), "wrong exit code"
    if code == 0 and number == signal.SIGINT and said.startswith(b"Exception ignored"):
        return  # an interpreter that just began may lose a Ctrl-C
    if code != -number:
        assert b"Traceback" not in said, "a traceback"
    if code == -number and number != signal.SIGKILL:
        assert b"sentences" not in said, "not answered though the command had begun"


def _check_rest(folder: Path, name: str, number: int) -> None:
    """Nothing but what was asked for: after kill -9 at the latest when the next file has been written."""
    if number == signal.SIGKILL:
        for directory in {path.parent for path in folder.rglob("*")}:
            with replacing(directory / "next") as file:
                file.write(b"whole")
            (directory / "next").unlink()
    left = [str(path) for path in folder.rglob("*.tmp")]
    assert not left, f"left behind: {left}"
    assert [path.name for path in folder.iterdir()] in ([name], []), "there is more than the output"


def _check_train(state: State, folder: Path, code: int, said: bytes) -> str:
    content = (folder / "train").read_bytes()
    if content == state.old["train"]:
        assert code != 0, "the old model is there, and all is well?"
        assert _BEST not in said, "the model is said to be written"
        return "old"
    tagger = load(folder / "train")  # its checksums are right
    assert len(tagger.predict([["a", "b"]])[0]) == 2
    if code > 0:
        assert _BEST in said or b"is written." in said, "nothing is said of the new model"
    assert _NONE not in said, "no file was written?"
    is_whole = code == 0 or tagger.status_.name != "INTERRUPTED"
    return "whole" if is_whole else "best so far"


def _check_tag(state: State, folder: Path, code: int, said: bytes) -> str:
    content = (folder / "tag").read_bytes()
    if content == state.old["tag"]:
        assert code != 0, "the old file is there, and all is well?"
        assert _BEST not in said
        return "old"
    assert content == state.whole, "neither the old file nor a whole new one"
    return "whole"


def _check_reproduce(state: State, folder: Path, code: int, said: bytes) -> str:
    if code > 0:
        assert _KEPT in said or b"tasks" not in said, "nothing is said of what is kept"
    process = start(*_arguments("reproduce", state.directory, folder / "reproduce"))
    _, again = end_of(process, _LIMIT)
    assert process.returncode == 0, f"the same command does not go on: {again.decode()}"
    found = {name: (folder / "reproduce" / name).read_bytes() for name in _TABLES}
    assert found == state.tables, "the tables are others"
    return "resumed"


_COMMANDS: dict[str, Callable[[State, Path, int, bytes], str]] = {
    "train": _check_train, "tag": _check_tag, "reproduce": _check_reproduce,
}  # fmt: skip

PART = Part(
    "kills", "kill -9, SIGTERM, Ctrl-C and SIGHUP at any moment of train, tag and reproduce", count=200, limit=420.0,
    prepare=_prepare, attack=_attack, jobs=1,
)  # fmt: skip
