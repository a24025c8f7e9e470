"""Word classes from raw text, by the exchange algorithm (see `kernels.exchange`).

Frequent words begin in classes of their own and all others in one; rounds over all words, the frequent ones first, move
each to its best class, until hardly any moves. Nothing is drawn: the same text gives the same classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.families.text import intern_sentences
from vcrf.types import Floats, Ints, UInts32

# n log n is looked up below this.
_TABLE = 1 << 16
# Rounds end when no more than this share of the words has moved.
_SETTLED = 1e-3
_MAX_ROUNDS = 50
# Words between two looks at Ctrl-C.
_WORDS_AT_ONCE = 1000

# Word 0 stands for both ends of a sentence, word 1 for all rare words.
_BOUNDARY, _RARE = 0, 1


class RoundRecord(NamedTuple):
    """One round over all words: its number, the words that moved, and nats a token of the model of classes."""

    n_rounds: int
    n_moved: int
    log_likelihood: float


class LearntClasses(NamedTuple):
    """Classes of the words that are frequent enough, from the most frequent word on.

    Attributes
    ----------
    classes : word -> name of its class
    history : one record a round
    is_interrupted : whether a Ctrl-C ended it before the words had settled
    """

    classes: dict[str, str]
    history: list[RoundRecord]
    is_interrupted: bool


def learn_classes(
    sentences: Iterable[Sequence[str]],
    number: int = 128,
    *,
    min_count: int = 3,
    callback: Callable[[RoundRecord], object] | None = None,
) -> LearntClasses:
    """Learn classes of words that stand between the same neighbours.

    Parameters
    ----------
    sentences : tokenised sentences, without labels
    number : of classes
    min_count : words that occur less often get no class; as neighbours they are all one word
    callback : told each round

    Returns
    -------
    LearntClasses
        Ctrl-C after the first round ends it with the classes found so far.
    """
    for name, value, least in (("number", number, 2), ("min_count", min_count, 1)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise InputError(f"`{name}` must be an integer of at least {least}, got {value!r}.")
    bigrams = _count(sentences, int(min_count))
    state = _State(bigrams, int(number))
    is_interrupted = False
    try:
        while not state.is_settled:
            state.improve()
            if callback is not None:
                callback(state.history[-1])
    except KeyboardInterrupt:
        if not state.history:
            raise
        is_interrupted = True
    # Classes are numbered by their most frequent words.
    numbers = {int(c): i for i, c in enumerate(dict.fromkeys(state.classes[2:].tolist()), 1)}
    classes = {word: f"c{numbers[int(c)]}" for word, c in zip(bigrams.words, state.classes[2:], strict=True)}
    return LearntClasses(classes, state.history, is_interrupted)


class _Bigrams(NamedTuple):
    """Counts of words and of neighbours.

    Attributes
    ----------
    words : the words that get a class, from the most frequent on; their numbers begin at 2
    counts : (n,) int64, with the boundary and the rare words
    after, before : CSR (ptr, ids, counts) of the words after and before each word
    """

    words: list[str]
    counts: Ints
    after: tuple[Ints, UInts32, Ints]
    before: tuple[Ints, UInts32, Ints]


def _count(sentences: Iterable[Sequence[str]], min_count: int) -> _Bigrams:
    text = intern_sentences([sentence for sentence in sentences if len(sentence)])
    counts = np.bincount(text.word_ids, minlength=len(text.words))
    # Stable: words of the same count stay in the order of the text.
    kept = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts >= min_count)]
    if len(kept) < 2:
        raise InputError(
            f"Word classes need two words that occur {min_count} times, got {len(kept)} in {text.n_tokens} tokens. "
            "Give more text, or a smaller `min_count`."
        )
    numbers = np.full(len(text.words), _RARE)
    numbers[kept] = np.arange(2, len(kept) + 2)
    # A boundary before the first sentence and after each.
    flat = np.insert(numbers[text.word_ids], text.sent_ptr, _BOUNDARY)
    n = len(kept) + 2
    pairs, times = np.unique(flat[:-1] * n + flat[1:], return_counts=True)
    first, second = np.divmod(pairs, n)
    return _Bigrams(
        [text.words[i] for i in kept.tolist()],
        np.bincount(flat[1:], minlength=n),
        _rows(first, second, times, n),
        _rows(second, first, times, n),
    )


def _rows(of: Ints, ids: Ints, counts: Ints, n: int) -> tuple[Ints, UInts32, Ints]:
    order = np.lexsort((ids, of))
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(of, minlength=n))])
    return ptr, ids[order].astype(np.uint32), counts[order].astype(np.int64)


class _State:
    """Classes of all words with the counts of classes; class 0 has the boundary alone."""

    def __init__(self, bigrams: _Bigrams, number: int) -> None:
        self.bigrams = bigrams
        n_classes = min(number, len(bigrams.words)) + 1
        self.classes = np.minimum(np.arange(len(bigrams.counts)) - 1, n_classes - 1).astype(np.uint32)
        self.classes[[_BOUNDARY, _RARE]] = 0, n_classes - 1
        ptr, ids, times = bigrams.after
        self.pairs = np.zeros((n_classes, n_classes), np.int64)
        np.add.at(self.pairs, (np.repeat(self.classes, np.diff(ptr)), self.classes[ids]), times)
        self.pairs_back = self.pairs.T.copy()
        self.totals = np.bincount(self.classes, bigrams.counts, n_classes).astype(np.int64)
        self.table = _n_log_n(np.arange(_TABLE))
        self.history: list[RoundRecord] = []

    @property
    def is_settled(self) -> bool:
        if not self.history:
            return False
        return self.history[-1].n_moved <= _SETTLED * len(self.classes) or len(self.history) >= _MAX_ROUNDS

    def improve(self) -> None:
        """One round over all words."""
        moved, n = 0, len(self.classes)
        for first in range(1, n, _WORDS_AT_ONCE):
            words = np.arange(first, min(first + _WORDS_AT_ONCE, n), dtype=np.uint32)
            moved += kernels.exchange.exchange(
                words, self.classes, self.bigrams.counts, self.bigrams.after, self.bigrams.before, self.pairs,
                self.pairs_back, self.totals, self.table,
            )  # fmt: skip
        self.history.append(RoundRecord(len(self.history) + 1, moved, self.log_likelihood()))

    def log_likelihood(self) -> float:
        """Nats a token, of the text under the bigram model of classes."""
        fit = _n_log_n(self.pairs).sum() - 2.0 * _n_log_n(self.totals).sum() + _n_log_n(self.bigrams.counts).sum()
        return float(fit / self.bigrams.counts.sum())


def _n_log_n(n: Ints) -> Floats:
    return np.asarray(n * np.log(np.maximum(n, 1)))
