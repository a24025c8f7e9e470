"""The model of graphs: weights of attributes x assignments of parts.

    score(y) = sum over parts f, attributes a at f of  value(a, f) * weight(a, y_f)

It is a model as that of sequences: `lengths` holds the kind of part of each entry, `codes` the assignment.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.families.text import Text
from vcrf.graphs.kinds import PartKinds
from vcrf.graphs.layout import GraphLayout
from vcrf.graphs.reading import Scale
from vcrf.model.model import Feature, Model
from vcrf.types import Floats, Label

_NO_KINDS = PartKinds((), (), ())


def classes_of(model: Model) -> Any:
    """The labels of a model; of graphs with several types of nodes a dict from type to labels."""
    if not isinstance(model, GraphModel) or len(model.kinds.types) < 2:
        return list(model.labels)
    return dict(zip(model.kinds.types, map(list, model.kinds.labels), strict=True))


@dataclass(frozen=True, eq=False)
class GraphModel(Model):
    """A model with kinds of parts; `labels` are those of all node types.

    Attributes
    ----------
    kinds : PartKinds
    scales : of kinds whose features are arrays: means and sizes of the columns
    """

    kinds: PartKinds = _NO_KINDS
    scales: dict[int, Scale] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, kinds: PartKinds, scales: dict[int, Scale]) -> GraphModel:
        """A model of entries by kind, with what the kinds are."""
        given: dict[str, Any] = {each.name: getattr(model, each.name) for each in fields(Model)}
        return cls(**given, kinds=kinds, scales=scales)

    def assignments(self, kind: int) -> int:
        return self.kinds.space.size(kind) if 1 <= kind <= len(self.kinds.kinds) else 1

    def scores(self, text: Text, layout: GraphLayout) -> Floats:
        """Scores of all assignments of all parts."""
        out = np.zeros(int(layout.score_ptr[-1]))
        for found in self._fire(text):
            kernels.graph_tables.score_entries(
                found.positions, found.rows, found.values, self.ptr, self.lengths, self.codes, self.weights,
                layout.kind_of, layout.score_ptr, out,
            )  # fmt: skip
        return out

    def labels_of(self, kind: int, code: int) -> tuple[Label, ...]:
        return self.kinds.assignment(kind, code)

    def heaviest(self, label: Label, n: int) -> list[Feature]:
        """The n features of largest absolute weight that have a label."""
        kinds, codes = self.lengths.astype(np.int64), self.codes.astype(np.int64)
        has = np.zeros(len(codes), bool)
        for kind in np.unique(kinds).tolist():
            mine = np.flatnonzero(kinds == kind)
            used, where = np.unique(codes[mine], return_inverse=True)
            found = np.array([label in self.labels_of(kind, code) for code in used.tolist()], bool)
            has[mine] = found[where]
        entries = np.flatnonzero(has)
        entries = entries[np.argsort(-np.abs(self.weights[entries]), kind="stable")[:n]]
        rows = np.searchsorted(self.ptr, entries, side="right") - 1
        return [self.feature(int(row), int(j)) for row, j in zip(rows, entries, strict=True)]

    def table(self, attribute: str) -> Floats:
        """Weights of an attribute, one axis for each node of its parts; "edge bias" has the plain ones."""
        kind, found = 0, {}
        for row, name in enumerate(self.names):
            if name == attribute:
                for e in range(self.ptr[row], self.ptr[row + 1]):
                    kind = int(self.lengths[e])
                    found[int(self.codes[e])] = float(self.weights[e])
        if not kind:
            kind = self._kind_of(attribute)
        part = self.kinds.kinds[kind - 1]
        shape = tuple(len(self.kinds.labels[t]) for t in part.types)
        flat = np.zeros(self.kinds.space.size(kind))
        flat[list(found)] = list(found.values())
        if not part.is_symmetric:
            return flat.reshape(shape)
        index = np.indices(shape)
        low, high = index.min(axis=0), index.max(axis=0)
        return np.asarray(flat[high * (high + 1) // 2 + low])

    def _kind_of(self, attribute: str) -> int:
        """The kind of an attribute without a weight, by its name."""
        prefix = attribute.partition(" ")[0]
        names = [self.kinds.full_name(k) for k in range(1, len(self.kinds.kinds) + 1)]
        if prefix not in names:
            raise InputError(f"There is no attribute {attribute!r}: its first word must be one of {', '.join(names)}.")
        return names.index(prefix) + 1
