"""The complexity from its definition, on dense arrays: slow, for small cases and for any features.

An example is a list of factors, a factor an array (|Y_f|, N): the feature vectors Psi_f(x_i, y) of its assignments y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from vcrf.complexity.closed import conjugate_exponent
from vcrf.complexity.counts import check_radius
from vcrf.errors import BudgetError, InputError
from vcrf.types import Floats, Ints

# All signs are enumerated up to this many of them: 2**22 cases.
MAX_SIGNS = 22
_CASES_AT_ONCE = 1 << 14


def scaled_features(examples: Sequence[Sequence[npt.ArrayLike]]) -> Floats:
    """sqrt|F_i| Psi_f(x_i, y), one row for each sign e_{i,f,y}: (n_signs, N)."""
    rows = []
    for i, factors in enumerate(examples):
        for f, factor in enumerate(factors):
            features = np.asarray(factor, np.float64)
            if features.ndim != 2:
                raise InputError(
                    f"Example {i}, factor {f}: expected an array (assignments, features), got shape {features.shape}."
                )
            rows.append(np.sqrt(len(factors)) * features)
    if not rows or len({row.shape[1] for row in rows}) != 1:
        raise InputError("Expected at least one factor, and the same number of features in all of them.")
    return np.concatenate(rows)


def dense_complexity(
    examples: Sequence[Sequence[npt.ArrayLike]],
    p: float = 1.0,
    radius: float = 1.0,
    *,
    groups: Sequence[Sequence[int]] | None = None,
    draws: int | None = None,
    random_state: int = 0,
) -> float:
    """Empirical factor graph complexity of {||w||_p <= radius}, or of {sum_G ||w_G||_2 <= radius} with `groups`.

    (radius / m) E ||sum_{i,f,y} sqrt|F_i| e_{i,f,y} Psi_f(x_i, y)||_*, the mean over all 2**n signs, exactly, or over
    `draws` random ones.
    """
    rows = scaled_features(examples)
    norm = _dual_norm(p) if groups is None else _group_norm(groups)
    means = [norm(signs @ rows) for signs in _signs(len(rows), draws, random_state)]
    return check_radius(radius) * float(np.concatenate(means).mean()) / len(examples)


def _dual_norm(p: float) -> Callable[[Floats], Floats]:
    q = conjugate_exponent(p)
    return lambda v: np.asarray(np.linalg.norm(v, ord=q, axis=1))


def _group_norm(groups: Sequence[Sequence[int]]) -> Callable[[Floats], Floats]:
    chosen = [np.asarray(group, np.int64) for group in groups]
    return lambda v: np.max([np.linalg.norm(v[:, group], axis=1) for group in chosen], axis=0)


def _signs(n: int, draws: int | None, random_state: int) -> list[Floats]:
    """Blocks of rows of signs: all 2**n, or random ones."""
    if draws is not None:
        rng = np.random.default_rng(random_state)
        sizes = [min(_CASES_AT_ONCE, draws - first) for first in range(0, draws, _CASES_AT_ONCE)]
        return [rng.choice(np.array([-1.0, 1.0]), (size, n)) for size in sizes]
    if n > MAX_SIGNS:
        raise BudgetError(f"{n} signs have 2**{n} cases; the limit is {MAX_SIGNS} signs. Pass draws= to sample.")
    cases = np.arange(1 << n, dtype=np.int64)
    return [_bits(block, n) for block in np.array_split(cases, max(1, len(cases) // _CASES_AT_ONCE))]


def _bits(cases: Ints, n: int) -> Floats:
    return np.asarray(1.0 - 2.0 * ((cases[:, None] >> np.arange(n)) & 1))
