"""Connections that end when their clients do not go on: heads that never end, answers that nobody reads, too many.

uvicorn bounds how long a connection is idle after an answer, and nothing else. Here a connection waits for a request,
or is at work on one; one that waits is closed after a while, or earlier if it stands in the way of a new one.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from vcrf.web.limits import Limits

_LATE = (408, "Request Timeout", "The request did not arrive in time.")
_BUSY = (503, "Service Unavailable", "Too many connections are at work. Try again in a second.")


class Connection(H11Protocol):
    """A connection with limits. A subclass has those of one service: see `connection_class`.

    Attributes
    ----------
    limits : seconds for a head and for an answer that is not read, and the number of connections
    waiting : connections that wait for a request, the one that has waited longest first
    """

    limits: Limits
    waiting: dict[Connection, None]

    _head: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for this one: the client that has sent no request for longest has to go."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            if not self.waiting:
                self._refuse(*_BUSY)
                return
            next(iter(self.waiting))._drop()
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes; those of a head do not begin its time anew."""
        super().data_received(data)
        if self._is_at_work():
            self._stop_waiting()
        else:
            self._wait()

    def on_response_complete(self) -> None:
        """Wait for the next request; uvicorn bounds the time until its first byte."""
        super().on_response_complete()
        if not self._is_at_work() and not self.transport.is_closing():
            self.waiting[self] = None
        self._watch_reading()

    def pause_writing(self) -> None:
        """Look whether the client reads at all."""
        super().pause_writing()
        self._watch_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        super().connection_lost(exc)
        self._stop_waiting()
        if self._reading is not None:
            self._reading.cancel()

    # ---- requests that do not come

    def _is_at_work(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is not None and not cycle.response_complete

    def _wait(self) -> None:
        if self._head is None and not self.transport.is_closing():
            self.waiting.setdefault(self)
            self._head = self.loop.call_later(self.limits.head, self._refuse, *_LATE)

    def _stop_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _refuse(self, status: int, reason: str, said: str) -> None:
        """Answer in one piece, unless this request has its answer, and close."""
        if self.conn.our_state is h11.IDLE:
            body = f"{said}\n"
            head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}"
            self.transport.write(f"{head}\r\nConnection: close\r\nRetry-After: 1\r\n\r\n{body}".encode())
        self._drop()

    def _drop(self) -> None:
        self._stop_waiting()
        self.transport.close()
        self._watch_reading()

    # ---- answers that are not read

    def _watch_reading(self) -> None:
        """Cut a client off that has read nothing of what is left of its answer; one that reads slowly may."""
        left = self.transport.get_write_buffer_size()
        if left and self._reading is None:
            self._reading = self.loop.call_later(self.limits.unread, self._look, left)

    def _look(self, before: int) -> None:
        self._reading = None
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._watch_reading()


def connection_class(limits: Limits) -> type[Connection]:
    """The connections of one service."""
    attributes: dict[str, Any] = {"limits": limits, "waiting": {}}
    return type("Connection", (Connection,), attributes)
