"""Training problems: which features there are (columns x parts, never materialised), and the data they are of."""

from vcrf.problem.candidates import Candidates
from vcrf.problem.chains import MAX_ARCS, MAX_PATTERNS, Problem, build_problem
from vcrf.problem.parts import PartSpace

__all__ = ["MAX_ARCS", "MAX_PATTERNS", "Candidates", "PartSpace", "Problem", "build_problem"]
