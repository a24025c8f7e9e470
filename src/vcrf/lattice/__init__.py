"""Lattices: the weighted automata over the label sequences of one sentence."""

from vcrf.lattice.automaton import PatternAutomaton, build_automaton
from vcrf.lattice.dense import DenseLattice
from vcrf.lattice.patterns import PatternLattice

__all__ = ["DenseLattice", "PatternAutomaton", "PatternLattice", "build_automaton"]
