"""Tasks on workers: those of a Dask scheduler (the extra `cluster`), or, in the same order, this process.

A task is a function of the package with its arguments, and depends on nothing else: whoever computes it finds the same,
and what a lost worker had is computed again.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vcrf.errors import MissingExtraError, VcrfError, missing_extra

if TYPE_CHECKING:
    from distributed import Client

_INSTALL = missing_extra("--dask", "Dask", "cluster")
# Results that are summed at a time.
_FAN = 4
# So long the number of workers is believed.
_SECONDS = 1.0

_Result = TypeVar("_Result")


class Runner(Protocol):
    """Where tasks are done. `n_bytes` counts what tasks have handed to others, as far as it grows with the data."""

    n_bytes: int

    @property
    def n_workers(self) -> int:
        """Workers that are there now."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """A task; its arguments may be other tasks, and lists of them."""

    def gather(self, tasks: list[Any]) -> list[Any]:
        """Results, in order."""


class Here:
    """Tasks are done at once, by this process."""

    n_workers = 1

    def __init__(self) -> None:
        self.n_bytes = 0

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """The result."""
        return function(*args)

    def gather(self, tasks: list[Any]) -> list[Any]:
        """Results are there already."""
        return list(tasks)


class OnDask:
    """Tasks on the workers of a scheduler."""

    def __init__(self, client: Client) -> None:
        self.client, self.n_bytes = client, 0
        self._known = -math.inf, 0  # when the scheduler was asked, and for how many workers it knew

    @property
    def n_workers(self) -> int:
        """As the scheduler said a moment ago."""
        now = time.monotonic()
        if now > self._known[0] + _SECONDS:
            with self._told():
                self._known = now, len(self.client.ncores())
        return self._known[1]

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """A future."""
        self._check()
        with warnings.catch_warnings(), self._told():
            # Weights go through the scheduler, which can send them again.
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.client.submit(function, *args, pure=False)

    def gather(self, tasks: list[Any]) -> list[Any]:
        """Wait for results. A scheduler that is gone, or a block that ends every worker, is a `VcrfError`."""
        with self._told():
            return list(self.client.gather(tasks))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong between machines is a `VcrfError`; what a task raises stays as it is."""
        from distributed import KilledWorker

        try:
            yield
        except VcrfError:
            raise
        except KilledWorker as error:
            raise VcrfError(
                f"A task ended every worker that tried it, most often for want of memory: {error}. Give the workers "
                "more memory, or more workers. Checkpoints are kept."
            ) from error
        except (OSError, CancelledError) as error:
            self._check()
            raise VcrfError(
                f"The Dask cluster gave a task up: {error}. Checkpoints are kept: the same training goes on from the "
                "last one."
            ) from error

    def _check(self) -> None:
        """Raise VcrfError where the scheduler is gone."""
        if self.client.status != "running":
            address = getattr(self.client.scheduler, "address", "")
            raise VcrfError(
                f"The Dask scheduler at {address} is gone. Checkpoints are kept: with a scheduler the same training "
                "goes on from the last one."
            )


def as_runner(client: Any) -> Runner:
    """A runner for what users pass as `client`."""
    return client if isinstance(client, (Here, OnDask)) else OnDask(client)


def check_installed() -> None:
    """Raise MissingExtraError where there is no Dask."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(_INSTALL) from error


def connect(address: str, seconds: float = 30.0) -> Client:
    """A client of a scheduler; VcrfError where there is none."""
    check_installed()
    from distributed import Client

    try:
        return Client(address, timeout=seconds, set_as_default=False)
    except (OSError, ValueError) as error:  # no one there; not an address
        raise VcrfError(f"There is no Dask scheduler at {address}: {error}. Check the address.") from error


def tree(runner: Runner, tasks: Sequence[Any], add: Callable[[list[_Result]], _Result]) -> Any:
    """One task that adds up the results of several, always in the same order."""
    left = list(tasks)
    while len(left) > 1:
        groups = [left[i : i + _FAN] for i in range(0, len(left), _FAN)]
        left = [runner.submit(add, group) if len(group) > 1 else group[0] for group in groups]
    return left[0]


def same(value: _Result) -> _Result:
    """A value as a task: workers get it from each other, and again where it is lost."""
    return value


def item(values: Sequence[_Result], i: int) -> _Result:
    """One of several values."""
    return values[i]


def shuffle(runner: Runner, lists: Sequence[Any], n: int) -> list[list[Any]]:
    """Of tasks with n results each, for each of the n the tasks of all."""
    return [[runner.submit(item, listed, i) for listed in lists] for i in range(n)]
