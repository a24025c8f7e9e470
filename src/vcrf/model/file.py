"""The model file: one `.vcrf` file with the model, the facts of its training and the estimator's parameters.

`container` has the format. The tables below say what of a `Model` goes where: arrays and strings into
tensors, the rest as JSON into the document. Nothing is unpickled, no class is imported that is not listed here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf.arguments.inputs import generator_of
from vcrf.classes import WordClasses
from vcrf.decoding.constraints import as_constraints
from vcrf.errors import InputError
from vcrf.families.templates import Template
from vcrf.model import Model, container
from vcrf.model.checks import check_model
from vcrf.model.facts import stored_result
from vcrf.model.json import (
    dump_family_facts,
    dump_params,
    dump_scalar,
    dump_sources,
    dump_training_facts,
    load_family_facts,
    load_params,
    load_scalar,
    load_sources,
    load_training_facts,
    with_classes,
)
from vcrf.strings import StringList
from vcrf.types import Label

if TYPE_CHECKING:
    from vcrf.estimators import SequenceEstimator
    from vcrf.estimators.prediction import ModelTagger

# Estimators that can be in a file, by the name they have there.
ESTIMATORS = {
    "VCRF": "vcrf.estimators",
    "CRF": "vcrf.compat",
    **dict.fromkeys(["VStructBoost", "VExponential", "M3N", "StructSVM"], "vcrf.estimators.surrogates"),
}

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
# Strings are two tensors each, "names.bytes" and "names.offsets": the UTF-8 bytes, and where each string starts.
STRINGS = ("names", "labels")
# The rest goes into the document: how a field becomes JSON, and back.
JSON: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sources": (dump_sources, load_sources),
    "families": (dump_family_facts, load_family_facts),
    "facts": (dump_training_facts, load_training_facts),
}
# A field with a default may be missing in a file that is older than the field.
_OPTIONAL = {field.name for field in fields(Model) if (field.default, field.default_factory) != (MISSING, MISSING)}

_AGAIN = "Train the model again, or save it again."
_LONGEST = 500
_FITTED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*_")


# ------------------------------------------------------------------------------------ the interface


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


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read only the model: what tags, without an estimator and without scikit-learn."""
    name = os.fspath(path)
    contents = container.decode(container.map_file(Path(path)), name)
    with _saying(f"{name}: the model file is not valid", _AGAIN):
        return _model_of(contents)


def load_tagger(path: str | os.PathLike[str]) -> ModelTagger:
    """Read what tags as the estimator does, without scikit-learn: the model and the constraints."""
    from vcrf.estimators.prediction import ModelTagger

    name = os.fspath(path)
    contents = container.decode(container.map_file(Path(path)), name)
    with _saying(f"{name}: the model file is not valid", _AGAIN):
        model = _model_of(contents)
        given = {"constraints": contents.document["parameters"].get("constraints")}
        params = load_params(given, set(given))
        _check_use(params, model)
        return ModelTagger(model, params["constraints"])


def read_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the header only: estimator, parameters, families, sources and facts of training, as JSON values.

    The tensors are neither read nor checked. Numbers that are not finite are the str "inf", "-inf" or "nan".
    """
    return container.read_document(container.map_file(Path(path)), os.fspath(path))


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
    content = container.encode(*_contents_of(model, document))
    # What does not load must not take the place of a file that does.
    with _saying(f"This {kind} cannot be saved, it would not load", "Correct its parameters or its model."):
        _restore(container.decode(content, kind))
    return content


def from_buffer(buffer: container.Buffer, name: str) -> Any:
    """Return the estimator of a file's bytes; `name` is for the messages."""
    contents = container.decode(buffer, name)
    with _saying(f"{name}: the model file is not valid", _AGAIN):
        return _restore(contents)


@contextmanager
def _saying(what: str, advice: str) -> Iterator[None]:
    """Complete errors about a file's contents by what they are about and what to do."""
    try:
        yield
    except InputError as error:
        reason = str(error)[:_LONGEST].rstrip(".")  # it may quote the file
        raise InputError(f"{what}: {reason}. {advice}") from None
    except RecursionError:
        raise InputError(f"{what}: its header is nested too deeply. {advice}") from None


# ------------------------------------------------------------------------------------ the model


def _contents_of(model: Model, document: Mapping[str, Any]) -> container.Contents:
    tensors: dict[str, Any] = {name: np.asarray(getattr(model, name), dtype) for name, (dtype, _) in ARRAYS.items()}
    for name, strings in (("names", model.names), ("labels", _label_texts(model.labels))):
        encoded = StringList.encode(strings)
        tensors |= {f"{name}.bytes": encoded.data, f"{name}.offsets": encoded.offsets}
    tensors |= _class_tensors(model)
    fields = {name: dump(getattr(model, name)) for name, (dump, _) in JSON.items()}
    int_labels = [i for i, label in enumerate(model.labels) if not isinstance(label, str)]
    return container.Contents({**document, **fields, "int_labels": int_labels}, tensors)


def _model_of(contents: container.Contents) -> Model:
    document, tensors = contents
    _check_estimator(document)
    found: dict[str, Any] = {}
    for name, (dtype, n_dims) in ARRAYS.items():
        if not _is_left_out(name, name in tensors):
            found[name] = _tensor(tensors, name, dtype, n_dims)
    for name, (_, load_json) in JSON.items():
        if not _is_left_out(name, name in document):
            found[name] = load_json(document[name])
    found["sources"] = with_classes(found["sources"], _word_classes(tensors))
    found["names"] = _strings(tensors, "names")
    found["labels"] = _labels_of(_strings(tensors, "labels"), _field(document, "int_labels", list))
    model = Model(**found)
    check_model(model)
    return model


def _check_estimator(document: Mapping[str, Any]) -> None:
    """What every reader of a file may count on."""
    kind = _field(document, "estimator", str)
    if kind not in ESTIMATORS:
        raise InputError(f"unknown estimator {kind[:40]!r}: expected one of {', '.join(ESTIMATORS)}")
    _field(document, "parameters", dict)
    _field(document, "fitted", dict)


def _is_left_out(name: str, is_there: bool) -> bool:
    """Say whether a field is not in the file, which is right only for one with a default: it came later."""
    if not is_there and name not in _OPTIONAL:
        raise InputError(f"{name!r} is missing")
    return not is_there


def _tensor(tensors: Mapping[str, Any], name: str, dtype: type[np.generic], n_dims: int) -> Any:
    if name not in tensors:
        raise InputError(f"{name!r} is missing")
    tensor = tensors[name]
    if tensor.dtype != dtype or tensor.ndim != n_dims:
        raise InputError(
            f"tensor {name!r} has {tensor.ndim} dimensions of {tensor.dtype}, expected {n_dims} of {np.dtype(dtype)}"
        )
    return tensor


def _strings(tensors: Mapping[str, Any], name: str) -> StringList:
    strings = StringList(
        _tensor(tensors, f"{name}.bytes", np.uint8, 1), _tensor(tensors, f"{name}.offsets", np.int64, 1)
    )
    strings.check(name)
    return strings


def _field(document: Mapping[str, Any], key: str, kind: type) -> Any:
    value = document.get(key)
    if not isinstance(value, kind):
        raise InputError(f"{key!r} is missing or no {kind.__name__}")
    return value


# ------------------------------------------------------------------------------------ word classes


def _class_tensors(model: Model) -> dict[str, Any]:
    """The table of word classes that templates look at, if any does."""
    used = {s.classes for s in model.sources if isinstance(s, Template) and s.classes is not None}
    if not used:
        return {}
    if len(used) > 1:
        raise InputError(f"A model file holds one table of word classes, this model has {len(used)}. Join them to one.")
    (table,) = used
    names = StringList.encode(list(table.names))
    return {
        "classes.keys": table.keys, "classes.numbers": table.numbers,
        "classes.names.bytes": names.data, "classes.names.offsets": names.offsets,
    }  # fmt: skip


def _word_classes(tensors: Mapping[str, Any]) -> WordClasses | None:
    if "classes.keys" not in tensors:
        return None
    keys, numbers = _tensor(tensors, "classes.keys", np.uint64, 1), _tensor(tensors, "classes.numbers", np.uint32, 1)
    return WordClasses(keys, numbers, tuple(_strings(tensors, "classes.names")))


# ------------------------------------------------------------------------------------ labels


def _label_texts(labels: list[Label]) -> list[str]:
    """A label that is an int is written in decimals, a bool as True or False."""
    try:
        return [label if isinstance(label, str) else _int_text(label) for label in labels]
    except ValueError:  # Python's limit on digits
        raise InputError("A label that is an int of thousands of digits cannot be saved. Use shorter ones.") from None


def _int_text(label: int) -> str:
    return str(bool(label)) if isinstance(label, (bool, np.bool_)) else str(int(label))


def _labels_of(texts: StringList, int_labels: list[Any]) -> list[Label]:
    labels: list[Label] = list(texts)
    for i in int_labels:
        if type(i) is not int or not 0 <= i < len(labels):
            raise InputError(f"int_labels must hold numbers of the {len(labels)} labels")
        labels[i] = _int_of(texts[i])
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


def _restore(contents: container.Contents) -> Any:
    document = contents.document
    model = _model_of(contents)
    cls = _estimator_class(document["estimator"])
    params = load_params(document["parameters"], set(cls._get_param_names()))
    _check_use(params, model)
    _give_classes(params, _word_classes(contents.tensors))
    fitted = _checked_scalars(document["fitted"], cls, is_trained=model.facts is not None)
    estimator = cls(**params)
    estimator.model_, estimator.classes_ = model, list(model.labels)
    if model.facts is not None:
        estimator.result_ = stored_result(model.facts)
    vars(estimator).update(fitted)
    return estimator


def _check_use(params: Mapping[str, Any], model: Model) -> None:
    """Refuse parameters that prediction uses and that cannot work; `fit` checks the others."""
    if params.get("constraints") is not None:
        as_constraints(params["constraints"]).check(model.labels)
    generator_of(params.get("random_state"))


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


def _estimator_class(kind: str) -> Any:
    return getattr(import_module(ESTIMATORS[kind]), kind) if kind in ESTIMATORS else None


def _scalars(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Fitted attributes that are plain numbers or text: n_columns_, dev_score_ and the like."""
    found = {key: dump_scalar(value) for key, value in attributes.items() if _FITTED.fullmatch(key)}
    return {key: value for key, value in found.items() if value is not None}


def _checked_scalars(fitted: dict[str, Any], cls: type[SequenceEstimator], is_trained: bool) -> dict[str, Any]:
    for key in fitted:
        if not _FITTED.fullmatch(key) or key in ("model_", "classes_", "result_"):
            raise InputError(f"{key[:40]!r} is no fitted attribute that a file can hold")
    # What a later vcrf computes from the model needs no value from the file.
    found = {key: load_scalar(value, key) for key, value in fitted.items() if not hasattr(cls, key)}
    # A vote of others was not trained itself.
    for key in cls._fitted_counts if is_trained else found.keys() & set(cls._fitted_counts):
        if type(found.get(key)) is not int or not 0 <= found[key] < 1 << 63:
            raise InputError(f"{key} is missing or no count")
    return found
