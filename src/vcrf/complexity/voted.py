"""Theorem 3: bounds for voted ensembles, convex combinations of hypotheses of several families; see `bounds`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vcrf.complexity.bound import BOUNDED, FIXED_FEATURES, IID, Bound, check_ratio, check_setting, deviation_term
from vcrf.complexity.bounds import theorem1
from vcrf.errors import InputError


def theorem3(
    empirical: float,
    complexity: float,
    *,
    rho: float,
    loss_bound: float,
    n_examples: int,
    n_families: int,
    log_n_outputs: float,
    score_range: float = 2.0,
    delta: float = 0.05,
    margin: str = "additive",
    is_expected: bool = False,
    paper_constants: bool = False,
) -> Bound:
    """Theorem 3: convex combinations of hypotheses of p families.

    Parameters
    ----------
    empirical : margin loss with tau = 1
    complexity : sum_t alpha_t R(H_{k_t}), weighted by the mixture
    n_families : p; with one family there is nothing to vote on and the bound is Theorem 1
    log_n_outputs : log c, the log of the number of outputs: l log(n_labels) for l labels
    score_range : width R of the range of h_t(x, y) - h_t(x, y'), 2 sup|h_t(x, y) - h_t(x, y')|; the paper takes 2
    """
    if n_families < 1:
        raise InputError(f"n_families must be at least 1, got {n_families}.")
    found = theorem1(
        empirical, complexity, rho=rho, loss_bound=loss_bound, n_examples=n_examples, delta=delta, margin=margin,
        is_expected=is_expected, paper_constants=paper_constants,
    )  # fmt: skip
    name = "theorem 3" + (" (expected complexity)" if is_expected else "")
    if n_families == 1:
        note = "one family: log p = 0 leaves the printed formula undefined; a convex hull has its set's complexity"
        return replace(found, name=name, corrections=(*found.corrections, note))
    confidence = voting_term(
        rho=rho, loss_bound=loss_bound, n_examples=n_examples, n_families=n_families, log_n_outputs=log_n_outputs,
        score_range=score_range, delta=delta, is_expected=is_expected, paper_constants=paper_constants,
    )  # fmt: skip
    notes = () if paper_constants else (
        "M where 3M (3M where 9M) is printed; the smallest term over n, compositions counted instead of p^n",
        f"scores may differ by {score_range / 2:g}; the paper takes 1",
    )  # fmt: skip
    assumptions = (*found.assumptions, _bounded_scores(score_range))
    return replace(
        found, name=name, confidence=confidence, assumptions=assumptions, corrections=found.corrections + notes
    )


def theorem3_any_norm(
    empirical: float,
    norms: Sequence[float],
    unit_complexities: Sequence[float],
    *,
    rho: float,
    loss_bound: float,
    n_examples: int,
    log_n_outputs: float,
    max_count: float,
    delta: float = 0.05,
    margin: str = "additive",
    ratio: float = 2.0,
    paper_constants: bool = False,
) -> Bound:
    """Theorem 3 for linear hypotheses of any L1 norm and any rho at once.

    The families are {+-radius psi_j}, j a feature of family k, for the radii of `theorem1_any_norm`; h / rho is a
    convex combination of them with weights ||w_k||_1 / (rho radius); the rest cancels out in the simplest family.

    Parameters
    ----------
    empirical : margin loss at rho with tau = 1
    norms : ||w_k||_1 of each family
    unit_complexities : empirical complexity of each family's unit ball
    max_count : most occurrences of a feature in one example; scores of one hypothesis differ by radius * max_count
    """
    check_setting(rho, loss_bound, n_examples, delta, empirical, *unit_complexities, *norms)
    check_ratio(ratio)
    norm = float(sum(norms)) / rho
    k = math.ceil(math.log(norm) / math.log(ratio) - 1e-12) if norm > 0.0 else 0
    radius = ratio**k
    spent = sum(n * r for n, r in zip(norms, unit_complexities, strict=True)) / rho
    complexity = spent + max(radius - norm, 0.0) * min(unit_complexities, default=0.0)
    score_range = 2.0 if paper_constants else 2.0 * radius * max(max_count, 1.0)
    found = theorem3(
        empirical, complexity, rho=1.0, loss_bound=loss_bound, n_examples=n_examples, n_families=len(norms),
        log_n_outputs=log_n_outputs, score_range=score_range,
        delta=delta * 2.0 / 3.0 / ((abs(k) + 1) * (abs(k) + 2)), margin=margin, paper_constants=paper_constants,
    )  # fmt: skip
    return replace(
        found,
        name="theorem 3, any norm and margin",
        rho=rho,
        delta=delta,
        assumptions=(IID, BOUNDED, FIXED_FEATURES, _bounded_scores(score_range)),
        corrections=(*found.corrections, "a grid of radii, since nothing fixed the norms in advance"),
    )


def _bounded_scores(score_range: float) -> str:
    return f"no difference of scores of one hypothesis exceeds {score_range / 2:g}"


def voting_term(
    *, rho: float, loss_bound: float, n_examples: int, n_families: int, log_n_outputs: float, score_range: float = 2.0,
    delta: float = 0.05, is_expected: bool = False, paper_constants: bool = False,
) -> float:  # fmt: skip
    """The term C(rho, M, c, m, p) of Theorem 3.

        min_n  M c exp(-n rho^2 / 2R^2) + a M sqrt((log binom(p+n-1, p-1) + log(b n (n+1) / delta)) / 2m)

    with a = 1, b = 1 for the expected and a = 3, b = 2 for the empirical complexity.
    """
    check_setting(rho, loss_bound, n_examples, delta)
    if not 0.0 < score_range < math.inf:
        raise InputError(f"score_range must be positive: expected a bound on differences of scores, got {score_range}.")
    if not 0.0 <= log_n_outputs < math.inf:
        raise InputError(f"log_n_outputs must be finite and not negative, got {log_n_outputs!r}.")
    if n_families == 1:
        return deviation_term(loss_bound, n_examples, delta, is_expected, paper_constants)
    if paper_constants:
        return _printed_voting_term(rho, loss_bound, n_examples, n_families, log_n_outputs, delta, is_expected)
    from scipy.special import gammaln

    n = np.unique(np.round(np.geomspace(1.0, 1e12, 2000)))
    log_compositions = gammaln(n_families + n) - gammaln(n_families) - gammaln(n + 1.0)
    a, b = (1.0, 1.0) if is_expected else (3.0, 2.0)
    approximation = np.exp(np.minimum(log_n_outputs - n * min(rho / score_range, 1e100) ** 2 / 2.0, 700.0))
    deviation = np.sqrt((log_compositions + np.log(b * n * (n + 1.0) / delta)) / (2 * n_examples))
    return loss_bound * float(np.min(approximation + a * deviation))


def _printed_voting_term(
    rho: float, loss_bound: float, m: int, p: int, log_c: float, delta: float, is_expected: bool
) -> float:
    log_p = math.log(p)
    n = max(1, math.ceil(4.0 / rho**2 * (2.0 * log_c + math.log(rho**2 * m / (4.0 * log_p)))))
    inner = n * log_p / m + math.log(2.0 / delta) / (2 * m)
    factor = 3.0 if is_expected else 9.0
    return 2.0 * loss_bound / rho * math.sqrt(log_p / m) + factor * loss_bound * math.sqrt(inner)
