"""Task losses; each gives its value, its bound and, for a reference, a deterministic automaton."""

from vcrf.losses.alignment import SmithWatermanLoss
from vcrf.losses.automaton import LossAutomaton
from vcrf.losses.combined import ScaledLoss, SumLoss
from vcrf.losses.counts import ClippedNgramLoss, NgramCountLoss
from vcrf.losses.edit import EditLoss
from vcrf.losses.hamming import HammingLoss, WeightedHammingLoss
from vcrf.losses.loss import IndefiniteLossWarning, Loss
from vcrf.losses.markov import MarkovLoss
from vcrf.losses.names import get_loss
from vcrf.losses.ngram import AlignedNgramLoss
from vcrf.losses.transducer import TransducerLoss
from vcrf.losses.zero_one import ZeroOneLoss

__all__ = [
    "AlignedNgramLoss",
    "ClippedNgramLoss",
    "EditLoss",
    "HammingLoss",
    "IndefiniteLossWarning",
    "Loss",
    "LossAutomaton",
    "MarkovLoss",
    "NgramCountLoss",
    "ScaledLoss",
    "SmithWatermanLoss",
    "SumLoss",
    "TransducerLoss",
    "WeightedHammingLoss",
    "ZeroOneLoss",
    "get_loss",
]
