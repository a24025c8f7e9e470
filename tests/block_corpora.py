"""Drawn corpora of a few sentences, cut into blocks."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from vcrf.cluster import Here
from vcrf.estimators.cluster import Counted, Read, count, read_blocks
from vcrf.families import Family, Text, default_families, paper_families, transition_families
from vcrf.problem.gathered import BlockData

WORDS = ["a", "ab", "Ab", "b", "ba", "1", "-"]


class Cut(NamedTuple):
    """Sentences with the numbers of their labels, and the same in blocks."""

    sentences: list[list[str]]
    labels: list[list[int]]
    n_labels: int
    blocks: list[BlockData]

    @property
    def y(self) -> np.ndarray:
        """Flat label numbers."""
        return np.array([label for labels in self.labels for label in labels], np.uint32)


@st.composite
def cuts(draw: st.DrawFn, max_blocks: int = 4) -> Cut:
    """Every label occurs; blocks have one sentence at the least."""
    n_labels = draw(st.integers(2, 3))
    lengths = draw(st.lists(st.integers(1, 6), min_size=max_blocks, max_size=9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sentences = [[WORDS[i] for i in rng.integers(len(WORDS), size=n)] for n in lengths]
    labels = [rng.integers(n_labels, size=n).tolist() for n in lengths]
    labels += [[label] for label in range(n_labels)]
    sentences += [["b"]] * n_labels
    inner = draw(st.sets(st.integers(1, len(sentences) - 1), max_size=max_blocks - 1))
    bounds = [0, *sorted(inner), len(sentences)]
    return Cut(sentences, labels, n_labels, [block_of(sentences[a:b], labels[a:b]) for a, b in pairwise(bounds)])


def block_of(sentences: list[list[str]], labels: list[list[int]]) -> BlockData:
    """A block with its own numbers of words and labels."""
    words = list(dict.fromkeys(word for sentence in sentences for word in sentence))
    own = list(dict.fromkeys(label for listed in labels for label in listed))
    ids = np.array([words.index(word) for sentence in sentences for word in sentence], np.uint32)
    y = np.array([own.index(label) for listed in labels for label in listed], np.uint32)
    ptr = np.cumsum([0, *map(len, sentences)])
    return BlockData(Text(ptr, words, ids), y, list(own))


def family_lists() -> st.SearchStrategy[list[Family]]:
    """Families of one label and of pairs, pairs with words among them."""
    return st.sampled_from([default_families(), paper_families(words=1, tags=2, affix=1), transition_families()])


def counted(cut: Cut, families: list[Family], least_mass: float = 0.0) -> tuple[Read, Counted]:
    """The blocks counted, in this process."""
    runner = Here()
    read = read_blocks(runner, cut.blocks)
    return read, count(runner, read, families, least_mass)
