"""Votes whose weights are learnt: the constrained form of voted risk minimisation, with its weights on the simplex.

    min  F(alpha) = (1/m) sum_i log sum_y exp(loss(y, y_i) + h(x_i, y) - h(x_i, y_i)) + strength sum_t alpha_t r_t
    over alpha_t >= 0, sum_t alpha_t = 1

with h = sum_t alpha_t h_t the vote of fitted taggers, and r_t the complexity of each. F is convex. At any alpha it is
at most g . alpha - min_t g_t above its minimum, g its gradient: that is the gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vcrf.arguments.inputs import as_sentences, check_lengths, label_numbers, listed_labels, read_text
from vcrf.errors import InputError
from vcrf.estimators.voting import combine, vote
from vcrf.lattice import DenseLattice
from vcrf.losses import Loss, LossAutomaton, get_loss
from vcrf.surrogates.sentence import crf
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.estimators import SequenceEstimator

_STEPS = 200


class _Example(NamedTuple):
    """Arcs of every tagger on a sentence, (n_taggers, n_positions, n_states, n_labels), its truth and its loss."""

    arcs: Floats
    truth: Ints
    automaton: LossAutomaton


def learn_vote(
    taggers: Sequence[SequenceEstimator],
    X: Iterable[Any],
    y: Iterable[Any],
    *,
    loss: str | Loss | None = None,
    strength: float = 0.0,
    complexities: Sequence[float] | None = None,
) -> Any:
    """Vote with the weights that are best on labelled sentences, which should be others than the taggers learnt from.

    Parameters
    ----------
    taggers : fitted estimators
        As for `vote`.
    X, y : sentences and their labels
    loss : inside the surrogate, as for `VCRF`; None is none
    strength : float
        Of the penalty on the taggers' complexities.
    complexities : one number a tagger, optional
        The r_t; all 0 by default.

    Returns
    -------
    A tagger as `vote` returns it, with `vote_weights_`, `vote_objective_` and `vote_gap_`

    Examples
    --------
    >>> from vcrf import VCRF, learn_vote
    >>> X, y = [["a", "b"], ["b", "a"]], [["A", "B"], ["B", "A"]]
    >>> voted = learn_vote([VCRF(tags=tags).fit(X, y) for tags in (1, 2)], X, y)
    >>> round(float(voted.vote_weights_.sum()), 9), bool(voted.vote_gap_ < 1e-3)
    (1.0, True)
    """
    n = len(taggers)
    slope = strength * _checked(complexities, n, strength)
    examples = _read(taggers, as_sentences(X), listed_labels(y), get_loss(loss))
    alpha = _minimise(examples, slope, n)
    objective, gradient = _value(examples, slope, alpha)
    voted = vote(taggers, alpha.tolist())
    voted.vote_weights_, voted.vote_objective_ = alpha, objective
    voted.vote_gap_ = float(max(gradient @ alpha - gradient.min(), 0.0))
    return voted


def _checked(complexities: Sequence[float] | None, n: int, strength: float) -> Floats:
    if not 0.0 <= strength < np.inf:
        raise InputError(f"strength must be a finite number that is not negative, got {strength!r}.")
    given = np.zeros(n) if complexities is None else np.asarray(complexities, np.float64)
    if given.shape != (n,) or not np.all(np.isfinite(given)) or np.any(given < 0.0):
        raise InputError(f"A vote of {n} taggers needs {n} complexities that are not negative: got {complexities!r}.")
    return given


def _read(
    taggers: Sequence[SequenceEstimator], sentences: list[Sequence[Any]], labels: list[Any], loss: Loss | None
) -> list[_Example]:
    """Scores of every tagger alone, all over the labels of the vote."""
    check_lengths(sentences, labels)
    models = [tagger._model() for tagger in taggers]
    if not models:
        raise InputError("A vote needs at least one fitted tagger, got none.")
    alone = [combine(models, np.eye(len(models))[t]) for t in range(len(models))]
    classes = alone[0].labels
    unknown = sorted({str(z) for sentence in labels for z in sentence} - {str(z) for z in classes})
    if unknown:
        raise InputError(f"The sentences have labels that no tagger knows: {', '.join(unknown)}. Leave them out.")
    text = read_text(sentences)
    scored = [model.potentials(text) for model in alone]
    numbers = np.split(label_numbers(labels, classes).astype(np.int64), np.cumsum([len(s) for s in labels])[:-1])
    loss = None if loss is None else loss.for_labels(classes)
    return [_example(i, scored, truth, loss) for i, truth in enumerate(numbers) if len(truth)]


def _example(i: int, scored: Sequence[Any], truth: Ints, loss: Loss | None) -> _Example:
    lattices = [potentials.lattice(i) for potentials in scored]
    order, n_labels = max(lattice.order for lattice in lattices), lattices[0].n_labels
    arcs = np.stack([lattice.to_order(order).arcs for lattice in lattices])
    shape = len(truth), n_labels
    none = LossAutomaton(n_labels, np.arange(len(truth) + 2), np.zeros(shape, np.int64), np.zeros(shape), np.zeros(1))
    return _Example(arcs, truth, none if loss is None else loss.automaton(truth, n_labels))


def _value(examples: Sequence[_Example], slope: Floats, alpha: Floats) -> tuple[float, Floats]:
    """F and its gradient."""
    value, gradient, m = float(slope @ alpha), slope.copy(), len(examples)
    for example in examples:
        n_labels = example.arcs.shape[-1]
        order = 1 if example.arcs.shape[2] == 1 else round(np.log(example.arcs.shape[2]) / np.log(n_labels)) + 1
        lattice = DenseLattice(np.tensordot(alpha, example.arcs, 1), n_labels, order)
        found = crf(lattice, example.automaton, example.truth)
        value += found.value / m
        gradient += np.tensordot(example.arcs, found.gradient, 3) / m
    return value, gradient


def _minimise(examples: Sequence[_Example], slope: Floats, n: int) -> Floats:
    """The best weights, on the simplex."""
    from scipy.optimize import minimize

    start = np.full(n, 1.0 / n)
    if n == 1 or not examples:
        return start
    found = minimize(
        lambda alpha: _value(examples, slope, alpha), start, jac=True, method="SLSQP", bounds=[(0.0, 1.0)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1.0, "jac": lambda a: np.ones(len(a))},
        options={"maxiter": _STEPS, "ftol": 1e-12},
    )  # fmt: skip
    alpha = np.maximum(found.x, 0.0)
    return np.asarray(alpha / alpha.sum())
