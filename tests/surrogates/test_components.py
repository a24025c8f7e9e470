"""Features of component values against enumeration: each is a sum of features of labels, whatever is summed over.

With A the 0-1 matrix from features of a problem with components to those of the same problem without,
F(w) = F0(A' w) and its gradient is A times that of F0: F0 is enumerated.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from enumeration import Enumeration, all_candidates
from objectives import objective, value_and_gradient
from small_problems import cases
from vcrf.families import component_families
from vcrf.penalties import FamilyPenalty
from vcrf.problem import Components, build_problem
from vcrf.solvers.working_set import solve

few = settings(max_examples=40)
LATTICES = st.sampled_from(["dense", "patterns"])


def table_of(n_labels, rng):
    """Sets of labels: some of one label, some of all, none empty."""
    sets = [np.flatnonzero(row) for row in rng.random((rng.integers(1, 5), n_labels)) < 0.6]
    sets = [labels for labels in sets if len(labels)] or [np.arange(n_labels)]
    ptr = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    names = [f"A={v}" for v in range(len(sets))]
    return Components(names, ptr, np.concatenate(sets).astype(np.uint32), n_labels)


@st.composite
def component_cases(draw, **limits):
    """A case, and its problem with a second family on components for each of single labels."""
    case = draw(cases(**{"max_labels": 4, "max_tags": 3, "max_length": 4, **limits}))
    more = component_families(case.families)
    assume(more)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    problem = build_problem(
        case.text, case.y, case.n_labels, case.families + more, weights=case.weights,
        candidates=case.problem.candidates, components=table_of(case.n_labels, rng),
    )  # fmt: skip
    return case, problem


def candidates_of(case, problem):
    """Numbers of all candidates, and the matrix A."""
    plain = all_candidates(case.problem)
    label_of = {(f.column, f.code): i for i, f in enumerate(plain) if f.k == 1}
    numbers = [
        problem.join_features(np.array([f.column], np.uint32), f.k, np.array([f.code], np.uint32))[0] for f in plain
    ]
    rows = list(np.eye(len(plain)))
    table, kind = problem.components, problem.component_kind
    for c in np.flatnonzero(problem.has_order(kind)).tolist():
        for v in range(len(table)):
            labels = table.labels[table.ptr[v] : table.ptr[v + 1]].tolist()
            row = np.zeros(len(plain))
            row[[label_of[c, label] for label in labels]] = 1.0
            numbers.append(problem.join_features(np.array([c], np.uint32), kind, np.array([v], np.uint32))[0])
            rows.append(row)
    order = np.argsort(numbers)
    return np.array(numbers, np.int64)[order], np.array(rows).reshape(len(numbers), len(plain))[order], plain


def enumerated(case, problem):
    """Numbers, A, and the objective of all candidates without components."""
    numbers, matrix, plain = candidates_of(case, problem)
    return numbers, matrix, Enumeration(case.problem, plain, case.costs)


@settings(max_examples=80)
@given(component_cases(), LATTICES, st.sampled_from([0.5, 3.0, 300.0]), st.integers(0, 99))
def test_value_and_gradient_equal_enumeration(drawn, lattice, scale, seed):
    """Protects scores handed to labels and residuals summed over them, in the log domain too."""
    case, problem = drawn
    numbers, matrix, expected = enumerated(case, problem)
    rng = np.random.default_rng(seed)
    chosen = np.flatnonzero(rng.random(len(numbers)) < 0.5)
    w = scale * rng.normal(size=len(chosen))
    surrogate = objective("crf", problem, case.costs, lattice=lattice)
    value, gradient = value_and_gradient(surrogate, surrogate.compile(numbers[chosen]), w)
    of_labels = matrix[chosen].T @ w
    tiny = 1e-11 * (1.0 + np.abs(of_labels).max(initial=0.0))
    np.testing.assert_allclose(value, expected.value(of_labels), rtol=1e-9, atol=tiny)
    np.testing.assert_allclose(gradient, (matrix @ expected.gradient(of_labels))[chosen], rtol=1e-9, atol=tiny)


@few
@given(component_cases(), LATTICES, st.integers(0, 99))
def test_a_scan_finds_every_candidate_above_its_limit(drawn, lattice, seed):
    """Protects the scan: the same candidates as enumeration, with the same gradients."""
    case, problem = drawn
    numbers, matrix, expected = enumerated(case, problem)
    rng = np.random.default_rng(seed)
    chosen = np.flatnonzero(rng.random(len(numbers)) < 0.3)
    w = rng.normal(size=len(chosen))
    gradient = matrix @ expected.gradient(matrix[chosen].T @ w)
    limit = float(np.median(np.abs(gradient))) * 1.01 + 1e-9 if len(gradient) else 1.0
    surrogate = objective("crf", problem, case.costs, lattice=lattice)
    limits = {k: np.where(problem.has_order(k), limit, np.inf) for k in problem.kinds}
    _, found = surrogate.scan(surrogate.compile(numbers[chosen]), w, limits)
    is_above = np.abs(gradient) > limit
    np.testing.assert_array_equal(found.features, numbers[is_above])
    np.testing.assert_allclose(found.gradients, gradient[is_above], rtol=1e-6, atol=1e-9)


@few
@given(component_cases(max_tags=2), st.sampled_from(["l1", "elastic"]), LATTICES)
def test_the_solution_satisfies_the_optimality_conditions(drawn, norm, lattice):
    """Protects the certificate: at the end every enumerated gradient is in its box, or at its weight's slope."""
    case, problem = drawn
    numbers, matrix, expected = enumerated(case, problem)
    strengths = np.linspace(0.05, 0.1, len(problem.families))
    penalty = FamilyPenalty.from_strengths(strengths, norm)
    result = solve(problem, penalty, costs=case.costs, tol=1e-9, lattice=lattice, max_passes=2000)
    rough = solve(problem, penalty, costs=case.costs, tol=0.3, lattice=lattice)
    assert rough.objective - rough.gap <= result.objective * (1.0 + 1e-9) + 1e-12
    w = np.zeros(len(numbers))
    w[np.searchsorted(numbers, result.features)] = result.weights
    bound = penalty.bind(problem)
    groups, limits = bound.groups_of(numbers), bound.thresholds(numbers)
    smooth, extra = bound.smooth(groups, w)
    of_labels = matrix.T @ w
    total = expected.value(of_labels) + smooth + float(limits @ np.abs(w))
    assert result.objective == pytest.approx(total, rel=1e-9, abs=1e-12)
    if result.gap <= 1e-8 * result.objective:
        slope = matrix @ expected.gradient(of_labels) + extra
        assert np.all(np.abs(slope[w == 0.0]) <= limits[w == 0.0] * (1.0 + 1e-2) + 1e-7)
        np.testing.assert_allclose(slope[w != 0.0], -(limits * np.sign(w))[w != 0.0], atol=2e-3)


@given(component_cases(max_tags=2, max_length=3))
@settings(max_examples=15)
def test_observed_candidates_are_those_of_observed_labels(drawn):
    """Protects `candidates='observed'`: a column and a value of a label that it was seen with."""
    case, _ = drawn
    more = case.families + component_families(case.families)
    rng = np.random.default_rng(1)
    problem = build_problem(
        case.text, case.y, case.n_labels, more, candidates="observed", components=table_of(case.n_labels, rng)
    )
    table, kind = problem.components, problem.component_kind
    seen = set()
    for c in np.flatnonzero(problem.has_order(kind)).tolist():
        for t in problem.columns.positions[problem.columns.ptr[c] : problem.columns.ptr[c + 1]].tolist():
            seen |= {c * len(table) + int(v) for v in table.values_of(int(problem.y[t]))}
        for at, t in zip(*problem.columns.zeros, strict=True):  # value 0 counts as seen
            if at == c:
                seen |= {c * len(table) + int(v) for v in table.values_of(int(problem.y[t]))}
    assert problem.observed(kind).tolist() == sorted(seen)
    assert problem.n_candidates >= len(seen)


def test_without_families_on_components_nothing_changes():
    """Protects models of today: components that no family is on leave the problem as it is."""
    from vcrf.families import default_families, intern_sentences

    text, y = intern_sentences([["a", "b"], ["b"]]), np.array([0, 1, 1], np.uint32)
    rng = np.random.default_rng(0)
    problem = build_problem(text, y, 2, default_families(), components=table_of(2, rng))
    assert problem.components is None
    assert problem.space.sizes == (2, 4)
    assert replace(problem).n_candidates == build_problem(text, y, 2, default_families()).n_candidates
