"""Pairs of component values against enumeration: each is a sum of pairs of labels, whatever is summed over.

With A the 0-1 matrix from features of a problem with such pairs to those of the same problem with whole labels alone,
F(w) = F0(A' w) and its gradient is A times that of F0: F0 is enumerated.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enumeration import Enumeration, all_candidates
from objectives import objective, value_and_gradient
from partial_labels import PartialEnumeration, RestrictedEnumeration
from small_problems import WORD, for_few_labels
from vcrf.errors import InputError
from vcrf.families import BIAS, Family, component_families, component_pair_families, intern_sentences
from vcrf.penalties import FamilyPenalty
from vcrf.problem import Components, build_problem, learn_known_labels
from vcrf.solvers.working_set import solve
from vcrf.structures.pairs import PairPotentials

few = settings(max_examples=40)


def table_of(n_labels, rng):
    """Two components: at most one value of each at a label, so that some labels have none."""
    names, sets = [], []
    for name, most in (("A", 2), ("B", 3)):
        value = rng.integers(-1, most, n_labels)
        for v in range(most):
            if np.any(value == v):
                names.append(f"{name}={v}")
                sets.append(np.flatnonzero(value == v))
    if not sets:
        names, sets = ["A=0"], [np.arange(n_labels)]
    ptr = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return Components(names, ptr, np.concatenate(sets).astype(np.uint32), n_labels)


class Drawn:
    """A problem with pairs of values, the plain one that is enumerated, and the matrix A of all candidates."""

    def __init__(self, rng, n_labels, lengths, has_words, has_pairs, is_partial, cost, least=None):
        text = intern_sentences([[str(rng.choice(["a", "b", "ab"])) for _ in range(n)] for n in lengths])
        y = rng.integers(0, n_labels, text.n_tokens).astype(np.uint32)
        table = table_of(n_labels, rng)
        plain = [Family("word", (WORD,)), Family("bias", (BIAS,)), Family("pairs", (BIAS,), 2)]
        plain += [Family("pairs with words", (WORD,), 2)] if has_words else []
        components = list(dict.fromkeys(name[0] for name in table.names))
        families = [f for f in plain if has_pairs or f.name != "pairs"]
        families += component_families(plain[:2]) + component_pair_families(components[::-1])
        weights = rng.integers(1, 5, len(lengths)) / 8.0
        allowed = None
        if is_partial:
            allowed = (rng.random((len(y), n_labels)) < 0.4).astype(np.uint8)
            allowed[np.arange(len(y)), y] = 1
        self.costs = np.full(len(lengths), cost)
        known = None if least is None else learn_known_labels(text, y, n_labels, least, allowed)
        self.problem = build_problem(
            text, y, n_labels, families, weights=weights, components=table, allowed=allowed, known=known
        )  # fmt: skip
        self.plain = build_problem(text, y, n_labels, plain, weights=weights, allowed=allowed, known=known)
        self._find_candidates()
        kind = PartialEnumeration if self.plain.is_partial else Enumeration
        kind = kind if known is None else RestrictedEnumeration
        self.expected = kind(self.plain, self.features, self.costs)

    def _find_candidates(self):
        problem, n_labels = self.problem, self.plain.n_labels
        self.features = all_candidates(self.plain)
        at = {(f.column, f.k, f.code): i for i, f in enumerate(self.features)}
        numbers, rows = [], []

        def add(column, kind, code, members):
            numbers.append(problem.join_features(np.array([column], np.uint32), kind, np.array([code], np.uint32))[0])
            row = np.zeros(len(self.features))
            row[[at[member] for member in members]] += 1.0
            rows.append(row)

        for f in self.features:
            if problem.has_order(f.k)[f.column]:
                add(f.column, f.k, f.code, [(f.column, f.k, f.code)])
        table, kind = problem.components, problem.component_kind
        labels = [table.labels[a:z].tolist() for a, z in pairwise(table.ptr)]
        for c in np.flatnonzero(problem.has_order(kind)).tolist():
            for v in range(len(table)):
                add(c, kind, v, [(c, 1, label) for label in labels[v]])
        bias = problem.bias_column
        for i, name in enumerate(table.pairs):
            values = [v for v, value in enumerate(table.names) if value.startswith(f"{name}=")]
            for a, v in enumerate(values):
                for b, u in enumerate(values):
                    members = [(bias, 2, p * n_labels + q) for p in labels[v] for q in labels[u]]
                    add(bias, kind + 1 + i, a * len(values) + b, members)
        order = np.argsort(numbers)
        self.numbers, self.matrix = np.array(numbers, np.int64)[order], np.array(rows)[order]

    def objective(self, is_sparse):
        """On all arcs, or on classes and on the pairs that have a weight."""
        if not is_sparse:
            return objective("crf", self.problem, self.costs)
        with for_few_labels():
            return objective("crf", self.problem, self.costs, lattice="auto")


@st.composite
def drawn_cases(draw, may_be_dense=True):
    """Small problems, and whether passes look at classes of labels."""
    is_sparse = draw(st.booleans()) or not may_be_dense
    lengths = [*draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)), 3]
    is_partial = draw(st.booleans())
    least = draw(st.sampled_from([None, 1, 2, 3])) if is_sparse else None
    has_words = not is_sparse and draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_labels, has_pairs, cost = draw(st.integers(1, 4)), draw(st.booleans()), draw(st.sampled_from([0.0, 0.3]))
    return Drawn(rng, n_labels, lengths, has_words, has_pairs, is_partial, cost, least), is_sparse


@settings(max_examples=120)
@given(drawn_cases(), st.sampled_from([0.5, 5.0, 40.0, 150.0, 1000.0]), st.integers(0, 99))
def test_value_and_gradient_equal_enumeration(drawn, scale, seed):
    """Protects scores of classes, sums over them, differences that cancel, and the log domain."""
    case, is_sparse = drawn
    rng = np.random.default_rng(seed)
    chosen = np.flatnonzero(rng.random(len(case.numbers)) < 0.6)
    w = scale * rng.normal(size=len(chosen))
    surrogate = case.objective(is_sparse)
    plan = surrogate.compile(case.numbers[chosen])
    with for_few_labels():
        prepared = surrogate.structure.prepare(plan, w, surrogate.loss)
        assert isinstance(prepared, PairPotentials) == is_sparse
        value, gradient = value_and_gradient(surrogate, plan, w)
        values = prepared.values(surrogate.loss) if not case.problem.is_partial else None
    of_labels = case.matrix[chosen].T @ w
    tiny = 1e-11 * (1.0 + np.abs(of_labels).max(initial=0.0))
    expected = case.expected.value(of_labels)
    assert value == pytest.approx(expected, rel=1e-9, abs=tiny)
    if values is not None:
        assert float(case.problem.weights @ values) == pytest.approx(expected, rel=1e-9, abs=tiny)
    np.testing.assert_allclose(
        gradient, (case.matrix @ case.expected.gradient(of_labels))[chosen], rtol=1e-8, atol=tiny
    )


def test_pairs_may_all_have_scores_far_below_zero():
    """With one label no pair has the score 0 that the others of more labels have."""
    for seed in range(8):
        drawn = Drawn(np.random.default_rng(seed), 1, [1, 3], False, False, False, 0.0), True
        test_value_and_gradient_equal_enumeration.hypothesis.inner_test(drawn=drawn, scale=1000.0, seed=seed)


@settings(max_examples=60)
@given(drawn_cases(), st.sampled_from([0.5, 5.0, 1000.0]), st.sampled_from([0.02, 0.2]), st.integers(0, 99))
def test_a_scan_finds_every_candidate_above_its_limit(drawn, scale, limit, seed):
    """Protects the scan: the same candidates as enumeration, with the same gradients; rare labels are left out."""
    case, is_sparse = drawn
    rng = np.random.default_rng(seed)
    chosen = np.flatnonzero(rng.random(len(case.numbers)) < 0.3)
    w = scale * rng.normal(size=len(chosen))
    gradient = case.matrix @ case.expected.gradient(case.matrix[chosen].T @ w)
    surrogate = case.objective(is_sparse)
    limits = {k: np.where(case.problem.has_order(k), limit, np.inf) for k in case.problem.kinds}
    with for_few_labels():
        _, found = surrogate.scan(surrogate.compile(case.numbers[chosen]), w, limits)
    is_found = np.isin(case.numbers, found.features)
    is_clear = np.abs(np.abs(gradient) - limit) > 1e-9
    np.testing.assert_array_equal(is_found[is_clear], np.abs(gradient[is_clear]) > limit)
    np.testing.assert_allclose(found.gradients, gradient[is_found], rtol=1e-6, atol=1e-9)


@few
@given(drawn_cases(), st.sampled_from(["l1", "elastic"]))
def test_the_solution_satisfies_the_optimality_conditions(drawn, norm):
    """Protects the certificate: a rough run's bound is below the optimum, whose gradients are in their boxes."""
    case, is_sparse = drawn
    if case.problem.is_partial:
        return
    penalty = FamilyPenalty.from_strengths(np.linspace(0.05, 0.1, len(case.problem.families)), norm)
    with for_few_labels():
        lattice = "auto" if is_sparse else "dense"
        result = solve(case.problem, penalty, costs=case.costs, tol=1e-9, lattice=lattice, max_passes=2000)
        rough = solve(case.problem, penalty, costs=case.costs, tol=0.3, lattice=lattice)
    assert rough.objective - rough.gap <= result.objective * (1.0 + 1e-9) + 1e-12

    w = np.zeros(len(case.numbers))
    w[np.searchsorted(case.numbers, result.features)] = result.weights
    bound = penalty.bind(case.problem)
    groups, limits = bound.groups_of(case.numbers), bound.thresholds(case.numbers)
    smooth, extra = bound.smooth(groups, w)
    of_labels = case.matrix.T @ w
    total = case.expected.value(of_labels) + smooth + float(limits @ np.abs(w))
    assert result.objective == pytest.approx(total, rel=1e-9, abs=1e-12)
    if result.gap <= 1e-8 * result.objective:
        slope = case.matrix @ case.expected.gradient(of_labels) + extra
        assert np.all(np.abs(slope[w == 0.0]) <= limits[w == 0.0] * (1.0 + 1e-2) + 1e-7)


@few
@given(drawn_cases())
def test_observed_pairs_are_those_of_the_text(drawn):
    """Protects `candidates='observed'` of pairs of values: those that stand next to each other."""
    case, _ = drawn
    if case.problem.is_partial:
        return
    problem = case.problem
    problem = build_problem(
        problem.text, problem.y, problem.n_labels, problem.families, candidates="observed",
        components=problem.components,
    )  # fmt: skip
    table = problem.components
    for i, kind in enumerate(problem.pair_kinds):
        n, seen = len(table.pair_values[i]), set()
        for a, z in pairwise(problem.sent_ptr):
            values = table.value_of[i, problem.y[a:z]].tolist()
            seen |= {v * n + u for v, u in pairwise(values) if min(v, u) >= 0}
        assert problem.observed(kind).tolist() == sorted(problem.bias_column * n * n + code for code in seen)


def test_what_pairs_of_values_do_not_have_is_refused():
    """Protects messages: words, longer tag patterns, the automaton, and families that contradict themselves."""
    rng = np.random.default_rng(0)
    case = Drawn(rng, 3, [3, 2], False, True, False, 0.0)
    given = case.problem.text, case.problem.y, 3
    more = {"components": case.problem.components}
    pairs = component_pair_families(["A"])
    with pytest.raises(InputError, match="of all words alone"):
        build_problem(
            *given, [Family("x", (WORD,), 2, on_components=True, component="A"), Family("b", (BIAS,))], **more
        )
    with pytest.raises(InputError, match="two labels at the most, got 3"):
        build_problem(*given, [Family("bias", (BIAS,)), Family("long", (BIAS,), 3), *pairs], **more)
    with pytest.raises(InputError, match="component_pairs"):
        objective("crf", case.problem, case.costs, lattice="patterns")
    with pytest.raises(InputError, match="component"):
        Family("x", (BIAS,), 2, on_components=True)
    with pytest.raises(InputError, match="component"):
        Family("x", (BIAS,), 2, component="A")
