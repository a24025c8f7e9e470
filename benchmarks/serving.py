"""Load on `vcrf serve`: requests a second and latencies at saturation, memory, and what it does with bad clients.

    python benchmarks/serving.py MODEL [--seconds 60] [--connections 50]

The service and this program run on one machine and speak over the loopback: they share its cores, so that a client
elsewhere would see more. Each connection sends the next request when the last is answered. At most MOST requests and
SECONDS seconds a round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

MOST = 1_000_000
FORM = "application/x-www-form-urlencoded"
SENTENCE = "The quick brown fox jumps over the lazy dog , and nobody in the village has seen it since ."


def request(method: str, path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def reply(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of an answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return int(head.split(b" ", 2)[1]), await reader.readexactly(int(size[1]) if size else 0)


async def one(port: int, message: bytes) -> tuple[int, bytes]:
    """One request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(message)
        await writer.drain()
        return await asyncio.wait_for(reply(reader), 60)
    finally:
        writer.close()


class Load:
    """Connections that ask as fast as they are answered."""

    def __init__(self, port: int, message: bytes, n_connections: int, seconds: float) -> None:
        self.port, self.message, self.n_connections, self.end = port, message, n_connections, time.monotonic() + seconds
        self.latencies: list[float] = []
        self.n_errors = 0

    async def run(self) -> None:
        await asyncio.gather(*(self._ask() for _ in range(self.n_connections)))

    async def _ask(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while time.monotonic() < self.end and len(self.latencies) < MOST:
            began = time.perf_counter()
            writer.write(self.message)
            status, _ = await asyncio.wait_for(reply(reader), 60)
            self.latencies.append(time.perf_counter() - began)
            self.n_errors += status != 200
        writer.close()

    def told(self, seconds: float) -> str:
        found = sorted(self.latencies)
        parts = [f"p{q} {1000 * found[min(len(found) - 1, len(found) * q // 100)]:.1f}" for q in (50, 90, 99)]
        return (
            f"{len(found) / seconds:,.0f} requests/s, {', '.join(parts)}, max {1000 * found[-1]:.1f} ms, "
            f"{len(found):,} requests, {self.n_errors} errors"
        )


def resident(pid: int) -> float:
    """Megabytes of memory of a process (Linux)."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found[1]) / 1024 if found else float("nan")


# ---- bad clients: each returns what it was answered


async def large_body(port: int) -> str:
    status, body = await one(port, request("POST", "/process", b"data=" + b"a " * 5_000_000, FORM))
    return f"{status} {body.decode().strip()}"


async def long_sentence(port: int) -> str:
    words = {"text": " ".join(SENTENCE.split() * 50), "k": 5}
    status, body = await one(port, request("POST", "/api/v1/tag", json.dumps(words).encode()))
    return f"{status}, {len(json.loads(body)['sentences'][0]['tokens']):,} tokens labelled"


async def no_text(port: int) -> str:
    status, body = await one(port, request("POST", "/process", b"input=horizontal&data=%ff%fe", FORM))
    return f"{status} {body.decode().strip()}"


async def forged_path(port: int) -> str:
    status, body = await one(port, request("GET", "/../../../../etc/passwd"))
    other, said = await one(port, request("GET", "/process?data=a&model=../../../../etc/passwd"))
    return f"{status} {body.decode().strip()}; {other} {said.decode().strip()}"


async def aborted(port: int) -> str:
    for _ in range(50):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("POST", "/api/v1/tag", json.dumps({"text": SENTENCE}).encode()))
        await writer.drain()
        writer.transport.abort()
    return "50 connections closed before the answer"


async def slow(port: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    message = request("POST", "/api/v1/tag", json.dumps({"text": SENTENCE}).encode())
    for byte in message[:40]:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.1)
    writer.write(message[40:])
    status, _ = await asyncio.wait_for(reply(reader), 60)
    writer.close()
    return f"{status} after 40 bytes in 4 seconds"


async def silent(port: int) -> str:
    """More connections than there may be, each with half a head; then one that asks."""
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(600)]
    for _, writer in held:
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    began = time.perf_counter()
    status, _ = await one(port, request("GET", "/health"))
    took = time.perf_counter() - began
    for _, writer in held:
        writer.transport.abort()
    return f"{len(held)} connections with half a head; /health answered {status} after {1000 * took:.0f} ms"


async def two_large(port: int) -> str:
    """Two requests near the limits at once."""
    text = "\n".join([SENTENCE] * 10_000)
    told = []
    for path, message in {
        "/process": request("POST", "/process", ("input=horizontal&data=" + text.replace(" ", "+")).encode(), FORM),
        "/api/v1/tag": request("POST", "/api/v1/tag", json.dumps({"text": text, "k": 0}).encode()),
    }.items():
        began = time.perf_counter()
        statuses = [status for status, _ in await asyncio.gather(one(port, message), one(port, message))]
        told.append(f"{path} twice with 190,000 tokens: {statuses} after {time.perf_counter() - began:.1f} s")
    return "; ".join(told)


BAD: dict[str, Callable[[int], Awaitable[str]]] = {
    "10 MB body": large_body, "1,000 tokens a sentence, 5 best": long_sentence, "invalid UTF-8": no_text,
    "forged paths": forged_path, "aborted": aborted, "slow": slow, "silent": silent, "large": two_large,
}  # fmt: skip


async def measure(port: int, pid: int, seconds: float, n_connections: int) -> int:
    """All rounds; the number of errors."""
    messages = {
        "/process, one sentence of 19 tokens": request(
            "POST", "/process", ("input=horizontal&data=" + SENTENCE.replace(" ", "+")).encode(),
            FORM,
        ),
        "/api/v1/tag, the same with posteriors and 5 best": request(
            "POST", "/api/v1/tag", json.dumps({"text": SENTENCE}).encode()
        ),
    }  # fmt: skip
    n_errors = 0
    for name, message in messages.items():
        await Load(port, message, n_connections, 2.0).run()  # caches, and memory at its level
        before = resident(pid)
        load = Load(port, message, n_connections, seconds)
        began = time.perf_counter()
        await load.run()
        print(f"{name}: {load.told(time.perf_counter() - began)}")
        print(f"  memory {before:.0f} MB before, {resident(pid):.0f} MB after")
        n_errors += load.n_errors
    others = Load(port, messages["/process, one sentence of 19 tokens"], 10, 600.0)
    serving = asyncio.create_task(others.run())
    began = time.perf_counter()
    for name, client in BAD.items():
        seen = len(others.latencies)
        print(f"{name}: {await client(port)}")
        slowest = max(others.latencies[seen:], default=float("nan"))
        print(f"  meanwhile {len(others.latencies) - seen:,} others, the slowest after {1000 * slowest:.0f} ms")
    others.end = 0.0
    await serving
    print(f"meanwhile, 10 connections: {others.told(time.perf_counter() - began)}; memory {resident(pid):.0f} MB")
    return n_errors + others.n_errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--connections", type=int, default=50)
    given = parser.parse_args()
    command = [sys.executable, "-m", "vcrf", "serve", str(given.model), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        try:
            assert process.stderr is not None  # noqa: S101
            found = None
            while not found:
                found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stderr.readline())
            n_errors = asyncio.run(measure(int(found[1]), process.pid, given.seconds, given.connections))
        finally:
            process.terminate()
    sys.exit(n_errors > 0)


if __name__ == "__main__":
    main()
