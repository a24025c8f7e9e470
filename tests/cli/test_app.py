"""The frame of the command line: help, versions, what is imported, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Call, environment
from vcrf.cli.app import _COMMANDS
from vcrf.cli.errors import in_options
from vcrf.cli.help import RARE

COMMANDS = list(_COMMANDS)
HEAVY = ["numpy", "scipy", "numba", "sklearn", "rich", "matplotlib"]


def imported(*args: object, given: str = "") -> set[str]:
    """Heavy packages that a command imports."""
    code = (
        "import sys\nfrom vcrf.cli.app import app\n"
        f"try:\n    app({[str(arg) for arg in args]!r})\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, text=True, check=True, env=environment()
    )
    return set(json.loads(done.stderr.strip().splitlines()[-1].replace("'", '"')))


def test_help_waits_for_nothing_heavy() -> None:
    """`vcrf --help` imports neither numpy nor anything larger."""
    assert imported("--help") == set()


def test_help_of_a_command_waits_for_nothing_heavy() -> None:
    """`vcrf train --help` neither."""
    assert imported("train", "--help") == set()


def test_tagging_waits_for_neither_scipy_nor_scikit_learn(model: Path) -> None:
    """They take longer than everything else together."""
    assert imported("tag", model, given="a b\n") == {"numpy", "numba"}


def test_kernels_compile_without_scipy(model: Path, tmp_path: Path) -> None:
    """`tag` hides scipy from numba; that holds on the first run too, when kernels are compiled."""
    done = subprocess.run(
        [sys.executable, "-m", "vcrf", "tag", str(model), "--marginals", "--nbest", "2", "--format", "json"],
        input="a b\n",
        capture_output=True,
        text=True,
        check=True,
        env={**environment(), "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert len(json.loads(done.stdout)["nbest"]) == 2
    assert "Preparing this part of the program for this machine, once: up to a minute." in done.stderr
    assert re.search(r"Prepared in [0-9]+ s", done.stderr)


def test_help_lists_every_command(call: Call) -> None:
    """And says what exit codes mean."""
    text = call("--help").stdout
    assert all(re.search(rf"^  {name} ", text, re.MULTILINE) for name in COMMANDS)
    assert "Exit codes" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command_has_an_example(name: str, call: Call) -> None:
    """A line that can be copied."""
    for option in ("--help", "-h"):
        assert re.search(rf"^  (echo .*)?vcrf {name}", call(name, option).stdout, re.MULTILINE)


def test_help_of_each_command_fits_a_screen(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 50 lines and 80 columns; rare options are named, and described by --help-all."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    for name in _COMMANDS:
        assert len(call(name, "--help").stdout.splitlines()) <= 50, name
    assert set(RARE) <= set(_COMMANDS)


@pytest.mark.parametrize("name", sorted(set(_COMMANDS) - set(RARE)))
def test_all_of_the_help_is_there_for_every_command(name: str, call: Call) -> None:
    """Where nothing is rare it is the usual one."""
    assert call(name, "--help-all").stdout == call(name, "--help").stdout


@pytest.mark.parametrize("name", RARE)
def test_rare_options_are_a_group(name: str, call: Call) -> None:
    """Each is an option of its command, named in the one help and described in the other."""
    short, whole = call(name, "--help").stdout, call(name, "--help-all").stdout
    common, rare = short.split("Rare options, which --help-all describes:")
    assert set(re.findall(r"--[\w-]+", rare)) == RARE[name]
    described = whole.split("Rare options:\n")[1]
    for option in RARE[name]:
        assert re.search(rf"^  {option}\b", described, re.MULTILINE)
        assert not re.search(rf"^  {option}\b", common, re.MULTILINE)


def test_version(call: Call) -> None:
    """One line."""
    assert re.fullmatch(r"vcrf \S+\n", call("--version").stdout)


@pytest.mark.parametrize("args", [["nothing"], ["train"], ["tag"], ["tag", "m", "--nbest", "x"], ["info", "--what"]])
def test_wrong_calls_exit_with_2_and_say_how(args: list[str], call: Call) -> None:
    """The usage is on stderr, and nothing on stdout."""
    result = call(*args, code=2)
    assert "Usage:" in result.stderr
    assert result.stdout == ""


def test_messages_of_the_library_name_options() -> None:
    """A user of the command line has never heard of its parameters."""
    assert in_options("x: `tag='xpos'`, pass `format='columns'` or `split=dev`.") == (
        "x: --tag xpos, pass --input-format columns or --split dev."
    )
    assert in_options("`base_strength` must be finite") == "--base-strength must be finite"
    assert in_options("x.conllu:3: expected ID 2") == "x.conllu:3: expected ID 2"


@pytest.mark.parametrize(
    "setting", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_letters_that_the_terminal_does_not_have(setting: dict[str, str], model: Path) -> None:
    """They are written by their numbers."""
    command = [sys.executable, "-m", "vcrf", "explain", str(model), "Ζεύς a"]
    done = subprocess.run(command, env=environment() | setting, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert b"\\u0396" in done.stdout or b"\\udc" in done.stdout


def test_an_interrupt_inside_an_import_is_one(call: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled modules make another error of it."""

    def load(_: Path) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise ImportError("initialization failed") from interrupt

    monkeypatch.setattr("vcrf.model.file.load_model", load)
    assert "Interrupted: no file was written." in call("show", model, code=130).stderr
