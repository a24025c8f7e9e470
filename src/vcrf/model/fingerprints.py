"""Fingerprints of sentences: which sentences a model was trained on, in eight bytes each.

A fingerprint is a 64-bit hash of the words of a sentence, or of its attributes and their values; labels have no part in
it. Its lowest bit says whether the sentence is long. Two texts can then be compared: how many sentences of the one are
in the other, beside how many would be by chance. Drawn alike, a new sentence is among n others as often as one of these
n is among the rest: the share of sentences that occur more than once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vcrf import kernels
from vcrf.families.explicit import AttributeText
from vcrf.families.text import Text
from vcrf.types import UInts64

# Shorter sentences ("Yes .") repeat without saying anything about where a text is from.
LONG = 5
_ONE = np.uint64(1)


class Overlap(NamedTuple):
    """Sentences of a text that are in another.

    Parameters
    ----------
    n_seen : how many are
    n_sentences : of how many
    chance : the share that is expected of texts that are drawn alike
    is_of_long : whether only sentences of at least `LONG` tokens are counted
    """

    n_seen: int
    n_sentences: int
    chance: float
    is_of_long: bool

    @property
    def share(self) -> float:
        """Share of the sentences that are in the other text."""
        return self.n_seen / self.n_sentences if self.n_sentences else 0.0


def fingerprints(text: Text) -> UInts64:
    """One number a sentence, sorted, (n_sentences,)."""
    tokens = _attribute_hashes(text) if isinstance(text, AttributeText) else text.reading("word")[text.word_ids]
    found = _hashes(text.sent_ptr, tokens)
    is_long = np.diff(text.sent_ptr) >= LONG
    return np.sort(np.where(is_long, found | _ONE, found & ~_ONE))


def overlap(known: UInts64, new: UInts64) -> Overlap:
    """Compare sentences with those of a text that is known; short ones count only where most are."""
    is_of_long = 2 * int(np.sum(new & _ONE)) >= len(new)
    if is_of_long:
        known, new = known[(known & _ONE) > 0], new[(new & _ONE) > 0]
    distinct, counts = np.unique(known, return_counts=True)
    chance = float(counts[counts > 1].sum() / max(len(known), 1))
    return Overlap(int(np.isin(new, distinct).sum()), len(new), chance, is_of_long)


def joined(parts: Sequence[UInts64]) -> UInts64:
    """Sentences that any of several texts has, each as often as one of them has it, sorted."""
    found = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))
    counts = np.zeros(len(found), np.int64)
    for part in parts:
        mine, n = np.unique(part, return_counts=True)
        place = np.searchsorted(found, mine)
        counts[place] = np.maximum(counts[place], n)
    return np.repeat(found, counts)


def _attribute_hashes(text: AttributeText) -> UInts64:
    """Hash of each token, whatever the order of its attributes: the sum over them."""
    pairs = np.stack([text.keys()[text.attributes], text.values.view(np.uint64)], axis=1).reshape(-1)
    each = _hashes(np.arange(0, len(pairs) + 1, 2), pairs)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(each, dtype=np.uint64)])
    ends = np.searchsorted(text.positions, np.arange(text.n_tokens + 1))
    return np.asarray(sums[ends[1:]] - sums[ends[:-1]])


def _hashes(ptr: np.ndarray, values: UInts64) -> UInts64:
    """Hash of the values ptr[i] .. ptr[i+1]-1 of each i; each is read as two letters of 32 bits."""
    out = np.empty(len(ptr) - 1, np.uint64)
    letters = np.ascontiguousarray(values, "<u8").view("<u4").astype(np.uint32)
    kernels.strings.hash_strings(2 * ptr.astype(np.int64), letters, out)
    return out
