"""Starting and ending the service: uvicorn, in the foreground or beside a training."""

from __future__ import annotations

import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from vcrf.errors import InputError, MissingExtraError, VcrfError, missing_extra

if TYPE_CHECKING:
    import uvicorn

    from vcrf.web.service import Service

LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Seconds that requests at work have when the service is asked to end.
_GRACE = 5


def check_installed() -> None:
    """Raise MissingExtraError unless the extra `web` is installed."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise MissingExtraError(missing_extra("The page", "starlette and uvicorn", "web"))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return host in LOOPBACK or host.startswith("127.")


def new_token() -> str:
    """A secret that nobody guesses."""
    return secrets.token_urlsafe(18)


def check_token(token: str) -> None:
    """Refuse a secret that no header carries as it is."""
    if not token or any(not "!" <= character <= "~" for character in token):
        raise InputError(
            "--token (or VCRF_TOKEN): expected a secret of ASCII letters, digits and signs without blanks, "
            f"got {'none' if not token else 'other characters'}. `--token auto` makes one."
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once only where it sees the protocol; otherwise an answer in two parts waits for 40 ms.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except (OSError, OverflowError) as error:
        found.close()
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"Cannot listen at {host} port {port}: {why}. Is another service there? Choose another with --port, or "
            "--port 0 for a free one."
        ) from error
    found.set_inheritable(False)
    return found


def address_of(listening: socket.socket, host: str, token: str = "") -> str:
    """The page's address; the token is in the part that a browser keeps to itself."""
    port = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + (f"#token={quote(token, safe='')}" if token else "")


def new_server(service: Service) -> uvicorn.Server:
    """A server that has not begun."""
    import uvicorn

    from vcrf.web.app import build_app
    from vcrf.web.connections import connection_class

    limits = service.limits
    return uvicorn.Server(
        uvicorn.Config(
            build_app(service), log_level="warning", access_log=False, server_header=False, lifespan="off",
            http=connection_class(limits), ws="none", timeout_keep_alive=limits.idle,
            timeout_graceful_shutdown=_GRACE, h11_max_incomplete_event_size=1 << 16, backlog=512,
        )
    )  # fmt: skip


def serve(service: Service, listening: socket.socket, on_ready: Callable[[], Any] | None = None) -> None:
    """Answer requests until a signal comes; requests at work are answered first."""
    server = new_server(service)
    if on_ready is not None:
        threading.Thread(target=_when_started, args=(server, on_ready), daemon=True).start()
    try:
        with _hangup_ends(server):
            server.run(sockets=[listening])
    finally:
        service.close()


@contextmanager
def _hangup_ends(server: uvicorn.Server) -> Iterator[None]:
    """SIGHUP ends the service too, and is sent again when that is over; uvicorn does so with the other signals."""
    number = getattr(signal, "SIGHUP", None)  # not on Windows
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(number) if number is not None and is_main else None
    if number is None or before in (None, signal.SIG_IGN):
        yield
        return
    received: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        server.should_exit = True

    signal.signal(number, end)
    try:
        yield
    finally:
        signal.signal(number, before)
        for again in received[:1]:
            signal.raise_signal(again)


def _when_started(server: uvicorn.Server, call: Callable[[], Any]) -> None:
    wait = threading.Event()
    while not server.started and not server.should_exit:
        wait.wait(0.05)
    if server.started:
        call()


@contextmanager
def serving(service: Service, listening: socket.socket) -> Iterator[None]:
    """Answer requests beside other work, on a thread of its own."""
    server = new_server(service)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="vcrf-serve", daemon=True)
    thread.start()
    wait = threading.Event()
    while not server.started and thread.is_alive():
        wait.wait(0.02)
    if not server.started:
        raise VcrfError("The service could not start. Its log has the reason.")
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(_GRACE + 2)
        service.close()
