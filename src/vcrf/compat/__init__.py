"""Stand-ins for other libraries: the same interface, the same model."""

from vcrf.compat.crf import CRF

__all__ = ["CRF"]
