"""Factor graphs: variables with finitely many values, and factors that look at some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from vcrf.errors import InputError

Attributes = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Factor:
    """A factor f: the variables it looks at, and what is known of the input there.

    Attributes
    ----------
    scope : numbers of its variables, in the order of the axes of its table
    kind : name of its kind, "pair" for instance; a family of features lives on factors of one kind
    attributes : (name, value) of the input's attributes at this factor; a feature is an attribute with an assignment
    """

    scope: tuple[int, ...]
    kind: str = "factor"
    attributes: Attributes = ()


@dataclass(frozen=True)
class FactorGraph:
    """The factor graph of one example.

    Attributes
    ----------
    cards : number of values of each variable
    factors : F_i, in order
    names : of the variables, for people; by default y1, y2, ...
    places : (x, y) of each variable in drawings; by default on a line

    Examples
    --------
    >>> graph = FactorGraph((2, 3), (Factor((0,)), Factor((0, 1), "pair")))
    >>> graph.n_factors, graph.n_assignments(1)
    (2, 6)
    """

    cards: tuple[int, ...]
    factors: tuple[Factor, ...]
    names: tuple[str, ...] = ()
    places: tuple[tuple[float, float], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for v, card in enumerate(self.cards):
            if card < 1:
                raise InputError(f"Variable {v} has {card} values: expected at least 1.")
        for f, factor in enumerate(self.factors):
            _check_scope(f, factor, len(self.cards))
        for what, given in (("names", self.names), ("places", self.places)):
            if given and len(given) != len(self.cards):
                raise InputError(f"{what} must have one entry for each of {len(self.cards)} variables: {len(given)}.")

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.cards)

    @property
    def n_factors(self) -> int:
        """|F_i|."""
        return len(self.factors)

    def shape(self, f: int) -> tuple[int, ...]:
        """Shape of the table of factor f: the numbers of values of its variables."""
        return tuple(self.cards[v] for v in self.factors[f].scope)

    def n_assignments(self, f: int) -> int:
        """|Y_f|."""
        return prod(self.shape(f))

    def name(self, v: int) -> str:
        """Name of a variable."""
        return self.names[v] if self.names else f"y{v + 1}"

    def with_attributes(self, read: Callable[[int, Factor], Iterable[str | tuple[str, float]]]) -> FactorGraph:
        """The same graph with attributes read off the input: read(f, factor) gives names, or (name, value)."""
        return replace(
            self,
            factors=tuple(
                replace(factor, attributes=tuple(map(_attribute, read(f, factor))))
                for f, factor in enumerate(self.factors)
            ),
        )

    def with_factors(self, factors: Iterable[Factor]) -> FactorGraph:
        """The same variables with more factors."""
        return replace(self, factors=(*self.factors, *factors))


def _attribute(given: str | tuple[str, float]) -> tuple[str, float]:
    return (given, 1.0) if isinstance(given, str) else (given[0], float(given[1]))


def _check_scope(f: int, factor: Factor, n_variables: int) -> None:
    scope: Sequence[int] = factor.scope
    if len(set(scope)) != len(scope):
        raise InputError(f"Factor {f} looks at a variable twice: {scope}. List each of its variables once.")
    wrong = [v for v in scope if not 0 <= v < n_variables]
    if wrong:
        raise InputError(f"Factor {f} looks at variable {wrong[0]}; the graph has variables 0 .. {n_variables - 1}.")
