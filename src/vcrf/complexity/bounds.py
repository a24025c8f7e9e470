"""Bounds on the risk, term by term.

    R(h) <= empirical margin loss + complexity term + confidence term      with probability at least 1 - delta

Each function is pure: numbers in, a `Bound` out that names its assumptions and what of the paper it corrects.
`paper_constants=True` gives the constants as printed, some of which are wrong; see docs/bounds.md. m examples, a loss
between 0 and M (`loss_bound`), margin rho. In all of them `empirical` is the margin loss of the same kind and margin.
Here are Theorem 1 and what needs no more; its corollaries are in `corollaries`, Theorem 3 in `voted`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from vcrf.complexity.bound import (
    BOUNDED,
    FIXED_CLASS,
    FIXED_FEATURES,
    FIXED_MARGIN,
    FIXED_WEIGHTS,
    IID,
    SHARP_LIPSCHITZ,
    STAR_SHAPED,
    TWO_EVENTS,
    UNSEEN,
    Bound,
    check_counts,
    check_delta,
    check_margin,
    check_ratio,
    check_setting,
    deviation_term,
)
from vcrf.complexity.margins import check_rho
from vcrf.errors import InputError

# ------------------------------------------------------------------------------------ Theorem 1


def theorem1(
    empirical: float,
    complexity: float,
    *,
    rho: float,
    loss_bound: float,
    n_examples: int,
    delta: float = 0.05,
    margin: str = "additive",
    is_expected: bool = False,
    paper_constants: bool = False,
) -> Bound:
    """Theorem 1: any hypothesis set.

        empirical + 4 / rho * R + 3 M sqrt(log(2/delta) / 2m)       R the empirical complexity of the set
        empirical + 4 / rho * R +   M sqrt(log(1/delta) / 2m)       R its expectation (`is_expected`)

    For the multiplicative margin 4 M / rho. The paper has 4 sqrt(2), and log(1/delta) in both.
    """
    check_setting(rho, loss_bound, n_examples, delta, empirical, complexity)
    check_margin(margin)
    constant = (4.0 * math.sqrt(2.0) if paper_constants else 4.0) * (loss_bound if margin == "multiplicative" else 1.0)
    corrections = () if paper_constants else (SHARP_LIPSCHITZ, *(() if is_expected else (TWO_EVENTS,)))
    return Bound(
        "theorem 1" + (" (expected complexity)" if is_expected else ""),
        empirical,
        constant / rho * complexity,
        deviation_term(loss_bound, n_examples, delta, is_expected, paper_constants),
        rho,
        loss_bound,
        delta,
        (IID, BOUNDED, FIXED_CLASS, FIXED_MARGIN),
        corrections,
    )


def theorem1_any_margin(
    empirical: float,
    complexity: float,
    *,
    rho: float,
    max_rho: float = 1.0,
    ratio: float = 2.0,
    delta: float = 0.05,
    paper_constants: bool = False,
    n_examples: int,
    loss_bound: float,
    margin: str = "additive",
    is_expected: bool = False,
) -> Bound:
    """Theorem 1 for all rho in (0, max_rho] at once: rho may be chosen after seeing the sample.

    The theorem is applied to the classes {h / rho_k}, rho_k = max_rho * ratio**-k, k = 0, 1, ..., each with
    delta / ((k+1)(k+2)). For a rho between two of them the smaller one counts: the complexity term grows by a factor
    of at most `ratio`, which the paper leaves out, and delta by its sqrt(log log_2(2/rho) / m). For h / rho to be in
    that class the set must have t h for every h in it and 0 <= t <= 1, as balls have; `complexity` is that of such a
    set. (A single hypothesis has complexity 0, but its multiples have not.)
    """
    check_rho(rho)
    check_rho(max_rho)
    if rho > max_rho:
        raise InputError(f"`rho` must not exceed max_rho: expected at most {max_rho}, got {rho}.")
    check_ratio(ratio)
    setting = {"n_examples": n_examples, "loss_bound": loss_bound, "margin": margin, "is_expected": is_expected}
    if paper_constants:
        found = theorem1(empirical, complexity, rho=rho, delta=delta, paper_constants=True, **setting)  # type: ignore[arg-type]
        extra = math.sqrt(max(math.log(math.log2(2.0 * max_rho / rho)), 0.0) / n_examples)
        return replace(found, name="theorem 1, any margin", confidence=found.confidence + extra)
    k = max(0, math.ceil(math.log(max_rho / rho) / math.log(ratio) - 1e-12))
    check_delta(delta)
    found = theorem1(
        empirical, complexity, rho=max_rho * ratio**-k, delta=delta / ((k + 1) * (k + 2)), **setting  # type: ignore[arg-type]
    )  # fmt: skip
    return replace(
        found,
        name="theorem 1, any margin",
        rho=rho,
        delta=delta,
        assumptions=(
            IID,
            BOUNDED,
            FIXED_CLASS,
            STAR_SHAPED,
            f"rho is at most {max_rho:g}, a number fixed before the sample",
        ),
        corrections=(*found.corrections, "the complexity term pays for the grid of margins too"),
    )


def theorem1_any_norm(
    empirical: float,
    unit_complexity: float,
    norm: float,
    *,
    rho: float,
    loss_bound: float,
    n_examples: int,
    delta: float = 0.05,
    margin: str = "additive",
    ratio: float = 2.0,
    paper_constants: bool = False,
) -> Bound:
    """Theorem 1 for linear hypotheses of any norm and any rho at once: what a trained model needs.

    The theorem is applied at margin 1 to the balls of radius ratio**k, k any integer, each with
    delta * 2/3 / ((|k|+1)(|k|+2)). The hypothesis h / rho lies in the smallest ball that holds norm / rho.

    Parameters
    ----------
    empirical : margin loss at rho
    unit_complexity : empirical complexity of the ball of radius 1
    norm : of the weights
    """
    check_setting(rho, loss_bound, n_examples, delta, empirical, unit_complexity)
    check_ratio(ratio)
    if not 0.0 <= norm < math.inf:
        raise InputError(f"norm (of the weights) must be finite and not negative, got {norm!r}.")
    k = math.ceil(math.log(norm / rho) / math.log(ratio) - 1e-12) if norm > 0.0 else 0
    radius = ratio**k if norm > 0.0 else 0.0
    share = 2.0 / 3.0 / ((abs(k) + 1) * (abs(k) + 2))
    found = theorem1(
        empirical, radius * unit_complexity, rho=1.0, loss_bound=loss_bound, n_examples=n_examples,
        delta=delta * share, margin=margin, paper_constants=paper_constants,
    )  # fmt: skip
    return replace(
        found,
        name="theorem 1, any norm and margin",
        rho=rho,
        delta=delta,
        assumptions=(IID, BOUNDED, FIXED_FEATURES),
        corrections=(*found.corrections, "a grid of radii, since nothing fixed the norm in advance"),
    )


# ------------------------------------------------------------------------------------ weighted L1

# 1 + 2 int_1^inf 2^(-t^2) dt
WEIGHTED_L1_CONSTANT = 1.0 + math.sqrt(math.pi / math.log(2.0)) * math.erfc(math.sqrt(math.log(2.0)))


def weighted_l1(
    empirical: float,
    penalty: float,
    *,
    rho: float,
    loss_bound: float,
    n_examples: int,
    delta: float = 0.05,
    margin: str = "additive",
    ratio: float = 2.0,
) -> Bound:
    """The direct bound for the penalty sum_j r_j |w_j|, r_j = sqrt(2 v_j log(2 / pi_j)) / m, sum_j pi_j <= 1.

    The class {sum_j r_j |w_j| <= T} has complexity at most 1.51 T, by P(|V_j| > t m r_j) <= 2 (pi_j / 2)^{t^2}: no
    ensemble, no number of outputs. Any norm and margin at once, as `theorem1_any_norm`.
    """
    found = theorem1_any_norm(
        empirical, WEIGHTED_L1_CONSTANT, penalty, rho=rho, loss_bound=loss_bound, n_examples=n_examples, delta=delta,
        margin=margin, ratio=ratio,
    )  # fmt: skip
    return replace(
        found,
        name="weighted L1 (direct)",
        assumptions=(IID, BOUNDED, FIXED_WEIGHTS),
        corrections=(*found.corrections, "not in the paper: complexity weighted feature by feature"),
    )


# ------------------------------------------------------------------------------------ without complexity


def heldout(risk: float, *, loss_bound: float, n_examples: int, delta: float = 0.05) -> Bound:
    """Hoeffding's bound for a model that has never seen the sample: risk + M sqrt(log(1/delta) / 2m)."""
    check_setting(1.0, loss_bound, n_examples, delta, risk)
    deviation = loss_bound * math.sqrt(math.log(1.0 / delta) / (2 * n_examples))
    return Bound(
        "held-out sample", risk, 0.0, deviation, 0.0, loss_bound, delta,
        (IID, BOUNDED, UNSEEN), condition=UNSEEN,
    )  # fmt: skip


def concentration(
    *, radius: float, max_size: float, n_examples: int, delta: float = 0.05, max_count: float | None = None
) -> float:
    """How far the empirical complexity of {||w||_1 <= radius} lies from its mean, with probability 1 - delta.

    For indicators: 2 radius sup_x sqrt|F_x| max_a n_a(x) sqrt(log(2/delta) / 2m), n_a(x) the occurrences of an
    attribute in x, at most |F_x|. The paper's lemma bounds h where it needs h_f.
    """
    check_delta(delta)
    check_counts(n_examples, max_size=max_size, radius=radius)
    count = max_size if max_count is None else max_count
    return 2.0 * radius * math.sqrt(max_size) * count * math.sqrt(math.log(2.0 / delta) / (2 * n_examples))


def concentration_of_scores(
    *, score_bound: float, max_size: float, max_assignments: float, n_examples: int, delta: float = 0.05
) -> float:
    """How far the empirical complexity of any class lies from its mean, with probability 1 - delta: the paper's lemma.

    2 C sup_x sqrt|F_x| sum_f |Y_f| sqrt(log(2/delta) / 2m), where C bounds the scores h_f of single factors (the paper
    says h).

    Parameters
    ----------
    score_bound : C, the largest |h_f(x, y)| of any hypothesis, factor and assignment
    max_size : most factors |F_x| of an example
    max_assignments : most assignments of the factors of an example, sum_f |Y_f|
    """
    check_delta(delta)
    check_counts(n_examples, score_bound=score_bound, max_size=max_size, max_assignments=max_assignments)
    width = 2.0 * score_bound * math.sqrt(max_size) * max_assignments
    return width * math.sqrt(math.log(2.0 / delta) / (2 * n_examples))


def best_margin(bound_at: Callable[[float], Bound], rhos: Iterable[float]) -> Bound:
    """The smallest of a bound at many margins; legitimate for those that hold for all margins at once."""
    found = [bound_at(rho) for rho in rhos]
    if not found:
        raise InputError("best_margin needs at least one margin, got none.")
    return min(found, key=lambda bound: bound.total)


def margin_grid(norm: float, n: int = 60, widest: float = 1e3) -> list[float]:
    """Margins from norm / 10^6 to norm * `widest`, evenly in their logs; for `best_margin`."""
    scale = norm if norm > 0.0 else 1.0
    return [float(rho) for rho in np.geomspace(scale * 1e-6, scale * widest, n)]
