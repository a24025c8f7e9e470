"""What every estimator does with a fitted model: label, give probabilities, draw, score. Without scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from vcrf.errors import InputError, NotFittedError
from vcrf.families import Family, NamedFeature
from vcrf.inputs import as_sentences, blocks_of, check_lengths, check_readable, listed_labels, read_text
from vcrf.model import Label, Model, Potentials


class Tagger:
    """What every estimator does with a fitted model: label, give probabilities, draw, score.

    A subclass sets `classes_` and `model_`.
    """

    classes_: list[Label]
    model_: Model

    def predict(self, X: Iterable[Any]) -> list[list[Label]]:
        """Best labels of each sentence.

        Parameters
        ----------
        X : iterable of sentences, of the same kind as in `fit`

        Returns
        -------
        list of list of labels
            Of equal sequences the first in the order of `classes_`. An empty sentence gives an empty list.
        """
        names = np.array([*self._model().labels, None], dtype=object)[:-1]
        return [names[ids].tolist() for scores in self._potentials(X) for ids in scores.decode()]

    def predict_marginals(self, X: Iterable[Any]) -> list[list[dict[Label, float]]]:
        """Posterior of each label at each token: a list of dicts ``{label: probability}`` a sentence."""
        labels = self._model().labels
        return [
            [dict(zip(labels, row, strict=True)) for row in sentence.tolist()]
            for scores in self._potentials(X)
            for sentence in scores.label_marginals()
        ]

    def predict_kbest(self, X: Iterable[Any], k: int = 5) -> list[list[tuple[list[Label], float]]]:
        """Find the k best label sequences of each sentence with their probabilities, best first."""
        out = []
        for scores in self._potentials(X):
            for i in range(len(scores)):
                lattice = scores.lattice(i)
                sequences, values = lattice.kbest(k)
                probabilities = np.exp(values - lattice.log_partition()).tolist()
                out.append(list(zip(map(self._names, sequences.tolist()), probabilities, strict=True)))
        return out

    def sample(
        self, X: Iterable[Any], n: int = 1, random_state: np.random.Generator | int | None = None
    ) -> list[list[list[Label]]]:
        """Draw n label sequences a sentence from the posterior; `random_state` is a seed or a generator."""
        if random_state is None:
            random_state = getattr(self, "random_state", None)
        rng = np.random.default_rng(random_state)
        return [
            [self._names(draw) for draw in scores.lattice(i).sample(n, rng).tolist()]
            for scores in self._potentials(X)
            for i in range(len(scores))
        ]

    def score(self, X: Iterable[Any], y: Iterable[Any]) -> float:
        """Share of tokens with the right label; a label that training has not seen counts as wrong."""
        X, y = as_sentences(X), listed_labels(y)
        check_lengths(X, y)
        pairs = zip(chain.from_iterable(y), chain.from_iterable(self.predict(X)), strict=True)
        hits = [bool(true == predicted) for true, predicted in pairs]
        if not hits:
            raise InputError("score needs at least one token, got none. Pass sentences that are not empty.")
        return sum(hits) / len(hits)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _model(self) -> Model:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit(X, y) first.")
        return self.model_

    def _potentials(self, X: Iterable[Any]) -> Iterator[Potentials]:
        """Scores of the sentences, block by block."""
        model = self._model()
        is_attributes = any(isinstance(source, NamedFeature) for source in model.sources)
        for block in blocks_of(as_sentences(X)):
            text = read_text(block, is_attributes if is_attributes else None)
            check_readable(text, [Family("model", tuple(model.sources))])
            yield model.potentials(text)

    def _names(self, ids: list[int]) -> list[Label]:
        labels = self._model().labels
        return [labels[i] for i in ids]


class ModelTagger(Tagger):
    """A model that tags: what `load_model` reads, without the estimator that trained it and without scikit-learn."""

    def __init__(self, model: Model) -> None:
        self.model_ = model
        self.classes_ = list(model.labels)
