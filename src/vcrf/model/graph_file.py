"""What a file of a graph model has besides: kinds of parts, and the scales of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vcrf.errors import InputError
from vcrf.graphs.kinds import PartKind, PartKinds
from vcrf.graphs.reading import Scale
from vcrf.model.graphs import GraphModel
from vcrf.types import Label

# Far from any graph, and no table of them overflows.
_MOST_KINDS, _MOST_NODES = 100_000, 16


def dump_graph(model: GraphModel) -> tuple[dict[str, Any], dict[str, Any]]:
    """The section of the document, and the tensors."""
    kinds, number = model.kinds, {label: i for i, label in enumerate(model.labels)}
    scaled = sorted(model.scales)
    section = {
        "types": list(kinds.types),
        "labels": [[number[label] for label in labels] for labels in kinds.labels],
        "kinds": [[kind.name, list(kind.types), kind.is_symmetric] for kind in kinds.kinds],
        "directed": kinds.directed if isinstance(kinds.directed, bool) else list(kinds.directed),
        "scaled": scaled,
    }
    scales = [model.scales[k] for k in scaled]
    tensors = {
        "graph.scale_ptr": np.cumsum([0, *(len(scale.mean) for scale in scales)]).astype(np.int64),
        "graph.means": np.concatenate([np.zeros(0), *(scale.mean for scale in scales)]),
        "graph.sizes": np.concatenate([np.zeros(0), *(scale.size for scale in scales)]),
    }
    return section, tensors


def load_graph(section: Any, tensors: Mapping[str, Any], labels: list[Label]) -> tuple[PartKinds, dict[int, Scale]]:
    """Inverse of `dump_graph`, checked."""
    expected = {"types", "labels", "kinds", "directed", "scaled"}
    if not isinstance(section, dict) or set(section) != expected:
        raise InputError(f"the graph needs {', '.join(sorted(expected))}")
    types = _names(section["types"], "types")
    of_types = _number_lists(section["labels"], len(labels), "labels of a type")
    if len(of_types) != len(types) or not all(of_types) or any(len(set(x)) < len(x) for x in of_types):
        raise InputError("each type of nodes needs labels, each of them once")
    kinds = [_kind(row, of_types) for row in _list(section["kinds"], "kinds")]
    if len(kinds) > _MOST_KINDS or len({(kind.name, kind.types) for kind in kinds}) < len(kinds):
        raise InputError("a kind of parts occurs twice, or there are too many")
    if [(kind.name, kind.types) for kind in kinds[: len(types)]] != [(name, (t,)) for t, name in enumerate(types)]:
        raise InputError("the first kinds must be those of single nodes, one a type")
    directed = section["directed"]
    if not isinstance(directed, bool):
        directed = tuple(_names(directed, "directed"))
    found = PartKinds(tuple(types), tuple(tuple(labels[i] for i in mine) for mine in of_types), tuple(kinds), directed)
    if sum(found.space.sizes) >= 1 << 40:
        raise InputError("the kinds of parts have too many assignments")
    return found, _scales(section["scaled"], tensors, len(kinds))


def _kind(row: Any, labels: list[list[int]]) -> PartKind:
    if not (isinstance(row, list) and len(row) == 3 and isinstance(row[0], str) and type(row[2]) is bool):
        raise InputError("a kind of parts is no name with types")
    (types,) = _number_lists([row[1]], len(labels), "types of a kind")
    if not 1 <= len(types) <= _MOST_NODES:
        raise InputError(f"a kind of parts must have 1 to {_MOST_NODES} nodes")
    if row[2] and (len(types) != 2 or types[0] != types[1]):
        raise InputError("a symmetric kind needs two nodes of one type")
    return PartKind(row[0], tuple(types), row[2])


def _scales(scaled: Any, tensors: Mapping[str, Any], n_kinds: int) -> dict[int, Scale]:
    (kinds,) = _number_lists([scaled], n_kinds + 1, "scaled kinds")
    ptr, means, sizes = (tensors.get(f"graph.{name}") for name in ("scale_ptr", "means", "sizes"))
    if ptr is None or means is None or sizes is None:
        raise InputError("the scales of a graph model are missing")
    if ptr.dtype != np.int64 or means.dtype != np.float64 or sizes.dtype != np.float64:
        raise InputError("the scales of a graph model have other types")
    if ptr.ndim != 1 or means.ndim != 1 or means.shape != sizes.shape or len(ptr) != len(kinds) + 1:
        raise InputError("the scales of a graph model have other shapes")
    if ptr[0] != 0 or ptr[-1] != len(means) or np.any(ptr[1:] < ptr[:-1]) or len(set(kinds)) < len(kinds):
        raise InputError("the scales of a graph model do not fit its kinds")
    if not Scale(means, sizes).is_usable():
        raise InputError("a scale of a graph model is no positive number")
    return {
        k: Scale(means[a:b], sizes[a:b]) for k, a, b in zip(kinds, ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)
    }


def _names(value: Any, what: str) -> list[str]:
    names = _list(value, what)
    if not all(isinstance(name, str) and name and not any(c.isspace() for c in name) for name in names):
        raise InputError(f"{what} must be names without blanks")
    if len(set(names)) < len(names):
        raise InputError(f"{what} has a name twice")
    return names


def _number_lists(value: Any, limit: int, what: str) -> list[list[int]]:
    lists = _list(value, what)
    for numbers in lists:
        if not isinstance(numbers, list) or not all(type(i) is int and 0 <= i < limit for i in numbers):
            raise InputError(f"{what} must be numbers below {limit}")
    return lists


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{what} is no list")
    return value
