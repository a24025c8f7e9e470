"""Penalties weighted by family, and what solvers ask of those of other forms."""

from vcrf.penalties.penalty import FeaturePenalty, Penalty, SharedPenalty, Squares
from vcrf.penalties.separable import (
    DEFAULT_POWER,
    NORMS,
    BoundPenalty,
    FamilyPenalty,
    OwnPart,
    check_norm,
    need_families,
)

__all__ = [
    "DEFAULT_POWER",
    "NORMS",
    "BoundPenalty",
    "FamilyPenalty",
    "FeaturePenalty",
    "OwnPart",
    "Penalty",
    "SharedPenalty",
    "Squares",
    "check_norm",
    "need_families",
]
