"""The model file: one `.vcrf` file with the model, the facts of its training and the estimator's parameters.

`tensor_file` has the container. The tables below say what of a `Model` goes where: arrays and strings into
tensors, the rest as JSON into the document. Nothing is unpickled, no class is imported that is not listed here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vcrf import tensor_file
from vcrf.errors import InputError
from vcrf.strings import StringList

if TYPE_CHECKING:
    from vcrf.estimators import SequenceEstimator
    from vcrf.model import Label, Model
    from vcrf.prediction import ModelTagger

# Estimators that can be in a file, by the name they have there.
ESTIMATORS = {"VCRF": "vcrf.estimators", "CRF": "vcrf.compat"}

# Arrays of a Model: dtype and number of dimensions.
ARRAYS: dict[str, tuple[type[np.generic], int]] = {
    "family_of": (np.int64, 2),
    "source_ptr": (np.int64, 1),
    "keys": (np.uint64, 1),
    "ptr": (np.int64, 1),
    "lengths": (np.uint32, 1),
    "codes": (np.uint32, 1),
    "weights": (np.float64, 1),
    "vocabulary": (np.uint64, 1),
}
# Strings are two tensors each: the UTF-8 bytes, and where each string starts.
STRINGS = ("names", "labels")

_FITTED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*_")


class _JsonField(NamedTuple):
    """How a field of a Model becomes JSON, and back."""

    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]


def _json_fields() -> dict[str, _JsonField]:
    from vcrf import model_json

    return {
        "sources": _JsonField(model_json.dump_sources, model_json.load_sources),
        "families": _JsonField(model_json.dump_family_facts, model_json.load_family_facts),
        "facts": _JsonField(model_json.dump_training_facts, model_json.load_training_facts),
    }


# ------------------------------------------------------------------------------------ the interface


def save(estimator: SequenceEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator; see `SequenceEstimator.save`."""
    from vcrf.model_json import dump_params

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
    content = _encode(model, document)
    tensor_file.write(Path(path), content)


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `save` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    VCRF or compat.CRF
        It predicts exactly as the one that was saved. Parameters that were objects of the user have their default.
        `result_` has no merged features. The arrays are views on the mapped file: do not write into the file
        while they are in use (`save` does not: it moves a new file into place).

    Raises
    ------
    InputError
        When the file is not a model file, damaged, of a newer version, or inconsistent.
    """
    from vcrf.facts import stored_result
    from vcrf.model_json import load_params

    name = os.fspath(path)
    model, document = _decode(tensor_file.map_file(Path(path)), name)
    with _naming(name):
        kind = _field(document, "estimator", str)
        if kind not in ESTIMATORS:
            raise InputError(f"unknown estimator {kind!r}: expected one of {', '.join(ESTIMATORS)}")
        cls = _estimator_class(kind)
        known = set(cls().get_params(deep=False))
        params = load_params(_field(document, "parameters", dict), known)
        fitted = _checked_scalars(_field(document, "fitted", dict), cls)
    estimator = cls(**params)
    for key, value in fitted.items():
        setattr(estimator, key, value)
    estimator.model_, estimator.classes_ = model, list(model.labels)
    if model.facts is not None:
        estimator.result_ = stored_result(model.facts)
    return estimator


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read only the model: what tags, without an estimator and without scikit-learn."""
    return _decode(tensor_file.map_file(Path(path)), os.fspath(path))[0]


def load_tagger(path: str | os.PathLike[str]) -> ModelTagger:
    """Read what tags as the estimator does, without scikit-learn: the model and the constraints."""
    from vcrf.model_json import load_params
    from vcrf.prediction import ModelTagger

    model, document = _decode(tensor_file.map_file(Path(path)), os.fspath(path))
    with _naming(os.fspath(path)):
        parameters = _field(document, "parameters", dict)
        params = load_params({"constraints": parameters.get("constraints")}, {"constraints"})
    return ModelTagger(model, params["constraints"])


def read_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the header only: estimator, parameters, families, sources and facts of training, as JSON values.

    The tensors are neither read nor checked. Numbers that are not finite are the str "inf", "-inf" or "nan".
    """
    return tensor_file.read_document(tensor_file.map_file(Path(path)), os.fspath(path))


# ------------------------------------------------------------------------------------ a model in the container


def _encode(model: Model, document: Mapping[str, Any]) -> bytes:
    strings = {"names": StringList.encode(model.names), "labels": _label_texts(model.labels)}
    tensors: dict[str, Any] = {name: np.asarray(getattr(model, name), dtype) for name, (dtype, _) in ARRAYS.items()}
    for name, listed in strings.items():
        tensors |= {f"{name}.bytes": listed.data, f"{name}.offsets": listed.offsets}
    fields = {name: field.dump(getattr(model, name)) for name, field in _json_fields().items()}
    kind = "str" if all(isinstance(label, str) for label in model.labels) else "int"
    return tensor_file.encode({**document, "labels": kind, **fields}, tensors)


def _decode(buffer: tensor_file.Buffer, name: str) -> tuple[Model, dict[str, Any]]:
    from vcrf.model import Model
    from vcrf.model_checks import check_model

    document, tensors = tensor_file.decode(buffer, name)
    with _naming(name):
        fields: dict[str, Any] = {}
        for key, (dtype, n_dims) in ARRAYS.items():
            fields[key] = _tensor(tensors, key, dtype, n_dims)
        for key in STRINGS:
            fields[key] = StringList(
                _tensor(tensors, f"{key}.bytes", np.uint8, 1), _tensor(tensors, f"{key}.offsets", np.int64, 1)
            )
            fields[key].check()
        for key, field in _json_fields().items():
            if key not in document:
                raise InputError(f"{key} is missing")
            fields[key] = field.load(document[key])
        fields["labels"] = _labels_of(fields["labels"], _field(document, "labels", str))
        model = Model(**fields)
        check_model(model)
    return model, document


class _naming:  # noqa: N801 # used as a statement
    """Name the file in errors about its contents."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, InputError):
            raise InputError(
                f"{self.name}: the model file is not valid: {error}. Save the model again with `save`."
            ) from None


def _tensor(tensors: Mapping[str, Any], name: str, dtype: type[np.generic], n_dims: int) -> Any:
    if name not in tensors:
        raise InputError(f"tensor {name!r} is missing")
    tensor = tensors[name]
    if tensor.dtype != dtype or tensor.ndim != n_dims:
        raise InputError(
            f"tensor {name!r} has {tensor.ndim} dimensions of {tensor.dtype}, expected {n_dims} of {np.dtype(dtype)}"
        )
    return tensor


def _field(document: Mapping[str, Any], key: str, kind: type) -> Any:
    value = document.get(key)
    if not isinstance(value, kind):
        raise InputError(f"{key!r} is no {kind.__name__}")
    return value


# ------------------------------------------------------------------------------------ labels


def _label_texts(labels: list[Label]) -> StringList:
    try:
        return StringList.encode([label if isinstance(label, str) else _int_text(label) for label in labels])
    except ValueError as error:
        raise InputError(f"A label cannot be saved: {error}. Use shorter labels.") from None


def _int_text(label: int) -> str:
    return str(bool(label)) if isinstance(label, (bool, np.bool_)) else str(int(label))


def _labels_of(texts: StringList, kind: str) -> list[Label]:
    if kind not in ("str", "int"):
        raise InputError(f"labels are of kind {kind!r}, expected 'str' or 'int'")
    labels: list[Label] = [text if kind == "str" else _int_of(text) for text in texts]
    if len(set(labels)) < len(labels):
        raise InputError("a label occurs twice")
    return labels


def _int_of(text: str) -> int:
    if text in ("True", "False"):
        return text == "True"
    if not re.fullmatch(r"-?[0-9]{1,4000}", text):
        raise InputError(f"the label {text[:40]!r} is no int")
    return int(text)


# ------------------------------------------------------------------------------------ the estimator


def _estimator_class(kind: str) -> Any:
    return getattr(import_module(ESTIMATORS[kind]), kind) if kind in ESTIMATORS else None


def _scalars(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Fitted attributes that are plain numbers or text: n_columns_, dev_score_ and the like."""
    from vcrf.model_json import dump_scalar

    found = {key: dump_scalar(value) for key, value in attributes.items() if _FITTED.fullmatch(key)}
    return {key: value for key, value in found.items() if value is not None}


def _checked_scalars(fitted: dict[str, Any], cls: type) -> dict[str, Any]:
    from vcrf.model_json import load_scalar

    for key in fitted:
        if not _FITTED.fullmatch(key) or hasattr(cls, key) or key in ("model_", "classes_", "result_"):
            raise InputError(f"{key!r} is no fitted attribute that a file can hold")
    return {key: load_scalar(value, key) for key, value in fitted.items()}
