"""Candidate features of a problem: families x columns x assignments of parts. All that a solver knows of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

import numpy as np

from vcrf.errors import InputError
from vcrf.families.columns import ColumnTable
from vcrf.families.family import Family, Source, paper_complexities
from vcrf.families.text import Text
from vcrf.graphs.parts import PartSpace
from vcrf.types import Bools, Floats, Ints, UInts32
from vcrf.workers import cut

# Occurrences that are weighed at a time.
_ENTRIES = 1 << 20


@dataclass(frozen=True)
class Candidates(ABC):
    """What any problem has, whatever its structure.

    Attributes
    ----------
    text : where attributes are read
    y, n_labels : the true labels of the variables, by number, and how many there are
    families, sources
    family_of : (n_sources, n_kinds + 1) int64, family of (source, kind of parts), -1 = none
    columns : the distinct columns
    weights : (n_examples,) float64, of each example in the mean
    candidates : "all" or "observed" for parts of kind 1 and for others
    """

    text: Text
    y: UInts32
    n_labels: int
    families: list[Family]
    sources: list[Source]
    family_of: Ints
    columns: ColumnTable
    weights: Floats
    candidates: tuple[str, str] = ("all", "all")

    @property
    @abstractmethod
    def space(self) -> PartSpace:
        """Kinds of parts and their assignments."""

    @property
    @abstractmethod
    def n_instances(self) -> int:
        """Parts of kind 1 in the data: where attributes occur."""

    @property
    @abstractmethod
    def example_of(self) -> Ints:
        """The example of each instance, (n_instances,)."""

    @abstractmethod
    def n_parts(self, kind: int) -> Ints:
        """Parts of a kind in each example, (n_examples,)."""

    @abstractmethod
    def has_part(self, kind: int) -> Bools:
        """Whether there is a part of a kind at each instance, (n_instances,)."""

    @property
    @abstractmethod
    def log_outputs(self) -> float:
        """Log of the number of outputs of the example that has most."""

    @cached_property
    def column_mass(self) -> Floats:
        """Largest |gradient| that any feature of a column can have in a weighted mean, whatever the weights.

        The gradient of (column, assignment) is sum_t weight_t value_t (marginal - truth) with both in [0, 1].
        """
        ptr, positions, values = self.columns.ptr, self.columns.positions, self.columns.values
        weights, total = self.weights[self.example_of], np.zeros(len(ptr))
        # Some columns at a time: a number for each occurrence is more than the columns are.
        for a, b in pairwise(cut(ptr, 1 + len(positions) // _ENTRIES)):
            here = weights[positions[ptr[a] : ptr[b]]]
            if len(values):
                here *= np.abs(values[ptr[a] : ptr[b]])
            sums = np.cumsum(np.concatenate([total[a : a + 1], here]))
            total[a : b + 1] = sums[ptr[a : b + 1] - ptr[a]]
        return total[1:] - total[:-1]

    def paper_complexities(self) -> Floats:
        """r_k = sqrt(2 log|H_k| / m) of every family, (n_families,)."""
        return paper_complexities(self.families, self.text, self.n_labels)

    @property
    def kinds(self) -> range:
        """Kinds of parts: 1, 2, ..."""
        return self.space.kinds

    @property
    def order(self) -> int:
        """The last kind of parts that are larger than those before."""
        return len(self.space.sizes)

    @property
    def n_kinds(self) -> int:
        """Kinds of parts."""
        return len(self.space.sizes)

    def part_sizes(self, kinds: UInts32) -> Ints:
        """How large parts of each kind are: larger ones join a working set after smaller ones."""
        return kinds.astype(np.int64)

    def split_features(self, features: Ints) -> tuple[UInts32, UInts32, UInts32]:
        """Column, kind of part and assignment of feature numbers."""
        return self.space.split(features)

    def join_features(self, column: UInts32, kind: int, assignment: UInts32) -> Ints:
        """Feature numbers of parts of one kind."""
        return self.space.join(column, kind, assignment)

    def has_order(self, kind: int) -> Bools:
        """Whether each column has a member whose family has parts of a kind."""
        lists = self.columns.class_sources
        source = np.fromiter(chain.from_iterable(lists), np.int64)
        of_class = np.repeat(np.arange(len(lists)), np.fromiter(map(len, lists), np.int64, len(lists)))
        found = np.bincount(of_class, self.family_of[source, kind] >= 0, len(lists)) > 0.0
        return np.asarray(found[self.columns.classes])

    def observed_for(self, kind: int) -> bool:
        """Whether only observed pairs of a column and an assignment are candidates."""
        return self.candidates[0 if kind == 1 else 1] == "observed"

    def observed(self, kind: int) -> Ints:
        """Sorted column * size + assignment of the pairs seen in training."""
        raise InputError(f"`candidates='observed'`: {type(self).__name__} has all of kind {kind}. Use 'all'.")

    @property
    def n_candidates(self) -> int:
        """Attributes x assignments before any reduction (observed pairs only, if so restricted)."""
        return sum(self._count_observed(k) if self.observed_for(k) else self._count_all(k) for k in self.kinds)

    def _count_all(self, kind: int) -> int:
        attributes = self.columns.n_attributes[self.family_of[:, kind] >= 0]
        return int(attributes.sum()) * self.space.size(kind)

    def _count_observed(self, kind: int) -> int:
        """Each observed pair of a column counts once for every member that has parts of this kind."""
        members = [sum(self.family_of[s, kind] >= 0 for s in sources) for sources in self.columns.class_sources]
        columns = self.observed(kind) // self.space.size(kind)
        return int(np.array(members, np.int64)[self.columns.classes[columns]].sum()) if len(columns) else 0


def family_table(families: list[Family], sources: list[Source], n_kinds: int, kinds: Sequence[int] = ()) -> Ints:
    """The family of each source and kind of parts, (n_sources, n_kinds + 1); -1 = none.

    `kinds` are those of the families, if they are not the lengths of their tag patterns.
    """
    number = {source: i for i, source in enumerate(sources)}
    table = np.full((len(sources), n_kinds + 1), -1, np.int64)
    for i, family in enumerate(families):
        kind = kinds[i] if len(kinds) else family.tags
        for source in family.sources:
            if family.tags < 1:
                raise InputError(f"Family {family.name!r} needs tags >= 1, got {family.tags}.")
            if table[number[source], kind] >= 0:
                other = families[table[number[source], kind]].name
                parts = f"tag patterns of length {family.tags}"
                if family.on_components:
                    parts = f"pairs of {family.component}" if family.component else "components"
                raise InputError(
                    f"Families {other!r} and {family.name!r} both have {source.name!r} with {parts}. "
                    "A feature belongs to one family: remove one of them."
                )
            table[number[source], kind] = i
    return table
