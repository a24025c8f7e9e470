"""Maximum surrogates on the pattern automaton: best sequences by enumeration, scans of mixtures by counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from enumeration import LossEnumeration, all_candidates, feature_of, number_of
from objectives import maximum
from small_problems import active_sets, cases
from vcrf.losses import AlignedNgramLoss, EditLoss, HammingLoss, ZeroOneLoss
from vcrf.structures.outputs import Mixture, Outputs

LOSSES = [HammingLoss(), AlignedNgramLoss(2), ZeroOneLoss(), EditLoss(), 0.5 * EditLoss() + AlignedNgramLoss(3)]


@pytest.mark.parametrize("kind", ["m3n", "structsvm"])
@settings(max_examples=60)
@given(st.data())
def test_best_sequences_equal_enumeration(kind, data):
    """The largest loss + gain, or loss * (1 + gain), over all label sequences, whatever the guess."""
    case = data.draw(cases(max_length=5))
    features, numbers, w = data.draw(active_sets(case, scales=(0.1, 1.0, 10.0)))
    loss, problem = data.draw(st.sampled_from(LOSSES)), case.problem
    surrogate = maximum(kind, problem, loss, "patterns")
    surrogate._kappas *= data.draw(st.sampled_from([1e-3, 0.3, 1.0, 3.0, 1e3]))
    truth, active = LossEnumeration(problem, features, loss), surrogate.compile(numbers)
    for _ in range(2):  # the second time with the guesses of the first
        best = surrogate.find_best(active, w)
        for i in range(problem.text.n_sentences):
            gains = (truth.counts[i] - truth.counts[i][truth.gold[i]]) @ w
            losses = truth.losses[i]
            worth = losses + gains if kind == "m3n" else losses * (1.0 + gains)
            tiny = 1e-10 * (1.0 + np.abs(losses).max() * np.abs(gains).max())
            assert best.values[i] == pytest.approx(max(0.0, worth.max()), abs=tiny)
            labels = best.outputs.labels_of(i)
            sequences = oracles.all_sequences(len(labels), problem.n_labels)
            found = next(k for k, z in enumerate(sequences) if list(z) == labels.tolist())
            assert max(worth[found], 0.0) == pytest.approx(best.values[i], abs=tiny)
            assert best.losses[i] == pytest.approx(losses[found] if best.values[i] else 0.0)
            slope = 1.0 if kind == "m3n" else best.losses[i]
            assert best.slopes[i] == (slope if best.values[i] else 0.0)


@settings(max_examples=60)
@given(st.data(), st.sampled_from([0.0, 0.01, 0.1]))
def test_scan_of_a_mixture_equals_the_dense_one(data, limit):
    """Shares of label sequences less the truth, summed over every candidate's occurrences."""
    case = data.draw(cases(max_length=5))
    problem, n = case.problem, case.problem.text.n_sentences
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    sentence = np.sort(rng.integers(0, n, 2 * n))
    lengths = np.diff(problem.sent_ptr)[sentence]
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    labels = rng.integers(0, problem.n_labels, ptr[-1]).astype(np.uint32)
    share = rng.random(2 * n) * (rng.random(2 * n) < 0.7) * problem.weights[sentence] / 2
    mixture = Mixture(Outputs(sentence, ptr, labels), share)
    limits = {k: np.full(len(problem.columns), np.inf) for k in range(1, problem.order + 1)}
    for f in all_candidates(problem):
        limits[f.k][f.column] = limit * (1.0 + 0.2 * f.k)
    dense, scan = (
        maximum("m3n", problem, ZeroOneLoss(), lattice).scan_mixture(mixture, limits)
        for lattice in ("dense", "patterns")
    )
    expected = {feature_of(problem, f): g for f, g in zip(dense.features, dense.gradients, strict=True)}
    found = {feature_of(problem, f): g for f, g in zip(scan.features, scan.gradients, strict=True)}
    for feature in set(expected) | set(found):
        bound = limits[feature.k][feature.column]
        assert found.get(feature, bound) == pytest.approx(expected.get(feature, bound), rel=1e-9, abs=1e-12) or (
            abs(abs(found.get(feature, bound)) - bound) < 1e-9
        )


@settings(max_examples=5)
@given(cases(min_tags=3, max_length=4))
def test_the_lattice_is_chosen_by_order(case):
    """By hand, and at order 2 dense."""
    for lattice in ("auto", "patterns", "dense"):
        made = maximum("m3n", case.problem, HammingLoss(), lattice)
        is_dense = lattice == "dense" or (lattice == "auto" and case.problem.order <= 2)
        assert made.chain.is_dense == is_dense
    numbers = np.array([number_of(case.problem, f) for f in all_candidates(case.problem)[:9]], np.int64)
    w = np.linspace(-1.0, 1.0, len(numbers))
    values = [
        made.find_best(made.compile(numbers), w).values
        for made in (maximum("m3n", case.problem, HammingLoss(), lattice) for lattice in ("auto", "dense"))
    ]
    np.testing.assert_allclose(*values, atol=1e-10)
