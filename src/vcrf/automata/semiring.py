"""Semirings: how weights of alternative paths are summed, and weights along a path multiplied.

| semiring | weight | plus | times | zero | one |
|---|---|---|---|---|---|
| LOG | minus log of a probability | -log(e^-a + e^-b) | a + b | inf | 0 |
| TROPICAL | cost | min(a, b) | a + b | inf | 0 |
| PROBABILITY | probability or count | a + b | a b | 0 | 1 |
| EXPECTATION | (p, r), r = sum of p * value | (p + p', r + r') | (p p', p r' + p' r) | (0, 0) | (1, 0) |

LOG and TROPICAL have the signs of OpenFst. All four are commutative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vcrf.errors import InputError

Weight = Any  # a float, or a pair of floats in the expectation semiring


@dataclass(frozen=True, repr=False)
class Semiring:
    """A commutative semiring.

    Attributes
    ----------
    name : str
    zero, one : neutral for plus, for times
    plus, times : functions of two weights
    quotient : function (b, a) -> x with times(a, x) = b, for a that is not zero
    is_path : whether plus picks one of its arguments: then a sum over paths is the weight of a best path
    """

    name: str
    zero: Weight
    one: Weight
    plus: Callable[[Weight, Weight], Weight]
    times: Callable[[Weight, Weight], Weight]
    quotient: Callable[[Weight, Weight], Weight]
    is_path: bool = False

    def __repr__(self) -> str:
        return self.name.upper()

    def is_zero(self, weight: Weight) -> bool:
        return bool(weight == self.zero)

    def close(self, a: Weight, b: Weight, delta: float = 1e-9) -> bool:
        """Whether two weights are equal up to delta, absolute or relative."""
        pairs = zip(_parts(a), _parts(b), strict=True)
        return all(x == y or abs(x - y) <= delta * max(1.0, min(abs(x), abs(y))) for x, y in pairs)

    def key(self, weight: Weight, delta: float = 1e-9) -> tuple[float, ...]:
        """The weight on a grid of step delta, to find equal ones."""
        return tuple(part if math.isinf(part) else float(round(part / delta)) for part in _parts(weight))

    def checked(self, weight: Weight) -> Weight:
        """The weight as floats; an InputError if it is none of this semiring."""
        n_parts = len(_parts(self.one))
        try:
            parts = tuple(float(part) for part in _parts(weight))
        except (TypeError, ValueError):
            parts = ()
        if len(parts) != n_parts or any(math.isnan(part) or part == -math.inf for part in parts):
            wanted = "a number" if n_parts == 1 else "a pair of numbers"
            raise InputError(f"A weight of the {self.name} semiring is {wanted}, got {weight!r}.")
        return parts[0] if n_parts == 1 else parts


def _parts(weight: Weight) -> tuple[Any, ...]:
    return weight if isinstance(weight, tuple) else (weight,)


def _log_plus(a: float, b: float) -> float:
    if a == math.inf or b == math.inf:
        return min(a, b)
    return min(a, b) - math.log1p(math.exp(-abs(a - b)))


def _difference(b: float, a: float) -> float:
    return math.inf if b == math.inf else b - a


def _pair_quotient(b: tuple[float, float], a: tuple[float, float]) -> tuple[float, float]:
    if a[0] == 0.0:
        raise InputError(f"The expectation semiring cannot divide by {a}: its probability is 0.")
    p = b[0] / a[0]
    return p, (b[1] - a[1] * p) / a[0]


LOG = Semiring("log", math.inf, 0.0, _log_plus, lambda a, b: a + b, _difference)
TROPICAL = Semiring("tropical", math.inf, 0.0, min, lambda a, b: a + b, _difference, is_path=True)
PROBABILITY = Semiring("probability", 0.0, 1.0, lambda a, b: a + b, lambda a, b: a * b, lambda b, a: b / a)
EXPECTATION = Semiring(
    "expectation",
    (0.0, 0.0),
    (1.0, 0.0),
    lambda a, b: (a[0] + b[0], a[1] + b[1]),
    lambda a, b: (a[0] * b[0], a[0] * b[1] + a[1] * b[0]),
    _pair_quotient,
)

SEMIRINGS = {semiring.name: semiring for semiring in (LOG, TROPICAL, PROBABILITY, EXPECTATION)}


def get_semiring(semiring: str | Semiring) -> Semiring:
    """The semiring with a name."""
    if isinstance(semiring, Semiring):
        return semiring
    if semiring not in SEMIRINGS:
        raise InputError(f"semiring must be one of {', '.join(SEMIRINGS)}; got {semiring!r}.")
    return SEMIRINGS[semiring]
