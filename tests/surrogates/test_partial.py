"""Labels that are not all known: log sum over all sequences less log sum over those allowed, against enumeration."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from enumeration import all_candidates, feature_of, number_of
from objectives import objective, scan_of, value_and_gradient
from partial_labels import PartialEnumeration, partial_cases
from small_problems import WORD, active_sets, for_few_labels, pairs_kept
from vcrf.errors import InputError
from vcrf.families import BIAS, Family, intern_sentences
from vcrf.penalties import FamilyPenalty
from vcrf.problem import build_problem
from vcrf.solvers.result import Status
from vcrf.solvers.working_set import solve
from vcrf.structures.pairs import PairPotentials

few = settings(max_examples=40)


def rows_of(case):
    """The labels that each token may have, also where the problem dropped them because all are known."""
    if case.problem.is_partial:
        return case
    allowed = np.zeros((len(case.y), case.n_labels), np.uint8)
    allowed[np.arange(len(case.y)), case.y] = 1
    object.__setattr__(case.problem, "allowed", allowed)
    return case


def check(data, case, scales):
    """Value, gradient on the active features, and the scan of all candidates."""
    features, numbers, w = data.draw(active_sets(case, scales=scales))
    surrogate = case.surrogate(threads=data.draw(st.sampled_from([1, 2])))
    active = surrogate.compile(numbers)
    value, gradient = value_and_gradient(surrogate, active, w)
    limits = {k: np.full(len(case.problem.columns), 1e-6) for k in case.problem.kinds}
    with pairs_kept(data.draw(st.booleans())):
        scanned, scan = scan_of(surrogate, active, w, limits)
    surrogate.close()
    exact = PartialEnumeration(rows_of(case).problem, features, case.costs)
    scale = 1.0 + np.abs(w).max(initial=0.0)
    assert value == pytest.approx(exact.value(w), abs=1e-10 * scale)
    assert scanned == pytest.approx(value, abs=1e-12 * scale)
    np.testing.assert_allclose(gradient, exact.gradient(w), atol=1e-10 * scale)
    candidates = all_candidates(case.problem)
    every = PartialEnumeration(case.problem, candidates, case.costs)
    full = np.zeros(len(candidates))
    full[[candidates.index(f) for f in features]] = w
    expected = dict(zip(candidates, every.gradient(full), strict=True))
    found = dict(zip((feature_of(case.problem, n) for n in scan.features), scan.gradients, strict=True))
    for candidate, g in expected.items():
        assert found.get(candidate, 0.0) == pytest.approx(g, abs=2e-6)


@few
@given(st.data())
def test_value_gradient_and_scan_equal_enumeration(data):
    """Sets of labels, tokens without any, known sentences; with and without the Hamming loss."""
    case = data.draw(partial_cases(max_tags=3, max_labels=3, max_length=4))
    check(data, case, (0.3, 3.0))


@few
@given(st.data())
def test_large_weights_are_done_in_the_log_domain(data):
    """Weights in the hundreds: clamped messages would underflow."""
    case = data.draw(partial_cases(max_tags=2, max_labels=3, max_length=4))
    check(data, case, (300.0,))


@settings(max_examples=100)
@example(536674, 2.0, 0.99)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 2.0]), st.sampled_from([0.5, 0.9, 0.99]))
def test_a_scan_of_weighted_pairs_finds_what_the_dense_one_finds(seed, scale, share):
    """Pairs of rare labels are left out by a bound: it holds of known sentences beside those with open labels."""
    rng = np.random.default_rng(seed)
    n_labels, lengths = int(rng.integers(2, 7)), rng.integers(1, 12, 5)
    text = intern_sentences([[str(rng.choice(["a", "b", "ab"])) for _ in range(n)] for n in lengths])
    # The last label is the usual one: of known sentences, and possible in open ones, whose first is another.
    usual, other = n_labels - 1, rng.integers(0, n_labels, text.n_tokens)
    y = np.where(rng.random(text.n_tokens) < 0.9, usual, other)
    allowed = np.zeros((len(y), n_labels), np.uint8)
    allowed[np.arange(len(y)), y] = 1
    is_open = np.repeat([True, True, False, False, False], lengths)
    allowed[is_open, other[is_open]] = 1
    y = allowed.argmax(axis=1).astype(np.uint32)
    families = [Family("word", (WORD,)), Family("bias", (BIAS,)), Family("pairs", (BIAS,), 2)]
    problem = build_problem(text, y, n_labels, families, weights=rng.integers(1, 5, 5) / 8.0, allowed=allowed)
    costs = np.full(5, float(rng.choice([0.0, 0.3])))
    numbers = np.array([number_of(problem, f) for f in all_candidates(problem) if rng.random() < 0.5], np.int64)
    numbers.sort()
    w = scale * rng.normal(size=len(numbers))

    def scanned(limits, is_sparse):
        with for_few_labels() if is_sparse else nullcontext():
            surrogate = objective("crf", problem, costs, lattice="auto" if is_sparse else "dense")
            plan = surrogate.compile(numbers)
            assert isinstance(surrogate.structure.prepare(plan, w, surrogate.loss), PairPotentials) == is_sparse
            _, scan = scan_of(surrogate, plan, w, limits)
            surrogate.close()
        return dict(zip(scan.features.tolist(), scan.gradients.tolist(), strict=True))

    def limits_of(limit):
        return {k: np.where(problem.has_order(k), limit, np.inf) for k in problem.kinds}

    every = scanned(limits_of(1e-9), False)
    limit = share * max([abs(g) for number, g in every.items() if feature_of(problem, number).k == 2], default=1.0)
    found = scanned(limits_of(limit), True)
    for number, g in every.items():
        # Of a candidate at its limit, rounding decides.
        if abs(abs(g) - limit) > 1e-9:
            assert found.get(number, 0.0) == pytest.approx(g if abs(g) > limit else 0.0, rel=1e-7, abs=1e-10)


@few
@given(st.data())
def test_gradient_equals_differences_of_the_value(data):
    """The surrogate's own value, by central differences."""
    case = data.draw(partial_cases(max_tags=2, max_labels=3, max_length=4))
    _, numbers, w = data.draw(active_sets(case, scales=(0.5,), max_size=6))
    surrogate = case.surrogate()
    active = surrogate.compile(numbers)
    g = value_and_gradient(surrogate, active, w)[1]
    for j in range(len(w)):
        shift = 1e-5 * (np.arange(len(w)) == j)
        above, below = (value_and_gradient(surrogate, active, w + s)[0] for s in (shift, -shift))
        assert g[j] == pytest.approx((above - below) / 2e-5, abs=1e-6)


@few
@given(st.data())
def test_solver_ends_at_a_stationary_point(data):
    """Not convex: no gap is claimed, the optimality conditions hold, and the objective is that of the weights."""
    case = data.draw(partial_cases(max_tags=2, max_labels=3, max_length=4))
    n = len(case.families)
    result = solve(case.problem, FamilyPenalty(np.full(n, 0.05), np.full(n, 0.05)), tol=1e-4)
    if not case.problem.is_partial:
        assert result.status is Status.CONVERGED
        return
    assert result.status is Status.STATIONARY
    assert result.gap == np.inf
    assert result.kkt_violation <= 1e-4
    start = PartialEnumeration(case.problem, [], case.costs).value(np.zeros(0))
    assert result.objective <= start + 1e-12


@few
@given(partial_cases())
def test_observed_candidates_need_every_label(case):
    """Pairs with a label that is not known are not observed."""
    if case.problem.is_partial:
        with pytest.raises(InputError, match="observed"):
            case.rebuilt(allowed=case.problem.allowed, candidates="observed")


@few
@given(partial_cases(max_tags=2, max_labels=3, max_length=4))
def test_limit_on_passes_is_named_as_such(case):
    """Open labels are no strength 0: the status says that the passes ran out."""
    n = len(case.families)
    result = solve(case.problem, FamilyPenalty(np.full(n, 1e-3), np.full(n, 1e-3)), tol=1e-12, max_passes=2)
    assert result.status in (Status.MAX_PASSES, Status.STATIONARY, Status.CONVERGED)
