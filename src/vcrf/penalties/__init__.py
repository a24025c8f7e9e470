"""Penalties weighted by family."""

from vcrf.penalties.separable import BoundPenalty, FamilyPenalty

__all__ = ["BoundPenalty", "FamilyPenalty"]
