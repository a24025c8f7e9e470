"""The corollaries of Theorem 1 for linear hypotheses in a ball, and for multi-class; see `bounds`."""

from __future__ import annotations

import math
from dataclasses import replace

from vcrf.complexity.bound import Bound, check_counts
from vcrf.complexity.bounds import theorem1
from vcrf.complexity.closed import conjugate_exponent, khintchine_constant, l1_formula
from vcrf.errors import InputError


def linear_l1(
    empirical: float, *, radius: float, r_inf: float, sparsity: float, n_features: int, rho: float, loss_bound: float,
    n_examples: int, delta: float = 0.05, margin: str = "additive", paper_constants: bool = False,
) -> Bound:  # fmt: skip
    """Corollary for {||w||_1 <= radius}: complexity radius r_inf sqrt(2 s log 2N) / m."""
    check_counts(n_examples, sparsity=sparsity, n_features=n_features, r_inf=r_inf)
    complexity = l1_formula(r_inf, sparsity, n_features, n_examples, radius, paper_constants=paper_constants)
    found = theorem1(
        empirical, complexity, rho=rho, loss_bound=loss_bound, n_examples=n_examples, delta=delta, margin=margin,
        paper_constants=paper_constants,
    )  # fmt: skip
    note = () if paper_constants else ("sqrt(2 s log 2N) as proved; the statement sqrt(s log 2N) is false",)
    return replace(found, name="corollary for H_1", corrections=found.corrections + note)


def linear_l2(
    empirical: float, *, radius: float, r_2: float, total_size: float, rho: float, loss_bound: float, n_examples: int,
    delta: float = 0.05, margin: str = "additive", paper_constants: bool = False,
) -> Bound:  # fmt: skip
    """Corollary for {||w||_2 <= radius}: complexity radius r_2 sqrt(sum_{i,f,y} |F_i|) / m, total_size the sum."""
    check_counts(n_examples, r_2=r_2, total_size=total_size)
    complexity = radius * r_2 * math.sqrt(total_size) / n_examples
    found = theorem1(
        empirical, complexity, rho=rho, loss_bound=loss_bound, n_examples=n_examples, delta=delta, margin=margin,
        paper_constants=paper_constants,
    )  # fmt: skip
    return replace(found, name="corollary for H_2")


def linear_lp(
    empirical: float, *, p: float, radius: float, power_sum: float, rho: float, loss_bound: float, n_examples: int,
    delta: float = 0.05, margin: str = "additive",
) -> Bound:  # fmt: skip
    """The same for {||w||_p <= radius}, p > 1, 1/p + 1/q = 1: complexity radius C_q power_sum^(1/q) / m.

    `power_sum` is the sum of v_j^(q/2) over the features; `lp_bound` has it from a sample. Not in the paper.
    """
    check_counts(n_examples, radius=radius, power_sum=power_sum)
    q = conjugate_exponent(p)
    if math.isinf(q):
        raise InputError("linear_lp is for p > 1: use linear_l1.")
    complexity = radius * khintchine_constant(q) * power_sum ** (1.0 / q) / n_examples
    found = theorem1(
        empirical, complexity, rho=rho, loss_bound=loss_bound, n_examples=n_examples, delta=delta, margin=margin
    )
    note = "not in the paper: Khintchine's inequality for p between its two norms, and beyond"
    return replace(found, name=f"corollary for H_p, p = {p:g}", corrections=(*found.corrections, note))


def pairwise_network(
    empirical: float, *, radius: float, r_2: float, n_labels: int, n_factors: int, rho: float, n_examples: int,
    delta: float = 0.05, paper_constants: bool = False,
) -> Bound:  # fmt: skip
    """Pairwise Markov networks of l factors, k^2 assignments each, the Hamming loss divided by l; for H_2.

    The corollary with |F_i| = l and sum_{i,f,y} |F_i| = m l^2 k^2, for the loss between 0 and l, divided by l:
    complexity radius r_2 k / sqrt(m), whatever l. `empirical` is the additive margin loss divided by l too, at the
    margin rho of the undivided loss. A chain of l variables has l - 1 such factors.
    """
    check_counts(n_examples, n_labels=n_labels, n_factors=n_factors)
    total = float(n_examples * n_factors**2 * n_labels**2)
    found = linear_l2(
        empirical * n_factors, radius=radius, r_2=r_2, total_size=total, rho=rho, loss_bound=float(n_factors),
        n_examples=n_examples, delta=delta, paper_constants=paper_constants,
    )  # fmt: skip
    return replace(
        found, name="pairwise Markov network", empirical=found.empirical / n_factors,
        complexity=found.complexity / n_factors, confidence=found.confidence / n_factors, loss_bound=1.0,
    )  # fmt: skip


def multiclass_l1(
    empirical: float, *, radius: float, r_inf: float, n_classes: int, n_features: int, rho: float, loss_bound: float,
    n_examples: int, delta: float = 0.05, margin: str = "additive", paper_constants: bool = False,
) -> Bound:  # fmt: skip
    """Multi-class corollary for H_1: |F| = 1 and s <= m c."""
    found = linear_l1(
        empirical, radius=radius, r_inf=r_inf, sparsity=float(n_examples * n_classes), n_features=n_features, rho=rho,
        loss_bound=loss_bound, n_examples=n_examples, delta=delta, margin=margin, paper_constants=paper_constants,
    )  # fmt: skip
    return _multiclass(found, "multi-class corollary for H_1", margin, paper_constants)


def multiclass_l2(
    empirical: float, *, radius: float, r_2: float, n_classes: int, rho: float, loss_bound: float, n_examples: int,
    delta: float = 0.05, margin: str = "additive", paper_constants: bool = False,
) -> Bound:  # fmt: skip
    """Multi-class corollary for H_2: complexity radius r_2 sqrt(c / m)."""
    found = linear_l2(
        empirical, radius=radius, r_2=r_2, total_size=float(n_examples * n_classes), rho=rho, loss_bound=loss_bound,
        n_examples=n_examples, delta=delta, margin=margin, paper_constants=paper_constants,
    )  # fmt: skip
    return _multiclass(found, "multi-class corollary for H_2", margin, paper_constants)


def multiclass_group(
    empirical: float, *, radius: float, r_2: float, n_classes: int, rho: float, loss_bound: float, n_examples: int,
    delta: float = 0.05, margin: str = "additive", paper_constants: bool = False,
) -> Bound:  # fmt: skip
    """Multi-class corollary for {sum_y ||w_y||_2 <= radius}: complexity radius r_2 (1 + sqrt(2 log c)) / sqrt(m).

    As printed, with (log c)^{1/4}, it is false.
    """
    check_counts(n_examples, n_classes=n_classes, r_2=r_2)
    if n_classes < 1:
        raise InputError(f"n_classes must be at least 1, got {n_classes}.")
    if paper_constants:
        # 4 sqrt(2) / rho times this is the printed 16 / rho.
        width = 2.0 * math.sqrt(2.0) * math.log(n_classes) ** 0.25
    else:
        width = 1.0 + math.sqrt(2.0 * math.log(n_classes))
    found = theorem1(
        empirical, radius * r_2 * width / math.sqrt(n_examples), rho=rho, loss_bound=loss_bound,
        n_examples=n_examples, delta=delta, margin=margin, paper_constants=paper_constants,
    )  # fmt: skip
    note = () if paper_constants else ("1 + sqrt(2 log c) instead of (log c)^(1/4), which is false",)
    found = replace(found, corrections=found.corrections + note)
    return _multiclass(found, "multi-class corollary for H_{2,1}", margin, paper_constants)


def _multiclass(found: Bound, name: str, margin: str, paper_constants: bool) -> Bound:
    if margin == "additive":
        return replace(found, name=name)
    if paper_constants:  # printed without the factor M
        return replace(found, name=name, complexity=found.complexity / max(found.loss_bound, 1e-300))
    note = "the factor M of the multiplicative margin, which the multi-class corollaries leave out"
    return replace(found, name=name, corrections=(*found.corrections, note))
