r"""CRFsuite's data: a token a line, its label and its attributes between tabs, an empty line after a sentence.

An attribute is `name` or `name:value`; `\:` and `\\` are a colon and a backslash of a name.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vcrf.data.text import Source, read_text
from vcrf.errors import InputError

_FIELD = re.compile(r"((?:[^\\:]|\\.)+)(?::(.*))?")
_ESCAPED = re.compile(r"\\(.)")


class AttributeSentence(NamedTuple):
    """A sentence: {attribute: value} and the given label of each token, and its first line."""

    tokens: list[dict[str, float]]
    labels: list[str]
    source: str


def read_attribute_file(source: Source) -> list[AttributeSentence]:
    """Read all sentences of a file of CRFsuite's data.

    Raises
    ------
    InputError
        With the line, when a value is no number.
    """
    name, content = read_text(source)
    sentences: list[AttributeSentence] = []
    is_new = True
    for number, line in enumerate(content.split("\n"), 1):
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
