"""Potentials under constraints: forbidden labels and pairs get the score -inf, so that every method respects them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from vcrf import kernels
from vcrf.decoding.constraints import AllowedMoves, Label
from vcrf.decoding.potentials import Potentials
from vcrf.errors import InputError
from vcrf.types import Bools, Ints


def restrict(
    scores: Potentials,
    moves: AllowedMoves,
    masks: Bools | None = None,
    first_sentence: int = 0,
    preferred: Bools | None = None,
) -> Potentials:
    """Forbid what the moves and the masks do not allow.

    Parameters
    ----------
    scores : Potentials
    moves : AllowedMoves
    masks : (n_tokens, n_labels) bool, optional
        Allowed labels of each token.
    first_sentence : int
        Number of the first sentence, for the message.
    preferred : (n_tokens, n_labels) bool, optional
        Labels that are kept to in each sentence where the rest leaves a sequence of them.

    Raises
    ------
    InputError
        When a sentence has no allowed label sequence; the message names the first one.
    """
    allowed = np.ones(scores.node.shape, bool) if masks is None else masks.copy()
    starts, stops = scores.sent_ptr[:-1], scores.sent_ptr[1:]
    is_filled = stops > starts
    allowed[starts[is_filled]] &= moves.first
    allowed[stops[is_filled] - 1] &= moves.last
    if preferred is not None:
        allowed = _preferring(preferred, allowed, moves.pairs, scores.sent_ptr)
    i, t = kernels.posterior.first_dead_end(scores.sent_ptr, allowed, moves.pairs)
    if i >= 0:
        raise InputError(
            f"Sentence {first_sentence + i}: the constraints leave no label sequence; none gets past token {t} (both "
            "from 0). Allow more labels there, or loosen the constraints."
        )
    return forbid(scores, allowed, moves.pairs)


def _preferring(preferred: Bools, allowed: Bools, pairs: Bools, sent_ptr: Ints) -> Bools:
    """What is allowed and preferred; all that is allowed in sentences where these leave no sequence."""
    both, first = allowed & preferred, 0
    while first < len(sent_ptr) - 1:
        i, _ = kernels.posterior.first_dead_end(sent_ptr[first:], both, pairs)
        if i < 0:
            break
        here = slice(sent_ptr[first + i], sent_ptr[first + i + 1])
        both[here] = allowed[here]
        first += i + 1
    return both


def forbid(scores: Potentials, allowed: Bools, pairs: Bools | None = None) -> Potentials:
    """Give -inf to labels and pairs that are not allowed; pairs raise the order to 2 at least."""
    node = np.where(allowed, scores.node, -np.inf)
    if pairs is None or pairs.all():
        return replace(scores, node=node)
    table = scores.tables.get(2, np.zeros(scores.n_labels**2))
    tables = {**scores.tables, 2: np.where(pairs.reshape(-1), table, -np.inf)}
    return replace(scores, node=node, tables=tables, order=max(scores.order, 2), arcs=None)


class Allowed(NamedTuple):
    """The labels that a caller allows: masks (n_tokens, n_labels), and which tokens have an entry (n_tokens,)."""

    masks: Bools
    is_given: Bools


def allowed_masks(allowed: Sequence[Any], lengths: Sequence[int], labels: Sequence[Label], first: int = 0) -> Allowed:
    """Masks from the allowed labels of each token.

    Parameters
    ----------
    allowed : one entry a sentence
        None (anything goes) or one entry a token: None, a label, or a collection of labels.
    lengths : number of tokens of each sentence
    labels : the labels by number
    first : number of the first sentence, for messages
    """
    number = {label: i for i, label in enumerate(labels)}
    masks, is_given = np.ones((sum(lengths), len(labels)), bool), np.zeros(sum(lengths), bool)
    start = 0
    for i, (sentence, length) in enumerate(zip(allowed, lengths, strict=True)):
        if sentence is not None:
            where = f"Sentence {first + i}"
            for t, choice in enumerate(_listed(sentence, length, where)):
                if choice is not None:
                    masks[start + t] = False
                    masks[start + t, _numbers(choice, number, f"{where}, token {t}")] = True
                    is_given[start + t] = True
        start += length
    return Allowed(masks, is_given)


def _listed(sentence: Any, length: int, where: str) -> list[Any]:
    if isinstance(sentence, (str, bytes)) or not isinstance(sentence, Iterable):
        raise InputError(f"{where}: allowed needs None or one entry a token, got {sentence!r}.")
    entries = list(sentence)
    if len(entries) != length:
        raise InputError(f"{where}: allowed needs one entry a token, got {len(entries)} for {length} tokens.")
    return entries


def _numbers(choice: Any, number: dict[Label, int], where: str) -> list[int]:
    """Numbers of the labels of one token; labels that the model does not know cannot be predicted anyway."""
    given: Any = [choice] if isinstance(choice, (str, Integral)) else choice
    if not isinstance(given, Iterable):
        raise InputError(f"{where}: allowed is None, a label or a set of labels, got {choice!r}.")
    found = [number[label] for label in given if label in number]
    if not found:
        raise InputError(
            f"{where}: allowed must name a label that the model has, got {choice!r}. "
            f"Its labels are {', '.join(map(str, list(number)[:20]))}{', ...' if len(number) > 20 else ''}."
        )
    return found
