"""Constraints: which labels may stand where, in the user's terms, and as arrays of bool for a set of labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vcrf.decoding.schemes import EDGE, check_scheme, may_follow, scheme_label
from vcrf.errors import InputError
from vcrf.types import Bools

Label = str | int


class AllowedMoves(NamedTuple):
    """What constraints allow: first label (L,), last label (L,), pairs by label before and label after (L, L)."""

    first: Bools
    last: Bools
    pairs: Bools

    @property
    def is_free(self) -> bool:
        """Whether everything is allowed."""
        return bool(self.first.all() and self.last.all() and self.pairs.all())


@dataclass(frozen=True)
class Constraints:
    """Constraints on label sequences; those of the scheme and the forbidden ones hold together.

    Attributes
    ----------
    scheme : "BIO" (or "IOB2"), "IOB1", "BILOU" (or "BIOES"), or None
        The rules of a scheme of spans, read off the names of the labels, the ends of the sentence included.
    forbidden : pairs of labels (before, after) that may not stand next to each other
    forbidden_starts, forbidden_ends : labels that a sentence may not begin or end with
    """

    scheme: str | None = None
    forbidden: Sequence[tuple[Label, Label]] = ()
    forbidden_starts: Sequence[Label] = ()
    forbidden_ends: Sequence[Label] = ()

    def check(self, labels: Sequence[Label]) -> None:
        """Raise InputError unless the scheme has all the labels of a model."""
        if self.scheme is not None:
            for label in labels:
                scheme_label(label, self.scheme)

    def compile(self, labels: Sequence[Label]) -> AllowedMoves:
        """Arrays for the labels of a model; a label that it does not have is named in a warning."""
        n = len(labels)
        moves = AllowedMoves(np.ones(n, bool), np.ones(n, bool), np.ones((n, n), bool))
        if self.scheme is not None:
            _follow_scheme(self.scheme, labels, moves)
        number = {label: i for i, label in enumerate(labels)}
        given = {label for pair in self.forbidden for label in pair} | {*self.forbidden_starts, *self.forbidden_ends}
        unknown = [label for label in given if label not in number]
        if unknown:
            warnings.warn(
                f"The constraints name labels that the model does not have: {', '.join(sorted(map(repr, unknown)))}. "
                "They forbid nothing there.",
                UserWarning,
                stacklevel=4,
            )
        moves.first[[number[label] for label in self.forbidden_starts if label in number]] = False
        moves.last[[number[label] for label in self.forbidden_ends if label in number]] = False
        for before, after in self.forbidden:
            if before in number and after in number:
                moves.pairs[number[before], number[after]] = False
        return moves


def as_constraints(given: Any) -> Constraints:
    """Constraints from what a user may write: the name of a scheme, forbidden pairs, or `Constraints`."""
    if isinstance(given, Constraints):
        if given.scheme is not None:
            check_scheme(given.scheme)
        _check_pairs(given.forbidden)
        return given
    if isinstance(given, str):
        return Constraints(scheme=check_scheme(given))
    if isinstance(given, Iterable):
        pairs = list(given)
        _check_pairs(pairs)
        return Constraints(forbidden=tuple((before, after) for before, after in pairs))
    raise InputError(
        "`constraints` must be the name of a scheme such as 'BIO', a list of forbidden pairs (label, next label), or "
        f"Constraints: got {given!r}."
    )


def check_constraints(given: Any, labels: Sequence[Label]) -> None:
    """Refuse constraints that do not fit the labels; a scheme's name is in the message."""
    try:
        as_constraints(given).compile(labels)
    except InputError as error:
        if not isinstance(given, str):
            raise
        raise InputError(f"`constraints={given!r}`: {error}") from error


def _check_pairs(pairs: Iterable[Any]) -> None:
    for pair in pairs:
        if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise InputError(f"A forbidden transition is a pair (label, next label): got {pair!r}.")


def _follow_scheme(scheme: str, labels: Sequence[Label], moves: AllowedMoves) -> None:
    parts = [scheme_label(label, scheme) for label in labels]
    for i, before in enumerate(parts):
        moves.first[i] = may_follow(EDGE, before, scheme)
        moves.last[i] = may_follow(before, EDGE, scheme)
        moves.pairs[i] = [may_follow(before, after, scheme) for after in parts]
