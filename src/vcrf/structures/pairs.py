"""Passes for many labels at order 2: a token costs its labels and the pairs that have a weight, not all pairs.

The scan of plain pairs is one product of matrices: expected counts are factors times sum_t alpha[t-1, a] back[t, b].
Nothing is left out; Hessians, losses with automata, and pairs with words are done on the dense lattice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.structures.hard import redo_hard_sentence
from vcrf.structures.plan import ChainPlan
from vcrf.structures.scan import scan_labels
from vcrf.structures.structure import Scan, Wanted
from vcrf.structures.sums import ArcVariances, ChainSums, Found, make_sums
from vcrf.structures.tables import build_tables, key_scores, slot_corrections
from vcrf.structures.training_loss import TrainingLoss
from vcrf.types import Floats, Ints
from vcrf.workers import cut

if TYPE_CHECKING:
    from vcrf.kernels.blocks import Corrections, Tables
    from vcrf.kernels.weighted_pairs import SparsePairs
    from vcrf.problem import Problem
    from vcrf.structures.chain import Chain

# From so many labels on the dense lattice is left if a token has at least so many arcs for each pair with a weight.
MANY_LABELS = 128
_ARCS_PER_PAIR = 8
# A pair counts as work at one of so many tokens: four times as many join the working set at a scan, the worst first.
PAIRS_PER_SCAN = 2000
# Sums of all pairs are made in so many parts, of so many tokens at a time.
PARTS, _TOKENS = 4, 1024


def may_use_pairs(problem: Problem) -> bool:
    """Whether passes may look at the pairs that have a weight alone: many labels, and pairs are of all tokens."""
    columns = np.flatnonzero(problem.has_order(2)) if problem.order == 2 else np.zeros(0, np.int64)
    is_plain = len(columns) == 1 and columns[0] == problem.bias_column
    return problem.n_labels >= MANY_LABELS and is_plain and not problem.is_partial


def is_sparse(plan: ChainPlan, n_labels: int) -> bool:
    """Whether few pairs have a weight."""
    return _ARCS_PER_PAIR * len(plan.table_features) <= n_labels**2


@dataclass(frozen=True, eq=False)
class PairPotentials:
    """A plan at some weights: scores of the pairs in it. Those of single labels by key are there during a pass alone.

    `has_outer` says whether a pass sums the posteriors of all pairs, for a scan.
    """

    chain: Chain
    plan: ChainPlan
    w: Floats
    pairs: SparsePairs
    corrections: Corrections
    has_outer: bool

    def values(self, loss: TrainingLoss) -> Floats:
        """The log of the sum of each sentence, less the score of the truth."""
        output = self.chain.spare.output(0)
        self._pass(output, loss, self.chain.problem.weights, values_only=True)
        values = output.values.copy()
        self.chain.spare.give_back(output)
        return values

    def sums(self, loss: TrainingLoss, weights: Floats) -> ChainSums:
        """One pass, with so much weight on each sentence."""
        output = self.chain.spare.output(0)
        found = self._pass(output, loss, weights, values_only=False)
        return make_sums(self, loss, weights, found, None, self.chain.spare)

    def plain_gradient(self, counts: Floats) -> Floats:
        """Gradient of the plan's pairs: their counts."""
        return counts

    @property
    def scored(self) -> ChainPlan:
        """The plan that scores are of."""
        return self.plan if self.plan.scored is None else self.plan.scored

    @cached_property
    def _dense(self) -> Tables:
        """Tables of all pairs, for sentences in the log domain."""
        return build_tables(self.plan, self.w, self.chain.problem.n_labels, 2)

    @property
    def _span(self) -> float:
        """How far scores of pairs differ."""
        scores = self.w[self.plan.table_features]
        return float(scores.max(initial=0.0) - scores.min(initial=0.0))

    def _pass(self, output: kernels.blocks.PassOutput, loss: TrainingLoss, weights: Floats, values_only: bool) -> Found:
        problem, span = self.chain.problem, self._span
        spare = self.chain.spare
        scores = key_scores(self.scored, self.w, spare.rows(len(self.scored.row_ptr) - 1), self.chain.workers)
        n_labels, n_pairs = problem.n_labels, len(self.plan.table_features)
        sentences = kernels.blocks.Sentences(problem.sent_ptr, problem.y, loss.costs, weights, problem.allowed)
        has_outer = self.has_outer and not values_only
        parts = cut(problem.sent_ptr, PARTS)
        number = {a: i for i, a in enumerate(parts)}
        counts = np.zeros((len(parts), n_pairs))
        outer = np.zeros((len(parts) if has_outer else 0, n_labels, n_labels))

        def part(first: int, last: int) -> None:
            n_tokens = int(problem.sent_ptr[last] - problem.sent_ptr[first])
            inside = cut(problem.sent_ptr[first : last + 1] - problem.sent_ptr[first], max(n_tokens // _TOKENS, 1))
            for a, b in pairwise(inside):
                i, j = first + a, first + b
                t0, t1 = int(problem.sent_ptr[i]), int(problem.sent_ptr[j])
                alpha, back = np.empty((t1 - t0, n_labels)), np.empty((t1 - t0, n_labels))
                kernels.weighted_pairs.weighted_pass(
                    sentences, i, j, n_labels, self.scored.rows, scores, self.pairs, span,
                    values_only, counts[number[first]], alpha, back, output,
                )  # fmt: skip
                if has_outer:
                    deep = weights[problem.example_of[t0:t1]] * problem.has_part(2)[t0:t1]
                    outer[number[first]] += (alpha[:-1] * deep[1:, None]).T @ back[1:]

        self.chain.workers.run(part, parts)
        expected = outer.sum(axis=0) * self._factors() if has_outer else np.zeros((0, 0))
        total = counts.sum(axis=0)
        self._redo_hard(sentences, scores, output, total, expected)
        spare.give_back_rows(scores)
        return Found(
            output.values, output.residuals.reshape(-1, n_labels), output.cor_residuals, total,
            int(np.count_nonzero(output.hard)), messages=expected,
        )  # fmt: skip

    def _factors(self) -> Floats:
        """Factors of all pairs, (L, L)."""
        n_labels = self.chain.problem.n_labels
        out = np.full(n_labels**2, self.pairs.base)
        out[self.plan.table_codes] = self.pairs.factor
        return out.reshape(n_labels, n_labels)

    def _redo_hard(
        self,
        sentences: kernels.blocks.Sentences,
        scores: Floats,
        output: kernels.blocks.PassOutput,
        counts: Floats,
        expected: Floats,
    ) -> None:
        """Do the flagged sentences in the log domain, on all pairs."""
        problem, n_labels = self.chain.problem, self.chain.problem.n_labels
        for i in np.flatnonzero(output.hard).tolist():
            t0, t1 = int(problem.sent_ptr[i]), int(problem.sent_ptr[i + 1])
            node = np.empty((t1 - t0) * n_labels)
            kernels.potentials.node_scores(self.scored.rows, scores, t0, t1, node)
            tables = self._dense
            found = np.zeros(len(tables.log))
            arcs = redo_hard_sentence(
                sentences, i, n_labels, node.reshape(-1, n_labels), tables, self.corrections, False, found, output
            )
            counts += found[tables.offsets[2] + self.plan.table_codes]
            if len(expected):
                for here in arcs[1:]:
                    expected += sentences.weights[i] * here.reshape(n_labels, n_labels)


def pair_potentials(chain: Chain, plan: ChainPlan, w: Floats, has_outer: bool) -> PairPotentials:
    """The plan's scores, those of pairs alone."""
    n_labels = chain.problem.n_labels
    scores = w[plan.table_features]
    shift = max(float(scores.max(initial=0.0)), 0.0)
    base, factor = float(np.exp(max(-shift, -700.0))), np.exp(np.maximum(scores - shift, -700.0))
    oldest, newest = np.divmod(plan.table_codes.astype(np.int64), n_labels)
    ends = np.arange(n_labels + 1)
    order = np.argsort(newest, kind="stable")
    pairs = kernels.weighted_pairs.SparsePairs(
        np.searchsorted(oldest, ends), newest.astype(np.uint32), factor, factor - base,
        np.searchsorted(newest[order], ends), oldest[order].astype(np.uint32), factor[order], factor[order] - base,
        base, shift,
    )  # fmt: skip
    return PairPotentials(chain, plan, w, pairs, slot_corrections(plan, w, chain.workers), has_outer)


def scan_plain_pairs(chain: Chain, sums: ChainSums, wanted: Wanted) -> Scan:
    """All candidates whose |gradient| exceeds their limit: single labels, and pairs of all tokens."""
    problem, columns = chain.problem, wanted.columns[1].astype(np.uint32)
    features, gradients = scan_labels(chain, sums.residuals, columns, wanted.limits[1][columns])
    bias, expected = problem.bias_column, sums.messages
    if len(wanted.columns[2]):
        gradient = (expected - true_pairs(problem, sums.weights)).reshape(-1)
        codes = np.flatnonzero(np.abs(gradient) > wanted.limits[2][bias])
        if problem.observed_for(2):
            codes = np.intersect1d(codes, problem.observed(2) - bias * problem.space.size(2))
        column = np.full(len(codes), bias, np.uint32)
        features = np.concatenate([features, problem.join_features(column, 2, codes.astype(np.uint32))])
        gradients = np.concatenate([gradients, gradient[codes]])
    order = np.argsort(features, kind="stable")
    # Expected counts are no smaller than the variances that they stand for.
    variances = ArcVariances(problem.n_labels, expected.reshape(-1))
    return Scan(features[order], gradients[order], variances=variances)


def true_pairs(problem: Problem, weights: Floats) -> Floats:
    """Weighted counts of the true pairs of labels, (L, L)."""
    second: Ints = np.flatnonzero(problem.has_part(2))
    codes = problem.y[second - 1].astype(np.int64) * problem.n_labels + problem.y[second]
    found = np.bincount(codes, weights[problem.example_of[second]], problem.n_labels**2)
    return np.asarray(found, np.float64).reshape(problem.n_labels, problem.n_labels)
