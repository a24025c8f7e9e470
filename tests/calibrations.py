"""Calibrations made by hand."""

from __future__ import annotations

import numpy as np

from vcrf.trust import Calibration, reliability


def calibration_with(
    lengths: list[int], sure: np.ndarray, wrong: np.ndarray, true: np.ndarray | None = None
) -> Calibration:
    """Sentences with the sureness, errors and true probabilities of their tokens; no spans."""
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n, empty = len(lengths), np.zeros(0, np.float32)
    binned = reliability(sure, wrong)
    return Calibration(
        1.0, 0, (0.0, 0.0), binned, binned, "", "", ptr, sure.astype(np.float32),
        (sure if true is None else true).astype(np.float32), wrong.astype(np.uint8), np.ones(n, np.float32),
        np.zeros(n, np.float32), np.zeros(n + 1, np.int64), empty, np.zeros(0, np.uint8), np.zeros(n + 1, np.int64),
        empty, np.zeros(0, np.uint8),
    )  # fmt: skip
