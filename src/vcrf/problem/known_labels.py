"""Known labels: a word that training saw often takes the labels that it was seen with, and no other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vcrf.errors import InputError
from vcrf.families.explicit import AttributeText
from vcrf.families.text import Text
from vcrf.problem.label_sets import AllowedLabels, sets_of
from vcrf.types import Bools, Ints, UInts8, UInts32, UInts64


@dataclass(frozen=True, eq=False)
class KnownLabels:
    """A dictionary from words to sets of labels.

    Attributes
    ----------
    words : (n_words,) uint64, sorted hashes of the words
    ptr, labels : CSR from words to their labels, sorted, never empty
    n_labels : of the model
    least : occurrences in training from which on a word is in it
    """

    words: UInts64
    ptr: Ints
    labels: UInts32
    n_labels: int
    least: int

    def __len__(self) -> int:
        return len(self.words)

    @property
    def told(self) -> str:
        """A sentence for people."""
        mean = len(self.labels) / max(len(self), 1)
        return (
            f"{len(self):,} words seen at least {self.least:,} times in training take only the labels that they were "
            f"seen with, {mean:.1f} of {self.n_labels:,} on average"
        )

    @cached_property
    def _sets(self) -> tuple[Bools, Ints]:
        """Masks of distinct sets, the first of all labels, and the number of that of each word; of no word the last."""
        of_words = np.zeros((len(self), self.n_labels), bool)
        of_words[np.repeat(np.arange(len(self)), np.diff(self.ptr)), self.labels] = True
        packed, number = np.unique(np.packbits(of_words, axis=1), axis=0, return_inverse=True)
        masks = np.unpackbits(packed, axis=1, count=self.n_labels).astype(bool)
        every = np.ones((1, self.n_labels), bool)
        return np.concatenate([every, masks]), np.append(number.reshape(-1) + 1, 0)

    def sets(self, text: Text) -> AllowedLabels:
        """The labels that the tokens of a text may have: all, where the word is not in the dictionary."""
        masks, number = self._sets
        hashes = text.reading("word")[:-1]
        place = np.searchsorted(self.words, hashes)
        is_there = np.append(self.words, 0)[place] == hashes if len(self) else np.zeros(len(hashes), bool)
        of_word = number[np.where(is_there, place, -1)]
        return sets_of(masks, of_word[text.word_ids])

    def masks(self, text: Text) -> Bools:
        """The same as a mask, (n_tokens, n_labels)."""
        found = self.sets(text)
        return np.asarray(found.mask[found.of_token])


def learn_known_labels(text: Text, y: UInts32, n_labels: int, least: int, allowed: UInts8 | None = None) -> KnownLabels:
    """The labels of each word that has at least so many tokens.

    Where labels are left open (`allowed`), those of tokens with one label count; a token whose set has none of them
    adds its set, so that every token keeps a label.
    """
    if isinstance(text, AttributeText):
        raise InputError(
            "`known_labels` are of words, and these tokens are given attributes: pass lists of str, or leave it out."
        )
    words = text.word_ids.astype(np.int64)
    is_known = np.ones(len(y), bool) if allowed is None or not len(allowed) else allowed.sum(axis=1) == 1
    seen = np.unique(words[is_known] * n_labels + y[is_known])
    if allowed is not None and len(allowed):
        seen = np.union1d(seen, _of_open(words, allowed, seen, n_labels))
    word, label = np.divmod(seen, n_labels)
    is_frequent = np.bincount(words, minlength=len(text.words)) >= least
    kept = is_frequent[word]
    word, label = word[kept], label[kept]
    hashes = text.reading("word")[:-1]
    order = np.lexsort((label, hashes[word]))
    distinct, counts = np.unique(hashes[word], return_counts=True)
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return KnownLabels(distinct, ptr, label[order].astype(np.uint32), n_labels, least)


def _of_open(words: Ints, allowed: UInts8, seen: Ints, n_labels: int) -> Ints:
    """Words and labels of tokens whose set has none of the labels that their word was seen with."""
    more = []
    for t in np.flatnonzero(allowed.sum(axis=1) > 1).tolist():
        codes = words[t] * n_labels + np.flatnonzero(allowed[t])
        place = np.searchsorted(seen, codes)
        if not np.any(np.append(seen, -1)[place] == codes):
            more.append(codes)
    return np.concatenate([np.zeros(0, np.int64), *more])
