"""A few cases of each part of the campaign (`python -m tests.campaign`), so that it stays alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.campaign import concurrency, kills, runner

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
    ("work", "limit", "hangs"), [("while True: pass", 0.5, True), ("import time; time.sleep(600)", 60.0, False)]
)
def test_a_hang_is_processor_time(work: str, limit: float, hangs: bool) -> None:
    """On a busy machine, where a case waits for its turn, it does not hang."""
    worker = runner._Worker.__new__(runner._Worker)
    with subprocess.Popen([sys.executable, "-c", work]) as process:
        worker._process = process
        worker._allow(limit)
        deadline = time.monotonic() + (60.0 if hangs else 1.0)
        while not worker._hangs() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert worker._hangs() is hangs
        process.kill()
