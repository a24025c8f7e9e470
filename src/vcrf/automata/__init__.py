"""Weighted automata and transducers over a few semirings."""

from vcrf.automata.automaton import EPSILON, Arc, Automaton, Path
from vcrf.automata.composition import compose, intersect
from vcrf.automata.determinise import determinise
from vcrf.automata.distance import distance_from_start, distance_to_end, total_weight
from vcrf.automata.epsilons import remove_epsilons
from vcrf.automata.operations import connect, convert, invert, project, union
from vcrf.automata.paths import n_shortest, shortest_path
from vcrf.automata.pushing import push
from vcrf.automata.semiring import EXPECTATION, LOG, PROBABILITY, TROPICAL, Semiring, get_semiring
from vcrf.automata.text import from_att, symbol_table, symbols_to_text, to_att, to_dot

__all__ = [
    "EPSILON",
    "EXPECTATION",
    "LOG",
    "PROBABILITY",
    "TROPICAL",
    "Arc",
    "Automaton",
    "Path",
    "Semiring",
    "compose",
    "connect",
    "convert",
    "determinise",
    "distance_from_start",
    "distance_to_end",
    "from_att",
    "get_semiring",
    "intersect",
    "invert",
    "n_shortest",
    "project",
    "push",
    "remove_epsilons",
    "shortest_path",
    "symbol_table",
    "symbols_to_text",
    "to_att",
    "to_dot",
    "total_weight",
    "union",
]
