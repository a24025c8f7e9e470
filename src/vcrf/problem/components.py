"""Components of labels: what labels have in common, as Case=Nom of UPOS=NOUN|Case=Nom and UPOS=ADJ|Case=Nom.

A component value is a set of labels. A feature of a column and a value adds its weight to the scores of all labels of
the set, so its gradient is the sum of theirs:

    score(t, l) = sum over values v with l in v of score(t, v),    residual(t, v) = sum over l in v of residual(t, l)

A pair of values of one component, as Case=Nom before Case=Nom, is a set of pairs of labels in the same way.
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
    pairs : names of the components whose pairs of values have families, each a kind of parts of its own
    """

    names: list[str]
    ptr: Ints
    labels: UInts32
    n_labels: int
    pairs: tuple[str, ...] = ()

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

    @cached_property
    def pair_values(self) -> list[UInts32]:
        """The values of each component in `pairs`, by number."""
        of = [name.partition("=")[0] for name in self.names]
        return [np.array([v for v, found in enumerate(of) if found == name], np.uint32) for name in self.pairs]

    @cached_property
    def pair_sizes(self) -> tuple[int, ...]:
        """Pairs of values of each component in `pairs`: the first value is the more significant."""
        return tuple(len(values) ** 2 for values in self.pair_values)

    @cached_property
    def value_of(self) -> Ints:
        """Which of `pair_values` each label has, (len(pairs), n_labels); -1 where it has none."""
        out = np.full((len(self.pairs), self.n_labels), -1, np.int64)
        for component, values in enumerate(self.pair_values):
            for i, v in enumerate(values.tolist()):
                out[component, self.labels[self.ptr[v] : self.ptr[v + 1]]] = i
        return out

    def name_of_pair(self, component: int, code: int) -> tuple[str, str]:
        """The names of both values of a pair."""
        values = self.pair_values[component]
        before, here = divmod(code, len(values))
        return self.names[values[before]], self.names[values[here]]

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

    def expand_pairs(self, component: int, codes: Ints) -> tuple[Ints, UInts32]:
        """For each of some pairs of values its pairs of labels: the index of the code, and label * L + label."""
        values = self.pair_values[component].astype(np.int64)
        before, here = np.divmod(codes, len(values))
        index, first = self.expand(values[before])
        again, second = self.expand(values[here][index])
        pairs = first[again].astype(np.int64) * self.n_labels + second
        return index[again], pairs.astype(np.uint32)


POSITIONS = "positions"


def components_of_labels(
    labels: Sequence[Label], chosen: Sequence[str] | None = None, pairs: Sequence[str] | None = ()
) -> Components:
    """The components of bundles, or the characters of positional tags.

    Parameters
    ----------
    labels : all labels, by number
    chosen : names of components (UPOS, Case); None for all; ["positions"] for tags like NNN-3SN--, whose character i
        is the component i (`-` is none)
    pairs : names of components whose pairs of values have families; None for all of the chosen

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
    known = ", ".join(sorted(names)) or "none"
    if unknown or not found:
        raise InputError(
            f"`components`: no label has {', '.join(map(repr, unknown)) or 'any component'}. There are: {known}."
        )
    values = sorted(found)
    there = list(dict.fromkeys(value.partition("=")[0] for value in values))
    unknown = sorted(set(pairs or ()) - set(there))
    if unknown:
        raise InputError(
            f"`component_pairs`: {', '.join(map(repr, unknown))} is none of the components in use. There are: "
            f"{', '.join(there)}."
        )
    chosen_pairs = tuple(there if pairs is None else dict.fromkeys(pairs))
    ptr = np.cumsum([0, *(len(found[value]) for value in values)], dtype=np.int64)
    members = np.concatenate([found[value] for value in values]).astype(np.uint32)
    return Components(values, ptr, members, len(labels), chosen_pairs)


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
