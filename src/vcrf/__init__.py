"""vcrf: Voted Conditional Random Fields, structured prediction with guarantees."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcrf.data import Corpus, read_corpus
    from vcrf.estimators import VCRF
    from vcrf.estimators.file import load
    from vcrf.estimators.graph_crf import GraphCRF
    from vcrf.estimators.learnt_vote import learn_vote
    from vcrf.estimators.multilabel import MultiLabelCRF
    from vcrf.estimators.surrogates import (
        M3N,
        MaxCRF,
        MaxExponential,
        MaxStructBoost,
        StructSVM,
        VExponential,
        VStructBoost,
    )
    from vcrf.estimators.voting import vote
    from vcrf.graphs import Graph
    from vcrf.labelling.loading import load_tagger

    __version__: str

__all__ = [
    "M3N",
    "VCRF",
    "Corpus",
    "Graph",
    "GraphCRF",
    "MaxCRF",
    "MaxExponential",
    "MaxStructBoost",
    "MultiLabelCRF",
    "StructSVM",
    "VExponential",
    "VStructBoost",
    "__version__",
    "learn_vote",
    "load",
    "load_tagger",
    "read_corpus",
    "vote",
]

# Late: `import vcrf` and reading a file wait for neither numba nor scipy nor scikit-learn.
_HOMES = {
    "M3N": "vcrf.estimators.surrogates",
    "MaxCRF": "vcrf.estimators.surrogates",
    "MaxExponential": "vcrf.estimators.surrogates",
    "MaxStructBoost": "vcrf.estimators.surrogates",
    "StructSVM": "vcrf.estimators.surrogates",
    "VCRF": "vcrf.estimators",
    "VExponential": "vcrf.estimators.surrogates",
    "VStructBoost": "vcrf.estimators.surrogates",
    "Corpus": "vcrf.data",
    "Graph": "vcrf.graphs",
    "GraphCRF": "vcrf.estimators.graph_crf",
    "MultiLabelCRF": "vcrf.estimators.multilabel",
    "learn_vote": "vcrf.estimators.learnt_vote",
    "load": "vcrf.estimators.file",
    "load_tagger": "vcrf.labelling.loading",
    "read_corpus": "vcrf.data",
    "vote": "vcrf.estimators.voting",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


@cache  # found on the disk, among all installed packages
def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("vcrf")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0+unknown"
