"""A few cases of each part of the campaign (`python -m tests.campaign`), so that it stays alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.campaign import concurrency, kills, runner
from tests.campaign import patience as patience_module
from tests.campaign.kept import Kept, Report
from tests.campaign.patience import Patience, family

from commands import conllu, start
from vcrf import VCRF
from vcrf.data import SyntheticLanguage

posix = pytest.mark.skipif(os.name == "nt", reason="signals")


def ends_of(name: str, n_cases: int, seed: int, scratch: Path) -> Counter[str]:
    """Run the first cases of a part in this process; what one raises fails the test."""
    part = runner.part_of(name)
    state = part.prepare(scratch)
    return Counter(part.attack(state, runner.rng_of(seed, number)) for number in range(n_cases))


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own, where the part is at work."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_models(scratch: Path, seed: int) -> None:
    """Files are refused or work, and there are many of both."""
    ends = ends_of("models", 300, seed, scratch)
    assert ends["refused"] > 100
    assert ends["works"] > 20


def test_inputs(scratch: Path, seed: int) -> None:
    """Files are read or refused."""
    ends = ends_of("inputs", 200, seed, scratch)
    assert ends["refused"] > 50
    assert ends["read"] > 20


def test_fits(scratch: Path, seed: int) -> None:
    """Nearly all are certified, and verified by enumeration."""
    assert ends_of("fits", 12, seed, scratch)["certified"] > 8


@posix
def test_kills(tmp_path: Path) -> None:
    """A labelling that is killed at once, ended half way, and left alone."""
    corpus = SyntheticLanguage(n_labels=4).sample(30)
    (tmp_path / "text.conllu").write_text(conllu(corpus) * 20, encoding="utf-8")
    VCRF(recipe="paper", base_strength=0.1).fit(corpus.tokens, corpus.labels).save(tmp_path / "good-train")
    began = time.monotonic()
    start(*kills._arguments("tag", tmp_path, tmp_path / "good-tag")).communicate(timeout=120)
    seconds = time.monotonic() - began
    whole = (tmp_path / "good-tag").read_bytes()
    state = kills.State(tmp_path, {"tag": b"before"}, whole, {}, {"tag": seconds})
    for number, moment in ((signal.SIGKILL, 0.3), (signal.SIGTERM, 0.6), (signal.SIGINT, 60.0)):
        end = kills._case(state, "tag", number, is_group=True, moment=moment * seconds)
        assert end == "tag whole" if moment > 1.0 else end in ("tag old", "tag whole")


@posix
def test_concurrency(tmp_path: Path) -> None:
    """Threads that predict and fit at once find what one alone does."""
    state = concurrency._prepare(tmp_path)
    for seed in range(3):
        concurrency._threads(state, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("work", "working", "hangs"), [("while True: pass", 0.5, True), ("import time; time.sleep(600)", 60.0, False)]
)
def test_a_hang_is_processor_time(work: str, working: float, hangs: bool) -> None:
    """On a busy machine, where a case waits for its turn, it does not hang."""
    with subprocess.Popen([sys.executable, "-c", work]) as process:
        patience = Patience(lambda: family(process.pid), working)
        deadline = time.monotonic() + (60.0 if hangs else 1.0)
        is_over = False
        while not is_over and time.monotonic() < deadline:
            time.sleep(0.05)
            is_over = patience.is_over()
        assert is_over is hangs
        process.kill()


def test_who_was_stopped_has_not_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour between two looks is no hour of patience; an hour of looks is."""
    clock = iter([0.0, 3_600.0, 7_200.0, *np.arange(7_201.0, 9_000.0)])
    monkeypatch.setattr(patience_module.time, "monotonic", lambda: next(clock))
    patience = Patience(list, working=1.0)
    assert not patience.is_over()
    assert not patience.is_over()
    assert any(patience.is_over() for _ in range(130))


def test_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign that was cut off goes on with the cases that it has not done, and adds them up."""
    asked: list[int] = []

    class Counted:
        """A worker that does all it gets."""

        def __init__(self, *_: object) -> None:
            self.pipe = None

        def go_on(self, report: Report, queue: Iterator[int]) -> bool:
            for number in queue:
                asked.append(number)
                report.note(number, number != 3, "good" if number != 3 else "bad")
            return False

        def end(self) -> None:
            """Nothing to end."""

    monkeypatch.setattr(runner, "_Worker", Counted)
    monkeypatch.setattr(runner, "wait", lambda *_: None)
    parts, path = {"fits": runner.part_of("fits")}, tmp_path / "campaign.json"
    for numbers in (range(5), range(9)):
        kept = Kept(parts, 7, path)
        runner.run(kept.of("fits"), numbers, 10.0, 1, kept.write)
        kept.write(at_once=True)
    report = Kept(parts, 8, path).of("fits")
    assert asked == list(range(9))
    assert (report.seed, report.n_cases, report.first, report.ends["good"]) == (7, 9, 9, 8)
    assert [finding.number for finding in report.findings] == [3]


def test_cases_that_end_out_of_turn() -> None:
    """What one process has not done yet is done by the next call."""
    report = Report(runner.part_of("fits"), 7)
    for number in (1, 2, 4):
        report.note(number, True, "good")
    assert [number for number in range(6) if not report.has(number)] == [0, 3, 5]
    report.note(0, True, "good")
    assert (report.first, report.beyond) == (3, {4})
