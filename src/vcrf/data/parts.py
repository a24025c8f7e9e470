"""Numbered parts of labelled files, each read from the file and two places in it, on whatever machine.

How many parts there are depends on the size of the files alone, so that the same files have the same parts everywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from vcrf.data.annotations import looks_like_annotations
from vcrf.data.answers import answer_of
from vcrf.data.blocks import split_blocks, split_name
from vcrf.data.columns import BOUNDARIES
from vcrf.data.corpus import Sentence
from vcrf.data.docbin import is_docbin
from vcrf.data.layout import Layout
from vcrf.data.readers import Format, layout_of_file, parsed
from vcrf.data.text import check_nul, compression_of, compression_suffix, decode, read_text, unreadable
from vcrf.errors import InputError

# The number of parts is a power of two: as many for each of 2, 4, 8 workers.
_BYTES, _MOST_PARTS = 1 << 21, 512
_CHUNK = 1 << 16
_BLANK_LINE = re.compile(rb"\n[ \t\r\f\v]*\n")


class FilePart(NamedTuple):
    """Sentences of a file between two places in bytes; `last` None is all of a compressed file. Messages say `name`.

    `size` is that of the file: one that has changed meanwhile, or is another on this machine, is refused.
    """

    name: str
    path: str
    first: int
    last: int | None
    size: int
    layout: Layout
    sample: str
    split: str | None

    def sentences(self) -> Iterator[Sentence]:
        """Read it."""
        try:
            yield from self._parsed(1)
        except InputError as error:
            if not self.first:
                raise
            # Lines before this part are counted for the message alone.
            with Path(self.path).open("rb") as file:
                before = sum(chunk.count(b"\n") for chunk in _chunks(file.read, self.first))
            for _ in self._parsed(1 + before):
                pass
            raise error

    def _parsed(self, first_line: int) -> Iterator[Sentence]:
        is_conllu = self.layout.format == "conllu"
        blocks = split_blocks(self._content(first_line), () if is_conllu else BOUNDARIES, first_line)
        chosen = (block for block in blocks if self.split is None or split_name(block) == self.split)
        answered = (block for block in chosen if not is_conllu or answer_of(block, self.name))
        return parsed(answered, self.name, self.layout, self.sample)

    def _content(self, first_line: int) -> str:
        if self.last is None:
            return read_text(self.path).content
        try:
            with Path(self.path).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(self.first)
                data = file.read(self.last - self.first)
        except OSError as error:
            raise unreadable(self.name, error) from error
        if size != self.size:
            raise InputError(
                f"{self.name}: the file had {self.size:,} bytes when training began and has {size:,} now. All machines "
                "need the same file, as it was then."
            )
        content = decode(data, self.name, first_line).replace("\r\n", "\n")
        check_nul(content, self.name, first_line)
        return content if self.first else content.removeprefix("\ufeff")


def _chunks(read: object, size: int) -> Iterator[bytes]:
    while size > 0:
        data: bytes = read(min(size, _CHUNK))  # type: ignore[operator]
        if not data:
            return
        size -= len(data)
        yield data


def n_parts(size: int, of_part: int) -> int:
    """A power of two, so that a part has about so much of a size."""
    return min(1 << max((size - 1) // of_part, 0).bit_length(), _MOST_PARTS)


def parts_of_files(
    paths: Sequence[str | os.PathLike[str]],
    tag: str | int | None = None,
    split: str | None = None,
    format_name: Format | None = None,
    form: int | None = None,
    of_part: int = _BYTES,
) -> tuple[list[FilePart], Layout]:
    """The parts of some files, in order, and the layout of the first; a compressed file is one part."""
    layouts = [layout_of_file(_checked(path, format_name), tag, format_name, form) for path in paths]
    sizes = [0 if _is_compressed(path) else Path(path).stat().st_size for path in paths]
    total = n_parts(sum(sizes), of_part)
    parts: list[FilePart] = []
    for path, size, (layout, sample) in zip(paths, sizes, layouts, strict=True):
        name, place = os.fspath(path), str(Path(path).absolute())
        if not size:
            parts.append(FilePart(name, place, 0, None, 0, layout, sample, split))
            continue
        bounds = [0, *_cuts(Path(path), size, max(1, round(total * size / sum(sizes)))), size]
        parts += [FilePart(name, place, a, b, size, layout, sample, split) for a, b in pairwise(bounds)]
    return parts, layouts[0][0]


def _checked(path: str | os.PathLike[str], format_name: str | None) -> str:
    name = os.fspath(path)
    if name == "-" or (Path(name).exists() and not Path(name).is_file()):
        raise InputError(f"{name}: workers read files, and this is none. Write it to a file that they can read.")
    if is_docbin(path) or (looks_like_annotations(name) if format_name is None else format_name == "annotations"):
        raise InputError(f"{name}: workers read CoNLL-U and column files. Convert it, or train on one machine.")
    return name


def _is_compressed(path: str | os.PathLike[str]) -> bool:
    with Path(path).open("rb") as file:
        return bool(compression_suffix(os.fspath(path)) or compression_of(file.read(10)))


def _cuts(path: Path, size: int, n: int) -> list[int]:
    """Ends of sentences near the places that cut a file into n equal parts."""
    found: list[int] = []
    with path.open("rb") as file:
        for i in range(1, n):
            at = _next_sentence(file, size * i // n)
            if at < size and at > (found[-1] if found else 0):
                found.append(at)
    return found


def _next_sentence(file: object, at: int) -> int:
    """Where the first blank line after a place ends; the end of the file if there is none."""
    file.seek(at)  # type: ignore[attr-defined]
    held = b""
    while chunk := file.read(_CHUNK):  # type: ignore[attr-defined]
        held += chunk
        match = _BLANK_LINE.search(held)
        if match:
            return at + match.end()
        keep = held.rfind(b"\n")
        keep = max(keep, 0)
        at, held = at + keep, held[keep:]
    return at + len(held)
