"""Processes: a function called in a few of them at once, on items that come one after the other.

The results come in the order of the items, and only a few items are held at a time. Signals are answered by the process
that asked; those that work for it ignore them, are killed when it leaves, and do not outlive it.
"""

from __future__ import annotations

import multiprocessing
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, NamedTuple, TypeVar

from vcrf.errors import VcrfError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
# Signals that a terminal sends to all its processes: the parent answers them.
PARENTS = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
ENDING = [*PARENTS, signal.SIGTERM]
# Items that are read ahead for each process: one at work, the others so that it does not wait.
_AHEAD = 3


def map_in_order(
    function: Callable[[_Item], _Result], items: Iterable[_Item], jobs: int
) -> Iterator[_Result]:  # fmt: skip
    """Yield function(item) of each item, in their order.

    The first item is done here: a short input starts no process, and what is loaded and compiled for it is there for
    all. With more than one job function and items have to be pickled where a process cannot be forked.

    Raises
    ------
    VcrfError
        When one of the processes is gone. An exception of the function, or of the items, is raised as it is.
    """
    left = iter(items)
    if jobs == 1:
        yield from map(function, left)
        return
    for first in left:
        yield function(first)
        break
    # Not before there is a second item.
    for second in left:
        with _Crew(function, jobs) as crew:
            yield from crew.run(_chained(second, left))


def _chained(first: _Item, left: Iterator[_Item]) -> Iterator[_Item]:
    yield first
    yield from left


class _Worker(NamedTuple):
    process: BaseProcess
    connection: Connection

    def call(self, item: Any) -> Any:
        """What the function gives in the process."""
        try:
            self.connection.send(item)
            is_done, result = self.connection.recv()
        except (EOFError, OSError) as error:
            raise VcrfError(
                "A process that worked for this one is gone. Is there enough memory? Ask for fewer (--jobs)."
            ) from error
        if not is_done:
            raise result
        return result


class _Crew(Generic[_Item, _Result]):
    """Processes, a thread for each that waits for it, and a thread that reads the items ahead.

    The thread that asks does nothing but wait for the next result: so it hands out an answer while the next item is not
    there yet, as happens in a pipe, and a signal ends its waiting.
    """

    def __init__(self, function: Callable[[_Item], _Result], jobs: int) -> None:
        self._function, self._jobs = function, jobs
        self._stack = ExitStack()
        self._results: queue.SimpleQueue[Future[_Result] | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(_AHEAD * jobs)
        self._free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._is_over = False

    def __enter__(self) -> _Crew[_Item, _Result]:
        with ExitStack() as stack:
            workers: list[_Worker] = []
            stack.callback(_end, workers)
            with signals_held():
                for _ in range(self._jobs):  # before there are threads: a process with threads is not forked
                    workers.append(_start(self._function, workers))
            for worker in workers:
                self._free.put(worker)
            self._threads = ThreadPoolExecutor(self._jobs)
            stack.callback(self._threads.shutdown, wait=False, cancel_futures=True)
            stack.callback(self._leave)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, items: Iterator[_Item]) -> Iterator[_Result]:
        # A daemon: it may wait for a pipe for ever.
        threading.Thread(target=self._feed, args=(items,), daemon=True).start()
        while (future := self._results.get()) is not None:
            yield future.result()
            self._room.release()

    def _leave(self) -> None:
        self._is_over = True
        self._room.release()

    def _feed(self, items: Iterator[_Item]) -> None:
        try:
            for item in items:
                self._room.acquire()
                if self._is_over:
                    return
                self._results.put(self._threads.submit(self._call, item))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised again where the results are taken
            failed: Future[_Result] = Future()
            failed.set_exception(error)
            self._results.put(failed)
        self._results.put(None)

    def _call(self, item: _Item) -> _Result:
        worker = self._free.get()
        try:
            result: _Result = worker.call(item)
        finally:
            self._free.put(worker)
        return result


def _can_fork() -> bool:
    """A fork has everything at once; with threads it may have a lock that nobody opens."""
    return sys.platform == "linux" and threading.active_count() == 1


def _start(function: Callable[[Any], Any], others: list[_Worker]) -> _Worker:
    is_fork = _can_fork()
    context = multiprocessing.get_context("fork") if is_fork else multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    inherited = [ours, *(other.connection for other in others)] if is_fork else []
    process = context.Process(target=_work, args=(function, theirs, inherited), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _work(function: Callable[[Any], Any], connection: Connection, inherited: list[Connection]) -> None:
    """Answer items until the parent closes the connection, or is gone."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PARENTS)
    for other in inherited:  # as long as one of us has it, the end of the parent is not seen
        other.close()
    with suppress(EOFError, OSError):
        while True:
            item = connection.recv()
            try:
                answer = True, function(item)
            except Exception as error:  # noqa: BLE001 - it is raised again in the parent
                answer = False, error
            connection.send(answer)


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.kill()  # it has nothing to keep
        worker.process.join()
        worker.connection.close()


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold back signals while a process is started: half of one would end with a traceback of its own.

    Those of a terminal are blocked too: the new process inherits that, and is not hit before it ignores them. Blocking
    alone does not do, as they may come to another thread, and Python's handlers run in this one all the same.
    """
    with _answered_later(), _blocked():
        yield


@contextmanager
def _answered_later() -> Iterator[None]:
    """Call the handlers of signals that come in here at its end."""
    came: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in ENDING}
    try:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, lambda number, _frame: came.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


@contextmanager
def _blocked() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, PARENTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
