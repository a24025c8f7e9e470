"""Estimators in the manner of scikit-learn: parameters in, sequences of labels out."""

from vcrf.estimators.parameters import SequenceEstimator
from vcrf.estimators.vcrf import VCRF

__all__ = ["VCRF", "SequenceEstimator"]
