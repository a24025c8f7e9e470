"""What a bound on the risk consists of: its terms, its assumptions, and checks of its arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vcrf.complexity.margins import check_loss_bound, check_rho
from vcrf.errors import InputError

MARGINS = ("additive", "multiplicative")

IID = "the examples are independent draws from one distribution"
BOUNDED = "the loss lies between 0 and M for every example there is"
FIXED_CLASS = "the class of hypotheses was fixed before the sample was seen"
FIXED_MARGIN = "rho was fixed before the sample was seen"
STAR_SHAPED = "with every hypothesis the class has its multiples by numbers between 0 and 1, as balls have"

FIXED_FEATURES = "the features were fixed before the sample was seen; norm and margin were not"
LONGEST = (
    "no example is longer than the longest of the sample, which the number of outputs and the scores' range are of"
)

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


def deviation_term(loss_bound: float, m: int, delta: float, is_expected: bool, paper_constants: bool) -> float:
    """McDiarmid's term."""
    if is_expected:
        return loss_bound * math.sqrt(math.log(1.0 / delta) / (2 * m))
    events = 1.0 if paper_constants else 2.0
    return 3.0 * loss_bound * math.sqrt(math.log(events / delta) / (2 * m))


def check_delta(delta: float) -> None:
    """Refuse what is no probability of failure."""
    if not 0.0 < delta < 1.0:
        raise InputError(f"`delta` must be a probability between 0 and 1, that of a bound failing, got {delta!r}.")


def check_setting(rho: float, loss_bound: float, n_examples: int, delta: float, *terms: float) -> None:
    """Refuse arguments for which no bound is stated."""
    check_rho(rho)
    check_loss_bound(loss_bound)
    check_delta(delta)
    check_counts(n_examples)
    for term in terms:
        if not term >= 0.0:
            raise InputError(f"An empirical loss or a complexity must not be negative, got {term!r}.")


def check_counts(n_examples: int, **others: float) -> None:
    """Refuse no example, and what else is negative or not finite, by its name."""
    if not n_examples >= 1:
        raise InputError(f"n_examples must be at least 1, got {n_examples!r}.")
    for name, value in others.items():
        if not 0.0 <= value < math.inf:
            raise InputError(f"{name} must be finite and not negative, got {value!r}.")


def check_margin(margin: str) -> None:
    """Refuse a kind of margin that there is not."""
    if margin not in MARGINS:
        raise InputError(f"margin must be 'additive' or 'multiplicative', got {margin!r}.")


def check_ratio(ratio: float) -> None:
    """Refuse a grid of radii or margins that does not grow."""
    if not 1.0 < ratio < math.inf:
        raise InputError(f"ratio (of the grid) must be above 1, got {ratio!r}.")
