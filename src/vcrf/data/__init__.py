"""Corpora: reading labelled sentences, and inventing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcrf.data.corpus import Corpus, Sentence
from vcrf.data.english import small_english
from vcrf.data.partial import open_bundles
from vcrf.data.readers import read_corpus
from vcrf.data.tables import read_table, table_labels

if TYPE_CHECKING:
    from vcrf.data.synthetic import SyntheticLanguage

__all__ = [
    "Corpus",
    "Sentence",
    "SyntheticLanguage",
    "open_bundles",
    "read_corpus",
    "read_table",
    "small_english",
    "table_labels",
]


def __getattr__(name: str) -> object:
    # Late: only the invented language needs numpy, and reading a file should not wait for it.
    if name == "SyntheticLanguage":
        from vcrf.data.synthetic import SyntheticLanguage

        return SyntheticLanguage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
