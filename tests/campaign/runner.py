"""Running the cases of a part in processes of their own: a crash or a hang there is a finding, not the end."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tests.campaign.kept import Report
from tests.campaign.part import Part
from tests.campaign.patience import Patience, family

# A process may take so long to import, train and compile what its cases need.
_PREPARING = 900.0
# Findings after which a part ends: they are likely to be one.
_MOST_FINDINGS = 100


def part_of(name: str) -> Part:
    """The part that the file of that name has."""
    return import_module(f"tests.campaign.{name}").PART


def rng_of(seed: int, number: int) -> np.random.Generator:
    """The generator of one case."""
    return np.random.default_rng([seed, number])


def run(
    report: Report, numbers: Iterable[int], seconds: float, jobs: int, keep: Callable[[], None] = lambda: None
) -> None:
    """Run cases until all are done or the time is over; `keep` is called again and again."""
    part, before, began = report.part, report.seconds, time.monotonic()
    left = [number for number in numbers if not report.has(number)]
    n_found, queue = len(report.findings), iter(left)
    with tempfile.TemporaryDirectory(prefix="campaign-", ignore_cleanup_errors=True) as scratch:
        workers = [_Worker(part, report.seed, Path(scratch)) for _ in range(min(jobs, part.jobs or jobs, len(left)))]
        try:
            while workers:
                is_over = time.monotonic() - began > seconds or len(report.findings) - n_found >= _MOST_FINDINGS
                workers = [worker for worker in workers if worker.go_on(report, iter(()) if is_over else queue)]
                report.seconds = before + time.monotonic() - began
                keep()
                wait([worker.pipe for worker in workers], 0.2)
        finally:
            for worker in workers:
                worker.end()


class _Worker:
    """One process, and the case that it is at."""

    def __init__(self, part: Part, seed: int, scratch: Path) -> None:
        self._part, self._seed, self._scratch = part, seed, scratch
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        args = self._part.name, self._seed, tempfile.mkdtemp(dir=self._scratch), theirs
        self._process = context.Process(target=_serve, args=args)
        self._process.start()
        theirs.close()
        self._number: int | None = None
        self._is_ready = False
        self.allow(_PREPARING)

    def go_on(self, report: Report, queue: Iterator[int]) -> bool:
        """Take what the process has sent and give it the next case; whether there is more to do."""
        try:
            while self.pipe.poll():
                is_good, what = self.pipe.recv()
                if self._number is not None:
                    self._note(report, is_good, what)
                elif not is_good:
                    raise RuntimeError(f"The part {self._part.name} could not be prepared:\n{what}")
                self._is_ready, self._number = True, next(queue, None)
                if self._number is None:
                    self.end()
                    return False
                self.allow(self._part.limit)
                self.pipe.send(self._number)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join()
            return self._begin_anew(report, f"the process ended with {self._process.exitcode}")
        if self.patience.is_over():
            return self._begin_anew(
                report, f"hangs: no end after {self._part.limit:g} processor seconds{self._calls()}"
            )
        return True

    def allow(self, seconds: float) -> None:
        number = self._process.pid
        self.patience = Patience(lambda: family(number) if number else [], seconds)

    def _calls(self) -> str:
        """The commands that it has started and that have not ended."""
        calls = ""
        for process in family(self._process.pid or 0)[1:]:
            with suppress(psutil.NoSuchProcess):
                calls += "\n  " + " ".join(process.cmdline())[:300]
        return calls and f", in{calls}"

    def _begin_anew(self, report: Report, what: str) -> bool:
        self.end()
        if not self._is_ready:
            raise RuntimeError(f"The part {self._part.name} could not be prepared: {what}.")
        self._note(report, False, what)
        self._start()
        return True

    def _note(self, report: Report, is_good: bool, what: str) -> None:
        if self._number is None:
            return
        report.note(self._number, is_good, what)
        if not is_good:
            sys.stderr.write(f"\n{report.findings[-1]}\n")

    def end(self) -> None:
        """End the process and all that it has started."""
        for process in family(self._process.pid or 0):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.join()
        self.pipe.close()


def _serve(name: str, seed: int, scratch: str, pipe: Connection) -> None:
    """Run cases by number until the pipe is closed."""
    part = part_of(name)
    state: Any = None
    try:
        os.chdir(scratch)
        state = part.prepare(Path(scratch))
    except BaseException:  # noqa: BLE001 - it is reported, and the process ends
        pipe.send((False, traceback.format_exc()))
        return
    pipe.send((True, "ready"))
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, part.attack(state, rng_of(seed, number))))
        except BaseException:  # noqa: BLE001 - whatever a case raises is a finding
            pipe.send((False, traceback.format_exc()))
