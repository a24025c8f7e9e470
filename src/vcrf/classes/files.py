"""Files of word classes, and raw text.

A line of a class file is `word TAB class`, with more classes after further tabs, or on further lines with the same
word: the word's class is then the set of them, "ADJ|NOUN". Or, as Brown clustering writes it, `bits TAB word TAB
count`: the bits are the way to the class in a binary tree. The first line decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vcrf.classes.table import WordClasses
from vcrf.data.text import Source, read_text
from vcrf.errors import InputError
from vcrf.files import replacing_text

_BROWN = re.compile(r"([01]+)\t([^\t]+)\t[0-9]+")


def as_classes(value: Any) -> WordClasses | None:
    """The table that a parameter means: None, a table, a mapping from words to classes, or the path of a file."""
    if value is None or isinstance(value, WordClasses):
        return value
    if isinstance(value, Mapping):
        return WordClasses.of(value)
    if isinstance(value, (str, os.PathLike)):
        return read_classes(value)
    raise InputError(
        "`word_classes` must be the path of a file, a mapping from words to classes (of what `learn_classes` gives, "
        "its "
        f"`classes`) or WordClasses, got an object of type {type(value).__name__}."
    )


def read_classes(source: Source) -> WordClasses:
    """Read a class file; it may be compressed.

    Raises
    ------
    InputError
        When the file cannot be read, or a line is not what the format says; the message has file and line.
    """
    name, content = read_text(source)
    lines = [(i, line) for i, line in enumerate(content.split("\n"), 1) if line.strip()]
    if not lines:
        raise InputError(f"{name}: expected word classes, got an empty file. Lines are word TAB class.")
    first, line = lines[0]
    if _BROWN.fullmatch(line):
        return WordClasses.of(_read_brown(name, lines, first))
    return WordClasses.of(_read_lexicon(name, lines))


def _read_brown(name: str, lines: list[tuple[int, str]], first: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for i, line in lines:
        match = _BROWN.fullmatch(line)
        if match is None:
            raise InputError(
                f"{name}:{i}: expected bits TAB word TAB count, as on line {first}, got {_short(line)}. "
                "Correct the line, or give all as word TAB class."
            )
        bits, word = match.groups()
        if word in found:
            raise InputError(f"{name}:{i}: the word {_short(word)} has a class already. Leave one of its lines out.")
        found[word] = bits
    return found


def _read_lexicon(name: str, lines: list[tuple[int, str]]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for i, line in lines:
        word, *classes = line.split("\t")
        if not word or not classes or not all(classes):
            raise InputError(
                f"{name}:{i}: expected word TAB class [TAB class ...], none of them empty, got {_short(line)}. "
                "Separate by tabs, not by spaces."
            )
        found.setdefault(word, set()).update(classes)
    return {word: "|".join(sorted(classes)) for word, classes in found.items()}


def write_classes(path: str | os.PathLike[str], classes: Mapping[str, str]) -> None:
    """Write `word TAB class` lines; the file is written whole or not at all."""
    with replacing_text(Path(path)) as file:
        for word, name in classes.items():
            if not word or not name or any(character in word + name for character in "\t\n\r"):
                raise InputError(
                    f"The word {word!r} of class {name!r} cannot be a line: it is empty, or has a tab or line end."
                )
            file.write(f"{word}\t{name}\n".encode())


def read_lines(source: Source) -> Iterator[list[str]]:
    """Sentences of raw text, one a line, split at blanks; empty lines are left out. The file may be compressed."""
    for line in read_text(source).content.split("\n"):
        tokens = line.split()
        if tokens:
            yield tokens


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
