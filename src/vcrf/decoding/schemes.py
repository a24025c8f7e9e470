"""Labels that mark spans: BIO and BILOU, with BIOES as another spelling of the latter.

A label is ``O`` or a prefix, a hyphen and the kind of the span: ``B-PER``. B begins a span, I is inside it, L (or E)
is its last token, U (or S) is a span of one token.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from vcrf.errors import InputError

_SPELLINGS = {"B": "B", "I": "I", "L": "L", "E": "L", "U": "U", "S": "U"}
OUTSIDE = "O"


class SpanLabel(NamedTuple):
    """A label taken apart: `prefix` is one of B, I, L, U, O (E reads as L, S as U); `kind` is empty for O."""

    prefix: str
    kind: str


def span_label(label: Any) -> SpanLabel:
    """Take a label apart at its first hyphen."""
    if label == OUTSIDE:
        return SpanLabel(OUTSIDE, "")
    prefix, _, kind = label.partition("-") if isinstance(label, str) else ("", "", "")
    if prefix not in _SPELLINGS:
        raise InputError(
            f"Labels of spans are 'O' or B-, I-, L-, E-, U- or S- followed by a kind, such as 'B-PER': got {label!r}."
        )
    return SpanLabel(_SPELLINGS[prefix], kind)
