"""From graphs as users give them to arrays: kinds of parts, skeletons, and the attributes of every part.

The attributes of all parts are one text, an example a sentence and a part a token, so that columns, twins, families and
models are those of sequences. An attribute is named after its kind of parts: "node x3", "edge word:cat", "node bias".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from vcrf.errors import InputError
from vcrf.families.explicit import AttributeText, NamedFeature, read_attributes
from vcrf.families.family import Family
from vcrf.graphs.example import NODE, Graph, as_graph
from vcrf.graphs.graph import FactorGraph
from vcrf.graphs.kinds import PartKind, PartKinds
from vcrf.graphs.layout import Skeleton
from vcrf.types import Floats, Ints, Label

_MAX_VALUE = 1e50
# Columns that vary by less are constant.
MIN_SIZE = 1e-100
# The name of a kind of parts, and the types of its nodes.
_Kind = tuple[str, tuple[int, ...]]


class Scale(NamedTuple):
    """What is subtracted from the columns of an array, and what they are divided by, (n_columns,) both."""

    mean: Floats
    size: Floats

    def is_usable(self) -> bool:
        """Whether features that can be read stay finite when they are scaled; what is not a number is not."""
        is_small = np.all(np.abs(self.mean) <= _MAX_VALUE) and np.all(self.size <= _MAX_VALUE)
        return bool(is_small and np.all(self.size >= MIN_SIZE))


@dataclass
class PartFeatures:
    """The parts of one kind in one example: numbers of the parts there, and their features."""

    example: int
    parts: Ints
    features: Any


@dataclass
class RawGraphs:
    """Graphs before labels are known: types of nodes, what joins them, and features by kind.

    Attributes
    ----------
    types : names of the node types, in order of first occurrence
    node_types : the type number of each node, one array an example
    scopes : the scopes of each example's parts; single nodes first
    kinds : the kind (name, types) of each part, by example
    pieces : features by kind
    sizes : for factor graphs the number of values of each type, else nothing
    node_weights : of each node, one array an example
    allowed : what each example's nodes may be, or None
    """

    types: list[str] = field(default_factory=list)
    node_types: list[Ints] = field(default_factory=list)
    scopes: list[tuple[tuple[int, ...], ...]] = field(default_factory=list)
    kinds: list[list[_Kind]] = field(default_factory=list)
    pieces: dict[_Kind, list[PartFeatures]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    node_weights: list[Floats] = field(default_factory=list)
    allowed: list[Sequence[Any] | None] = field(default_factory=list)


def collect(graphs: Sequence[Any], directed: Any, types: Sequence[str] = ()) -> RawGraphs:
    """Take graphs apart; `directed` is a bool or the names of the edge types that are."""
    raw = RawGraphs(list(types))
    for number, x in enumerate(graphs):
        graph = as_graph(x, number)
        if isinstance(graph, FactorGraph):
            _add_factor_graph(raw, graph, number)
        else:
            _add_graph(raw, graph, number, directed)
    return raw


def is_directed(directed: Any, edge_type: str) -> bool:
    """Whether the order of an edge's nodes matters."""
    return bool(directed) if isinstance(directed, (bool, np.bool_)) else edge_type in directed


def _type_number(raw: RawGraphs, name: str) -> int:
    if name not in raw.types:
        raw.types.append(name)
    return raw.types.index(name)


def _add_graph(raw: RawGraphs, graph: Graph, number: int, directed: Any) -> None:
    n = graph.n_nodes
    types = np.zeros(n, np.int64)
    kinds: list[_Kind] = [("", ())] * n
    for name, rows, features in graph.blocks():
        t = _type_number(raw, name)
        types[rows] = t
        _add_piece(raw, (name, (t,)), number, rows, features)
        for v in rows.tolist():
            kinds[v] = (name, (t,))
    scopes: list[tuple[int, ...]] = [(v,) for v in range(n)]
    pairs: list[tuple[int, int]] = list(map(tuple, graph.edges.tolist()))
    edge_kinds: list[_Kind] = [("", ())] * len(pairs)
    for name, rows, features in graph.edge_blocks():
        by_kind: dict[_Kind, list[int]] = {}
        for i, e in enumerate(rows.tolist()):
            a, b = pairs[e]
            if not is_directed(directed, name) and types[a] > types[b]:
                pairs[e] = a, b = b, a
            kind: _Kind = name, (int(types[a]), int(types[b]))
            by_kind.setdefault(kind, []).append(i)
            edge_kinds[e] = kind
        for kind, mine in by_kind.items():
            own = features if len(mine) == len(rows) else _rows_of(features, mine)
            _add_piece(raw, kind, number, n + rows[mine], own)
    raw.node_types.append(types)
    raw.scopes.append((*scopes, *pairs))
    raw.kinds.append([*kinds, *edge_kinds])
    weights = np.ones(n) if graph.node_weight is None else np.asarray(graph.node_weight, np.float64)
    raw.node_weights.append(weights)
    raw.allowed.append(graph.allowed)


def _rows_of(features: Any, rows: list[int]) -> Any:
    if features is None:
        return None
    return features[rows] if hasattr(features, "shape") else [features[i] for i in rows]


def _add_factor_graph(raw: RawGraphs, graph: FactorGraph, number: int) -> None:
    """A type for each number of values, "node2" for two; the first factor on a single variable is its node."""
    names = [f"{NODE}{card}" for card in graph.cards]
    types = np.array([_type_number(raw, name) for name in names], np.int64)
    raw.sizes.update(zip(types.tolist(), graph.cards, strict=True))
    own: dict[int, int] = {}
    for f, factor in enumerate(graph.factors):
        if len(factor.scope) == 1:
            own.setdefault(factor.scope[0], f)
    rest = [f for f in range(graph.n_factors) if f not in set(own.values()) and graph.factors[f].scope]
    scopes = [(v,) for v in range(graph.n_variables)] + [graph.factors[f].scope for f in rest]
    kinds: list[_Kind] = [(names[v], (int(types[v]),)) for v in range(graph.n_variables)]
    kinds += [
        (graph.factors[f].kind.replace(" ", "_"), tuple(int(types[v]) for v in graph.factors[f].scope)) for f in rest
    ]
    listed = [graph.factors[own[v]].attributes if v in own else () for v in range(graph.n_variables)]
    listed += [graph.factors[f].attributes for f in rest]
    for part, (kind, attributes) in enumerate(zip(kinds, listed, strict=True)):
        _add_piece(raw, kind, number, np.array([part]), [dict(attributes)])
    raw.node_types.append(types)
    raw.scopes.append(tuple(scopes))
    raw.kinds.append(kinds)
    raw.node_weights.append(np.ones(graph.n_variables))
    raw.allowed.append(None)


def _add_piece(raw: RawGraphs, kind: _Kind, number: int, parts: Ints, features: Any) -> None:
    raw.pieces.setdefault(kind, []).append(PartFeatures(number, parts, features))


def find_kinds(raw: RawGraphs, labels: Sequence[tuple[Label, ...]], directed: Any) -> PartKinds:
    """All kinds of parts: first those of single nodes, one a type, then the others in order of first occurrence."""
    nodes = [PartKind(name, (t,)) for t, name in enumerate(raw.types)]
    known = {(kind.name, kind.types) for kind in nodes}
    others = [
        PartKind(name, types, len(types) == 2 and types[0] == types[1] and not is_directed(directed, name))
        for name, types in raw.pieces
        if (name, types) not in known
    ]
    given = bool(directed) if isinstance(directed, (bool, np.bool_)) else tuple(sorted(directed))
    return PartKinds(tuple(raw.types), tuple(labels), tuple(nodes + others), given)


def skeletons(raw: RawGraphs, kinds: PartKinds) -> list[Skeleton]:
    """The graphs without attributes; a kind that training has not seen is refused."""
    found = []
    for i, (types, scopes, named) in enumerate(zip(raw.node_types, raw.scopes, raw.kinds, strict=True)):
        try:
            numbers = np.array([kinds.numbers[kind] for kind in named], np.int64)
        except KeyError as unknown:
            name, ends = unknown.args[0]
            joined = " and ".join(raw.types[t] for t in ends)
            raise InputError(
                f"Example {i} has {name!r} on {joined}; the model was trained on: "
                f"{', '.join(kinds.full_name(k) for k in range(1, len(kinds.kinds) + 1))}."
            ) from None
        found.append(Skeleton(types, numbers, scopes))
    return found


# ------------------------------------------------------------------------------------ attributes


@dataclass
class _Attributes:
    """Occurrences collected kind by kind."""

    names: list[str] = field(default_factory=list)
    sources: list[Ints] = field(default_factory=list)
    source_names: list[str] = field(default_factory=list)
    positions: list[Ints] = field(default_factory=list)
    attributes: list[Ints] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)
    kind_of_source: list[int] = field(default_factory=list)

    def add(
        self, kind: int, names: list[str], sources: Ints, source_names: list[str], positions: Ints, attributes: Ints,
        values: Floats,
    ) -> None:  # fmt: skip
        self.sources.append(sources + len(self.source_names))
        self.attributes.append(attributes + len(self.names))
        self.names += names
        self.source_names += source_names
        self.positions.append(positions)
        self.values.append(values)
        self.kind_of_source += [kind] * len(source_names)

    def text(self, part_ptr: Ints) -> AttributeText:
        n = int(part_ptr[-1])
        positions = np.concatenate([np.zeros(0, np.int64), *self.positions])
        order = np.argsort(positions, kind="stable")
        return AttributeText(
            sent_ptr=part_ptr, words=[""] if n else [], word_ids=np.zeros(n, np.uint32), names=self.names,
            sources=np.concatenate([np.zeros(0, np.int64), *self.sources]), source_names=self.source_names,
            positions=positions[order].astype(np.uint32),
            attributes=np.concatenate([np.zeros(0, np.int64), *self.attributes])[order],
            values=np.concatenate([np.zeros(0), *self.values])[order],
        )  # fmt: skip


class GraphText(NamedTuple):
    """The attributes of all parts, a family for each feature name (or array), and the scales of arrays."""

    text: AttributeText
    families: list[Family]
    scales: dict[int, Scale]


def read_parts(
    raw: RawGraphs, kinds: PartKinds, part_ptr: Ints, scales: Mapping[int, Scale] | None, is_scaled: bool = True
) -> GraphText:
    """Read the attributes of all parts; without given scales those of arrays are found, if asked for."""
    found, own = _Attributes(), dict(scales or {})
    for number, kind in enumerate(kinds.kinds, 1):
        pieces = raw.pieces.get((kind.name, kind.types), [])
        prefix = kinds.full_name(number)
        positions = [part_ptr[piece.example] + piece.parts for piece in pieces]
        everywhere = np.concatenate([np.zeros(0, np.int64), *positions])
        zeros = np.zeros(len(everywhere), np.int64)
        found.add(
            number,
            [f"{prefix} bias"],
            np.zeros(1, np.int64),
            [f"{prefix} bias"],
            everywhere,
            zeros,
            np.ones(len(zeros)),
        )
        given = [(p, at) for p, at in zip(pieces, positions, strict=True) if has_features(p.features)]
        if not given:
            continue
        if all(hasattr(piece.features, "shape") for piece, _ in given):
            scale = _add_numbers(found, number, prefix, given, own.get(number), scales is None, is_scaled)
            if scale is not None:
                own[number] = scale
        else:
            _add_tokens(found, number, prefix, given)
    text = found.text(part_ptr)
    families = [
        Family(name, (NamedFeature(name),), kind)
        for name, kind in zip(text.source_names, found.kind_of_source, strict=True)
    ]
    return GraphText(text, families, own)


def _is_sparse(matrix: Any) -> bool:
    return hasattr(matrix, "tocsr")


def has_features(features: Any) -> bool:
    """Whether there are any: not only a number of nodes."""
    return features is not None and not isinstance(features, (int, np.integer)) and _n_rows(features) > 0


def _n_rows(features: Any) -> int:
    return int(features.shape[0]) if hasattr(features, "shape") else len(features)


def _add_numbers(
    found: _Attributes, kind: int, prefix: str, given: list[tuple[PartFeatures, Ints]], scale: Scale | None,
    is_training: bool, is_scaled: bool,
) -> Scale | None:  # fmt: skip
    """Rows of numbers: one source for all columns."""
    width = None if scale is None else len(scale.mean)
    for piece, _ in given:
        if piece.features.ndim != 2:
            raise InputError(
                f"Example {piece.example}: features of {prefix!r} need two dimensions, got {piece.features.ndim}."
            )
        width = piece.features.shape[1] if width is None else width
        if piece.features.shape[1] != width:
            raise InputError(
                f"Example {piece.example}: {prefix!r} has {piece.features.shape[1]} features, others have {width}."
            )
    matrix = _joined(given, prefix)
    is_sparse = _is_sparse(matrix)
    if scale is None and is_training:
        # Without scaling it says how many columns there are.
        scale = _find_scale(matrix) if is_scaled else Scale(np.zeros(matrix.shape[1]), np.ones(matrix.shape[1]))
    if is_sparse:
        listed = matrix.tocoo()
        rows, columns, values = listed.row.astype(np.int64), listed.col.astype(np.int64), listed.data
        order = np.lexsort((columns, rows))
        rows, columns, values = rows[order], columns[order], values[order]
        values = values if scale is None else values / scale.size[columns]
    else:
        dense = matrix if scale is None else (matrix - scale.mean) / scale.size
        rows, columns = np.nonzero(dense)
        values = dense[rows, columns]
    positions = np.concatenate([at for _, at in given])[rows]
    names = [f"{prefix} x{j}" for j in range(width or 0)]
    found.add(kind, names, np.zeros(len(names), np.int64), [f"{prefix} x"], positions, columns.astype(np.int64), values)
    return scale


def _joined(given: list[tuple[PartFeatures, Ints]], prefix: str) -> Any:
    """All rows in one matrix of float64, sparse if any is."""
    for piece, _ in given:
        data = piece.features.data if _is_sparse(piece.features) else piece.features
        numbers = np.asarray(data)
        if numbers.dtype.kind not in "biuf":
            raise InputError(
                f"Example {piece.example}: features of {prefix!r} in an array must be numbers, got {numbers.dtype}. "
                "Use a list of dicts for text."
            )
        if numbers.size and not np.all(np.abs(numbers.astype(np.float64)) <= _MAX_VALUE):
            raise InputError(
                f"Example {piece.example}: features of {prefix!r} must be finite and below {_MAX_VALUE:g}."
            )
    if any(_is_sparse(piece.features) for piece, _ in given):
        import scipy.sparse as sp  # late: most models have no use for it

        stacked = sp.vstack([sp.csr_matrix(piece.features, dtype=np.float64) for piece, _ in given]).tocsr()
        stacked.sum_duplicates()
        stacked.eliminate_zeros()
        return stacked
    return np.concatenate([np.asarray(piece.features, np.float64) for piece, _ in given])


def _find_scale(matrix: Any) -> Scale:
    """Mean and standard deviation of columns of numbers; columns of 0 and 1 stay, and sparse ones are not shifted."""
    width = matrix.shape[1]
    if _is_sparse(matrix):
        is_flag = np.ones(width, bool)
        columns = matrix.tocsc()
        counts = np.diff(columns.indptr)
        of = np.repeat(np.arange(width), counts)
        np.logical_and.at(is_flag, of, columns.data == 1.0)
        squares = np.bincount(of, columns.data**2, width) / np.maximum(counts, 1)
        return Scale(
            np.zeros(width), np.where(is_flag | (squares <= 0.0), 1.0, np.sqrt(np.maximum(squares, MIN_SIZE**2)))
        )
    is_flag = np.all((matrix == 0.0) | (matrix == 1.0), axis=0)
    mean, size = matrix.mean(axis=0), matrix.std(axis=0)
    is_constant = size <= np.maximum(1e-12 * np.abs(mean), MIN_SIZE)
    kept = is_flag | is_constant
    # A constant column says what the bias says.
    return Scale(np.where(kept & ~is_constant, 0.0, np.where(is_flag, 0.0, mean)), np.where(kept, 1.0, size))


def _add_tokens(found: _Attributes, kind: int, prefix: str, given: list[tuple[PartFeatures, Ints]]) -> None:
    """Dicts of features or lists of attribute strings."""
    tokens: list[Any] = []
    for piece, _ in given:
        if hasattr(piece.features, "shape"):
            raise InputError(
                f"Example {piece.example}: features of {prefix!r} are an array here and a list in other examples."
            )
        tokens += [{} if token is None else token for token in piece.features]
    try:
        text = read_attributes([tokens])
    except InputError as error:
        raise InputError(f"Features of {prefix!r}: {error}") from None
    positions = np.concatenate([at for _, at in given])[text.positions.astype(np.int64)]
    found.add(
        kind, [f"{prefix} {name}" for name in text.names], text.sources,
        [f"{prefix} {name}" for name in text.source_names], positions, text.attributes, text.values,
    )  # fmt: skip
