"""Whether probabilities mean what they say: reliability diagram and expected calibration error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vcrf.types import Floats, Ints

N_BINS = 15


@dataclass(frozen=True, eq=False)
class Reliability:
    """Tokens in bins of equal width by the probability of their label.

    Attributes
    ----------
    n_tokens : (n_bins,) int64, tokens in each bin
    sureness : (n_bins,) float64, mean probability there; 0 for an empty bin
    accuracy : (n_bins,) float64, share of right labels there
    """

    n_tokens: Ints
    sureness: Floats
    accuracy: Floats

    @property
    def error(self) -> float:
        """Expected calibration error: mean over tokens of |accuracy - sureness| of their bin."""
        return float(np.sum(self.n_tokens * np.abs(self.accuracy - self.sureness)) / max(self.n_tokens.sum(), 1))


def reliability(sureness: NDArray[np.floating[Any]], is_wrong: NDArray[Any], n_bins: int = N_BINS) -> Reliability:
    """Bin tokens by the probability of their label; 1 belongs to the last bin."""
    bins = np.minimum((np.asarray(sureness, np.float64) * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    filled = np.maximum(counts, 1)
    means = np.bincount(bins, sureness, n_bins) / filled
    right = np.bincount(bins, np.asarray(is_wrong) == 0, n_bins) / filled
    return Reliability(counts, means, right)
