"""Kinds of parts of graphs: types of variables with their labels, and what joins them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from vcrf.errors import BudgetError
from vcrf.graphs.parts import PartSpace
from vcrf.types import Label

# Codes of assignments are 32 bits, and a table of weights should fit in memory.
_MAX_ASSIGNMENTS = 1 << 31


@dataclass(frozen=True)
class PartKind:
    """A kind of parts: its name, the types of its variables, and whether both orders of two labels are one."""

    name: str
    types: tuple[int, ...]
    is_symmetric: bool = False


@dataclass(frozen=True)
class PartKinds:
    """All kinds of parts; those of single variables come first, one a type, in the order of the types.

    Attributes
    ----------
    types : names of the types of variables
    labels : the labels of each type, sorted
    kinds : kinds 1, 2, ...
    directed : whether the order of an edge's nodes matters, or the names of the edge types where it does
    """

    types: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]
    kinds: tuple[PartKind, ...]
    directed: bool | tuple[str, ...] = True

    @property
    def symmetric(self) -> tuple[bool, ...]:
        """Of each kind."""
        return tuple(kind.is_symmetric for kind in self.kinds)

    @cached_property
    def numbers(self) -> dict[tuple[str, tuple[int, ...]], int]:
        """The number of a kind by its name and types."""
        return {(kind.name, kind.types): i for i, kind in enumerate(self.kinds, 1)}

    def full_name(self, kind: int) -> str:
        """The name of a kind, with the types of its nodes where others have the same name."""
        found = self.kinds[kind - 1]
        if sum(other.name == found.name for other in self.kinds) == 1:
            return found.name
        return f"{found.name}({','.join(self.types[t] for t in found.types)})"

    @cached_property
    def space(self) -> PartSpace:
        """Assignments of each kind."""
        return PartSpace(tuple(self._size(kind) for kind in self.kinds))

    def _size(self, kind: PartKind) -> int:
        cards = [len(self.labels[t]) for t in kind.types]
        size = cards[0] * (cards[0] + 1) // 2 if kind.is_symmetric else prod(cards)
        if size >= _MAX_ASSIGNMENTS:
            raise BudgetError(f"Parts of kind {kind.name!r} have {size:,} assignments of labels: too many for a table.")
        return size

    def assignment(self, kind: int, code: int) -> tuple[Label, ...]:
        """The labels of an assignment; of a symmetric one the smaller first."""
        found = self.kinds[kind - 1]
        if found.is_symmetric:
            high = int(((8 * code + 1) ** 0.5 - 1) / 2)
            while high * (high + 1) // 2 > code:
                high -= 1
            while (high + 1) * (high + 2) // 2 <= code:
                high += 1
            values = [code - high * (high + 1) // 2, high]
        else:
            values = []
            for t in reversed(found.types):
                code, value = divmod(code, len(self.labels[t]))
                values.insert(0, value)
        return tuple(self.labels[t][value] for t, value in zip(found.types, values, strict=True))
