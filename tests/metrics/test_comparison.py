"""Two taggers: counts by hand, p-values by enumeration of all swaps and by simulation."""

from __future__ import annotations

import itertools
from math import comb

import numpy as np
import pytest

from vcrf.errors import InputError
from vcrf.metrics import compare

Labels = list[list[str]]


def outputs(wrong: list[int], length: int) -> tuple[Labels, Labels]:
    """Truth and labels with so many mistakes at the start of each sentence."""
    true = [["A"] * length for _ in wrong]
    return true, [["B"] * w + ["A"] * (length - w) for w in wrong]


def test_counts_by_hand() -> None:
    """Sentence 0: a has 2 mistakes, b 1 of them; sentence 1: only b is wrong."""
    true = [["A", "A", "A"], ["B", "B"]]
    a = [["C", "C", "A"], ["B", "B"]]
    b = [["A", "C", "A"], ["B", "A"]]
    found = compare(true, a, b)
    assert (found.error_a, found.error_b, found.difference) == (0.4, 0.4, 0.0)
    assert (found.n_only_a_wrong, found.n_only_b_wrong) == (1, 1)
    assert found.p_value == found.p_value_mcnemar == 1.0


def test_permutation_p_value_by_enumeration() -> None:
    """With few sentences all swaps are tried."""
    wrong_a, wrong_b = [3, 2, 2, 4, 1, 3, 0, 2], [1, 2, 0, 1, 2, 1, 0, 1]
    true, a = outputs(wrong_a, 5)
    _, b = outputs(wrong_b, 5)
    d = np.subtract(wrong_a, wrong_b)
    sums = [abs(np.dot(signs, d)) for signs in itertools.product([-1, 1], repeat=len(d))]
    expected = np.mean(np.array(sums) >= abs(d.sum()))
    assert compare(true, a, b).p_value == pytest.approx(expected)
    assert compare(true, b, a).p_value == pytest.approx(expected)


def test_mcnemar_is_the_sign_test_of_discordant_tokens() -> None:
    """7 tokens only a wrong, 1 only b: 2 (C(8,0) + C(8,1)) / 2^8."""
    true, a = outputs([7, 0], 8)
    _, b = outputs([0, 1], 8)
    found = compare(true, a, b)
    assert (found.n_only_a_wrong, found.n_only_b_wrong) == (7, 1)
    assert found.p_value_mcnemar == pytest.approx(2 * (comb(8, 0) + comb(8, 1)) / 2**8)


def test_clear_difference_is_found_with_its_interval() -> None:
    """10 % against 20 %: the interval holds the true difference and not 0; b better means positive."""
    rng = np.random.default_rng(0)
    true, a = outputs(rng.binomial(10, 0.2, 400).tolist(), 10)
    _, b = outputs(rng.binomial(10, 0.1, 400).tolist(), 10)
    found = compare(true, a, b)
    assert found.p_value < 0.001
    assert 0.0 < found.low < 0.1 < found.high < 0.2
    assert found.difference == pytest.approx(found.error_a - found.error_b)


def test_equal_taggers_are_rarely_told_apart() -> None:
    """Under the hypothesis p <= 0.05 happens in about 5 % of the cases, although tokens are wrong together."""
    rng = np.random.default_rng(2)
    n_found = 0
    for _ in range(200):
        difficulty = rng.beta(0.3, 1.0, 40)
        true, a = outputs(rng.binomial(15, difficulty).tolist(), 15)
        _, b = outputs(np.where(rng.random(40) < 0.5, rng.binomial(15, difficulty), 0).tolist(), 15)
        if rng.random() < 0.5:
            a, b = b, a
        swap = rng.random(40) < 0.5  # equally good by construction
        left = [x if s else y for x, y, s in zip(a, b, swap, strict=True)]
        right = [y if s else x for x, y, s in zip(a, b, swap, strict=True)]
        n_found += compare(true, left, right, n_resamples=500).p_value <= 0.05
    assert n_found <= 22  # 10 expected; more than 22 has a probability below 0.001


def test_same_seed_same_result() -> None:
    """The draws are those of the seed."""
    rng = np.random.default_rng(3)
    true, a = outputs(rng.integers(0, 5, 60).tolist(), 5)
    _, b = outputs(rng.integers(0, 5, 60).tolist(), 5)
    assert compare(true, a, b, random_state=4) == compare(true, a, b, random_state=4)
    assert compare(true, a, b, random_state=4) != compare(true, a, b, random_state=5)


def test_identical_taggers_and_one_sentence() -> None:
    """Nothing to compare gives no difference and p = 1; one sentence gives no interval."""
    true, a = outputs([1, 2, 0], 3)
    found = compare(true, a, a)
    assert (found.difference, found.low, found.high, found.p_value, found.p_value_mcnemar) == (0, 0, 0, 1, 1)
    single = compare(true[:1], a[:1], true[:1])
    assert single.p_value == 1.0
    assert single.difference == single.low == single.high == pytest.approx(1 / 3)


def test_other_sentences_are_refused() -> None:
    """The second tagger must have labelled the same tokens."""
    with pytest.raises(InputError, match="Sentence 0: y_true has 1 labels, y_pred has 2"):
        compare([["A"]], [["A"]], [["A", "A"]])
