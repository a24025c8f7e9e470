"""The surrogates on one sentence: value and (sub)gradient from a lattice of scores and a loss automaton.

With s(y) the lattice's score, L(y) the loss and d(y) = s(y) - s(y_true), minus the margin of y:

    surrogate     sum form                               max form
    crf           log sum_y exp(L(y) + d(y))             log(1 + max exp(L(y) + d(y)))
    structboost   sum_y L(y) exp(d(y))                   max L(y) exp(d(y))
    exponential   sum exp(L(y) + d(y))                   max exp(L(y) + d(y))
    m3n                                                  max(0, max L(y) + d(y))
    structsvm                                            max(0, max L(y) (1 + d(y)))

Sums and maxima are over y != y_true, except that the sum of crf has all y (y_true adds the 1 of log(1 + ...)). Each is
convex in the scores and at least L of the lattice's best sequence. The sum of log(1 + exp(...)) over y has no lattice
form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.lattice import DenseLattice
from vcrf.lattice.lattice import sentence_loss
from vcrf.losses.automaton import LossAutomaton
from vcrf.types import Floats, Ints

# exp of more overflows.
_LOG_MAX = 709.0


@dataclass(frozen=True)
class SurrogateValue:
    """Value of a surrogate on one sentence, and its gradient with respect to the arcs' scores.

    Attributes
    ----------
    value : float
        Can be infinite where exp overflows; `log_value` is not.
    log_value : float
        Logarithm of the value.
    gradient : (n_positions, n_states, n_labels)
        A subgradient in the max forms. Sums over the arcs times features give the gradient of the weights.
    labels : (n_positions,) int64 or None
        In the max forms, a sequence that attains the maximum.
    expected_loss, entropy, probability : float
        For crf in sum form, of q(y) proportional to exp(L(y) + s(y)): the mean of L, the entropy, q(y_true).
    """

    value: float
    log_value: float
    gradient: Floats
    labels: Ints | None = None
    expected_loss: float = math.nan
    entropy: float = math.nan
    probability: float = math.nan


def crf(lattice: DenseLattice, automaton: LossAutomaton, y_true: npt.ArrayLike, form: str = "sum") -> SurrogateValue:
    """Softmax margin, the paper's VCRF; see the table above.

    Parameters
    ----------
    lattice : the scores
    automaton : of the loss L(., y_true)
    y_true : (n_positions,) numbers of labels
    form : "sum" or "max"
    """
    truth = _checked(lattice, automaton, y_true)
    if _is_max(form):
        best = _best_wrong(lattice, automaton, truth)
        value = float(np.logaddexp(0.0, best.value))
        # The slope of log(1 + e^x), not 1 - 1/(1 + e^x), which loses its digits where it is small.
        slope = math.exp(best.value - value) if best.value > -math.inf else 0.0
        return SurrogateValue(value, _log(value), slope * best.gradient, best.labels)
    score = lattice.score(truth)
    log_z, posterior, expected_loss = lattice.with_loss(automaton)
    # The truth is one of the y, and has no loss; huge scores round by more.
    value = max(log_z - score, 0.0)
    expected_score = float(np.sum(posterior * np.where(posterior > 0.0, _existing(lattice), 0.0)))
    return SurrogateValue(
        value,
        _log(value),
        posterior - _arcs_of(lattice, truth),
        expected_loss=expected_loss,
        entropy=log_z - expected_loss - expected_score,
        probability=math.exp(-value),
    )


def structboost(
    lattice: DenseLattice, automaton: LossAutomaton, y_true: npt.ArrayLike, form: str = "sum"
) -> SurrogateValue:
    """Voted Structured Boosting; arguments as for `crf`."""
    truth = _checked(lattice, automaton, y_true)
    valued = automaton.with_values()
    log_loss = valued.log_losses()
    if _is_max(form):
        best = _best(lattice, valued, truth, log_loss, np.ones(len(log_loss)))
        return _exponential_of(best)
    log_z, posterior, _ = lattice.with_loss(valued, log_loss)
    if log_z == -math.inf:
        return SurrogateValue(0.0, -math.inf, np.zeros_like(lattice.arcs))
    log_value = log_z - lattice.score(truth)
    return _exponential_of(SurrogateValue(log_value, math.nan, posterior - _arcs_of(lattice, truth)))


def exponential(
    lattice: DenseLattice, automaton: LossAutomaton, y_true: npt.ArrayLike, form: str = "sum"
) -> SurrogateValue:
    """Exponential margin; arguments as for `crf`."""
    truth = _checked(lattice, automaton, y_true)
    if _is_max(form):
        return _exponential_of(_best_wrong(lattice, automaton, truth))
    log_z, posterior, _ = lattice.with_loss(automaton.without(truth))
    if log_z == -math.inf:
        return SurrogateValue(0.0, -math.inf, np.zeros_like(lattice.arcs))
    log_value = log_z - lattice.score(truth)
    return _exponential_of(SurrogateValue(log_value, math.nan, posterior - _arcs_of(lattice, truth)))


def m3n(lattice: DenseLattice, automaton: LossAutomaton, y_true: npt.ArrayLike) -> SurrogateValue:
    """Margin rescaling (max-margin Markov networks): loss-augmented decoding; arguments as for `crf`."""
    truth = _checked(lattice, automaton, y_true)
    found = _best(lattice, automaton, truth, automaton.final, np.ones(len(automaton.final)))
    return _not_below_zero(found, truth)


def structsvm(lattice: DenseLattice, automaton: LossAutomaton, y_true: npt.ArrayLike) -> SurrogateValue:
    """Slack rescaling, exact: the best score for every value of the loss; arguments as for `crf`."""
    truth = _checked(lattice, automaton, y_true)
    valued = automaton.with_values()
    loss = np.maximum(valued.final + valued.init, 0.0)
    return _not_below_zero(_best(lattice, valued, truth, loss, loss), truth)


_SURROGATES: dict[str, Callable[..., SurrogateValue]] = {
    "crf": crf,
    "structboost": structboost,
    "exponential": exponential,
    "m3n": m3n,
    "structsvm": structsvm,
}


def evaluate(
    surrogate: str, lattice: DenseLattice, automaton: LossAutomaton, y_true: npt.ArrayLike, form: str | None = None
) -> SurrogateValue:
    """A surrogate by name: crf, structboost, exponential (form "sum" or "max"), m3n or structsvm (form "max")."""
    if surrogate not in _SURROGATES:
        raise InputError(f"`surrogate={surrogate!r}`: expected one of {', '.join(_SURROGATES)}.")
    if surrogate in ("m3n", "structsvm"):
        if form not in (None, "max"):
            raise InputError(f"{surrogate} has only the form 'max', got {form!r}.")
        return _SURROGATES[surrogate](lattice, automaton, y_true)
    return _SURROGATES[surrogate](lattice, automaton, y_true, form or "sum")


# ---- maxima ----


def _best(
    lattice: DenseLattice, automaton: LossAutomaton, truth: Ints, offset: Floats, slope: Floats
) -> SurrogateValue:
    """Largest offset + slope * (cost + score - score of the truth), both by last state, with its gradient."""
    steps, loss = lattice.steps, sentence_loss(automaton)
    best = kernels.log_domain.best_scores(steps, loss)
    last = best[-len(steps.size) * len(loss.final) :].reshape(-1, len(loss.final)).T
    score = lattice.score(truth)
    reachable = last > -np.inf
    with np.errstate(invalid="ignore"):
        ends = np.where(reachable, offset[:, None] + slope[:, None] * (last - score), -np.inf)
    q, s = np.unravel_index(int(np.argmax(ends)), ends.shape)
    value = float(ends[q, s])
    if value == -math.inf:
        return SurrogateValue(value, math.nan, np.zeros_like(lattice.arcs), truth)
    labels = kernels.log_domain.trace(steps, loss, best, int(q), int(s))
    gradient = slope[q] * (_arcs_of(lattice, labels) - _arcs_of(lattice, truth))
    return SurrogateValue(value, math.nan, gradient, labels)


def _best_wrong(lattice: DenseLattice, automaton: LossAutomaton, truth: Ints) -> SurrogateValue:
    """Largest loss + score - score of the truth over the sequences that are not the truth; -inf if there is none."""
    others = automaton.without(truth)
    return _best(lattice, others, truth, others.final, np.ones(len(others.final)))


# ---- arguments and small things ----


def _checked(lattice: DenseLattice, automaton: LossAutomaton, y_true: npt.ArrayLike) -> Ints:
    """Numbers of the true labels; refuses a loss that is not 0 at the truth, negative or infinite."""
    if (automaton.length, automaton.n_labels) != (lattice.n_positions, lattice.n_labels):
        raise InputError(
            f"The lattice has {lattice.n_positions} positions and {lattice.n_labels} labels, the loss automaton "
            f"{automaton.length} and {automaton.n_labels}. Build it from the sentence's own labels."
        )
    truth = lattice._checked_labels(y_true)
    automaton.check(truth)
    if lattice.score(truth) == -math.inf:
        raise InputError("The true labels are forbidden (-inf) in the lattice: a surrogate needs their score.")
    return truth


def _arcs_of(lattice: DenseLattice, labels: Ints) -> Floats:
    """1 on the arcs of a label sequence."""
    out = np.zeros_like(lattice.arcs)
    n_states, s = out.shape[1], 0
    for t, label in enumerate(labels.tolist()):
        out[t, s, label] = 1.0
        s = (s * lattice.n_labels + label) % n_states
    return out


def _existing(lattice: DenseLattice) -> Floats:
    """Arcs with zeros in place of what is not finite; these have no posterior."""
    return np.where(np.isfinite(lattice.arcs), lattice.arcs, 0.0)


def _not_below_zero(found: SurrogateValue, truth: Ints) -> SurrogateValue:
    if found.value > 0.0:
        return SurrogateValue(found.value, _log(found.value), found.gradient, found.labels)
    return SurrogateValue(0.0, -math.inf, np.zeros_like(found.gradient), truth)


def _exponential_of(best: SurrogateValue) -> SurrogateValue:
    """Exponential of a value, with its gradient; where it overflows, infinite but on arcs that do not matter."""
    value = math.exp(best.value) if best.value < _LOG_MAX else math.inf
    gradient = np.multiply(value, best.gradient, out=np.zeros_like(best.gradient), where=best.gradient != 0.0)
    return SurrogateValue(value, best.value, gradient, best.labels)


def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf


def _is_max(form: str) -> bool:
    if form not in ("sum", "max"):
        raise InputError(f"`form` must be 'sum' or 'max', got {form!r}.")
    return form == "max"
