"""When a process hangs, on a machine that may be busy or asleep: a clock on the wall says nothing of that.

What counts is processor time, and time in which everything that was started sleeps though it could run.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable

import psutil

# Seconds between two looks at the least: each reads all processes of the machine. A longer time counts as `_BLINK`: the
# one who looks had no turn, or was stopped.
_PAUSE, _BLINK = 0.25, 1.0
# Seconds that everything may sleep.
_ASLEEP = 120.0


class Patience:
    """How long to wait for some processes.

    Attributes
    ----------
    processes : those there are now
    working : processor seconds until it is over
    asleep : seconds that all of them may sleep
    """

    def __init__(
        self, processes: Callable[[], Iterable[psutil.Process]], working: float, asleep: float = _ASLEEP
    ) -> None:
        self._processes, self.working, self.asleep = processes, working, asleep
        self._slept, self._looked = 0.0, time.monotonic()
        self._first: float | None = None
        self._last = 0.0

    def is_over(self) -> bool:
        """Whether they have had their time; to be asked again and again."""
        now = time.monotonic()
        if now - self._looked < _PAUSE:
            return False
        blink, self._looked = min(now - self._looked, _BLINK), now
        spent, is_awake = self._look()
        if self._first is None:
            self._first = spent
        elif not is_awake and spent <= self._last:
            self._slept += blink
        self._last = spent
        return spent - self._first > self.working or self._slept > self.asleep

    def _look(self) -> tuple[float, bool]:
        """Processor seconds of the processes and of those they waited for, and whether one has something to do."""
        spent, is_awake = 0.0, False
        for process in self._processes():
            try:
                spent += sum(process.cpu_times()[:4])
                # Of its first thread: that others work shows in the seconds.
                is_awake |= process.status() not in (psutil.STATUS_SLEEPING, psutil.STATUS_ZOMBIE)
            except psutil.NoSuchProcess:
                continue
        return spent, is_awake


def family(number: int) -> list[psutil.Process]:
    """A process and all that descend from it."""
    try:
        process = psutil.Process(number)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def end_of(process: subprocess.Popen[bytes], working: float) -> tuple[bytes, bytes]:
    """Wait for the end of a process, and of what it has started; what they wrote."""
    patience = Patience(lambda: family(process.pid), working)
    while True:
        try:
            return process.communicate(timeout=0.5)
        except subprocess.TimeoutExpired:
            if patience.is_over():
                process.kill()
                raise AssertionError(f"hangs: {process.args}") from None
