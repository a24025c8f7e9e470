"""Fixtures and settings shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: the first call of a kernel compiles it. In CI the same cases are drawn every time, elsewhere new ones.
settings.register_profile("vcrf", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI")))
settings.load_profile("vcrf")

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
