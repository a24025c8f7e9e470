"""GraphCRF: special cases that must equal others, kinds of input, losses, files, explanations, bounds, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from hostile import Parts
from vcrf import VCRF, Graph, GraphCRF, load
from vcrf.complexity import FamilyCounts, dense_complexity, graph_counts, l1_bound, moment_bound, rademacher
from vcrf.complexity.closed import lp_bound
from vcrf.errors import BudgetError, InputError, NotFittedError
from vcrf.estimators import file as estimator_file
from vcrf.estimators.graph_data import read_sample, read_training
from vcrf.families import BIAS, Family, NamedFeature
from vcrf.graphs import Factor, FactorGraph, chain, grid
from vcrf.losses import EditLoss, WeightedHammingLoss
from vcrf.solvers.result import Status

COLOURS = ["red", "green", "blue"]


def chains(n=14, seed=0, most=5):
    """Sentences of noisy colours as graphs and as dicts, and labels that prefer to repeat."""
    rng = np.random.default_rng(seed)
    X, dicts, y = [], [], []
    for _ in range(n):
        length = int(rng.integers(1, most + 1))
        labels = [int(rng.integers(3))]
        while len(labels) < length:
            labels.append(labels[-1] if rng.random() < 0.7 else int(rng.integers(3)))
        seen = [label if rng.random() < 0.7 else int(rng.integers(3)) for label in labels]
        tokens = [{"w": COLOURS[s], "size": float(rng.integers(1, 4))} for s in seen]
        X.append(Graph(tokens, [(t, t + 1) for t in range(length - 1)]))
        dicts.append(tokens)
        y.append([COLOURS[label] for label in labels])
    return X, dicts, y


def grids(n=6, rows=4, columns=5, seed=0):
    """Stripes with noise."""
    rng = np.random.default_rng(seed)
    cells = np.arange(rows * columns).reshape(rows, columns)
    right, down = np.c_[cells[:, :-1].ravel(), cells[:, 1:].ravel()], np.c_[cells[:-1].ravel(), cells[1:].ravel()]
    X, y = [], []
    for _ in range(n):
        labels = (np.add.outer(np.arange(rows), np.arange(columns)) + rng.integers(3)) % 3
        features = np.eye(3)[labels.ravel()] + 0.8 * rng.normal(size=(rows * columns, 3))
        X.append(Graph(features, np.r_[right, down], edge_type=["right"] * len(right) + ["down"] * len(down)))
        y.append(labels.ravel().tolist())
    return X, y


# ---- special cases


@pytest.mark.parametrize("norm", ["l2", "elastic", "l1", "group"])
def test_a_chain_is_the_sequence_case(norm):
    """The optimum of `VCRF` with the same families, loss and strengths, to 1e-8."""
    X, dicts, y = chains()
    tol = 1e-7 if norm == "group" else 1e-9
    graphs = GraphCRF(norm=norm, l1_ratio=0.5, base_strength=0.02, tol=tol, loss="hamming").fit(X, y)
    families = [
        Family("w", (NamedFeature("w"),)), Family("size", (NamedFeature("size"),)), Family("bias", (BIAS,)),
        Family("pairs", (BIAS,), 2),
    ]  # fmt: skip
    chain_case = VCRF(
        families=families, norm=norm, l1_ratio=0.5, base_strength=0.02, loss="hamming", temperature=1.0,
        count_power=0.0, factors=False, tol=tol,
    ).fit(dicts, y)  # fmt: skip
    assert graphs.objective_ == pytest.approx(chain_case.objective_, rel=1e-8 if norm != "group" else 3e-7)
    assert graphs.predict(X) == chain_case.predict(dicts)
    if norm == "l2":
        for ours, theirs in zip(graphs.predict_marginals(X), chain_case.predict_marginals(dicts), strict=True):
            for a, b in zip(ours, theirs, strict=True):
                assert a == pytest.approx(b, abs=1e-4)


def test_single_nodes_are_logistic_regression():
    """scikit-learn's multinomial regression, with the bias as one more column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = np.argmax(X @ rng.normal(size=(4, 3)) + rng.gumbel(size=(80, 3)), axis=1)
    found = GraphCRF(loss=None, scale=False, norm="l2", base_strength=0.02, tol=1e-10)
    found.fit([Graph(row[None, :]) for row in X], y[:, None])
    wide = np.c_[X, np.ones(80)]
    peer = LogisticRegression(C=1.0 / (80 * 0.02), fit_intercept=False, tol=1e-12, max_iter=10_000).fit(wide, y)
    scores = wide @ peer.coef_.T
    value = np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(80), y]) + 0.01 * (peer.coef_**2).sum()
    assert found.objective_ == pytest.approx(value, rel=1e-9)
    assert [labels[0] for labels in found.predict([Graph(row[None, :]) for row in X])] == peer.predict(wide).tolist()


def test_factor_graphs_with_factors_of_three():
    """`FactorGraph` in, values of the variables out; a triple that forbids nothing but is learnt."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for i in range(40):
        a, b = (int(v) for v in rng.integers(0, 2, 2))
        labels = [a, b, a ^ b]
        seen = [v if i >= 30 or rng.random() < 0.9 else 1 - v for v in labels[:2]]
        factors = [Factor((v,), "node", ((f"saw {v} {s}", 1.0),)) for v, s in enumerate(seen)]
        X.append(FactorGraph((2, 2, 2), (*factors, Factor((0, 1, 2), "xor", (("xor", 1.0),)))))
        y.append(labels)
    model = GraphCRF().fit(X[:30], y[:30])
    assert model.score(X[30:], y[30:]) == 1.0
    assert all(labels[2] == labels[0] ^ labels[1] for labels in model.predict(X[30:]))
    table = model.model_.table("xor xor")
    assert table.shape == (2, 2, 2)
    assert table[0, 1, 1] > table[0, 1, 0]


# ---- relaxed


def test_relaxed_training_says_so_and_is_certified():
    """Strips of width 1 and 2 beside exact sums: objectives fall, and so does what is claimed."""
    X, y = grids()
    exact = GraphCRF(base_strength=0.02).fit(X, y)
    assert not exact.is_relaxed_
    assert exact.exact_gap_ == exact.gap_ <= 1e-3 * exact.objective_
    found = []
    for width in (1, 2):
        relaxed = GraphCRF(base_strength=0.02, max_table=81, block_width=width, tol=1e-2).fit(X, y)
        assert relaxed.is_relaxed_
        assert relaxed.exact_gap_ == np.inf
        assert relaxed.exact_fraction_ == 0.0
        assert relaxed.gap_ <= 1e-2 * relaxed.objective_
        assert relaxed.objective_ >= exact.objective_ - exact.gap_
        assert relaxed.score(X, y) > 0.95
        for decoded in relaxed.certify(X):
            assert decoded.score <= decoded.bound
        found.append(relaxed.objective_)
    assert found[1] < found[0]
    with pytest.raises(BudgetError, match="max_table"):
        relaxed.sample(X[:1])
    with pytest.raises(InputError, match="exact sums"):
        GraphCRF(norm="group", max_table=81).fit(X, y)
    with pytest.raises(InputError, match="exact sums"):
        GraphCRF(surrogate="exponential", max_table=81).fit(X, y)


def test_proven_labellings_are_the_best_ones():
    """Relaxed decoding that claims a proof agrees with exact decoding."""
    X, y = grids(n=8)
    exact = GraphCRF(base_strength=0.05).fit(X[:4], y[:4])
    relaxed = GraphCRF(base_strength=0.05, max_table=30, block_width=1)
    relaxed.model_ = exact.model_
    n_proven = 0
    for ours, best in zip(relaxed.certify(X[4:]), exact.certify(X[4:]), strict=True):
        assert ours.score <= best.score + 1e-9
        assert ours.bound >= best.score - 1e-9
        n_proven += ours.is_proven
        assert not ours.is_proven or ours.score == pytest.approx(best.score)
    assert n_proven > 0


# ---- surrogates and losses


@pytest.mark.parametrize("surrogate", ["crf", "m3n", "structboost", "exponential"])
def test_every_surrogate_learns(surrogate):
    """On chains with noise, certified."""
    X, _, y = chains(n=30)
    found = GraphCRF(surrogate=surrogate, base_strength=0.02, tol=1e-2).fit(X, y)
    assert found.status_ is Status.CONVERGED
    assert found.gap_ <= 1e-2 * found.objective_
    assert found.score(X, y) > 0.6


def test_losses():
    """Weights of nodes, costs of labels, functions of parts; what needs a sequence is refused by name."""
    X, _, y = chains(n=8)
    plain = GraphCRF(loss="hamming:normalised=False", base_strength=0.05, tol=1e-8).fit(X, y)
    weighted = [Graph(x.nodes, x.edges, node_weight=[2.0] * x.n_nodes) for x in X]
    double = GraphCRF(loss="hamming:normalised=False", base_strength=0.05, tol=1e-8).fit(weighted, y)
    cost2 = GraphCRF(loss="hamming:normalised=False,cost=2", base_strength=0.05, tol=1e-8).fit(X, y)
    assert double.objective_ == pytest.approx(cost2.objective_, rel=1e-7)
    assert double.objective_ > plain.objective_
    matrix = GraphCRF(loss=WeightedHammingLoss(2.0 * (1 - np.eye(3)), normalised=False), base_strength=0.05, tol=1e-8)
    assert matrix.fit(X, y).objective_ == pytest.approx(cost2.objective_, rel=1e-7)

    def by_parts(_, labels):
        return [((v,), {c: 2.0 for c in COLOURS if c != label}) for v, label in enumerate(labels)]

    assert GraphCRF(loss=by_parts, base_strength=0.05, tol=1e-8).fit(X, y).objective_ == pytest.approx(
        cost2.objective_, rel=1e-7
    )

    def pairs(graph, labels):
        return [
            ((a, b), {(c, d): 1.0 for c in COLOURS for d in COLOURS if (c, d) != (labels[a], labels[b])})
            for a, b in graph.edges.tolist()
        ]

    assert GraphCRF(loss=pairs, base_strength=0.05).fit(X, y).status_ is Status.CONVERGED
    with pytest.raises(InputError, match=r"EditLoss is an automaton.*VCRF"):
        GraphCRF(loss=EditLoss()).fit(X, y)
    with pytest.raises(InputError, match="must be 0"):
        GraphCRF(loss=lambda _, labels: [((0,), {labels[0]: 1.0})]).fit(X, y)
    with pytest.raises(InputError, match="no node or edge joins"):
        GraphCRF(loss=lambda *_: [((0, 7), {})]).fit(X, y)


# ---- inputs


def test_kinds_of_input():
    """Arrays, sparse matrices, tuples, attribute lists and dicts of node types give what they should."""
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 2, 4).tolist() for _ in range(12)]
    arrays = [np.eye(2)[y] + 0.1 * rng.normal(size=(4, 2)) for y in labels]
    edges = [(0, 1), (1, 2), (2, 3)]
    dense = GraphCRF(scale=False).fit([(a, edges) for a in arrays], labels)
    sparse = GraphCRF(scale=False).fit([Graph(sp.csr_matrix(a), edges) for a in arrays], labels)
    assert dense.objective_ == pytest.approx(sparse.objective_, rel=1e-6)
    assert dense.predict([(arrays[0], np.array(edges))]) == [labels[0]]
    named = GraphCRF().fit([Graph([[f"bit={v}"] for v in y], edges) for y in labels], labels)
    assert named.score([Graph([[f"bit={v}"] for v in y], edges) for y in labels], labels) == 1.0
    with_edges = GraphCRF().fit([(a, edges, np.ones((3, 1))) for a in arrays], labels)
    assert any("edge x" in family.name for family in with_edges.families_)


def test_node_types_have_their_own_labels_and_open_labels_are_summed():
    """Words and topics; None and sets; a type without labels in a fold is refused, a missing label is not."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(20):
        topic = int(rng.integers(2))
        words = [{"w": f"{topic}{rng.integers(3)}"} for _ in range(3)]
        X.append(Graph({"topic": 1, "word": words}, [(0, 1), (0, 2), (0, 3)]))
        y.append([["sport", "art"][topic], *[f"T{topic}"] * 3])
    model = GraphCRF().fit(X, y)
    assert model.classes_ == {"topic": ["art", "sport"], "word": ["T0", "T1"]}
    assert model.score(X, y) == 1.0
    open_y = [
        [None if i % 3 == 0 else labels[0], {"T0", "T1"} if i % 4 == 0 else labels[1], *labels[2:]]
        for i, labels in enumerate(y)
    ]
    partial = GraphCRF(tol=1e-3).fit(X, open_y)
    assert partial.status_ is Status.STATIONARY
    assert partial.gap_ == np.inf
    assert partial.score(X, y) > 0.9
    with pytest.raises(InputError, match="No node of type 'topic' has a label"):
        GraphCRF().fit(X, [[None, *labels[1:]] for labels in y])
    forced = [Graph(x.nodes, x.edges, allowed=[None, {"T0"}, None, None]) for x in X]
    assert all(labels[1] == "T0" for labels in model.predict(forced))
    with pytest.raises(InputError, match="Example 0, node 1: `allowed` has no label"):
        model.predict([Graph(X[0].nodes, X[0].edges, allowed=[None, {"nonsense"}, None, None])])


def test_empty_and_disconnected_graphs():
    """A graph without nodes gets no labels; single nodes and pieces are labelled as alone."""
    X, _, y = chains(n=10)
    model = GraphCRF().fit([*X, Graph([], [])], [*y, []])
    assert model.predict([Graph([], []), X[0]]) == [[], model.predict([X[0]])[0]]
    first, second = X[0], X[1]
    joined = Graph(first.nodes + second.nodes, [*first.edges.tolist(), *(second.edges + first.n_nodes).tolist()])
    assert model.predict([joined]) == [model.predict([first])[0] + model.predict([second])[0]]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (Graph([{"a": 1}], []), [["A", "B"]], "Example 0 has 1 nodes and 2 labels"),
        (([{"a": 1}], [(0, 3)]), [["A"]], r"Example 0: Edge 0 joins nodes 0 and 3; the graph has nodes 0 to 0"),
        (([{"a": 1}], [(0, 0)]), [["A"]], "with itself"),
        (([{"a": 1}], [(0, 1, 2)]), [["A"]], "pairs of whole numbers"),
        ("text", [["A"]], "Example 0 is a str"),
        (Graph([{"a": 1}], []), [[1.5]], "Example 0, node 0: a label must be a str or an int"),
        (Graph([{"a": 1}], []), [[set()]], "empty set"),
        (Graph([{"a": float("nan")}], []), [["A"]], "must be finite"),
        (Graph(np.array([[np.inf]]), []), [["A"]], "Example 0: features of 'node' must be finite"),
    ],
)  # fmt: skip
def test_bad_graphs_are_named(x, y, message):
    """The example, what is wrong with it, and what was expected."""
    with pytest.raises(InputError, match=message):
        GraphCRF().fit([x], y)


def test_features_of_different_lengths_and_unknown_kinds():
    """In training and in prediction."""
    with pytest.raises(InputError, match="Example 1: 'node' has 2 features, others have 3"):
        GraphCRF().fit([Graph(np.ones((1, 3))), Graph(np.ones((1, 2)))], [["A"], ["B"]])
    model = GraphCRF().fit([Graph(np.ones((1, 3))), Graph(np.zeros((1, 3)))], [["A"], ["B"]])
    with pytest.raises(InputError, match="Example 0: 'node' has 2 features, others have 3"):
        model.predict([Graph(np.ones((1, 2)))])
    with pytest.raises(InputError, match="'edge' on node and node; the model was trained on: node"):
        model.predict([Graph(np.ones((2, 3)), [(0, 1)])])
    with pytest.raises(NotFittedError):
        GraphCRF().predict([])


# ---- the rest of the interface


def test_files_clones_and_searches(tmp_path):
    """Saved and loaded it predicts the same; the same bytes twice; scikit-learn's tools take it."""
    X, y = grids(n=4, rows=2, columns=3)
    model = GraphCRF(directed=["right"]).fit(X, y)
    for name in ("a", "b"):
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    again = load(tmp_path / "a")
    assert again.predict_marginals(X) == model.predict_marginals(X)
    assert (again.gap_, again.is_relaxed_, again.classes_, again.directed) == (
        model.gap_, model.is_relaxed_, model.classes_, ("right",),
    )  # fmt: skip
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(GraphCRF(), {"base_strength": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_["base_strength"] in (0.1, 1.0)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("max_table", 2, "`max_table` is 2, and a table of this model's factors has 4 entries"),
        ("max_table", "large", "`max_table`"),
        ("n_jobs", "all", "`n_jobs` must be positive, or None or -1"),
    ],
)
def test_parameters_with_which_no_graph_can_be_labelled_are_refused_when_loaded(name, value, message):
    """From a file whose checksums are right."""
    model = GraphCRF().fit([Graph(np.eye(2), [(0, 1)])], [["A", "B"]])
    parts = Parts(estimator_file.to_bytes(model))
    parts.document["parameters"][name] = value
    with pytest.raises(InputError, match=message):
        estimator_file.from_buffer(parts.assemble(), "m")


def test_a_forged_key_does_not_bring_weights_of_edges_to_nodes():
    """They have more assignments: scores would be written past the end of their array."""
    data = [Graph([{"w": a}, {"w": b}, {"w": "z"}], [(0, 1), (1, 2)]) for a, b in ("xx", "xy", "yx")]
    model = GraphCRF(base_strength=1e-3).fit(data, [["A", "A", "B"], ["A", "B", "B"], ["B", "A", "A"]])
    parts = Parts(estimator_file.to_bytes(model))
    names = list(model.model_.names)
    i, j = names.index("node bias"), names.index("edge bias")
    parts.tensors["keys"][[i, j]] = parts.tensors["keys"][[j, i]]
    forged = estimator_file.from_buffer(parts.assemble(), "m")
    assert np.any(forged.model_.weights[forged.model_.lengths == 2])
    node, edge = Graph([{}], []), Graph([{}, {}], [(0, 1)])
    assert np.all(forged._scored([node]).scores == 0.0)
    assert np.all(forged._scored([edge]).scores == 0.0)


def test_explanations_sum_to_the_difference():
    """Of the best labelling and of the best one with another label at the node."""
    X, _, y = chains(n=12)
    model = GraphCRF(base_strength=0.02).fit(X, y)
    x = max(X, key=lambda graph: graph.n_nodes)
    found = model.explain(x)
    labels = model.predict([x])[0]
    best = model.certify([x])[0].score
    assert [each.label for each in found] == labels
    for v, each in enumerate(found):
        others = [set(COLOURS) - {labels[v]} if u == v else None for u in range(x.n_nodes)]
        second = model.certify([Graph(x.nodes, x.edges, allowed=others)])[0]
        assert each.difference == pytest.approx(best - second.score, abs=1e-9)
        assert each.runner_up == second.labels[v]
        assert sum(c.value for c in each.contributions) == pytest.approx(each.difference)


def test_posteriors_k_best_and_draws_fit_each_other():
    """Probabilities of all labellings sum to one, and edges have the marginals of their nodes."""
    X, _, y = chains(n=10)
    model = GraphCRF(base_strength=0.02).fit(X, y)
    x = next(graph for graph in X if graph.n_nodes == 3)
    every = model.predict_kbest([x], 27)[0]
    assert len(every) == 27
    assert sum(p for _, p in every) == pytest.approx(1.0)
    assert every[0][0] == model.predict([x])[0]
    (nodes,), (edges,) = model.predict_marginals([x]), model.predict_edge_marginals([x])
    np.testing.assert_allclose(edges[0].sum(axis=1), list(nodes[0].values()), atol=1e-9)
    np.testing.assert_allclose(edges[1].sum(axis=0), list(nodes[2].values()), atol=1e-9)
    assert model.sample([x], 3, 0) == model.sample([x], 3, 0)


def test_complexities_and_bounds():
    """Counts are those of the definition; bounds hold their order; every choice of complexities trains."""
    X, _, y = chains(n=10)
    model = GraphCRF(base_strength=0.05, complexity_strength=0.01).fit(X, y)
    report = model.bound(X, y)
    assert report.is_training_data
    assert all(bound.total > 0.0 for bound in report.bounds)
    assert report.frontier.additive(1.0) >= report.frontier.risk - 1e-12
    assert report.frontier.multiplicative(0.5) >= report.frontier.risk - 1e-12
    assert model.bound(X[:5], y[:5]).is_training_data is False
    for choice in ("general", "massart", "rademacher", "feature"):
        assert GraphCRF(complexities=choice, complexity_strength=0.01).fit(X[:4], y[:4]).status_ is Status.CONVERGED
    # Of the power that is paid.
    powers = GraphCRF(norm="lp", complexities="massart", complexity_strength=0.01).fit(X[:4], y[:4])
    problem = read_training(X[:4], y[:4], None, True, True, 200_000, 2).problem
    bounds = [lp_bound(counts, 1.5) if counts.n_features else 0.0 for counts in FamilyCounts(problem)]
    assert [facts.complexity for facts in powers.families_] == pytest.approx(bounds)


def test_the_complexity_of_a_tiny_sample_is_that_of_all_sign_vectors():
    """FamilyCounts of graphs beside the general counts, and the mean over all signs."""
    X, y = [Graph([{"a": 1}, {"b": 1}], [(0, 1)])], [["A", "B"]]
    model = GraphCRF().fit(X, y)
    problem = read_sample(X, y, model.model_, 10**6, 1).problem
    counts = FamilyCounts(problem, "joint").union()
    read = chain(2, 2).with_attributes(lambda _, f: ["bias", "ab"[f.scope[0]]] if len(f.scope) == 1 else ["pair"])
    general = graph_counts([read])
    assert counts.n_features == general.n_features
    for measure in (moment_bound, l1_bound):
        assert measure(counts) == pytest.approx(measure(general))
    from vcrf.complexity import dense_features

    exact = dense_complexity(dense_features([read]), draws=None)
    found = rademacher(counts, draws=4000)
    assert abs(found.value - exact) < 2 * found.half_width + 0.01 * exact
    assert exact <= moment_bound(counts)


def test_grids_of_the_factor_graph_builders_train_too():
    """`vcrf.graphs.grid` with attributes."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(6):
        labels = [int(v) for v in rng.integers(0, 2, 4)]
        seen = list(labels)
        X.append(
            grid(2, 2, 2).with_attributes(
                lambda _, factor, seen=seen: (
                    [f"saw {seen[factor.scope[0]]}"] if len(factor.scope) == 1 else [factor.kind]
                )
            )
        )
        y.append(labels)
    assert GraphCRF().fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("size", [1e3, 1e12, 1e20, 1e40])
def test_probabilities_sum_to_one_whatever_the_scores(size):
    """Scores beyond 1e15 leave nothing of a log sum's digits; what is said is still a probability."""
    X = [Graph([{"w": a}, {"w": b}, {"w": "z"}], [(0, 1), (1, 2)]) for a, b in ("xx", "xy", "yx")]
    crf = GraphCRF().fit(X, [["A", "A", "B"], ["A", "B", "B"], ["B", "A", "A"]])
    crf.model_.weights[:] *= size
    for graph in crf.predict_marginals(X):
        assert all(abs(sum(node.values()) - 1.0) < 1e-9 for node in graph)
    for tables in crf.predict_edge_marginals(X):
        assert all(abs(table.sum() - 1.0) < 1e-9 for table in tables)
    for found in crf.predict_kbest(X, 3):
        assert all(0.0 <= p <= 1.0 for _, p in found)
    assert all(0.0 <= each.probability <= 1.0 for each in crf.explain(X[0]))
