"""Losses by name, for estimators and the command line."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from vcrf.errors import InputError
from vcrf.losses.alignment import SmithWatermanLoss
from vcrf.losses.counts import ClippedNgramLoss, NgramCountLoss
from vcrf.losses.edit import EditLoss
from vcrf.losses.hamming import HammingLoss
from vcrf.losses.loss import Loss
from vcrf.losses.ngram import AlignedNgramLoss
from vcrf.losses.zero_one import ZeroOneLoss

LOSSES: dict[str, Callable[..., Loss]] = {
    "hamming": HammingLoss,
    "ngram": AlignedNgramLoss,
    "edit": EditLoss,
    "zero-one": ZeroOneLoss,
    "ngram-counts": NgramCountLoss,
    "ngram-clipped": ClippedNgramLoss,
    "smith-waterman": SmithWatermanLoss,
}


def get_loss(loss: object) -> Loss | None:
    """The loss with a name; a loss, or None (no loss), is returned as it is.

    A name may carry parameters: "edit:band=2", "ngram:n=3,normalised=False".
    """
    if loss is None or isinstance(loss, Loss):
        return loss
    name, _, settings = loss.partition(":") if isinstance(loss, str) else (loss, "", "")
    if name not in LOSSES:
        raise InputError(f"`loss` must be None, a vcrf.losses.Loss, or one of {', '.join(LOSSES)}; got {loss!r}.")
    try:
        given, known = _settings(settings), inspect.signature(LOSSES[name]).parameters
        unknown = [key for key in given if key not in known]
        if unknown:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"{name} has no parameter {unknown[0]}: {has}.")
        return LOSSES[name](**given)
    except (TypeError, ValueError) as error:
        raise InputError(f"Cannot read the loss {loss!r}: expected a form like edit:band=2,cap=3. {error}") from None


def _settings(text: str) -> dict[str, Any]:
    """Parameters "key=value,key=value" whose values are numbers, True, False or None."""
    pairs = [part.partition("=") for part in text.split(",") if part]
    return {key.strip(): _setting(value.strip()) for key, _, value in pairs}


def _setting(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise InputError(f"{text!r} is no number, True, False or None.") from None
