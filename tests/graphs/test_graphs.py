"""Factor graphs: inference equals enumeration and the sequence lattice; complexity equals the definition."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from small_counts import problem_of
from vcrf.complexity import (
    FamilyCounts,
    dense_complexity,
    dense_features,
    gaussian_integral,
    graph_counts,
    l1_bound,
    moment_bound,
    rademacher,
)
from vcrf.errors import BudgetError, InputError
from vcrf.families import BIAS, Family, Template
from vcrf.graphs import (
    Factor,
    FactorGraph,
    ScoredGraph,
    chain,
    draw,
    elimination_order,
    grid,
    multiclass,
    skip_chain,
    to_dot,
    tree,
)
from vcrf.lattice import DenseLattice

GRAPHS = {
    "multiclass": multiclass(5),
    "chain": chain(4, 3),
    "chain of order 3": chain(5, 2, (1, 3)),
    "skip chain": skip_chain(5, 2, [(0, 3), (4, 1)]),
    "tree": tree([-1, 0, 0, 1, -1], 2),
    "grid": grid(2, 3, 2),
    "by hand": FactorGraph((2, 3, 2), (Factor((2, 0)), Factor((1, 0, 2)))),
    "loose variable": FactorGraph((2, 3), (Factor((0,)),)),
}


def enumerated(scored: ScoredGraph) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """All assignments and their scores, summed factor by factor."""
    assignments = list(itertools.product(*map(range, scored.graph.cards)))
    tables = [np.asarray(table) for table in scored.tables]
    scores = [
        sum(table[tuple(y[v] for v in f.scope)] for f, table in zip(scored.graph.factors, tables, strict=True))
        for y in assignments
    ]
    return assignments, np.array(scores)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("forbidden", [0.0, 0.2])
def test_inference_equals_enumeration(name: str, forbidden: float) -> None:
    """Log partition, factor and variable marginals, best assignment; also where some assignments are forbidden."""
    graph = GRAPHS[name]
    rng = np.random.default_rng(len(name))
    tables = []
    for f in range(graph.n_factors):
        table = rng.normal(size=graph.shape(f))
        table[(rng.random(table.shape) < forbidden) & (np.indices(table.shape).sum(axis=0) > 0)] = -np.inf
        tables.append(table)
    scored = ScoredGraph(graph, tables)
    assignments, scores = enumerated(scored)
    log_z = np.logaddexp.reduce(scores)
    assert scored.log_partition() == pytest.approx(log_z)
    probabilities = np.exp(scores - log_z)
    for factor, found in zip(graph.factors, scored.marginals(), strict=True):
        expected = np.zeros(found.shape)
        for y, p in zip(assignments, probabilities, strict=True):
            expected[tuple(y[v] for v in factor.scope)] += p
        np.testing.assert_allclose(found, expected, atol=1e-12)
    for v, found in enumerate(scored.variable_marginals()):
        expected = [
            sum(p for y, p in zip(assignments, probabilities, strict=True) if y[v] == b) for b in range(len(found))
        ]
        np.testing.assert_allclose(found, expected, atol=1e-12)
    best, score = scored.best()
    assert score == pytest.approx(scores.max())
    assert scored.score(best) == pytest.approx(score)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), n_labels=st.integers(1, 3), order=st.integers(1, 4))
def test_chains_agree_with_the_lattice(seed: int, n: int, n_labels: int, order: int) -> None:
    """The same sums, maxima and marginals, for any order."""
    rng = np.random.default_rng(seed)
    tables = {k: rng.normal(size=n_labels**k) for k in range(2, order + 1)}
    lattice = DenseLattice.from_scores(rng.normal(size=(n, n_labels)), tables)
    scored = ScoredGraph.from_lattice(lattice)
    assert scored.log_partition() == pytest.approx(lattice.log_partition())
    labels, score = lattice.viterbi()
    assert scored.best()[1] == pytest.approx(score)
    assert scored.score(labels) == pytest.approx(lattice.score(labels))
    np.testing.assert_allclose(np.array(scored.variable_marginals()), lattice.label_marginals(), atol=1e-12)


def test_weights_of_attributes_make_tables() -> None:
    """Linear scores: the factors of a kind share weights; Hamming loss is a factor on each variable."""
    graph = chain(3, 2)
    weights = {"labels:1": [0.0, 1.0], "labels:2": [[0.5, 0.0], [0.0, -1.0]]}
    scored = ScoredGraph.from_weights(graph, weights)
    assert scored.score([1, 1, 0]) == pytest.approx(2.0 - 1.0)
    augmented = scored.plus_hamming([0, 1, 0])
    assert augmented.score([1, 1, 1]) == pytest.approx(scored.score([1, 1, 1]) + 2 / 3)
    worded = graph.with_attributes(lambda f, factor: [("x", 2.0), factor.kind] if f == 0 else [])
    assert ScoredGraph.from_weights(worded, {"x": [1.0, 0.0]}).score([0, 0, 0]) == 2.0


def test_orders_follow_the_width_of_the_graph() -> None:
    """Chains and trees need tables of two variables, a grid of three rows four; the budget is an error that says so."""
    assert elimination_order([3] * 40, [f.scope for f in chain(40, 3).factors])[1] == 9
    assert elimination_order([3] * 8, [f.scope for f in tree([-1, 0, 0, 1, 1, 2, 2, 6], 3).factors])[1] == 9
    assert elimination_order([2] * 24, [f.scope for f in grid(3, 8, 2).factors])[1] == 2**4
    wide = grid(4, 4, 4)
    with pytest.raises(BudgetError, match="raise `max_table`"):
        ScoredGraph(wide, [np.zeros(wide.shape(f)) for f in range(wide.n_factors)], max_table=500).log_partition()
    # Each table is small enough, all of them are not.
    long = chain(2000, 10, (1, 6))
    with pytest.raises(BudgetError, match="together"):
        ScoredGraph(long, [np.zeros(10)] * 2000 + [np.zeros((10,) * 6)] * 1995).best()


@pytest.mark.parametrize("name", ["multiclass", "by hand", "tree"])
def test_complexity_of_any_graph(name: str) -> None:
    """The estimate's interval holds the mean over all signs (or over many), bounds lie above."""
    graph = GRAPHS[name].with_attributes(lambda f, factor: [f"{factor.kind}:{len(factor.scope)}", f"own:{f}"])
    graphs = [graph, graph] if name != "tree" else [graph]
    counts = graph_counts(graphs)
    n_signs = sum(graph.n_assignments(f) for f in range(graph.n_factors)) * len(graphs)
    exact = dense_complexity(dense_features(graphs), draws=None if n_signs <= 14 else 40_000)
    found = rademacher(counts, draws=4000)
    assert abs(found.value - exact) < 2 * found.half_width + 0.01 * exact
    assert exact <= moment_bound(counts) <= l1_bound(counts) * (1 + 1e-9)


def test_values_of_attributes_count() -> None:
    """Given twice, an attribute's values add up."""
    graph = multiclass(2).with_attributes(lambda *_: [("x", 2.0), ("x", 0.5), "y"])
    assert graph_counts([graph]).blocks[0].variances.tolist() == [6.25, 1.0]
    assert graph_counts([graph]).r_inf == dense_features([graph])[0][0].max() == 2.5


def test_chains_are_the_sequence_case() -> None:
    """The general code on chains has the variances, sizes and estimates of the families on sentences."""
    sentences = ["a b a", "b", "a a b b"]
    word = Template(((0, "word"),))
    problem = problem_of(sentences, [Family("word", (word,)), Family("pairs", (BIAS, word), 2)], 3)
    graphs = []
    for sentence in sentences:
        tokens = sentence.split()
        graphs.append(
            chain(len(tokens), 3).with_attributes(
                lambda _, factor, tokens=tokens: (
                    [f"word={tokens[factor.scope[-1]]}"]
                    if len(factor.scope) == 1
                    else ["bias", f"pair word={tokens[factor.scope[-1]]}"]
                )
            )
        )
    ours, general = FamilyCounts(problem, "joint").union(), graph_counts(graphs)
    assert ours.n_features == general.n_features == 3 * 2 + 9 * 3
    for a, b in zip(ours.blocks, general.blocks, strict=True):
        assert sorted(a.variances.tolist()) == sorted(b.variances.tolist())
    for measure in (moment_bound, l1_bound, gaussian_integral):
        assert measure(ours) == pytest.approx(measure(general))
    assert ours.r_2 == general.r_2 == math.sqrt(2)
    one, other = rademacher(ours, draws=3000), rademacher(general, draws=3000, random_state=5)
    assert abs(one.value - other.value) < 2 * (one.half_width + other.half_width)
    alone = graph_counts(graphs, "labels:2", "family")
    family = FamilyCounts(problem).family(1)
    assert sorted(alone.blocks[0].variances.tolist()) == sorted(family.blocks[0].variances.tolist())


def test_pictures(tmp_path: Path) -> None:
    """Graphviz text has every edge and quotes names; matplotlib writes a file."""
    graph = FactorGraph((2, 2), (Factor((0, 1), 'odd "kind"'),), ("noun", "verb"))
    text = to_dot(graph, "title")
    assert text.startswith("graph factor_graph {")
    assert 'label="odd \\"kind\\""' in text
    assert "f0 -- v0;" in text
    assert "f0 -- v1;" in text
    assert 'label="noun"' in text
    for name, each in GRAPHS.items():
        path = tmp_path / f"{name}.svg"
        draw(each, path)
        assert path.stat().st_size > 1000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FactorGraph((2, 0), ()), "at least 1"),
        (lambda: FactorGraph((2,), (Factor((1,)),)), "variable 1"),
        (lambda: FactorGraph((2, 2), (Factor((1, 1)),)), "twice"),
        (lambda: FactorGraph((2, 2), (), names=("a",)), "names must have one entry"),
        (lambda: ScoredGraph(chain(1, 2), []), "1 factors, got 0"),
        (lambda: ScoredGraph(chain(1, 2), [[0.0, 1.0, 2.0]]), r"needs shape \(2,\)"),
        (lambda: ScoredGraph(chain(1, 2), [[0.0, math.inf]]), r"\+inf"),
        (lambda: ScoredGraph(chain(1, 2), [[-math.inf] * 2]).best(), "forbidden"),
        (lambda: ScoredGraph(chain(1, 2), [[-math.inf] * 2]).marginals(), "forbidden"),
        (lambda: ScoredGraph(chain(1, 2), [[0.0, 1.0]]).score([2]), "below its variable's"),
        (lambda: ScoredGraph.from_weights(chain(1, 2), {"labels:1": [1.0]}), "need shape"),
        (lambda: tree([0], 2), r"parents\[0\]"),
        (lambda: chain(3, 2, (0,)), "lengths must be at least 1"),
        (lambda: grid(0, 2, 2), "n_rows"),
        (lambda: graph_counts([multiclass(2), multiclass(3)]), "two names"),
        (lambda: graph_counts([multiclass(2)], factors="all"), "'joint' or 'family'"),
        (lambda: graph_counts([]), "at least one example"),
    ],
)
def test_wrong_graphs_are_named(make, message: str) -> None:
    """Errors say what was expected."""
    with pytest.raises(InputError, match=message):
        make()
