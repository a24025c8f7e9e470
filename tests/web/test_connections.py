"""Clients that hold connections: they lose them, and nobody else notices."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from vcrf.web.limits import Limits

from .conftest import opened

HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
LATTICE = (
    b"POST /api/v1/lattice HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b'Content-Length: 13\r\n\r\n{"text": "a"}'
)


@contextmanager
def connected(client: Any, sent: bytes = b"", **options: int) -> Iterator[socket.socket]:
    """A connection that has sent something."""
    connection = socket.socket()
    for name, value in options.items():
        connection.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
    connection.settimeout(20)
    with connection:
        connection.connect((client.base_url.host, client.base_url.port))
        connection.sendall(sent)
        yield connection


def everything(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        parts.append(b"reset")
    return b"".join(parts)


def trickle(connection: socket.socket, until: float) -> None:
    """Send a byte now and then."""
    while time.monotonic() < until:
        connection.sendall(b"a")
        time.sleep(0.02)


def test_a_head_that_never_ends_is_given_up(models: Any) -> None:
    """408 after the limit: for silence, and for a byte now and then."""
    for client in opened(models, limits=Limits(head=0.4)):
        with connected(client) as silent, connected(client, HEAD) as slow:
            began = time.monotonic()
            while time.monotonic() - began < 0.3:
                slow.sendall(b"X: y\r\n")
                time.sleep(0.02)
            for each in (silent, slow):
                assert everything(each).startswith(b"HTTP/1.1 408 ")
            assert time.monotonic() - began < 10.0
        assert client.get("/health").status_code == 200


def test_the_time_for_a_head_begins_with_each_request(models: Any) -> None:
    """A connection may be used for longer than one head may take; its next head has the same limit."""
    for client in opened(models, limits=Limits(head=0.4)):
        with connected(client) as kept:
            for _ in range(4):
                kept.sendall(HEAD + b"\r\n")
                answer = b""
                while not answer.endswith(b"}"):
                    answer += kept.recv(1000)
                assert answer.startswith(b"HTTP/1.1 200")
                time.sleep(0.2)
            kept.sendall(HEAD)
            assert everything(kept).startswith(b"HTTP/1.1 408 ")


def test_an_idle_connection_is_closed(models: Any) -> None:
    """Without a word, as browsers expect it."""
    for client in opened(models, limits=Limits(idle=1)):
        with connected(client, HEAD + b"\r\n") as idle:
            assert everything(idle).endswith(b"}")


def test_a_body_after_its_refusal_is_not_waited_for(models: Any) -> None:
    """A request that is too large has its answer; what still comes of it has no more time than a head."""
    for client in opened(models, limits=Limits(head=0.4, body=1000)):
        head = b"POST /process HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
        with connected(client, head) as large:
            began, answer = time.monotonic(), large.recv(2000)
            assert answer.startswith(b"HTTP/1.1 413")
            with pytest.raises(OSError, match=r"reset|pipe"):
                trickle(large, until=began + 15.0)


def test_connections_that_ask_for_nothing_make_room(models: Any) -> None:
    """Above the limit the one that has waited longest goes; who asks is answered at once."""
    for client in opened(models, limits=Limits(connections=20, head=60.0)):
        with ExitStack() as stack:
            held = [stack.enter_context(connected(client, HEAD)) for _ in range(60)]
            began = time.monotonic()
            for _ in range(5):
                with connected(client, HEAD + b"Connection: close\r\n\r\n") as new:
                    assert everything(new).startswith(b"HTTP/1.1 200")
            assert time.monotonic() - began < 20.0
            assert everything(held[0]) in (b"", b"reset")
            held[-1].sendall(b"Connection: close\r\n\r\n")
            assert everything(held[-1]).startswith(b"HTTP/1.1 200")


def test_when_all_are_at_work_a_new_one_is_refused(models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """503, and as soon as one is answered there is room."""
    import threading

    release = threading.Event()
    monkeypatch.setattr("vcrf.web.api.lattice_view", lambda *_: {"done": release.wait(20)})
    for client in opened(models, limits=Limits(connections=2)):
        with connected(client, LATTICE) as first, connected(client, LATTICE) as second:
            while client.service.counts.at_work < 2:
                time.sleep(0.01)
            with connected(client, HEAD + b"\r\n") as third:
                assert everything(third).startswith(b"HTTP/1.1 503 ")
            release.set()
            for each in (first, second):
                assert each.recv(1000).startswith(b"HTTP/1.1 200")
            assert client.get("/health").status_code == 200


def test_an_answer_that_nobody_reads_is_dropped(models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is not held for a client that has stopped to read; one that reads slowly gets all of it."""
    monkeypatch.setattr("vcrf.web.api.lattice_view", lambda *_: {"long": "x" * 8_000_000})
    for client in opened(models, limits=Limits(unread=1.0)):
        with connected(client, LATTICE, SO_RCVBUF=4096) as stopped, connected(client, LATTICE) as slow:
            n = 0
            while part := slow.recv(1 << 15):
                n += len(part)
                time.sleep(0.01)
                if n > 8_000_000:
                    break
            assert n > 8_000_000
            assert len(everything(stopped)) < 8_000_000
