"""From labelled sentences to a `Calibration`: the temperature, reliability on folds, and what thresholds need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vcrf.arguments.inputs import (
    as_sentences,
    check_labels,
    check_lengths,
    listed_labels,
    read_text,
)
from vcrf.decoding.probability import entity_events, log_probabilities, sequence_events
from vcrf.decoding.schemes import scheme_of
from vcrf.errors import InputError
from vcrf.labelling.observing import Observed, observe, spans_of
from vcrf.labelling.seen import check_overlap, check_unseen, checksum
from vcrf.metrics.entities import Entity, entities
from vcrf.model.fingerprints import fingerprints, overlap
from vcrf.trust.calibration import Calibration
from vcrf.trust.reliability import reliability
from vcrf.trust.temperature import Sweeps, best_temperature
from vcrf.types import Floats, Ints, Label

if TYPE_CHECKING:
    from vcrf.labelling.tagger import Tagger
    from vcrf.model import Model

_FOLDS = 5
_SHUFFLE = 20_161_205


def calibration_of(
    tagger: Tagger, X: Iterable[Any], y: Iterable[Any], is_fitted: bool = True, allow_seen: bool = False
) -> Calibration:
    """Look at held-out sentences; see `Tagger.calibrate`. Without `is_fitted` the temperature stays 1."""
    sentences, labels = held_out(X, y)
    model = tagger._model()
    prints = fingerprints(read_text(sentences))
    check_unseen(model, sentences, labels, prints, allow_seen)
    blocks = list(observe(tagger, sentences))
    truth = _truth(blocks, labels, model)
    fitted = (_fit_temperature if is_fitted else _unfitted)(blocks, labels, truth, model)
    return Calibration(
        **fitted, data_checksum=checksum(sentences, labels), scheme=scheme_of(model.labels), ptr=truth.ptr,
        sureness=_float32([block.sureness for block in blocks]),
        true_probability=truth.probability.astype(np.float32), is_wrong=truth.is_wrong,
        sequence_probability=_float32([block.sequence_probability for block in blocks]),
        unknown_share=_float32([block.unknown_share for block in blocks]),
        sentences=prints, **_spans(blocks, labels, model),
    )  # fmt: skip


def check_not_calibrated_with(calibration: Calibration, found: Calibration, allow_seen: bool = False) -> None:
    """Refuse to judge promises by the sentences that they were made from."""
    if calibration.data_checksum == found.data_checksum:
        raise InputError(
            "These are the sentences that the model was calibrated with: how promises are kept shows only on others."
        )
    shared = overlap(calibration.sentences, found.sentences)
    advice = "If new text repeats sentences as often, pass `allow_seen`."
    check_overlap(shared, "that the model was calibrated with", advice, allow_seen)


def held_out(X: Iterable[Any], y: Iterable[Any]) -> tuple[list[Sequence[Any]], list[list[Label]]]:
    """Check labelled sentences and leave out the empty ones; there must be one with a token."""
    sentences, labels = as_sentences(X), listed_labels(y)
    check_lengths(sentences, labels)
    check_labels(labels, may_be_open=False)
    kept = [i for i, sentence in enumerate(sentences) if len(sentence)]
    if not kept:
        raise InputError("Calibration needs sentences with labels: got none with a token.")
    return [sentences[i] for i in kept], [labels[i] for i in kept]


class _Truth(NamedTuple):
    """The true labels beside the predicted ones: (n_tokens,) arrays, and the tokens of each sentence."""

    ptr: Ints
    is_wrong: Any
    probability: Floats


def _truth(blocks: list[Observed], labels: list[list[Label]], model: Model) -> _Truth:
    number = {label: i for i, label in enumerate(model.labels)}
    true = np.array([number.get(label, -1) for label in chain.from_iterable(labels)], np.int64)
    best = np.concatenate([block.best for block in blocks])
    marginals = np.concatenate([block.marginals for block in blocks])
    probability = np.where(true >= 0, marginals[np.arange(len(true)), true], 0.0)
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(sentence) for sentence in labels])])
    return _Truth(ptr, np.asarray(best != true, np.uint8), probability)


def _fit_temperature(
    blocks: list[Observed], labels: list[list[Label]], truth: _Truth, model: Model
) -> dict[str, Any]:  # fmt: skip
    """T from all sentences; likelihood and reliability on each fold with the T of the others."""
    log_z = np.concatenate([block.scores.log_partitions() for block in blocks])
    log_p = [
        log_probabilities(b.scores, sequence_events(labels[b.first : b.first + len(b.scores)], model.labels))
        for b in blocks
    ]
    sweeps = Sweeps([block.scores for block in blocks], log_z + np.concatenate(log_p))
    n = len(labels)
    is_possible = np.isfinite(sweeps.scores)
    own = np.concatenate([block.sureness for block in blocks])
    after, losses = _on_folds(sweeps, blocks, truth, own)
    before = -np.concatenate(log_p)
    means = [float(-x[is_possible].mean()) if is_possible.any() else -np.inf for x in (before, losses)]
    return {
        "calibration_temperature": best_temperature(sweeps, np.arange(n)),
        "n_impossible": int(n - is_possible.sum()),
        "log_likelihood": (means[0], means[1]),
        "before": reliability(own, truth.is_wrong),
        "after": reliability(after, truth.is_wrong),
    }


def _unfitted(blocks: list[Observed], labels: list[list[Label]], truth: _Truth, model: Model) -> dict[str, Any]:  # noqa: ARG001 - as above
    """What sentences say at the temperature of training."""
    own = reliability(np.concatenate([block.sureness for block in blocks]), truth.is_wrong)
    return {
        "calibration_temperature": 1.0, "n_impossible": 0, "log_likelihood": (-np.inf, -np.inf),
        "before": own, "after": own,
    }  # fmt: skip


def _on_folds(sweeps: Sweeps, blocks: list[Observed], truth: _Truth, own: Floats) -> tuple[Floats, Floats]:
    """Sureness of every token, and loss of every sentence, at the temperature of the other folds."""
    n = len(truth.ptr) - 1
    n_folds = min(_FOLDS, n)
    fold = np.random.default_rng(_SHUFFLE).permutation(n) % n_folds
    sureness, losses = own.copy(), sweeps.losses(1.0)
    if n_folds < 2:
        return sureness, losses
    token_fold = np.repeat(fold, np.diff(truth.ptr))
    for k in range(n_folds):
        s = 1.0 / best_temperature(sweeps, np.flatnonzero(fold != k))
        losses[fold == k] = sweeps.losses(s)[fold == k]
        shown = np.concatenate([_sureness_at(block, s) for block in blocks])
        sureness[token_fold == k] = shown[token_fold == k]
    return sureness, losses


def _sureness_at(block: Observed, s: float) -> Floats:
    marginals = np.concatenate(block.scores.scaled(s).label_marginals())
    return np.asarray(marginals[np.arange(len(block.best)), block.best])


def _spans(blocks: list[Observed], labels: list[list[Label]], model: Model) -> dict[str, Any]:
    """Predicted spans: how sure, and whether the truth has them. True spans: how probable, and whether found."""
    scheme = scheme_of(model.labels)
    counts, sureness, is_wrong = [0], [np.zeros(0)], []
    true_counts, true_probability, is_found = [0], [np.zeros(0)], []
    for block in blocks:
        found, probabilities = spans_of(block, model)
        true = [_true_spans(y) if scheme else [] for y in labels[block.first : block.first + len(found)]]
        sureness.append(probabilities)
        if scheme:
            events = entity_events(block.scores, true, block.first, model.labels, scheme)
            true_probability.append(np.exp(log_probabilities(block.scores, events)))
        for spans, right in zip(found, true, strict=True):
            counts.append(len(spans))
            is_wrong += [span not in right for span in spans]
            true_counts.append(len(right))
            is_found += [span in spans for span in right]
    return {
        "span_ptr": np.cumsum(counts, dtype=np.int64),
        "span_sureness": _float32(sureness),
        "span_is_wrong": np.array(is_wrong, np.uint8),
        "true_span_ptr": np.cumsum(true_counts, dtype=np.int64),
        "true_span_probability": _float32(true_probability),
        "true_span_is_found": np.array(is_found, np.uint8),
    }


def _true_spans(labels: list[Label]) -> list[Entity]:
    """Spans of the truth; labels that mark none, which the model cannot know, have none."""
    try:
        return entities(labels)
    except InputError:
        return []


def _float32(parts: Sequence[Floats]) -> Any:
    return np.concatenate([np.zeros(0), *parts]).astype(np.float32)
