"""Components of labels: what labels have in common, as Case=Nom of UPOS=NOUN|Case=Nom and UPOS=ADJ|Case=Nom.

A component value is a set of labels. A feature of a column and a value adds its weight to the scores of all labels of
the set, so its gradient is the sum of theirs:

    score(t, l) = sum over values v with l in v of score(t, v),    residual(t, v) = sum over l in v of residual(t, l)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vcrf import kernels
from vcrf.data.bundles import components_of
from vcrf.errors import InputError
from vcrf.types import Floats, Ints, Label, UInts32


@dataclass(frozen=True, eq=False)
class Components:
    """The values of a label set.

    Attributes
    ----------
    names : the values for people, as "Case=Nom"
    ptr, labels : CSR from values to the labels of each, sorted
    n_labels : int
    """

    names: list[str]
    ptr: Ints
    labels: UInts32
    n_labels: int

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def by_label(self) -> tuple[Ints, UInts32]:
        """CSR from labels to their values, sorted."""
        value = np.repeat(np.arange(len(self), dtype=np.uint32), np.diff(self.ptr))
        order = np.argsort(self.labels, kind="stable")
        return np.searchsorted(self.labels[order], np.arange(self.n_labels + 1)), value[order]

    def values_of(self, label: int) -> UInts32:
        """The values of a label, by number."""
        ptr, values = self.by_label
        return values[ptr[label] : ptr[label + 1]]

    def sum_labels(self, of_labels: Floats) -> Floats:
        """Sums over the labels of each value, (n, n_values), from numbers of labels, (n, n_labels)."""
        out = np.zeros((len(of_labels), len(self)))
        kernels.components.sum_labels(of_labels, *self.by_label, out)
        return out

    def expand(self, values: Ints) -> tuple[Ints, UInts32]:
        """For each of some values its labels: the index of the value among those given, and the label."""
        counts = np.diff(self.ptr)[values]
        index = np.repeat(np.arange(len(values)), counts)
        place = np.repeat(self.ptr[values] - np.cumsum(counts) + counts, counts) + np.arange(len(index))
        return index, self.labels[place]


POSITIONS = "positions"


def components_of_labels(labels: Sequence[Label], chosen: Sequence[str] | None = None) -> Components:
    """The components of bundles, or the characters of positional tags.

    Parameters
    ----------
    labels : all labels, by number
    chosen : names of components (UPOS, Case); None for all; ["positions"] for tags like NNN-3SN--, whose character i
        is the component i (`-` is none)

    Raises
    ------
    InputError
        When a label cannot be split, with its name; or none has a chosen component.
    """
    found: dict[str, list[int]] = {}
    names = set()
    is_positional = chosen is not None and list(chosen) == [POSITIONS]
    length = len(str(labels[0])) if len(labels) else 0
    for number, label in enumerate(labels):
        if not isinstance(label, str):
            raise InputError(f"Label {label!r} is no bundle of components like UPOS=NOUN|Case=Nom: it is no str.")
        for name, value in _positions_of(label, length) if is_positional else _parts_of(label):
            names.add(name)
            if chosen is None or is_positional or name in chosen:
                found.setdefault(f"{name}={value}", []).append(number)
    unknown = [] if is_positional else sorted(set(chosen or ()) - names)
    if unknown or not found:
        known = ", ".join(sorted(names)) or "none"
        raise InputError(
            f"`components`: no label has {', '.join(map(repr, unknown)) or 'any component'}. There are: {known}."
        )
    values = sorted(found)
    ptr = np.cumsum([0, *(len(found[value]) for value in values)], dtype=np.int64)
    return Components(values, ptr, np.concatenate([found[value] for value in values]).astype(np.uint32), len(labels))


def _parts_of(label: str) -> tuple[tuple[str, str], ...]:
    try:
        return components_of(label)
    except InputError as error:
        raise InputError(f"{error} Read labels as bundles (`tag='upos+feats'`), or leave `components` out.") from None


def _positions_of(label: str, length: int) -> list[tuple[str, str]]:
    """The characters of a positional tag and their places, from 1."""
    if len(label) != length:
        raise InputError(
            f"Label {label!r} has {len(label)} characters and others {length}: components by position need labels of "
            "one length. Leave `components` out."
        )
    return [(str(i), character) for i, character in enumerate(label, 1) if character != "-"]
