"""A small invented data set, and the tasks of a small experiment on it."""

from __future__ import annotations

import pytest

from vcrf.data import SyntheticLanguage
from vcrf.experiments.datasets import Dataset
from vcrf.experiments.methods import Method
from vcrf.experiments.plan import Plan
from vcrf.experiments.protocol import Grid
from vcrf.experiments.tasks import Settings


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    """An invented data set."""
    return Dataset.from_corpus("invented", "upos", SyntheticLanguage(n_labels=4, n_stems=40).sample(40))


@pytest.fixture(scope="session")
def method() -> Method:
    """The paper's families, few of them."""
    return Method.of("paper", recipe="paper", families="paper", words=1, tags=2, affix=1, norm="l1")


@pytest.fixture(scope="session")
def plan(dataset: Dataset, method: Method) -> Plan:
    """Two runs with two paths each, with noise and without."""
    grid = Grid((0.01, 0.0), (0.1, 0.01))
    return Plan([dataset], [method], grid, runs=(0, 1), settings=Settings(noise_min_count=2, max_passes=20))
