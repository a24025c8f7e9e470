"""Bounds on the risk, term by term.

    R(h) <= empirical margin loss + complexity term + confidence term      with probability at least 1 - delta

Each function is pure: numbers in, a `Bound` out that names its assumptions and what of the paper it corrects.
`paper_constants=True` gives the constants as printed, some of which are wrong; see docs/bounds.md. m examples, a loss
between 0 and M (`loss_bound`), margin rho. In all of them `empirical` is the margin loss of the same kind and margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vcrf.complexity.closed import l1_formula
from vcrf.complexity.margins import check_loss_bound, check_rho
from vcrf.errors import InputError

MARGINS = ("additive", "multiplicative")

IID = "the examples are independent draws from one distribution"
BOUNDED = "the loss lies between 0 and M for every example there is"
FIXED_CLASS = "the class of hypotheses was fixed before the sample was seen"
FIXED_MARGIN = "rho was fixed before the sample was seen"
STAR_SHAPED = "with every hypothesis the class has its multiples by numbers between 0 and 1, as balls have"

UNSEEN = "the sample had no part in training or in choosing the model"
FIXED_WEIGHTS = "the r_j were fixed before the sample; taken from the sample they are estimates"
ESTIMATED = "the complexity is as estimated; the draws of signs leave an interval around it"

SHARP_LIPSCHITZ = "4 instead of 4 sqrt(2): a difference of scores has gradient norm sqrt(2|F|), not 2 sqrt|F|"
TWO_EVENTS = "log(2/delta) instead of log(1/delta): two events, each at delta/2"


@dataclass(frozen=True)
class Bound:
    """One upper bound on the risk and its parts.

    Attributes
    ----------
    name : str
    empirical, complexity, confidence : the terms
    rho : margin of the empirical term; 0 for a bound that has none
    loss_bound : M
    delta : the bound fails with at most this probability
    assumptions : what it rests on
    corrections : where it departs from the paper, and why
    condition : an assumption that a user's sample may well break: "the sample had no part ..."; empty if there is none
    """

    name: str
    empirical: float
    complexity: float
    confidence: float
    rho: float
    loss_bound: float
    delta: float
    assumptions: tuple[str, ...] = ()
    corrections: tuple[str, ...] = ()
    condition: str = ""

    @property
    def total(self) -> float:
        """Sum of the terms."""
        return self.empirical + self.complexity + self.confidence

    @property
    def is_vacuous(self) -> bool:
        """Whether it says no more than that the loss is at most M."""
        return not self.total < self.loss_bound


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
    _check_margin(margin)
    constant = (4.0 * math.sqrt(2.0) if paper_constants else 4.0) * (loss_bound if margin == "multiplicative" else 1.0)
    corrections = () if paper_constants else (SHARP_LIPSCHITZ, *(() if is_expected else (TWO_EVENTS,)))
    return Bound(
        "theorem 1" + (" (expected complexity)" if is_expected else ""),
        empirical,
        constant / rho * complexity,
        _deviation(loss_bound, n_examples, delta, is_expected, paper_constants),
        rho,
        loss_bound,
        delta,
        (IID, BOUNDED, FIXED_CLASS, FIXED_MARGIN),
        corrections,
    )


def _deviation(loss_bound: float, m: int, delta: float, is_expected: bool, paper_constants: bool) -> float:
    """McDiarmid's term."""
    if is_expected:
        return loss_bound * math.sqrt(math.log(1.0 / delta) / (2 * m))
    events = 1.0 if paper_constants else 2.0
    return 3.0 * loss_bound * math.sqrt(math.log(events / delta) / (2 * m))


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
        raise InputError(f"rho must not exceed max_rho: expected at most {max_rho}, got {rho}.")
    _check_ratio(ratio)
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
    _check_ratio(ratio)
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
        assumptions=(IID, BOUNDED, "the features were fixed before the sample was seen; norm and margin were not"),
        corrections=(*found.corrections, "a grid of radii, since nothing fixed the norm in advance"),
    )


# ------------------------------------------------------------------------------------ corollaries


def linear_l1(
    empirical: float, *, radius: float, r_inf: float, sparsity: float, n_features: int, rho: float, loss_bound: float,
    n_examples: int, delta: float = 0.05, margin: str = "additive", paper_constants: bool = False,
) -> Bound:  # fmt: skip
    """Corollary for {||w||_1 <= radius}: complexity radius r_inf sqrt(2 s log 2N) / m."""
    _check_counts(n_examples, sparsity=sparsity, n_features=n_features, r_inf=r_inf)
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
    _check_counts(n_examples, r_2=r_2, total_size=total_size)
    complexity = radius * r_2 * math.sqrt(total_size) / n_examples
    found = theorem1(
        empirical, complexity, rho=rho, loss_bound=loss_bound, n_examples=n_examples, delta=delta, margin=margin,
        paper_constants=paper_constants,
    )  # fmt: skip
    return replace(found, name="corollary for H_2")


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
    _check_counts(n_examples, n_classes=n_classes, r_2=r_2)
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


# ------------------------------------------------------------------------------------ voted ensembles


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
    assumptions = (*found.assumptions, f"no difference of scores of one hypothesis exceeds {score_range / 2:g}")
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
    _check_ratio(ratio)
    norm = float(sum(norms)) / rho
    k = math.ceil(math.log(norm) / math.log(ratio) - 1e-12) if norm > 0.0 else 0
    radius = ratio**k
    spent = sum(n * r for n, r in zip(norms, unit_complexities, strict=True)) / rho
    complexity = spent + max(radius - norm, 0.0) * min(unit_complexities, default=0.0)
    found = theorem3(
        empirical, complexity, rho=1.0, loss_bound=loss_bound, n_examples=n_examples, n_families=len(norms),
        log_n_outputs=log_n_outputs, score_range=2.0 if paper_constants else 2.0 * radius * max(max_count, 1.0),
        delta=delta * 2.0 / 3.0 / ((abs(k) + 1) * (abs(k) + 2)), margin=margin, paper_constants=paper_constants,
    )  # fmt: skip
    return replace(found, name="theorem 3, any norm and margin", rho=rho, delta=delta)


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
        return _deviation(loss_bound, n_examples, delta, is_expected, paper_constants)
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
    _check_counts(n_examples, max_size=max_size, radius=radius)
    count = max_size if max_count is None else max_count
    return 2.0 * radius * math.sqrt(max_size) * count * math.sqrt(math.log(2.0 / delta) / (2 * n_examples))


def best_margin(bound_at: Callable[[float], Bound], rhos: Iterable[float]) -> Bound:
    """The smallest of a bound at many margins; legitimate for those that hold for all margins at once."""
    found = [bound_at(rho) for rho in rhos]
    if not found:
        raise InputError("best_margin needs at least one margin, got none.")
    return min(found, key=lambda bound: bound.total)


# ------------------------------------------------------------------------------------ checks


def check_delta(delta: float) -> None:
    """Refuse what is no probability of failure."""
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta must be a probability between 0 and 1, that of a bound failing, got {delta!r}.")


def check_setting(rho: float, loss_bound: float, n_examples: int, delta: float, *terms: float) -> None:
    """Refuse arguments for which no bound is stated."""
    check_rho(rho)
    check_loss_bound(loss_bound)
    check_delta(delta)
    _check_counts(n_examples)
    for term in terms:
        if not term >= 0.0:
            raise InputError(f"An empirical loss or a complexity must not be negative, got {term!r}.")


def _check_counts(n_examples: int, **others: float) -> None:
    if not n_examples >= 1:
        raise InputError(f"n_examples must be at least 1, got {n_examples!r}.")
    for name, value in others.items():
        if not 0.0 <= value < math.inf:
            raise InputError(f"{name} must be finite and not negative, got {value!r}.")


def _check_margin(margin: str) -> None:
    if margin not in MARGINS:
        raise InputError(f"margin must be 'additive' or 'multiplicative', got {margin!r}.")


def _check_ratio(ratio: float) -> None:
    if not 1.0 < ratio < math.inf:
        raise InputError(f"ratio (of the grid) must be above 1, got {ratio!r}.")


def margin_grid(norm: float, n: int = 60, widest: float = 1e3) -> list[float]:
    """Margins from norm / 10^6 to norm * `widest`, evenly in their logs; for `best_margin`."""
    scale = norm if norm > 0.0 else 1.0
    return [float(rho) for rho in np.geomspace(scale * 1e-6, scale * widest, n)]
