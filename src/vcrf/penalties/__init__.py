"""Penalties weighted by family."""

from vcrf.penalties.separable import BoundPenalty, FamilyPenalty, OwnPart

__all__ = ["BoundPenalty", "FamilyPenalty", "OwnPart"]
