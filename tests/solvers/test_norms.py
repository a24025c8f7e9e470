"""Powers, norms by family, norms of families and the constrained form: optimum and certificate by enumeration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import vcrf
from enumeration import all_candidates, families_of, feature_of
from small_problems import cases
from surrogate_values import Losses
from vcrf import VCRF, VExponential
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError
from vcrf.penalties import FamilyPenalty
from vcrf.solvers.constrained import solve_constrained
from vcrf.solvers.family_norms import solve_family_norms
from vcrf.solvers.result import SolverResult, Status
from vcrf.solvers.run import RunOptions
from vcrf.solvers.working_set import solve
from vcrf.surrogates.choice import choose


class Truth:
    """A case by enumeration: F over all candidates, the family of each, and weights of a result among them."""

    def __init__(self, case, kind="crf"):
        self.case, self.kind, self.features = case, kind, all_candidates(case.problem)
        self.losses = Losses(case.problem, self.features, None)
        self.family = np.array([families_of(case.problem, f.column, f.k)[0] for f in self.features], np.int64)
        self.number = {feature: j for j, feature in enumerate(self.features)}

    def weights(self, result):
        w = np.zeros(len(self.features))
        w[[self.number[feature_of(self.case.problem, number)] for number in result.features]] = result.weights
        return w

    def surrogate(self, w):
        return self.losses.surrogate(self.kind, w)


def drawn(data):
    """Return a small case whose weights sum to 1."""
    case = data.draw(cases(max_labels=3, max_length=3, max_tags=2, max_sentences=3, merge_twins=False))
    if case.weights is not None:
        case = case.rebuilt(weights=case.weights / case.weights.sum(), merge_twins=False)
    return case


def least(truth, penalty_of, n_signs=2):
    """Smallest surrogate + penalty that L-BFGS-B finds; `penalty_of` takes signs apart, w = z[:n] - z[n:]."""
    n = len(truth.features)

    def objective(z):
        value, g = truth.surrogate(z[:n] - z[n:])
        extra, slope = penalty_of(z)
        return value + extra, np.concatenate([g, -g]) + slope

    z = np.full(n_signs * n, 0.1)
    for _ in range(3 if n else 0):
        z = minimize(objective, z, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(z),
                     options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2_000}).x  # fmt: skip
    return objective(z)[0]


@settings(max_examples=25)
@given(st.data())
def test_norms_of_single_families(data):
    """Families with L1, L2, elastic and p-th powers side by side: the objective's value, and the optimum in the gap."""
    case = drawn(data)
    truth = Truth(case)
    n = len(case.families)
    norms = data.draw(st.lists(st.sampled_from(["l1", "l2", "elastic", "lp"]), min_size=n, max_size=n))
    penalty = FamilyPenalty.from_strengths(np.full(n, 0.1), norms, power=data.draw(st.sampled_from([1.3, 1.6, 1.9])))
    result = solve(case.problem, penalty, tol=1e-3, max_passes=3_000)
    l1, l2 = penalty.l1[truth.family], penalty.l2[truth.family]
    p = np.full(len(l1), 2.0) if penalty.powers is None else penalty.powers[truth.family]
    w = truth.weights(result)
    value = truth.surrogate(w)[0] + float(np.sum(l1 * np.abs(w) + l2 * np.abs(w) ** p / p))
    assert result.objective == pytest.approx(value, rel=1e-9, abs=1e-12)

    def penalty_of(z):
        size, both = z[: len(w)] + z[len(w) :], np.tile(l1, 2)
        return float(l1 @ size + np.sum(l2 * size**p / p)), both + np.tile(l2 * size ** (p - 1.0), 2)

    optimum = least(truth, penalty_of)
    assert optimum - 1e-7 <= result.objective <= optimum + result.gap + 1e-7
    assert result.status is Status.CONVERGED


@settings(max_examples=15)
@given(st.data())
def test_norms_of_whole_families(data):
    """sum_k c_k ||w_k||_p: no weights that another solver finds lie below the certified bound."""
    case = drawn(data)
    truth = Truth(case)
    p = data.draw(st.sampled_from([1.5, 2.0]))
    c = 0.05 * (1.0 + np.arange(len(case.families)) % 3)
    penalty = FamilyPenalty.from_strengths(c, "family", power=p)
    result = solve_family_norms(
        case.problem, penalty, choose(case.problem, "crf", None), RunOptions(tol=1e-2, max_passes=3_000)
    )
    w = truth.weights(result)
    n = len(w)

    def norms_of(w):
        return np.bincount(truth.family, np.abs(w) ** p, len(c)) ** (1.0 / p)

    assert result.objective == pytest.approx(truth.surrogate(w)[0] + c @ norms_of(w), rel=1e-8, abs=1e-10)
    assert result.status is Status.CONVERGED

    def rounded(z):
        size = np.maximum(z[:n] + z[n:], 0.0)  # the optimiser may step below its bounds by rounding
        norms = (np.bincount(truth.family, size**p, len(c)) + 1e-8) ** (1.0 / p)
        slope = (c * norms ** (1.0 - p))[truth.family] * size ** (p - 1.0)
        return float(c @ norms), np.tile(slope, 2)

    # Roundings of the corners lie above the norms.
    assert result.objective - result.gap <= least(truth, rounded) + 1e-7
    assert result.objective - result.gap <= truth.surrogate(np.zeros(n))[0] + 1e-12


@settings(max_examples=8)
@given(st.data())
def test_the_constrained_form(data):
    """Min F over the weighted norm's ball: feasible, F by enumeration, and no weights inside below the bound."""
    case = drawn(data)
    truth = Truth(case)
    norm = data.draw(st.sampled_from(["l1", "elastic"]))
    radius = data.draw(st.sampled_from([0.05, 0.5, 3.0]))
    penalty = FamilyPenalty.from_strengths(1.0 + np.arange(len(case.families)) % 2, norm)
    choice = choose(case.problem, "crf", None)
    objective = choice.build(case.problem, np.ones(len(case.problem.columns), bool))
    result = solve_constrained(
        lambda mu, start, tol, _: solve(case.problem, penalty.times(mu), surrogate=choice, start=start, tol=tol),
        lambda features, w: objective.at(objective.compile(features), w).value,
        penalty.bind(case.problem), radius, tol=1e-3,
    )  # fmt: skip
    objective.close()
    l1, l2 = penalty.l1[truth.family], penalty.l2[truth.family]
    w = truth.weights(result)
    n = len(w)
    assert float(l1 @ np.abs(w) + 0.5 * l2 @ w**2) <= radius * (1.0 + 1e-9)
    assert result.objective == pytest.approx(truth.surrogate(w)[0], rel=1e-9, abs=1e-12)
    assert result.status is Status.CONVERGED
    assert 0.0 <= result.gap <= 1e-3 * result.objective
    rng = np.random.default_rng(0)
    for scale in (0.0, 0.01, 0.1, 1.0) if n else ():
        other = w + scale * rng.normal(size=n)
        other *= min(1.0, radius / float(l1 @ np.abs(other) + 0.5 * l2 @ other**2 + 1e-300))
        assert truth.surrogate(other)[0] >= result.objective - result.gap - 1e-9
    if n and norm == "l1" and n <= 60:
        both = np.tile(l1, 2)

        def split(z):
            value, g = truth.surrogate(z[:n] - z[n:])
            return value, np.concatenate([g, -g])

        inside = {"type": "ineq", "fun": lambda z: radius - both @ z, "jac": lambda _: -both}
        z = minimize(split, np.zeros(2 * n), jac=True, bounds=[(0.0, None)] * (2 * n), method="SLSQP",
                     options={"maxiter": 100}, constraints=inside).x  # fmt: skip
        z = np.maximum(z, 0.0)
        z *= min(1.0, radius / max(both @ z, 1e-300))
        assert result.objective - result.gap <= truth.surrogate(z[:n] - z[n:])[0] + 1e-9


class OneWeight:
    """Omega(w) = |w|, and F(w) = 1 + (1 - w)^2 / 2: at a multiplier mu the weight is (1 - mu)_+."""

    group_thresholds = np.ones(1)

    def groups_of(self, features):
        return np.zeros(len(features), int)

    def smooth(self, groups, w):  # noqa: ARG002
        return 0.0, np.zeros(len(w))

    def value(self, features, w):  # noqa: ARG002
        return 1.0 + 0.5 * (1.0 - float(w.sum())) ** 2

    def penalised(self, mu, start, tol, max_passes):  # noqa: ARG002
        w = np.full(1, max(1.0 - mu, 0.0))
        objective = self.value(None, w) + mu * float(w.sum())
        return SolverResult(np.zeros(1, np.int64), w, objective, 0.0, 0.0, Status.CONVERGED, 1, 0.0, [], 1)


@pytest.mark.parametrize("radius", [1e-6, 0.05, 0.5, 0.999])
def test_the_multiplier_is_found_where_omega_is_0_at_one_end(radius):
    """The logarithm of 0 draws no secant: a step that keeps to one end would take all tries."""
    one = OneWeight()
    found = solve_constrained(one.penalised, one.value, one, radius, tol=1e-7)
    assert found.status is Status.CONVERGED
    assert found.weights[0] == pytest.approx(radius, rel=1e-4, abs=1e-6)
    assert found.n_passes <= 40


@pytest.mark.parametrize("ended", [Status.INTERRUPTED, Status.STALLED, Status.SETTLED])
def test_the_last_end_is_told(ended):
    """Not that of the best weights, which an earlier multiplier may have given."""
    one, n = OneWeight(), 0

    def penalised(mu, start, tol, max_passes):
        nonlocal n
        n += 1
        result = one.penalised(mu, start, tol, max_passes)
        is_last = n == 2 if ended is Status.INTERRUPTED else n > 1
        return replace(result, status=ended, weights=np.zeros(1), gap=1.0) if is_last else result

    found = solve_constrained(penalised, one.value, one, 0.9, tol=1e-7)
    assert found.status is ended
    assert (n == 2) == (ended is Status.INTERRUPTED)


@pytest.mark.parametrize("most", [1, 2, 5, 7])
def test_the_limit_on_passes_is_of_all_multipliers(most):
    """Each gets what is left of it."""
    one, given = OneWeight(), []

    def penalised(mu, start, tol, max_passes):
        given.append(max_passes)
        result = one.penalised(mu, start, tol, max_passes)
        return replace(result, n_passes=min(2, max_passes), status=Status.STALLED)

    found = solve_constrained(penalised, one.value, one, 0.37, tol=1e-12, max_passes=most)
    assert given == list(range(most, 0, -2))
    assert (found.status, found.n_passes) == (Status.MAX_PASSES, most)


@pytest.fixture(scope="module")
def corpus():
    """Return few short sentences."""
    return SyntheticLanguage(n_labels=4, n_stems=40, seed=1).sample(25, seed=2)


@pytest.mark.parametrize(
    "how",
    [
        {"norm": "lp"},
        {"norm": "lp", "power": 1.4, "loss": "hamming"},
        {"norm": "family", "base_strength": 0.02},
        {"norm": "family", "power": 1.5, "base_strength": 0.02, "count_power": 0.3},
        {"norms": {"word": "l2", "tags:2": "l1"}},
        {"radius": 30.0, "complexity_strength": 1.0, "base_strength": 0.0, "norm": "l1", "temperature": 1.0},
    ],
)
def test_estimator(how, corpus, tmp_path):
    """Certified, labels as it should, and the file keeps parameters and weights."""
    tagger = VCRF(**({"base_strength": 0.01, "affix": 1, "tol": 1e-2, "n_jobs": 1} | how))
    tagger.fit(corpus.tokens, corpus.labels)
    assert tagger.status_ is Status.CONVERGED
    assert 0.0 <= tagger.gap_ <= 1e-2 * tagger.objective_
    assert tagger.score(corpus.tokens, corpus.labels) > 0.85
    tagger.save(tmp_path / "m.vcrf")
    again = vcrf.load(tmp_path / "m.vcrf")
    assert again.get_params() == tagger.get_params()
    assert again.predict(corpus.tokens) == tagger.predict(corpus.tokens)
    if "radius" in how:
        strengths = [facts.complexity * facts.l1_mass for facts in tagger.families_]
        assert sum(strengths) == pytest.approx(30.0, rel=1e-2)
        assert sum(strengths) <= 30.0 * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("estimator", "how", "words"),
    [
        (VCRF, {"norm": "group", "norms": {"word": "l2"}}, "`norms` needs a norm of single weights"),
        (VCRF, {"norm": "family", "radius": 1.0}, "`radius` needs a norm of single weights"),
        (VCRF, {"norms": {"word": "group"}}, "that of 'word' must be one of l1, l2, elastic, lp, got 'group'"),
        (VCRF, {"norms": {"wrod": "l2"}}, "there is no family 'wrod'"),
        (VCRF, {"norms": "l2"}, "`norms` must be a mapping"),
        (VCRF, {"norms": ["lp"], "power": 1.5}, "`norms` must be a mapping"),
        (VCRF, {"power": 1.5}, "`power` is of `norm='lp'` and 'family'"),
        (VCRF, {"norm": "lp", "power": 2.0}, "`power` must lie between 1 and 2"),
        (VCRF, {"norm": "lp", "solver": "sgd"}, "is not there with `solver='sgd'`"),
        (VCRF, {"norm": "family", "complexities": "feature", "complexity_strength": 1.0}, "one strength a family"),
        (VCRF, {"radius": -1.0}, "`radius` must be a positive number"),
        (VCRF, {"radius": 1.0, "patience": 2}, "`radius` is not there with a development set"),
        (vcrf.M3N, {"norm": "lp"}, "`norm='lp'` is not there for m3n"),
        (vcrf.StructSVM, {"norms": {"word": "l2"}}, "`norms` is not there for structsvm"),
        (vcrf.MaxCRF, {"radius": 1.0}, "`radius` is not there for crf-max"),
    ],
)
def test_refusals(estimator, how, words, corpus):
    """What cannot be combined is refused by name."""
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        estimator(**how).fit(corpus.tokens, corpus.labels)


def test_the_constrained_form_ends_where_it_is_told(corpus):
    """Passes, a callback that ends a path, and labels left open, which have no certificate."""
    how = {"radius": 3.0, "norm": "l1", "affix": 1, "n_jobs": 1, "base_strength": 0.1, "tol": 1e-6}
    with pytest.warns(ConvergenceWarning, match="max_passes"):
        tagger = VCRF(**how, max_passes=5).fit(corpus.tokens, corpus.labels)
    assert tagger.status_ is Status.MAX_PASSES
    assert tagger.result_.n_passes <= 10  # the last scan of each multiplier comes on top
    asked = []
    tagger = VCRF(**how, callback=lambda record: asked.append(record) or True)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        points = list(tagger.path(corpus.tokens, corpus.labels, [(0.0, 0.2), (0.0, 0.1)]))
    assert [point.status_ for point in points] == [Status.INTERRUPTED]
    assert len(asked) == 1
    y = [[None, *labels[1:]] for labels in corpus.labels]
    with pytest.raises(InputError, match="`radius` needs the label of every token"):
        VCRF(**how).fit(corpus.tokens, y)


def test_other_smooth_surrogates_take_the_norms(corpus):
    """Powers, norms of families and the constrained form know no surrogate."""
    for how in ({"norm": "lp"}, {"norm": "family"}, {"radius": 3.0, "norm": "l1"}):
        tagger = VExponential(base_strength=0.1, affix=0, tags=1, words=0, tol=1e-2, n_jobs=1, **how)
        assert tagger.fit(corpus.tokens, corpus.labels).status_ is Status.CONVERGED
