"""An explanation in plain words: what a feature looks at, and what it is worth between two labels.

What an attribute says for the label and against the runner-up is one reason. All tag patterns at one token are one
reason too: how well the label goes with those of its neighbours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from vcrf.labelling.explain import Contribution, TokenExplanation
from vcrf.types import Label

_READING = re.compile(r"(\w+)(?::(\d+))?(?:\[([+-]\d+)\])?=(.*)")
_WHERE = {
    "-1": "the word before",
    "+1": "the word after",
    "-2": "the second word before",
    "+2": "the second word after",
}
_KINDS = {
    "title": "begins with a capital", "upper": "is in capitals", "letters": "does not begin with a capital",
    "punctuation": "is a punctuation mark", "hyphen": "has a hyphen", "digit": "has a digit",
}  # fmt: skip
# What users call a word among features, and how many of these stand for a token without one.
_WORDS = ("word", "w", "token", "form", "text", "word.lower()", "lower", "word.lower")
_MOST_FEATURES = 3
_NEIGHBOURS = "the labels of its neighbours"
# The classes of characters of a shape: one of them, several.
_CHARACTERS = {
    "X": ("capital", "capitals"), "x": ("small letter", "small letters"), "d": ("digit", "digits"),
    "c": ("letter", "letters"),
}  # fmt: skip


class Reason(NamedTuple):
    """What speaks for a label (positive) or for the runner-up (negative).

    Parameters
    ----------
    text : str
        What is looked at: `ends in "ly"`.
    value : float
        The values of all reasons sum to the difference of the two scores.
    """

    text: str
    value: float


def reasons(found: TokenExplanation, tokens: Sequence[object], position: int) -> list[Reason]:
    """Say in words why a token has its label and not the runner-up, the weightiest first.

    Parameters
    ----------
    found : TokenExplanation
        Of the token at `position`, from `explain`.
    tokens : sequence
        The whole sentence.
    position : int

    Returns
    -------
    list of Reason
    """
    sums: dict[str, list[float]] = {}
    for contribution in found.contributions:
        sums.setdefault(_text(contribution, tokens, position), []).append(contribution.value)
    added = [Reason(text, math.fsum(values)) for text, values in sums.items()]
    return sorted(added, key=lambda reason: (-abs(reason.value), reason.text))


def first_reasons(found: TokenExplanation, tokens: Sequence[object], position: int, top: int) -> list[Reason]:
    """The weightiest reasons, then the sum of the others for the label and that of the others against it."""
    every = reasons(found, tokens, position)
    listed = every[:top]
    for is_for in (True, False):
        rest = [reason.value for reason in every[top:] if (reason.value >= 0.0) == is_for]
        if rest:
            one = "smaller reason" if len(rest) == 1 else "smaller reasons together"
            listed.append(Reason(f"{len(rest)} {one}", math.fsum(rest)))
    return listed


def side(reason: Reason, found: TokenExplanation) -> Label | None:
    """The label that a reason speaks for."""
    return found.label if reason.value >= 0.0 else found.runner_up


def said_reasons(found: TokenExplanation, tokens: Sequence[object], position: int, top: int) -> list[str]:
    """The same in lines of text, with what they add up to."""
    if found.runner_up is None or not top:
        return []
    listed = [*first_reasons(found, tokens, position, top), Reason("all together", found.difference)]
    return [f"  {abs(reason.value):5.2f} for {side(reason, found)}: {reason.text}" for reason in listed]


def question(found: TokenExplanation) -> str:
    """The question that the reasons answer."""
    if found.runner_up is None:
        return f"“{shown_token(found.token)}” can only be {found.label}"
    return (
        f"Why is “{shown_token(found.token)}” {found.label} ({shown(found.probability)}) "
        f"and not {found.runner_up} ({shown(found.runner_up_probability)})?"
    )


def shown_token(token: object) -> str:
    """A word; of features the word among them, else the first few."""
    if not isinstance(token, Mapping):
        return str(token)
    for name in _WORDS:
        if isinstance(token.get(name), str):
            return str(token[name])
    features = ", ".join(f"{name}={value}" for name, value in islice(token.items(), _MOST_FEATURES))
    return f"{features}, …" if len(token) > _MOST_FEATURES else features


def shown(probability: float) -> str:
    """A probability for people: never 100 % unless it is certain, never 0 % unless it is impossible."""
    if 0.995 <= probability < 1.0:
        return f"{math.floor(probability * 1000.0) / 10.0:.1f} %"
    return "<1 %" if 0.0 < probability < 0.005 else f"{probability:.0%}".replace("%", " %")


def in_words(contribution: Contribution) -> str:
    """What one feature looks at, at its own token; an attribute of the user's own stays as it is."""
    if contribution.attribute == "bias" and len(contribution.labels) > 1:
        return _NEIGHBOURS
    return _attribute(contribution.attribute)


def _text(contribution: Contribution, tokens: Sequence[object], position: int) -> str:
    if len(contribution.labels) > 1:
        return _NEIGHBOURS
    said = _attribute(contribution.attribute)
    away = contribution.position - position
    return said if away == 0 else f"at “{shown_token(tokens[contribution.position])}”: {said}"


def _attribute(attribute: str) -> str:
    """An attribute of the text families in words; any other as it is."""
    if attribute == "bias":
        return "how common the label is"
    found = [_READING.fullmatch(part) for part in attribute.split(" ")]
    said = [_reading(*part.groups()) for part in found if part is not None]
    return " and ".join(said) if len(said) == len(found) and all(said) else attribute


def _reading(kind: str, size: str | None, offset: str | None, value: str) -> str:
    """One part of an attribute: `suffix`, `2`, `-1`, `ly`."""
    who = _WHERE.get(offset or "", "")
    if value == "<boundary>":
        return "it is the first word" if (offset or "").startswith("-") else "it is the last word"
    if kind in ("suffix", "prefix") and size:
        verb = "ends in" if kind == "suffix" else "begins with"
        return f"{who or 'it'} {verb} “{value}”"
    if kind in ("word", "lower"):
        aside = ", capitals aside" if kind == "lower" else ""
        return f"{who or 'it'} is {'' if who else 'the word '}“{value}”{aside}"
    if kind == "kind":
        return f"{who or 'it'} {_KINDS.get(value, f'is of the kind {value}')}"
    if kind in ("shape", "long_shape"):
        return f"{who or 'it'} is made of {_shape(value, is_long=kind == 'long_shape')}"
    if kind == "length":
        return f"it has the length {value}"
    return f"{who or 'it'} is in the class {value}" if kind == "class" else ""


def _shape(value: str, is_long: bool) -> str:
    """`Xx` is "capitals, then small letters"; a long shape has their numbers."""
    parts = []
    for run in re.finditer(r"(.)\1*", value):
        few, many = _CHARACTERS.get(run[1], (f"“{run[1]}”", f"“{run[1]}”"))
        number = len(run[0])
        parts.append(f"{number} {few if number == 1 else many}" if is_long else many)
    return ", then ".join(parts)
