"""Folds, runs, grids and noise are the paper's."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError
from vcrf.experiments.protocol import GRIDS, folds, noisy_labels, parts_of_run


@pytest.mark.parametrize("n", [5, 23, 600])
def test_folds_are_a_partition_of_even_sizes(n: int) -> None:
    """Every sentence is in one fold."""
    parts = folds(n, seed=3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_runs_validate_on_fold_i_test_on_the_next_and_train_on_the_rest() -> None:
    """The assignment of folds, written out."""
    parts = [set(part.tolist()) for part in folds(23, seed=0)]
    for run, (validation, test) in enumerate([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]):
        found = parts_of_run(23, seed=0, run=run)
        assert set(found.validation.tolist()) == parts[validation]
        assert set(found.test.tolist()) == parts[test]
        assert set(found.train.tolist()) == set(range(23)) - parts[validation] - parts[test]


def test_the_seed_decides_the_folds() -> None:
    """One seed, one partition; another seed, another one."""
    first, again, other = (np.concatenate(folds(50, seed)).tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_later_runs_are_those_of_later_seeds() -> None:
    """Run 5 s + i has the folds of the s-th seed after the first."""
    for run in (0, 3):
        later, first = parts_of_run(23, seed=4, run=10 + run), parts_of_run(23, seed=6, run=run)
        assert all(a.tolist() == b.tolist() for a, b in zip(later, first, strict=True))


def test_the_axes_have_one_strength_at_a_time() -> None:
    """All base strengths without a complexity strength, none with one."""
    grid = GRIDS["axes"].on((0.1, 0.01, 0.0))
    assert [(c, b) for c in grid.complexity_strengths for b in grid.bases(c)] == [
        (0.1, 0.0), (0.01, 0.0), (0.0, 0.1), (0.0, 0.01), (0.0, 0.0)
    ]  # fmt: skip
    assert GRIDS["axes"].on((0.1,)) == ((0.1, 0.0), (0.1,), True)
    assert GRIDS["paper"].bases(0.1) == GRIDS["paper"].base_strengths


def test_too_few_sentences_are_refused() -> None:
    """Four sentences make no five folds."""
    with pytest.raises(InputError, match="at least 5 sentences: got 4"):
        folds(4, seed=0)


def test_the_paper_grid_and_the_quick_one() -> None:
    """All pairs of the paper's eight strengths; the quick grid is a part of it with the L1-CRF."""
    assert GRIDS["paper"].complexity_strengths == GRIDS["paper"].base_strengths
    assert GRIDS["paper"].base_strengths == (1, 0.5, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 0)
    for quick, paper in zip(GRIDS["quick"][:2], GRIDS["paper"][:2], strict=True):
        assert set(quick) < set(paper)
    assert 0.0 in GRIDS["quick"].complexity_strengths


def test_noise_flips_labels_of_common_words_to_other_labels() -> None:
    """20 % of the common words, any other label alike, rare words never."""
    corpus = SyntheticLanguage(n_labels=5, n_stems=60).sample(600)
    noisy = noisy_labels(corpus.tokens, corpus.labels, rate=0.2, min_count=5, seed=0)
    count = Counter(word for sentence in corpus.tokens for word in sentence)
    n_common = n_flipped = n_rare = 0
    by: Counter[tuple[str, str]] = Counter()
    for tokens, true, seen in zip(corpus.tokens, corpus.labels, noisy, strict=True):
        for word, a, b in zip(tokens, true, seen, strict=True):
            if count[word] < 5:
                n_rare += 1
                assert a == b
            else:
                n_common += 1
                n_flipped += a != b
                by[a, b] += 1
    assert n_rare > 10  # or the test says nothing
    # Five standard deviations of a binomial count.
    assert abs(n_flipped - 0.2 * n_common) < 5 * (0.16 * n_common) ** 0.5
    label = max(corpus.label_set, key=lambda a: by[a, a])
    flipped = [by[label, other] for other in corpus.label_set if other != label]
    assert max(flipped) - min(flipped) < 5 * (2 * np.mean(flipped)) ** 0.5


def test_noise_depends_on_the_seed_alone() -> None:
    """The same seed flips the same labels; no noise flips none."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=20).sample(30)
    first, again, other = (noisy_labels(corpus.tokens, corpus.labels, 0.5, 1, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert noisy_labels(corpus.tokens, corpus.labels, 0.0, 1, 1) == corpus.labels


def test_noise_with_one_label_is_refused() -> None:
    """There is no other label."""
    with pytest.raises(InputError, match="only one"):
        noisy_labels([["a"]], [["X"]], 0.2, 1, 0)
