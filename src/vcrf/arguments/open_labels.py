"""Labels that are not known: None for any label, a set for one of several."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from vcrf.data.interned import Interned
from vcrf.errors import InputError
from vcrf.types import UInts8


def is_open(label: object) -> bool:
    """Whether a label is left open."""
    return label is None or isinstance(label, (set, frozenset))


def are_texts(y: list[list[Any]]) -> bool:
    """Whether every label is a str: the usual case, seen without a look at each."""
    return set(map(type, chain.from_iterable(y))) <= {str}


def named(y: list[list[Any]]) -> Iterator[Any]:
    """All labels that y names, those inside sets too."""
    if are_texts(y):
        yield from chain.from_iterable(y)
        return
    for label in chain.from_iterable(y):
        if isinstance(label, (set, frozenset)):
            # Sets have no order of their own; messages and classes must not depend on one.
            yield from sorted(label, key=repr)
        elif label is not None:
            yield label


def allowed_labels(y: list[list[Any]] | Interned, classes: list[Any]) -> UInts8 | None:
    """Which labels each token may have, (n_tokens, n_labels); None if all labels are known."""
    if isinstance(y, Interned) or are_texts(y):
        return None
    flat = list(chain.from_iterable(y))
    if not any(map(is_open, flat)):
        return None
    number = {label: i for i, label in enumerate(classes)}
    allowed = np.zeros((len(flat), len(classes)), np.uint8)
    for t, label in enumerate(flat):
        if label is None:
            allowed[t] = 1
        elif isinstance(label, (set, frozenset)):
            allowed[t, [number[one] for one in label]] = 1
        else:
            allowed[t, number[label]] = 1
    return allowed


def check_open(y: list[list[Any]]) -> None:
    """Refuse empty sets, naming the first, and labels of which none is known."""
    for i, labels in enumerate([] if are_texts(y) else y):
        for t, label in enumerate(labels):
            if isinstance(label, (set, frozenset)) and not label:
                raise InputError(
                    f"Sentence {i}, token {t}: an empty set allows no label. Use None where any label is possible."
                )
    if next(named(y), None) is None:
        raise InputError("No token has a label: every one is None. Label some tokens, or give sets of labels.")
