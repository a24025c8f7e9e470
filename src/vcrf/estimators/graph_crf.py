"""GraphCRF: conditional random fields on graphs of any shape."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from vcrf.arguments import recipes
from vcrf.arguments.docstrings import documented
from vcrf.arguments.inputs import check_characters, checked_weights, generator_of, listed_labels
from vcrf.arguments.open_labels import is_open as is_unknown
from vcrf.arguments.parameters import COUNT, GRAPH_ESTIMATOR, check, check_kind
from vcrf.arguments.recipes import is_open
from vcrf.arguments.running import combined_callback, n_threads, warn_unless_converged
from vcrf.complexity.choices import family_complexities
from vcrf.errors import InputError, NotFittedError
from vcrf.estimators.graph_data import (
    GraphData,
    allowed_values,
    check_choices,
    check_features,
    graph_loss,
    read_sample,
    read_training,
)
from vcrf.estimators.trained import Trained
from vcrf.families.text import Text
from vcrf.graphs.example import as_graphs, edges_of
from vcrf.graphs.inference import GraphInference, is_tight
from vcrf.graphs.layout import GraphLayout, make_layout
from vcrf.graphs.reading import collect, read_parts, skeletons
from vcrf.losses import Loss, get_loss
from vcrf.model.build import build_model
from vcrf.model.graphs import GraphModel, classes_of
from vcrf.penalties import DEFAULT_POWER, FamilyPenalty
from vcrf.solvers.result import Callback, SolverResult
from vcrf.solvers.run import RunOptions
from vcrf.types import Floats, Label

if TYPE_CHECKING:
    from vcrf.complexity.report import RiskReport
    from vcrf.estimators.graph_explain import NodeExplanation

# Sweeps there and back before marginals of relaxed graphs are read.
_SWEEPS = 20
# What `tol` is on relaxed graphs, unless it is given.
_RELAXED_TOL = 1e-2


class Decoded(NamedTuple):
    """The labels of one graph, their score, a bound on the best score, and whether nothing better is possible."""

    labels: list[Label]
    score: float
    bound: float
    is_proven: bool


class _Scored(NamedTuple):
    """Graphs with the scores of all their parts."""

    layout: GraphLayout
    inference: GraphInference
    scores: Floats
    text: Text


@documented
class GraphCRF(Trained, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Conditional random field on graphs: each node gets a label, and edges make labels depend on each other.

    Minimises, over the weights w of all features (attribute of a node or an edge x labels there),

        (1/m) sum_i log sum_y exp(loss(y, y_i) + w.(Psi(x_i, y) - Psi(x_i, y_i)))
            + sum_k (complexity_strength * r_k + base_strength) * ||w_k||

    to a certified gap, over graphs that may all be different. Where exact sums take tables of more than `max_table`
    entries, the sum of a graph is bounded from above by sums over blocks of it; `is_relaxed_` says so, and the gap is
    then that of the relaxed problem.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : list
        The labels, sorted; with several node types a dict from type to labels.
    is_relaxed_ : bool
        Whether some training graph was relaxed.
    exact_fraction_ : float
        Share of the training graphs whose sums are exact.
    objective_, gap_ : float
        Value of the problem above at the weights (relaxed: an upper bound of it, unless labels are open), and how far
        it can be above the optimum of the problem solved.
    exact_gap_ : float
        The same for the exact problem: `gap_`, or infinite where some graph was relaxed.
    norm_, base_strength_, complexity_strength_, l1_ratio_, loss_, tol_
        The parameters in force.
    n_candidates_, n_columns_, n_active_ : int
    families_, history_, status_, result_, model_
        As those of `VCRF`.

    Examples
    --------
    >>> from vcrf import Graph, GraphCRF
    >>> X = [Graph([{"w": a}, {"w": b}], [(0, 1)]) for a, b in ["xx", "xy", "yx"]]
    >>> y = [["A", "A"], ["A", "B"], ["B", "A"]]
    >>> GraphCRF().fit(X, y).predict([Graph([{"w": "y"}, {"w": "x"}], [(0, 1)])])
    [['B', 'A']]
    """

    _parameters = GRAPH_ESTIMATOR
    _recipe = recipes.GRAPH
    _fitted_counts = ("n_candidates_", "n_columns_")

    def __init__(
        self,
        *,
        surrogate: str = "crf",
        loss: str | Loss | Callable[..., Any] | None = "auto",
        norm: str | None = None,
        l1_ratio: float | None = None,
        base_strength: float | None = None,
        complexity_strength: float | None = None,
        complexities: str | Mapping[str, float] = "paper",
        directed: bool | Iterable[str] = True,
        scale: bool = True,
        max_table: int = 200_000,
        block_width: int = 2,
        tol: float | None = None,
        max_passes: int | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        callback: Callback | None = None,
        random_state: int | None = None,
    ) -> None:
        self.surrogate = surrogate
        self.loss = loss
        self.norm = norm
        self.l1_ratio = l1_ratio
        self.base_strength = base_strength
        self.complexity_strength = complexity_strength
        self.complexities = complexities
        self.directed = directed
        self.scale = scale
        self.max_table = max_table
        self.block_width = block_width
        self.tol = tol
        self.max_passes = max_passes
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    def fit(
        self, X: Sequence[Any], y: Iterable[Any], sample_weight: Sequence[float] | None = None,
        start: SolverResult | None = None,
    ) -> GraphCRF:  # fmt: skip
        """Train.

        Parameters
        ----------
        X : sequence of Graph, FactorGraph, or tuples (nodes, edges) or (nodes, edges, edge_features)
        y : one sequence of labels an example, one label a node
            str or int. None leaves a label open, a set says that it is one of these; training then ends at a stationary
            point and claims no gap.
        sample_weight : one number a graph, optional
        start : the `result_` of a fit on the same data, optional
            Where training begins.
        """
        self._check_parameters()
        generator_of(self.random_state)
        data = read_training(X, y, sample_weight, self.directed, self.scale, self.max_table, self.block_width)
        problem, layout = data.problem, data.problem.layout
        labels = list(dict.fromkeys(label for labels in layout.kinds.labels for label in labels))
        check_characters(problem.text, labels)
        complexities = family_complexities(self.complexities, problem, self._value("norm"), DEFAULT_POWER)
        penalty = self._penalty(complexities, len(problem.weights))
        result = self._run(data, penalty, start)
        model = build_model(problem, penalty.bind(problem), result, labels, complexities)
        self.model_ = GraphModel.of(model, layout.kinds, data.scales)
        self.result_ = result
        self.n_candidates_, self.n_columns_ = problem.n_candidates, len(problem.columns)
        self.exact_fraction_ = float(layout.is_exact.mean())
        for name in ("norm", "l1_ratio", "complexity_strength", "loss"):
            setattr(self, f"{name}_", self._value(name))
        self.tol_ = self._tol(layout)
        self.base_strength_ = self._value("base_strength", len(problem.weights))
        self.classes_ = classes_of(self.model_)
        warn_unless_converged(result, "max_passes")
        return self

    def _value(self, name: str, n_examples: int = 1) -> Any:
        """What is in force of a parameter."""
        given = getattr(self, name)
        return self._recipe.value(name, n_examples) if is_open(name, given) else given

    def _tol(self, layout: GraphLayout) -> float:
        """The relative gap to reach: a relaxed problem is farther from the exact one than its last digits."""
        is_relaxed = self.tol is None and not layout.is_exact.all()
        return _RELAXED_TOL if is_relaxed else float(self._value("tol"))

    def _penalty(self, complexities: Floats, n_examples: int) -> FamilyPenalty:
        strengths = self._value("complexity_strength") * complexities + self._value("base_strength", n_examples)
        return FamilyPenalty.from_strengths(
            strengths, norm=self._value("norm"), l1_ratio=self._value("l1_ratio"), count_power=0.0
        )

    def _loss(self) -> Any:
        loss = self._value("loss")
        return loss if callable(loss) and not isinstance(loss, Loss) else get_loss(loss)

    def _run(self, data: GraphData, penalty: FamilyPenalty, start: SolverResult | None) -> SolverResult:
        from vcrf.solvers.graph_cooling import solve_graph_max
        from vcrf.solvers.group import solve_group
        from vcrf.solvers.working_set import solve
        from vcrf.surrogates.graphs import choose_graph_max, choose_graphs

        problem = data.problem
        loss = graph_loss(self._loss(), data)
        how = RunOptions(
            self._tol(problem.layout), self.max_passes, n_threads(self.n_jobs),
            combined_callback(self.callback, self.verbose),
        )  # fmt: skip
        if self._value("norm") == "family":
            raise InputError("`norm='family'` is for sequences: use 'l1', 'l2', 'elastic', 'lp' or 'group'.")
        if self.surrogate == "m3n" and self._value("norm") == "lp":
            raise InputError("`surrogate='m3n'` of graphs has no `norm='lp'`: use `norm='l2'` or 'elastic'.")
        if self.surrogate == "m3n":
            if self._value("norm") == "group":
                raise InputError("`surrogate='m3n'` of graphs has no group norm: use `norm='l2'` or 'elastic'.")
            return solve_graph_max(problem, penalty, choose_graph_max(problem, loss), how, start)
        choice = choose_graphs(problem, self.surrogate, loss)
        if self._value("norm") == "group":
            if not problem.layout.is_exact.all():
                raise InputError("`norm='group'` needs exact sums: raise `max_table`, or use `norm='elastic'`.")
            return solve_group(problem, penalty, choice, how, start)
        return solve(problem, penalty, surrogate=choice, start=start, **vars(how))

    # ----- what the fitted model says

    @property
    def is_relaxed_(self) -> bool:
        """Whether some training graph was relaxed."""
        return bool(self.exact_fraction_ < 1.0)

    @property
    def exact_gap_(self) -> float:
        """How far the objective can be above the exact optimum; infinite where some graph was relaxed."""
        return np.inf if self.is_relaxed_ else self.gap_

    def predict(self, X: Iterable[Any]) -> list[list[Label]]:
        """Best labels of each graph; of a relaxed one the best that were found (`certify` says how good they are)."""
        return [found.labels for found in self.certify(X)]

    def certify(self, X: Iterable[Any]) -> list[Decoded]:
        """Labels of each graph with their score and a bound on the best score: they are proven where both meet."""
        scored = self._scored(X)
        best = scored.inference.best(scored.scores)
        scored.inference.close()
        listed = self._listed(scored.layout, best.y)
        return [
            Decoded(labels, score, bound, is_tight(score, bound))
            for labels, score, bound in zip(listed, best.scores.tolist(), best.bounds.tolist(), strict=True)
        ]

    def predict_marginals(self, X: Iterable[Any]) -> list[list[dict[Label, float]]]:
        """Posterior of each label at each node; of a relaxed graph a mean over its blocks, which is not exact."""
        scored = self._scored(X)
        infer, layout = scored.inference, scored.layout
        parts = infer.probabilities(scored.scores, _SWEEPS)
        infer.close()
        values = parts[layout.node_scores].tolist()
        out, at = [], 0
        for first, last in pairwise(layout.variable_ptr.tolist()):
            nodes = []
            for t in layout.types[first:last].tolist():
                labels = layout.kinds.labels[t]
                nodes.append(dict(zip(labels, values[at : at + len(labels)], strict=True)))
                at += len(labels)
            out.append(nodes)
        return out

    def predict_edge_marginals(self, X: Iterable[Any]) -> list[list[Floats]]:
        """Posterior of the labels of each edge (or larger factor): a table an edge, one axis a node."""
        graphs = as_graphs(X)
        scored = self._scored(graphs)
        infer, layout = scored.inference, scored.layout
        parts = infer.probabilities(scored.scores, _SWEEPS)
        infer.close()
        out: list[list[Floats]] = []
        for i, (x, skeleton) in enumerate(zip(graphs, layout.skeletons, strict=True)):
            given = edges_of(x, i)
            tables = []
            for p in range(len(skeleton.types), len(skeleton.kinds)):
                at = int(layout.part_ptr[i]) + p
                flat = parts[layout.score_ptr[at] : layout.score_ptr[at + 1]]
                shape = tuple(len(layout.kinds.labels[int(skeleton.types[v])]) for v in skeleton.scopes[p])
                if layout.kinds.symmetric[int(skeleton.kinds[p]) - 1]:
                    raise InputError(
                        "Tables of edges without direction have no order of their nodes: train with directed=True."
                    )
                table = flat.reshape(shape).copy()
                # Without direction an edge between two types runs from the first type, whatever was given.
                is_turned = bool(given) and given[p - len(skeleton.types)] != skeleton.scopes[p]
                tables.append(table.T.copy() if is_turned else table)
            out.append(tables)
        return out

    def predict_kbest(self, X: Iterable[Any], k: int = 5) -> list[list[tuple[list[Label], float]]]:
        """Find the k best labellings of each graph with their probabilities, best first; exact graphs only."""
        check_kind("k", COUNT, k)
        scored = self._scored(X)
        infer, layout = scored.inference, scored.layout
        totals, _ = infer.values(scored.scores, infer.no_messages(), 0)
        out = []
        for i in range(layout.n_examples):
            found = infer.kbest(scored.scores, i, k)
            # Rounding may leave a score above the sum of all.
            logs = [min(score - float(totals[i]), 0.0) for _, score in found]
            out.append([(self._names(layout, i, y), math.exp(p)) for (y, _), p in zip(found, logs, strict=True)])
        infer.close()
        return out

    def sample(
        self, X: Iterable[Any], n: int = 1, random_state: np.random.Generator | int | None = None
    ) -> list[list[list[Label]]]:
        """Draw n labellings of each graph from the posterior; exact graphs only."""
        check_kind("n", COUNT, n)
        rng = generator_of(self.random_state if random_state is None else random_state)
        scored = self._scored(X)
        out = [
            [self._names(scored.layout, i, y) for y in scored.inference.sample(scored.scores, i, n, rng)]
            for i in range(scored.layout.n_examples)
        ]
        scored.inference.close()
        return out

    def score(self, X: Sequence[Any], y: Iterable[Any], sample_weight: Sequence[float] | None = None) -> float:
        """Share of nodes with the right label; those without a single known label (None, a set) do not count."""
        truth, found = listed_labels(y), self.predict(X)
        if len(truth) != len(found):
            raise InputError(f"X and y differ in length: got {len(found)} graphs and {len(truth)} lists of labels.")
        weights = np.ones(len(truth)) if sample_weight is None else checked_weights(sample_weight, len(truth))
        hits = total = 0.0
        for i, (right, labels) in enumerate(zip(truth, found, strict=True)):
            if len(right) != len(labels):
                raise InputError(f"Example {i} has {len(labels)} nodes and {len(right)} labels: expected one a node.")
            known = [(a, b) for a, b in zip(right, labels, strict=True) if not is_unknown(a)]
            hits += weights[i] * sum(a == b for a, b in known)
            total += weights[i] * len(known)
        if total == 0.0:
            raise InputError("score needs at least one node with a known label and a weight, got none.")
        return float(hits / total)

    def explain(self, x: Any) -> list[NodeExplanation]:
        """Why each node of one graph has its label: features of the best labelling against the best one without it."""
        from vcrf.estimators.graph_explain import explain_graph

        scored = self._scored([x])
        return explain_graph(self._model(), scored.text, scored.layout, scored.scores)

    def bound(
        self, X: Sequence[Any], y: Iterable[Any], loss: str | Loss = "hamming", delta: float = 0.05,
        rho: float | None = None,
    ) -> RiskReport:  # fmt: skip
        """Bounds on the risk from a sample of graphs with their labels: see `vcrf.complexity.risk_report`.

        The loss must have a bound: "hamming", the share of wrong labels. Margin losses of relaxed graphs are bounded
        from above, so that the statements hold for them too.
        """
        from vcrf.complexity.graph_margins import GraphMargins
        from vcrf.complexity.report import report_on

        chosen = get_loss(loss)
        if chosen is None:
            raise InputError("A bound needs a loss, got None.")
        data = read_sample(X, y, self._model(), self.max_table, self.block_width)
        problem = data.problem
        scores = self._model().scores(problem.text, problem.layout)
        infer = GraphInference(problem.layout)
        table = graph_loss(chosen, data).table
        sizes = np.diff(problem.layout.variable_ptr)
        largest = max(chosen.bound(int(n), problem.n_labels) for n in np.unique(sizes))
        margins = GraphMargins(infer, scores, problem.y.astype(np.int64), table, float(largest))
        return report_on(self._model(), problem, margins, delta, rho)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file, which `vcrf.load` reads."""
        from vcrf.estimators.file import save

        save(self, path)

    # ----- scores

    def _scored(self, X: Iterable[Any]) -> _Scored:
        model = self._model()
        kinds = model.kinds
        raw = collect(as_graphs(X), kinds.directed, kinds.types)
        layout = make_layout(kinds, skeletons(raw, kinds), self.max_table, self.block_width)
        check_features(raw, model)
        text, _, _ = read_parts(raw, kinds, layout.part_ptr, model.scales)
        scores = model.scores(text, layout)
        if any(allowed is not None for allowed in raw.allowed):
            sizes = np.diff(layout.variable_ptr).tolist()
            choices = [
                choice
                for allowed, n in zip(raw.allowed, sizes, strict=True)
                for choice in (allowed if allowed is not None else [None] * n)
            ]
            check_choices(choices)
            mask = allowed_values(layout, choices)
            self._check_possible(layout, mask)
            scores[layout.node_scores[~mask]] = -np.inf
        return _Scored(layout, GraphInference(layout, n_threads(self.n_jobs)), scores, text)

    def _check_possible(self, layout: GraphLayout, mask: Any) -> None:
        starts = np.cumsum(layout.cards) - layout.cards
        nothing = np.flatnonzero(~np.logical_or.reduceat(mask, starts)) if len(starts) else np.zeros(0, np.int64)
        if len(nothing):
            v = int(nothing[0])
            i = int(np.searchsorted(layout.variable_ptr, v, side="right")) - 1
            raise InputError(
                f"Example {i}, node {v - int(layout.variable_ptr[i])}: `allowed` has no label that the model knows."
            )

    def _listed(self, layout: GraphLayout, y: Any) -> list[list[Label]]:
        return [
            self._names(layout, i, y[first:last])
            for i, (first, last) in enumerate(pairwise(layout.variable_ptr.tolist()))
        ]

    def _names(self, layout: GraphLayout, i: int, y: Any) -> list[Label]:
        types = layout.skeletons[i].types.tolist()
        return [layout.kinds.labels[t][value] for t, value in zip(types, y.tolist(), strict=True)]

    def _model(self) -> GraphModel:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit(X, y) first.")
        return self.model_

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be, from a user or from a model file."""
        for name in self._parameters:
            check(name, getattr(self, name))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
