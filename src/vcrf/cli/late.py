"""Modules that are imported when they are first used.

scikit-learn's estimators import statistics and tables, which a training needs for nothing: a second, and 100 MB.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_NAMES = ("scipy.stats", "pandas")


class _Late(ModuleType):
    """Stands for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def import_late() -> None:
    """Have them imported late in this process, as far as they are there and nobody has imported them."""
    for name in _NAMES:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            sys.modules[name] = module = _Late(name)
            module.__spec__ = spec
