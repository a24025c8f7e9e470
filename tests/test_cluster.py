"""Tasks in this process, and messages of those of a cluster."""

from __future__ import annotations

from concurrent.futures import CancelledError
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcrf.cluster import Here, OnDask, as_runner, shuffle, tree
from vcrf.errors import VcrfError


@given(st.lists(st.integers(), min_size=1, max_size=40))
def test_a_tree_adds_all_in_order(values: list[int]) -> None:
    """Each once."""
    assert tree(Here(), [[value] for value in values], lambda parts: [x for part in parts for x in part]) == values


def test_a_shuffle_turns_lists_around() -> None:
    """Of each list the first, of each the second."""
    assert shuffle(Here(), ["ab", "cd", "ef"], 2) == [["a", "c", "e"], ["b", "d", "f"]]


class _Client:
    """A client whose tasks all fail."""

    def __init__(self, error: Exception, status: str = "running") -> None:
        self.error, self.status, self.scheduler = error, status, SimpleNamespace(address="tcp://here:1")

    def gather(self, tasks):  # noqa: ARG002
        raise self.error

    def submit(self, *_: object, **__: object):
        raise self.error

    def ncores(self):
        raise self.error


def test_what_goes_wrong_is_told() -> None:
    """A scheduler that is gone, workers that all end, a task that is given up; other errors are those of the task."""
    distributed = pytest.importorskip("distributed")

    killed = distributed.scheduler.KilledWorker("task", SimpleNamespace(address="w"), 3)
    for client, match in (
        (_Client(CancelledError("lost"), "connecting"), r"tcp://here:1 is gone\. Checkpoints are kept"),
        (_Client(OSError("lost")), r"gave a task up: lost"),
        (_Client(killed), r"ended every worker"),
    ):
        with pytest.raises(VcrfError, match=match):
            OnDask(client).gather([])
    with pytest.raises(VcrfError, match=r"is gone"):
        OnDask(_Client(OSError(), "closed")).submit(len, [])
    # The connection breaks before the client knows that the scheduler is gone.
    broken = OnDask(_Client(OSError("reset by peer")))
    for ask in (lambda: broken.submit(len, []), lambda: broken.n_workers):
        with pytest.raises(VcrfError, match=r"reset by peer\. Checkpoints are kept"):
            ask()
    with pytest.raises(ZeroDivisionError):
        OnDask(_Client(ZeroDivisionError())).gather([])
    here = Here()
    assert as_runner(here) is here
