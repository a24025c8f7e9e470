r"""CRFsuite's data: a token a line, its label and its attributes between tabs, an empty line after a sentence.

An attribute is `name` or `name:value`; `\:` and `\\` are a colon and a backslash of a name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vcrf.data.pieces import Shard, part_of, text_size, whole_sentences
from vcrf.data.stream import Piece, stream_pieces
from vcrf.errors import InputError

_FIELD = re.compile(r"((?:[^\\:]|\\.)+)(?::(.*))?")
_ESCAPED = re.compile(r"\\(.)")
_MARKS = re.compile(r"[\\:]")


class AttributeSentence(NamedTuple):
    """A sentence: {attribute: value} and the given label of each token, and its first line."""

    tokens: list[dict[str, float]]
    labels: list[str]
    source: str


def attribute_pieces(source: str | os.PathLike[str], shard: Shard | None = None) -> Iterator[Piece]:
    """A file, or a part of it, in pieces of whole sentences; see `read_attribute_piece`."""
    size = 0 if shard is None else text_size(source)
    whole = whole_sentences(stream_pieces(source), is_line=False)
    yield from whole if shard is None else part_of(whole, shard.bounds(size), is_line=False)


def read_attribute_piece(piece: Piece, name: str) -> list[AttributeSentence]:
    """Read the sentences of a piece of a file; `name` is that of the file.

    Raises
    ------
    InputError
        With the line, when a value is no number.
    """
    lines = [line[:-2] if line.endswith("\r\n") else line.removesuffix("\n") for line in piece.lines(name)]
    if lines and piece.first_line == 1:
        lines[0] = lines[0].removeprefix("\ufeff")
    return read_attribute_lines(lines, name, piece.first_line)


def read_attribute_lines(lines: Iterable[str], name: str, first_line: int = 1) -> list[AttributeSentence]:
    """Read all sentences of lines; `name` and `first_line` say in errors where these are from."""
    sentences: list[AttributeSentence] = []
    is_new = True
    for number, line in enumerate(lines, first_line):
        if not line.strip():
            is_new = True
            continue
        if is_new:
            sentences.append(AttributeSentence([], [], f"{name}:{number}"))
            is_new = False
        label, *fields = line.split("\t")
        sentences[-1].labels.append(label)
        sentences[-1].tokens.append(_attributes(fields, f"{name}:{number}"))
    return sentences


def attribute_line(label: str, attributes: Iterable[str]) -> str:
    """A line of such data: a label and attributes of value 1."""
    return "\t".join([label, *(_MARKS.sub(r"\\\g<0>", attribute) for attribute in attributes)])


def _attributes(fields: list[str], where: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for field in fields:
        match = _FIELD.fullmatch(field)
        try:
            if match is None:
                raise ValueError
            value = 1.0 if match[2] is None else float(match[2])
        except ValueError:
            raise InputError(
                f"{where}: expected `name` or `name:value` with a number between tabs, got {field!r:.60}. A colon of a "
                "name is written `\\:`."
            ) from None
        attribute = _ESCAPED.sub(r"\1", match[1])
        found[attribute] = found.get(attribute, 0.0) + value
    return found
