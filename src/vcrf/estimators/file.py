"""Estimators in files: the model, the parameters and the fitted numbers. No class is imported that is not listed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf.classes import WordClasses
from vcrf.errors import InputError
from vcrf.estimators.trained import Trained
from vcrf.labelling.loading import check_use
from vcrf.model import container
from vcrf.model.facts import stored_result
from vcrf.model.file import AGAIN, ESTIMATORS, contents_of, model_of, saying, tensor_of, word_classes
from vcrf.model.graphs import GraphModel, classes_of
from vcrf.model.json import dump_params, dump_scalar, load_params, load_scalar, with_classes

if TYPE_CHECKING:
    from vcrf.estimators.parameters import SequenceEstimator

_FITTED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*_")


def save(estimator: SequenceEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator; see `SequenceEstimator.save`."""
    container.write(Path(path), to_bytes(estimator))


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `save` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    VCRF, another estimator of vcrf, or compat.CRF
        It predicts exactly as the one that was saved. Parameters that were objects of the user have their default.
        `result_` has no merged features. The arrays are views on the mapped file: do not write into the file
        while they are in use (`save` does not: it moves a new file into place).

    Raises
    ------
    InputError
        When the file is not a model file, damaged, of a newer version, or inconsistent.
    """
    return from_buffer(container.map_file(Path(path)), os.fspath(path))


def to_bytes(estimator: SequenceEstimator) -> bytes:
    """Return the bytes of an estimator's file; the same for the same fit."""
    model = estimator._model()
    kind = type(estimator).__name__
    if type(estimator) is not _estimator_class(kind):
        raise InputError(
            f"A {kind} of {type(estimator).__module__} cannot be saved: expected one of {', '.join(ESTIMATORS)}. "
            "Save an estimator of vcrf itself, or pickle this one."
        )
    document = {
        "estimator": kind,
        "parameters": dump_params(estimator.get_params(deep=False)),
        "fitted": _scalars(vars(estimator)),
    }
    document, tensors = contents_of(model, document)
    tensors |= {f"fitted.{name}": np.asarray(getattr(estimator, name), dtype) for name, dtype, _ in _arrays(estimator)}
    content = container.encode(document, tensors)
    # What does not load must not take the place of a file that does.
    with saying(f"This {kind} cannot be saved, it would not load", "Correct its parameters or its model."):
        _restore(container.decode(content, kind))
    return content


def from_buffer(buffer: container.Buffer, name: str) -> Any:
    """Return the estimator of a file's bytes; `name` is for the messages."""
    contents = container.decode(buffer, name)
    with saying(f"{name}: the model file is not valid", AGAIN):
        return _restore(contents)


# ------------------------------------------------------------------------------------ the estimator


def _restore(contents: container.Contents) -> Any:
    document = contents.document
    model = model_of(contents)
    cls = _estimator_class(document["estimator"])
    params = load_params(document["parameters"], set(cls._get_param_names()))
    check_use(params, model)
    _give_classes(params, word_classes(contents.tensors))
    fitted = _checked_scalars(document["fitted"], cls, is_trained=model.facts is not None)
    if isinstance(model, GraphModel) and "directed" in cls._get_param_names():
        params["directed"] = model.kinds.directed
    estimator = cls(**params)
    estimator.model_, estimator.classes_ = model, classes_of(model)
    if model.facts is not None:
        estimator.result_ = stored_result(model.facts)
    vars(estimator).update(fitted)
    for name, dtype, n_dims in _arrays(estimator):
        setattr(estimator, name, tensor_of(contents.tensors, f"fitted.{name}", dtype, n_dims))
    if isinstance(model, GraphModel):
        estimator._check_parameters()
        estimator._check_fitted()
    if "norm_" in fitted and not isinstance(estimator.loss, str):
        estimator.loss_ = estimator.loss  # an object is written once, as the parameter
    return estimator


def _give_classes(params: dict[str, Any], classes: WordClasses | None) -> None:
    """Give parameters that are about word classes the file's table."""
    if params.get("word_classes") is not None:
        if classes is None:
            raise InputError("there is a parameter classes, and no table of word classes")
        params["word_classes"] = classes
    if isinstance(params.get("families"), list):
        params["families"] = [
            replace(family, sources=tuple(with_classes(family.sources, classes))) for family in params["families"]
        ]


def _arrays(estimator: Any) -> list[tuple[str, type[np.generic], int]]:
    """Names, types and dimensions of the fitted arrays besides the model."""
    arrays = estimator._fitted_arrays if isinstance(estimator, Trained) else {}
    return [(name, dtype, n_dims) for name, (dtype, n_dims) in arrays.items()]


def _estimator_class(kind: str) -> Any:
    return getattr(import_module(ESTIMATORS[kind]), kind) if kind in ESTIMATORS else None


def _scalars(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Fitted attributes that are None, plain numbers or text: n_columns_, dev_score_ and the like."""
    found = {key: value for key, value in attributes.items() if _FITTED.fullmatch(key)}
    written = {key: dump_scalar(value) for key, value in found.items()}
    return {key: value for key, value in written.items() if value is not None or found[key] is None}


def _checked_scalars(fitted: dict[str, Any], cls: type[SequenceEstimator], is_trained: bool) -> dict[str, Any]:
    for key in fitted:
        if not _FITTED.fullmatch(key) or key in ("model_", "classes_", "result_"):
            raise InputError(f"{key[:40]!r} is no fitted attribute that a file can hold")
    # What a later vcrf computes from the model needs no value from the file.
    kept = {key: value for key, value in fitted.items() if not hasattr(cls, key)}
    found: dict[str, Any] = {key: None if value is None else load_scalar(value, key) for key, value in kept.items()}
    # A vote of others was not trained itself.
    for key in cls._fitted_counts if is_trained else found.keys() & set(cls._fitted_counts):
        if type(found.get(key)) is not int or not 0 <= found[key] < 1 << 63:
            raise InputError(f"{key} is missing or no count")
    return found
