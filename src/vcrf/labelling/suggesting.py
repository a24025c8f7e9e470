"""What to label next: the sentences about which a tagger is least sure, by exact probabilities.

    least-confidence   -log P(best sequence)
    margin             P(second best sequence) - P(best sequence)
    entropy            entropy of the distribution over label sequences, in nats
    span               sum of doubts: 1 - P(span) of each predicted span, and 1 - P(O) of each token outside

A number a sentence, larger for what is worth more; with `per="token"` divided by the length (the margin is then the
mean over tokens of the margin between their two likeliest labels). Long sentences are worth more by the sentence, and
cost more to label.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vcrf.arguments.inputs import as_sentences
from vcrf.arguments.parameters import COUNT, check, check_kind
from vcrf.decoding.potentials import Potentials
from vcrf.decoding.probability import entity_events, log_probabilities, sequence_events
from vcrf.decoding.schemes import OUTSIDE, scheme_of
from vcrf.errors import InputError
from vcrf.metrics.entities import entities
from vcrf.types import Floats, Label

if TYPE_CHECKING:
    from vcrf.labelling.tagger import Tagger


class Suggestion(NamedTuple):
    """A sentence to label.

    Parameters
    ----------
    number : of the sentence in X, from 0
    usefulness : by the strategy; larger is more
    labels : what the tagger would say, for a person to correct
    """

    number: int
    usefulness: float
    labels: list[Label]


def suggest(
    tagger: Tagger,
    X: Iterable[Any],
    n: int = 100,
    by: str = "least-confidence",
    per: str = "sentence",
    diversity: float = 0.0,
) -> list[Suggestion]:
    """Choose sentences to label.

    Parameters
    ----------
    tagger : fitted
    X : the pool of sentences without labels; empty ones are never chosen
    n : how many
    by : "least-confidence", "margin", "entropy" or "span" (labels BIO or BILOU)
    per : "sentence" or "token"
    diversity : from 0 to 1
        How much words that were chosen already count against a sentence: its rank in usefulness is multiplied by
        1 - diversity * (share of such words). Needs tokens that are str.

    Returns
    -------
    list of Suggestion
        The most useful first; of equal ones the first in X.
    """
    check_kind("n", COUNT, n)
    _check(by, per, diversity)
    sentences = as_sentences(X)
    values, labels = usefulness(tagger, sentences, by, per)
    order = [i for i in np.argsort(-values, kind="stable").tolist() if len(sentences[i])]
    chosen = order[:n] if diversity == 0.0 else _diverse(sentences, order, n, diversity)
    return [Suggestion(i, float(values[i]), labels[i]) for i in chosen]


def _check(by: str, per: str, diversity: float) -> None:
    for name, value in (("by", by), ("per", per), ("diversity", diversity)):
        check(name, value)


def usefulness(tagger: Tagger, sentences: list[Sequence[Any]], by: str, per: str) -> tuple[Floats, list[list[Label]]]:
    """Worth of every sentence by a strategy, and the labels that the tagger gives it."""
    model = tagger._model()
    if by == "span" and not scheme_of(model.labels):
        raise InputError("`by='span'` needs labels that mark spans, BIO or BILOU, and the model's do not.")
    found: list[float] = []
    labels: list[list[Label]] = []
    for _, scores in tagger._scored(sentences):
        best = scores.decode_tokens().tolist()
        block = [[model.labels[b] for b in best[a:b_]] for a, b_ in pairwise(scores.sent_ptr.tolist())]
        values = (
            _token_margins(scores) if (by, per) == ("margin", "token") else _VALUES[by](scores, block, model.labels)
        )
        lengths = np.maximum(np.diff(scores.sent_ptr), 1)
        found += (values / lengths if per == "token" and by != "margin" else values).tolist()
        labels += block
    return np.array(found), labels


def _least_confidence(scores: Potentials, labels: list[list[Label]], names: list[Label]) -> Floats:
    return np.asarray(0.0 - log_probabilities(scores, sequence_events(labels, names)))  # 0, not -0


def _margin(scores: Potentials, labels: list[list[Label]], names: list[Label]) -> Floats:  # noqa: ARG001 - as the others
    log_z = scores.log_partitions()
    found = []
    for i in range(len(scores)):
        two = np.exp(scores.lattice(i).kbest(2)[1] - log_z[i])
        found.append(float((two[1] if len(two) > 1 else 0.0) - two[0]))
    return np.array(found)


def _token_margins(scores: Potentials) -> Floats:
    """Mean over the tokens of the second largest marginal less the largest."""
    found = []
    for marginals in scores.label_marginals():
        ordered = np.sort(marginals, axis=1)
        second = ordered[:, -2] if ordered.shape[1] > 1 else np.zeros(len(ordered))
        found.append(float(np.mean(second - ordered[:, -1])) if len(ordered) else -1.0)
    return np.array(found)


def _entropy(scores: Potentials, labels: list[list[Label]], names: list[Label]) -> Floats:  # noqa: ARG001
    return np.array([scores.lattice(i).entropy() if np.diff(scores.sent_ptr)[i] else 0.0 for i in range(len(scores))])


def _span(scores: Potentials, labels: list[list[Label]], names: list[Label]) -> Floats:
    """Sum over predicted spans of 1 - P(span), and over the tokens outside of P(another label than O).

    No expected number of wrong spans: a span that is missed adds the doubt of each of its tokens.
    """
    scheme = scheme_of(names)
    found = [entities(y, scheme) for y in labels]
    doubts = iter((1.0 - np.exp(log_probabilities(scores, entity_events(scores, found, 0, names, scheme)))).tolist())
    outside = names.index(OUTSIDE) if OUTSIDE in names else None
    values = []
    for y, spans, marginals in zip(labels, found, scores.label_marginals(), strict=True):
        total = sum(next(doubts) for _ in spans)
        if outside is not None:
            total += sum(float(1.0 - marginals[t, outside]) for t, label in enumerate(y) if label == OUTSIDE)
        values.append(total)
    return np.array(values)


_VALUES: dict[str, Callable[[Potentials, list[list[Label]], list[Label]], Floats]] = {
    "least-confidence": _least_confidence, "margin": _margin, "entropy": _entropy, "span": _span,
}  # fmt: skip


def _diverse(sentences: list[Sequence[Any]], order: list[int], n: int, diversity: float) -> list[int]:
    """Greedy: the best rank, less for words that are covered. Worth only falls, so that old values bound new ones."""
    if any(not isinstance(token, str) for i in order for token in sentences[i]):
        raise InputError("`diversity` compares words: expected tokens as str. Leave it at 0 for other tokens.")
    covered: set[str] = set()
    chosen: list[int] = []

    def worth(place: int) -> float:
        words = sentences[order[place]]
        share = sum(word in covered for word in words) / len(words)
        return (1.0 - place / len(order)) * (1.0 - diversity * share)

    heap = [(-worth(place), place) for place in range(len(order))]
    heapq.heapify(heap)
    while heap and len(chosen) < n:
        _, place = heapq.heappop(heap)
        now = (-worth(place), place)
        if heap and now > heap[0]:
            heapq.heappush(heap, now)
            continue
        chosen.append(order[place])
        covered.update(sentences[order[place]])
    return chosen
