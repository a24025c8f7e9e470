"""What every reader returns and every estimator takes: sentences with labels and their places."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, SupportsIndex, overload

from vcrf.errors import InputError


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sequence of tokens, its labels, and where it was read.

    Parameters
    ----------
    tokens : tuple of str
        The n tokens.
    labels : tuple of str
        The n labels.
    source : str
        `path:line` of the first token; it ends up in error messages.
    """

    tokens: tuple[str, ...]
    labels: tuple[str, ...]
    source: str


@dataclass(frozen=True, repr=False)
class Corpus:
    """Sentences as three parallel lists.

    Parameters
    ----------
    tokens : list of list of str
        One list of tokens a sentence.
    labels : list of list of str
        One label a token, in the same shape as `tokens`.
    sources : list of str
        `path:line` of each sentence.

    Raises
    ------
    InputError
        When the three do not have the same shape.

    Examples
    --------
    >>> corpus = Corpus([["a", "b"], ["c"]], [["X", "Y"], ["X"]], ["toy:1", "toy:4"])
    >>> corpus
    Corpus(2 sentences, 3 tokens, 2 labels, first at toy:1)
    >>> corpus.take([1]).tokens
    [['c']]
    """

    tokens: list[list[str]]
    labels: list[list[str]]
    sources: list[str]

    def __post_init__(self) -> None:
        _check_lengths(self)

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence]) -> Corpus:
        """Collect sentences in their order.

        Parameters
        ----------
        sentences : iterable of Sentence

        Returns
        -------
        Corpus
        """
        tokens, labels, sources = [], [], []
        for sentence in sentences:
            tokens.append(list(sentence.tokens))
            labels.append(list(sentence.labels))
            sources.append(sentence.source)
        return cls(tokens, labels, sources)

    @property
    def n_tokens(self) -> int:
        """Number of tokens in all sentences."""
        return sum(map(len, self.tokens))

    @property
    def label_set(self) -> tuple[str, ...]:
        """The distinct labels, sorted."""
        # A label may be open (None) or one of several, as annotations have them.
        labels: set[Any] = set().union(*self.labels)
        groups = [label if isinstance(label, frozenset) else {label} for label in labels]
        return tuple(sorted(set().union(*groups) - {None}))

    def take(self, indices: Iterable[SupportsIndex]) -> Corpus:
        """Return the sentences at these positions, in this order; repeats are allowed.

        Parameters
        ----------
        indices : iterable of int
            Positions from 0 to `len(corpus) - 1`, or negative ones from the end.

        Returns
        -------
        Corpus

        Raises
        ------
        InputError
            When a position does not exist, or is a boolean.
        """
        chosen = [self._position(index) for index in indices]
        return Corpus(
            [self.tokens[i] for i in chosen],
            [self.labels[i] for i in chosen],
            [self.sources[i] for i in chosen],
        )

    def _position(self, index: SupportsIndex) -> int:
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise InputError(
                f"take() expects positions of sentences, got {index!r}. "
                "Turn a boolean mask into positions with numpy.flatnonzero(mask)."
            )
        position = operator.index(index)
        if not -len(self) <= position < len(self):
            raise InputError(
                f"take() got position {position}, but the corpus has {len(self)} sentences. "
                f"Pass positions from 0 to {len(self) - 1}."
            )
        return position

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[Sentence]:
        for tokens, labels, source in zip(self.tokens, self.labels, self.sources, strict=True):
            yield Sentence(tuple(tokens), tuple(labels), source)

    @overload
    def __getitem__(self, key: SupportsIndex) -> Sentence: ...

    @overload
    def __getitem__(self, key: slice) -> Corpus: ...

    def __getitem__(self, key: SupportsIndex | slice) -> Sentence | Corpus:
        if isinstance(key, slice):
            return Corpus(self.tokens[key], self.labels[key], self.sources[key])
        return Sentence(tuple(self.tokens[key]), tuple(self.labels[key]), self.sources[key])

    def __repr__(self) -> str:
        counts = f"{len(self)} sentences, {self.n_tokens} tokens, {len(self.label_set)} labels"
        place = f", first at {self.sources[0]}" if self.sources else ""
        return f"Corpus({counts}{place})"


def _check_lengths(corpus: Corpus) -> None:
    """Raise InputError unless tokens, labels and sources have one shape."""
    lengths = len(corpus.tokens), len(corpus.labels), len(corpus.sources)
    if len(set(lengths)) != 1:
        raise InputError(
            "Corpus needs as many lists of labels and sources as sentences: "
            f"got {lengths[0]} sentences, {lengths[1]} lists of labels, {lengths[2]} sources. "
            "Pass three lists of the same length."
        )
    for tokens, labels, source in zip(corpus.tokens, corpus.labels, corpus.sources, strict=True):
        if len(tokens) != len(labels):
            raise InputError(
                f"{source}: expected one label a token, got {len(tokens)} tokens and {len(labels)} labels. "
                "Correct this sentence or leave it out."
            )
