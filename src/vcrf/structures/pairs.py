"""Passes for many labels at order 2: a token costs its labels and the pairs that have a weight, not all pairs.

Pairs of component values are pairs of classes of labels (`structures.value_pairs`): a token costs its labels, the
classes' table, and the pairs that have a weight of their own.

The scan of plain pairs is one product of matrices: expected counts are factors times sum_t alpha[t-1, a] back[t, b].
Nothing is left out; Hessians, losses with automata, and pairs with words are done on the dense lattice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

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
    from vcrf.structures.value_pairs import ValuePairs

# From so many labels on the dense lattice is left if a token has at least so many arcs for each pair with a weight.
MANY_LABELS = 128
_ARCS_PER_PAIR = 8
# And two for each pair of classes.
_ARCS_PER_CLASS_PAIR = 2
# A pair counts as work at one of so many tokens: four times as many join the working set at a scan, the worst first.
PAIRS_PER_SCAN = 2000
# Sums of all pairs are made in so many parts, of so many tokens at a time.
PARTS, _TOKENS = 4, 1024
# A difference that is smaller than this share of what it started from has lost digits; a factor below this may have.
_CANCELS, _TINY = 1e-4, 1e-200


def may_use_pairs(problem: Problem) -> bool:
    """Whether passes may look at the pairs that have a weight alone: many labels, and pairs are of all tokens."""
    columns = np.flatnonzero(problem.has_order(2)) if problem.order == 2 else np.zeros(0, np.int64)
    is_plain = bool(np.all(columns == problem.bias_column)) and len(columns) + len(problem.pair_kinds) > 0
    return problem.n_labels >= MANY_LABELS and is_plain and not problem.is_partial


def is_sparse(plan: ChainPlan, n_labels: int) -> bool:
    """Whether few pairs have a weight, and few classes of labels."""
    of_classes = 0 if plan.value_pairs is None else plan.value_pairs.rows.n * plan.value_pairs.columns.n
    return _ARCS_PER_PAIR * len(plan.table_features) + _ARCS_PER_CLASS_PAIR * of_classes <= n_labels**2


class Seen(NamedTuple):
    """What a forward-backward counts besides residuals, weighted and summed over tokens.

    counts (n_pairs,): of the plan's pairs of labels, expected less true, or expected where there are classes; outer
    (L, L): alpha[t-1, a] back[t, b]; of_classes (R, C): the same summed over the labels of classes. The last two are
    empty where nobody asked.
    """

    counts: Floats
    outer: Floats
    of_classes: Floats


@dataclass(frozen=True, eq=False)
class PairPotentials:
    """A plan at some weights: scores of the pairs in it. Those of single labels by key are there during a pass alone.

    `has_outer` says whether a pass sums the posteriors of all pairs, for a scan. `span` is how far scores of pairs
    differ.
    """

    chain: Chain
    plan: ChainPlan
    w: Floats
    pairs: SparsePairs
    corrections: Corrections
    has_outer: bool
    span: float

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
        """Gradient of the plan's pairs of labels: their counts, before those of pairs of component values."""
        return counts[: len(self.plan.table_features)]

    def value_pair_gradient(self, pairs: ValuePairs, sums: ChainSums) -> Floats:
        """Gradient of pairs of component values."""
        return sums.counts[len(sums.counts) - len(pairs) :]

    def pair_residuals(self, sums: ChainSums) -> Floats:
        """Expected less true counts of all pairs of labels, (L, L), from sums for a scan."""
        return np.asarray(sums.messages - true_pairs(self.chain.problem, sums.weights))

    @property
    def scored(self) -> ChainPlan:
        """The plan that scores are of."""
        return self.plan if self.plan.scored is None else self.plan.scored

    @cached_property
    def _dense(self) -> Tables:
        """Tables of all pairs, for sentences in the log domain."""
        return build_tables(self.plan, self.w, self.chain.problem.n_labels, 2)

    def _pass(self, output: kernels.blocks.PassOutput, loss: TrainingLoss, weights: Floats, values_only: bool) -> Found:
        problem, spare, values = self.chain.problem, self.chain.spare, self.plan.value_pairs
        scores = key_scores(self.scored, self.w, spare.rows(len(self.scored.row_ptr) - 1), self.chain.workers)
        sentences = kernels.blocks.Sentences(problem.sent_ptr, problem.y, loss.costs, weights, problem.allowed)
        seen = self._visit(sentences, scores, output, self.has_outer and not values_only, values_only)
        if values is not None and not values_only and not self.has_outer and self._cancels(values, seen):
            seen = self._visit(sentences, scores, output, True, values_only)
        counts = seen.counts
        expected = seen.outer * self._factors() if len(seen.outer) else np.zeros((0, 0))
        if values is not None:
            true = true_pairs(problem, np.where(output.hard == 0, weights, 0.0))
            counts = np.concatenate([counts - true.reshape(-1)[self.plan.table_codes], np.zeros(len(values))])
            if len(expected):
                counts[len(seen.counts) :] = values.label_sums(expected - true)
            elif not values_only:
                counts[len(seen.counts) :] = values.sums(self._of_classes(values, seen)) - values.label_sums(true)
        is_scan = self.has_outer and not values_only
        expected = expected if is_scan else np.zeros((0, 0))
        self._redo_hard(sentences, scores, output, counts, expected)
        spare.give_back_rows(scores)
        return Found(
            output.values, output.residuals.reshape(-1, problem.n_labels), output.cor_residuals, counts,
            int(np.count_nonzero(output.hard)), messages=expected,
        )  # fmt: skip

    def _visit(
        self, sentences: kernels.blocks.Sentences, scores: Floats, output: kernels.blocks.PassOutput, has_outer: bool,
        values_only: bool,
    ) -> Seen:  # fmt: skip
        """One forward-backward over all sentences but hard ones; sums of tokens in `PARTS` parts."""
        problem, n_pairs = self.chain.problem, len(self.plan.table_features)
        n_labels, (n_rows, n_columns) = problem.n_labels, self.pairs.base.shape
        parts = cut(problem.sent_ptr, PARTS)
        number = {a: i for i, a in enumerate(parts)}
        has_classes = self.plan.value_pairs is not None and not has_outer and not values_only
        counts = np.zeros((len(parts), n_pairs))
        outer = np.zeros((len(parts) if has_outer else 0, n_labels, n_labels))
        of_classes = np.zeros((len(parts) if has_classes else 0, n_rows, n_columns))

        def part(first: int, last: int) -> None:
            n_tokens = int(problem.sent_ptr[last] - problem.sent_ptr[first])
            inside = cut(problem.sent_ptr[first : last + 1] - problem.sent_ptr[first], max(n_tokens // _TOKENS, 1))
            for a, b in pairwise(inside):
                i, j = first + a, first + b
                t0, t1 = int(problem.sent_ptr[i]), int(problem.sent_ptr[j])
                alpha, back = np.empty((t1 - t0, n_labels)), np.empty((t1 - t0, n_labels))
                n_kept = t1 - t0 if has_classes else 0
                classes = kernels.weighted_pairs.ClassSums(np.zeros((n_kept, n_rows)), np.zeros((n_kept, n_columns)))
                kernels.weighted_pairs.weighted_pass(
                    sentences, i, j, n_labels, self.scored.rows, scores, self.pairs, self.span, values_only,
                    self.plan.value_pairs is None, counts[number[first]], alpha, back, classes, output,
                )  # fmt: skip
                token_weights = sentences.weights[problem.example_of[t0:t1]]
                if has_outer:
                    deep = token_weights * problem.has_part(2)[t0:t1]
                    outer[number[first]] += (alpha[:-1] * deep[1:, None]).T @ back[1:]
                if has_classes:
                    of_classes[number[first]] += (classes.before * token_weights[:, None]).T @ classes.here

        self.chain.workers.run(part, parts)
        return Seen(counts.sum(axis=0), outer.sum(axis=0) if has_outer else np.zeros((0, 0)), of_classes.sum(axis=0))

    def _of_classes(self, values: ValuePairs, seen: Seen) -> Floats:
        """Expected counts of pairs of classes, (R, C); pairs with a weight of their own change those of theirs."""
        pairs = self.pairs
        oldest, newest = np.divmod(self.plan.table_codes.astype(np.int64), self.chain.problem.n_labels)
        of_pair = values.rows.of_label[oldest], values.columns.of_label[newest]
        out = pairs.base * seen.of_classes
        np.add.at(out, of_pair, seen.counts * (1.0 - pairs.base[of_pair] / pairs.factor))
        return out

    def _cancels(self, values: ValuePairs, seen: Seen) -> bool:
        """Whether differences have lost digits: the sum has to be made in full then."""
        plain = self.pairs.base * seen.of_classes
        is_tiny = bool(np.any(self.pairs.factor < _TINY))
        return is_tiny or bool(np.any(self._of_classes(values, seen) < _CANCELS * plain))

    def _factors(self) -> Floats:
        """Factors of all pairs, (L, L)."""
        n_labels, values = self.chain.problem.n_labels, self.plan.value_pairs
        if values is None:
            out = np.full(n_labels**2, self.pairs.base[0, 0])
        else:
            out = self.pairs.base[values.rows.of_label[:, None], values.columns.of_label].reshape(-1)
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
            n_pairs, of_labels = len(self.plan.table_codes), found[tables.offsets[2] :]
            counts[:n_pairs] += of_labels[self.plan.table_codes]
            if self.plan.value_pairs is not None:
                counts[n_pairs:] += self.plan.value_pairs.label_sums(of_labels.reshape(n_labels, n_labels))
            if len(expected):
                for here in arcs[1:]:
                    expected += sentences.weights[i] * here.reshape(n_labels, n_labels)


def pair_potentials(chain: Chain, plan: ChainPlan, w: Floats, has_outer: bool) -> PairPotentials:
    """The plan's scores, those of pairs alone."""
    n_labels, values = chain.problem.n_labels, plan.value_pairs
    oldest, newest = np.divmod(plan.table_codes.astype(np.int64), n_labels)
    scores, of_classes = w[plan.table_features], np.zeros((1, 1))
    rows = columns = np.zeros(n_labels, np.int64)
    if values is not None:
        rows, columns, of_classes = values.rows.of_label, values.columns.of_label, values.scores(w)
        scores = scores + of_classes[rows[oldest], columns[newest]]
    most, least = scores.max(initial=of_classes.max()), scores.min(initial=of_classes.min())
    shift = max(float(most), 0.0)
    base, factor = np.exp(np.maximum(of_classes - shift, -700.0)), np.exp(np.maximum(scores - shift, -700.0))
    excess = factor - base[rows[oldest], columns[newest]]
    ends = np.arange(n_labels + 1)
    order = np.argsort(newest, kind="stable")
    pairs = kernels.weighted_pairs.SparsePairs(
        np.searchsorted(oldest, ends), newest.astype(np.uint32), factor, excess,
        np.searchsorted(newest[order], ends), oldest[order].astype(np.uint32), factor[order], excess[order],
        rows.astype(np.uint32), columns.astype(np.uint32), base, np.ascontiguousarray(base.T), of_classes, shift,
    )  # fmt: skip
    corrections = slot_corrections(plan, w, chain.workers)
    return PairPotentials(chain, plan, w, pairs, corrections, has_outer, float(most - least))


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
