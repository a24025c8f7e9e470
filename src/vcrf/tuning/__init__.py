"""Choosing strengths: `VCRF.tune` and what it returns."""

from vcrf.tuning.result import TuneResult, TuneRow

__all__ = ["TuneResult", "TuneRow"]
