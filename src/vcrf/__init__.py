"""vcrf: Voted Conditional Random Fields, structured prediction with guarantees."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcrf.data import Corpus, read_corpus
    from vcrf.estimators import VCRF
    from vcrf.model_file import load

    __version__: str

__all__ = ["VCRF", "Corpus", "__version__", "load", "read_corpus"]

# Late: `import vcrf` and reading a file wait for neither numba nor scipy nor scikit-learn.
_HOMES = {
    "VCRF": "vcrf.estimators",
    "Corpus": "vcrf.data",
    "load": "vcrf.model_file",
    "read_corpus": "vcrf.data",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("vcrf")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0+unknown"
