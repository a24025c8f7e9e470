"""Ctrl-C in training with the group norm: at any moment of it, the result is a certified point."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from vcrf import VCRF
from vcrf.surrogates.smooth import SmoothObjective

X = [["a", "b", "ab", "a"], ["b", "a", "b"], ["ab", "ba", "a", "b", "a"], ["ba"], ["a", "a", "b"]]
Y = [["A", "B", "C", "A"], ["B", "A", "C"], ["C", "A", "A", "B", "B"], ["B"], ["A", "C", "B"]]


@pytest.mark.parametrize("method", ["compile", "at", "curvature"])
def test_ctrl_c_at_any_call_leaves_a_certified_point(method, monkeypatch):
    """One interruption in each call of the surrogate in turn: the weights' own objective, within its gap."""
    kept, calls, stop = getattr(SmoothObjective, method), [], [np.inf]

    def interrupted(*args):
        calls.append(1)
        if len(calls) == stop[0]:
            raise KeyboardInterrupt
        return kept(*args)

    monkeypatch.setattr(SmoothObjective, method, interrupted)
    options = {"recipe": "paper", "tags": 2, "norm": "group", "base_strength": 0.02, "tol": 1e-4, "n_jobs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        full = VCRF(**options).fit(X, Y)
        # Before the first evaluation is done there is no point: an ordinary interruption.
        for stop[0] in range(2, min(len(calls), 30)):
            calls.clear()
            tagger = VCRF(**options).fit(X, Y)
            assert tagger.status_.name in ("INTERRUPTED", "CONVERGED")
            assert tagger.objective_ - tagger.gap_ <= full.objective_ + 1e-9
            assert tagger.objective_ >= full.objective_ - full.gap_ - 1e-9
