"""Scaled scores, the calibration temperature, reliability and drift."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given

from calibrations import calibration_with
from strategies import potentials
from vcrf.decoding.potentials import Potentials
from vcrf.trust import drift, reliability
from vcrf.trust.temperature import HIGHEST, LOWEST, Sweeps, best_temperature


@given(potentials())
def test_scaled_scores_are_scaled_for_every_sequence(scores: Potentials) -> None:
    """Against all sequences of the lattice, dense and on the automaton."""
    half = scores.scaled(0.5)
    for i in range(len(scores)):
        lattice = scores.lattice(i)
        if not lattice.n_positions:
            continue
        sequences, values = lattice.kbest(4**5)
        expected = np.logaddexp.reduce(0.5 * values)
        assert half.log_partitions()[i] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert half.lattice(i).score(sequences[-1]) == pytest.approx(0.5 * values[-1], rel=1e-9, abs=1e-9)


@given(potentials())
def test_temperature_minimises_the_likelihood(scores: Potentials) -> None:
    """No neighbour is better, unless s is 1 because the largest s is no worse than any other."""
    assume(np.abs(scores.node).max(initial=0.0) < 100 and len(scores.node))
    rng = np.random.default_rng(0)
    true = np.array([_score_of_draw(scores, i, rng) for i in range(len(scores))])
    sweeps = Sweeps([scores], true)
    s = 1.0 / best_temperature(sweeps, np.arange(len(scores)))
    losses = [sweeps.losses(x).mean() for x in (s, 0.9 * s, 1.1 * s)]
    end, others = sweeps.losses(1.0 / LOWEST).mean(), [sweeps.losses(x).mean() for x in (0.1, 0.5, 1.0, 2.0, 10.0)]
    if s == 1.0:
        assert end <= min(losses + others) + 1e-7
    else:
        assert losses[0] <= min(losses[1:]) + 1e-7 or s < 1.2 / HIGHEST or s > 0.8 / LOWEST
        assert end > losses[0]


def _score_of_draw(scores: Potentials, i: int, rng: np.random.Generator) -> float:
    lattice = scores.lattice(i)
    return lattice.score(lattice.sample(1, rng)[0]) if lattice.n_positions else 0.0


def test_temperature_is_found_again() -> None:
    """Sequences drawn from scores at T = 2 give back about 2."""
    rng = np.random.default_rng(7)
    n, length, n_labels = 3000, 4, 3
    ptr = np.arange(n + 1) * length
    from vcrf.kernels.scores import LocalScores

    none = LocalScores(np.zeros(n * length + 1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0))
    scores = Potentials(ptr, rng.normal(0, 3, (n * length, n_labels)), {2: rng.normal(0, 1, 9)}, none, 2)
    flat = scores.scaled(0.5)
    true = np.array([scores.lattice(i).score(flat.lattice(i).sample(1, rng)[0]) for i in range(n)])
    assert best_temperature(Sweeps([scores], true), np.arange(n)) == pytest.approx(2.0, rel=0.05)
    # In blocks it is the same, and impossible sentences say nothing.
    blocks = [scores.take(np.arange(1000)), scores.take(np.arange(1000, n))]
    true[::7] = -np.inf
    kept = np.flatnonzero(np.isfinite(true))
    expected = best_temperature(Sweeps([scores.take(kept)], true[kept]), np.arange(len(kept)))
    assert best_temperature(Sweeps(blocks, true), np.arange(n)) == pytest.approx(expected, rel=1e-6)
    assert best_temperature(Sweeps(blocks, np.full(n, -np.inf)), np.arange(n)) == 1.0


@pytest.mark.parametrize("n_labels", [1, 3])
def test_right_labels_alone_show_no_temperature(n_labels: int) -> None:
    """Where the truth is the best sequence everywhere, or the only one, the smallest T is no worse than others."""
    from vcrf.kernels.scores import LocalScores

    rng = np.random.default_rng(3)
    n, length = 8, 4
    none = LocalScores(np.zeros(n * length + 1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0))
    node = rng.normal(0, 2, (n * length, n_labels))
    scores = Potentials(np.arange(n + 1) * length, node, {2: np.zeros(n_labels**2)}, none, 2)
    best = np.array([node[i * length : (i + 1) * length].max(axis=1).sum() for i in range(n)])
    assert best_temperature(Sweeps([scores], best), np.arange(n)) == 1.0
    if n_labels > 1:
        worst = best.copy()
        worst[0] = node[:length].min(axis=1).sum()
        assert LOWEST < best_temperature(Sweeps([scores], worst), np.arange(n)) <= HIGHEST
        assert best_temperature(Sweeps([scores], worst), np.arange(n)) != 1.0


def test_reliability_is_binned_by_hand() -> None:
    """Three tokens in two bins."""
    found = reliability(np.array([0.95, 1.0, 0.05]), np.array([True, False, True]), n_bins=10)
    assert found.n_tokens.tolist() == [1, *[0] * 8, 2]
    assert found.accuracy[[0, 9]].tolist() == [0.0, 0.5]
    assert found.error == pytest.approx((0.05 + 2 * abs(0.975 - 0.5)) / 3)


def test_drift_is_seen_and_silence_is_kept() -> None:
    """The same sentences are no alarm; less sure ones are."""
    rng = np.random.default_rng(8)
    sure = rng.uniform(0.8, 1.0, 2000)
    known = calibration_with([4] * 500, sure, np.zeros(2000, bool))
    same = drift(known, rng.uniform(0.8, 1.0, (300, 4)).mean(axis=1), np.zeros(300))
    assert not same.is_alarm
    assert "No sign" in same.message
    other = drift(known, rng.uniform(0.6, 1.0, (300, 4)).mean(axis=1), np.zeros(300))
    assert other.is_alarm
    assert "other text" in other.message
    words = drift(known, known.mean_sureness, np.full(300, 0.3))
    assert words.is_alarm
    assert words.p_unknown < 1e-3
