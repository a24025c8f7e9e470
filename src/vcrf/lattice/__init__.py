"""Lattices: the weighted automata over the label sequences of one sentence."""

from vcrf.lattice.dense import DenseLattice

__all__ = ["DenseLattice"]
