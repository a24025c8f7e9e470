"""MultiLabelCRF: several yes-or-no labels an example, which depend on each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin

from vcrf.arguments import recipes
from vcrf.arguments.docstrings import documented
from vcrf.arguments.inputs import checked_weights
from vcrf.arguments.parameters import MULTILABEL_ESTIMATOR, check
from vcrf.errors import InputError, NotFittedError
from vcrf.estimators.graph_crf import GraphCRF
from vcrf.estimators.trained import Trained
from vcrf.graphs.example import Graph
from vcrf.graphs.reading import MIN_SIZE, Scale
from vcrf.losses import Loss
from vcrf.model.graphs import GraphModel, classes_of
from vcrf.solvers.result import Callback
from vcrf.types import Floats, Ints

# Parameters that this class has for itself; the others are those of GraphCRF.
_OWN = ("edges", "decode", "scale")


@documented
class MultiLabelCRF(Trained, ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Multi-label classifier: each example has a graph of its labels, a node a label with the values 0 and 1.

    Every label has weights of its own, and every pair of labels that an edge joins a table. The problem is that of
    `GraphCRF`, the certificate too. With `scale` all columns of an array are brought to mean 0 and the rows, sparse
    ones too, to a mean length of 1: the features of an example then weigh as much as its bias, and one strength fits
    labels and pairs.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : (n_labels,) array
        Numbers of the labels, the columns of Y.
    edges_ : (n_edges, 2) array
        The pairs of labels with a table.
    n_features_in_, n_outputs_ : int
    crf_ : GraphCRF
        The fitted estimator on graphs, whose nodes have the types "label0", "label1", ...
    objective_, gap_, exact_gap_, status_, is_relaxed_, base_strength_, history_, result_
        As those of `GraphCRF`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = np.array([[0, 1], [0, 1], [1, 0], [1, 0]])
    >>> MultiLabelCRF().fit(X, Y).predict([[0.5], [2.5]])
    array([[0, 1],
           [1, 0]])
    """

    _parameters = MULTILABEL_ESTIMATOR
    model_: GraphModel
    _fitted_counts = (*GraphCRF._fitted_counts, "n_outputs_", "n_features_in_")
    _fitted_arrays: ClassVar = {"edges_": (np.int64, 2), "scale_": (np.float64, 2)}

    def __init__(
        self,
        edges: Any = "full",
        *,
        decode: str = "map",
        scale: bool = True,
        surrogate: str = "crf",
        loss: str | Loss | Callable[..., Any] | None = "auto",
        norm: str | None = None,
        l1_ratio: float | None = None,
        base_strength: float | None = None,
        complexity_strength: float | None = None,
        complexities: str | Mapping[str, float] = "paper",
        max_table: int = 200_000,
        tol: float | None = None,
        max_passes: int | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        callback: Callback | None = None,
        random_state: int | None = None,
    ) -> None:
        self.edges = edges
        self.decode = decode
        self.scale = scale
        self.surrogate = surrogate
        self.loss = loss
        self.norm = norm
        self.l1_ratio = l1_ratio
        self.base_strength = base_strength
        self.complexity_strength = complexity_strength
        self.complexities = complexities
        self.max_table = max_table
        self.tol = tol
        self.max_passes = max_passes
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MultiLabelCRF:
        """Train.

        Parameters
        ----------
        X : (n_examples, n_features) array or sparse matrix
        y : (n_examples, n_labels) array or sparse matrix of 0 and 1
            Y elsewhere in this text: a column for each label.
        sample_weight : one number an example, optional
        """
        self._check_parameters()
        matrix, labels = self._checked(X, reset=True), _checked_labels(y)
        if matrix.shape[0] != len(labels):
            raise InputError(f"X and Y differ in length: got {matrix.shape[0]} and {len(labels)} examples.")
        weights = np.ones(len(labels)) if sample_weight is None else checked_weights(sample_weight, len(labels))
        self.n_outputs_ = labels.shape[1]
        self.edges_ = _pairs(self.edges, labels, weights)
        self.scale_ = np.array(_find_scale(matrix) if self.scale else [[0.0], [1.0]])
        crf = self._graph_crf()
        for name in ("base_strength", "norm"):
            if getattr(self, name) is None:
                setattr(crf, name, recipes.MULTILABEL.value(name, int(np.count_nonzero(weights)) or 1))
        crf.fit(self._graphs(matrix), labels.tolist(), None if sample_weight is None else weights.tolist())
        self.__dict__.update(_fitted(crf))
        self.classes_ = np.arange(self.n_outputs_)
        return self

    def predict(self, X: Any) -> Ints:
        """The labels of each example, (n_examples, n_labels): the likeliest together, or each by itself (`decode`)."""
        if self.decode == "marginals":
            return (self.predict_proba(X) > 0.5).astype(np.int64)
        self._model()
        found = self.crf_.predict(self._graphs(self._checked(X)))
        return np.array(found, np.int64).reshape(-1, self.n_outputs_)

    def predict_proba(self, X: Any) -> Floats:
        """How likely each label is, (n_examples, n_labels)."""
        self._model()
        found = self.crf_.predict_marginals(self._graphs(self._checked(X)))
        # A label that training never saw is not among the values of its node.
        rows = [[node.get(1, 0.0) for node in nodes] for nodes in found]
        return np.array(rows, np.float64).reshape(-1, self.n_outputs_)

    # ----- what the fitted model says

    @property
    def crf_(self) -> GraphCRF:
        """The fitted estimator on graphs, whose nodes have the types "label0", "label1", ..."""
        self._model()
        crf = self._graph_crf()
        crf.__dict__.update(_fitted(self), classes_=classes_of(self.model_))
        return crf

    @property
    def is_relaxed_(self) -> bool:
        """Whether the sums over all labels were bounded, not exact."""
        return self.crf_.is_relaxed_

    @property
    def exact_gap_(self) -> float:
        """How far the objective can be above the exact optimum; infinite where it was relaxed."""
        return self.crf_.exact_gap_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file, which `vcrf.load` reads."""
        from vcrf.estimators.file import save

        save(self, path)

    def _model(self) -> GraphModel:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit(X, Y) first.")
        return self.model_

    def _check_fitted(self) -> None:
        kinds = self.model_.kinds
        # Their number first: a forged one may be too large to count up to.
        is_right = len(kinds.types) == self.n_outputs_ and sorted(kinds.types) == sorted(self._types())
        if not is_right or any(not {0, 1}.issuperset(values) for values in kinds.labels):
            raise InputError(f"the model is not one of {self.n_outputs_} labels with the values 0 and 1")
        self.classes_, types = np.arange(self.n_outputs_), self._types()
        if self.edges_.shape[1] != 2 or np.any((self.edges_ < 0) | (self.edges_ >= self.n_outputs_)):
            raise InputError(f"edges_ must be pairs of the {self.n_outputs_} labels")
        is_wide = self.scale_.shape in ((2, 1), (2, self.n_features_in_))
        if not is_wide or not Scale(*self.scale_).is_usable():
            raise InputError(
                "scale_ must be a mean and a positive size for each column, neither so large or small as to overflow"
            )
        order = {name: t for t, name in enumerate(kinds.types)}
        for a, b in self.edges_.tolist():
            if ("pair", (order[types[a]], order[types[b]])) not in kinds.numbers:
                raise InputError(f"the model has no table for the labels {a} and {b}")

    def _check_parameters(self) -> None:
        for name in self._parameters:
            if name != "edges":
                check(name, getattr(self, name))

    # ----- from rows to graphs

    def _graph_crf(self) -> GraphCRF:
        given = {name: getattr(self, name) for name in self._parameters if name not in _OWN}
        return GraphCRF(scale=False, **given)

    def _types(self) -> list[str]:
        return [f"label{j}" for j in range(self.n_outputs_)]

    def _checked(self, X: Any, reset: bool = False) -> Any:
        """A float64 array or CSR matrix; scikit-learn's messages are ours."""
        from sklearn.utils.validation import validate_data

        try:
            return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)
        except ValueError as error:
            raise InputError(str(error)) from None

    def _graphs(self, matrix: Any) -> list[Graph]:
        """One a row; the nodes of all labels share it."""
        mean, size = self.scale_
        rows = sp.csr_matrix(matrix / size[0]) if sp.issparse(matrix) else (matrix - mean) / size
        types, kinds = self._types(), ["pair"] * len(self.edges_)
        return [
            Graph(dict.fromkeys(types, rows[i : i + 1]), self.edges_, edge_type=kinds) for i in range(rows.shape[0])
        ]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags


def _fitted(estimator: Any) -> dict[str, Any]:
    """What `fit` set of an estimator on graphs, but for its labels."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_") and name != "classes_"}


def _checked_labels(Y: Any) -> Ints:
    if Y is None:
        raise InputError("MultiLabelCRF requires y to be passed, but the target y is None.")
    given = Y.toarray() if sp.issparse(Y) else np.asarray(Y)
    if given.ndim != 2 or 0 in given.shape:
        raise InputError(
            f"Y must be (n_examples, n_labels), a column of 0 and 1 for each label: got shape {given.shape}."
        )
    if given.dtype.kind not in "biuf" or not np.all((given == 0) | (given == 1)):
        where = "" if given.dtype.kind not in "biuf" else f" Row {int(np.argwhere((given != 0) & (given != 1))[0][0])}."
        raise InputError(
            f"Y must have the values 0 and 1 alone, got others of {given.dtype}.{where} "
            "scikit-learn's MultiLabelBinarizer makes such columns."
        )
    return np.asarray(given, np.int64)


def _find_scale(matrix: Any) -> Scale:
    """Columns of mean 0 and deviation 1, all divided by the mean length of a row; sparse ones are divided alone.

    With many columns of deviation 1 a strength that is right for them would forbid the tables of edges.
    """
    width = matrix.shape[1]
    if sp.issparse(matrix):
        length = np.sqrt(matrix.multiply(matrix).sum() / max(matrix.shape[0], 1))
        return Scale(np.zeros(width), np.full(width, length if length > MIN_SIZE else 1.0))
    mean, size = matrix.mean(axis=0), matrix.std(axis=0)
    is_constant = size <= np.maximum(1e-12 * np.abs(mean), MIN_SIZE)
    length = np.sqrt(max(int(np.count_nonzero(~is_constant)), 1))
    return Scale(mean, np.where(is_constant, 1.0, size) * length)


# ------------------------------------------------------------------------------------ which labels are joined


def _pairs(edges: Any, labels: Ints, weights: Floats) -> Ints:
    """The pairs of labels that `edges` asks for, (n_edges, 2), the smaller first."""
    n_labels = labels.shape[1]
    if isinstance(edges, str):
        if edges not in ("full", "tree", "none"):
            raise InputError(f"`edges` must be 'full', 'tree', 'none' or pairs of labels, got {edges!r}.")
        found = list(combinations(range(n_labels), 2)) if edges == "full" else []
        return label_tree(labels, weights) if edges == "tree" else np.array(found, np.int64).reshape(-1, 2)
    given = np.asarray(edges)
    if given.size == 0:
        return np.zeros((0, 2), np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise InputError(f"`edges` must be pairs of whole numbers, (n_edges, 2): got shape {given.shape}.")
    wrong = np.flatnonzero(((given < 0) | (given >= n_labels)).any(axis=1) | (given[:, 0] == given[:, 1]))
    if len(wrong):
        raise InputError(
            f"`edges` has the pair {tuple(given[wrong[0]].tolist())}: expected two different labels from 0 to "
            f"{n_labels - 1}."
        )
    return np.unique(np.sort(given.astype(np.int64), axis=1), axis=0)


def label_tree(labels: Ints, weights: Floats | None = None) -> Ints:
    """The tree on the labels with the largest sum of mutual information (Chow and Liu, 1968).

    Parameters
    ----------
    labels : (n_examples, n_labels) of 0 and 1
    weights : (n_examples,), optional

    Returns
    -------
    (n_labels - 1, 2) pairs, sorted
    """
    from scipy.sparse.csgraph import minimum_spanning_tree

    information = mutual_information(labels, np.ones(len(labels)) if weights is None else weights)
    # Below 0 every pair is an edge, and the heaviest come first: 0 would be none.
    tree = minimum_spanning_tree(np.triu(-1.0 - information, 1)).tocoo()
    return np.unique(np.sort(np.column_stack([tree.row, tree.col]).astype(np.int64), axis=1), axis=0)


def mutual_information(labels: Ints, weights: Floats) -> Floats:
    """Between all pairs of labels, in nats, (n_labels, n_labels): sum_ab p(a, b) log p(a, b) / (p(a) p(b))."""
    total = max(float(weights.sum()), 1e-300)
    values = [1.0 - labels, labels.astype(np.float64)]
    shares = [(weights @ value) / total for value in values]
    out = np.zeros((labels.shape[1], labels.shape[1]))
    for a in range(2):
        for b in range(2):
            joint = (values[a] * weights[:, None]).T @ values[b] / total
            alone = np.outer(shares[a], shares[b])
            seen = joint > 0.0
            out[seen] += joint[seen] * np.log(joint[seen] / alone[seen])
    return np.maximum(out, 0.0)
