"""The paper's first forms, with a maximum in place of the sum: values, optimum and certificate by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import vcrf
from enumeration import all_candidates, feature_of
from small_problems import cases, penalty_of
from surrogate_values import Losses
from vcrf import MaxCRF, MaxExponential, MaxStructBoost
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError
from vcrf.losses import AlignedNgramLoss, EditLoss, HammingLoss, ZeroOneLoss, get_loss
from vcrf.penalties import FamilyPenalty
from vcrf.solvers.cutting_plane import solve_max
from vcrf.solvers.result import Status
from vcrf.solvers.run import RunOptions
from vcrf.surrogates import evaluate
from vcrf.surrogates.maximum import choose_max

LOSSES = [HammingLoss(), AlignedNgramLoss(2), EditLoss(), ZeroOneLoss()]
KINDS = ["crf-max", "structboost-max", "exponential-max"]


class MaxForms(Losses):
    """Enumeration of the objectives with a maximum, as the paper prints them, and smooth ones that tend to them."""

    def exponents(self, kind, i, w):
        """What each wrong sequence has in its exponent, and its row."""
        rows = self.counts[i] - self.counts[i][self.gold[i]]
        with np.errstate(divide="ignore"):
            first = np.log(self.losses[i]) if kind == "structboost-max" else self.losses[i]
        wrong = np.flatnonzero((np.arange(len(rows)) != self.gold[i]) & np.isfinite(first))
        return first[wrong] + rows[wrong] @ w, rows[wrong]

    def value_of(self, kind, w):
        """Sum of v_i times the largest term."""
        total = 0.0
        for i, p in enumerate(self.weights):
            exponents, _ = self.exponents(kind, i, w)
            if len(exponents):
                terms = np.log1p(np.exp(exponents)) if kind == "crf-max" else np.exp(exponents)
                total += p * terms.max()
        return total

    def soft(self, kind, w, temperature):
        """The same with a soft maximum, and its gradient."""
        total, gradient = 0.0, np.zeros(len(w))
        for i, p in enumerate(self.weights):
            exponents, rows = self.exponents(kind, i, w)
            if not len(exponents):
                continue
            top = exponents.max()
            shares = np.exp((exponents - top) / temperature)
            b = top + temperature * np.log(shares.sum())
            slope = 1.0 / (1.0 + np.exp(-b)) if kind == "crf-max" else np.exp(b)
            total += p * (np.logaddexp(0.0, b) if kind == "crf-max" else np.exp(b))
            gradient += p * slope * (shares / shares.sum()) @ rows
        return total, gradient


def least(truth, kind, l1, l2):
    """Smallest objective that a general solver finds, with softer and harder maxima; never below the optimum."""
    n = len(l1)
    z, best = np.zeros(2 * n), truth.value_of(kind, np.zeros(n))

    def objective(z, temperature):
        w = z[:n] - z[n:]
        value, g = truth.soft(kind, w, temperature)
        g = g + l2 * w
        return value + l1 @ (z[:n] + z[n:]) + 0.5 * l2 @ w**2, np.concatenate([g + l1, l1 - g])

    for temperature in (0.3, 0.1, 0.03, 0.01, 0.003) if n else ():
        z = minimize(objective, z, (temperature,), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * (2 * n)).x
        w = z[:n] - z[n:]
        best = min(best, truth.value_of(kind, w) + l1 @ np.abs(w) + 0.5 * l2 @ w**2)
    return best


@pytest.mark.parametrize("lattice", ["auto", "patterns"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6)
@given(st.data())
def test_value_and_optimum(kind, lattice, data):
    """The objective is that of the enumeration; no weights that another solver finds lie below the certified bound."""
    max_tags = 3 if lattice == "patterns" else 2
    case = data.draw(cases(max_labels=3, max_length=3, max_tags=max_tags, max_sentences=3, merge_twins=False))
    loss = data.draw(st.sampled_from(LOSSES))
    norm = data.draw(st.sampled_from(["l1", "elastic", "l2"]))
    penalty = FamilyPenalty.from_strengths(np.full(len(case.families), 0.1), norm)
    choice = choose_max(case.problem, kind, loss)
    result = solve_max(case.problem, penalty, choice, RunOptions(tol=1e-2, max_passes=4_000, lattice=lattice))
    features = [feature_of(case.problem, number) for number in result.features]
    value = MaxForms(case.problem, features, loss).value_of(kind, result.weights)
    expected = value + penalty_of(case.problem, penalty, features, result.weights)
    assert result.objective == pytest.approx(expected, rel=1e-8, abs=1e-9)
    assert result.status is Status.CONVERGED
    every = all_candidates(case.problem)
    l1, l2 = (case.strengths(strengths, every) for strengths in (penalty.l1, penalty.l2))
    found = least(MaxForms(case.problem, every, loss), kind, l1, l2)
    assert result.objective - result.gap <= found + 1e-9


@pytest.fixture(scope="module")
def corpus():
    """Return few short sentences."""
    return SyntheticLanguage(n_labels=4, n_stems=40, seed=1).sample(25, seed=2)


@pytest.mark.parametrize(
    ("estimator", "kind"), [(MaxCRF, "crf"), (MaxStructBoost, "structboost"), (MaxExponential, "exponential")]
)
@pytest.mark.parametrize("norm", ["l1", "elastic", "group"])
def test_estimators(estimator, kind, norm, corpus, tmp_path):
    """Certified; the surrogate at the saved weights is that of one sentence at a time; files keep the class."""
    tagger = estimator(recipe="paper", norm=norm, base_strength=0.05, affix=1).fit(corpus.tokens, corpus.labels)
    assert tagger.status_ is Status.CONVERGED
    assert 0.0 <= tagger.gap_ <= 1e-2 * tagger.objective_
    (scores,) = tagger._potentials(corpus.tokens)
    found = []
    for i, labels in enumerate(corpus.labels):
        y = [tagger.classes_.index(label) for label in labels]
        automaton = get_loss("hamming").automaton(y, len(tagger.classes_))
        found.append(evaluate(kind, scores.lattice(i), automaton, y, "max").value)
    assert np.mean(found) <= tagger.objective_ + 1e-9
    if norm == "l1":
        penalty = 0.05 * sum(facts.l1_mass for facts in tagger.families_)
        assert np.mean(found) + penalty == pytest.approx(tagger.objective_, rel=1e-7)
    tagger.save(tmp_path / "m.vcrf")
    again = vcrf.load(tmp_path / "m.vcrf")
    assert type(again) is estimator
    assert again.predict(corpus.tokens[:5]) == tagger.predict(corpus.tokens[:5])


def test_no_loss_is_refused(corpus):
    """As for the other maxima."""
    with pytest.raises(InputError, match="crf-max needs a loss"):
        MaxCRF(loss=None).fit(corpus.tokens, corpus.labels)
