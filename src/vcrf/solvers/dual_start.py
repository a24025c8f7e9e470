"""Where a run with an l2 part begins: dual ascent over the examples, until its visits find little more.

The ascent settles rare features, one visit to each of their examples at a time, and leaves noise in frequent ones,
which quasi-Newton steps remove quickly. What it finds is a start like any other: the certificate does not care.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vcrf.penalties import FeaturePenalty
from vcrf.problem import Candidates
from vcrf.solvers.policy import ASCENT
from vcrf.structures.structure import Ascent, Strengths
from vcrf.types import Floats, Ints

_SEED = 20160


def strengths_of(problem: Candidates, penalty: FeaturePenalty) -> Strengths | None:
    """A penalty with an l2 part, as dual ascent sees it; None for one of another form."""
    squares = penalty.squares
    if squares is None:
        return None
    kinds = problem.kinds
    groups, limits = {k: penalty.column_groups(k) for k in kinds}, {k: penalty.column_thresholds(k) for k in kinds}
    return Strengths(groups, limits, *squares)


def rounds(ascent: Ascent) -> Iterator[None]:
    """Rounds of as many visits as there are examples, until they find little more."""
    rng = np.random.default_rng(_SEED)
    found: list[float] = []
    for number in range(ASCENT.most_rounds):
        ascent.visit(_draw(rng, ascent.left, number))
        yield
        found.append(float(np.mean(ascent.left)))
        if ASCENT.is_over(found):
            return


def _draw(rng: np.random.Generator, left: Floats, number: int) -> Ints:
    if number < ASCENT.even_rounds:
        return rng.permutation(len(left))
    share = 0.5 / len(left) + 0.5 * left / max(float(left.sum()), 1e-300)
    return rng.choice(len(left), len(left), p=share / share.sum())


def is_usable(w: Floats) -> bool:
    """Whether steps may begin at such weights."""
    return bool(np.all(np.abs(w) <= ASCENT.largest_weight))  # not where one is not a number
