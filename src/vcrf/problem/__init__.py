"""Training problems: which features there are (columns x parts, never materialised), and the data they are of."""

from vcrf.graphs.parts import PartSpace
from vcrf.problem.candidates import Candidates
from vcrf.problem.chains import MAX_ARCS, MAX_PATTERNS, Problem, build_problem

__all__ = ["MAX_ARCS", "MAX_PATTERNS", "Candidates", "PartSpace", "Problem", "build_problem"]
