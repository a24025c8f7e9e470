"""Surrogates: convex upper bounds of the task loss, with value, gradient and scan.

`evaluate` gives value and gradient on one sentence; the functions themselves are in `vcrf.surrogates.sentence`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcrf.surrogates.sentence import SurrogateValue, evaluate, exponential, m3n, structboost, structsvm

__all__ = ["SurrogateValue", "evaluate", "exponential", "m3n", "structboost", "structsvm"]


def __getattr__(name: str) -> object:
    # Late: the solver needs none of these.
    if name in __all__:
        from vcrf.surrogates import sentence

        return getattr(sentence, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
