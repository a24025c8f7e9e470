"""Factor graphs of any shape: built, drawn, scored, summed and maximised exactly."""

from vcrf.graphs.builders import chain, grid, multiclass, skip_chain, tree
from vcrf.graphs.drawing import draw, draw_graph, draw_grid, draw_tables, draw_training, to_dot
from vcrf.graphs.elimination import MAX_TABLE, elimination_order
from vcrf.graphs.example import Graph
from vcrf.graphs.graph import Factor, FactorGraph
from vcrf.graphs.grids import from_grid, from_segments, segment_labels
from vcrf.graphs.networks import from_networkx, from_pystruct
from vcrf.graphs.scored import ScoredGraph
from vcrf.graphs.sentences import coupled_chains, skip_chain_graph
from vcrf.graphs.trees import Trees, read_trees

__all__ = [
    "MAX_TABLE",
    "Factor",
    "FactorGraph",
    "Graph",
    "ScoredGraph",
    "Trees",
    "chain",
    "coupled_chains",
    "draw",
    "draw_graph",
    "draw_grid",
    "draw_tables",
    "draw_training",
    "elimination_order",
    "from_grid",
    "from_networkx",
    "from_pystruct",
    "from_segments",
    "grid",
    "multiclass",
    "read_trees",
    "segment_labels",
    "skip_chain",
    "skip_chain_graph",
    "to_dot",
    "tree",
]
