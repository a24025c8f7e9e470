"""Invented languages whose distribution is known exactly, so that true risk and Bayes error are too.

A sentence of n tokens x and labels y has the probability

    P(x, y) = P(n) * prod_t P(y_t | y_{t-1}, ..., y_{t-order}) * P(x_t | y_t)

where labels before the first are a start symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vcrf.data.corpus import Corpus
from vcrf.data.lexicon import FloatArray, Lexicon, invent_lexicon
from vcrf.errors import InputError

IntArray: TypeAlias = NDArray[np.int64]

# One stream a purpose: asking for the words does not change the tags.
_TAG_STREAM, _WORD_STREAM, _SAMPLE_STREAM = 0, 1, 2


@dataclass(frozen=True)
class SyntheticLanguage:
    """A seeded language: a chain of labels of any order, and words given their label.

    The defaults make 600 sentences look like a small treebank: about 9,600 tokens, 14 labels, many words
    seen once.

    Parameters
    ----------
    n_labels : int
        Number of labels. A third of them, rounded down, is closed: a short list of words each.
    seed : int
        Two languages with equal parameters are equal.
    strengths : tuple of float
        `strengths[k]` scales the random interaction between a label and the k labels before it; the
        order of the chain is `len(strengths) - 1`. Larger means more predictable.
    n_stems, n_suffixes : int
        Stems of all open labels together; suffixes, the empty one included.
    n_closed_words : int
        Words of each closed label.
    ambiguity : float
        Probability that a stem or closed word has a second label.
    mean_length, max_length : float, int
        P(n) is proportional to n * r**n for 1 <= n <= max_length, with r = (mean - 1) / (mean + 1): the
        mean is `mean_length` up to the cut.

    Examples
    --------
    >>> language = SyntheticLanguage(n_labels=4, seed=1)
    >>> corpus = language.sample(10, seed=2)
    >>> len(corpus), language.posterior(corpus.tokens[0]).shape[1]
    (10, 4)
    """

    n_labels: int = 14
    seed: int = 0
    strengths: tuple[float, ...] = (0.6, 0.7, 0.7, 0.5)
    n_stems: int = 4000
    n_suffixes: int = 20
    n_closed_words: int = 10
    ambiguity: float = 0.4
    mean_length: float = 16.0
    max_length: int = 80

    def __post_init__(self) -> None:
        _check_language(self)

    @property
    def order(self) -> int:
        """Number of earlier labels on which a label depends."""
        return len(self.strengths) - 1

    @property
    def n_closed(self) -> int:
        """Number of closed labels."""
        return self.n_labels // 3

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels, open ones first; their positions index every table."""
        n_open = self.n_labels - self.n_closed
        opens = [f"open{i + 1}" for i in range(n_open)]
        return (*opens, *[f"closed{i + 1}" for i in range(self.n_closed)])

    @cached_property
    def transitions(self) -> FloatArray:
        """P(next label | earlier labels), earliest first.

        Shape (n_labels + 1,) * order + (n_labels,); index n_labels in an earlier position is the start
        symbol. A softmax of Gumbel noise, one table for each number of earlier labels:
        a few successors are likely and none is impossible.
        """
        rng = np.random.default_rng([self.seed, _TAG_STREAM])
        scores = np.zeros((self.n_labels + 1,) * self.order + (self.n_labels,))
        for n_earlier, strength in enumerate(self.strengths):
            shape = (self.n_labels + 1,) * n_earlier + (self.n_labels,)
            # A table of fewer earlier labels broadcasts over the earliest ones, which come first.
            scores += strength * _gumbel(rng, shape)
        return _softmax(scores)

    @cached_property
    def lexicon(self) -> Lexicon:
        """Forms and P(form | label), shape (n_labels, n_forms)."""
        return invent_lexicon(
            np.random.default_rng([self.seed, _WORD_STREAM]),
            self.n_labels - self.n_closed,
            self.n_closed,
            n_stems=self.n_stems,
            n_suffixes=self.n_suffixes,
            n_closed_words=self.n_closed_words,
            ambiguity=self.ambiguity,
        )

    @cached_property
    def length_probs(self) -> FloatArray:
        """P(n) at index n, shape (max_length + 1,); index 0 has probability zero."""
        lengths = np.arange(self.max_length + 1.0)
        weights = lengths * ((self.mean_length - 1) / (self.mean_length + 1)) ** lengths
        # A mean of one makes the ratio zero and leaves no weight: every sentence has one token.
        weights[1] = max(weights[1], np.finfo(float).tiny)
        return np.asarray(weights / weights.sum())

    def sample(self, n_sentences: int, seed: int = 0) -> Corpus:
        """Draw independent sentences.

        Parameters
        ----------
        n_sentences : int
        seed : int
            The same seed gives the same sentences.

        Returns
        -------
        Corpus
            Sources are `synthetic:1`, `synthetic:2`, ...
        """
        _check_at_least("n_sentences", n_sentences, 0)
        _check_at_least("seed", seed, 0)
        rng = np.random.default_rng([self.seed, _SAMPLE_STREAM, seed])
        lengths = _inverse_cdf(np.cumsum(self.length_probs), rng.random(n_sentences))
        label_ids = self._sample_labels(rng, lengths)
        form_ids = self._sample_forms(rng, label_ids)
        cuts = np.cumsum(lengths)[:-1]
        return Corpus(
            _names(self.lexicon.forms, form_ids, cuts, n_sentences),
            _names(self.labels, label_ids, cuts, n_sentences),
            [f"synthetic:{i + 1}" for i in range(n_sentences)],
        )

    def log_prob(self, tokens: Sequence[str], labels: Sequence[str]) -> float:
        """Return log P(x, y), the length's probability included.

        Parameters
        ----------
        tokens, labels : sequence of str, n each

        Returns
        -------
        float
            -inf when a label does not emit its token, or the sentence is longer than `max_length`.

        Raises
        ------
        InputError
            When a token or label is unknown, or the lengths differ.
        """
        likelihood = self._likelihood(tokens)
        if len(labels) != len(tokens):
            raise InputError(f"log_prob expects one label a token, got {len(tokens)} tokens and {len(labels)} labels.")
        ids = [self._label_id(label) for label in labels]
        padded = [self.n_labels] * self.order + ids
        steps = [self.transitions[tuple(padded[t : t + self.order + 1])] for t in range(len(ids))]
        with np.errstate(divide="ignore"):
            emissions = np.log(likelihood[np.arange(len(ids)), ids]).sum()
            return float(np.log(steps).sum() + emissions) + self._log_length(len(ids))

    def log_evidence(self, tokens: Sequence[str]) -> float:
        """Return log P(x), the sum over all label sequences, by the forward recursion.

        Parameters
        ----------
        tokens : sequence of str

        Returns
        -------
        float
        """
        _, log_scale = self._forward(self._likelihood(tokens))
        return log_scale + self._log_length(len(tokens))

    def posterior(self, tokens: Sequence[str]) -> FloatArray:
        """Return P(y_t = label | x) for each position, by forward-backward.

        Its row maxima give the Bayes token error of this sentence: 1 - mean_t max_y P(y_t = y | x).

        Parameters
        ----------
        tokens : sequence of str, n of them

        Returns
        -------
        (n, n_labels) float64
            Columns follow `labels`; rows sum to one.
        """
        likelihood = self._likelihood(tokens)
        fwd, _ = self._forward(likelihood)
        bwd = self._backward(likelihood)
        earlier = tuple(range(self.order - 1))
        joint = np.array([(f * b).sum(axis=earlier)[:-1] for f, b in zip(fwd, bwd, strict=True)])
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def bayes_decode(self, tokens: Sequence[str], risk: Literal["token", "sentence"] = "token") -> list[str]:
        """Return the labels of least expected error under the true distribution.

        Parameters
        ----------
        tokens : sequence of str, n of them
        risk : "token" or "sentence"
            "token": the most probable label of each position (least Hamming loss); "sentence": the most
            probable sequence (least zero-one loss).

        Returns
        -------
        list of str, n of them
        """
        if risk == "token":
            ids = self.posterior(tokens).argmax(axis=1).tolist()
        elif risk == "sentence":
            ids = self._viterbi(self._likelihood(tokens))
        else:
            raise InputError(f'risk={risk!r}: expected "token" or "sentence".')
        return [self.labels[i] for i in ids]

    def _likelihood(self, tokens: Sequence[str]) -> FloatArray:
        if not tokens:
            raise InputError("the language has no sentence without tokens. Leave empty sentences out.")
        return self.lexicon.likelihood(list(tokens))

    def _label_id(self, label: str) -> int:
        if label not in self.labels:
            raise InputError(f"label {label!r} is none of the language's: {', '.join(self.labels)}.")
        return self.labels.index(label)

    def _log_length(self, length: int) -> float:
        if length > self.max_length:
            return -np.inf
        with np.errstate(divide="ignore"):
            return float(np.log(self.length_probs[length]))

    def _start(self) -> FloatArray:
        """Return the message before the first token: all mass on start symbols."""
        message = np.zeros((self.n_labels + 1,) * self.order)
        message[(self.n_labels,) * self.order] = 1.0
        return message

    def _forward(self, likelihood: FloatArray) -> tuple[list[FloatArray], float]:
        """Return, for each t, P(last `order` labels | x_1..x_t), and log P(x | n)."""
        messages, log_scale = [], 0.0
        message = self._start()
        for emission in likelihood:
            step = (message[..., None] * self.transitions).sum(axis=0) * emission
            scale = float(step.sum())
            log_scale += float(np.log(scale))
            message = _with_start(step / scale, 0.0)
            messages.append(message)
        return messages, log_scale

    def _backward(self, likelihood: FloatArray) -> list[FloatArray]:
        """Return, for each t, a multiple of P(x_{t+1}..x_n | last `order` labels)."""
        message = np.ones((self.n_labels + 1,) * self.order)
        messages = [message]
        for emission in likelihood[:0:-1]:
            message = (self.transitions * (emission * message[..., :-1])).sum(axis=-1)
            message = message / message.max()
            messages.append(message)
        return messages[::-1]

    def _viterbi(self, likelihood: FloatArray) -> list[int]:
        with np.errstate(divide="ignore"):
            message, emissions = np.log(self._start()), np.log(likelihood)
        log_transitions = np.log(self.transitions)
        pointers = []
        for emission in emissions:
            scores = message[..., None] + log_transitions
            pointers.append(scores.argmax(axis=0))
            message = _with_start(scores.max(axis=0) + emission, -np.inf)
        return _trace_back(message, pointers)

    def _sample_labels(self, rng: np.random.Generator, lengths: IntArray) -> IntArray:
        """Return the labels of all sentences end to end, shape (lengths.sum(),)."""
        cumulative = np.cumsum(self.transitions, axis=-1)
        uniforms = rng.random(int(lengths.sum()))
        starts = np.cumsum(lengths) - lengths
        ids = np.empty(uniforms.shape, dtype=np.int64)
        context = np.full((self.order, len(lengths)), self.n_labels)
        # All sentences advance together: one array step a position instead of one Python step a token.
        for t in range(int(lengths.max(initial=0))):
            alive = np.flatnonzero(lengths > t)
            here = starts[alive] + t
            drawn = _inverse_cdf_rows(cumulative[tuple(context[:, alive])], uniforms[here])
            ids[here] = drawn
            context[:-1, alive] = context[1:, alive]
            context[-1, alive] = drawn
        return ids

    def _sample_forms(self, rng: np.random.Generator, label_ids: IntArray) -> IntArray:
        uniforms = rng.random(label_ids.shape)
        form_ids = np.empty(label_ids.shape, dtype=np.int64)
        for label in range(self.n_labels):
            chosen = label_ids == label
            form_ids[chosen] = _inverse_cdf(np.cumsum(self.lexicon.probs[label]), uniforms[chosen])
        return form_ids


def _check_at_least(name: str, value: float, least: float) -> None:
    if value < least:
        raise InputError(f"{name}={value!r}: expected at least {least}.")


def _check_language(language: SyntheticLanguage) -> None:
    n_open = language.n_labels - language.n_closed
    for name, least in (
        ("n_labels", 1),
        ("seed", 0),
        ("n_stems", n_open),
        ("n_suffixes", 1),
        ("n_closed_words", 1),
        ("mean_length", 1),
        ("max_length", 1),
    ):
        _check_at_least(name, getattr(language, name), least)
    if len(language.strengths) < 2:
        raise InputError(
            f"strengths={language.strengths!r}: expected at least two numbers, for zero and one earlier label."
        )
    if not 0 <= language.ambiguity <= 1:
        raise InputError(f"ambiguity={language.ambiguity!r}: expected a probability from 0 to 1.")


def _gumbel(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Return standard Gumbel noise, from uniform draws: their stream is the most stable of numpy's."""
    # random() gives multiples of 2**-53 in [0, 1): zero is the only draw without a finite logarithm.
    return np.asarray(-np.log(-np.log(np.maximum(rng.random(shape), 2.0**-54))))


def _softmax(scores: FloatArray) -> FloatArray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _inverse_cdf(cumulative: FloatArray, uniforms: FloatArray) -> IntArray:
    """Return the first index whose cumulative weight exceeds each uniform draw times the total."""
    return np.asarray(np.searchsorted(cumulative, uniforms * cumulative[-1], side="right"), dtype=np.int64)


def _inverse_cdf_rows(cumulative: FloatArray, uniforms: FloatArray) -> IntArray:
    """Do as `_inverse_cdf`, with one cumulative row of shape (n, n_labels) for each draw."""
    return np.asarray((cumulative <= uniforms[:, None] * cumulative[:, -1:]).sum(axis=1), dtype=np.int64)


def _with_start(step: FloatArray, fill: float) -> FloatArray:
    """Widen the last axis by the start symbol, which cannot be the newest label."""
    return np.concatenate([step, np.full((*step.shape[:-1], 1), fill)], axis=-1)


def _trace_back(message: FloatArray, pointers: list[IntArray]) -> list[int]:
    """Follow the pointers from the best last context; each gives the label that left the context."""
    context = tuple(int(i) for i in np.unravel_index(int(message.argmax()), message.shape))
    ids = []
    for pointer in reversed(pointers):
        ids.append(context[-1])
        context = (int(pointer[context]), *context[:-1])
    return ids[::-1]


def _names(names: tuple[str, ...], ids: IntArray, cuts: IntArray, n_sentences: int) -> list[list[str]]:
    if n_sentences == 0:
        return []
    return [[names[i] for i in part] for part in np.split(ids, cuts)]
