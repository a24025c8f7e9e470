"""What a tagger says of sentences, as thresholds see it: labels with their own probabilities, spans, unknown words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vcrf.decoding.potentials import Potentials
from vcrf.decoding.probability import Event, entity_events, log_probabilities
from vcrf.decoding.schemes import scheme_of
from vcrf.metrics.entities import Entity, entities
from vcrf.types import Floats, Label, UInts32

if TYPE_CHECKING:
    from vcrf.labelling.tagger import Tagger
    from vcrf.model import Model


class Observed(NamedTuple):
    """A block of sentences under a tagger, at the temperature of its training.

    Parameters
    ----------
    first : number of the first sentence
    scores : Potentials
    best : (n_tokens,) the labels of the best sequences, as numbers
    marginals : (n_tokens, n_labels)
    sequence_probability : (n_sentences,) of the best sequence
    unknown_share : (n_sentences,) share of words that training had not seen; 0 for given attributes
    """

    first: int
    scores: Potentials
    best: UInts32
    marginals: Floats
    sequence_probability: Floats
    unknown_share: Floats

    @property
    def sureness(self) -> Floats:
        """Probability of the label of each token, (n_tokens,)."""
        return np.asarray(self.marginals[np.arange(len(self.best)), self.best])

    def names(self, model: Model) -> list[list[Label]]:
        """The labels of each sentence."""
        flat = [model.labels[b] for b in self.best.tolist()]
        return [flat[first:last] for first, last in pairwise(self.scores.sent_ptr.tolist())]


def observe(tagger: Tagger, sentences: list[Sequence[Any]]) -> Iterator[Observed]:
    """Block by block."""
    model = tagger._model()
    for first, scores in tagger._scored(sentences, is_own=True):
        best = scores.decode_tokens()
        ends = list(pairwise(scores.sent_ptr.tolist()))
        one_hot = np.eye(scores.n_labels, dtype=bool)
        events = [Event(i, 0, one_hot[best[a:b]]) for i, (a, b) in enumerate(ends)]
        marginals = np.concatenate([np.zeros((0, scores.n_labels)), *scores.label_marginals()])
        block = sentences[first : first + len(scores)]
        yield Observed(
            first, scores, best, marginals, np.exp(log_probabilities(scores, events)), unknown_share(model, block)
        )


def unknown_share(model: Model, sentences: Sequence[Sequence[Any]]) -> Floats:
    """Share of the words of each sentence that training had not seen."""
    words = {word for sentence in sentences for word in sentence if isinstance(word, str)} if sentences else set()
    if not len(model.vocabulary) or not words:
        return np.zeros(len(sentences))
    known = model.known_words(words)
    return np.array([sum(word not in known for word in x) / max(len(x), 1) for x in sentences])


def spans_of(observed: Observed, model: Model) -> tuple[list[list[Entity]], Floats]:
    """Predicted spans of each sentence, and the probability of each; none where labels mark no spans."""
    scheme = scheme_of(model.labels)
    if not scheme:
        return [[] for _ in range(len(observed.scores))], np.zeros(0)
    found = [entities(labels, scheme) for labels in observed.names(model)]
    events = entity_events(observed.scores, found, observed.first, model.labels, scheme)
    return found, np.exp(log_probabilities(observed.scores, events))
