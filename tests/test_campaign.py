"""A few cases of each part of the campaign (`python -m tests.campaign`), so that it stays alive."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.campaign import runner


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
