"""Why a token has its label: the features that decide between the best sequence and the best one without it.

For token t let y be the best sequence and y' the best of those with another label at t; the label of y' at t is
the runner-up. Every feature (attribute at a position x tag pattern) that occurs in one of them and not in the other
contributes its weight, with a minus if it is in y':

    score(y) - score(y') = sum of the contributions

y' may differ from y at other tokens too: their features are listed with their positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from vcrf.arguments.inputs import read_text
from vcrf.errors import InputError
from vcrf.families.text import Text
from vcrf.labelling.tagger import Tagger
from vcrf.lattice import Lattice
from vcrf.model import Model
from vcrf.problem import Components
from vcrf.types import Bools, Floats, Ints, Label


class Contribution(NamedTuple):
    """What one feature adds to the difference of scores.

    Parameters
    ----------
    family, attribute : str
    position : int
        Token where the attribute is, and where the tag pattern ends.
    labels : tuple of labels
        The tag pattern, the oldest label first.
    value : float
        Weight times the attribute's value; negative if the feature speaks for the runner-up.
    """

    family: str
    attribute: str
    position: int
    labels: tuple[Label, ...]
    value: float


@dataclass(frozen=True)
class TokenExplanation:
    """Why a token has its label.

    Attributes
    ----------
    label, probability : of the best sequence at this token, and its posterior there
    runner_up, runner_up_probability : label of the best sequence that differs here; None if only one label is possible
    runner_up_sequence : that sequence
    difference : score of the best sequence less that of the other one; never negative
    contributions : the largest first; they sum to the difference
    known : labels that the model's known labels leave to the word; None if all
    """

    token: object
    label: Label
    probability: float
    runner_up: Label | None
    runner_up_probability: float
    runner_up_sequence: list[Label]
    difference: float
    contributions: list[Contribution]
    known: tuple[Label, ...] | None = None

    def by_family(self) -> dict[str, float]:
        """Sum of the contributions of each family, the largest first."""
        families: dict[str, list[float]] = {}
        for contribution in self.contributions:
            families.setdefault(contribution.family, []).append(contribution.value)
        sums = {family: math.fsum(values) for family, values in families.items()}
        return dict(sorted(sums.items(), key=lambda item: -abs(item[1])))


def explain(
    tagger: Tagger,
    sentence: Sequence[object],
    positions: Sequence[int] | None = None,
    allowed: Sequence[Any] | None = None,
) -> list[TokenExplanation]:  # fmt: skip
    """Explain the label of every token of a sentence, or of some. The time of all grows with the square of its length.

    Parameters
    ----------
    tagger : a fitted estimator, or what `load_tagger` reads
        Its constraints hold for both sequences.
    sentence : sequence of tokens, of the kind the model was trained on
    positions : tokens to explain, from 0; None means all
    allowed : optional
        One entry a token: None, a label (forced) or the labels that may stand there. It holds for both sequences.

    Returns
    -------
    list of TokenExplanation
        One a token; none for an empty sentence.
    """
    chosen = range(len(sentence)) if positions is None else positions
    if any(not 0 <= t < len(sentence) for t in chosen):
        raise InputError(f"A position is a token from 0 to {len(sentence) - 1}: got {list(chosen)}.")
    if not len(sentence):
        return []
    ((_, scores),) = tagger._scored([sentence], None, None if allowed is None else [allowed])
    lattice = scores.lattice(0)
    best, _ = lattice.viterbi()
    features = _Features(tagger.model_, read_text([sentence]))
    marginals = lattice.label_marginals()
    known = _known_labels(tagger.model_, sentence)
    return [
        replace(_explain_token(t, sentence[t], features, lattice, best, marginals[t]), known=known[t]) for t in chosen
    ]


def _known_labels(model: Model, sentence: Sequence[object]) -> list[tuple[Label, ...] | None]:
    """The labels that each word may have, None for all."""
    if model.known is None:
        return [None] * len(sentence)
    masks = model.known.masks(read_text([sentence]))
    return [None if mask.all() else tuple(model.labels[b] for b in np.flatnonzero(mask)) for mask in masks]


def _explain_token(
    t: int, token: object, features: _Features, lattice: Lattice, best: Ints, marginals: Floats
) -> TokenExplanation:
    names, label = features.model.labels, best[t]
    if not np.any(np.delete(marginals, label) > 0.0):
        return TokenExplanation(token, names[label], 1.0, None, 0.0, [], 0.0, [])
    other = _best_without(lattice, t, label)
    found = features.contributions(best, other)
    return TokenExplanation(
        token=token,
        label=names[label],
        probability=float(marginals[label]),
        runner_up=names[other[t]],
        runner_up_probability=float(marginals[other[t]]),
        runner_up_sequence=[names[b] for b in other],
        # Not the lattice's scores: their rounding is not that of the contributions.
        difference=math.fsum(contribution.value for contribution in found),
        contributions=found,
    )


def _best_without(lattice: Lattice, t: int, label: int) -> Ints:
    """Best sequence whose label at t is another one."""
    allowed = np.ones((lattice.n_positions, lattice.n_labels), bool)
    allowed[t, label] = False
    return lattice.allow(allowed).viterbi()[0]


class _Features:
    """Features of one sentence: at each position the attributes that have weights."""

    def __init__(self, model: Model, text: Text) -> None:
        self.model = model
        self.at: list[list[tuple[int, float]]] = [[] for _ in range(text.n_tokens)]
        for position, row, value in model.occurrences(text):
            self.at[position].append((row, value))

    def contributions(self, best: Ints, other: Ints) -> list[Contribution]:
        """Features in one of two sequences and not in the other, the largest first."""
        found = []
        for t in self._touched(best != other):
            ours, theirs = self._occurring(best, t), self._occurring(other, t)
            for sign, mine, yours in ((1.0, ours, theirs), (-1.0, theirs, ours)):
                found += [self._contribution(t, *key, sign * mine[key]) for key in mine.keys() - yours.keys()]
        return sorted(found, key=_order)

    def _touched(self, differs: Bools) -> list[int]:
        """Positions where a tag pattern can end that has a label that differs."""
        n = len(differs)
        return sorted({t + k for t in np.flatnonzero(differs).tolist() for k in range(self.model.order) if t + k < n})

    def _occurring(self, labels: Ints, t: int) -> dict[tuple[int, int], float]:
        """(row, entry) and score of the features whose tag pattern ends at t in a sequence."""
        model = self.model
        codes = _codes(labels, t, model.order, model.n_labels)
        if model.components is not None:
            codes |= _value_codes(model.components, model.component_kind, labels, t)
        return {
            (row, j): value * float(model.weights[j])
            for row, value in self.at[t]
            for j in range(model.ptr[row], model.ptr[row + 1])
            if int(model.codes[j]) in codes.get(int(model.lengths[j]), ())
        }

    def _contribution(self, t: int, row: int, j: int, value: float) -> Contribution:
        feature = self.model.feature(row, j)
        return Contribution(feature.family, feature.attribute, t, feature.labels, value)


def _order(c: Contribution) -> tuple[Any, ...]:
    """The largest first, and one order of the others; labels may be of both kinds, which do not compare."""
    labels = [(isinstance(label, str), label) for label in c.labels]
    return -abs(c.value), c.family, c.attribute, c.position, labels, c.value


def _value_codes(components: Components, kind: int, labels: Ints, t: int) -> dict[int, set[int]]:
    """Codes of the component values at t, by kind, and of their pairs with those of the label before."""
    codes = {kind: set(components.values_of(int(labels[t])).tolist())}
    for i, values in enumerate(components.pair_values if t > 0 else ()):
        before, here = components.value_of[i, labels[t - 1 : t + 1].astype(np.int64)].tolist()
        if before >= 0 and here >= 0:
            codes[kind + 1 + i] = {before * len(values) + here}
    return codes


def _codes(labels: Ints, t: int, order: int, n_labels: int) -> dict[int, set[int]]:
    """Codes of the tag pattern of each length that ends at t."""
    codes, code = {}, 0
    for k in range(1, min(order, t + 1) + 1):
        code += int(labels[t - k + 1]) * n_labels ** (k - 1)
        codes[k] = {code}
    return codes
