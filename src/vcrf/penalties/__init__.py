"""Penalties weighted by family."""

from vcrf.penalties.separable import DEFAULT_POWER, NORMS, BoundPenalty, FamilyPenalty, OwnPart, check_norm

__all__ = ["DEFAULT_POWER", "NORMS", "BoundPenalty", "FamilyPenalty", "OwnPart", "check_norm"]
