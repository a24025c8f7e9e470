"""Running the cases of a part in processes of their own: a crash or a hang there is a finding, not the end."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tests.campaign.part import Finding, Part

# A process may take so long to import, train and compile what its cases need.
_PREPARING = 900.0
# A case hangs that takes more processor time than its limit, or this many times as long with nothing to do: on a busy
# machine a clock on the wall says little.
_WAITING = 10.0
# Findings after which a part ends: they are likely to be one.
_MOST_FINDINGS = 100


def part_of(name: str) -> Part:
    """The part that the file of that name has."""
    return import_module(f"tests.campaign.{name}").PART


def rng_of(seed: int, number: int) -> np.random.Generator:
    """The generator of one case."""
    return np.random.default_rng([seed, number])


@dataclass
class Report:
    """What happened in a part."""

    part: Part
    ends: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def n_cases(self) -> int:
        return sum(self.ends.values()) + len(self.findings)


def run(part: Part, seed: int, numbers: range, seconds: float, jobs: int) -> Report:
    """Run cases until all are done or the time is over."""
    report, began = Report(part), time.monotonic()
    queue = iter(numbers)
    with tempfile.TemporaryDirectory(prefix="campaign-", ignore_cleanup_errors=True) as scratch:
        workers = [_Worker(part, seed, Path(scratch)) for _ in range(min(jobs, part.jobs or jobs, len(numbers)))]
        try:
            while workers:
                is_over = time.monotonic() - began > seconds or len(report.findings) >= _MOST_FINDINGS
                workers = [worker for worker in workers if worker.go_on(report, iter(()) if is_over else queue)]
                wait([worker.pipe for worker in workers], 0.2)
        finally:
            for worker in workers:
                worker.end()
    report.seconds = time.monotonic() - began
    return report


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
        self._allow(_PREPARING)

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
                self._allow(self._part.limit)
                self.pipe.send(self._number)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join()
            return self._begin_anew(report, f"the process ended with {self._process.exitcode}")
        if self._hangs():
            return self._begin_anew(report, f"hangs: no end after {self._part.limit:g} processor seconds")
        return True

    def _allow(self, seconds: float) -> None:
        self._until = self._spent() + seconds, time.monotonic() + _WAITING * seconds

    def _hangs(self) -> bool:
        return self._spent() > self._until[0] or time.monotonic() > self._until[1]

    def _spent(self) -> float:
        """Processor seconds of the process and of what it has started and waited for."""
        try:
            return float(sum(psutil.Process(self._process.pid).cpu_times()[:4]))
        except psutil.NoSuchProcess:
            return 0.0

    def _begin_anew(self, report: Report, what: str) -> bool:
        self.end()
        if not self._is_ready:
            raise RuntimeError(f"The part {self._part.name} could not be prepared: {what}.")
        self._note(report, False, what)
        self._start()
        return True

    def _note(self, report: Report, is_good: bool, what: str) -> None:
        if is_good:
            report.ends[what] += 1
        elif self._number is not None:
            report.findings.append(Finding(self._part.name, self._seed, self._number, what))
            sys.stderr.write(f"\n{report.findings[-1]}\n")

    def end(self) -> None:
        self._process.kill()
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
