"""The paper's protocol: folds and runs, the grid of strengths, noise in the training labels.

Five random folds. Run i validates on fold i, tests on fold i + 1 (mod 5) and trains on the other three. Runs 5 .. 9 are
those of the next seed of folds, and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vcrf.errors import InputError
from vcrf.types import Ints

N_FOLDS = 5
STRENGTHS = (1.0, 0.5, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 0.0)
NOISE = 0.2
NOISE_MIN_COUNT = 5


class Grid(NamedTuple):
    """All pairs of complexity strengths and base strengths; each from strong to weak. Or only the two axes of these."""

    complexity_strengths: tuple[float, ...]
    base_strengths: tuple[float, ...]
    is_axes: bool = False

    def bases(self, complexity_strength: float) -> tuple[float, ...]:
        """Base strengths of the path at a complexity strength."""
        return (0.0,) if self.is_axes and complexity_strength > 0.0 else self.base_strengths

    def on(self, strengths: tuple[float, ...]) -> Grid:
        """The same with other strengths on both axes; complexity strength 0, the L1-CRF, is always there."""
        with_zero = strengths if 0.0 in strengths else (*strengths, 0.0)
        return self._replace(complexity_strengths=with_zero, base_strengths=strengths)


GRIDS = {
    "paper": Grid(STRENGTHS, STRENGTHS),
    # For a first look: the part of the paper's grid where the best points of small treebanks lie.
    "quick": Grid((1e-2, 1e-3, 0.0), (1e-2, 1e-3, 1e-4)),
    # One strength at a time, for a comparison at equal ones.
    "axes": Grid(STRENGTHS, STRENGTHS, is_axes=True),
}


class Split(NamedTuple):
    """Numbers of the sentences of one run, sorted."""

    train: Ints
    validation: Ints
    test: Ints


def folds(n_sentences: int, seed: int) -> list[Ints]:
    """Random partition in five folds, whose sizes differ by one at the most."""
    if n_sentences < N_FOLDS:
        raise InputError(f"{N_FOLDS} folds need at least {N_FOLDS} sentences: got {n_sentences}.")
    order = np.random.default_rng(seed).permutation(n_sentences)
    return [np.sort(order[i::N_FOLDS]) for i in range(N_FOLDS)]


def parts_of_run(n_sentences: int, seed: int, run: int) -> Split:
    """What run 0 .. 4 trains, validates and tests on; of later runs the folds are those of later seeds."""
    parts = folds(n_sentences, seed + run // N_FOLDS)
    run %= N_FOLDS
    test = (run + 1) % N_FOLDS
    train = np.sort(np.concatenate([parts[i] for i in range(N_FOLDS) if i not in (run, test)]))
    return Split(train, parts[run], parts[test])


def noisy_labels(
    tokens: Sequence[Sequence[str]], labels: Sequence[Sequence[str]], rate: float, min_count: int, seed: int
) -> list[list[str]]:
    """Labels in which those of common words are replaced, with probability `rate`, by another one.

    A word is common if it occurs at least `min_count` times in the data; the other label is drawn uniformly. What
    happens to a sentence does not depend on the run.
    """
    if not 0.0 <= rate <= 1.0:
        raise InputError(f"The share of flipped labels must lie between 0 and 1, got {rate!r}.")
    names = sorted({label for sentence in labels for label in sentence})
    if rate > 0.0 and len(names) < 2:
        raise InputError("Noise needs another label to put in place: the data have only one.")
    number = {label: i for i, label in enumerate(names)}
    count = Counter(word for sentence in tokens for word in sentence)
    rng = np.random.default_rng([seed, 1])  # apart from the folds
    noisy = []
    for words, true in zip(tokens, labels, strict=True):
        is_flipped = rng.random(len(true)) < rate
        shift = rng.integers(1, max(len(names), 2), len(true))
        noisy.append(
            [
                names[(number[label] + int(by)) % len(names)] if flip and count[word] >= min_count else label
                for word, label, flip, by in zip(words, true, is_flipped, shift, strict=True)
            ]
        )
    return noisy
