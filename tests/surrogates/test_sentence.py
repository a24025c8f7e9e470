"""The surrogates on one sentence: golden values, enumeration of every label sequence, and the laws they obey."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from vcrf.automata import EPSILON, TROPICAL, Automaton
from vcrf.errors import InputError
from vcrf.lattice import DenseLattice
from vcrf.losses import (
    AlignedNgramLoss,
    ClippedNgramLoss,
    EditLoss,
    HammingLoss,
    LossAutomaton,
    MarkovLoss,
    NgramCountLoss,
    SmithWatermanLoss,
    TransducerLoss,
    WeightedHammingLoss,
    ZeroOneLoss,
)
from vcrf.surrogates import evaluate, sentence

FORMS = [
    ("crf", "sum"), ("crf", "max"), ("structboost", "sum"), ("structboost", "max"), ("exponential", "sum"),
    ("exponential", "max"), ("m3n", "max"), ("structsvm", "max"),
]  # fmt: skip
LOSSES = [
    HammingLoss(), AlignedNgramLoss(2), ZeroOneLoss(), EditLoss(), EditLoss(band=None, normalised=False),
    NgramCountLoss(2), SmithWatermanLoss(), HammingLoss(normalised=False) + 0.5 * EditLoss(cap=2),
]  # fmt: skip


def automaton_of(loss, y, n_labels):
    """The automaton without the warning that another sequence costs nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return loss.automaton(y, n_labels)


def by_enumeration(kind, form, scores, losses, truth):
    """Value, and weights of all sequences whose arcs minus the truth's make the gradient, from the definitions."""
    d = scores - scores[truth]
    other = np.arange(len(d)) != truth
    if kind == "crf" and form == "sum":
        weights = oracles.probabilities(losses + d)
        return oracles.log_partition(losses + d), weights
    if kind in ("m3n", "structsvm"):
        slope = np.ones(len(d)) if kind == "m3n" else losses
        values = losses + slope * d
        return max(0.0, values.max()), slope * (np.arange(len(d)) == values.argmax()) * (values.max() > 0.0)
    terms = np.where(other, losses * np.exp(d) if kind == "structboost" else np.exp(losses + d), 0.0)
    if form == "sum":
        return terms.sum(), terms
    best = terms.argmax()
    slope = (np.arange(len(d)) == best) * terms[best]
    if kind == "crf":
        return np.log1p(terms[best]), slope / (1.0 + terms[best])
    return terms[best], slope


def arcs_of(sequences, lattice):
    """Indicator of the arcs of each sequence."""
    out = np.zeros((len(sequences), *lattice.arcs.shape))
    for t in range(lattice.n_positions):
        codes = oracles.pattern_codes(sequences, max(0, t - lattice.order + 1), t, lattice.n_labels)
        out[np.arange(len(sequences)), t, codes, sequences[:, t]] = 1.0
    return out


@st.composite
def problems(draw, max_length=6):
    """A lattice of 2 to 4 labels, its true labels and a loss, small enough to enumerate; scores without ties."""
    n_labels = draw(st.integers(2, 4))
    length = draw(st.integers(1, max_length if n_labels < 4 else min(max_length, 5)))
    order = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.3, 1.0, 3.0]))
    lattice = DenseLattice(scale * rng.normal(size=(length, n_labels ** (order - 1), n_labels)), n_labels, order)
    return lattice, rng.integers(n_labels, size=length), draw(st.sampled_from(LOSSES))


@pytest.mark.parametrize(("kind", "form"), FORMS)
@settings(max_examples=25)
@given(problems())
def test_value_and_gradient_equal_enumeration(kind, form, problem):
    """Some losses, order 1 to 3, lengths 1 to 6."""
    check(kind, form, *problem)


def swap_transducer(n_labels):
    """Return a transducer that pays 1 for a wrong label, 1.5 for a label left out and as much for one put in."""
    labels = range(n_labels)
    arcs = [(0, a, b, float(a != b), 0) for a in labels for b in labels]
    arcs += [(0, a, EPSILON, 1.5, 0) for a in labels] + [(0, EPSILON, a, 1.5, 0) for a in labels]
    return Automaton.from_arcs(arcs, [0], TROPICAL)


def asymmetric(n_labels):
    """Return costs of a candidate for a reference."""
    a, b = np.indices((n_labels, n_labels))
    return np.where(a == b, 0.0, 0.5 + (a + 2 * b) % 3)


# Every kind of loss, given the number of labels.
EVERY_LOSS = {
    "hamming": lambda _: HammingLoss(),
    "hamming count": lambda _: HammingLoss(normalised=False),
    "matrix": lambda d: WeightedHammingLoss(asymmetric(d)),
    "class weights": lambda d: WeightedHammingLoss(np.arange(1.0, d + 1), normalised=False),
    "markov": lambda _: MarkovLoss(2, lambda t, y, r: (t + 1) * float(y != r)),
    "aligned bigrams": lambda _: AlignedNgramLoss(2),
    "aligned trigrams": lambda _: AlignedNgramLoss(3, normalised=False),
    "bigram counts": lambda _: NgramCountLoss(2),
    "clipped counts": lambda _: ClippedNgramLoss(2),
    "edit band": lambda _: EditLoss(),
    "edit full": lambda _: EditLoss(band=None),
    "edit cap": lambda _: EditLoss(band=None, cap=2),
    "edit costs": lambda d: EditLoss(1.5, 0.5, asymmetric(d), band=None),
    "alignment": lambda _: SmithWatermanLoss(),
    "transducer": lambda d: TransducerLoss(swap_transducer(d)),
    "zero-one": lambda _: ZeroOneLoss(),
    "sum": lambda _: AlignedNgramLoss() + 0.25 * ZeroOneLoss(),
}


@pytest.mark.parametrize("name", list(EVERY_LOSS))
def test_every_loss_with_every_surrogate(name, seed):
    """All of them, 2 to 4 labels, lengths 1 to 6, order 2."""
    rng = np.random.default_rng(seed)
    for n_labels in (2, 3, 4):
        loss = EVERY_LOSS[name](n_labels)
        for length in range(1, 7):
            lattice = DenseLattice(rng.normal(size=(length, n_labels, n_labels)), n_labels, 2)
            y = rng.integers(n_labels, size=length)
            for kind, form in FORMS:
                check(kind, form, lattice, y, loss)


def check(kind, form, lattice, y, loss):
    """Compare value and gradient with enumeration."""
    n_labels = lattice.n_labels
    sequences = oracles.all_sequences(len(y), n_labels)
    scores = oracles.sequence_scores(lattice.arcs, lattice.order, n_labels)
    truth = int(np.ravel_multi_index(y, [n_labels] * len(y)))
    automaton = automaton_of(loss, y, n_labels)
    losses = automaton.path_costs(sequences)  # equal to the loss of each: see tests/losses
    expected, weights = by_enumeration(kind, form, scores, losses, truth)
    found = evaluate(kind, lattice, automaton, y, form)
    assert found.value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    arcs = arcs_of(sequences, lattice)
    gradient = np.tensordot(weights, arcs - arcs[truth], 1)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-8, atol=1e-9 * (1.0 + expected))
    if kind == "crf" and form == "sum":
        assert found.expected_loss == pytest.approx(weights @ losses, abs=1e-9)
        assert found.entropy == pytest.approx(oracles.entropy(weights), abs=1e-8)
        assert found.probability == pytest.approx(weights[truth])


@pytest.mark.parametrize(("kind", "form"), FORMS)
@settings(max_examples=12)
@given(problems(max_length=4), st.floats(0.0, 1.0), st.integers(0, 2**32 - 1))
def test_each_bounds_the_loss_and_is_convex(kind, form, problem, share, seed):
    """At least the loss of the decoded sequence at every w; below its chord on random segments."""
    lattice, y, loss = problem
    automaton = automaton_of(loss, y, lattice.n_labels)

    def value(arcs):
        return evaluate(kind, DenseLattice(arcs, lattice.n_labels, lattice.order), automaton, y, form).value

    other = np.random.default_rng(seed).normal(size=lattice.arcs.shape)
    here = value(lattice.arcs)
    assert here >= loss(lattice.viterbi()[0], y) - 1e-9
    between = value((1.0 - share) * lattice.arcs + share * other)
    assert between <= ((1.0 - share) * here + share * value(other)) * (1.0 + 1e-9) + 1e-9


@settings(max_examples=30)
@given(problems())
def test_laws_between_surrogates(problem):
    """Without a loss crf is the negative log-likelihood, m3n its limit, structsvm is m3n for the zero-one loss."""
    lattice, y, loss = problem
    n_labels = lattice.n_labels
    plain = HammingLoss().automaton(y, n_labels).scaled(0.0)
    assert sentence.crf(lattice, plain, y).value == pytest.approx(-lattice.log_prob(y), abs=1e-9)
    automaton = automaton_of(loss, y, n_labels)
    m3n, temperature = sentence.m3n(lattice, automaton, y).value, 1e-4
    cold = DenseLattice(lattice.arcs / temperature, n_labels, lattice.order)
    smooth = temperature * sentence.crf(cold, automaton.scaled(1.0 / temperature), y).value
    assert m3n - 1e-9 <= smooth <= m3n + temperature * len(y) * np.log(n_labels) + 1e-9
    zero_one = ZeroOneLoss().automaton(y, n_labels)
    slack, margin = sentence.structsvm(lattice, zero_one, y), sentence.m3n(lattice, zero_one, y)
    assert slack.value == pytest.approx(margin.value)
    np.testing.assert_allclose(slack.gradient, margin.gradient, atol=1e-12)


# MATH: 3 labels, y = (0, 1, 2, 1, 0), score sum_t sin(3t + y_t) + sum_t cos(y_{t-1} - 2 y_t) / 2.
# states, crf, mean loss, entropy, q(y), log structboost, m3n, best wrong, structsvm
GOLDEN = [
    (HammingLoss(), 6, 8.224072, 0.775191, 4.863566, 0.000268, 7.165177, 4.830187, 4.830187, 4.830187),
    (AlignedNgramLoss(2), 10, 8.379533, 0.922662, 4.896463, 0.000230, 7.364465, 4.830187, 4.830187, 4.830187),
    (NgramCountLoss(2, kappa=1.0), 22, 8.249898, 0.901183, 4.822834, 0.000261, 7.074835, 5.029227, 5.029227,
     7.113377),
    (EditLoss(band=None, normalised=False), 22, 10.858554, 3.644067, 4.493149, 0.000019, 8.608111, 8.419789, 8.419789,
     22.098947),
    (EditLoss(band=1, normalised=False), 22, 10.858554, 3.644067, 4.493149, 0.000019, 8.608111, 8.419789, 8.419789,
     22.098947),
    (EditLoss(band=None, cap=2, normalised=False), 12, 9.457056, 1.994806, 4.931088, 0.000078, 8.151933, 5.830187,
     5.830187, 9.660375),
    (SmithWatermanLoss(normalised=False), 47, 13.116202, 6.156241, 4.364723, 0.000002, 9.095669, 10.518207, 10.518207,
     30.938525),
]  # fmt: skip


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: str(row[0]))
def test_golden_values(row):
    """The values that brute force gave, six decimals."""
    loss, n_states, *expected = row
    y, n_labels = [0, 1, 2, 1, 0], 3
    t, b = np.arange(5)[:, None], np.arange(n_labels)
    lattice = DenseLattice.from_scores(np.sin(3 * t + b), {2: np.cos(b[:, None] - 2 * b) / 2})
    automaton = automaton_of(loss, y, n_labels)
    crf = sentence.crf(lattice, automaton, y)
    found = [
        crf.value, crf.expected_loss, crf.entropy, crf.probability,
        sentence.structboost(lattice, automaton, y).log_value,
        sentence.m3n(lattice, automaton, y).value, sentence.exponential(lattice, automaton, y, "max").log_value,
        sentence.structsvm(lattice, automaton, y).value,
    ]  # fmt: skip
    assert automaton.n_states == n_states
    np.testing.assert_allclose(found, expected, atol=6e-7)


def test_scores_of_any_size_and_forbidden_arcs():
    """Minus infinity on some arcs and scores of 1e5 are exact; log_value does not overflow."""
    arcs = np.zeros((3, 2, 2))
    arcs[:, :, 1] = 1e5
    arcs[1, 0, 1] = -np.inf
    lattice = DenseLattice(arcs, 2, 2)
    automaton = HammingLoss(normalised=False).automaton([0, 0, 0], 2)
    assert sentence.crf(lattice, automaton, [0, 0, 0]).value == pytest.approx(3e5 + 3.0)
    assert sentence.structboost(lattice, automaton, [0, 0, 0]).log_value == pytest.approx(3e5 + np.log(3.0))
    assert sentence.structboost(lattice, automaton, [0, 0, 0]).value == np.inf
    assert sentence.m3n(lattice, automaton, [0, 0, 0]).labels.tolist() == [1, 1, 1]
    with pytest.raises(InputError, match="true labels are forbidden"):
        sentence.crf(lattice, automaton_of(HammingLoss(normalised=False), [0, 1, 0], 2), [0, 1, 0])


def test_bad_arguments_are_refused():
    """A loss that no surrogate bounds, an automaton of another sentence, an unknown surrogate or form."""
    lattice = DenseLattice(np.zeros((2, 1, 2)), 2, 1)
    good = HammingLoss().automaton([0, 1], 2)

    def with_costs(cost):
        return LossAutomaton(2, good.state_ptr, good.next, np.array(cost), good.final)

    for automaton, words in [
        (with_costs([[0.0, np.inf], [1.0, 0.0]]), "infinite"),
        (with_costs([[0.0, np.nan], [1.0, 0.0]]), "not a number"),
        (with_costs([[0.0, -1.0], [1.0, 0.0]]), "negative"),
        (with_costs([[0.5, 1.0], [1.0, 0.0]]), "must be 0"),
        (HammingLoss().automaton([0, 1, 0], 2), "3"),
    ]:
        for kind in ("crf", "structboost", "exponential", "m3n", "structsvm"):
            with pytest.raises(InputError, match=words):
                evaluate(kind, lattice, automaton, [0, 1])
    with pytest.raises(InputError, match="expected one of crf"):
        evaluate("hinge", lattice, good, [0, 1])
    with pytest.raises(InputError, match="'sum' or 'max'"):
        evaluate("crf", lattice, good, [0, 1], "mean")
    with pytest.raises(InputError, match="only the form 'max'"):
        evaluate("m3n", lattice, good, [0, 1], "sum")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("exponent", [16, 18, 25, 100, 290])
def test_huge_scores_have_posteriors(loss, exponent):
    """Rounding of the scores alone is many nats: posteriors still sum to 1, and are those of the best sequence."""
    rng = np.random.default_rng(exponent)
    for length in range(1, 5):
        lattice = DenseLattice(10.0**exponent * rng.normal(size=(length, 3, 3)), 3, 2)
        y = rng.integers(0, 3, length)
        automaton = automaton_of(loss, y, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            log_z, posterior, mean = lattice.with_loss(automaton)
            for kind, form in FORMS:
                found = evaluate(kind, lattice, automaton, y, form)
                assert found.value >= 0.0
                assert np.all(np.isfinite(found.gradient)) or found.value == np.inf
        best, score = lattice.viterbi()
        assert log_z == pytest.approx(score, rel=1e-12)
        np.testing.assert_allclose(posterior.sum(axis=(1, 2)), 1.0)
        assert np.all(posterior[np.arange(length), :, best].sum(axis=1) > 1.0 - 1e-9)
        assert mean == pytest.approx(loss(best, y))
