"""Whether new sentences look like the calibration sentences. An alarm, never a proof of safety."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vcrf.trust.calibration import Calibration
from vcrf.types import Floats

# Chance sets it off once in a thousand files, for each of the two tests.
ALARM = 1e-3


@dataclass(frozen=True)
class Drift:
    """Two-sample Kolmogorov-Smirnov tests between calibration sentences and new ones.

    Attributes
    ----------
    p_sureness, p_unknown : p-values for the sentences' mean sureness and share of unknown words
    sureness, unknown : their means, calibration and new
    """

    p_sureness: float
    p_unknown: float
    sureness: tuple[float, float]
    unknown: tuple[float, float]

    @property
    def is_alarm(self) -> bool:
        """Whether the new sentences are too different to be luck."""
        return min(self.p_sureness, self.p_unknown) < ALARM

    @property
    def message(self) -> str:
        """What was seen, in words."""
        if not self.is_alarm:
            return "No sign that this text differs from the calibration sentences."
        return (
            "The guarantee was made for other text: mean sureness "
            f"{self.sureness[1]:.3f} here, {self.sureness[0]:.3f} in calibration (p = {self.p_sureness:.1g}); unknown "
            f"words {self.unknown[1]:.1%} here, {self.unknown[0]:.1%} in calibration (p = {self.p_unknown:.1g}). "
            "Calibrate with sentences of this kind."
        )


def drift(calibration: Calibration, mean_sureness: Floats, unknown_share: Floats) -> Drift:
    """Compare new sentences with the calibration sentences by what is known without labels."""
    old, unknown = calibration.mean_sureness, calibration.unknown_share.astype(np.float64)
    return Drift(
        _ks(old, mean_sureness), _ks(unknown, unknown_share), (_mean(old), _mean(mean_sureness)),
        (_mean(unknown), _mean(unknown_share)),
    )  # fmt: skip


def _ks(a: Floats, b: Floats) -> float:
    """p-value; with ties, as of shares that are 0, it is too large rather than too small."""
    from scipy.stats import ks_2samp

    return float(ks_2samp(a, b).pvalue) if len(a) and len(b) else 1.0


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
