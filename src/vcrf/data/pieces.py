"""A text cut between sentences, before it is decoded: for several processes, and for several machines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from vcrf.data.stream import Piece, stream_name, stream_pieces
from vcrf.data.text import compression_of, compression_suffix, unreadable
from vcrf.errors import InputError

# A run of so many lines without a blank one is left to the reader, which refuses it.
MOST_LINES = 1_000_000

_BLANK_LINE = re.compile(rb"(?m)^[ \t\r\f\v]*\n")
_SHARD = re.compile(r"([0-9]+)/([0-9]+)")

_Item = TypeVar("_Item")


class Shard(NamedTuple):
    """One of n parts of a text, counted from 1: all parts, one after the other, are the text."""

    number: int
    of: int

    def bounds(self, size: int) -> tuple[int, int]:
        """Where it begins and ends in so many bytes or items; no part is larger than another by more than one."""
        return size * (self.number - 1) // self.of, size * self.number // self.of

    def select(self, items: Sequence[_Item]) -> Sequence[_Item]:
        """The items of this part."""
        first, last = self.bounds(len(items))
        return items[first:last]


def read_shard(text: str) -> Shard:
    """A part as it is written: 2/8 is the second of eight."""
    found = _SHARD.fullmatch(text.strip())
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise InputError(f"`shard={text}`: expected a part and their number, from 1/8 to 8/8 for eight parts.")
    return Shard(int(found[1]), int(found[2]))


def whole_sentences(pieces: Iterable[Piece], is_line: bool) -> Iterator[Piece]:
    """The same text in pieces that end with a sentence: a line is one, or a blank line ends one."""
    if is_line:
        yield from pieces
        return
    held = Piece(1, b"")
    for piece in pieces:
        held = Piece(held.first_line, held.data + piece.data) if held.data else piece
        end = _last_end(held.data)
        if not end and held.data.count(b"\n") > MOST_LINES:
            end = len(held.data)
        if end:
            yield Piece(held.first_line, held.data[:end])
            held = Piece(held.first_line + held.data.count(b"\n", 0, end), held.data[end:])
    if held.data:
        yield held


def part_of(pieces: Iterable[Piece], bounds: tuple[int, int], is_line: bool) -> Iterator[Piece]:
    """Of pieces of whole sentences the sentences that begin between two places, in bytes from the first piece."""
    first, last = bounds
    end = 0
    for piece in pieces:
        begin, end = end, end + len(piece.data)
        if last <= begin:
            return
        if first < end:
            a, b = _next_end(piece.data, first - begin, is_line), _next_end(piece.data, last - begin, is_line)
            if a < b:
                yield Piece(piece.first_line + piece.data.count(b"\n", 0, a), piece.data[a:b])


def text_size(source: str | os.PathLike[str]) -> int:
    """Bytes of a file, decompressed: one that is compressed is read once for it."""
    name = stream_name(source)
    path = Path(source)
    if name == "<stdin>" or (path.exists() and not path.is_file()):
        raise InputError(f"{name}: `shard` is for files: of a stream nobody knows beforehand how long it is.")
    try:
        with path.open("rb") as file:
            is_compressed = bool(compression_suffix(name) or compression_of(file.read(10)))
            return sum(len(piece.data) for piece in stream_pieces(source)) if is_compressed else path.stat().st_size
    except OSError as error:
        raise unreadable(name, error) from error


def _last_end(data: bytes) -> int:
    """Where the last blank line ends; 0 if there is none."""
    found = [at + len(mark) for mark in (b"\n\n", b"\n\r\n") if (at := data.rfind(mark)) >= 0]
    return max(found) if found else max((match.end() for match in _BLANK_LINE.finditer(data)), default=0)


def _next_end(data: bytes, at: int, is_line: bool) -> int:
    """Where the first sentence ends that does not end before a place."""
    if at <= 0 or at >= len(data):
        return max(0, min(at, len(data)))
    line = data.rfind(b"\n", 0, at - 1) + 1
    if is_line:
        return data.find(b"\n", at - 1) + 1 or len(data)
    found = _BLANK_LINE.search(data, line)
    return found.end() if found else len(data)
