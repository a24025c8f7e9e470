"""Labels that mark spans: IOB1, BIO (also called IOB2) and BILOU, with BIOES as another spelling of the latter.

A label is ``O`` or a prefix, a hyphen and the kind of the span: ``B-PER``. B begins a span, I is inside it, L (or E)
is its last token, U (or S) is a span of one token. In IOB1 spans consist of I, and B stands only where a span
directly follows another of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from vcrf.errors import InputError

_SPELLINGS = {"B": "B", "I": "I", "L": "L", "E": "L", "U": "U", "S": "U"}
_PREFIXES = {"IOB1": "BIO", "BIO": "BIO", "IOB2": "BIO", "BILOU": "BILUO", "BIOES": "BILUO"}
OUTSIDE = "O"
SCHEMES = tuple(_PREFIXES)


class SpanLabel(NamedTuple):
    """A label taken apart: `prefix` is one of B, I, L, U, O (E reads as L, S as U); `kind` is empty for O."""

    prefix: str
    kind: str


# What stands before the first token and after the last one.
EDGE = SpanLabel(OUTSIDE, "")


def span_label(label: Any) -> SpanLabel:
    """Take a label apart at its first hyphen."""
    if label == OUTSIDE:
        return EDGE
    prefix, _, kind = label.partition("-") if isinstance(label, str) else ("", "", "")
    if prefix not in _SPELLINGS:
        raise InputError(
            f"Labels of spans are 'O' or B-, I-, L-, E-, U- or S- followed by a kind, such as 'B-PER': got {label!r}."
        )
    return SpanLabel(_SPELLINGS[prefix], kind)


def check_scheme(scheme: str) -> str:
    """Return the name of a scheme; InputError if there is no such scheme."""
    if scheme not in _PREFIXES:
        raise InputError(f"A scheme is one of {', '.join(SCHEMES)}: got {scheme!r}.")
    return scheme


def scheme_label(label: Any, scheme: str) -> SpanLabel:
    """Take a label of a scheme apart; InputError if the scheme has no such label."""
    parts = span_label(label)
    if parts.prefix not in _PREFIXES[check_scheme(scheme)]:
        raise InputError(
            f"{scheme} has labels with {', '.join(_PREFIXES[scheme][:-1])} and O only: got {label!r}. "
            "Choose another scheme, or convert the labels."
        )
    return parts


def scheme_of(labels: Iterable[Any]) -> str:
    """The scheme of a set of labels: "BILOU", "BIO", or "" if they do not mark spans."""
    try:
        prefixes = {span_label(label).prefix for label in labels}
    except InputError:
        return ""
    if prefixes & {"L", "U"}:
        return "BILOU"
    return "BIO" if "B" in prefixes else ""


def may_follow(before: SpanLabel, after: SpanLabel, scheme: str) -> bool:
    """Whether a label may stand behind another; the ends of the sentence count as O (see `EDGE`)."""
    is_same = before.kind == after.kind
    if scheme == "IOB1":
        # B separates spans of one kind, and nothing else.
        return after.prefix != "B" or (before.prefix in "BI" and is_same)
    if scheme in ("BIO", "IOB2"):
        return after.prefix != "I" or (before.prefix in "BI" and is_same)
    if before.prefix in "BI":  # the span is open
        return after.prefix in "IL" and is_same
    return after.prefix in "OBU"
