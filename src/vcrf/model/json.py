"""Parts of a model as JSON values, and back: sources, families, facts, parameters.

JSON has no infinity: a number that is not finite is written as the str "inf", "-inf" or "nan" where a number is
expected, as {"number": "inf"} elsewhere. Whatever is read is checked; errors are InputError and name the field.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, replace
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from vcrf.classes import WordClasses
from vcrf.data.layout import conllu_layout
from vcrf.decoding.constraints import Constraints, as_constraints
from vcrf.errors import InputError
from vcrf.families.explicit import NamedFeature
from vcrf.families.family import Family, Source
from vcrf.families.templates import Template
from vcrf.families.text import check_reading, reads_class
from vcrf.model import FamilyFacts
from vcrf.model.facts import TrainingFacts
from vcrf.solvers.result import IterationRecord, Status

T = TypeVar("T")

_INFINITIES = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
# Positions are added to offsets in 64 bits: this is far from the limit, and from any sentence.
_FARTHEST = 1 << 31


# ------------------------------------------------------------------------------------ sources and families


def dump_sources(sources: list[Source]) -> list[Any]:
    """Templates as {"parts": [[offset, reading], ...], "pad": ...}, named features as {"feature": name}."""
    return [_dump_source(source) for source in sources]


def load_sources(value: Any) -> list[Source]:
    """Inverse of `dump_sources`."""
    return [_load_source(item) for item in _list(value, "sources")]


def _dump_source(source: Source) -> Any:
    if type(source) is Template:
        return {"parts": [[int(offset), reading] for offset, reading in source.parts], "pad": bool(source.pad)}
    if type(source) is NamedFeature:
        return {"feature": source.name}
    raise InputError(
        f"A model that reads attributes with a {type(source).__name__} cannot be saved: expected Template or "
        "NamedFeature. Give the attributes as feature dicts instead."
    )


def _load_source(value: Any) -> Source:
    if isinstance(value, dict) and set(value) == {"feature"} and isinstance(value["feature"], str):
        return NamedFeature(value["feature"])
    if not isinstance(value, dict) or set(value) != {"parts", "pad"} or type(value["pad"]) is not bool:
        raise InputError(f"a source is neither a template nor a named feature: {_short(value)}")
    return Template(tuple(_load_part(part) for part in _list(value["parts"], "parts")), value["pad"])


def with_classes(sources: Iterable[Source], classes: WordClasses | None) -> list[Source]:
    """The sources of a file, those that read word classes with the file's table."""
    return [_with_classes(source, classes) for source in sources]


def _with_classes(source: Source, classes: WordClasses | None) -> Source:
    if not isinstance(source, Template) or not any(reads_class(reading) for _, reading in source.parts):
        return source
    if classes is None:
        raise InputError(f"{source.name!r} reads word classes, and there are none")
    return replace(source, classes=classes)


def _load_part(part: Any) -> tuple[int, str]:
    if not isinstance(part, list) or [type(item) for item in part] != [int, str] or abs(part[0]) >= _FARTHEST:
        raise InputError(f"a part of a template is not [offset, reading]: {_short(part)}")
    check_reading(part[1])
    return part[0], part[1]


def _dump_family(family: Family) -> Any:
    value = {"name": family.name, "tags": int(family.tags), "sources": dump_sources(list(family.sources))}
    return value if family.factor == 1.0 else value | {"factor": float(family.factor)}


def _load_family(value: Any) -> Family:
    if not isinstance(value, dict) or set(value) | {"factor"} != {"name", "tags", "sources", "factor"}:
        raise InputError(f"a family is not name, tags and sources: {_short(value)}")
    if not isinstance(value["name"], str) or type(value["tags"]) is not int:
        raise InputError(f"a family has no valid name and tags: {_short(value)}")
    return Family(value["name"], tuple(load_sources(value["sources"])), value["tags"], value.get("factor", 1.0))


# ------------------------------------------------------------------------------------ facts


def dump_family_facts(families: list[FamilyFacts]) -> list[Any]:
    """One object a family."""
    return [_dump_record(facts) for facts in families]


def load_family_facts(value: Any) -> list[FamilyFacts]:
    """Inverse of `dump_family_facts`."""
    return [_load_record(FamilyFacts, item) for item in _list(value, "families")]


def dump_training_facts(facts: TrainingFacts | None) -> Any:
    """One object, or null."""
    if facts is None:
        return None
    record = _dump_record(facts)
    if not facts.tag_bundle:
        del record["tag_bundle"]  # older versions read such files
    return {
        **record,
        "versions": dict(facts.versions),
        "history": [_dump_record(record) for record in facts.history],
    }


def load_training_facts(value: Any) -> TrainingFacts | None:
    """Inverse of `dump_training_facts`."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InputError("facts is no object")
    rest = dict(value)
    versions, history = rest.pop("versions", {}), _list(rest.pop("history", []), "history")
    if not isinstance(versions, dict) or not all(isinstance(text, str) for text in versions.values()):
        raise InputError("versions are not text")
    records = [_load_record(IterationRecord, record) for record in history]
    facts = _load_record(TrainingFacts, rest, versions=versions, history=records)
    if facts.status not in Status.__members__:
        raise InputError(f"unknown status {_short(facts.status)}")
    _check_layout(facts)
    return facts


def _check_layout(facts: TrainingFacts) -> None:
    """Columns of the training file, if there was one, are columns of it."""
    if facts.file_format not in ("", "conllu", "columns"):
        raise InputError(f"unknown file_format {_short(facts.file_format)}")
    if facts.file_format and max(facts.form_column, facts.tag_column) >= facts.n_file_columns:
        raise InputError(
            f"the training file has {_short(facts.n_file_columns)} columns, fewer than those it was read by"
        )
    if facts.tag_bundle and (facts.file_format != "conllu" or conllu_layout(facts.tag_bundle).tag != facts.tag_column):
        raise InputError(f"tag_bundle is {_short(facts.tag_bundle)}, which does not fit the training file's columns")


def _dump_record(record: Any) -> dict[str, Any]:
    """Fields of a dataclass that are text or numbers."""
    kinds: dict[str, Callable[[Any], Any]] = {
        "str": str, "int": int, "float": _dump_float,
        "float | None": lambda number: None if number is None else _dump_float(number),
    }  # fmt: skip
    return {
        field.name: kinds[str(field.type)](getattr(record, field.name))
        for field in fields(record)
        if str(field.type) in kinds
    }


def _load_record(cls: type[T], value: Any, **given: Any) -> T:
    """Inverse of `_dump_record`; fields with a default may be missing, `given` are the others."""
    if not isinstance(value, dict):
        raise InputError(f"expected an object with the fields of {cls.__name__}, got {_short(value)}")
    found: dict[str, Any] = dict(given)
    for field in fields(cls):  # type: ignore[arg-type] # T is a dataclass
        if field.name in given:
            continue
        if field.name in value:
            found[field.name] = _load_typed(value[field.name], str(field.type), field.name)
        elif field.default is MISSING:
            raise InputError(f"{cls.__name__} has no {field.name}")
    if set(value) - set(found):
        raise InputError(f"{cls.__name__} has unknown fields: {_short(sorted(set(value) - set(found)))}")
    return cls(**found)


def _load_typed(value: Any, kind: str, name: str) -> Any:
    if kind == "str" and isinstance(value, str):
        return value
    if kind == "int" and type(value) is int and value >= 0:
        return value
    if kind == "float | None" and value is None:
        return None
    if kind in ("float", "float | None"):
        return _load_float(value, name)
    raise InputError(f"{name} is no {kind}: {_short(value)}")


def _dump_float(number: float) -> float | str:
    number = float(number)
    return number if math.isfinite(number) else str(number)


def _load_float(value: Any, name: str) -> float:
    if isinstance(value, str) and value in _INFINITIES:
        return _INFINITIES[value]
    if type(value) is float:
        return value
    if type(value) is int and abs(value) < 1 << 1000:
        return float(value)
    raise InputError(f"{name} is no number: {_short(value)}")


# ------------------------------------------------------------------------------------ parameters


def dump_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that JSON can hold; objects of the user (callbacks, generators) are left out."""
    found: dict[str, Any] = {}
    for name, value in params.items():
        if value is None:
            found[name] = None
        elif name == "word_classes":
            found[name] = "of the model"  # which has the table
        elif name == "families" and _is_families(value):
            found[name] = {"families": [_dump_family(family) for family in value]}
        elif name == "loss" and not isinstance(value, str):
            stored = _dump_loss(value)
            if stored is not None:
                found[name] = {"loss": stored}
        elif name == "constraints" and not isinstance(value, str):
            found[name] = {"constraints": _dump_constraints(as_constraints(value))}
        elif name == "edges" and not isinstance(value, str):
            found[name] = {"edges": np.asarray(value).tolist()}
        elif isinstance(value, Mapping):
            mapping = {key: dump_scalar(item) for key, item in value.items()}
            if all(isinstance(key, str) and item is not None for key, item in mapping.items()):
                found[name] = {"mapping": mapping}
        elif dump_scalar(value) is not None:
            found[name] = dump_scalar(value)
    return found


def load_params(values: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Inverse of `dump_params`; only known names."""
    unknown = set(values) - known
    if unknown:
        raise InputError(f"unknown parameters: {_short(sorted(unknown))}")
    return {name: _load_param(value, name) for name, value in values.items()}


def _load_param(value: Any, name: str) -> Any:
    if value is None:
        return None
    if name == "constraints" and value == {"families": []}:
        return []  # so it was written once
    if isinstance(value, dict) and set(value) == {name} and name in _OBJECTS:
        return _OBJECTS[name](value[name])
    if name == "callback" or (name in _OBJECTS and not isinstance(value, str)):
        raise InputError(f"{name} is nothing that a file can hold: {_short(value)}")
    if isinstance(value, dict) and set(value) == {"mapping"} and isinstance(value["mapping"], dict):
        return {key: load_scalar(item, name) for key, item in value["mapping"].items()}
    return load_scalar(value, name)


def _load_edges(value: Any) -> list[list[int]]:
    for pair in _list(value, "edges"):
        if len(_list(pair, "a pair of edges")) != 2 or any(type(label) is not int for label in pair):
            raise InputError(f"`edges` must hold pairs of numbers, got {_short(pair)}")
    return list(value)


def _load_families(value: Any) -> list[Family]:
    return [_load_family(item) for item in _list(value, "families")]


def _load_loss(value: Any) -> Any:
    from vcrf.losses.stored import load_loss

    return load_loss(value)


def _dump_loss(loss: Any) -> dict[str, Any] | None:
    """The loss's class and parameters; a loss with a function, a transducer or of another's class is left out."""
    from vcrf.losses.stored import dump_loss

    stored = dump_loss(loss)
    if stored is None:
        warnings.warn(
            f"The loss {type(loss).__name__} cannot be written to a model file and is left out: the loaded estimator "
            "tags the same, but has the default loss as its parameter.",
            UserWarning,
            stacklevel=5,
        )
    return stored


def _dump_constraints(constraints: Constraints) -> dict[str, Any]:
    return {
        "scheme": constraints.scheme,
        "forbidden": [[dump_scalar(label) for label in pair] for pair in constraints.forbidden],
        "forbidden_starts": [dump_scalar(label) for label in constraints.forbidden_starts],
        "forbidden_ends": [dump_scalar(label) for label in constraints.forbidden_ends],
    }


def _load_constraints(value: Any) -> Constraints:
    if not isinstance(value, dict) or set(value) != {"scheme", "forbidden", "forbidden_starts", "forbidden_ends"}:
        raise InputError(f"constraints have other fields: {_short(value)}")
    if not (value["scheme"] is None or isinstance(value["scheme"], str)):
        raise InputError(f"the scheme of the constraints is no text: {_short(value['scheme'])}")
    pairs = [_labels(pair) for pair in _list(value["forbidden"], "forbidden")]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError("a forbidden transition is no pair")
    starts, ends = _labels(value["forbidden_starts"]), _labels(value["forbidden_ends"])
    return as_constraints(Constraints(value["scheme"], tuple((a, b) for a, b in pairs), starts, ends))


def _labels(value: Any) -> tuple[str | int, ...]:
    labels = _list(value, "labels")
    if not all(isinstance(label, (str, int)) for label in labels):
        raise InputError(f"a label is neither text nor a whole number: {_short(labels)}")
    return tuple(labels)


# Parameters that are objects of ours: {name: how it is written}. Otherwise they are None or a name.
_OBJECTS: dict[str, Callable[[Any], Any]] = {
    "families": _load_families,
    "loss": _load_loss,
    "constraints": _load_constraints,
    "edges": _load_edges,
}


def dump_scalar(value: Any) -> Any:
    """A plain number, bool or text; None for anything else."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else {"number": str(number)}
    return None


def load_scalar(value: Any, name: str) -> Any:
    """Inverse of `dump_scalar`."""
    if isinstance(value, (bool, str, int, float)):
        return value
    if isinstance(value, dict) and set(value) == {"number"} and value["number"] in ("inf", "-inf", "nan"):
        return _INFINITIES[value["number"]]
    raise InputError(f"{name} is neither a number nor text: {_short(value)}")


def _is_families(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, Family) for item in value)


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{name} is no list: {_short(value)}")
    return value


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
