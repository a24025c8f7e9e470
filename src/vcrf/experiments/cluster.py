"""Running tasks on an existing Dask scheduler (the extra `cluster`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vcrf.cluster import check_installed, connect
from vcrf.errors import VcrfError
from vcrf.experiments.scheduling import Blobs, Outcome, Outcomes, attempt
from vcrf.experiments.tasks import PathTask

if TYPE_CHECKING:
    from distributed import Client, Future


class DaskCluster:
    """A runner on the workers of a scheduler.

    Workers need the same version of vcrf and no files: the data travel with the tasks. They may come and go; the
    scheduler gives the task of a worker that is lost to another one.

    Parameters
    ----------
    address : of the scheduler, as `tcp://host:8786`
    seconds_to_connect : before giving up
    """

    def __init__(self, address: str, seconds_to_connect: float = 30.0) -> None:
        self.address = address
        self.seconds_to_connect = seconds_to_connect
        check_installed()

    def __call__(self, tasks: Sequence[PathTask], blobs: Blobs) -> Outcomes:
        """Yield outcomes as they come; raise VcrfError when the scheduler is lost."""
        try:
            with self._connected() as client:
                yield from _run(client, tasks, blobs)
        except OSError as error:
            raise VcrfError(
                f"The Dask scheduler at {self.address} is gone: {error}. What is done is kept, and with a scheduler "
                "the same command goes on."
            ) from error

    def _connected(self) -> Client:
        return connect(self.address, self.seconds_to_connect)


def _run(client: Client, tasks: Sequence[PathTask], blobs: Blobs) -> Outcomes:
    from distributed import as_completed

    waiting = list(reversed(tasks))
    running: dict[object, tuple[PathTask, Future]] = {}
    finished = as_completed(loop=client.loop)

    def fill() -> None:
        """Hand out enough to keep every thread busy, and not more: the data travel with each task."""
        room = 2 * sum(client.ncores().values()) + 4
        while waiting and len(running) < room:
            task = waiting.pop()
            future = client.submit(attempt, task, blobs[task.checksum], key=f"vcrf-{task.key}")
            running[future.key] = task, future
            finished.add(future)

    try:
        fill()
        for future in finished:
            task, _ = running.pop(future.key)
            yield _outcome(task, future)
            future.release()
            fill()
    finally:
        client.cancel([future for _, future in running.values()])


def _outcome(task: PathTask, future: Future) -> Outcome:
    if future.status == "finished":
        outcome: Outcome = future.result()
        return outcome
    error = future.exception() if future.status == "error" else None
    return Outcome(task, None, f"{type(error).__name__}: {error}" if error else f"The cluster says: {future.status}.")
