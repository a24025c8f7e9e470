"""Training on graphs through the seam: values, gradients and certificates against enumeration and laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.drawn import draw_skeletons, enumerated
from vcrf.families import Family, NamedFeature
from vcrf.families.explicit import AttributeText
from vcrf.graphs.layout import make_layout
from vcrf.penalties import FamilyPenalty
from vcrf.problem.graphs import build_graph_problem
from vcrf.solvers.certificate import certify
from vcrf.solvers.graph_cooling import solve_graph_max
from vcrf.solvers.group import solve_group
from vcrf.solvers.result import Status
from vcrf.solvers.run import RunOptions
from vcrf.solvers.working_set import solve
from vcrf.structures.graph_loss import GraphLoss
from vcrf.surrogates.graphs import choose_graph_max, choose_graphs

SEEDS = st.integers(0, 10**6)


def draw_problem(rng, max_table=10**6, n_graphs=3, is_partial=False, **options):
    """Graphs with two attributes of random values for each kind of parts, and true labels."""
    kinds, skeletons = draw_skeletons(rng, n_graphs=n_graphs, most=4, **{"cards": [2, 3], **options})
    layout = make_layout(kinds, skeletons, max_table, 1)
    n, n_kinds = len(layout.kind_of), len(kinds.kinds)
    names = [f"{kinds.full_name(k)} x{j}" for k in range(1, n_kinds + 1) for j in range(2)]
    text = AttributeText(
        sent_ptr=layout.part_ptr, words=[""], word_ids=np.zeros(n, np.uint32), names=names,
        sources=np.arange(2 * n_kinds), source_names=names, positions=np.repeat(np.arange(n, dtype=np.uint32), 2),
        attributes=(2 * (layout.kind_of - 1)[:, None] + np.arange(2)).reshape(-1),
        values=rng.normal(size=2 * n).round(3) + 0.0005,
    )  # fmt: skip
    families = [Family(name, (NamedFeature(name),), 1 + i // 2) for i, name in enumerate(names)]
    y = np.array([rng.integers(card) for card in layout.cards], np.uint32)
    allowed = None
    if is_partial:
        allowed = rng.random(int(layout.cards.sum())) < 0.5
        allowed[np.cumsum(layout.cards) - layout.cards + y] = True
    return build_graph_problem(text, layout, y, families, None, allowed)


def hamming(problem, cost=1.0):
    """Loss of a wrong label at every node."""
    layout, table = problem.layout, np.zeros(int(problem.layout.score_ptr[-1]))
    table[layout.node_scores] = cost
    table[problem.truth[layout.node_parts]] = 0.0
    if problem.is_partial:
        table[layout.node_scores[problem.allowed]] = 0.0
    return GraphLoss(table)


def every_feature(problem):
    """All feature numbers."""
    found = []
    for c, kind in enumerate(problem.layout.kind_of[problem.columns.first_positions].tolist()):
        n = problem.space.size(kind)
        found.append(problem.join_features(np.full(n, c, np.uint32), kind, np.arange(n, dtype=np.uint32)))
    return np.concatenate(found)


def enumerated_objective(problem, kind, loss, scores):
    """F from all assignments of every graph."""
    layout, values = problem.layout, []
    for i in range(layout.n_examples):
        assignments, totals = enumerated(layout, scores, i)
        _, costs = enumerated(layout, loss.table, i)
        own = problem.y[layout.variable_ptr[i] : layout.variable_ptr[i + 1]]
        if problem.is_partial:
            first = int(np.sum(layout.cards[: layout.variable_ptr[i]]))
            starts = first + np.cumsum(layout.cards[layout.variable_ptr[i] : layout.variable_ptr[i + 1]])
            starts = starts - layout.cards[layout.variable_ptr[i] : layout.variable_ptr[i + 1]]
            is_allowed = problem.allowed[starts + assignments].all(axis=1)
            truth = np.log(np.exp(totals[is_allowed]).sum())
        else:
            truth = totals[np.all(assignments == own, axis=1)][0]
        values.append(costs @ np.exp(totals - truth) if kind == "structboost" else np.exp(costs + totals - truth).sum())
    means = np.array(values)
    return {"crf": np.log(means).mean(), "exponential": np.log(means.mean()), "structboost": np.log1p(means.mean())}[
        kind
    ]


@settings(max_examples=15)
@given(SEEDS, st.sampled_from(["crf", "exponential", "structboost"]))
def test_values_and_gradients_are_those_of_enumeration(seed, kind):
    """F by all assignments, its gradient by central differences."""
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng)
    loss = hamming(problem)
    objective = choose_graphs(problem, kind, loss).build(problem, np.ones(len(problem.columns), bool))
    plan = objective.compile(every_feature(problem))
    w, step = rng.normal(size=len(plan)), 1e-5
    scores = objective.structure.prepare(plan, w, loss).scores
    assert objective.at(plan, w).value == pytest.approx(enumerated_objective(problem, kind, loss, scores), rel=1e-9)
    some = rng.permutation(len(w))[:8]
    slopes = [
        (objective.at(plan, w + step * d).value - objective.at(plan, w - step * d).value) / (2 * step)
        for d in np.eye(len(w))[some]
    ]
    np.testing.assert_allclose(objective.at(plan, w).gradient[some], slopes, rtol=1e-5, atol=1e-7)
    point, scan = objective.scan(plan, w, {k: np.full(len(problem.columns), -1.0) for k in problem.kinds})
    np.testing.assert_array_equal(scan.features, plan.features)
    np.testing.assert_allclose(scan.gradients, point.gradient, atol=1e-12)


@settings(max_examples=10)
@given(SEEDS)
def test_open_labels_sum_over_what_is_allowed(seed):
    """Value by enumeration, gradient by differences."""
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, is_partial=True)
    loss = hamming(problem)
    objective = choose_graphs(problem, "crf", loss).build(problem, np.ones(len(problem.columns), bool))
    assert not objective.is_convex
    plan = objective.compile(every_feature(problem))
    w, step = rng.normal(size=len(plan)), 1e-5
    scores = objective.structure.prepare(plan, w, loss).scores
    assert objective.at(plan, w).value == pytest.approx(enumerated_objective(problem, "crf", loss, scores), abs=1e-9)
    slopes = [
        (objective.at(plan, w + step * d).value - objective.at(plan, w - step * d).value) / (2 * step)
        for d in np.eye(len(w))[:6]
    ]
    np.testing.assert_allclose(objective.at(plan, w).gradient[:6], slopes, rtol=1e-5, atol=1e-7)


@settings(max_examples=12)
@given(SEEDS, st.sampled_from([(0.05, 0.0), (0.0, 0.1), (0.03, 0.05)]), st.booleans())
def test_the_certificate_is_below_every_objective(seed, strengths, is_relaxed):
    """At any weights: the lower bound never exceeds what a long run reaches, exact or relaxed; and that run closes."""
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, 9 if is_relaxed else 10**6, density=0.9, has_triples=False)
    n = len(problem.families)
    penalty = FamilyPenalty(np.full(n, strengths[0]), np.full(n, strengths[1]))
    choice = choose_graphs(problem, "crf", hamming(problem))
    result = solve(problem, penalty, surrogate=choice, tol=1e-6 if not is_relaxed else 1e-4, max_passes=3000)
    assert result.gap <= 1e-2 * result.objective
    bound = penalty.bind(problem)
    objective = choice.build(problem, np.ones(len(problem.columns), bool))
    limits = {k: bound.column_thresholds(k) for k in problem.kinds}
    plan = objective.compile(every_feature(problem))
    for scale in (0.0, 0.3, 2.0):
        w = scale * rng.normal(size=len(plan))
        point, scan = objective.scan(plan, w, limits)
        tangent = point.value - w @ point.gradient
        found = certify(bound, tangent if scan.intercept is None else scan.intercept, scan.features, scan.gradients)
        assert found.lower_bound <= result.objective + 1e-9


def test_the_relaxed_optimum_lies_above_the_exact_one():
    """P*_exact <= P*_relaxed."""
    rng = np.random.default_rng(4)
    state = rng.bit_generator.state
    found = []
    for max_table in (10**6, 9):
        rng.bit_generator.state = state
        problem = draw_problem(rng, max_table, n_graphs=4, density=1.0, has_triples=False)
        penalty = FamilyPenalty(np.zeros(len(problem.families)), np.full(len(problem.families), 0.05))
        result = solve(problem, penalty, surrogate=choose_graphs(problem, "crf", hamming(problem)), tol=1e-5)
        assert bool(problem.layout.is_exact.all()) == (max_table > 9)
        found.append(result)
    exact, relaxed = found
    assert exact.objective - exact.gap <= relaxed.objective
    assert exact.objective < relaxed.objective


@settings(max_examples=6)
@given(SEEDS)
def test_the_group_norm_and_the_temperatures_reach_their_certificates(seed):
    """Group norm of exact graphs, and m3n: its objective is that of enumeration."""
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng)
    n = len(problem.families)
    group = solve_group(
        problem,
        FamilyPenalty(np.full(n, 0.05), np.zeros(n)),
        choose_graphs(problem, "crf", hamming(problem)),
        RunOptions(tol=1e-4),
    )
    assert group.status is Status.CONVERGED
    penalty, loss = FamilyPenalty(np.zeros(n), np.full(n, 0.1)), hamming(problem)
    result = solve_graph_max(problem, penalty, choose_graph_max(problem, loss), RunOptions(tol=1e-2))
    assert result.status is Status.CONVERGED
    objective = choose_graphs(problem, "crf", loss).build(problem, np.ones(len(problem.columns), bool))
    plan = objective.compile(result.features)
    scores = objective.structure.prepare(plan, result.weights, loss).scores
    worst = []
    for i in range(problem.layout.n_examples):
        assignments, totals = enumerated(problem.layout, scores + loss.table, i)
        own = problem.y[problem.layout.variable_ptr[i] : problem.layout.variable_ptr[i + 1]]
        worst.append(totals.max() - totals[np.all(assignments == own, axis=1)][0])
    penalty_value = penalty.bind(problem).smooth(penalty.bind(problem).groups_of(result.features), result.weights)[0]
    assert result.objective == pytest.approx(np.mean(worst) + penalty_value, rel=1e-9)


def test_threads_do_not_change_the_weights():
    """Bit for bit, relaxed too."""
    for max_table in (10**6, 9):
        results = []
        for threads in (1, 3):
            problem = draw_problem(np.random.default_rng(1), max_table, n_graphs=20, density=0.9, has_triples=False)
            n = len(problem.families)
            penalty = FamilyPenalty(np.full(n, 0.01), np.full(n, 0.01))
            results.append(
                solve(problem, penalty, surrogate=choose_graphs(problem, "crf", hamming(problem)), threads=threads)
            )
        np.testing.assert_array_equal(results[0].weights, results[1].weights)
        assert results[0].gap == results[1].gap
