"""Graphs built from pictures, sentences and graphs of other libraries: what is in them, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from vcrf import Graph
from vcrf.errors import InputError
from vcrf.graphs import (
    coupled_chains,
    from_grid,
    from_networkx,
    from_pystruct,
    from_segments,
    segment_labels,
    skip_chain_graph,
)

# ------------------------------------------------------------------------------------ networkx


@pytest.fixture
def networkx():
    """The library, where it is installed."""
    return pytest.importorskip("networkx")


def people(networkx):
    """Three people in a row, one without a label."""
    graph = networkx.Graph()
    graph.add_node("ann", age=30.0, vector=[1.0, 2.0], label="A", kind="person")
    graph.add_node("bob", age=20.0, vector=[3.0, 4.0], kind="person")
    graph.add_node("rex", age=5.0, vector=[5.0, 6.0], label="B", kind="dog")
    graph.add_edge("ann", "bob", years=3, since="school")
    graph.add_edge("rex", "bob", years=1, since="birth")
    return graph


def test_networkx_keeps_the_order_of_nodes_and_edges(networkx) -> None:
    """Vectors become rows, names a dict, labels that are absent None."""
    given_graph = people(networkx)
    graph, labels = from_networkx(
        given_graph, features="vector", edge_features=["since"], label="label", node_type="kind", edge_type="since"
    )
    np.testing.assert_array_equal(graph.nodes, [[1, 2], [3, 4], [5, 6]])
    assert labels == ["A", None, "B"]
    number = {name: v for v, name in enumerate(given_graph)}
    assert [tuple(edge) for edge in graph.edges.tolist()] == [(number[a], number[b]) for a, b in given_graph.edges]
    assert graph.edge_features == [{"since": data["since"]} for _, _, data in given_graph.edges(data=True)]
    assert (graph.node_type, graph.edge_type) == (["person", "person", "dog"], ["school", "birth"])


def test_networkx_features_by_a_function_and_of_numbers(networkx) -> None:
    """A function sees the node and its attributes; one number is a vector of length 1."""
    graph = from_networkx(people(networkx), features=lambda name, data: {"name": name, "age": data["age"]})
    assert graph.nodes[1] == {"name": "bob", "age": 20.0}
    assert from_networkx(people(networkx), features="age").nodes.shape == (3, 1)
    assert from_networkx(people(networkx)).n_nodes == 3


def test_networkx_directions_and_places(networkx) -> None:
    """A DiGraph's edges keep their direction; places come from `pos`."""
    graph = networkx.DiGraph([(2, 1), (1, 0)])
    networkx.set_node_attributes(graph, {v: (v, 1.0) for v in graph}, "pos")
    built = from_networkx(graph)
    assert built.edges.tolist() == [[0, 1], [1, 2]]  # node 0 is the first that was added: 2
    np.testing.assert_array_equal(built.places, [[2, 1], [1, 1], [0, 1]])


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        (
            {"ann": {"vector": [1.0]}},
            {"features": "vector"},
            r"Node 'bob': `features` must be a vector .*\(2,\) beside",
        ),
        ({"rex": {"vector": {"a": 1}}}, {"features": "vector"}, "Node 'rex': `features` must be a vector"),
        ({}, {"features": "height"}, "Node 'ann' has no attribute 'height'; it has 'age', 'vector'"),
        ({}, {"features": ["age", "height"]}, "Node 'ann' has no attribute 'height'"),
        ({}, {"edge_features": "weight"}, r"Edge \('ann', 'bob'\) has no attribute 'weight'"),
        ({}, {"label": "colour"}, "No node has a label: expected an attribute 'colour'"),
    ],
)
def test_networkx_that_is_wrong_names_the_node(networkx, changes, options, message: str) -> None:
    """Features of other lengths, missing attributes, no labels at all."""
    graph = people(networkx)
    for name, data in changes.items():
        graph.nodes[name].update(data)
    with pytest.raises(InputError, match=message):
        from_networkx(graph, **options)


def test_networkx_refuses_loops_and_other_things(networkx) -> None:
    """A loop is named by its node."""
    with pytest.raises(InputError, match="joins node 'a' with itself"):
        from_networkx(networkx.Graph([("a", "a")]))
    with pytest.raises(InputError, match="needs a networkx graph, got list"):
        from_networkx([(0, 1)])


# ------------------------------------------------------------------------------------ pystruct


def test_pystruct_tuples() -> None:
    """Arrays stay; sparse ones too."""
    graph = from_pystruct((np.eye(3), [[0, 1], [1, 2]], np.ones((2, 4))))
    assert isinstance(graph, Graph)
    assert (graph.n_nodes, graph.edge_features.shape) == (3, (2, 4))
    assert from_pystruct((sp.eye(3, format="csr"), np.zeros((0, 2), int))).n_nodes == 3


@pytest.mark.parametrize(
    ("given_tuple", "message"),
    [
        ((np.eye(3),), r"\(nodes, edges\) or .* got 1 of them"),
        (np.eye(3), "got ndarray"),
        ((np.ones(3), []), "`nodes` must have two dimensions"),
        (([[1.0], [1.0, 2.0]], []), "`nodes` must be an array of numbers whose rows have one length"),
        ((np.eye(3), [[0, 3]]), "Edge 0 joins nodes 0 and 3; the graph has nodes 0 to 2"),
        ((np.eye(3), [[0, 1]], np.ones((2, 4))), "`edge_features` has 2 entries for 1 edges"),
        (([np.eye(3), np.eye(2)], []), "NodeTypeEdgeFeatureGraphCRF"),
    ],
)
def test_pystruct_tuples_that_are_wrong(given_tuple, message: str) -> None:
    """What was expected, and where."""
    with pytest.raises(InputError, match=message):
        from_pystruct(given_tuple)


# ------------------------------------------------------------------------------------ pictures


@given(st.integers(1, 5), st.integers(1, 5), st.sampled_from([4, 8]))
@settings(max_examples=40)
def test_grid_edges_equal_the_definition(n_rows: int, n_columns: int, neighbours: int) -> None:
    """Cells whose rows and columns differ by at most 1, each pair once, the type after the step."""
    graph = from_grid(np.zeros((n_rows, n_columns)), neighbours)
    cells = list(itertools.product(range(n_rows), range(n_columns)))
    names = {(0, 1): "right", (1, 0): "down", (1, 1): "down_right", (1, -1): "down_left"}
    expected = {
        (a, b): names[y[0] - x[0], y[1] - x[1]]
        for (a, x), (b, y) in itertools.permutations(enumerate(cells), 2)
        if (y[0] - x[0], y[1] - x[1]) in list(names)[: neighbours // 2]
    }
    found = dict(zip(map(tuple, graph.edges.tolist()), graph.edge_type, strict=True))
    assert found == expected
    assert len(graph.edges) == len(expected)


def test_grid_features() -> None:
    """Row by row; edges have both ends, or their distance."""
    image = np.arange(12.0).reshape(2, 3, 2)
    ends, apart = (from_grid(image, edge_features=kind) for kind in ("ends", "difference"))
    np.testing.assert_array_equal(ends.nodes, image.reshape(6, 2))
    np.testing.assert_array_equal(ends.edge_features[0], [0, 1, 2, 3])
    np.testing.assert_array_equal(apart.edge_features[0], [2, 2])
    np.testing.assert_array_equal(ends.places[4], [1, -1])


@pytest.mark.parametrize(
    ("image", "options", "message"),
    [
        (np.zeros(3), {}, r"got shape \(3,\)"),
        (np.zeros((2, 0)), {}, "none of them 0"),
        ([[1.0], [1.0, 2.0]], {}, "rows of one length"),
        (np.zeros((2, 2)), {"neighbours": 6}, "`neighbours` must be 4 or 8, got 6"),
        (np.zeros((2, 2)), {"edge_features": "sum"}, "None, 'ends' or 'difference', got 'sum'"),
    ],
)
def test_grids_that_are_wrong(image, options, message: str) -> None:
    """Named with what was expected."""
    with pytest.raises(InputError, match=message):
        from_grid(image, **options)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_segments_equal_the_definition(n_rows: int, n_columns: int, seed: int) -> None:
    """Means, sizes and boundaries by loops over cells."""
    rng = np.random.default_rng(seed)
    segments, image = rng.integers(-3, 4, (n_rows, n_columns)), rng.random((n_rows, n_columns, 2))
    graph = from_segments(segments, image)
    ids = sorted(set(segments.ravel().tolist()))
    assert graph.n_nodes == len(ids)
    lengths: dict[tuple[int, int], int] = {}
    for r, c in itertools.product(range(n_rows), range(n_columns)):
        for a, b in ((r + 1, c), (r, c + 1)):
            if a < n_rows and b < n_columns and segments[r, c] != segments[a, b]:
                pair = tuple(sorted((ids.index(segments[r, c]), ids.index(segments[a, b]))))
                lengths[pair] = lengths.get(pair, 0) + 1
    assert [tuple(edge) for edge in graph.edges.tolist()] == sorted(lengths)
    for v, one in enumerate(ids):
        mine = segments == one
        rows, columns = np.nonzero(mine)
        middle = [(rows.mean() + 0.5) / n_rows, (columns.mean() + 0.5) / n_columns]
        np.testing.assert_allclose(graph.nodes[v], [*image[mine].mean(axis=0), mine.mean(), *middle])
    for e, (a, b) in enumerate(graph.edges.tolist()):
        apart = np.abs(image[segments == ids[a]].mean(axis=0) - image[segments == ids[b]].mean(axis=0))
        np.testing.assert_allclose(graph.edge_features[e], [lengths[a, b], *apart])


def test_segments_labels_and_errors() -> None:
    """The most frequent label; shapes that differ."""
    assert segment_labels([[4, 4, 4], [9, 9, 9]], [[1, 2, 2], [3, 3, 1]]) == [2, 3]
    with pytest.raises(InputError, match=r"`segments` is \(1, 2\) and `image` \(2, 2\)"):
        from_segments([[0, 1]], np.zeros((2, 2)))
    with pytest.raises(InputError, match="must be whole numbers"):
        from_segments([[0.5, 1.0]], np.zeros((1, 2)))
    with pytest.raises(InputError, match="`labels`"):
        segment_labels([[0, 1]], [[1]])


# ------------------------------------------------------------------------------------ sentences


def edges_of(graph: Graph, kind: str) -> list[tuple[int, int]]:
    """The edges of a type."""
    return [tuple(edge) for edge, t in zip(graph.edges.tolist(), graph.edge_type, strict=True) if t == kind]


def test_skip_chains_join_equal_words() -> None:
    """Capitalised and long ones, all pairs or the nearest, neighbours left to the chain."""
    words = ["Bo", "Bo", "saw", "Bo", "saw", "mountains", "x", "mountains"]
    features = [{"word": word} for word in words]
    graph = skip_chain_graph(features, words)
    assert edges_of(graph, "next") == [(t, t + 1) for t in range(7)]
    assert edges_of(graph, "same") == [(0, 3), (1, 3), (5, 7)]
    assert edges_of(skip_chain_graph(features, words, pairs="nearest"), "same") == [(1, 3), (5, 7)]
    assert edges_of(skip_chain_graph(features, words, lambda word: word == "saw"), "same") == [(2, 4)]
    assert skip_chain_graph([], []).n_nodes == 0


def test_coupled_chains_have_two_types() -> None:
    """Both chains, and an edge a token."""
    graph = coupled_chains([{"a": 1}] * 3, np.eye(3), names=("upos", "feats"))
    assert [t for t, _, _ in graph.blocks()] == ["upos", "feats"]
    assert edges_of(graph, "next") == [(0, 1), (1, 2), (3, 4), (4, 5)]
    assert edges_of(graph, "both") == [(0, 3), (1, 4), (2, 5)]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: skip_chain_graph([{}], ["a", "b"]), "features of 1 tokens and 2 words"),
        (lambda: skip_chain_graph([{}], "a"), "`words` must be a list of words, got one str"),
        (lambda: skip_chain_graph([{}], ["a"], pairs="some"), "'all' or 'nearest', got 'some'"),
        (lambda: coupled_chains([{}], [{}, {}]), "features of 2 tokens and 1 tokens of the first chain"),
        (lambda: coupled_chains([{}], names=("a", "a")), "two different types"),
    ],
)
def test_sentences_that_are_wrong(build, message: str) -> None:
    """Named with what was expected."""
    with pytest.raises(InputError, match=message):
        build()


# ------------------------------------------------------------------------------------ graphs that are wrong


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Graph(2, [(0, 2)]), "Edge 0 joins nodes 0 and 2; the graph has nodes 0 to 1"),
        (lambda: Graph(2, [(1, 1)]), "Edge 0 joins node 1 with itself"),
        (lambda: Graph(2, [(0, 1)], edge_type=["a b"]), "A type must be a name without blanks, got 'a b'"),
        (lambda: Graph(2, node_type=["a", 3]), "A type must be a name without blanks, got 3"),
        (lambda: Graph({"a word": 2}), "without blanks, got 'a word'"),
        (lambda: Graph(2, [(0.0, 1.0)]), "pairs of whole numbers"),
        (lambda: Graph(2, node_weight=[1.0, -1.0]), "not negative"),
    ],
)
def test_graphs_that_are_wrong_are_refused_where_they_are_built(build, message: str) -> None:
    """Not only when they are trained."""
    with pytest.raises(InputError, match=message):
        build()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([(np.eye(2), [(0, 1)]), (np.eye(2), [(0, 2)])], [[0, 1]] * 2, "Example 1: Edge 0 joins nodes 0 and 2"),
        ([Graph(np.eye(2)), Graph(np.ones((2, 3)))], [[0, 1]] * 2, "Example 1: 'node' has 3 features, others have 2"),
        ([Graph(np.eye(2)), Graph(np.eye(2))], [[0, 1], [0]], "Example 1 has 2 nodes and 1 labels"),
        ([Graph(np.eye(2)), Graph([{"a": 1}] * 2)], [[0, 1]] * 2, "Example 0: .* array here and a list in other"),
        (
            [Graph(np.eye(2)), Graph(np.eye(2))],
            [[0, 1], [0, 2.5]],
            "Example 1, node 1: a label must be a str or an int",
        ),
        ([Graph(np.eye(2)), "graph"], [[0, 1]] * 2, "Example 1 is a str: expected a Graph"),
    ],
)
def test_training_names_the_example(X, y, message: str) -> None:
    """Edges, features and labels that do not fit."""
    from vcrf import GraphCRF

    with pytest.raises(InputError, match=message):
        GraphCRF().fit(X, y)
