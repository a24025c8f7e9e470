"""Minimum Bayes risk decoding against the expected loss of every label sequence."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from vcrf import VCRF
from vcrf.errors import InputError
from vcrf.families import Family, Template, transition_families
from vcrf.losses import AlignedNgramLoss, EditLoss, HammingLoss, WeightedHammingLoss, ZeroOneLoss

X = [["a", "b", "c", "d"], ["b", "a", "d", "c"], ["a", "d"], ["c", "c", "b"], ["d", "a", "b"]]
Y = [["A", "B", "A", "C"], ["B", "B", "C", "A"], ["B", "C"], ["A", "A", "C"], ["C", "A", "A"]]
NEW = [["a", "c", "d"], ["b", "b", "a"], [], ["d"], ["c", "a", "b"], ["a", "a", "a"]]


@pytest.fixture(scope="module", params=[1, 2])
def tagger(request):
    """Return an uncertain model whose tag patterns have 1 or 2 labels."""
    families = [Family("word", (Template(((0, "word"),)),)), *transition_families(request.param)]
    return VCRF(recipe="paper", families=families, base_strength=0.02, n_jobs=1).fit(X, Y)


def all_risks(tagger, sentence, loss, **options):
    """Return the expected loss of every label sequence, over all label sequences."""
    number = {label: i for i, label in enumerate(tagger.classes_)}
    (posterior,) = tagger.predict_kbest([sentence], k=3 ** len(sentence), **options)
    references = [([number[label] for label in labels], p) for labels, p in posterior]
    return {
        y: sum(p * loss([number[label] for label in y], reference) for reference, p in references)
        for y in product(tagger.classes_, repeat=len(sentence))
    }


COSTS = np.array([[0.0, 3.0, 1.0], [0.5, 0.0, 0.25], [2.0, 1.0, 0.0]])


@pytest.mark.parametrize(
    "loss", [HammingLoss(), WeightedHammingLoss(COSTS), EditLoss(), AlignedNgramLoss(), 2.0 * HammingLoss()], ids=str
)
def test_expected_loss_is_least(tagger, loss):
    """Over all sequences, which are the candidates when k is their number."""
    for sentence, y in zip(NEW, tagger.predict_mbr(NEW, loss, k=27), strict=True):
        risks = all_risks(tagger, sentence, loss)
        assert risks[tuple(y)] == pytest.approx(min(risks.values()), abs=1e-9)


def test_it_differs_from_the_best_sequence(tagger):
    """Somewhere the labels with the fewest expected errors are not the likeliest sequence."""
    costly = WeightedHammingLoss(COSTS)
    assert tagger.predict_mbr(NEW, costly) != tagger.predict(NEW)
    assert tagger.predict_mbr(NEW, ZeroOneLoss()) == tagger.predict(NEW)


def test_constraints_hold(tagger):
    """The least risk among the allowed sequences, for losses with and without the short way."""
    rules = {"constraints": [("A", "A"), ("B", "C"), ("C", "C")]}
    to_a = WeightedHammingLoss([[0.0, 0.1, 0.1], [5.0, 0.0, 5.0], [5.0, 5.0, 0.0]])
    assert not all(map(is_allowed, tagger.predict_mbr(NEW, to_a)))  # A everywhere
    for loss in (HammingLoss(), to_a, EditLoss()):
        for sentence, y in zip(NEW, tagger.predict_mbr(NEW, loss, k=27, **rules), strict=True):
            assert is_allowed(y)
            risks = all_risks(tagger, sentence, loss, **rules)
            least = min(value for labels, value in risks.items() if is_allowed(labels))
            assert risks[tuple(y)] == pytest.approx(least, abs=1e-9)
    forced = tagger.predict_mbr(NEW, WeightedHammingLoss(COSTS), allowed=[["C", None, {"A"}], *[None] * 5])
    assert (forced[0][0], forced[0][2]) == ("C", "A")


def is_allowed(y):
    """Whether no forbidden pair occurs."""
    return not {("A", "A"), ("B", "C"), ("C", "C")} & set(pairwise(y))


def test_samples_approach_the_least_risk(tagger):
    """Many draws, the same ones for a seed; the full edit distance needs no automaton that fits."""
    loss = EditLoss(band=None, max_states=3)
    found = tagger.predict_mbr(NEW, loss, n_samples=400, random_state=0)
    assert found == tagger.predict_mbr(NEW, loss, n_samples=400, random_state=0)
    for sentence, y in zip(NEW, found, strict=True):
        risks = all_risks(tagger, sentence, loss)
        assert risks[tuple(y)] <= min(risks.values()) + 0.1


def test_named_costs_and_errors(tagger):
    """Costs by label; wrong arguments."""
    by_name = {(a, b): COSTS[i, j] for i, a in enumerate("ABC") for j, b in enumerate("ABC") if a != b}
    assert tagger.predict_mbr(NEW, WeightedHammingLoss(by_name)) == tagger.predict_mbr(NEW, WeightedHammingLoss(COSTS))
    with pytest.raises(InputError, match="needs a loss, got None"):
        tagger.predict_mbr(NEW, None)
    with pytest.raises(InputError, match="one of hamming"):
        tagger.predict_mbr(NEW, "accuracy")
    with pytest.raises(InputError, match="k must be a positive integer"):
        tagger.predict_mbr(NEW, "edit", k=0)
    with pytest.raises(InputError, match="n_samples must be an integer of at least 0"):
        tagger.predict_mbr(NEW, "edit", n_samples=-1)
