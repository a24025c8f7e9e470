"""Fixtures and settings shared by all tests."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: the first call of a kernel compiles it. The same cases are drawn everywhere, unless a seed is given.
settings.register_profile("vcrf", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("drawn anew", deadline=None, print_blob=True, database=None)

# The treebanks lie beside the project, never in it: several licences do not allow passing them on.
TREEBANKS = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def treebank() -> Callable[[str], Path]:
    """Return a function from a treebank's name to its path; it skips the test when the file is absent."""

    def path_of(name: str) -> Path:
        path = TREEBANKS / f"{name}.conllu.gz"
        if not path.exists():
            pytest.skip(f"treebank {name} is not in {TREEBANKS}")
        return path

    return path_of


@pytest.fixture(scope="session")
def seed() -> int:
    """Return the seed of random tests: 0, or the environment's VCRF_TEST_SEED to vary it."""
    return int(os.environ.get("VCRF_TEST_SEED", "0"))


# ------------------------------------------------------------------------------------ new cases


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--fuzz SECONDS` runs only what is drawn, in an order of the seed's, as long as there is time."""
    parser.addoption("--fuzz", type=float, metavar="SECONDS", help="run only tests of drawn cases, for so long")


def pytest_configure(config: pytest.Config) -> None:
    """Settings of tests are made while their files are imported: the profile comes first."""
    settings.load_profile("vcrf" if _seed_of(config) is None else "drawn anew")
    config.stash[_DEADLINE] = time.monotonic() + (config.getoption("--fuzz") or 0.0)


_DEADLINE = pytest.StashKey[float]()


def _seed_of(config: pytest.Config) -> str | None:
    return config.getoption("--hypothesis-seed", None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests whose cases are drawn."""
    if config.getoption("--fuzz") is None:
        return
    kept = [item for item in items if _is_drawn(item)]
    config.hook.pytest_deselected(items=[item for item in items if not _is_drawn(item)])
    random.Random(_seed_of(config)).shuffle(kept)
    items[:] = kept


def _is_drawn(item: pytest.Item) -> bool:
    is_hypothesis = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return is_hypothesis or "seed" in getattr(item, "fixturenames", ())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what there is no time for any more."""
    if item.config.getoption("--fuzz") is not None and time.monotonic() > item.config.stash[_DEADLINE]:
        pytest.skip("the time is over")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how to run each failure of a drawn case again."""
    seed = _seed_of(config)
    for report in terminalreporter.stats.get("failed", []) if seed is not None else ():
        terminalreporter.write_line(
            f"again: VCRF_TEST_SEED={seed} python -m pytest '{report.nodeid}' --hypothesis-seed={seed}"
        )
