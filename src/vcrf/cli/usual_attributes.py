"""The attributes that users of CRFsuite write by hand: the word, its ending and its looks, and both neighbours."""

from __future__ import annotations

from collections.abc import Sequence


def attributes(tokens: Sequence[str]) -> list[dict[str, str | bool]]:
    """One dict a token."""
    return [_of_token(tokens, t) for t in range(len(tokens))]


def _of_token(tokens: Sequence[str], t: int) -> dict[str, str | bool]:
    word = tokens[t]
    found: dict[str, str | bool] = {
        "lower": word.lower(), "suffix3": word[-3:], "suffix2": word[-2:], "is_upper": word.isupper(),
        "is_title": word.istitle(), "is_digit": word.isdigit(),
    }  # fmt: skip
    for name, at in (("before", t - 1), ("after", t + 1)):
        if 0 <= at < len(tokens):
            near = tokens[at]
            found |= {f"{name}:lower": near.lower(), f"{name}:is_title": near.istitle()}
        else:
            found[name] = "nothing"
    return found
