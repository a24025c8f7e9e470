"""Lattices: the weighted automata over the label sequences of one sentence."""

from vcrf.lattice.automaton import PatternAutomaton, build_automaton
from vcrf.lattice.dense import DenseLattice
from vcrf.lattice.lattice import Lattice
from vcrf.lattice.patterns import PatternLattice

__all__ = ["DenseLattice", "Lattice", "PatternAutomaton", "PatternLattice", "build_automaton"]
