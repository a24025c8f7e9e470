"""The complexity of H_1 as an integral, by the normal approximation of each V_j.

    E max_j |V_j|  ~  int_0^inf 1 - prod_a (2 Phi(x / sqrt v_a) - 1)^{|Y_f|} dx

The product is exact when no factor has two columns; otherwise the normal variables are dependent and the product gives
an upper bound on their expected maximum (Sidak). No random numbers, one pass over the distinct variances a node.
"""

from __future__ import annotations

import math

import numpy as np

from vcrf.complexity.counts import FeatureCounts, check_radius
from vcrf.types import Floats

_NEGLIGIBLE = 1e-13
_N_NODES = 200


def gaussian_integral(counts: FeatureCounts, radius: float = 1.0) -> float:
    """Estimate the complexity of {||w||_1 <= radius} deterministically."""
    tail = NormalMaximum(counts)
    return check_radius(radius) * tail.mean() / counts.n_examples


class NormalMaximum:
    """The largest |V_j| of independent normal V_j with given variances."""

    def __init__(self, counts: FeatureCounts) -> None:
        spectra = [block.spectrum for block in counts.blocks]
        self.deviations: Floats = np.sqrt(np.concatenate([np.zeros(0), *(values for values, _ in spectra)]))
        sizes = [n * block.n_assignments for (_, n), block in zip(spectra, counts.blocks, strict=True)]
        self.numbers: Floats = np.concatenate([np.zeros(0), *sizes]).astype(np.float64)

    def log_below(self, x: float) -> float:
        """Log of the probability that no |V_j| exceeds x."""
        from scipy.special import erf, erfc

        if x <= 0.0:
            return -math.inf
        z = x / (math.sqrt(2.0) * self.deviations)
        # P(|V| <= x) = erf(z), from either end without cancellation.
        logs = np.where(z < 1.0, np.log(np.maximum(erf(z), 1e-300)), np.log1p(-erfc(np.maximum(z, 1.0))))
        return float(self.numbers @ logs)

    def quantile(self, log_probability: float) -> float:
        """The x with log P(max <= x) = log_probability, by bisection."""
        if not len(self.deviations):
            return 0.0
        low, high = 0.0, float(self.deviations.max()) * (math.sqrt(2.0 * math.log(2.0 * self.numbers.sum())) + 9.0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.log_below(middle) < log_probability else (low, middle)
            if high - low <= 1e-9 * high:
                break
        return 0.5 * (low + high)

    def mean(self) -> float:
        """Expected maximum: below `first` it lies almost never, above `last` neither."""
        if not len(self.deviations):
            return 0.0
        first = self.quantile(math.log(_NEGLIGIBLE))
        last = self.quantile(-_NEGLIGIBLE)
        nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
        xs = first + (last - first) * 0.5 * (nodes + 1.0)
        above = np.array([-math.expm1(self.log_below(float(x))) for x in xs])
        return first + float(weights @ above) * 0.5 * (last - first)
