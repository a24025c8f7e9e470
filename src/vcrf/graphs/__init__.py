"""Factor graphs of any shape: built, drawn, scored, summed and maximised exactly."""

from vcrf.graphs.builders import chain, grid, multiclass, skip_chain, tree
from vcrf.graphs.counts import dense_features, graph_counts
from vcrf.graphs.drawing import draw, to_dot
from vcrf.graphs.elimination import MAX_TABLE, elimination_order
from vcrf.graphs.graph import Factor, FactorGraph
from vcrf.graphs.scored import ScoredGraph

__all__ = [
    "MAX_TABLE",
    "Factor",
    "FactorGraph",
    "ScoredGraph",
    "chain",
    "dense_features",
    "draw",
    "elimination_order",
    "graph_counts",
    "grid",
    "multiclass",
    "skip_chain",
    "to_dot",
    "tree",
]
