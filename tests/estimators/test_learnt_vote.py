"""Learnt votes: the objective is the enumerated one, the gap is true, complexities cost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from vcrf import VCRF, learn_vote, vote
from vcrf.errors import InputError
from vcrf.estimators.learnt_vote import _read, _value
from vcrf.families import Family, Template, transition_families
from vcrf.losses import HammingLoss

X = [["a", "b", "a"], ["b", "c"], ["c", "a", "b"], ["d"], []]
Y = [["N", "V", "N"], ["V", "D"], ["D", "N", "V"], ["D"], []]
DEV = [["a", "c", "b"], ["b", "d"], ["c"]]
TRUE = [["N", "D", "V"], ["V", "D"], ["N"]]


@pytest.fixture(scope="module")
def taggers() -> list[VCRF]:
    """Of different families, orders and labels."""
    here, before = (Family(f"word[{d}]", (Template(((d, "word"),)),)) for d in (0, -1))
    return [
        VCRF(recipe="paper", families=[here, *transition_families(2)], base_strength=0.02).fit(X, Y),
        VCRF(recipe="paper", families=[before, *transition_families(1)], base_strength=0.01).fit(X, Y),
        VCRF(recipe="paper", families=[before, here, *transition_families(2)], base_strength=0.05).fit(X[:3], Y[:3]),
    ]


def enumerated(taggers: list[VCRF], alpha: np.ndarray, slope: np.ndarray, cost: float) -> float:
    """F by the probabilities of every label sequence of the vote."""
    voted, total = vote(taggers, alpha.tolist()), 0.0
    for tokens, labels in zip(DEV, TRUE, strict=True):
        every = [list(z) for z in itertools.product(voted.classes_, repeat=len(tokens))]
        logs = voted.sequence_probability([tokens] * len(every), every, log=True)
        loss = [cost * np.mean([a != b for a, b in zip(z, labels, strict=True)]) for z in every]
        total += np.log(np.sum(np.exp(np.array(loss) + logs))) - logs[every.index(labels)]
    return total / len(DEV) + float(slope @ alpha)


@pytest.mark.parametrize("loss", [None, "hamming"])
def test_the_objective_and_its_gradient_are_the_enumerated_ones(taggers: list[VCRF], loss: str | None) -> None:
    """Values at several votes, the gradient by differences."""
    slope = np.array([0.3, 0.0, 0.1])
    examples = _read(taggers, DEV, TRUE, None if loss is None else HammingLoss())
    rng = np.random.default_rng(0)
    for alpha in rng.dirichlet(np.ones(3), 4):
        value, gradient = _value(examples, slope, alpha)
        assert value == pytest.approx(enumerated(taggers, alpha, slope, 0.0 if loss is None else 1.0), rel=1e-9)
        step = 1e-6 * np.eye(3)
        slopes = [(_value(examples, slope, alpha + h)[0] - _value(examples, slope, alpha - h)[0]) / 2e-6 for h in step]
        assert gradient == pytest.approx(slopes, rel=1e-5, abs=1e-7)


def test_the_best_vote_is_found_and_certified(taggers: list[VCRF]) -> None:
    """No vote of a fine grid is better by more than the gap."""
    voted = learn_vote(taggers, DEV, TRUE)
    zero = np.zeros(3)
    assert voted.vote_weights_.sum() == pytest.approx(1.0)
    assert np.all(voted.vote_weights_ >= 0.0)
    assert voted.vote_gap_ < 1e-4
    assert voted.vote_objective_ == pytest.approx(enumerated(taggers, voted.vote_weights_, zero, 0.0), rel=1e-9)
    steps = np.linspace(0.0, 1.0, 6)
    grid = [np.array([a, b, 1.0 - a - b]) for a in steps for b in steps if a + b <= 1.0 + 1e-12]
    best = min(enumerated(taggers, np.maximum(alpha, 0.0), zero, 0.0) for alpha in grid)
    assert voted.vote_objective_ - voted.vote_gap_ <= best + 1e-9
    assert voted.predict(DEV) == vote(taggers, voted.vote_weights_.tolist()).predict(DEV)


def test_complexities_cost(taggers: list[VCRF]) -> None:
    """A tagger that costs a great deal gets nothing."""
    voted = learn_vote(taggers, DEV, TRUE, strength=10.0, complexities=[1.0, 1.0, 0.0])
    assert voted.vote_weights_ == pytest.approx([0.0, 0.0, 1.0], abs=1e-9)
    assert voted.vote_gap_ < 1e-6


def test_one_tagger_needs_no_learning(taggers: list[VCRF]) -> None:
    """Its weight is 1 and there is no gap."""
    voted = learn_vote(taggers[:1], DEV, TRUE)
    assert (voted.vote_weights_.tolist(), voted.vote_gap_) == ([1.0], 0.0)


def test_wrong_calls(taggers: list[VCRF]) -> None:
    """What is missing is named."""
    with pytest.raises(InputError, match="at least one fitted tagger"):
        learn_vote([], DEV, TRUE)
    with pytest.raises(InputError, match="3 complexities"):
        learn_vote(taggers, DEV, TRUE, complexities=[1.0])
    with pytest.raises(InputError, match="strength must be"):
        learn_vote(taggers, DEV, TRUE, strength=-1.0)
    with pytest.raises(InputError, match="no tagger knows: X"):
        learn_vote(taggers, DEV, [["X", "D", "V"], *TRUE[1:]])
