"""A family: the features of some templates with tag patterns of one length, sharing one complexity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import numpy as np

from vcrf.errors import InputError
from vcrf.families.templates import Occurrences
from vcrf.families.text import Text
from vcrf.types import Floats


class Source(Protocol):
    """Something that reads attributes: a template on text, or a named feature of given dicts."""

    @property
    def name(self) -> str: ...
    def read(self, text: Text) -> Occurrences: ...
    def log_cardinality(self, text: Text) -> float: ...
    def describe(self, text: Text, position: int) -> str: ...


@dataclass(frozen=True)
class Family:
    """Features = attributes of the sources x tag patterns of length `tags`.

    The paper's H(k1, k2, k3) has as sources all windows of k1 words joined with all splits of k3 affix
    characters, and tags = k2. With `VCRF(factors=True)`, which the accurate recipe has, `base_strength` is
    multiplied by `factor` for this family. A family on components has component values (Case=Nom) in the place of tag
    patterns, and `tags` 1; or, with `tags` 2, pairs of values of one `component` (Case=Nom before Case=Nom).
    """

    name: str
    sources: tuple[Source, ...]
    tags: int = 1
    factor: float = 1.0
    on_components: bool = False
    component: str = ""

    def __post_init__(self) -> None:
        if not (isinstance(self.factor, Real) and 0.0 < self.factor < math.inf) or isinstance(self.factor, bool):
            raise InputError(f"Family {self.name!r} needs a positive factor, got {self.factor!r}.")
        if self.on_components and self.tags not in (1, 2):
            raise InputError(
                f"Family {self.name!r} is on components of one label or of two: expected tags=1 or 2, got {self.tags}."
            )
        if bool(self.component) != (self.on_components and self.tags == 2):
            raise InputError(
                f"Family {self.name!r}: `component` is for pairs of component values (on_components=True, tags=2), "
                f"which need it; got {self.component!r}."
            )

    def log_cardinality(self, text: Text, n_labels: int) -> float:
        """Log of the number of features the family can have, as the paper counts them (one split)."""
        attributes = max((source.log_cardinality(text) for source in self.sources), default=0.0)
        return attributes + self.tags * float(np.log(n_labels))


def paper_complexities(families: list[Family], text: Text, n_labels: int) -> Floats:
    """r_k = sqrt(2 log|H_k| / m), m the number of sentences (the paper's eq. for r(H_{k1,k2,k3}))."""
    sizes = [family.log_cardinality(text, n_labels) for family in families]
    return np.sqrt(2.0 * np.array(sizes, np.float64) / max(text.n_sentences, 1))
