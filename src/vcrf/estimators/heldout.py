"""Development sets: sentences beside the training data, labelled again and again while the weights change.

The text is read once. After that the error under any weights of the problem takes one pass over its tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from vcrf.arguments.inputs import (
    as_sentences,
    check_labels,
    check_lengths,
    checked_weights,
    generator_of,
    listed_labels,
)
from vcrf.arguments.open_labels import named
from vcrf.decoding.constraints import AllowedMoves
from vcrf.decoding.patterns import Firing, PatternWeights
from vcrf.decoding.potentials import Potentials
from vcrf.decoding.restrict import forbid, restrict
from vcrf.errors import InputError
from vcrf.families import Text
from vcrf.model.build import keys_of_columns, split_features
from vcrf.model.model import Lookup, plain_patterns
from vcrf.model.spreading import WeightRows, spread_components
from vcrf.penalties import BoundPenalty
from vcrf.problem import Problem
from vcrf.solvers.result import IterationRecord
from vcrf.types import Bools, Floats, Ints, Label, UInts32


class Parts(NamedTuple):
    """Sentences to train on, with labels and weights, and those held out."""

    X: list[Sequence[Any]]
    y: list[list[Label]]
    sample_weight: list[float] | None
    X_dev: list[Sequence[Any]]
    y_dev: list[list[Label]]


def hold_out(X: Iterable[Any], y: Iterable[Any], sample_weight: Sequence[float] | None, seed: int) -> Parts:
    """Draw a tenth of the sentences that have labels and weight. Every label stays in training."""
    sentences, labels = as_sentences(X), listed_labels(y)
    check_lengths(sentences, labels)
    check_labels(labels, may_be_open=True)
    weights = None if sample_weight is None else checked_weights(sample_weight, len(sentences))
    used = [i for i in range(len(sentences)) if weights is None or weights[i] > 0.0]
    possible = [i for i in used if any(map(_is_known, labels[i]))]
    left = Counter(chain.from_iterable(set(named([labels[i]])) for i in used))
    drawn: set[int] = set()
    for i in generator_of(seed).permutation(possible).tolist():
        found = set(named([labels[i]]))
        if len(drawn) < len(possible) // 10 and all(left[label] > 1 for label in found):
            drawn.add(i)
            left.subtract(found)
    if not drawn:
        raise InputError(
            "`patience` without a development set holds out a tenth of the sentences, and there are too few to do so: "
            f"got {len(possible)}. Give a development set, or leave `patience` out."
        )
    kept = [i for i in range(len(sentences)) if i not in drawn]
    held = sorted(drawn)
    return Parts(
        [sentences[i] for i in kept],
        [labels[i] for i in kept],
        None if weights is None else weights[kept].tolist(),
        [sentences[i] for i in held],
        [labels[i] for i in held],
    )


def _is_known(label: object) -> bool:
    """Whether a label is given, and not left open."""
    return isinstance(label, (str, Integral))


class DevelopmentSet:
    """A text and its labels, for one problem.

    Parameters
    ----------
    problem : Problem
    text : Text
    labels : lists of labels; one that training has not seen counts as wrong, None is not counted
    classes : the labels of the problem by number
    moves : constraints on the labels, if any
    """

    def __init__(
        self,
        problem: Problem,
        text: Text,
        labels: Sequence[Sequence[Label]],
        classes: Sequence[Label],
        moves: AllowedMoves | None = None,
    ) -> None:
        self.problem, self.sent_ptr = problem, text.sent_ptr
        self.moves = None if moves is None or moves.is_free else moves
        self.masks = None if problem.known is None else problem.known.masks(text)
        number = {label: i for i, label in enumerate(classes)}
        flat = list(chain.from_iterable(labels))
        self.counted = np.flatnonzero(list(map(_is_known, flat)))
        if len(self.counted) == 0:
            raise InputError("A development set needs at least one labelled token: got none. Check what was given.")
        self.y = np.array([number.get(flat[t], -1) for t in self.counted.tolist()], np.int64)
        found = list(self._read(text))
        # An attribute is a column and the source that reads it.
        self.attributes = np.unique(np.concatenate([np.zeros(0, np.int64), *(ids for _, ids, _ in found)]))
        self._columns = np.zeros(len(problem.columns), bool)
        self._columns[self.attributes % max(len(problem.columns), 1)] = True
        self.firings = [
            Firing(positions, np.searchsorted(self.attributes, ids).astype(np.uint32), values)
            for positions, ids, values in found
        ]

    def error(self, penalty: BoundPenalty, features: Ints, w: Floats) -> float:
        """Share of tokens with a wrong label under the weights."""
        return float(np.mean(self.mistakes(penalty, features, w)))

    def mistakes(self, penalty: BoundPenalty, features: Ints, w: Floats) -> Bools:
        """Whether each counted token (`counted`) has a wrong label under the weights."""
        scores = self.potentials(penalty, features, w)
        if self.moves is not None:
            scores = restrict(scores, self.moves, preferred=self.masks)
        elif self.masks is not None:
            scores = forbid(scores, self.masks)
        return np.asarray(np.concatenate(scores.decode())[self.counted] != self.y)

    def potentials(self, penalty: BoundPenalty, features: Ints, w: Floats) -> Potentials:
        """Scores of the text, those of the model that `build_model` would give."""
        column, _, _ = self.problem.split_features(features)
        there = self._columns[column]
        entries = split_features(self.problem, penalty, features[there], w[there])
        ids = entries.sources * len(self.problem.columns) + entries.columns
        rows = np.searchsorted(self.attributes, ids)
        kept = np.flatnonzero(np.append(self.attributes, -1)[rows] == ids)
        counts = np.bincount(rows[kept], minlength=len(self.attributes))
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        found = WeightRows(ptr, entries.lengths[kept], entries.codes[kept], entries.weights[kept])
        if self.problem.components is not None:
            found = spread_components(self.problem.components, self.problem.component_kind, *found)
        sources = (self.attributes // len(self.problem.columns))[np.repeat(np.arange(len(counts)), np.diff(found.ptr))]
        is_plain = plain_patterns(self.problem.sources, sources, found.lengths)
        patterns = PatternWeights(self.problem.n_labels, *found, is_plain)
        return patterns.score(self.sent_ptr, self.firings)

    def _read(self, text: Text) -> Iterator[tuple[UInts32, Ints, Floats]]:
        """Positions, attributes and values that fire, for each source; unseen attributes are left out."""
        problem = self.problem
        n_columns = len(problem.columns)
        for s, source in enumerate(problem.sources):
            has_source = np.array([s in sources for sources in problem.columns.class_sources], bool)
            columns = np.flatnonzero(has_source[problem.columns.classes]) if len(has_source) else np.zeros(0, np.int64)
            lookup = Lookup.build(keys_of_columns(problem, s, columns), np.arange(len(columns)))
            read = source.read(text)
            rows = lookup.find(read.keys)
            kept = np.flatnonzero(rows < len(columns))
            values = np.zeros(0) if read.values is None else read.values[kept]
            yield read.positions[kept], (s * n_columns + columns[rows[kept]]).astype(np.int64), values


class DevelopmentWatch:
    """Looks at the error on a development set after each round, and remembers the best weights (see `Watch`).

    Parameters
    ----------
    development : DevelopmentSet
    penalty : BoundPenalty
    patience : rounds without a smaller error before it is enough; None only records the errors
    """

    def __init__(self, development: DevelopmentSet, penalty: BoundPenalty, patience: int | None) -> None:
        self.development, self.penalty, self.patience = development, penalty, patience
        self.error, self.n_rounds = np.inf, 0
        self.weights: tuple[Ints, Floats] | None = None

    def look(self, record: IterationRecord, features: Ints, w: Floats) -> IterationRecord:
        nonzero = np.flatnonzero(w)
        features, w = features[nonzero], w[nonzero]
        error = self.development.error(self.penalty, features, w)
        self.n_rounds = 0 if error < self.error else self.n_rounds + 1
        # Of equal errors the later one: it is closer to the optimum.
        if error <= self.error and self.patience is not None:
            self.weights = features, w
        self.error = min(self.error, error)
        return replace(record, dev_error=error)

    @property
    def is_enough(self) -> bool:
        return self.patience is not None and self.n_rounds >= self.patience

    @property
    def preferred(self) -> tuple[Ints, Floats] | None:
        return self.weights
