"""Losses by name, for estimators and the command line."""

from __future__ import annotations

from collections.abc import Callable

from vcrf.errors import InputError
from vcrf.losses.hamming import HammingLoss
from vcrf.losses.loss import Loss
from vcrf.losses.ngram import AlignedNgramLoss
from vcrf.losses.zero_one import ZeroOneLoss

_NAMED: dict[str, Callable[[], Loss]] = {
    "hamming": HammingLoss,
    "ngram": AlignedNgramLoss,
    "zero-one": ZeroOneLoss,
}


def get_loss(loss: str | Loss | None) -> Loss | None:
    """The loss with a name; a loss, or None (no loss), is returned as it is."""
    if loss is None or isinstance(loss, Loss):
        return loss
    if loss not in _NAMED:
        raise InputError(f"loss must be None, a vcrf.losses.Loss, or one of {', '.join(_NAMED)}; got {loss!r}.")
    return _NAMED[loss]()
