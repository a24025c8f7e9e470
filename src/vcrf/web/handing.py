"""Who has which sentence at hand, so that two people, or two tabs, do not label the same one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

# After so many seconds without a word the sentences are for others too: the browser may have died.
HELD = 300.0


class Handing:
    """Sentences that were handed out, to whom and when."""

    def __init__(self, seconds: float = HELD) -> None:
        self.seconds = seconds
        self._out: dict[tuple[str, ...], tuple[str, float]] = {}
        self._lock = threading.Lock()

    def is_out(self, sentence: tuple[str, ...], who: str) -> bool:
        """Whether another than `who` has it."""
        with self._lock:
            holder, since = self._out.get(sentence, (who, 0.0))
        return holder != who and time.monotonic() - since < self.seconds

    def give(self, sentences: Iterable[tuple[str, ...]], who: str) -> None:
        """Hand sentences out; one without a name holds none."""
        if who:
            now = time.monotonic()
            with self._lock:
                self._out.update((sentence, (who, now)) for sentence in sentences)
