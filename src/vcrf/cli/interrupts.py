"""Ctrl-C while a model is made: the first one ends the work early, no further one loses the model."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """A context from training to the written model.

    The first Ctrl-C is a KeyboardInterrupt, which the solver answers with its best weights; it is an ordinary one as
    long as there are none, whatever the solver answers. Later ones are ignored, but for the training after an
    interrupted search over strengths: that they end too, at the solver's next record.

    Attributes
    ----------
    is_interrupted : whether there was a Ctrl-C that the model survives
    """

    def __init__(self) -> None:
        self.is_interrupted = False
        self._has_weights = False
        self._is_early = False
        self._is_solved = False
        self._is_urgent = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        is_main = threading.current_thread() is threading.main_thread()
        # A process that is to ignore Ctrl-C (a background job) goes on to do so.
        if is_main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def see_record(self) -> bool:
        """Tell that the solver has weights; answers whether it shall stop."""
        self._check_early()
        self._has_weights = True
        return self._is_urgent

    def see_training(self) -> None:
        """Tell that the search is over and the model itself is trained: a Ctrl-C from here on is meant for that."""
        self._is_urgent = False

    def see_model(self) -> None:
        """Tell that there is a model: nothing is left to interrupt but its writing."""
        self._check_early()
        self._is_solved = True

    def _check_early(self) -> None:
        """Raise again what a solver answered with a result though it had no weights: such a model has no use."""
        if self._is_early:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.is_interrupted:
            self._is_urgent = True
            return
        if not self._has_weights:
            self._is_early = True
            raise KeyboardInterrupt
        self.is_interrupted = True
        # Not through sys.stderr: the signal may have come while that was being written to.
        if sys.stderr is not None:
            os.write(2, b"\nInterrupted: finishing and writing the model ...\n")
        if not self._is_solved:
            raise KeyboardInterrupt
