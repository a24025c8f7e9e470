"""Selective tagging and label sets: laws, enumeration on small cases, and simulations of broken promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from vcrf.errors import InputError
from vcrf.trust import Units, accept, evidence
from vcrf.trust.selective import GRID, STARTS, Acceptance, oracle_share, rates, sentence_values


def dependent_units(n: int, rng: np.random.Generator, length: int = 12) -> Units:
    """Sentences whose tokens are wrong together: half of the variance of an error lies between sentences.

    Sureness is drawn apart from the errors; at every threshold the true error is 5 %.
    """
    hard = rng.random(n) < 0.1
    rate = np.where(hard, 0.5, 0.0)
    wrong = rng.random((n, length)) < rate[:, None]
    sure = rng.uniform(0.9, 1.0, (n, length))
    return units_of(sure, wrong)


def units_of(sure: np.ndarray, wrong: np.ndarray) -> Units:
    """Sentences of one length."""
    n, length = sure.shape
    return Units(
        np.arange(n + 1, dtype=np.int64) * length,
        sure.reshape(-1).astype(np.float32),
        wrong.reshape(-1).astype(np.uint8),
    )


@st.composite
def small_units(draw: st.DrawFn) -> Units:
    """A few sentences, some of them without a unit; sureness often equal to a threshold."""
    counts = draw(st.lists(st.integers(0, 4), min_size=1, max_size=6))
    n = sum(counts)
    sure = draw(st.lists(st.sampled_from([0.0, 0.3, float(GRID[200]), float(GRID[100]), 1.0]), min_size=n, max_size=n))
    wrong = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Units(ptr, np.array(sure, np.float32), np.array(wrong, np.uint8))


@given(small_units(), st.sampled_from([0.01, 0.1, 0.5]))
def test_sentence_values_are_the_formula(units: Units, limit: float) -> None:
    """Z of every sentence and threshold, by loops."""
    thresholds = GRID[::40]
    found = sentence_values(units, limit, thresholds)
    for i in range(units.n_sentences):
        a, b = units.ptr[i], units.ptr[i + 1]
        for g, threshold in enumerate(thresholds):
            terms = [
                (float(w) - limit) / (b - a)
                for s, w in zip(units.sureness[a:b], units.is_wrong[a:b], strict=True)
                if s >= threshold
            ]
            assert found[i, g] == pytest.approx(sum(terms), abs=1e-12)


@given(small_units())
def test_rates_are_the_formula(units: Units) -> None:
    """Shares of accepted units and of errors among them, means over sentences."""
    threshold = float(GRID[200])
    accepted = wrong = 0.0
    filled = 0
    for a, b in zip(units.ptr, units.ptr[1:], strict=False):
        filled += b > a
        for s, w in zip(units.sureness[a:b], units.is_wrong[a:b], strict=True):
            accepted += (s >= GRID[200]) / (b - a)
            wrong += (s >= GRID[200]) * float(w) / (b - a)
    share, error = rates(units, threshold)
    assert share == pytest.approx(accepted / max(filled, 1))
    assert math.isnan(error) if accepted == 0.0 else error == pytest.approx(wrong / accepted)


@given(small_units(), st.sampled_from([1, 2, 3]), st.sampled_from([0.01, 0.3]))
def test_pooled_rates_are_the_formula(units: Units, most: int, limit: float) -> None:
    """All units together, those of longer sentences never accepted; Z of a sentence lies in [-limit, 1 - limit]."""
    pooled = units.pooled(most)
    accepted = wrong = 0
    for a, b in zip(units.ptr, units.ptr[1:], strict=False):
        for s, w in zip(units.sureness[a:b], units.is_wrong[a:b], strict=True):
            accepted += bool(b - a <= most and s >= GRID[200])
            wrong += bool(b - a <= most and s >= GRID[200] and w)
    share, error = rates(pooled, float(GRID[200]))
    assert share == pytest.approx(accepted / max(units.ptr[-1], 1))
    assert math.isnan(error) if accepted == 0 else error == pytest.approx(wrong / accepted)
    z = sentence_values(pooled, limit, GRID)
    assert z[:, 200].sum() == pytest.approx((wrong - limit * accepted) / most, abs=1e-12)
    assert z.min(initial=0.0) >= -limit - 1e-12
    assert z.max(initial=0.0) <= 1.0 - limit + 1e-12
    assert pooled.take(np.arange(units.n_sentences)).most == most


@given(st.lists(st.integers(0, 3), min_size=1, max_size=7), st.sampled_from([0.1, 0.3]))
def test_bets_are_a_martingale_under_the_null(picks: list[int], limit: float) -> None:
    """Every factor of the wealth has mean 1 if the next X has mean mu0, whatever came before."""
    values = np.array([-limit, 1 - limit, -limit / 2, 0.0])
    seen = values[picks]
    # Two outcomes with mean 0: wrong with probability limit.
    nexts = [np.append(seen, z)[:, None] for z in (-limit, 1.0 - limit)]
    wealth = [_wealth(z, limit) for z in nexts]
    assert (1 - limit) * wealth[0] + limit * wealth[1] == pytest.approx(_wealth(seen[:, None], limit), rel=1e-9)


def _wealth(z: np.ndarray, limit: float) -> float:
    """The last K, from p-values of all beginnings made worse by a loss at the end."""
    gains = -z[:, 0] / (1.0 - limit)
    log_k, first, second = 0.0, 20.0 * 0.5 * limit / (1 - limit), 20.0 * (0.5 * limit / (1 - limit)) ** 2
    for gain in gains:
        bet = min(max(first / second, 0.0), evidence.MOST)
        log_k += math.log1p(bet * gain)
        first, second = first + gain, second + gain**2
    return math.exp(log_k)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.sampled_from([0.05, 0.2]))
def test_betting_is_the_largest_wealth(picks: list[int], limit: float) -> None:
    """The p-value in one array is that of a loop over sentences."""
    z = np.array([-limit, 1 - limit, -limit / 2, 0.0])[picks][:, None]
    wealths = [1.0] + [_wealth(z[:k], limit) for k in range(1, len(z) + 1)]
    assert evidence.betting(z, limit)[0] == pytest.approx(1.0 / max(wealths), rel=1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.2]))
def test_bets_do_not_see_what_they_bet_on(seed: int, limit: float) -> None:
    """The same with some large losses, so that bets lie between their limits."""
    rng = np.random.default_rng(seed)
    z = np.where(rng.random((100, 1)) < 1.2 * limit, rng.uniform(0.0, 1.0 - limit, (100, 1)), -limit)
    wealths = [1.0] + [_wealth(z[:k], limit) for k in range(1, len(z) + 1)]
    assert evidence.betting(z, limit)[0] == pytest.approx(1.0 / max(wealths), rel=1e-9)


def test_binomial_is_exact() -> None:
    """Against the sum of probabilities, and scipy's distribution."""
    p = evidence.binomial(np.array([0, 2]), np.array([300, 500]), 0.01)
    assert p[0] == pytest.approx(0.99**300)
    assert p[1] == pytest.approx(sum(binom.pmf(k, 500, 0.01) for k in range(3)))


def test_hoeffding_bentkus_is_valid_and_weaker_where_few_are_accepted() -> None:
    """The choice of the test: betting has more evidence when only a part of each sentence is accepted."""
    z = np.full((400, 1), -0.01 * 0.6)
    assert evidence.betting(z, 0.01)[0] < evidence.hoeffding_bentkus(z, 0.01)[0]
    assert evidence.hoeffding_bentkus(np.full((400, 1), -0.01), 0.01)[0] == pytest.approx(0.99**400, rel=1e-6)


def test_starts_spend_no_more_than_there_is() -> None:
    """The sequences share 1 - confidence; the grid goes from strict to loose and ends with everything."""
    assert sum(share for _, share in STARTS) == pytest.approx(1.0)
    assert np.all(np.diff(GRID) <= 0)
    assert GRID[-1] == 0.0


def test_promises_are_kept_where_tokens_depend_on_each_other() -> None:
    """400 draws at the very limit: at most delta break the promise, and a test over tokens breaks it far more often."""
    rng = np.random.default_rng(1)
    broken = token_broken = 0
    n_draws, delta, limit = 400, 0.1, 0.05
    for _ in range(n_draws):
        units = dependent_units(150, rng)
        # The true error is exactly 5 % at every threshold: accepting anything below that limit breaks the promise.
        broken += accept(units, limit - 1e-9, 1 - delta).is_any
        token_broken += _token_test(units, limit, delta)
    assert broken / n_draws <= delta + 3 * math.sqrt(delta * (1 - delta) / n_draws)
    assert token_broken / n_draws > 2 * delta


def _token_test(units: Units, limit: float, delta: float) -> bool:
    """What must not be done: a binomial test as if tokens were independent."""
    is_in = units.sureness >= np.float32(1 - limit)
    return bool(binom.cdf(units.is_wrong[is_in].sum(), is_in.sum(), limit) <= delta)


def long_and_bad(n: int, rng: np.random.Generator) -> Units:
    """Sentences of 2 tokens that are always right, and as many of 18 of which 1 in 18 is wrong.

    The error is 5 % of all tokens together, and 2.8 % as a mean over sentences.
    """
    size = np.where(rng.random(n) < 0.5, 2, 18)
    ptr = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    wrong = rng.random(ptr[-1]) < np.where(np.repeat(size, size) == 18, 1 / 18, 0.0)
    return Units(ptr, np.full(ptr[-1], 0.97, np.float32), wrong.astype(np.uint8))


def test_a_pooled_promise_is_another_promise() -> None:
    """Where long sentences are worse the mean over sentences promises too much of all tokens; the pooled one does not.

    300 draws at the very limit of the pooled error.
    """
    rng = np.random.default_rng(6)
    n_draws, delta = 300, 0.1
    drawn = [long_and_bad(400, rng) for _ in range(n_draws)]
    assert np.mean([accept(units, 0.05 - 1e-9, 1 - delta).is_any for units in drawn]) > 0.5
    broken = np.mean([accept(units.pooled(18), 0.05 - 1e-9, 1 - delta).is_any for units in drawn])
    assert broken <= delta + 3 * math.sqrt(delta * (1 - delta) / n_draws)
    # It is not void: at twice the error it accepts, and leaves out what is longer than was fixed.
    found = accept(drawn[0].pooled(18), 0.1, 1 - delta)
    assert found.share == 1.0
    assert "in sentences of at most 18 tokens" in found.message
    assert "at most 10 % of them are wrong, all tokens counted alike" in found.message
    assert 0.0 < accept(drawn[0].pooled(2), 0.1, 1 - delta).share < 0.2


def test_a_pooled_promise_needs_more_sentences() -> None:
    """As many times more as the longest sentence is longer than the others."""
    clean = units_of(np.full((400, 5), 0.999), np.zeros((400, 5), bool))
    assert accept(clean, 0.01).is_any
    assert accept(clean.pooled(5), 0.01).is_any
    missing = accept(clean.pooled(20), 0.01).n_missing
    assert missing is not None
    assert 800 < missing < 1200


def test_sentences_are_promised_too() -> None:
    """The exact test: broken promises are at most delta, and not far below where one threshold is tested."""
    rng = np.random.default_rng(2)
    broken = 0
    for _ in range(500):
        wrong = rng.random((200, 1)) < 0.05
        broken += accept(units_of(np.full((200, 1), 0.97), wrong), 0.05 - 1e-9, 0.9, "sentence").is_any
    assert broken / 500 <= 0.1 + 3 * math.sqrt(0.09 / 500)


def test_clean_sentences_are_accepted_when_there_are_enough() -> None:
    """About ln(1 / delta) / max_error sentences without an error are needed, and the message counts the missing."""
    # At 325 the p-value lies between the share of the first walk, 0.8 delta, and delta.
    for n, is_any in ((250, False), (325, False), (345, True)):
        sure = np.full((n, 5), 0.999)
        found = accept(units_of(sure, np.zeros((n, 5), bool)), 0.01, 0.95)
        assert found.is_any == is_any
        assert (found.n_missing == 0) == is_any
    few = accept(units_of(np.full((8, 5), 0.999), np.zeros((8, 5), bool)), 0.01, 0.95)
    assert not few.is_any
    assert 300 < few.n_missing < 400
    assert "more calibration sentences than the 8" in few.message
    more = units_of(np.full((8 + few.n_missing, 5), 0.999), np.zeros((8 + few.n_missing, 5), bool))
    assert accept(more, 0.01, 0.95).is_any


def test_hopeless_units_are_called_so() -> None:
    """If the surest are wrong too often, more sentences do not help, and no number is invented."""
    rng = np.random.default_rng(3)
    found = accept(units_of(np.full((300, 6), 0.999), rng.random((300, 6)) < 0.2), 0.01)
    assert found.n_missing is None
    assert "wrong too often" in found.message
    assert found.threshold == math.inf
    assert found.share == 0.0


def test_looser_promises_accept_more_and_never_more_than_the_oracle_by_much() -> None:
    """Monotone in max_error, for a calibrated tagger."""
    rng = np.random.default_rng(4)
    sure = 1.0 - rng.exponential(0.05, (1500, 10)).clip(0, 0.9)
    units = units_of(sure, rng.random((1500, 10)) > sure)
    shares = [accept(units, limit).share for limit in (0.01, 0.02, 0.03, 0.045)]
    assert shares == sorted(shares)
    assert shares[-1] > 0.5
    for limit, share in zip((0.01, 0.02, 0.03, 0.045), shares, strict=True):
        assert share <= oracle_share(units, limit) + 1e-9


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, math.nan, True, "1%"])
def test_shares_that_are_none_are_refused(bad: object) -> None:
    """By name, before anything is computed."""
    units = units_of(np.ones((2, 2)), np.zeros((2, 2), bool))
    with pytest.raises(InputError, match="max_error"):
        accept(units, bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="confidence"):
        accept(units, 0.1, bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unit"):
        accept(units, 0.1, 0.9, "word")


def test_messages_count_and_say_the_average() -> None:
    """One sentence is no sentences; the scale of the threshold, and what the rate is a mean of."""

    def promise(**how: Any) -> str:
        given = {"threshold": math.inf, "max_error": 0.01, "confidence": 0.95, "unit": "token", "n_sentences": 1,
                 "n_missing": 1, "share": 0.0, "error": math.nan}  # fmt: skip
        return Acceptance(**(given | how)).message

    assert "needs about 1 more calibration sentence than the 1 there is." in promise()
    assert "needs about 2 more calibration sentences than the 3 there are." in promise(n_missing=2, n_sentences=3)
    assert "is more than this 1 calibration sentence allows, because" in promise(n_missing=None)
    assert "sure (as trained): 50 % of the" in promise(threshold=0.5, share=0.5)
    assert promise(threshold=0.0, share=1.0).startswith("All tokens: 100 % of the calibration text; with 95 %")
    assert "wrong, as a mean over sentences." in promise(threshold=0.5, share=0.5)
    assert "wrong, all tokens counted alike." in promise(threshold=0.5, share=0.5, longest=9)
    assert "are wrong." in promise(threshold=0.5, share=0.5, unit="sentence")
