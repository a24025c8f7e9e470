"""Task losses; each gives its value, its bound and, for a reference, a deterministic automaton."""

from vcrf.losses.automaton import LossAutomaton
from vcrf.losses.combined import ScaledLoss, SumLoss
from vcrf.losses.hamming import HammingLoss, WeightedHammingLoss
from vcrf.losses.loss import IndefiniteLossWarning, Loss
from vcrf.losses.names import get_loss
from vcrf.losses.ngram import AlignedNgramLoss
from vcrf.losses.zero_one import ZeroOneLoss

__all__ = [
    "AlignedNgramLoss",
    "HammingLoss",
    "IndefiniteLossWarning",
    "Loss",
    "LossAutomaton",
    "ScaledLoss",
    "SumLoss",
    "WeightedHammingLoss",
    "ZeroOneLoss",
    "get_loss",
]
