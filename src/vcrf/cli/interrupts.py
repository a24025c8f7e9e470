"""Ctrl-C, SIGTERM and SIGHUP: they end the work early, all in the same way, and lose nothing."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType, TracebackType

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]  # no SIGHUP on Windows

_Handler = Callable[[int, FrameType | None], None]


class _Received:
    """The first signal that this command was sent; Ctrl-C if there was none."""

    number: int = signal.SIGINT
    is_there = False


def exit_code() -> int:
    """That of a command that was ended by a signal: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
    return 128 + _Received.number


@contextmanager
def stoppable() -> Iterator[None]:
    """A context in which the signals are a KeyboardInterrupt."""
    _Received.number, _Received.is_there = signal.SIGINT, False
    with _answered_by(_interrupt), _resending():
        yield


def leave_at_once() -> None:
    """From now on the signals end the process: it has nothing to keep."""
    for number in _answerable():
        signal.signal(number, lambda number, _frame: os._exit(128 + number))


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _note(number)
    raise KeyboardInterrupt


@contextmanager
def _resending() -> Iterator[None]:
    """Send a signal again whose KeyboardInterrupt came where none can be raised: in a callback of the collector."""
    before = sys.unraisablehook

    def hook(lost: sys.UnraisableHookArgs) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            _thread.start_new_thread(_send_soon, (_Received.number,))
        else:
            before(lost)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _send_soon(number: int) -> None:
    time.sleep(0.05)  # until the callback, or the compiler, is over
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):  # not on Windows
        signal.pthread_kill(main, number)  # which ends its waiting too
    else:
        signal.raise_signal(number)


def _note(number: int) -> None:
    if not _Received.is_there:
        _Received.number, _Received.is_there = number, True


def _answerable() -> list[int]:
    """The signals that this process may answer: one that it is to ignore (a background job, nohup) stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [number for number in _SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]


@contextmanager
def _answered_by(handle: _Handler) -> Iterator[None]:
    def handle_outside(number: int, frame: FrameType | None) -> None:
        if _is_compiling(frame):
            _thread.start_new_thread(_send_soon, (number,))
        else:
            handle(number, frame)

    with ExitStack() as stack:
        for number in _answerable():
            stack.callback(signal.signal, number, signal.getsignal(number))
            signal.signal(number, handle_outside)
        yield


def _is_compiling(frame: FrameType | None) -> bool:
    """Whether the compiler is at work: it calls back from C, where an exception is lost or ends the process."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(("numba.", "llvmlite.")):
            return True
        frame = frame.f_back
    return False


class Interrupts:
    """A context from training to the written model.

    The first signal is a KeyboardInterrupt, which the solver answers with its best weights; it is an ordinary one as
    long as there are none, whatever the solver answers. Later ones are ignored, but for the training after an
    interrupted search over strengths: that they end too, at the solver's next record.

    Attributes
    ----------
    is_interrupted : whether there was a signal that the model survives
    """

    def __init__(self) -> None:
        self.is_interrupted = False
        self._has_weights = False
        self._is_early = False
        self._is_solved = False
        self._is_urgent = False
        self._stack = ExitStack()

    def __enter__(self) -> Interrupts:
        self._stack.enter_context(_answered_by(self._handle))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def see_record(self) -> bool:
        """Tell that the solver has weights; answers whether it shall stop."""
        self._check_early()
        self._has_weights = True
        return self._is_urgent

    def see_training(self) -> None:
        """Tell that the search is over and the model itself is trained: a signal from here on is meant for that."""
        self._is_urgent = False

    def see_model(self) -> None:
        """Tell that there is a model: nothing is left to interrupt but its writing."""
        self._check_early()
        self._is_solved = True

    def _check_early(self) -> None:
        """Raise again what a solver answered with a result though it had no weights: such a model has no use."""
        if self._is_early:
            raise KeyboardInterrupt

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        _note(number)
        if self.is_interrupted:
            self._is_urgent = True
            return
        if not self._has_weights:
            self._is_early = True
            raise KeyboardInterrupt
        self.is_interrupted = True
        # Not through sys.stderr: the signal may have come while that was being written to. A terminal may be gone.
        if sys.stderr is not None:
            with suppress(OSError):
                os.write(2, b"\nInterrupted: finishing and writing the model ...\n")
        if not self._is_solved:
            raise KeyboardInterrupt
