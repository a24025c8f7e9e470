"""Whether a person has answered: what `vcrf suggest` writes has the tagger's labels, which are guesses until then.

JSON has the key `answer`, as Prodigy does; CoNLL-U a comment `# answer = none` beside `# usefulness = ...`, without
which a comment of that name is another's and means nothing here.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from vcrf.data.blocks import LineBlock
from vcrf.errors import InputError

ACCEPT, OPEN = "accept", "none"
# What Prodigy writes where there is nothing to learn from.
_OTHERS = ("reject", "ignore")
_COMMENT = re.compile(r"#\s*(usefulness|answer)\s*=\s*(.*?)\s*$")


def is_accepted(answer: Any, where: str) -> bool | None:
    """Whether an answer says that labels are right; None if there is none yet. Other words are an InputError."""
    if answer in (None, OPEN):
        return None
    if answer != ACCEPT and answer not in _OTHERS:
        raise InputError(f"{where}: the answer must be {ACCEPT}, {' or '.join(_OTHERS)}, got {answer!r:.40}.")
    return bool(answer == ACCEPT)


def accepted_blocks(blocks: Iterable[LineBlock], name: str) -> Iterator[LineBlock]:
    """Leave out suggestions of CoNLL-U that nobody has accepted; those without an answer are told by a warning.

    Raises
    ------
    InputError
        When nothing is left, and at an answer that is none, with its line.
    """
    n = n_open = n_accepted = 0
    for block in blocks:
        n += 1
        answer = answer_of(block, name)
        n_open += answer is None
        n_accepted += bool(answer)
        if answer:
            yield block
    if n_open and not n_accepted:
        raise InputError(
            f"{name}: no sentence has an answer yet. The labels are those of the tagger: check them, and set "
            f"`# answer = {ACCEPT}` above each sentence that is right."
        )
    say_left_out(name, n_open, n, "sentences")


def say_left_out(name: str, n_open: int, n: int, what: str) -> None:
    """Warn of what has no answer yet."""
    if n_open:
        warnings.warn(f"{name}: {n_open:,} of {n:,} {what} have no answer yet and are left out.", stacklevel=3)


def answer_of(block: LineBlock, name: str) -> bool | None:
    """Of the comments before the first token; a sentence that is no suggestion has its labels from a person."""
    found: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(block.lines, block.first_line):
        if not line.startswith("#"):
            break
        match = _COMMENT.match(line)
        if match:
            found[match[1]] = match[2], number
    if len(found) < 2:
        return True
    answer, number = found["answer"]
    return is_accepted(answer, f"{name}:{number}")
