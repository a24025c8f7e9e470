"""Training problems: which features there are (columns x parts, never materialised), and the data they are of."""

from vcrf.graphs.parts import PartSpace
from vcrf.problem.candidates import Candidates
from vcrf.problem.chains import MAX_ARCS, MAX_PATTERNS, Problem, build_problem
from vcrf.problem.components import Components, components_of_labels
from vcrf.problem.known_labels import KnownLabels, learn_known_labels
from vcrf.problem.label_sets import AllowedLabels, allowed_sets, every_label, sets_of

__all__ = [
    "MAX_ARCS",
    "MAX_PATTERNS",
    "AllowedLabels",
    "Candidates",
    "Components",
    "KnownLabels",
    "PartSpace",
    "Problem",
    "allowed_sets",
    "build_problem",
    "components_of_labels",
    "every_label",
    "learn_known_labels",
    "sets_of",
]
