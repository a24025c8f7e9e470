"""Sentences of a text before their fields are looked at: runs of lines, and the split they belong to."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from vcrf.errors import InputError

_SPLIT = re.compile(r"#\s*split\s*=\s*(.*?)\s*$")


class LineBlock(NamedTuple):
    """Consecutive lines without a blank one.

    Parameters
    ----------
    first_line : int
        Number of the first line in the file, from 1.
    lines : list of str
        All lines, comments included, so that line numbers can be counted.
    """

    first_line: int
    lines: list[str]


def split_blocks(content: str, boundaries: tuple[str, ...] = (), first_line: int = 1) -> Iterator[LineBlock]:
    r"""Cut a text at its blank lines.

    Parameters
    ----------
    content : str
        Lines that end in `\n`; the last one need not.
    boundaries : tuple of str
        A line that starts with one of these separates as a blank line does.
    first_line : int
        Number of the first line.

    Yields
    ------
    Block
        Never without lines.
    """
    # Not splitlines(): U+2028 and its like are characters of a token, not ends of a line.
    lines: list[str] = []
    number = first_line - 1
    for number, line in enumerate(content.split("\n"), first_line):
        if not line or line.isspace() or line.startswith(boundaries):
            if lines:
                yield LineBlock(number - len(lines), lines)
                lines = []
        else:
            lines.append(line)
    if lines:
        yield LineBlock(number + 1 - len(lines), lines)


def select_split(blocks: Iterable[LineBlock], split: str | Collection[str], name: str) -> Iterator[LineBlock]:
    """Keep the blocks whose comment `# split = NAME` gives a wanted name, as they come.

    Parameters
    ----------
    blocks : iterable of Block
    split : str or collection of str
        The wanted name or names.
    name : str
        The file's name, for the messages.

    Yields
    ------
    Block

    Raises
    ------
    InputError
        After the last block, when none has such a comment, or a wanted name does not occur.
    """
    wanted = {split} if isinstance(split, str) else set(split)
    found = set()
    for block in blocks:
        block_split = split_name(block)
        if block_split is not None:
            found.add(block_split)
        if block_split in wanted:
            yield block
    if not found:
        raise InputError(
            f"{name}: `split={split!r}` expects sentences with a comment '# split = NAME', but none has one. "
            "Leave `split` out to read the whole file."
        )
    if wanted - found:
        missing = ", ".join(sorted(wanted - found))
        raise InputError(
            f"{name}: no sentence of split {missing}; the file has {_listed(found)}. "
            "Pass one of these, or leave `split` out to read the whole file."
        )


def _listed(names: set[str]) -> str:
    """Some of the names, cut short: what stands in a file may be anything."""
    shown = [name if len(name) <= 40 else f"{name[:40]} ..." for name in sorted(names)[:10]]
    return ", ".join(shown) + (f" and {len(names) - 10} others" if len(names) > 10 else "")


def split_name(block: LineBlock) -> str | None:
    """Return NAME of the comment `# split = NAME` before the first token, or None without one."""
    for line in block.lines:
        if not line.startswith("#"):
            return None
        match = _SPLIT.match(line)
        if match:
            return match[1]
    return None
