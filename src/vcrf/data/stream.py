"""A text in pieces of whole lines: a file of any size, or a pipe, in constant memory."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple, cast

from vcrf.data.text import (
    check_no_model,
    check_nul,
    compression_of,
    compression_suffix,
    damaged,
    decode,
    decompressing,
    decompression_errors,
    unreadable,
)
from vcrf.errors import InputError

_CHUNK = 1 << 20
_PIECE = 1 << 15
_LONGEST_LINE = 1 << 24
# Not splitlines(): U+2028 and its like are characters of a token, not ends of a line.
_lines_of = re.compile(r"[^\n]*\n|[^\n]+").findall


class Piece(NamedTuple):
    """Whole lines of a text, as bytes.

    Parameters
    ----------
    first_line : int
        Number of the first of them, from 1.
    data : bytes
        Every line has its end, but for the last of the text.
    """

    first_line: int
    data: bytes

    def lines(self, name: str) -> list[str]:
        """The lines as text; `name` is for the messages."""
        return _decoded_lines(self.data, name, self.first_line)


def stream_name(source: str | os.PathLike[str]) -> str:
    """Return the name that messages use for a source."""
    return "<stdin>" if os.fspath(source) == "-" else os.fspath(source)


def stream_lines(source: str | os.PathLike[str]) -> Iterator[list[str]]:
    r"""Read a text as it comes, in lists of whole lines.

    Parameters
    ----------
    source : str or path
        A file (plain, .gz, .bz2, .xz), or `-` for standard input.

    Yields
    ------
    list of str
        Lines as they are in the file: with `\n` or `\r\n` at the end (the last may have none), a byte order mark on
        the first. The whole lines that a pipe has so far come at once, without waiting for more.

    Raises
    ------
    InputError
        When the file cannot be read, is broken, is not UTF-8, contains a NUL character or a line above 16 MB.
    """
    name = stream_name(source)
    for piece in stream_pieces(source):
        yield piece.lines(name)


def stream_pieces(source: str | os.PathLike[str]) -> Iterator[Piece]:
    """The same lines before they are decoded."""
    name = stream_name(source)
    n_lines, rest = 0, bytearray()
    for chunk in _chunks(source, name):
        end = chunk.rfind(b"\n") + 1
        rest += chunk[:end] if end else chunk
        if end:
            yield Piece(n_lines + 1, bytes(rest))
            n_lines, rest = n_lines + rest.count(b"\n"), bytearray(chunk[end:])
        if len(rest) > _LONGEST_LINE:
            raise InputError(
                f"{name}:{n_lines + 1}: expected lines of text, got more than {_LONGEST_LINE >> 20} MB without the end "
                "of a line. Check that this is the right file; write one token, or one sentence, a line."
            )
    if rest:
        yield Piece(n_lines + 1, bytes(rest))


def content_lines(content: bytes, name: str) -> Iterator[list[str]]:
    """Lines of a text that is in memory, in lists of a few hundred: as `stream_lines` gives those of a file."""
    n_lines, first = 0, 0
    while first < len(content):
        end = content.find(b"\n", min(first + _PIECE, len(content))) + 1 or len(content)
        lines = _decoded_lines(content[first:end], name, n_lines + 1)
        n_lines, first = n_lines + len(lines), end
        yield lines


def _decoded_lines(data: bytes, name: str, first_line: int) -> list[str]:
    content = decode(data, name, first_line)
    check_nul(content, name, first_line)
    return cast(list[str], _lines_of(content))


def _chunks(source: str | os.PathLike[str], name: str) -> Iterator[bytes]:
    """Decompressed bytes, as many as are there."""
    suffix = ""
    with ExitStack() as stack:
        try:
            raw = stack.enter_context(_open(source))
            # One look at what is there: a pipe is not waited for.
            suffix = compression_suffix(name) or compression_of(raw.peek(10))
            stream = decompressing(raw, suffix)
            # read1 does not wait for a pipe to fill the chunk; decompressors would give small pieces by it.
            read = stream.read if suffix else stream.read1
            is_first = True
            while chunk := read(_CHUNK):
                yield check_no_model(chunk, name) if is_first else chunk
                is_first = False
        except decompression_errors(suffix) as error:
            raise damaged(name, suffix, error) from error
        except OSError as error:
            raise unreadable(name, error) from error


def _open(source: str | os.PathLike[str]) -> nullcontext[io.BufferedReader] | io.BufferedReader:
    if os.fspath(source) != "-":
        return Path(source).open("rb")
    if sys.stdin is None:  # closed by the shell: `<&-`
        raise InputError("<stdin>: standard input is closed. Pass a file, or text through a pipe.")
    raw = sys.stdin.buffer
    with suppress(AttributeError, OSError):  # a stand-in has no number
        # A buffer of its own: that of Python may not be in use when the process ends, and a thread may wait for a pipe.
        return open(raw.fileno(), "rb", closefd=False)
    if not hasattr(raw, "peek"):  # a test's stand-in for standard input
        raw = io.BufferedReader(cast(io.RawIOBase, raw))
    return nullcontext(cast(io.BufferedReader, raw))
