"""What GraphCRF takes and what it refuses: unusual containers, features of another form, edges without direction."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from vcrf import Graph, GraphCRF, load
from vcrf.errors import InputError
from vcrf.graphs import Factor, FactorGraph

EDGES = [(0, 1), (1, 2)]


def arrays(width=2, seed=0):
    """Chains of three nodes described by numbers, and labels."""
    rng = np.random.default_rng(seed)
    X = [Graph(rng.normal(size=(3, width)), EDGES) for _ in range(8)]
    return X, [["p" if row[0] > 0 else "q" for row in x.nodes] for x in X]


@pytest.fixture(scope="module")
def model():
    """Trained on arrays, columns as they are."""
    return GraphCRF(scale=False).fit(*arrays())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: Graph(-1), "cannot be negative, got -1"),
        (lambda: Graph(np.float64(3)), "Features must be an array"),
        (lambda: Graph(3, [(0, 1), (1,)]), "`edges` must be pairs of whole numbers: they have different lengths"),
        (lambda: Graph(2, node_weight=["a", "b"]), "`node_weight` must be a list of finite numbers"),
        (lambda: Graph(2, node_weight=np.ones((2, 2))), "`node_weight` must be a list of finite numbers"),
        (lambda: GraphCRF().fit(Graph(2), [["a", "b"]]), "X must be a list of graphs, got Graph"),
        (lambda: GraphCRF().fit(None, [["a", "b"]]), "X must be a list of graphs, got NoneType"),
        (lambda: GraphCRF().fit([Graph({"a": 1, "b": 1})], [{"a": ["x"], "b": ["y"]}]), r"y\[0\] must be a list"),
        (lambda: GraphCRF().fit([Graph(2)], [{"x", "y"}]), r"y\[0\] must be a list"),
        (lambda: GraphCRF().fit([Graph(1)], [["a"]], ["heavy"]), "sample_weight needs 1 numbers"),
        (lambda: GraphCRF(directed="next").fit([Graph(1)], [["a"]]), "`directed` must be True, False or a list"),
        (lambda: GraphCRF(directed=None).fit([Graph(1)], [["a"]]), "`directed` must be True, False or a list"),
        (lambda: GraphCRF(n_jobs="all").fit([Graph(1)], [["a"]]), "`n_jobs` must be positive"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    """With what was expected, and no error of another library."""
    with pytest.raises(InputError, match=message):
        given()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, _: m.predict([Graph(np.ones((3, 3)), EDGES)]), "'node' has 3 features, others have 2"),
        (lambda m, _: m.predict([Graph([{"w": "a"}] * 3, EDGES)]), "Example 0: features of 'node' are a list"),
        (lambda m, x: m.predict(x), "X must be a list of graphs, got Graph"),
        (lambda m, x: m.predict_kbest([x], 0), "`k` must be a positive integer"),
        (lambda m, x: m.sample([x], -1), "`n` must be a positive integer"),
        (lambda m, x: m.score([x], [["p"] * 3], [1.0, 2.0]), "sample_weight needs 1 finite numbers"),
        (lambda m, x: m.score([x], [[None] * 3]), "at least one node with a known label"),
        (lambda m, x: m.predict([Graph(x.nodes, EDGES, allowed=[{"a": 1}, None, None])]), "`allowed` has {'a': 1}"),
    ],
)  # fmt: skip
def test_what_a_model_cannot_take_is_refused(model, call, message):
    """Features of another width or form than in training say nothing that it could know."""
    with pytest.raises(InputError, match=message):
        call(model, arrays()[0][0])


def test_a_model_of_lists_takes_no_arrays():
    """Columns have numbers, attributes have names."""
    crf = GraphCRF().fit([Graph([{"w": "a"}, {"w": "b"}], [(0, 1)])], [["A", "B"]])
    with pytest.raises(InputError, match="Example 0: features of 'node' are an array, in training a list"):
        crf.predict([Graph(np.ones((2, 1)), [(0, 1)])])


def test_unscaled_arrays_are_as_they_are_after_a_file_too(model, tmp_path):
    """The file knows their width."""
    model.save(tmp_path / "m")
    again, (X, _) = load(tmp_path / "m"), arrays(seed=1)
    assert again.predict_marginals(X) == model.predict_marginals(X)
    with pytest.raises(InputError, match="others have 2"):
        again.predict([Graph(np.ones((1, 1)))])


def test_other_containers_say_the_same():
    """Tables of pandas, sparse matrices of other formats, edges from a generator."""
    X, y = arrays()
    types = ["u", "v", "u"]
    plain = GraphCRF(scale=False).fit([Graph(x.nodes, EDGES, node_type=types) for x in X], y).predict_marginals
    expected = plain([Graph(x.nodes, EDGES, node_type=types) for x in X])
    for wrap in (lambda a: pd.DataFrame(a, columns=["s", "t"]), sp.coo_matrix, sp.csc_matrix):
        graphs = [Graph(wrap(x.nodes), (edge for edge in EDGES), node_type=types) for x in X]
        found = GraphCRF(scale=False).fit(graphs, y).predict_marginals(graphs)
        for ours, theirs in zip(found, expected, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                assert a == pytest.approx(b, abs=1e-6)
    assert Graph({}).blocks() == []


def test_labels_that_are_not_known_do_not_count(model):
    """The score is that of the nodes with one label."""
    X, y = arrays()
    (found,) = model.predict(X[:1])
    wrong = "q" if found[2] == "p" else "p"
    assert model.score(X[:1], [[found[0], None, wrong]]) == 0.5
    assert model.score(X[:1], [[found[0], {"p", "q"}, found[2]]]) == 1.0
    assert y[0][0] in ("p", "q")


def test_bounds_leave_out_graphs_without_nodes(model):
    """As training does."""
    X, y = arrays()
    whole = model.bound(X[:3], y[:3]).frontier
    for at in (0, 1, 3):
        found = model.bound([*X[:at], Graph(0), *X[at:3]], [*y[:at], [], *y[at:3]]).frontier
        assert (found.risk, found.additive(0.5)) == (whole.risk, whole.additive(0.5))


def test_tables_of_edges_follow_the_edge_as_it_was_given():
    """Without direction an edge between two types is kept one way round; its table is shown the other way if asked."""
    y = [["a", "x"], ["b", "z"], ["a", "z"], ["b", "z"]]
    there = GraphCRF(directed=False).fit([Graph(2, [(0, 1)], node_type=["k", "l"])] * 4, y)
    (table,) = there.predict_edge_marginals([Graph(2, [(0, 1)], node_type=["k", "l"])])[0]
    (turned,) = there.predict_edge_marginals([Graph(2, [(1, 0)], node_type=["k", "l"])])[0]
    np.testing.assert_allclose(turned, table.T, atol=1e-12)
    every = there.predict_kbest([Graph(2, [(1, 0)], node_type=["k", "l"])], 4)[0]
    best = {tuple(labels): p for labels, p in every}
    for (i, a), (j, b) in itertools.product(enumerate("ab"), enumerate("xz")):
        assert table[i, j] == pytest.approx(best[a, b], abs=1e-9)


def test_losses_of_edges_either_way_round():
    """A cost of (b, a) is one of the edge (a, b); without direction between equal types it is refused, always."""
    X, y = [Graph(2, [(1, 0)], node_type=["k", "l"])] * 3, [["a", "x"], ["b", "z"], ["a", "z"]]

    def cost(nodes):
        def loss(_, labels):
            names = {"k": "ab"[labels[0] == "a"], "l": "xz"[labels[1] == "x"]}
            yield nodes, {tuple(names["kl"[v]] for v in nodes): 1.5}

        return loss

    values = [
        GraphCRF(directed=directed, loss=cost(nodes), tol=1e-6).fit(X, y).objective_
        for directed in (True, False)
        for nodes in ((0, 1), (1, 0))
    ]
    assert values == pytest.approx([values[0]] * 4, rel=1e-5)
    pair = FactorGraph((2, 2), (Factor((0,)), Factor((1,)), Factor((0, 1), "pair", (("p", 1.0),))))
    with pytest.raises(InputError, match="Costs of pairs need directed edges"):
        GraphCRF(directed=False, loss=lambda _, labels: [((0, 1), {(1 - labels[0], 1 - labels[1]): 1.0})]).fit(
            [pair] * 2, [[0, 1], [1, 1]]
        )
    with pytest.raises(InputError, match=r"cost for 'a' at nodes \(1, 0\): one label each"):
        GraphCRF(loss=lambda *_: [((1, 0), {"a": 1.0})]).fit(X, y)
