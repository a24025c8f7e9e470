"""The training problem of graphs: parts of several kinds, each with the attributes of its place in the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vcrf.families.columns import read_columns
from vcrf.families.explicit import AttributeText
from vcrf.families.family import Family, Source
from vcrf.graphs.layout import GraphLayout
from vcrf.graphs.parts import PartSpace
from vcrf.problem.candidates import Candidates, family_table
from vcrf.types import Bools, Floats, Ints, UInts32


@dataclass(frozen=True)
class GraphProblem(Candidates):
    """Everything that training needs to know of graphs.

    Attributes
    ----------
    layout : the graphs
    y : (n_variables,) the true value of each variable; one of the allowed ones where it is not known
    allowed : (n values of all variables,) bool, what each variable may be where some are not known, else empty
    """

    text: AttributeText
    allowed: Bools = field(default_factory=lambda: np.zeros(0, bool))
    layout: GraphLayout = field(kw_only=True)

    @property
    def space(self) -> PartSpace:
        return self.layout.kinds.space

    @property
    def n_instances(self) -> int:
        return len(self.layout.kind_of)

    @property
    def example_of(self) -> Ints:
        return self.layout.example_of

    def n_parts(self, kind: int) -> Ints:
        return np.bincount(self.example_of[self.has_part(kind)], minlength=len(self.weights))

    def has_part(self, kind: int) -> Bools:
        return np.asarray(self.layout.kind_of == kind)

    @property
    def log_outputs(self) -> float:
        layout = self.layout
        logs = np.concatenate([[0.0], np.cumsum(np.log(layout.cards))])[layout.variable_ptr]
        return float(np.diff(logs).max(initial=0.0))

    @property
    def is_partial(self) -> bool:
        """Whether some labels are not known."""
        return len(self.allowed) > 0

    @cached_property
    def truth(self) -> Ints:
        """Where the score of each part at the true labels is."""
        return self.layout.entries(self.y.astype(np.int64))

    def paper_complexities(self) -> Floats:
        """A family has attributes x assignments of its kind of parts."""
        attributes = [max(s.log_cardinality(self.text) for s in family.sources) for family in self.families]
        sizes = np.log([self.space.size(family.tags) for family in self.families])
        return np.sqrt(2.0 * (np.array(attributes) + sizes) / max(len(self.weights), 1))


def build_graph_problem(
    text: AttributeText,
    layout: GraphLayout,
    y: UInts32,
    families: Sequence[Family],
    weights: Floats | None = None,
    allowed: Bools | None = None,
) -> GraphProblem:
    """Read the attributes of the parts and merge twins; `weights` are those of the examples (1/m each by default)."""
    families = list(families)
    sources: list[Source] = list(dict.fromkeys(source for family in families for source in family.sources))
    if weights is None:
        weights = np.full(layout.n_examples, 1.0 / max(layout.n_examples, 1))
    return GraphProblem(
        text, y, max((len(labels) for labels in layout.kinds.labels), default=0), families, sources,
        family_table(families, sources, len(layout.kinds.kinds)), read_columns(text, sources), weights,
        allowed=np.zeros(0, bool) if allowed is None else allowed, layout=layout,
    )  # fmt: skip
