"""The labels of two lists of sentences, checked and listed side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from vcrf.arguments.inputs import listed_labels
from vcrf.errors import InputError
from vcrf.types import Ints


def check_pairs(y_true: Iterable[Any], y_pred: Iterable[Any]) -> tuple[list[list[Any]], list[list[Any]]]:
    """List both; raise InputError unless they have the same sentences of the same lengths, and a token."""
    true, predicted = listed_labels(y_true), listed_labels(y_pred)
    if len(true) != len(predicted):
        raise InputError(
            f"y_true and y_pred must have the same sentences: got {len(true)} and {len(predicted)} lists of labels."
        )
    for i, (a, b) in enumerate(zip(true, predicted, strict=True)):
        if len(a) != len(b):
            raise InputError(f"Sentence {i}: y_true has {len(a)} labels, y_pred has {len(b)}. Predict the same tokens.")
    if not any(true):
        raise InputError("An error needs at least one token: got none. Pass sentences that are not empty.")
    return true, predicted


def wrong_and_all(true: list[list[Any]], predicted: list[list[Any]]) -> tuple[Ints, Ints]:
    """Count wrong tokens and all tokens in each sentence, (n_sentences,) both."""
    wrong = [sum(a != b for a, b in zip(t, p, strict=True)) for t, p in zip(true, predicted, strict=True)]
    return np.array(wrong, np.int64), np.array([len(t) for t in true], np.int64)
