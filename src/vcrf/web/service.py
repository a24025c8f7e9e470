"""What all requests share: models, limits, workers, counts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from vcrf.errors import BudgetError, InputError, WriteError
from vcrf.web.counting import RequestCounts
from vcrf.web.limits import Limits, Refused
from vcrf.web.models import Models

if TYPE_CHECKING:
    from starlette.requests import Request

    from vcrf.web.annotating import Annotating
    from vcrf.web.watching import LiveTraining

Answer = TypeVar("Answer")

# Seconds that a long request works before others have their turn.
_WHILE = 0.05


@dataclass(eq=False)
class Service:
    """The state of a service.

    Attributes
    ----------
    models, limits : what is served, and how much of it at once
    token : a secret that requests for data have to bring; "" asks for none
    hosts : names that a request may call us by; none means any
    annotating : the Label view, if there is a pool
    live : a training that is under way
    """

    models: Models
    limits: Limits = field(default_factory=Limits)
    token: str = ""
    hosts: tuple[str, ...] = ()
    annotating: Annotating | None = None
    live: LiveTraining | None = None
    counts: RequestCounts = field(default_factory=RequestCounts)
    n_workers: int = 0

    def __post_init__(self) -> None:
        n_workers = self.n_workers or max(2, os.cpu_count() or 2)
        self.pool = ThreadPoolExecutor(n_workers, thread_name_prefix="vcrf-worker")
        # What cannot be done in pieces has workers of its own.
        self.long_pool = ThreadPoolExecutor(max(1, n_workers - 1), thread_name_prefix="vcrf-long")
        self._n_waiting = 0
        self._n_held = 0

    async def work(self, function: Callable[..., Answer], *args: Any, **options: Any) -> Answer:
        """Run a function on a worker; errors of the caller are refusals, and so is what takes too long."""
        return await self._counted(self._run(self.pool, partial(function, *args, **options)))

    async def work_long(self, function: Callable[..., Answer], *args: Any, **options: Any) -> Answer:
        """Run a function that may take seconds: other requests do not wait for it."""
        return await self._counted(self._run(self.long_pool, partial(function, *args, **options)))

    async def work_through(self, pieces: Iterator[Answer], request: Request) -> list[Answer]:
        """Run a generator on the workers, a short while at a time: others have their turn in between.

        It ends when the time is over or the client has gone.
        """

        async def run() -> list[Answer]:
            found: list[Answer] = []
            while True:
                part, is_over = await self._run(self.pool, partial(_for_a_while, pieces))
                found += part
                if is_over:
                    return found
                if await request.is_disconnected():
                    raise ClientGone

        return await self._counted(run())

    @staticmethod
    async def _run(pool: ThreadPoolExecutor, function: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(pool, function)

    async def _counted(self, running: Coroutine[Any, Any, Answer]) -> Answer:
        """Wait for an answer among those that wait, no longer than the limit."""
        if self._n_waiting >= self.limits.waiting:
            running.close()
            raise Refused(503, "Too many requests are waiting. Try again in a second.")
        self._n_waiting += 1
        try:
            return await asyncio.wait_for(running, self.limits.seconds)
        except TimeoutError:
            raise Refused(503, f"This takes more than {self.limits.seconds:g} seconds. Ask for less.") from None
        except InputError as error:
            raise Refused(400, str(error)) from error
        except WriteError as error:
            # The message has a path, which is none of the client's business.
            raise Refused(507, "It could not be written: is the disk full? What was saved before is safe.") from error
        except BudgetError as error:
            raise Refused(413, str(error)) from error
        finally:
            self._n_waiting -= 1

    def hold(self, request: Request, n_bytes: int) -> None:
        """Count bytes of a request until it is answered; refused if all requests together have too many."""
        if self._n_held + n_bytes > self.limits.bodies:
            raise Refused(503, "Too many large requests are waiting. Try again in a second.")
        self._n_held += n_bytes
        request.scope["vcrf.held"] = request.scope.get("vcrf.held", 0) + n_bytes

    def release(self, request: Request) -> None:
        """Forget the bytes of a request that is answered."""
        self._n_held -= request.scope.pop("vcrf.held", 0)

    def close(self) -> None:
        """End the workers; what has not begun is dropped."""
        for pool in (self.pool, self.long_pool):
            pool.shutdown(wait=True, cancel_futures=True)


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


def _for_a_while(pieces: Iterator[Answer]) -> tuple[list[Answer], bool]:
    """Pieces of a short while, and whether there are no more."""
    found, end = [], time.monotonic() + _WHILE
    for piece in pieces:
        found.append(piece)
        if time.monotonic() > end:
            return found, False
    return found, True


async def read_body(request: Request, service: Service) -> bytes:
    """The body of a request; refused as soon as it is known to be too large, or when it does not come."""
    limits = service.limits
    declared = request.headers.get("content-length", "0")
    parts: list[bytes] = []
    size = int(declared) if declared.isdecimal() else 0
    if size <= limits.body:
        size = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > limits.body:
                        break
                    service.hold(request, len(part))
                    parts.append(part)
                else:
                    return b"".join(parts)
            raise Refused(413, _too_large(limits))
        raise Refused(408, f"The request did not arrive within {limits.seconds:g} seconds.")
    raise Refused(413, _too_large(limits))


def _too_large(limits: Limits) -> str:
    return f"A request may have {limits.body / 1e6:g} MB. Send it in parts."


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body."""
    try:
        value = json.loads(body.decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise Refused(400, "Expected a JSON object in UTF-8.") from None
    if not isinstance(value, dict):
        raise Refused(400, "Expected a JSON object.")
    return value
