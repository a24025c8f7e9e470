"""How many labels are wrong in a text that nobody has labelled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vcrf.trust.calibration import Calibration, sentence_means
from vcrf.types import Floats


@dataclass(frozen=True)
class ExpectedErrors:
    """Wrong labels of a text: expected number, and an interval that holds the true one with the confidence."""

    number: float
    low: float
    high: float
    n_tokens: int
    confidence: float


def expected_errors(
    calibration: Calibration, doubts: Floats, n_tokens: int, confidence: float = 0.95
) -> ExpectedErrors:  # fmt: skip
    """Sum of the doubts, mended by how far doubts were off in the calibration sentences.

    The doubt of a sentence is the sum over its tokens of 1 - sureness. With r_i = errors - doubt of calibration
    sentence i, mean b and variance v over n of them, a text of m sentences drawn alike has

        sum of doubts + m b   errors, with variance   m v + m^2 v / n

    One label that is wrong by surprise is added to the variance: where there was none yet, there may be one next time.

    Parameters
    ----------
    calibration : of the tagger
    doubts : (m,) doubt of each sentence
    n_tokens : of the text
    """
    from scipy.stats import t

    size = np.diff(calibration.ptr)
    residuals = size * (
        sentence_means(calibration.ptr, calibration.is_wrong.astype(np.float64)) - (1.0 - calibration.mean_sureness)
    )
    n, m = len(residuals), len(doubts)
    variance = float(residuals.var(ddof=1)) + 1.0 / n if n > 1 else float(size.max()) ** 2
    number = float(doubts.sum()) + m * float(residuals.mean())
    half = float(t.ppf(0.5 + confidence / 2, max(n - 1, 1))) * float(np.sqrt(m * variance + m**2 * variance / n))
    low, middle, high = np.clip([number - half, number, number + half], 0.0, n_tokens)
    return ExpectedErrors(float(middle), float(low), float(high), n_tokens, confidence)
