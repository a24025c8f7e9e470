"""A function in several processes gives what it gives in one, and nothing stays behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import pytest

from vcrf.errors import InputError, VcrfError
from vcrf.processes import map_in_order


def square(number: int) -> int:
    """Refuses what is negative, and ends its process at 99."""
    if number < 0:
        raise InputError(f"{number} is negative.")
    if number == 99:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def who(_: int) -> int:
    """The process that did it."""
    return os.getpid()


BEFORE: set[multiprocessing.process.BaseProcess] = set()


@pytest.fixture(autouse=True)
def _remember() -> None:
    """Processes of other tests, joblib's for instance, which stay for a while."""
    BEFORE.clear()
    BEFORE.update(multiprocessing.active_children())


def children() -> set[multiprocessing.process.BaseProcess]:
    """Processes of the test at hand."""
    return set(multiprocessing.active_children()) - BEFORE


@pytest.fixture(params=["here", "fork", "spawn"])
def jobs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """One job, or two in processes of either kind."""
    if request.param == "spawn":
        monkeypatch.setattr("vcrf.processes._can_fork", lambda: False)
    return 1 if request.param == "here" else 2


def test_results_come_in_order(jobs: int) -> None:
    """However many there are, and nothing is left of the processes."""
    for n in (0, 1, 2, 30):
        assert list(map_in_order(square, range(n), jobs)) == [i * i for i in range(n)]
    assert not children()


def test_an_error_comes_where_it_is(jobs: int) -> None:
    """After the results before it, whether the function has raised it or the items have."""

    def items() -> Iterator[int]:
        yield from (1, 2, 3)
        raise InputError("no more")

    for given, message in (([1, 2, 3, -1, 4], "-1 is negative"), (items(), "no more")):
        results = map_in_order(square, given, jobs)
        assert [next(results) for _ in range(3)] == [1, 4, 9]
        with pytest.raises(InputError, match=message):
            next(results)
    assert not children()


def test_a_short_input_starts_no_process() -> None:
    """The first item is done here, the others are not."""
    assert set(map_in_order(who, [1], 2)) == {os.getpid()}
    first, *others = map_in_order(who, range(20), 2)
    assert first == os.getpid()
    assert os.getpid() not in others


def test_leaving_early_ends_the_processes() -> None:
    """No worker outlives the iteration, which reads no more than a few items ahead."""
    taken = []

    def items() -> Iterator[int]:
        for i in range(1000):
            taken.append(i)
            yield i

    with closing(cast(Any, map_in_order(square, items(), 2))) as results:
        assert [next(results) for _ in range(3)] == [0, 1, 4]
        assert len(children()) == 2
    assert not children()
    assert len(taken) < 20


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL there")
def test_a_process_that_dies_is_told() -> None:
    """With what to do."""
    with pytest.raises(VcrfError, match=r"enough memory.*--jobs"):
        list(map_in_order(square, [1, 2, 99, 3], 2))
    assert not children()
