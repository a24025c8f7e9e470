"""Factor graphs of any shape: built, drawn, scored, summed and maximised exactly."""

from vcrf.graphs.builders import chain, grid, multiclass, skip_chain, tree
from vcrf.graphs.drawing import draw, to_dot
from vcrf.graphs.elimination import MAX_TABLE, elimination_order
from vcrf.graphs.example import Graph
from vcrf.graphs.graph import Factor, FactorGraph
from vcrf.graphs.scored import ScoredGraph

__all__ = [
    "MAX_TABLE",
    "Factor",
    "FactorGraph",
    "Graph",
    "ScoredGraph",
    "chain",
    "draw",
    "elimination_order",
    "grid",
    "multiclass",
    "skip_chain",
    "to_dot",
    "tree",
]
