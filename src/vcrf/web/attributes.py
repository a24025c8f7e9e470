"""Sentences of a request to a model that reads attributes: JSON, or CRFsuite's format."""

from __future__ import annotations

import json
from typing import Any

from vcrf.data.attributes import read_attribute_lines
from vcrf.strings import has_surrogate
from vcrf.web.limits import Refused

_EXPECTED = (
    "This model reads attributes, not words: expected `sentences` or `tokens` with an object of features, a list of "
    'attributes or a line of CRFsuite\'s format a token ({"w": "the"}, ["w:the"] or "\\tw=the"), or `text` in that '
    "format: a token a line, its label (any) and its attributes between tabs, an empty line after a sentence."
)


def attribute_sentences(given: dict[str, Any]) -> list[list[Any]]:
    """The sentences of `sentences`, `tokens` or `text`; refused if no token has an attribute."""
    listed = given.get("sentences", [given["tokens"]] if "tokens" in given else None)
    if listed is None and isinstance(given.get("text"), str):
        lines = given["text"].replace("\r\n", "\n").split("\n")
        found: list[list[Any]] = [list(each.tokens) for each in read_attribute_lines(lines, "text")]
    elif isinstance(listed, list) and all(isinstance(tokens, list) for tokens in listed):
        found = [[_token(token) for token in tokens] for tokens in listed]
    else:
        raise Refused(400, _EXPECTED)
    is_nothing = any(found) and not any(token for tokens in found for token in tokens)
    if is_nothing or has_surrogate(json.dumps(found, ensure_ascii=False)):
        raise Refused(400, _EXPECTED)
    return found


def _token(value: Any) -> Any:
    if isinstance(value, str):
        # A line without attributes is a token too; it may be empty here, where no line ends a sentence.
        read = read_attribute_lines([value], "tokens")
        return read[0].tokens[0] if read else {}
    if not isinstance(value, (dict, list)):
        raise Refused(400, _EXPECTED)
    return value
