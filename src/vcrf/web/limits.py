"""What a request may ask for, and the answer to one that asks for more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vcrf.errors import VcrfError


@dataclass(frozen=True)
class Limits:
    """Bounds on one request, on all that wait, and on connections.

    Attributes
    ----------
    body : bytes of a request
    tokens : of all sentences of a request
    sentence : tokens of a sentence whose lattice or reasons are asked for
    k : best sequences
    rows : sentences in one answer of errors, comparisons and suggestions
    seconds : until a request is answered, and until its body has arrived
    waiting : requests at work or waiting for a worker
    bodies : bytes of all requests that are not answered yet
    connections : open at once; above that the one goes that has sent no request for longest
    head : seconds until the head of a request has arrived
    idle : seconds between an answer and the next request
    unread : seconds in which a client reads nothing of its answer
    """

    body: int = 8_000_000
    tokens: int = 200_000
    sentence: int = 1_000
    k: int = 100
    rows: int = 200
    seconds: float = 30.0
    waiting: int = 256
    bodies: int = 64_000_000
    connections: int = 512
    head: float = 10.0
    idle: int = 20
    unread: float = 20.0


class Refused(VcrfError):
    """A request that is not answered: the status, and what to do."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def check_tokens(limits: Limits, n_tokens: int) -> None:
    """Refuse too many tokens in a request."""
    if n_tokens > limits.tokens:
        raise Refused(413, f"A request may have {limits.tokens:,} tokens, got {n_tokens:,}. Send it in parts.")


def check_sentence(limits: Limits, n_tokens: int) -> None:
    """Refuse a sentence that is too long for a lattice."""
    if n_tokens > limits.sentence:
        raise Refused(413, f"Here a sentence may have {limits.sentence:,} tokens, got {n_tokens:,}. Split it.")


def whole(value: Any, name: str, least: int, most: int) -> int:
    """A number of a request, as text or number, between two bounds."""
    is_text = isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 10
    number = int(value) if is_text else value
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise Refused(400, f"{name}: expected a whole number from {least:,} to {most:,}, got {str(value)[:40]!r}.")
    return number


def share(value: Any, name: str) -> float:
    """A share of a request, as text or number, between 0 and 1."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0.0 < number < 1.0:
        raise Refused(400, f"{name}: expected a share between 0 and 1, as 0.01, got {str(value)[:40]!r}.")
    return number
