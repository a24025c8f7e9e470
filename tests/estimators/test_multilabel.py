"""MultiLabelCRF: equal to enumeration, to scikit-learn where labels are independent, and a plain classifier."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, mutual_info_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vcrf
from hostile import Parts
from vcrf import MultiLabelCRF
from vcrf.errors import InputError, NotFittedError
from vcrf.estimators import file as estimator_file
from vcrf.estimators.multilabel import label_tree, mutual_information


def drawn(n: int = 60, n_labels: int = 3, n_features: int = 4, seed: int = 0):
    """Invented examples whose labels depend on features and on each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    Y = np.zeros((n, n_labels), int)
    for j in range(n_labels):
        push = X[:, j % n_features] + (1.5 * Y[:, j - 1] - 0.7 if j else 0.0)
        Y[:, j] = push + rng.logistic(size=n) > 0.0
    return X, Y


@pytest.fixture(scope="module")
def fitted():
    """A classifier on all pairs, its data, and its weights as tables."""
    X, Y = drawn()
    crf = MultiLabelCRF(base_strength=0.01, tol=1e-6, scale=False).fit(X, Y)
    table = crf.crf_.model_.table
    nodes = [np.array([table(f"label{j} x{d}") for d in range(4)]) for j in range(3)]
    biases = [table(f"label{j} bias") for j in range(3)]
    pairs = {(a, b): table(f"pair(label{a},label{b}) bias") for a, b in crf.edges_.tolist()}
    return crf, X, Y, nodes, biases, pairs


def enumerated(X, nodes, biases, pairs):
    """All assignments, and their scores for each example, (n_examples, 2**n_labels)."""
    assignments = np.array(list(itertools.product((0, 1), repeat=len(nodes))))
    scores = np.zeros((len(X), len(assignments)))
    for c, y in enumerate(assignments):
        for j, value in enumerate(y):
            scores[:, c] += X @ nodes[j][:, value] + biases[j][value]
        scores[:, c] += sum(table[y[a], y[b]] for (a, b), table in pairs.items())
    return assignments, scores


def test_predictions_equal_enumeration(fitted) -> None:
    """The likeliest assignment, and the probability of each label."""
    crf, X, _, nodes, biases, pairs = fitted
    assignments, scores = enumerated(X, nodes, biases, pairs)
    np.testing.assert_array_equal(crf.predict(X), assignments[scores.argmax(axis=1)])
    shares = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    np.testing.assert_allclose(crf.predict_proba(X), shares @ assignments, atol=1e-10)
    single = clone(crf).set_params(decode="marginals").fit(X, drawn()[1])
    np.testing.assert_array_equal(single.predict(X), shares @ assignments > 0.5)


def test_the_objective_equals_enumeration(fitted) -> None:
    """Mean of the log of the sum with the loss, and the penalty on every weight; no move makes it much smaller."""
    crf, X, Y, nodes, biases, pairs = fitted

    def objective(nodes, biases, pairs):
        assignments, scores = enumerated(X, nodes, biases, pairs)
        loss = (assignments[None] != Y[:, None]).sum(axis=2)
        right = scores[np.arange(len(Y)), [assignments.tolist().index(y) for y in Y.tolist()]]
        squares = sum(float((w**2).sum()) for w in (*nodes, *biases, *pairs.values()))
        return (np.logaddexp.reduce(scores + loss, axis=1) - right).mean() + 0.01 / 2 * squares

    value = objective(nodes, biases, pairs)
    assert crf.objective_ == pytest.approx(value, rel=1e-9)
    assert 0.0 <= crf.gap_ <= 1e-6 * crf.objective_
    rng = np.random.default_rng(1)
    for _ in range(20):
        moved = [[w + 0.1 * rng.normal(size=w.shape) for w in group] for group in (nodes, biases, pairs.values())]
        assert objective(moved[0], moved[1], dict(zip(pairs, moved[2], strict=True))) >= value - crf.gap_


def test_no_edges_equal_logistic_regression() -> None:
    """With two weights a feature, w and -w, the strength is that of C = 2 / (strength n)."""
    X, Y = drawn(80, 2)
    crf = MultiLabelCRF(edges="none", base_strength=0.02, loss=None, tol=1e-9, scale=False).fit(X, Y)
    with_bias = np.column_stack([X, np.ones(len(X))])
    for j in range(2):
        peer = LogisticRegression(C=2 / (0.02 * len(X)), fit_intercept=False, tol=1e-10, max_iter=1000)
        peer.fit(with_bias, Y[:, j])
        np.testing.assert_allclose(crf.predict_proba(X)[:, j], peer.predict_proba(with_bias)[:, 1], atol=2e-4)


def test_scaling_is_that_of_the_columns() -> None:
    """Other units and offsets of columns change nothing; a constant column neither."""
    X, Y = drawn()
    moved = np.column_stack([X * [1.0, 100.0, 0.1, 3.0] + [0.0, 5.0, -7.0, 0.0]])
    plain, other = MultiLabelCRF().fit(X, Y), MultiLabelCRF().fit(moved, Y)
    np.testing.assert_allclose(plain.predict_proba(X), other.predict_proba(moved), atol=1e-6)
    constant = MultiLabelCRF().fit(np.column_stack([X, np.full(len(X), 3.0)]), Y)
    found = [constant.predict_proba(np.column_stack([X, last])) for last in (np.full(len(X), 3.0), X[:, 0])]
    np.testing.assert_array_equal(*found)


# ------------------------------------------------------------------------------------ edges


def test_the_tree_is_the_best_of_all() -> None:
    """Mutual information as scikit-learn has it; its sum is the largest over all trees on five labels."""
    _, Y = drawn(200, 5, seed=3)
    found = mutual_information(Y, np.ones(len(Y)))
    for a, b in itertools.combinations(range(5), 2):
        assert found[a, b] == pytest.approx(mutual_info_score(Y[:, a], Y[:, b]), abs=1e-12)
    trees = [edges for edges in itertools.combinations(itertools.combinations(range(5), 2), 4) if reaches_all(edges, 5)]
    assert len(trees) == 125  # Cayley: 5**3
    best = max(sum(found[edge] for edge in edges) for edges in trees)
    assert sum(found[tuple(edge)] for edge in label_tree(Y).tolist()) == pytest.approx(best)


def reaches_all(edges, n: int) -> bool:
    """Whether the edges join all of n nodes."""
    joined = {0}
    for _ in range(n):
        joined |= {v for edge in edges if set(edge) & joined for v in edge}
    return len(joined) == n


def test_given_edges_and_independent_labels() -> None:
    """Pairs in any order and twice; a tree exists where no label tells of another."""
    X, Y = drawn()
    assert MultiLabelCRF([(2, 0), (0, 2)]).fit(X, Y).edges_.tolist() == [[0, 2]]
    assert MultiLabelCRF(np.zeros((0, 2), int)).fit(X, Y).edges_.shape == (0, 2)
    assert len(label_tree(np.zeros((4, 3), int))) == 2


# ------------------------------------------------------------------------------------ a plain classifier


def test_scikit_learn_takes_it() -> None:
    """Parameters, clones, pipelines, grids, pickles; the score is that of whole rows."""
    X, Y = drawn()
    search = GridSearchCV(MultiLabelCRF(tol=1e-2), {"base_strength": [0.01, 1.0], "edges": ["full", "none"]}, cv=2)
    search.fit(X, Y)
    best = search.best_estimator_
    assert best.score(X, Y) == accuracy_score(Y, best.predict(X))
    assert (best.n_features_in_, best.n_outputs_, best.classes_.tolist()) == (4, 3, [0, 1, 2])
    assert clone(best).get_params() == best.get_params()
    piped = make_pipeline(StandardScaler(), MultiLabelCRF()).fit(X, Y)
    assert piped.predict(X).shape == Y.shape
    again = pickle.loads(pickle.dumps(best))
    np.testing.assert_array_equal(again.predict_proba(X), best.predict_proba(X))


def test_sparse_and_dense_threads_and_weights() -> None:
    """The same numbers give the same model; a weight of 2 is a row twice, of 0 no row."""
    X, Y = drawn()
    plain = MultiLabelCRF(scale=False, base_strength=0.1, tol=1e-8, n_jobs=1).fit(X, Y)
    sparse = clone(plain).set_params(n_jobs=2).fit(sp.csr_matrix(X), sp.csr_matrix(Y))
    np.testing.assert_array_equal(plain.predict_proba(X), sparse.predict_proba(sp.csr_matrix(X)))
    weights = np.ones(len(X))
    weights[:2] = 2.0, 0.0
    weighted = clone(plain).fit(X, Y, sample_weight=weights)
    twice = clone(plain).fit(np.vstack([X[:1], X[:1], X[2:]]), np.vstack([Y[:1], Y[:1], Y[2:]]))
    np.testing.assert_allclose(weighted.predict_proba(X), twice.predict_proba(X), atol=1e-3)


def test_a_label_that_never_changes() -> None:
    """It stays what it was."""
    X, Y = drawn()
    Y[:, 1], Y[:, 2] = 0, 1
    crf = MultiLabelCRF().fit(X, Y)
    assert crf.predict(X)[:, 1:].tolist() == [[0, 1]] * len(X)
    np.testing.assert_allclose(crf.predict_proba(X)[:, 1:], [[0.0, 1.0]] * len(X))


def test_certificates_are_handed_on() -> None:
    """Relaxed where the table is too small, exact else."""
    X, Y = drawn(20)
    exact, relaxed = MultiLabelCRF().fit(X, Y), MultiLabelCRF(max_table=4).fit(X, Y)
    assert (exact.is_relaxed_, relaxed.is_relaxed_) == (False, True)
    assert exact.exact_gap_ == exact.gap_ <= 1e-3 * exact.objective_
    assert relaxed.exact_gap_ == np.inf
    assert exact.status_.name == "CONVERGED"
    assert exact.base_strength_ == pytest.approx(1.0 / 20)


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        ({"edges": "all"}, {}, "`edges` must be 'full', 'tree', 'none' or pairs of labels, got 'all'"),
        ({"edges": [(0, 3)]}, {}, r"has the pair \(0, 3\): expected two different labels from 0 to 2"),
        ({"edges": [(1, 1)]}, {}, r"the pair \(1, 1\)"),
        ({"edges": [0, 1]}, {}, "pairs of whole numbers"),
        ({"decode": "best"}, {}, "`decode` must be"),
        ({"base_strength": -1.0}, {}, "`base_strength` must be"),
        ({}, {"Y": np.zeros(60, int)}, r"Y must be \(n_examples, n_labels\).* got shape \(60,\)"),
        ({}, {"Y": np.full((60, 2), 2)}, "the values 0 and 1 alone, got others of int64. Row 0"),
        ({}, {"Y": np.array([["a"]] * 60)}, "MultiLabelBinarizer"),
        ({}, {"Y": np.zeros((59, 2), int)}, "X and Y differ in length: got 60 and 59"),
        ({}, {"X": np.full((60, 4), np.nan)}, "NaN"),
    ],
)
def test_what_is_refused(options, changes, message: str) -> None:
    """With what was expected."""
    X, Y = drawn()
    with pytest.raises(InputError, match=message):
        MultiLabelCRF(**options).fit(changes.get("X", X), changes.get("Y", Y))


def test_before_fit_and_other_widths() -> None:
    """Not fitted; another number of features."""
    X, Y = drawn()
    for use in (lambda crf: crf.predict(X), lambda crf: crf.gap_, lambda crf: crf.is_relaxed_):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use(MultiLabelCRF())
    with pytest.raises(InputError, match="features"):
        MultiLabelCRF().fit(X, Y).predict(X[:, :2])


# ------------------------------------------------------------------------------------ in a file


@pytest.mark.parametrize("given", [{}, {"edges": "tree"}, {"edges": [(2, 0)], "scale": False}, {"decode": "marginals"}])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_saved_one_predicts_the_same(given, is_sparse, tmp_path):
    """Labels, probabilities, facts; and saved again the same bytes."""
    X, Y = drawn()
    data = sp.csr_matrix(X) if is_sparse else X
    crf = MultiLabelCRF(**given).fit(data, Y)
    crf.save(tmp_path / "m.vcrf")
    again = vcrf.load(tmp_path / "m.vcrf")
    assert isinstance(again, MultiLabelCRF)
    assert np.array_equal(again.predict(data), crf.predict(data))
    assert np.array_equal(again.predict_proba(data), crf.predict_proba(data))
    assert np.array_equal(again.edges_, crf.edges_)
    for name in ("objective_", "gap_", "exact_gap_", "base_strength_", "is_relaxed_", "n_outputs_", "n_features_in_"):
        assert getattr(again, name) == getattr(crf, name)
    assert again.classes_.tolist() == crf.classes_.tolist()
    assert again.crf_.predict_marginals(again._graphs(X)) == crf.crf_.predict_marginals(crf._graphs(X))
    assert estimator_file.to_bytes(again) == estimator_file.to_bytes(crf)
    with pytest.raises(InputError, match="2 features, but MultiLabelCRF is expecting 4"):
        again.predict(X[:, :2])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda parts: parts.document["fitted"].update(n_outputs_=2), "not one of 2 labels"),
        (lambda parts: parts.document["fitted"].update(n_outputs_=1 << 48), "not one of 281474976710656 labels"),
        (lambda parts: parts.document["fitted"].pop("n_outputs_"), "n_outputs_ is missing"),
        (lambda parts: parts.tensors["fitted.edges_"].fill(3), "pairs of the 3 labels"),
        (lambda parts: parts.tensors.pop("fitted.edges_"), "'fitted.edges_' is missing"),
        (lambda parts: parts.tensors["fitted.scale_"].fill(np.nan), "scale_ must be"),
        (lambda parts: parts.tensors["fitted.scale_"].fill(0.0), "scale_ must be"),
        (lambda parts: parts.tensors["fitted.scale_"].fill(1e-310), "scale_ must be"),
        (lambda parts: parts.document["fitted"].update(n_features_in_=7), "scale_ must be"),
        (lambda parts: parts.document.update(estimator="GraphCRF"), "unknown parameters"),
    ],
)
def test_a_forged_file_is_refused(edit, message):
    """By what is wrong, when it is read."""
    parts = Parts(estimator_file.to_bytes(MultiLabelCRF(max_passes=50).fit(*drawn())))
    edit(parts)
    with pytest.raises(InputError, match=message):
        estimator_file.from_buffer(parts.assemble(), "m.vcrf")
