"""Upper bounds on the factor graph complexity in closed form, or by one minimisation.

Classes are {w : ||w||_p <= radius} and {w : sum_G ||w_G||_2 <= radius}; m examples, variances v_j as in `counts`.

    H_1      radius / m * r_inf sqrt(2 s log 2N)                    Theorem 2; the statement lacks the 2 of its proof
    H_1      radius / m * min_l (1/l) log sum_j 2 E exp(l V_j)      `moment_bound`, never above the one before
    H_2      radius / m * sqrt(sum_j v_j)                           Jensen; Theorem 2 is coarser
    H_p      radius / m * C_q (sum_j v_j^{q/2})^{1/q}               1/p + 1/q = 1; Khintchine, Haagerup's C_q
    H_{2,1}  radius / m * max_G sqrt(v_G) (1 + sqrt(2 log #groups)) v_G the sum over the group's features
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.complexity.counts import Block, FeatureCounts, check_radius
from vcrf.errors import InputError
from vcrf.types import Floats, Ints

GROUPS = ("attribute", "pattern")
# The moments of so many columns are taken exactly; those of the others, of smaller variance, are bounded.
_EXACT_COLUMNS = 1000


def l1_bound(counts: FeatureCounts, radius: float = 1.0, *, paper_constants: bool = False) -> float:
    """Theorem 2 for H_1: radius r_inf sqrt(2 s log 2N) / m. The paper's statement, without the 2, is false."""
    return l1_formula(
        counts.r_inf, counts.sparsity, counts.n_features, counts.n_examples, radius, paper_constants=paper_constants
    )


def l1_formula(
    r_inf: float, s: float, n_features: float, n_examples: int, radius: float = 1.0, *, paper_constants: bool = False
) -> float:
    """The same from its quantities: r_inf, the sparsity s, the number of features N and of examples m."""
    factor = 1.0 if paper_constants else 2.0
    log_size = math.log(2.0 * n_features) if n_features > 0 else 0.0
    return check_radius(radius) * r_inf * math.sqrt(factor * s * log_size) / n_examples


def l2_bound(counts: FeatureCounts, radius: float = 1.0, *, paper_constants: bool = False) -> float:
    """H_2: radius sqrt(sum_j v_j) / m; with `paper_constants` Theorem 2's radius r_2 sqrt(sum_{i,f,y} |F_i|) / m."""
    if paper_constants:
        return check_radius(radius) * counts.r_2 * math.sqrt(counts.total_size) / counts.n_examples
    return lp_bound(counts, 2.0, radius)


def lp_bound(counts: FeatureCounts, p: float, radius: float = 1.0) -> float:
    """H_p for any p >= 1: by Khintchine's inequality for 1 < p; for p = 1 Massart's with the variances."""
    q = conjugate_exponent(p)
    if math.isinf(q):
        size = math.log(2.0 * counts.n_features) if counts.n_features else 0.0
        return check_radius(radius) * math.sqrt(2.0 * counts.max_variance * size) / counts.n_examples
    total = sum(_power_sum(block, q / 2.0) for block in counts.blocks)
    return float(check_radius(radius) * khintchine_constant(q) * total ** (1.0 / q) / counts.n_examples)


def _power_sum(block: Block, exponent: float) -> float:
    """sum_j v_j**exponent over the features."""
    return block.n_assignments * float(block.multiplicities @ block.variances**exponent)


def conjugate_exponent(p: float) -> float:
    """Exponent q of the dual norm, 1/p + 1/q = 1; inf for p = 1."""
    if not p >= 1.0:
        raise InputError(f"p must be at least 1: expected a norm, got p = {p!r}.")
    return math.inf if p == 1.0 else 1.0 if math.isinf(p) else p / (p - 1.0)


def khintchine_constant(q: float) -> float:
    """Haagerup's constant: (E|sum_i e_i a_i|^q)^{1/q} <= C_q ||a||_2; 1 for q <= 2."""
    if q <= 2.0:
        return 1.0
    return math.sqrt(2.0) * math.exp((math.lgamma((q + 1.0) / 2.0) - 0.5 * math.log(math.pi)) / q)


def group_bound(counts: FeatureCounts, groups: str = "attribute", radius: float = 1.0) -> float:
    """H_{2,1}: a group is an attribute with all assignments, or an assignment with all attributes ("pattern").

    ||V_G||_2 has a mean of at most sqrt(v_G) and is sub-Gaussian with proxy v_G (bounded differences).
    """
    check_groups(groups)
    totals: list[float] = []
    n_groups = 0
    for block in counts.blocks:
        if groups == "attribute":
            totals.append(block.n_assignments * float(block.variances.max(initial=0.0)))
            n_groups += int(block.multiplicities.sum())
        else:
            totals.append(float(block.multiplicities @ block.variances))
            n_groups += block.n_assignments
    if not n_groups:
        return 0.0
    width = 1.0 + math.sqrt(2.0 * math.log(n_groups))
    return check_radius(radius) * math.sqrt(max(totals)) * width / counts.n_examples


def check_groups(groups: str) -> None:
    """Refuse groups that there are not."""
    if groups not in GROUPS:
        raise InputError(f"groups must be 'attribute' or 'pattern', got {groups!r}.")


def moment_bound(counts: FeatureCounts, radius: float = 1.0) -> float:
    """H_1 by the moment generating function: rigorous, and never above Massart's bound.

        m R / radius <= min_l (1/l) log( 2 sum_j prod_f cosh(l sqrt|F_i| value) )

    Columns that occur at the same factors count once: their V_j are one. The product is exact for the columns of
    largest variance and at most exp(l^2 v_j / 2) for the others.
    """
    from scipy.optimize import minimize_scalar

    parts = [_MomentTerms.of(block) for block in counts.blocks if block.spectrum[0].size]
    if not parts:
        return 0.0

    def objective(log_rate: float) -> float:
        rate = math.exp(log_rate)
        logs = np.concatenate([part.log_moments(rate) for part in parts])
        return (float(np.logaddexp.reduce(logs)) + math.log(2.0)) / rate

    n_distinct = sum(float(block.spectrum[1].sum()) * block.n_assignments for block in counts.blocks)
    # Massart's choice of the rate; the best one is near it.
    start = 0.5 * math.log(2.0 * math.log(2.0 * n_distinct) / counts.max_variance)
    found = minimize_scalar(objective, bounds=(start - 3.0, start + 3.0), method="bounded", options={"xatol": 1e-6})
    return check_radius(radius) * min(float(found.fun), objective(start)) / counts.n_examples


class _MomentTerms(NamedTuple):
    """Logs of the features' moments: exact sums for a few columns, bounds by the variance for the rest.

    Attributes
    ----------
    log_size : log of the number of assignments
    rest : distinct variances of the light columns, and how many columns have each
    rows, scales, numbers : column, sqrt|F_i| |value| and how often it occurs, for the heavy columns
    n_rows : number of heavy columns
    """

    log_size: float
    rest: tuple[Floats, Ints]
    rows: Ints
    scales: Floats
    numbers: Ints
    n_rows: int

    @classmethod
    def of(cls, block: Block) -> _MomentTerms:
        order = np.argsort(-block.variances, kind="stable")
        heavy = np.sort(order[:_EXACT_COLUMNS])
        rows, places = block.incidence.entries(block.columns[heavy])
        scales = np.sqrt(block.incidence.sizes[block.incidence.factors[places]])
        if len(block.incidence.values):
            scales = scales * np.abs(block.incidence.values[places])
        distinct, which = np.unique(scales, return_inverse=True)
        codes, numbers = np.unique(rows * len(distinct) + which, return_counts=True)
        rest = np.unique(block.variances[order[_EXACT_COLUMNS:]], return_counts=True)
        return cls(
            math.log(block.n_assignments), rest, codes // len(distinct), distinct[codes % len(distinct)], numbers,
            len(heavy),
        )  # fmt: skip

    def log_moments(self, rate: float) -> Floats:
        """Log of (number of features) x (mean of exp(rate V)), column by column or for equal variances at once."""
        x = rate * self.scales
        logs = self.numbers * (np.logaddexp(x, -x) - math.log(2.0))
        variances, counts = self.rest
        rest = np.log(counts) + 0.5 * rate**2 * variances
        return np.concatenate([np.bincount(self.rows, logs, self.n_rows), rest]) + self.log_size
