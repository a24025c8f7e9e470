"""`vcrf reproduce` from the outside: files, exit codes, interruptions."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from commands import Call, conllu, start
from vcrf.data import SyntheticLanguage

SMALL = ("--words", 1, "--affix", 1, "--grid", "quick", "--max-passes", 20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one data set."""
    path = tmp_path_factory.mktemp("treebanks")
    corpus = SyntheticLanguage(n_labels=4, n_stems=40).sample(40)
    (path / "invented.conllu").write_text(conllu(corpus), encoding="utf-8")
    return path


def n_stored(directory: Path) -> int:
    """Tasks in the store; 0 before there is one."""
    if not (directory / "results.sqlite").exists():
        return 0
    database = sqlite3.connect(directory / "results.sqlite", timeout=30)
    try:
        return int(database.execute("SELECT count(*) FROM tasks").fetchone()[0])
    except sqlite3.OperationalError:  # not made yet
        return 0
    finally:
        database.close()


def wait_for_tasks(process: subprocess.Popen[bytes], directory: Path, n: int) -> None:
    """Until the store has n tasks."""
    deadline = time.monotonic() + 120
    while n_stored(directory) < n:
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def tables_of(directory: Path) -> dict[str, bytes]:
    """The files that depend on the results alone."""
    return {name: (directory / name).read_bytes() for name in ("tables.md", "tables.json", "points.csv")}


def test_interrupted_killed_and_resumed_gives_the_same_tables(folder: Path, tmp_path: Path, call: Call) -> None:
    """Ctrl-C, then kill -9, then to the end with one process: the tables are those of an uninterrupted run."""
    args: tuple[Any, ...] = ("reproduce", "--data", folder, *SMALL, "--runs", 3)
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    first = start(*args, "--jobs", 2, "-o", broken, start_new_session=True)
    wait_for_tasks(first, broken, 1)
    os.killpg(first.pid, signal.SIGINT)
    _, said = first.communicate(timeout=60)
    assert first.returncode == 130, said.decode()
    assert b"the same command goes on" in said
    assert b"Traceback" not in said
    n_first = n_stored(broken)
    assert 1 <= n_first < 18
    second = start(*args, "--jobs", 2, "-o", broken)
    wait_for_tasks(second, broken, n_first + 2)
    second.kill()
    second.communicate(timeout=60)
    n_second = n_stored(broken)
    assert n_first + 2 <= n_second < 18
    assert f"18 tasks, {n_second} of them done before" in call(*args, "--jobs", 1, "-o", broken).stderr
    assert "18 tasks, 0 of them" in call(*args, "--jobs", 1, "-o", whole).stderr
    assert tables_of(broken) == tables_of(whole)
    stored = (whole / "results.sqlite").read_bytes()
    assert "18 tasks, 18 of them" in call(*args, "--jobs", 1, "-o", whole).stderr
    assert (whole / "results.sqlite").read_bytes() == stored
    assert tables_of(whole) == tables_of(broken)


def test_a_malformed_file_is_told_and_the_others_are_done(folder: Path, tmp_path: Path, call: Call) -> None:
    """File and line on stderr, exit code 1, the tables of the other data set."""
    bad = tmp_path / "bad.conllu"
    bad.write_text("1\tthe\t_\tDET\t_\t_\t_\t_\t_\t_\n2\tcat\tNOUN\n\n", encoding="utf-8")
    out = tmp_path / "out"
    args: tuple[Any, ...] = ("--tables", "results", "--runs", 1, "--jobs", 1, "-o", out)
    result = call("reproduce", "--data", bad, "--data", folder, *SMALL, *args, code=1)
    assert "bad.conllu:2" in result.stderr
    assert "1 data sets could not be read" in result.stderr
    assert "invented" in result.stdout
    (found,) = json.loads((out / "tables.json").read_text(encoding="utf-8"))["tables"]
    assert (found["dataset"], found["noise"], found["runs"]) == ("invented", 0.0, [0])
    for name in ("report.md", "report.html"):
        assert "bad.conllu:2" in (out / name).read_text(encoding="utf-8")


def test_more_methods_in_one_table(folder: Path, tmp_path: Path, call: Call) -> None:
    """Known methods and new ones; the table of methods names their parameters."""
    args: tuple[Any, ...] = ("--tables", "results", "--runs", 1, "--jobs", 1, "-o", tmp_path)
    call("reproduce", "--data", folder, *SMALL, *args, "--method", "short=paper tags=1")
    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "| invented | short |" in text
    assert "`VCRF(affix=1, families='paper', norm='l1', recipe='paper', tags=1, words=1)`" in text


def test_variants_of_the_protocol(folder: Path, tmp_path: Path, call: Call) -> None:
    """Steps, cold starts, axes of strengths, controls and more seeds; resumed, nothing is done twice."""
    args: tuple[Any, ...] = (
        "reproduce", "--data", folder, "--words", 1, "--affix", 1, "--grid", "axes", "--strengths", "0.1,0.01",
        "--by-mean", "--mean", "candidates", "--cold", "--zero-passes", 0, "--max-passes", 2, "--noise-min-count", 1,
        "--seeds", 2, "--runs", 1, "--solver", "sgd", "--kappa", "m", "--methods", "paper,uniform,ties",
        "--tables", "results,features", "--jobs", 1, "-o", tmp_path,
    )  # fmt: skip
    assert "14 tasks, 0 of them" in call(*args).stderr  # 2 runs x (one path of all, 2 points of each method)
    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "## By strength" in text
    assert "divided by the mean complexity of candidates" in text
    assert "VCRF(affix=1, eta=0.01, eta_decay=0.0, families='paper', kappa='m'" in text
    assert "control: uniform" in text
    assert "14 tasks, 14 of them" in call(*args).stderr
    (found, *_) = json.loads((tmp_path / "tables.json").read_text(encoding="utf-8"))["tables"]
    assert found["runs"] == [0, 5]


def test_a_part_of_the_sentences_is_said_in_the_tables(folder: Path, tmp_path: Path, call: Call) -> None:
    """How many of how many; with fewer than five there are no folds."""
    args: tuple[Any, ...] = ("reproduce", "--data", folder, *SMALL, "--tables", "results", "--runs", 1, "--jobs", 1)
    call(*args, "--sentences", 20, "-o", tmp_path)
    assert "invented: 20 of its 40 sentences, drawn at random." in (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "--sentences" in call(*args, "--sentences", 4, "-o", tmp_path, code=2).stderr


def test_no_noise_fills_both_tables(folder: Path, tmp_path: Path, call: Call) -> None:
    """The table of noise then repeats the other."""
    found = call("reproduce", "--data", folder, *SMALL, "--noise", 0, "--runs", 1, "--jobs", 1, "-o", tmp_path)
    assert "3 tasks, 0 of them" in found.stderr
    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    first, second = (line for line in text.splitlines() if line.startswith("| invented | paper | 1 |"))
    assert first == second


def test_an_output_that_is_a_file_is_refused(folder: Path, tmp_path: Path, call: Call) -> None:
    """Exit code 2; the file stays."""
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    for path in (tmp_path / "out", tmp_path / "out" / "deeper"):
        assert "Give a directory" in call("reproduce", "--data", folder, "-o", path, code=2).stderr
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--datasets", "tamil"), "no data set 'tamil'"),
        (("--tables", "errors"), "--tables errors: expected some of results,features,noise"),
        (("--methods", "best"), "Unknown method 'best'"),
        (("--tol", "0"), "--tol must be a positive number"),
        (("--jobs", "2", "--dask", "tcp://127.0.0.1:9"), "give one"),
        (("--datasets", ""), "No data set is named: expected some of invented"),
        (("--methods", ""), "There is no method to run: expected some of paper"),
        (("--method", ""), "Unknown method ''"),
        (("--method", "x=paper l1_ratio=no"), "Method 'x': `l1_ratio` must be a number"),
        (("--strengths", "1,x"), "--strengths 1,x: expected numbers"),
        (("--kappa", "2"), "'2' is not one of '1/m', '1', 'm'"),
        (("--tag", "pos"), '--tag pos: expected "upos", "xpos" or a number'),
    ],
)
def test_wrong_calls(args: tuple[str, ...], message: str, folder: Path, tmp_path: Path, call: Call) -> None:
    """Exit code 2, and nothing is begun."""
    out = tmp_path / "out"
    assert message in call("reproduce", "--data", folder, "-o", out, *args, code=2).stderr
    assert not out.exists()
