"""Probabilities of events: that the labels of some tokens lie in given sets.

``P(event) = Z(label sequences in the event) / Z(all that are allowed)``, a ratio of partition functions, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from vcrf.decoding.constraints import Label
from vcrf.decoding.potentials import Potentials
from vcrf.decoding.restrict import forbid
from vcrf.decoding.schemes import check_scheme, scheme_label
from vcrf.errors import InputError
from vcrf.types import Bools, Floats

# Events are weighed together up to this many tokens: memory does not grow with their number.
_TOKENS_AT_ONCE = 1 << 16


class Event(NamedTuple):
    """Tokens first, first + 1, ... of a sentence have labels in masks[0], masks[1], ...; (n, n_labels) bool."""

    sentence: int
    first: int
    masks: Bools


def log_probabilities(scores: Potentials, events: Sequence[Event]) -> Floats:
    """Log probability of each event, (n_events,); -inf for what cannot happen."""
    parts = [np.zeros(0), *(_log_partitions(scores, group) for group in _groups(scores, events))]
    found = np.concatenate(parts) - scores.log_partitions()[[event.sentence for event in events]]
    return np.minimum(found, 0.0)  # rounding may leave 1e-16 above


def sequence_events(y: Sequence[Sequence[Label]], labels: Sequence[Label]) -> list[Event]:
    """Event of each sentence having exactly the labels y."""
    return [Event(i, 0, _exactly(sequence, labels)) for i, sequence in enumerate(y)]


def span_events(
    scores: Potentials, spans: Sequence[Iterable[Any]], first_sentence: int, labels: Sequence[Label]
) -> list[Event]:
    """Events of the spans (first, last, labels) of each sentence."""
    events = []
    for i, sentence_spans in enumerate(spans):
        for span in sentence_spans:
            where = f"Sentence {first_sentence + i}, span {span!r}"
            first, last, given = _checked_span(span, int(np.diff(scores.sent_ptr)[i]), where)
            sequence: list[Any] = [given] if isinstance(given, (str, Integral)) else list(given)
            if len(sequence) != last - first + 1:
                raise InputError(f"{where}: expected {last - first + 1} labels, one a token, got {len(sequence)}.")
            events.append(Event(i, first, _exactly(sequence, labels)))
    return events


def entity_events(
    scores: Potentials,
    entities: Sequence[Iterable[Any]],
    first_sentence: int,
    labels: Sequence[Label],
    scheme: str,
) -> list[Event]:
    """Events of the entities (first, last, kind) of each sentence, strictly by the scheme's rules."""
    if check_scheme(scheme) == "IOB1":
        raise InputError("Probabilities of entities need BIO or BILOU: in IOB1 a span may begin with B or I.")
    parts = [scheme_label(label, scheme) for label in labels]
    events = []
    for i, sentence_entities in enumerate(entities):
        length = int(np.diff(scores.sent_ptr)[i])
        for entity in sentence_entities:
            where = f"Sentence {first_sentence + i}, entity {tuple(entity)!r}"
            first, last, kind = _checked_span(entity, length, where)
            prefixes = _prefixes(last - first + 1, scheme)
            masks = [[part == (prefix, kind) for part in parts] for prefix in prefixes]
            if scheme in ("BIO", "IOB2") and last + 1 < length:
                # A BIO entity ends where it does not go on.
                masks.append([part != ("I", kind) for part in parts])
            events.append(Event(i, first, np.array(masks, bool)))
    return events


def _prefixes(n: int, scheme: str) -> str:
    if scheme in ("BIO", "IOB2"):
        return "B" + "I" * (n - 1)
    return "U" if n == 1 else "B" + "I" * (n - 2) + "L"


def _checked_span(span: Any, length: int, where: str) -> tuple[int, int, Any]:
    parts = tuple(span) if isinstance(span, Sequence) and not isinstance(span, str) else ()
    if len(parts) != 3 or not all(isinstance(end, Integral) for end in parts[:2]):
        raise InputError(f"{where}: expected (first token, last token, what they are).")
    first, last, what = parts
    if not 0 <= first <= last < length:
        raise InputError(f"{where}: tokens run from 0 to {length - 1}, and the first comes before the last.")
    return int(first), int(last), what


def _exactly(sequence: Sequence[Label], labels: Sequence[Label]) -> Bools:
    """Mask of one label a token; a label that the model does not have leaves none, so that the probability is 0."""
    number = {label: i for i, label in enumerate(labels)}
    masks = np.zeros((len(sequence), len(labels)), bool)
    for t, label in enumerate(sequence):
        if label in number:
            masks[t, number[label]] = True
    return masks


def _groups(scores: Potentials, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    lengths = np.diff(scores.sent_ptr)[[event.sentence for event in events]]
    group = (np.cumsum(lengths) - lengths) // _TOKENS_AT_ONCE
    for number in np.unique(group):
        first, last = np.searchsorted(group, [number, number + 1])
        yield events[first:last]


def _log_partitions(scores: Potentials, events: Sequence[Event]) -> Floats:
    """Log partition of the label sequences in each event."""
    taken = scores.take(np.array([event.sentence for event in events], np.int64))
    allowed = np.ones(taken.node.shape, bool)
    for event, start in zip(events, taken.sent_ptr, strict=False):
        allowed[start + event.first : start + event.first + len(event.masks)] &= event.masks
    return forbid(taken, allowed).log_partitions()
