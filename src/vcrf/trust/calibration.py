"""What calibration sentences say about a tagger: kept in the model file, enough for thresholds of any strictness."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vcrf.errors import InputError
from vcrf.trust.reliability import Reliability
from vcrf.types import Floats, Ints, UInts64

Floats32: TypeAlias = NDArray[np.float32]
Bytes: TypeAlias = NDArray[np.uint8]

UNITS = ("token", "sentence", "span")
# Below every threshold.
_NEVER = np.float32(-1.0)


class Units(NamedTuple):
    """Units that are accepted or not, by sentence: units ptr[i] .. ptr[i+1]-1 belong to sentence i.

    Parameters
    ----------
    ptr : (n_sentences + 1,) int64
    sureness : (n_units,) float32, probability of what was predicted
    is_wrong : (n_units,) uint8
    most : int
        0: rates are means over sentences, a unit counts 1 / (units of its sentence). Else they are pooled, every unit
        counts 1 / most, and sentences with more units than that are never accepted (see `pooled`).
    """

    ptr: Ints
    sureness: Floats32
    is_wrong: Bytes
    most: int = 0

    @property
    def n_sentences(self) -> int:
        """Number of sentences, those without a unit too."""
        return len(self.ptr) - 1

    @property
    def sentence_of(self) -> Ints:
        """Sentence of each unit."""
        return np.repeat(np.arange(self.n_sentences), np.diff(self.ptr))

    @property
    def divisor(self) -> Floats:
        """What each unit is divided by, so that the units of a sentence count 1 at the most, (n_units,)."""
        if self.most:
            return np.full(len(self.sureness), float(self.most))
        return np.asarray(np.diff(self.ptr)[self.sentence_of], np.float64)

    def pooled(self, most: int) -> Units:
        """The same for rates over all units together, sentences with more than `most` units accepted never."""
        is_long = np.diff(self.ptr)[self.sentence_of] > most
        return self._replace(sureness=np.where(is_long, _NEVER, self.sureness), most=most)

    def take(self, sentences: Ints) -> Units:
        """The units of some sentences."""
        counts = np.diff(self.ptr)[sentences]
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        rows = np.repeat(self.ptr[sentences] - ptr[:-1], counts) + np.arange(ptr[-1])
        return Units(ptr, self.sureness[rows], self.is_wrong[rows], self.most)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A tagger on labelled sentences that it was not trained on.

    Thresholds look at the tagger's own probabilities, as training left them: the tagger is then fixed before it sees
    these sentences, which the guarantees ask for. The calibration temperature, chosen on them, is for what is shown.

    Attributes
    ----------
    calibration_temperature : T; scores are divided by it before probabilities are shown
    n_impossible : sentences whose labels the tagger cannot give, which say nothing about T
    log_likelihood : mean log probability of the labels of a sentence before and after, on held-out folds
    before, after : Reliability, on held-out folds
    data_checksum : SHA-256 of the sentences and labels
    scheme : "BIO" or "BILOU" if there are spans, else ""
    ptr : (n_sentences + 1,) int64, tokens of each sentence
    sureness : (n_tokens,) float32, probability of the label that `predict` gives
    true_probability : (n_tokens,) float32, probability of the true label
    is_wrong : (n_tokens,) uint8
    sequence_probability : (n_sentences,) float32, probability of the best sequence
    unknown_share : (n_sentences,) float32, share of words that training had not seen
    span_ptr, span_sureness, span_is_wrong : predicted spans, likewise
    true_span_ptr : (n_sentences + 1,) int64, true spans of each sentence; all 0 where labels mark none
    true_span_probability : (n_true_spans,) float32
    true_span_is_found : (n_true_spans,) uint8, whether it is predicted
    sentences : (n_sentences,) uint64, sorted fingerprints of the sentences; none in the first files
    """

    calibration_temperature: float
    n_impossible: int
    log_likelihood: tuple[float, float]
    before: Reliability
    after: Reliability
    data_checksum: str
    scheme: str
    ptr: Ints
    sureness: Floats32
    true_probability: Floats32
    is_wrong: Bytes
    sequence_probability: Floats32
    unknown_share: Floats32
    span_ptr: Ints
    span_sureness: Floats32
    span_is_wrong: Bytes
    true_span_ptr: Ints
    true_span_probability: Floats32
    true_span_is_found: Bytes
    sentences: UInts64 = field(default_factory=lambda: np.zeros(0, np.uint64))

    @property
    def n_sentences(self) -> int:
        """Number of calibration sentences n."""
        return len(self.ptr) - 1

    @property
    def n_tokens(self) -> int:
        """Number of their tokens."""
        return len(self.sureness)

    @property
    def mean_sureness(self) -> Floats:
        """Mean sureness of the tokens of each sentence."""
        return sentence_means(self.ptr, self.sureness)

    def units(self, unit: str) -> Units:
        """The units of a kind: "token", "sentence" or "span"."""
        check_unit(unit)
        if unit == "token":
            return Units(self.ptr, self.sureness, self.is_wrong)
        if unit == "sentence":
            return Units(np.arange(self.n_sentences + 1), self.sequence_probability, self.is_sentence_wrong)
        if not self.scheme:
            raise InputError("`unit='span'` needs labels that mark spans, BIO or BILOU, and the model's do not.")
        return Units(self.span_ptr, self.span_sureness, self.span_is_wrong)

    @property
    def is_sentence_wrong(self) -> Bytes:
        """Whether a sentence has a wrong label, (n_sentences,) uint8."""
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.is_wrong, dtype=np.int64)])
        return np.asarray(np.diff(sums[self.ptr]) > 0, np.uint8)


def check_unit(unit: str) -> None:
    """Raise InputError unless there are units of this kind."""
    if unit not in UNITS:
        raise InputError(f"`unit` must be one of {', '.join(UNITS)}, got {unit!r}.")


def sentence_means(ptr: Ints, values: NDArray[np.floating[Any]]) -> Floats:
    """Mean of the values of each sentence, (n_sentences,); 0 for an empty one."""
    sums = np.concatenate([np.zeros(1), np.cumsum(values, dtype=np.float64)])
    return np.asarray(np.diff(sums[ptr]) / np.maximum(np.diff(ptr), 1))
