"""Losses as JSON values, and back: the class and its parameters; for model files.

Numbers, text and None stand for themselves, an array is {"array": nested lists}, a dict of costs {"costs": pairs}, a
loss {"class": name, parameters}. What has no such form (functions, transducers, losses of others) cannot be stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from vcrf.errors import InputError
from vcrf.losses.alignment import SmithWatermanLoss
from vcrf.losses.combined import ScaledLoss, SumLoss
from vcrf.losses.counts import ClippedNgramLoss, NgramCountLoss
from vcrf.losses.edit import EditLoss
from vcrf.losses.hamming import HammingLoss, WeightedHammingLoss
from vcrf.losses.loss import Loss
from vcrf.losses.markov import MarkovLoss
from vcrf.losses.ngram import AlignedNgramLoss
from vcrf.losses.zero_one import ZeroOneLoss

_CLASSES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        AlignedNgramLoss, ClippedNgramLoss, EditLoss, HammingLoss, MarkovLoss, NgramCountLoss, ScaledLoss,
        SmithWatermanLoss, SumLoss, WeightedHammingLoss, ZeroOneLoss,
    )
}  # fmt: skip
_DEEPEST = 20


class _NoForm(Exception):
    """A value that JSON cannot hold."""


def dump_loss(loss: Loss) -> dict[str, Any] | None:
    """The loss as JSON values, None if it has no such form."""
    try:
        return _dump_loss(loss)
    except _NoForm:
        return None


def load_loss(value: Any, depth: int = 0) -> Loss:
    """Inverse of `dump_loss`; whatever is read is checked."""
    name = value.get("class") if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in _CLASSES or depth > _DEEPEST:
        raise InputError(f"the loss is none of {', '.join(_CLASSES)}")
    cls, given = _CLASSES[name], {key: item for key, item in value.items() if key != "class"}
    try:
        loss: Loss = cls(**{key: _load(item, depth) for key, item in given.items()})
        parts = loss.losses if isinstance(loss, SumLoss) else (loss.loss,) if isinstance(loss, ScaledLoss) else ()
        are_losses = all(isinstance(part, Loss) for part in parts)
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"the loss {name} has parameters that do not fit: {error}") from None
    if not are_losses:
        raise InputError(f"the loss {name} is made of something else than losses")
    return loss


def _dump_loss(loss: Loss) -> dict[str, Any]:
    name = type(loss).__name__
    if _CLASSES.get(name) is not type(loss):
        raise _NoForm
    return {"class": name} | {field.name: _dump(getattr(loss, field.name)) for field in fields(loss)}  # type: ignore[arg-type]


def _dump(value: Any) -> Any:
    if isinstance(value, Loss):
        return _dump_loss(value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and np.isfinite(value)):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and np.isfinite(value).all():
        return {"array": value.tolist()}
    if isinstance(value, (list, tuple)):
        return [_dump(item) for item in value]
    if isinstance(value, Mapping):
        return {"costs": [[_dump(key), _dump(cost)] for key, cost in value.items()]}
    raise _NoForm


def _load(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise InputError("the loss has parameters inside parameters without end")
    if isinstance(value, list):
        return tuple(_load(item, depth + 1) for item in value)
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        array = np.asarray(value["array"])
        if array.dtype.kind not in "biuf":
            raise InputError("an array of the loss holds something else than numbers")
        return array
    if set(value) == {"costs"}:
        return dict(_load(value["costs"], depth + 1))
    return load_loss(value, depth + 1)
