"""From a path, standard input or a stream to decoded text: compression, encoding, line ends."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, TypeAlias, cast

from vcrf.errors import InputError

Source: TypeAlias = str | os.PathLike[str] | IO[bytes] | IO[str]

# Magic bytes decide where no name does (standard input, streams).
_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00"}
_KINDS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}
# Bytes to decompress at a time.
_PIECE = 1 << 24
_BZ2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")
# A model file begins so, after the length of its header.
_MODEL, _AFTER = b'{"__metadata__":{"vcrf":', 8


class DecodedText(NamedTuple):
    r"""Decoded content and the name that error messages use for it.

    Parameters
    ----------
    name : str
        The path as the user wrote it, `<stdin>`, or the stream's name.
    content : str
        No byte order mark, lines end in `\n`.
    """

    name: str
    content: str


def read_text(source: Source) -> DecodedText:
    """Read all of a text, decompressed.

    Parameters
    ----------
    source : str, path, or open stream
        A file (plain, .gz, .bz2, .xz), `-` for standard input, or anything with `read`.

    Returns
    -------
    Text

    Raises
    ------
    InputError
        When the file cannot be read, is broken, is a model, is not UTF-8 or contains a NUL character.
    """
    name, raw = _read_raw(source)
    content = raw if isinstance(raw, str) else decode(check_no_model(_decompress(raw, name), name), name)
    content = content.removeprefix("\ufeff")
    if "\r" in content:
        content = content.replace("\r\n", "\n")
    check_nul(content, name)
    return DecodedText(name, content)


def compression_suffix(name: str) -> str:
    """Return `.gz`, `.bz2` or `.xz` when the name ends so, otherwise the empty string."""
    suffix = Path(name).suffix.lower()
    return suffix if suffix in _MAGIC else ""


def _read_raw(source: Source) -> tuple[str, bytes | str]:
    if not isinstance(source, (str, os.PathLike)):
        return str(getattr(source, "name", "<stream>")), source.read()
    name = os.fspath(source)
    if name == "-":
        # Bytes where there are any: the terminal's encoding has no say in a UTF-8 format.
        if sys.stdin is None:  # closed by the shell: `<&-`
            raise InputError("<stdin>: standard input is closed. Pass a file, or text through a pipe.")
        return "<stdin>", getattr(sys.stdin, "buffer", sys.stdin).read()
    try:
        return name, Path(name).read_bytes()
    except OSError as error:
        raise unreadable(name, error) from error


def unreadable(name: str, error: OSError) -> InputError:
    """The error for a file that cannot be opened or read."""
    return InputError(f"{name}: expected a readable file, got: {error.strerror}. Check the path and its permissions.")


def damaged(name: str, suffix: str, error: Exception) -> InputError:
    """The error for a file that cannot be decompressed."""
    return InputError(
        f"{name}: expected {_KINDS[suffix]} data, got bytes that cannot be decompressed ({error}). "
        f"The file is cut off or damaged, or it is not compressed: then rename it without {suffix}."
    )


def _decompress(data: bytes, name: str) -> bytes:
    suffix = compression_suffix(name) or compression_of(data)
    if not suffix:
        return data
    from vcrf.machine import total_memory

    # A few kilobytes may stand for any number of zeros. What is read takes several times its size when it is used.
    most = total_memory() / 4
    pieces: list[bytes] = []
    try:
        with decompressing(io.BytesIO(data), suffix) as stream:
            while len(pieces) * _PIECE <= most and (piece := stream.read(_PIECE)):
                pieces.append(piece)
    except decompression_errors(suffix) as error:
        raise damaged(name, suffix, error) from error
    if len(pieces) * _PIECE > most:
        raise _too_large(name, most)
    return b"".join(pieces)


def _too_large(name: str, most: float) -> InputError:
    return InputError(
        f"{name}: expected text that fits into memory, got more than {most / 1e9:.1f} GB when decompressed. Check that "
        "this is the right file, or take a part of it."
    )


def decompression_errors(suffix: str) -> tuple[type[Exception], ...]:
    """What decompressing damaged data raises; nothing if the suffix is empty."""
    if not suffix:
        return ()
    # The library of .gz and that of .xz have an error of their own, a plain subclass of Exception.
    if suffix == ".gz":
        import zlib

        return (OSError, EOFError, ValueError, zlib.error)
    if suffix == ".bz2":
        return (OSError, EOFError, ValueError)
    import lzma

    return (OSError, EOFError, ValueError, lzma.LZMAError)


def compression_of(data: bytes) -> str:
    """Return `.gz`, `.bz2` or `.xz` when the bytes begin as such a file does, otherwise the empty string."""
    if data.startswith(_MAGIC[".bz2"]):
        # "BZh" alone could begin a plain word; what follows the level digit could not.
        return ".bz2" if data[4:10] in _BZ2_BLOCKS else ""
    return next((suffix for suffix, magic in _MAGIC.items() if data.startswith(magic)), "")


def decompressing(raw: BinaryIO, suffix: str) -> io.BufferedReader:
    """A stream of what is in a compressed one; the stream itself if the suffix is empty."""
    # Imported late: most files need none of the three.
    if suffix == ".gz":
        import gzip

        return cast(io.BufferedReader, gzip.GzipFile(fileobj=raw))
    if suffix == ".bz2":
        import bz2

        return cast(io.BufferedReader, bz2.BZ2File(raw))
    if suffix == ".xz":
        import lzma

        return cast(io.BufferedReader, lzma.LZMAFile(raw))
    return cast(io.BufferedReader, raw)


def check_no_model(data: bytes, name: str) -> bytes:
    """Refuse a model where text is expected; `data` is what the file begins with, and is returned."""
    if data.startswith(_MODEL, _AFTER):
        raise InputError(f"{name}: expected text, got a vcrf model. Pass a file of sentences in its place.")
    return data


def decode(data: bytes, name: str, first_line: int = 1) -> str:
    """Decode UTF-8; the error names the line, `first_line` being that of the first byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + first_line
        raise InputError(
            f"{name}:{line}: expected UTF-8, got byte 0x{data[error.start]:02x} ({error.reason}). "
            "Convert the file first, for instance: iconv -f LATIN1 -t UTF-8."
        ) from error


def check_nul(content: str, name: str, first_line: int = 1) -> None:
    """Refuse NUL characters, naming the line."""
    position = content.find("\0")
    if position >= 0:
        line = content.count("\n", 0, position) + first_line
        raise InputError(
            f"{name}:{line}: expected text, got a NUL character. "
            "The file is binary, damaged, or UTF-16: convert it to UTF-8."
        )
