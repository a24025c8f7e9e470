"""Running tasks: in this process, in several processes, or on a cluster, with every result kept as soon as it is there.

A runner takes tasks and the data by checksum, and yields what became of each task in any order.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from typing import NamedTuple

from vcrf.experiments.tasks import PathResult, PathTask, run_task
from vcrf.processes import PARENTS, signals_held

Blobs = Mapping[str, bytes]
Outcomes = Generator["Outcome", None, None]
Runner = Callable[[Sequence[PathTask], Blobs], Outcomes]

_MAX_ATTEMPTS = 2


class Outcome(NamedTuple):
    """What became of a task: a result, or else a message that says why there is none."""

    task: PathTask
    result: PathResult | None
    failure: str = ""


def run_here(tasks: Sequence[PathTask], blobs: Blobs) -> Outcomes:
    """One task after the other in this process."""
    for task in tasks:
        yield attempt(task, blobs[task.checksum])


def attempt(task: PathTask, blob: bytes) -> Outcome:
    """Run a task; an error becomes a message, because other tasks may do without it."""
    try:
        return Outcome(task, run_task(task, blob))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported with the task's name
        return Outcome(task, None, f"{type(error).__name__}: {error}")


class Processes:
    """A runner with several processes. Leaving the iteration early ends them at once.

    Parameters
    ----------
    jobs : number of processes
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def __call__(self, tasks: Sequence[PathTask], blobs: Blobs) -> Outcomes:
        """Yield outcomes as they come. A task whose process dies is tried once more."""
        waiting = deque((task, 1) for task in tasks)
        while waiting:
            yield from self._run_pool(waiting, blobs)

    def _run_pool(self, waiting: deque[tuple[PathTask, int]], blobs: Blobs) -> Outcomes:
        """Work off the queue until it is empty or a process has died; what that had goes back into the queue."""
        context = multiprocessing.get_context("spawn")
        with signals_held():  # it starts a process that keeps track of semaphores
            pool = ProcessPoolExecutor(self.jobs, mp_context=context, initializer=_begin_worker)
        # No more than the processes can take: if one dies, it was busy with one of these.
        running: dict[Future[Outcome], tuple[PathTask, int]] = {}
        is_broken = False
        with ExitStack() as if_it_fails:  # Ctrl-C and a closed generator too: no process stays behind
            if_it_fails.callback(_end_at_once, pool)
            while (waiting and not is_broken) or running:
                while waiting and not is_broken and len(running) < self.jobs:
                    task, n = waiting.popleft()
                    with signals_held():
                        future = pool.submit(attempt, task, blobs[task.checksum])
                    running[future] = task, n
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    task, n = running.pop(future)
                    try:
                        yield future.result()
                    except BrokenProcessPool:
                        is_broken = True
                        if n < _MAX_ATTEMPTS:
                            waiting.append((task, n + 1))
                        else:
                            yield Outcome(task, None, "The process that ran it died twice. Is there enough memory?")
            pool.shutdown()
            if_it_fails.pop_all()


def _end_at_once(pool: ProcessPoolExecutor) -> None:
    for process in multiprocessing.active_children():
        process.terminate()
    pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker() -> None:
    """Leave to the parent what a terminal sends to all, and do not outlive it (it may be killed)."""
    for number in PARENTS:
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
