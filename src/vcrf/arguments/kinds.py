"""Kinds of values: what a parameter takes, in words for messages and docstrings and in numbers for the command line."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Protocol


class Kind(Protocol):
    """What a parameter takes."""

    @property
    def expected(self) -> str:
        """Ends a sentence that begins with "must be"."""
        ...

    @property
    def type_name(self) -> str:
        """For the docstring."""
        ...

    def accepts(self, value: object) -> bool: ...


@dataclass(frozen=True)
class Integer:
    """A whole number from `least` to `most`."""

    expected: str
    least: int
    most: float = math.inf
    type_name: str = "int"

    def accepts(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, Integral):
            return False
        return self.least <= int(value) <= self.most


@dataclass(frozen=True)
class Number:
    """A finite number from `least` to `most`, both excluded if `is_open`."""

    expected: str
    least: float = -math.inf
    most: float = math.inf
    is_open: bool = False
    type_name: str = "float"

    def accepts(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        try:
            number = float(value)
        except OverflowError:  # an int of hundreds of digits
            return False
        if not math.isfinite(number):
            return False
        return self.least < number < self.most if self.is_open else self.least <= number <= self.most


@dataclass(frozen=True)
class Flag:
    """True or False; numpy's too."""

    expected: str = "True or False"
    type_name: str = "bool"

    def accepts(self, value: object) -> bool:
        from numpy import bool_  # late: the command line reads the table too

        return isinstance(value, (bool, bool_))


@dataclass(frozen=True)
class Choice:
    """One of some names, or something else that is checked where it is used (`besides`)."""

    names: tuple[str, ...]
    besides: str = ""

    @property
    def expected(self) -> str:
        return joined(map(repr, self.names), self.besides)

    @property
    def type_name(self) -> str:
        return joined((f'"{name}"' for name in self.names), self.besides)

    def accepts(self, value: object) -> bool:
        return value in self.names if isinstance(value, str) else bool(self.besides)


@dataclass(frozen=True)
class Names:
    """True, False, or a collection of names."""

    type_name: str
    expected: str

    def accepts(self, value: object) -> bool:
        from numpy import bool_  # late: as above

        if isinstance(value, (list, tuple, set, frozenset)):
            return all(isinstance(name, str) for name in value)
        return isinstance(value, (bool, bool_))


@dataclass(frozen=True)
class Other:
    """What is checked where it is used."""

    type_name: str
    expected: str = ""

    def accepts(self, value: object) -> bool:  # noqa: ARG002
        return True


def joined(names: Iterable[str], last: str = "") -> str:
    """Names with commas, and `or` before the last."""
    *first, end = [*names, last] if last else list(names)
    return f"{', '.join(first)} or {end}" if first else end
