"""Monte-Carlo estimates of the factor graph complexity, with confidence intervals.

Signs are drawn exactly (no normal approximation). For H_1 only columns that can hold the maximum are drawn. Which they
are is guessed by a normal approximation and checked by the draws: the columns left out exceed the smallest maximum
drawn with a probability below 1e-4 in all, by Hoeffding's inequality and the union bound, or more columns are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from vcrf import kernels
from vcrf.complexity.closed import check_groups, conjugate_exponent
from vcrf.complexity.counts import Block, FeatureCounts, check_radius
from vcrf.complexity.integral import NormalMaximum
from vcrf.errors import BudgetError, InputError
from vcrf.types import Floats, Ints, UInts64

# Work of one estimate by default, in random words and additions: a fraction of a second.
DEFAULT_WORK = 3e7
MIN_DRAWS, MAX_DRAWS = 50, 1000
MAX_WORK = 2e11
_LEFT_OUT, _MAX_LEFT_OUT = 1e-6, 1e-4


@dataclass(frozen=True)
class Estimate:
    """A mean over draws of the signs.

    Attributes
    ----------
    value : the estimate
    low, high : confidence interval (Student's t)
    level : of the interval
    draws : number of draws
    n_columns : columns that were drawn
    """

    value: float
    low: float
    high: float
    level: float
    draws: int
    n_columns: int

    @property
    def half_width(self) -> float:
        """Half the interval's width."""
        return 0.5 * (self.high - self.low)


@dataclass(frozen=True, eq=False)
class Atoms:
    """Factors at which the same columns occur with the same scales, as the kernels want them.

    Attributes
    ----------
    n : (n_atoms,) int64, factors in each atom
    ptr, columns, scales : CSR from atoms to their columns and the scale sqrt|F_i| * value
    """

    n: Ints
    ptr: Ints
    columns: Ints
    scales: Floats

    @classmethod
    def of(cls, block: Block, divisors: Floats | None = None) -> Atoms:
        """Atoms of a block's columns; V_a is divided by divisors[a]."""
        incidence = block.incidence
        rows, places = incidence.entries(block.columns)
        factors = incidence.factors[places].astype(np.int64)
        scales = np.sqrt(incidence.sizes[factors])
        if len(incidence.values):
            scales = scales * incidence.values[places]
        if divisors is not None:
            scales = scales / divisors[rows]
        there = scales != 0.0
        return cls._grouped(rows[there], factors[there], scales[there])

    @classmethod
    def _grouped(cls, rows: Ints, factors: Ints, scales: Floats) -> Atoms:
        order = np.lexsort((rows, factors))
        rows, factors, scales = rows[order], factors[order], scales[order]
        starts = np.flatnonzero(np.diff(factors, prepend=-1))
        if not len(starts):
            return cls(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))
        # Factors with equal lists of (column, scale) have equal sums of hashes, and hardly any others do.
        marks = np.add.reduceat(_hash(rows, scales), starts)
        _, first, n = np.unique(marks, return_index=True, return_counts=True)
        counts = np.diff(np.append(starts, len(rows)))[first]
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        kept = np.repeat(starts[first] - ptr[:-1], counts) + np.arange(ptr[-1])
        return cls(n.astype(np.int64), ptr, rows[kept], scales[kept])

    @property
    def work(self) -> float:
        """Random words and additions of one V for one assignment."""
        return float(np.ceil(self.n / 64.0).sum() + len(self.columns))


def _hash(rows: Ints, scales: Floats) -> UInts64:
    x = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ scales.view(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 0xD6E8FEB86659FD93)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x


def rademacher(
    counts: FeatureCounts,
    p: float = 1.0,
    radius: float = 1.0,
    *,
    draws: int | None = None,
    level: float = 0.95,
    random_state: int = 0,
    divisors: list[Floats] | None = None,
) -> Estimate:
    """Estimate the empirical factor graph complexity of {w : ||w||_p <= radius}.

    Parameters
    ----------
    counts : the features on the sample
    p : 1 (any number of features), or more (every column is drawn)
    radius : Lambda
    draws : number of draws of all signs; by default what a fraction of a second allows, between 50 and 1,000
    level : of the confidence interval
    random_state : seed
    divisors : for p = 1, one array a block with the r_j of its columns: the class is then
        {w : sum_j r_j |w_j| <= radius}

    Raises
    ------
    BudgetError
        When the draws would take hours: use `lp_bound`.
    """
    q = conjugate_exponent(p)
    scale = check_radius(radius) / counts.n_examples
    blocks = list(counts.blocks)
    if math.isinf(q) and divisors is None:
        blocks, norms = _largest(counts, draws, random_state)
        return _estimate(norms * scale, level, blocks)
    if divisors is not None:
        if not math.isinf(q):
            raise InputError(f"divisors (weights r_j of the norm) are for p = 1 only, got p = {p!r}.")
        # Variances differ too little after the division for a shortcut: all columns are drawn.
        _check_divisors(blocks, divisors)
    atoms = [Atoms.of(b, None if divisors is None else divisors[i]) for i, b in enumerate(blocks)]
    kernel = _maxima if math.isinf(q) else _powers(q)
    found = _run(kernel, blocks, atoms, _n_draws(draws, blocks, atoms), random_state)
    return _estimate((found if math.isinf(q) else found ** (1.0 / q)) * scale, level, blocks)


def group_rademacher(
    counts: FeatureCounts,
    groups: str = "attribute",
    radius: float = 1.0,
    *,
    draws: int | None = None,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """Estimate the complexity of {w : sum_G ||w_G||_2 <= radius}; groups as for `group_bound`."""
    check_groups(groups)
    blocks = list(counts.blocks)
    atoms = [Atoms.of(block) for block in blocks]
    found = _run(_groups(groups), blocks, atoms, _n_draws(draws, blocks, atoms), random_state)
    return _estimate(np.sqrt(found) * check_radius(radius) / counts.n_examples, level, blocks)


# ------------------------------------------------------------------------------------ internal

_Kernel = Callable[[Block, Atoms, UInts64, Floats], None]


def _maxima(block: Block, atoms: Atoms, seeds: UInts64, out: Floats) -> None:
    kernels.rademacher.sample_maxima(
        atoms.n, atoms.ptr, atoms.columns, atoms.scales, len(block.columns), block.n_assignments, seeds, out
    )


def _powers(q: float) -> _Kernel:
    def run(block: Block, atoms: Atoms, seeds: UInts64, out: Floats) -> None:
        numbers = block.multiplicities.astype(np.float64)
        kernels.rademacher.sample_powers(
            atoms.n, atoms.ptr, atoms.columns, atoms.scales, numbers, block.n_assignments, q, seeds, out
        )

    return run


def _groups(groups: str) -> _Kernel:
    def run(block: Block, atoms: Atoms, seeds: UInts64, out: Floats) -> None:
        numbers = block.multiplicities.astype(np.float64)
        kernels.rademacher.sample_groups(
            atoms.n, atoms.ptr, atoms.columns, atoms.scales, numbers, block.n_assignments, groups == "attribute",
            seeds, out,
        )  # fmt: skip

    return run


def _run(kernel: _Kernel, blocks: list[Block], atoms: list[Atoms], draws: int, random_state: int) -> Floats:
    out = np.zeros(draws)
    for i, (block, parts) in enumerate(zip(blocks, atoms, strict=True)):
        if len(block.columns):
            rng = np.random.default_rng([random_state, i])
            kernel(block, parts, rng.integers(0, 2**64, draws, np.uint64), out)
    return out


def _largest(counts: FeatureCounts, draws: int | None, random_state: int) -> tuple[list[Block], Floats]:
    """Draws of max_j |V_j|, and the columns that were drawn for it.

    The guess is that of independent V_j. Where columns occur together the maximum is smaller, and others may hold it.
    """
    low = NormalMaximum(counts).quantile(math.log(1e-3))
    while True:
        blocks, light = _heavy(list(counts.blocks), low)
        atoms = [Atoms.of(block) for block in blocks]
        found = _run(_maxima, blocks, atoms, _n_draws(draws, blocks, atoms), random_state)
        low = min(low, float(found.min()))
        if sum(float(_tails(block, low).sum()) for block in light) <= _MAX_LEFT_OUT:
            return blocks, found


def _heavy(blocks: list[Block], low: float) -> tuple[list[Block], list[Block]]:
    """The columns that may have a |V_j| above `low`, block by block, and the others."""
    tails = [_tails(block, low) for block in blocks]
    everything = np.sort(np.concatenate([np.zeros(0), *tails]))
    n_light = int(np.searchsorted(np.cumsum(everything), _LEFT_OUT))
    threshold = everything[n_light] if n_light < len(everything) else np.inf
    pairs = list(zip(blocks, tails, strict=True))
    return (
        [block.take(np.flatnonzero(tail >= threshold)) for block, tail in pairs],
        [block.take(np.flatnonzero(tail < threshold)) for block, tail in pairs],
    )


def _tails(block: Block, x: float) -> Floats:
    """Bound on the probability that some |V_{a,z}| of each column exceeds x: 2 |Y_f| exp(-x^2 / 2 v_a)."""
    exponents = np.full(len(block.columns), -np.inf)
    np.divide(-0.5 * x**2, block.variances, out=exponents, where=block.variances > 0.0)
    return np.asarray(2.0 * block.n_assignments * np.exp(exponents))


def _check_divisors(blocks: list[Block], divisors: list[Floats]) -> None:
    expected = [len(block.columns) for block in blocks]
    if [len(d) for d in divisors] != expected or not all(np.all(d > 0.0) for d in divisors):
        raise InputError(f"divisors must be positive, one a column: expected arrays of {expected} numbers.")


def _n_draws(draws: int | None, blocks: list[Block], atoms: list[Atoms]) -> int:
    work = sum((a.work + len(b.columns)) * b.n_assignments for b, a in zip(blocks, atoms, strict=True))
    if draws is None:
        draws = int(np.clip(DEFAULT_WORK / max(work, 1.0), MIN_DRAWS, MAX_DRAWS))
    elif not isinstance(draws, Integral) or draws < 2:
        raise InputError(f"draws must be an integer of at least 2 (an interval needs two), got {draws!r}.")
    if draws * work > MAX_WORK:
        raise BudgetError(
            f"{draws} draws of {work:.2g} signs and sums each exceed the budget of {MAX_WORK:.0g}: a norm other than "
            "p = 1 needs every feature. Use the closed bounds (lp_bound, group_bound) or fewer features."
        )
    return int(draws)


def _estimate(draws: Floats, level: float, blocks: list[Block]) -> Estimate:
    from scipy.special import stdtrit

    if not 0.0 < level < 1.0:
        raise InputError(f"level must lie between 0 and 1, got {level!r}.")
    value = float(draws.mean())
    half = float(stdtrit(len(draws) - 1, 0.5 + 0.5 * level)) * float(draws.std(ddof=1)) / math.sqrt(len(draws))
    return Estimate(value, value - half, value + half, level, len(draws), sum(len(b.columns) for b in blocks))
