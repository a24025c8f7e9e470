"""Stand-ins for other libraries: the same interface, the same model."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vcrf.compat.crf import CRF

__all__ = ["CRF", "metrics", "pycrfsuite", "scorers", "utils"]


def __getattr__(name: str) -> Any:
    # `sklearn_crfsuite.metrics` is there after `import sklearn_crfsuite`; here it is imported when it is first used.
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
