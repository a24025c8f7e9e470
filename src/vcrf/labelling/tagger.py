"""What every estimator does with a fitted model: label, give probabilities, draw, score. Without scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf.arguments.inputs import (
    as_sentences,
    blocks_of,
    check_lengths,
    check_readable,
    first_token,
    generator_of,
    listed_labels,
    read_text,
)
from vcrf.arguments.open_labels import is_open
from vcrf.decoding.constraints import as_constraints
from vcrf.decoding.potentials import Potentials
from vcrf.decoding.probability import Event, entity_events, log_probabilities, sequence_events, span_events
from vcrf.decoding.restrict import Allowed, allowed_masks, forbid, restrict
from vcrf.errors import InputError, not_fitted
from vcrf.families import Family, NamedFeature
from vcrf.labelling.trusting import Trusting
from vcrf.lattice import Lattice
from vcrf.model import Model
from vcrf.types import Bools, Label

if TYPE_CHECKING:
    from vcrf.losses import Loss
    from vcrf.page.standalone import Page


class Tagger(Trusting):
    """What every estimator does with a fitted model: label, give probabilities, draw, score.

    A subclass sets `classes_` and `model_`, and may have a parameter `constraints`.

    Notes
    -----
    Most methods take `constraints` and `allowed`; what they forbid has probability 0, and the rest is as if
    training had never heard of it: probabilities are conditional on the constraints.

    constraints : optional
        "BIO", "BILOU" and other schemes (see `vcrf.decoding.Constraints`), a list of forbidden pairs
        (label, next label), or `Constraints`. None means the estimator's own; [] means none at all.
    allowed : optional
        One entry a sentence: None, or one entry a token: None, a label (forced) or a set of labels. A token with an
        entry may have these labels, whatever the model's known labels say of its word.
    """

    classes_: list[Label]
    model_: Model

    def predict(
        self, X: Iterable[Any], constraints: Any = None, allowed: Iterable[Any] | None = None
    ) -> list[list[Label]]:
        """Best labels of each sentence.

        Parameters
        ----------
        X : iterable of sentences, of the same kind as in `fit`
        constraints, allowed : optional
            See the class. A sentence that they leave without any label sequence is an InputError.

        Returns
        -------
        list of list of labels
            Of equal sequences the first in the order of `classes_`. An empty sentence gives an empty list.
        """
        names = np.array([*self._model().labels, None], dtype=object)[:-1]
        labels: list[list[Label]] = []
        for _, scores in self._scored(as_sentences(X), constraints, allowed, is_own=True):
            flat = names[scores.decode_tokens()].tolist()
            labels.extend([flat[first:last] for first, last in pairwise(scores.sent_ptr.tolist())])
        return labels

    def predict_marginals(
        self, X: Iterable[Any], constraints: Any = None, allowed: Iterable[Any] | None = None
    ) -> list[list[dict[Label, float]]]:
        """Posterior of each label at each token: a list of dicts ``{label: probability}`` a sentence."""
        labels = self._model().labels
        return [
            [dict(zip(labels, row, strict=True)) for row in sentence.tolist()]
            for scores in self._potentials(X, constraints, allowed)
            for sentence in scores.label_marginals()
        ]

    def predict_kbest(
        self, X: Iterable[Any], k: int = 5, constraints: Any = None, allowed: Iterable[Any] | None = None
    ) -> list[list[tuple[list[Label], float]]]:
        """Find the k best label sequences of each sentence with their probabilities, best first."""
        _check_count("k", k, 1)
        return [
            [(self._names(labels), probability) for labels, probability in found]
            for scores in self._potentials(X, constraints, allowed)
            for found in kbest_of(scores, k)
        ]

    def predict_mbr(
        self,
        X: Iterable[Any],
        loss: str | Loss = "hamming",
        k: int = 20,
        n_samples: int = 0,
        random_state: np.random.Generator | int | None = None,
        constraints: Any = None,
        allowed: Iterable[Any] | None = None,
    ) -> list[list[Label]]:
        """Labels of each sentence with the least expected loss: minimum Bayes risk. `predict` takes the likeliest.

        Parameters
        ----------
        X : iterable of sentences
        loss : str or vcrf.losses.Loss
            "hamming" and cost matrices are minimised exactly, from marginals: fewest wrong labels expected.
        k : int
            Other losses: the candidates are the k best sequences, their posterior gives the expectation.
        n_samples : int
            Other losses: take so many draws from the posterior instead of the k best.
        random_state : seed or generator of the draws
        constraints, allowed : see the class
        """
        from vcrf.decoding.risk import least_risk
        from vcrf.losses import get_loss

        chosen = get_loss(loss)
        if chosen is None:
            raise InputError("predict_mbr needs a loss, got None. Without one, use predict.")
        _check_count("k", k, 1)
        _check_count("n_samples", n_samples, 0)
        chosen = chosen.for_labels(self._model().labels)
        rng = self._generator(random_state)
        return [
            self._names(labels)
            for scores in self._potentials(X, constraints, allowed)
            for labels in least_risk(scores, chosen, k, n_samples, rng)
        ]

    def sample(
        self,
        X: Iterable[Any],
        n: int = 1,
        random_state: np.random.Generator | int | None = None,
        constraints: Any = None,
        allowed: Iterable[Any] | None = None,
    ) -> list[list[list[Label]]]:
        """Draw n label sequences a sentence from the posterior; `random_state` is a seed or a generator."""
        rng = self._generator(random_state)
        return [
            [self._names(draw) for draw in scores.lattice(i).sample(n, rng).tolist()]
            for scores in self._potentials(X, constraints, allowed)
            for i in range(len(scores))
        ]

    def sequence_probability(
        self, X: Iterable[Any], y: Iterable[Any], constraints: Any = None, log: bool = False
    ) -> list[float]:
        """Probability of each sentence having exactly the labels y, or its log.

        A label that the model does not have makes it 0, and so does a sequence that the constraints forbid.
        """
        sentences, y = as_sentences(X), listed_labels(y)
        check_lengths(sentences, y)
        found = []
        for first, scores in self._scored(sentences, constraints):
            events = sequence_events(y[first : first + len(scores)], self._model().labels)
            found.extend(_listed_probabilities(scores, events, log))
        return found

    def span_probability(
        self, X: Iterable[Any], spans: Iterable[Any], constraints: Any = None, log: bool = False
    ) -> list[list[float]]:
        """Probability that tokens first .. last have exactly given labels, or its log.

        Parameters
        ----------
        X : iterable of sentences
        spans : one list a sentence of (first, last, labels)
            Tokens count from 0 and last is included; one label a token.
        constraints : see the class
        log : give logarithms

        Returns
        -------
        list of list of float
            One number a span.
        """
        labels = self._model().labels
        return self._of_spans(X, spans, constraints, log, partial(span_events, labels=labels))

    def entity_probability(
        self, X: Iterable[Any], entities: Iterable[Any], scheme: str = "BIO", constraints: Any = None, log: bool = False
    ) -> list[list[float]]:
        """Probability that tokens first .. last are one entity, no shorter and no longer, or its log.

        Parameters
        ----------
        X : iterable of sentences
        entities : one list a sentence of (first, last, kind), as `vcrf.metrics.entities` gives them
        scheme : "BIO" or "BILOU"
            How entities are written; by its strict rules.
        constraints : see the class
        log : give logarithms
        """
        labels = self._model().labels
        return self._of_spans(X, entities, constraints, log, partial(entity_events, labels=labels, scheme=scheme))

    def score(self, X: Iterable[Any], y: Iterable[Any], sample_weight: Sequence[float] | None = None) -> float:
        """Share of tokens with the right label; a label that training has not seen counts as wrong.

        Parameters
        ----------
        X, y : as for `fit`
            Tokens whose label is left open (None or a set) are not counted.
        sample_weight : sequence of float, optional
            One weight a sentence: each of its tokens counts so much.
        """
        X, y = as_sentences(X), listed_labels(y)
        check_lengths(X, y)
        weights = [1.0] * len(X) if sample_weight is None else list(sample_weight)
        if len(weights) != len(X):
            raise InputError(f"`sample_weight` must have one weight a sentence: expected {len(X)}, got {len(weights)}.")
        hits = total = 0.0
        for true, predicted, weight in zip(y, self.predict(X), weights, strict=True):
            known = [bool(a == b) for a, b in zip(true, predicted, strict=True) if not is_open(a)]
            hits += weight * sum(known)
            total += weight * len(known)
        if not total > 0.0:
            raise InputError("score needs at least one token with a label, got none. Pass sentences that have some.")
        return hits / total

    def render(self, sentence: str | Sequence[str], k: int = 5) -> Page:
        """A sentence as a page: labels with probabilities, the reasons for them, and the lattice.

        Parameters
        ----------
        sentence : tokens, or text with blanks between them
        k : best sequences to show

        Returns
        -------
        Page
            `str(page)` is HTML in one piece, `page.save(path)` writes it, and a notebook shows it by itself.

        Examples
        --------
        >>> from vcrf import VCRF
        >>> tagger = VCRF(recipe="paper").fit([["a", "b"], ["b", "a"]], [["X", "Y"], ["Y", "X"]])
        >>> str(tagger.render("a b")).startswith("<!doctype html>")
        True
        """
        from vcrf.data.raw import split_tokens
        from vcrf.labelling.viewing import sentence_page

        return sentence_page(self, split_tokens(sentence) if isinstance(sentence, str) else sentence, k)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _model(self) -> Model:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(f"This {type(self).__name__} is not fitted yet: call fit(X, y) first.")
        return self.model_

    def _potentials(
        self, X: Iterable[Any], constraints: Any = None, allowed: Iterable[Any] | None = None
    ) -> Iterator[Potentials]:
        """Scores of the sentences under the constraints, block by block."""
        for _, scores in self._scored(as_sentences(X), constraints, allowed):
            yield scores

    def _scored(
        self,
        sentences: list[Sequence[Any]],
        constraints: Any = None,
        allowed: Iterable[Any] | None = None,
        is_own: bool = False,
    ) -> Iterator[tuple[int, Potentials]]:
        """Number of the first sentence and scores, for each block; `is_own` leaves the calibration aside."""
        model = self._model()
        constraints = getattr(self, "constraints", None) if constraints is None else constraints
        is_free = constraints is None and allowed is None
        moves = None if is_free else as_constraints([] if constraints is None else constraints).compile(model.labels)
        choices = None if allowed is None else _listed_choices(allowed, len(sentences))
        first = 0
        for block in blocks_of(sentences):
            scores = _score(model, block)
            given = None
            if choices is not None:
                chosen = choices[first : first + len(block)]
                given = allowed_masks(chosen, [len(sentence) for sentence in block], model.labels, first)
            masks = None if given is None else given.masks
            known = _known_masks(model, block, given)
            if moves is not None and (masks is not None or not moves.is_free):
                scores = restrict(scores, moves, masks, first, known)
            elif known is not None:
                scores = forbid(scores, known)
            yield first, scores if is_own else self._calibrated(scores)
            first += len(block)

    def _calibrated(self, scores: Potentials) -> Potentials:
        """Scores at the temperature of the calibration, if there is one."""
        calibration = self._model().calibration
        return scores if calibration is None else scores.scaled(1.0 / calibration.calibration_temperature)

    def _of_spans(
        self,
        X: Iterable[Any],
        spans: Iterable[Any],
        constraints: Any,
        log: bool,
        events_of: Callable[[Potentials, list[list[Any]], int], list[Event]],
    ) -> list[list[float]]:
        sentences, listed = as_sentences(X), [list(sentence_spans) for sentence_spans in spans]
        if len(listed) != len(sentences):
            raise InputError(
                f"Expected one list of spans a sentence: got {len(listed)} for {len(sentences)} sentences."
            )
        found: list[list[float]] = []
        for first, scores in self._scored(sentences, constraints):
            block = listed[first : first + len(scores)]
            values = iter(_listed_probabilities(scores, events_of(scores, block, first), log))
            found.extend([next(values) for _ in sentence_spans] for sentence_spans in block)
        return found

    def lattice(self, sentence: Sequence[Any], constraints: Any = None) -> Lattice:
        """All label sequences of one sentence, with their scores."""
        (scores,) = self._potentials([sentence], constraints)
        return scores.lattice(0)

    def _generator(self, random_state: np.random.Generator | int | None) -> np.random.Generator:
        """Of a seed or generator, by default the estimator's own."""
        return generator_of(getattr(self, "random_state", None) if random_state is None else random_state)

    def _names(self, ids: list[int]) -> list[Label]:
        labels = self._model().labels
        return [labels[i] for i in ids]


class ModelTagger(Tagger):
    """A model that tags: without the estimator that trained it and without scikit-learn. See `load_tagger`."""

    def __init__(self, model: Model, constraints: Any = None) -> None:
        self.model_ = model
        self.classes_ = list(model.labels)
        self.constraints = constraints


def kbest_of(scores: Potentials, k: int) -> Iterator[list[tuple[list[int], float]]]:
    """The k best sequences of label numbers of each sentence with their probabilities, best first."""
    for i, log_z in enumerate(scores.log_partitions().tolist()):
        sequences, values = scores.lattice(i).kbest(k)
        yield list(zip(sequences.tolist(), np.exp(np.minimum(values - log_z, 0.0)).tolist(), strict=True))


def _known_masks(model: Model, sentences: list[Sequence[Any]], given: Allowed | None) -> Bools | None:
    """The labels that words may have, if the model knows them; all where the caller gives a token's labels."""
    if model.known is None:
        return None
    known = model.known.masks(read_text(sentences))
    return known if given is None else known | given.is_given[:, None]


def _score(model: Model, sentences: list[Sequence[Any]]) -> Potentials:
    """Scores, whatever the labels that words may have."""
    if model.words is not None and isinstance(first_token(sentences), str):
        return model.words.potentials(sentences)
    if model.attributes is not None:
        return model.attributes.potentials(sentences)
    is_attributes = any(isinstance(source, NamedFeature) for source in model.sources)
    text = read_text(sentences, is_attributes if is_attributes else None)
    check_readable(text, [Family("model", tuple(model.sources))])
    return model.free_potentials(text)


def _listed_probabilities(scores: Potentials, events: list[Event], log: bool) -> list[float]:
    values = log_probabilities(scores, events)
    listed: list[float] = (values if log else np.exp(values)).tolist()
    return listed


def _check_count(name: str, number: int, least: int) -> None:
    if not isinstance(number, Integral) or isinstance(number, bool) or number < least:
        wanted = "a positive integer" if least else "an integer of at least 0"
        raise InputError(f"{name} must be {wanted}, got {number!r}.")


def _listed_choices(allowed: Iterable[Any], n_sentences: int) -> list[Any]:
    choices = list(allowed)
    if len(choices) != n_sentences:
        raise InputError(f"allowed needs one entry a sentence: got {len(choices)} for {n_sentences} sentences.")
    return choices
