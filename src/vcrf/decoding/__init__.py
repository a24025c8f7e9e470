"""Decoding: scores of label sequences, constraints on them, the best ones and their probabilities."""

from vcrf.decoding.constraints import Constraints

__all__ = ["Constraints"]
