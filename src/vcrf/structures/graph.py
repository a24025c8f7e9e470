"""Any factor graph as a structure: exact where its elimination fits, else blocks that bound it from above.

On a relaxed graph the value is U >= log Z of `graphs.blocks`, with messages after a few sweeps: those of a point nearby
are where a pass begins. Its gradient is that at fixed messages. The certificate is of the relaxed problem: from
marginals on which the blocks agree, with their mean loss and entropy as intercept (`kernels.graph_sums`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.graphs.inference import N_BLOCKS, GraphInference
from vcrf.problem.graphs import GraphProblem
from vcrf.structures.graph_loss import GraphLoss
from vcrf.structures.structure import Purpose, Scan, Strengths, Wanted, wanted
from vcrf.types import Bools, Floats, Ints, UInts32
from vcrf.workers import cut

# Sweeps there and back over the messages of a pass, and of one that certifies.
_SWEEPS, _MORE_SWEEPS = 2, 10


@dataclass(frozen=True, eq=False)
class GraphPlan:
    """Features of a working set by column.

    Attributes
    ----------
    columns : (n,) int64, the columns that have features here
    feature_ptr : (n + 1,) features of each column
    assignments : (n_features,)
    rows : (n_columns,) where the weights of each column begin in a table of all assignments, -1 = none
    places : (n_features,) where each feature's weight is in that table
    size : of the table
    """

    features: Ints
    columns: Ints
    feature_ptr: Ints
    assignments: UInts32
    rows: Ints
    places: Ints
    size: int
    order = 1
    work = 0

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True, eq=False)
class GraphSums:
    """What a pass finds; arrays without another shape are in the layout of the scores.

    Attributes
    ----------
    values, weights : (n_examples,)
    marginals : posterior of each assignment of each part
    residuals : weight * (posterior - truth)
    messages : of the blocks, where passes nearby can begin
    agreed : residuals of marginals on which blocks agree, if wanted; `intercepts` their mean loss + entropy
    """

    plan: GraphPlan
    weights: Floats
    values: Floats
    marginals: Floats
    residuals: Floats
    messages: Floats
    mean_loss: Callable[[], Floats]
    agreed: Floats | None = None
    intercepts: Floats | None = None

    @property
    def warm(self) -> Floats:
        return self.messages

    def mean_losses(self) -> Floats:
        """Mean loss of each example under exp(loss + score)."""
        return self.mean_loss()

    def wrong_labels(self) -> Floats:
        raise InputError("Graphs have no Hessian of a similar loss.")


@dataclass(frozen=True, eq=False)
class GraphPotentials:
    """Scores of all parts at some weights, and where messages begin."""

    structure: GraphStructure
    plan: GraphPlan
    w: Floats
    scores: Floats
    messages: Floats
    is_certified: bool

    def values(self, loss: GraphLoss) -> Floats:
        """The log of the sum of each example, less the score of the truth."""
        infer = self.structure.inference
        if loss.picks:
            return infer.picked(self.scores, loss.table)[0] - self.truth()
        return infer.values(loss.added_to(self.scores), self.messages, self._n_sweeps)[0] - self.truth()

    def sums(self, loss: GraphLoss, weights: Floats) -> GraphSums:
        """One pass, with so much weight on each example."""
        structure, infer = self.structure, self.structure.inference
        scores, table = loss.added_to(self.scores), loss.table

        def mean_loss(found: Floats) -> Floats:
            return structure.by_example(table * found) if len(table) else np.zeros(len(weights))

        if loss.picks:
            values, marginals = infer.picked(self.scores, table)
            residuals = structure.residuals(marginals, weights, None)
            return GraphSums(
                self.plan, weights, values - self.truth(), marginals, residuals, self.messages,
                lambda: mean_loss(marginals),
            )  # fmt: skip
        is_relaxed = self.is_certified and not infer.is_exact
        if is_relaxed:
            values, marginals, messages, agreed, entropies = infer.repaired(scores, self.messages, self._n_sweeps)
        else:
            values, marginals, messages = infer.marginals(scores, self.messages, self._n_sweeps)
        sums = GraphSums(
            self.plan, weights, values - self.truth(), marginals,
            structure.residuals(marginals, weights, self._clamped()), messages, lambda: mean_loss(marginals),
        )  # fmt: skip
        if not is_relaxed:
            return sums
        means = mean_loss(agreed)
        return replace(
            sums,
            agreed=structure.residuals(agreed, weights, None),
            intercepts=entropies + means,
            mean_loss=lambda: means,
        )

    @property
    def _n_sweeps(self) -> int:
        return _MORE_SWEEPS if self.is_certified else _SWEEPS

    def truth(self) -> Floats:
        """Log of the sum over what is allowed: the score of the truth, where it is known."""
        problem = self.structure.problem
        if problem.is_partial:
            return self._allowed_sums[0]
        at_truth = self.scores[problem.truth]
        return np.asarray(np.bincount(problem.example_of, at_truth, len(problem.weights)), np.float64)

    def _clamped(self) -> Floats | None:
        return self._allowed_sums[1] if self.structure.problem.is_partial else None

    @cached_property
    def _allowed_sums(self) -> tuple[Floats, Floats]:
        """Values and marginals over the allowed labels, without the loss: what is allowed costs nothing."""
        structure = self.structure
        scores = self.scores + structure.forbidden
        values, marginals, _ = structure.inference.marginals(scores, structure.no_messages(), _SWEEPS)
        return values, marginals


class GraphStructure:
    """The structure of a problem of graphs.

    Parameters
    ----------
    problem : GraphProblem
    keep : the columns that can carry weight
    threads : the result does not depend on it
    """

    has_hessian, hessian_in_passes = False, np.inf

    def __init__(self, problem: GraphProblem, keep: Bools, threads: int = 1) -> None:
        self.problem, self.keep = problem, keep
        self.layout = problem.layout
        self.inference = GraphInference(self.layout, threads)
        table = problem.columns
        self.kind_of_column = self.layout.kind_of[table.first_positions] if len(table) else np.zeros(0, np.int64)
        self.widest = max(problem.space.sizes, default=1)
        self._occurrences = _by_part(problem, keep)
        self._part_bounds = cut(self.layout.score_ptr, N_BLOCKS)

    @property
    def is_convex(self) -> bool:
        return not self.problem.is_partial

    def ascent(self, loss: GraphLoss, weights: Floats, strengths: Strengths) -> None:  # noqa: ARG002 - the seam's signature
        """There is none."""
        return

    def close(self) -> None:
        self.inference.close()

    def no_messages(self) -> Floats:
        return self.inference.no_messages()

    @cached_property
    def forbidden(self) -> Floats:
        """0 where a value is allowed, -inf where it is not, in the layout of the scores."""
        out = np.zeros(self.inference.n_scores)
        out[self.layout.node_scores[~self.problem.allowed]] = -np.inf
        return out

    def by_example(self, entries: Floats) -> Floats:
        """Sums over the entries of each example."""
        return self.layout.sums_by_example(entries)

    def residuals(self, marginals: Floats, weights: Floats, clamped: Floats | None) -> Floats:
        """Weight * (marginal - truth); clamped marginals stand for the truth where it is not known."""
        out = marginals.copy() if clamped is None else marginals - clamped
        if clamped is None:
            out[self.problem.truth] -= 1.0
        return self._weighted(out, weights)

    def _weighted(self, entries: Floats, weights: Floats) -> Floats:
        """Entries times the weights of their examples, in place."""
        entries *= weights[0] if np.all(weights == weights[0]) else weights[self.layout.example_of_entry]
        return entries

    # ----- the seam

    def compile(self, features: Ints) -> GraphPlan:
        columns, _, assignments = self.problem.split_features(features)
        used, first = np.unique(columns.astype(np.int64), return_index=True)
        sizes = np.array([0, *self.problem.space.sizes], np.int64)[self.kind_of_column[used]]
        starts = np.cumsum(sizes) - sizes
        rows = np.full(len(self.problem.columns), -1, np.int64)
        rows[used] = starts
        places = rows[columns] + assignments.astype(np.int64)
        ptr = np.append(first, len(features)).astype(np.int64)
        return GraphPlan(features, used, ptr, assignments, rows, places, int(sizes.sum()))

    def work(self, columns: UInts32, kinds: UInts32) -> Ints:  # noqa: ARG002 - rows of whole columns are scored
        return np.zeros(len(columns), np.int64)

    def prepare(
        self,
        plan: GraphPlan,
        w: Floats,
        loss: GraphLoss,  # noqa: ARG002
        purpose: Purpose = Purpose.GRADIENT,
        order: int = 1,  # noqa: ARG002
        warm: Floats | None = None,
    ) -> GraphPotentials:
        table = np.zeros(plan.size)
        table[plan.places] = w
        scores = np.empty(self.inference.n_scores)
        self.inference.workers.run(
            lambda a, b: kernels.graph_tables.score_parts(a, b, self._occurrences, plan.rows, table, scores),
            self._part_bounds,
        )
        messages = self.no_messages() if warm is None else warm
        return GraphPotentials(self, plan, w, scores, messages, purpose is Purpose.SCAN)

    def gradient(self, sums: GraphSums) -> Floats:
        return self._by_feature(sums.plan, sums.residuals, False)

    def curvature(self, sums: GraphSums, variances: object) -> Floats:  # noqa: ARG002
        spread = self._weighted(sums.marginals * (1.0 - sums.marginals), sums.weights)
        return self._by_feature(sums.plan, spread, True)

    def _by_feature(self, plan: GraphPlan, entries: Floats, is_squared: bool) -> Floats:
        out, table = np.zeros(len(plan)), self.problem.columns
        counts = np.concatenate([[0], np.cumsum(np.diff(table.ptr)[plan.columns])])
        self.inference.workers.run(
            lambda a, b: kernels.graph_tables.feature_gradient(
                a, b, plan.columns, plan.feature_ptr, plan.assignments, table.ptr, table.positions, table.values,
                self.layout.score_ptr, entries, is_squared, self.widest, out,
            ),
            cut(counts, N_BLOCKS) if len(plan.columns) else [0],
        )  # fmt: skip
        return out

    def wanted(self, mass: Floats, limits: dict[int, Floats]) -> Wanted:
        return wanted(self.keep, mass, limits)

    def scan(self, sums: GraphSums, gradient: Floats, wanted: Wanted, may_stop: bool = False) -> Scan:  # noqa: ARG002
        residuals = sums.residuals if sums.agreed is None else sums.agreed
        limits = np.full(len(self.keep), np.inf)
        for kind, found in wanted.columns.items():
            mine = found[self.kind_of_column[found] == kind]
            limits[mine] = wanted.limits[kind][mine]
        columns = np.flatnonzero(limits < np.inf)
        table = self.problem.columns
        parts: dict[int, tuple[Ints, Ints, Floats]] = {}
        counts = np.concatenate([[0], np.cumsum(np.diff(table.ptr)[columns])])

        def look(a: int, b: int) -> None:
            parts[a] = kernels.graph_tables.scan_columns(
                a, b, columns, limits, table.ptr, table.positions, table.values, self.layout.score_ptr, residuals,
                self.widest,
            )  # fmt: skip

        self.inference.workers.run(look, cut(counts, N_BLOCKS) if len(columns) else [0])
        nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        every = [nothing, *(parts[a] for a in sorted(parts))]
        column, assignment, slopes = (np.concatenate(arrays) for arrays in zip(*every, strict=True))
        space = self.problem.space
        features = column * space.stride + space.offsets[self.kind_of_column[column]] + assignment
        intercept = None if sums.intercepts is None else float(sums.weights @ sums.intercepts)
        return Scan(features, slopes, intercept=intercept)

    def hessian(self, sums: GraphSums, chosen: Ints, stride: int = 1, scale: float = np.inf) -> Floats:  # noqa: ARG002
        raise InputError("Graphs have no Hessian.")

    def sentence_gradients(self, sums: GraphSums, chosen: Ints) -> Iterator[tuple[Floats, Floats]]:  # noqa: ARG002
        raise InputError("Graphs have no gradients of single examples.")


def _by_part(problem: GraphProblem, keep: Bools) -> kernels.graph_tables.PartColumns:
    """The kept columns of each part, in the order of the columns."""
    table = problem.columns
    column = np.repeat(np.arange(len(table)), np.diff(table.ptr))
    kept = np.flatnonzero(keep[column])
    order = kept[np.argsort(table.positions[kept], kind="stable")]
    ptr = np.searchsorted(table.positions[order], np.arange(problem.n_instances + 1)).astype(np.int64)
    values = table.values[order] if len(table.values) else np.ones(len(order))
    return kernels.graph_tables.PartColumns(ptr, column[order], values, problem.layout.score_ptr)
