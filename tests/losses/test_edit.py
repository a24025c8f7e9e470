"""Edit distance: against rapidfuzz and a plain dynamic program; bands, caps, budgets, sizes."""

from __future__ import annotations

import numpy as np
import pytest

import task_losses
from vcrf import read_corpus
from vcrf.errors import BudgetError, InputError
from vcrf.losses import EditLoss, HammingLoss, SmithWatermanLoss

Levenshtein = pytest.importorskip("rapidfuzz.distance").Levenshtein


def random_pair(rng, max_length=30, equal=False):
    """Return two sequences, the second a copy of the first with a few edits or another sequence."""
    n_labels = int(rng.integers(2, 18))
    y = rng.integers(n_labels, size=rng.integers(0, max_length))
    other = y.tolist()
    for _ in range(rng.integers(0, 6)):
        at = int(rng.integers(len(other) + 1))
        if rng.random() < 0.5:
            other.insert(at, int(rng.integers(n_labels)))
        del other[at + 1 : at + 2]
    if rng.random() < 0.3:
        other = rng.integers(n_labels, size=rng.integers(0, max_length)).tolist()
    return (y, np.resize(np.array([*other, 0], np.int64), len(y))) if equal else (y, np.array(other, np.int64))


def test_distance_is_that_of_rapidfuzz(seed):
    """Thousands of pairs, of unequal lengths too."""
    rng = np.random.default_rng(seed)
    full, capped = EditLoss(band=None), EditLoss(band=None, cap=4)
    for _ in range(3_000):
        y, reference = random_pair(rng)
        expected = Levenshtein.distance(y.tolist(), reference.tolist())
        assert full(y, reference) == full(y * 10**9, reference * 10**9) == expected
        assert capped(y, reference) == min(expected, 4)


def test_automata_are_rapidfuzz(seed):
    """Path costs of the automata: the cap is exact; the band lies between the distance and Hamming, exact up to 3."""
    rng = np.random.default_rng(seed)
    n_exact = 0
    for _ in range(100):
        reference = random_pair(rng, 20, equal=True)[0]
        others = np.array([np.roll(reference, 1), *(rng.integers(17, size=(20, len(reference))))])
        for row in others[1:]:  # close ones
            keep = rng.random(len(reference)) < 0.8
            row[keep] = reference[keep]
        distance = np.array([Levenshtein.distance(y.tolist(), reference.tolist()) for y in others])
        hamming = (others != reference).sum(axis=1)
        capped = EditLoss(band=None, cap=3).automaton(reference, 17).path_costs(others)
        assert capped.tolist() == np.minimum(distance, 3).tolist()
        for band in (1, 2):
            banded = EditLoss(band=band).automaton(reference, 17).path_costs(others)
            assert (distance <= banded).all()
            assert (banded <= hamming).all()
            is_exact = distance <= 2 * band + 1
            assert (banded == distance)[is_exact].all()
            n_exact += int((is_exact & (distance < hamming)).sum())
    assert n_exact > 30  # pairs where a shift is cheaper than substitutions


@pytest.mark.parametrize("equal", [True, False])
def test_distance_with_costs_is_the_plain_program(equal, seed):
    """Costs of each label; with the automaton where the lengths are equal."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n_labels = int(rng.integers(2, 5))
        insertion, deletion = 0.25 * rng.integers(1, 9, size=(2, n_labels))
        substitution = 0.25 * rng.integers(1, 9, size=(n_labels, n_labels)) * (1 - np.eye(n_labels))
        y, reference = (rng.integers(n_labels, size=rng.integers(0, 9)) for _ in range(2))
        reference = np.resize(reference, len(y)) if equal and len(reference) else y.copy() if equal else reference
        costs = (insertion.__getitem__, deletion.__getitem__, lambda a, b, c=substitution: c[a, b])
        expected = task_losses.edit_distance(y.tolist(), reference.tolist(), *costs)
        loss = EditLoss(insertion, deletion, substitution, band=None)
        assert loss(y, reference) == pytest.approx(expected)
        if equal:
            assert loss.automaton(reference, n_labels).path_cost(y) == pytest.approx(expected)


def test_real_costs(seed):
    """Costs that are no multiples of anything: path costs are exact to 1e-9."""
    rng = np.random.default_rng(seed)
    insertion, deletion = 0.5 + rng.random((2, 3))
    substitution = rng.random((3, 3)) * (1 - np.eye(3))
    loss = EditLoss(insertion, deletion, substitution, band=1)
    reference = rng.integers(3, size=8)
    others = rng.integers(3, size=(200, 8))
    got = loss.automaton(reference, 3).path_costs(others)
    np.testing.assert_allclose(got, [loss(y, reference) for y in others], atol=1e-9)
    np.testing.assert_allclose(
        EditLoss(1e6, 1e6, 1e6).automaton(reference, 3).path_costs(others) / 1e6,
        EditLoss().automaton(reference, 3).path_costs(others),
    )


def test_band_zero_is_hamming():
    """No shift at all."""
    reference = [0, 1, 2, 1, 0]
    assert EditLoss(band=0).automaton(reference, 3).n_states == 6
    assert EditLoss(band=0)([1, 0, 2, 1, 0], reference) == HammingLoss(normalised=False)([1, 0, 2, 1, 0], reference)


def test_budget_names_band_and_cap():
    """The full distance is exponential: the error says how to avoid it."""
    with pytest.raises(BudgetError, match=r"max_states=50000 .*band=1.*cap=3"):
        EditLoss(band=None).automaton(np.arange(30) % 17, 17)
    with pytest.raises(BudgetError, match="EditLoss"):
        SmithWatermanLoss(max_states=100).automaton(np.arange(12) % 5, 5)


def test_arguments():
    """Each message says what was expected."""
    for band in (-1, 1.5, "wide"):
        with pytest.raises(InputError, match="band must be an integer of at least 0, or None"):
            EditLoss(band=band)
    with pytest.raises(InputError, match="cap must be a positive number"):
        EditLoss(cap=0)
    with pytest.raises(InputError, match="insertion must be finite and at least 0"):
        EditLoss(insertion=-1.0)
    with pytest.raises(InputError, match="substitution must be finite"):
        EditLoss(substitution=np.inf)
    with pytest.raises(InputError, match=r"shape \(3, 3\), got shape \(3, 2\)"):
        EditLoss(substitution=np.ones((3, 2)))
    with pytest.raises(InputError, match="diagonal"):
        EditLoss(substitution=np.ones((3, 3)))
    with pytest.raises(InputError, match=r"different numbers of labels: \[2, 3\]"):
        EditLoss(insertion=[1.0, 1.0], deletion=[1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="band=1"):
        EditLoss()([0, 1, 2], [0])


def test_sizes_on_a_treebank(treebank):
    """At most nine states a layer in band 1; close to 7.5 a token on average."""
    corpus = read_corpus(treebank("tamil"), tag="upos", split="dev")
    names = sorted({label for labels in corpus.labels for label in labels})
    loss = EditLoss()
    sizes = []
    for labels in corpus.labels:
        automaton = loss.automaton([names.index(label) for label in labels], len(names))
        assert automaton.max_width <= 9
        sizes.append(automaton.n_states / (automaton.length + 1))
    assert 4 < np.mean(sizes) < 9
