"""How far to trust a tag: calibrated probabilities, selective tagging, label sets, drift.

Functions on arrays; `vcrf.labelling.trusting` fills these from a tagger and its calibration sentences. All guarantees
have one condition, that calibration sentences and new ones are drawn alike. The unit is the sentence: its tokens
depend on each other and are never counted as independent.
"""

from vcrf.trust.calibration import Calibration, Units
from vcrf.trust.drift import Drift, drift
from vcrf.trust.reliability import Reliability, reliability
from vcrf.trust.selective import Acceptance, accept
from vcrf.trust.sets import SetThreshold, set_threshold

__all__ = [
    "Acceptance",
    "Calibration",
    "Drift",
    "Reliability",
    "SetThreshold",
    "Units",
    "accept",
    "drift",
    "reliability",
    "set_threshold",
]
