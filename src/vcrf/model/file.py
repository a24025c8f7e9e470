"""The model in a file: one `.vcrf` file has it, the facts of its training and an estimator's parameters.

`container` has the format, `estimators.file` what is an estimator's. The tables below say what of a `Model` goes
where: arrays and strings into tensors, the rest as JSON into the document. Nothing is unpickled, no class is imported
that is not listed here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from vcrf.classes import WordClasses
from vcrf.errors import InputError
from vcrf.families.templates import Template
from vcrf.model import Model, calibration, container
from vcrf.model.checks import check_model
from vcrf.model.graph_file import dump_graph, load_graph
from vcrf.model.graphs import GraphModel
from vcrf.model.json import (
    dump_family_facts,
    dump_sources,
    dump_training_facts,
    load_family_facts,
    load_sources,
    load_training_facts,
    with_classes,
)
from vcrf.problem import Components, KnownLabels
from vcrf.strings import StringList
from vcrf.types import Label

# Estimators that can be in a file, by the name they have there.
ESTIMATORS = {
    "VCRF": "vcrf.estimators",
    "CRF": "vcrf.compat",
    **dict.fromkeys(
        ["VStructBoost", "VExponential", "M3N", "StructSVM", "MaxCRF", "MaxStructBoost", "MaxExponential"],
        "vcrf.estimators.surrogates",
    ),
}

GRAPH_ESTIMATORS = {"GraphCRF": "vcrf.estimators.graph_crf", "MultiLabelCRF": "vcrf.estimators.multilabel"}
ESTIMATORS |= GRAPH_ESTIMATORS

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
    "sentences": (np.uint64, 1),
}
# Strings are two tensors each, "names.bytes" and "names.offsets": the UTF-8 bytes, and where each string starts.
STRINGS = ("names", "labels")
# The rest goes into the document: how a field becomes JSON, and back.
JSON: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sources": (dump_sources, load_sources),
    "families": (dump_family_facts, load_family_facts),
    "facts": (dump_training_facts, load_training_facts),
    "calibration": (calibration.dump_calibration, lambda value: value),  # its arrays are tensors
}
# A file with components has this format version: an older vcrf would take their weights for those of tag patterns.
COMPONENTS_VERSION = 3
# And one with pairs of component values this one.
PAIRS_VERSION = 4
# One with known labels this one: an older vcrf would let all words have all labels.
KNOWN_VERSION = 5
# Fields with tensors of their own, which are there if the field is.
TENSORS = ("components", "known")
# A field with a default may be missing in a file that is older than the field.
_OPTIONAL = {field.name for field in fields(Model) if (field.default, field.default_factory) != (MISSING, MISSING)}

AGAIN = "Train the model again, or save it again."
_LONGEST = 500


# ------------------------------------------------------------------------------------ the interface


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read only the model: what tags, without an estimator and without scikit-learn."""
    name = os.fspath(path)
    contents = container.decode(container.map_file(Path(path)), name)
    with saying(f"{name}: the model file is not valid", AGAIN):
        return model_of(contents)


def read_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the header only: estimator, parameters, families, sources and facts of training, as JSON values.

    The tensors are neither read nor checked. Numbers that are not finite are the str "inf", "-inf" or "nan".
    """
    name = os.fspath(path)
    document = container.read_document(container.map_file(Path(path)), name)
    with saying(f"{name}: the model file is not valid", AGAIN):
        _check_estimator(document)
    return document


@contextmanager
def saying(what: str, advice: str) -> Iterator[None]:
    """Complete errors about a file's contents by what they are about and what to do."""
    try:
        yield
    except InputError as error:
        reason = str(error)[:_LONGEST].rstrip(".")  # it may quote the file
        raise InputError(f"{what}: {reason}. {advice}") from None
    except RecursionError:
        raise InputError(f"{what}: its header is nested too deeply. {advice}") from None


# ------------------------------------------------------------------------------------ the model


def contents_of(model: Model, document: Mapping[str, Any]) -> container.Contents:
    """Document and tensors of a model; the document has more of the estimator's."""
    tensors: dict[str, Any] = {name: np.asarray(getattr(model, name), dtype) for name, (dtype, _) in ARRAYS.items()}
    for name, strings in (("names", model.names), ("labels", _label_texts(model.labels))):
        encoded = StringList.encode(strings)
        tensors |= {f"{name}.bytes": encoded.data, f"{name}.offsets": encoded.offsets}
    tensors |= (
        component_tensors(model.components)
        | known_tensors(model.known)
        | _class_tensors(model)
        | calibration.calibration_tensors(model.calibration)
    )
    fields = {name: dump(getattr(model, name)) for name, (dump, _) in JSON.items()}
    if isinstance(model, GraphModel):
        fields["graph"], scales = dump_graph(model)
        tensors |= scales
    int_labels = [i for i, label in enumerate(model.labels) if not isinstance(label, str)]
    version = {"version": 1 if model.calibration is None else calibration.VERSION}
    if model.components is not None:
        version = {"version": PAIRS_VERSION if model.components.pairs else COMPONENTS_VERSION}
    if model.known is not None:
        version = {"version": KNOWN_VERSION}
    return container.Contents({**version, **document, **fields, "int_labels": int_labels}, tensors)


def model_of(contents: container.Contents) -> Model:
    """The model of a file's contents, checked."""
    document, tensors = contents
    _check_estimator(document)
    found: dict[str, Any] = {}
    for name, (dtype, n_dims) in ARRAYS.items():
        if not _is_left_out(name, name in tensors):
            found[name] = tensor_of(tensors, name, dtype, n_dims)
    for name, (_, load_json) in JSON.items():
        if not _is_left_out(name, name in document):
            found[name] = load_json(document[name])
    found["sources"] = with_classes(found["sources"], word_classes(tensors))
    found["names"] = _strings(tensors, "names")
    found["labels"] = _labels_of(_strings(tensors, "labels"), _field(document, "int_labels", list))
    found["components"] = components_in(tensors, len(found["labels"]))
    found["known"] = known_in(tensors, len(found["labels"]))
    found["calibration"] = calibration.load_calibration(found.get("calibration"), tensors, found["labels"])
    model = Model(**found)
    if "graph" in document:
        model = GraphModel.of(model, *load_graph(document["graph"], tensors, model.labels))
        if model.family_of.shape[1] != len(model.kinds.kinds) + 1:
            raise InputError("family_of has other kinds of parts than the graph")
    check_model(model)
    return model


def _check_estimator(document: Mapping[str, Any]) -> None:
    """What every reader of a file may count on."""
    kind = _field(document, "estimator", str)
    if kind not in ESTIMATORS:
        raise InputError(f"unknown estimator {kind[:40]!r}: expected one of {', '.join(ESTIMATORS)}")
    if ("graph" in document) != (kind in GRAPH_ESTIMATORS):
        raise InputError(f"a {kind} has {'kinds of parts' if 'graph' in document else 'no kinds of parts'}")
    _field(document, "parameters", dict)
    _field(document, "fitted", dict)


def _is_left_out(name: str, is_there: bool) -> bool:
    """Say whether a field is not in the file, which is right only for one with a default: it came later."""
    if not is_there and name not in _OPTIONAL:
        raise InputError(f"{name!r} is missing")
    return not is_there


def tensor_of(tensors: Mapping[str, Any], name: str, dtype: type[np.generic], n_dims: int) -> Any:
    """A tensor of a file, checked."""
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
        tensor_of(tensors, f"{name}.bytes", np.uint8, 1), tensor_of(tensors, f"{name}.offsets", np.int64, 1)
    )
    strings.check(name)
    return strings


def _field(document: Mapping[str, Any], key: str, kind: type) -> Any:
    value = document.get(key)
    if not isinstance(value, kind):
        raise InputError(f"{key!r} is missing or no {kind.__name__}")
    return value


# ------------------------------------------------------------------------------------ components


def component_tensors(components: Components | None) -> dict[str, Any]:
    """What labels have in common, as tensors; nothing if no family is on it."""
    if components is None:
        return {}
    names, pairs = StringList.encode(components.names), StringList.encode(list(components.pairs))
    tensors = {
        "components.ptr": components.ptr, "components.labels": components.labels,
        "components.names.bytes": names.data, "components.names.offsets": names.offsets,
    }  # fmt: skip
    if components.pairs:
        tensors |= {"components.pairs.bytes": pairs.data, "components.pairs.offsets": pairs.offsets}
    return tensors


def components_in(tensors: Mapping[str, Any], n_labels: int) -> Components | None:
    """Inverse of `component_tensors`; `check_model` looks at what it holds."""
    if "components.ptr" not in tensors:
        return None
    ptr = tensor_of(tensors, "components.ptr", np.int64, 1)
    labels = tensor_of(tensors, "components.labels", np.uint32, 1)
    pairs = tuple(_strings(tensors, "components.pairs")) if "components.pairs.bytes" in tensors else ()
    return Components(list(_strings(tensors, "components.names")), ptr, labels, n_labels, pairs)


# ------------------------------------------------------------------------------------ known labels


def known_tensors(known: KnownLabels | None) -> dict[str, Any]:
    """The labels that words may have, as tensors; nothing if all may have all."""
    if known is None:
        return {}
    return {
        "known.words": known.words, "known.ptr": known.ptr, "known.labels": known.labels,
        "known.least": np.array([known.least], np.int64),
    }  # fmt: skip


def known_in(tensors: Mapping[str, Any], n_labels: int) -> KnownLabels | None:
    """Inverse of `known_tensors`; `check_model` looks at what it holds."""
    if "known.words" not in tensors:
        return None
    words, ptr = tensor_of(tensors, "known.words", np.uint64, 1), tensor_of(tensors, "known.ptr", np.int64, 1)
    labels, least = tensor_of(tensors, "known.labels", np.uint32, 1), tensor_of(tensors, "known.least", np.int64, 1)
    if len(least) != 1 or least[0] < 1:
        raise InputError("known.least must be one number of at least 1")
    return KnownLabels(words, ptr, labels, n_labels, int(least[0]))


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


def word_classes(tensors: Mapping[str, Any]) -> WordClasses | None:
    """The table of word classes in a file, if there is one."""
    if "classes.keys" not in tensors:
        return None
    keys, numbers = (
        tensor_of(tensors, "classes.keys", np.uint64, 1),
        tensor_of(tensors, "classes.numbers", np.uint32, 1),
    )
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
