"""Passes for many labels at order 2: a token costs its labels and the pairs that have a weight, not all pairs.

Pairs of component values are pairs of classes of labels (`structures.value_pairs`): a token costs its labels, the
classes' table, and the pairs that have a weight of their own. Tokens may have some of the labels alone: what they
cannot have costs nothing.

A pass goes through the sentences in blocks and hands residuals to features at once; only a scan keeps them. It finds
pairs by a product of matrices: expected counts are factors times sum_t alpha[t-1, a] back[t, b]. A pair is no more
often than its labels, so those whose counts are below the limit are in no pair that a scan looks for, and are left out
of the product. Hessians, losses with automata and pairs with words are done on the dense lattice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vcrf import kernels, scratch
from vcrf.problem import AllowedLabels, allowed_sets, every_label
from vcrf.structures.log_pairs import sum_in_logs, true_score
from vcrf.structures.pair_plan import PairPlan
from vcrf.structures.sums import ArcVariances
from vcrf.structures.training_loss import TrainingLoss
from vcrf.types import Bools, Floats, Ints, UInts32
from vcrf.workers import cut

if TYPE_CHECKING:
    from vcrf.kernels.sparse_pairs import SparsePairs
    from vcrf.kernels.token_rows import FeatureRows
    from vcrf.kernels.token_rows import LabelCells as KernelSets
    from vcrf.kernels.weighted_pairs import PairsFound
    from vcrf.problem import Problem
    from vcrf.structures.chain import Chain
    from vcrf.structures.sums import KnownVariances
    from vcrf.structures.value_pairs import ValuePairs

# From so many labels on the dense lattice is left if a token has at least so many arcs for each pair with a weight.
MANY_LABELS = 128
_ARCS_PER_PAIR = 8
# And two for each pair of classes.
_ARCS_PER_CLASS_PAIR = 2
# A pair counts as work at one of so many tokens: four times as many join the working set at a scan, the worst first.
PAIRS_PER_SCAN = 2000
# Sums of all pairs are made in so many parts, of so many tokens at a time.
PARTS, TOKENS = 4, 4096
# A difference that is smaller than this share of what it started from has lost digits; a factor below this may have.
_CANCELS, _TINY = 1e-4, 1e-200


def may_use_pairs(problem: Problem) -> bool:
    """Whether passes may look at the pairs that have a weight alone: many labels, and pairs are of all tokens.

    With known labels there is no other way: what tokens cannot have is left out here alone.
    """
    columns = np.flatnonzero(problem.has_order(2)) if problem.order == 2 else np.zeros(0, np.int64)
    is_plain = bool(np.all(columns == problem.bias_column)) and len(columns) + len(problem.pair_kinds) > 0
    return (problem.n_labels >= MANY_LABELS and is_plain) or problem.known is not None


def is_sparse(plan: PairPlan, n_labels: int) -> bool:
    """Whether few pairs have a weight, and few classes of labels."""
    of_classes = 0 if plan.value_pairs is None else plan.value_pairs.rows.n * plan.value_pairs.columns.n
    return _ARCS_PER_PAIR * len(plan.table_features) + _ARCS_PER_CLASS_PAIR * of_classes <= n_labels**2


class PairSets:
    """The labels that tokens may have: `free` in all sequences, `clamped` in those that agree with what is known."""

    def __init__(self, problem: Problem) -> None:
        self.free = problem.possible or every_label(problem.n_tokens, problem.n_labels)
        self.clamped = allowed_sets(problem.allowed).both(self.free) if problem.is_partial else self.free

    def of(self, is_clamped: bool) -> AllowedLabels:
        """One of them."""
        return self.clamped if is_clamped else self.free


def _for_kernels(sets: AllowedLabels) -> KernelSets:
    return kernels.token_rows.LabelCells(sets.of_token, sets.ptr, sets.labels, sets.cells)


class Visit(NamedTuple):
    """What a visit is for: over which sequences, values alone, variances for residuals; all pairs among some labels."""

    is_clamped: bool = False
    values_only: bool = False
    is_squared: bool = False
    keeps_residuals: bool = False
    among: Ints | None = None


class Visited(NamedTuple):
    """What a forward-backward finds, weighted and summed over tokens; expected counts, not less the true ones.

    values (n_sentences,) log of the sum less the true score; at_truth (n_tokens,); residuals (cells,), empty where
    nobody asked; by_feature (n_features,) of single labels and component values; counts (n_pairs,) of the plan's pairs
    of labels; outer (n, n) among the labels asked for: alpha[t-1, a] back[t, b]; of_classes (R, C): the same summed
    over the labels of classes. The last two are empty where nobody asked. `in_logs` (L, L) are counts of all pairs in
    sentences that were done in the log domain, empty if there are none.
    """

    values: Floats
    at_truth: Floats
    residuals: Floats
    by_feature: Floats
    counts: Floats
    outer: Floats
    of_classes: Floats
    in_logs: Floats
    n_hard: int


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums over all label sequences of each sentence.

    Attributes
    ----------
    potentials, loss : what was summed
    weights : (n_sentences,) of each sentence
    values : (n_sentences,) log of the sum, less the score of the truth
    gradient : of the plan's features
    at_truth : (n_tokens,) residual of the true label
    residuals : (cells,) weight * (posterior - truth), for a scan
    counts : (n_pairs,) expected, of the plan's pairs of labels
    mass : (L,) for a scan: expected counts of labels, or true ones where these are more
    n_hard : sentences that were done in the log domain
    """

    potentials: PairPotentials
    loss: TrainingLoss
    weights: Floats
    values: Floats
    gradient: Floats
    at_truth: Floats
    residuals: Floats
    counts: Floats
    mass: Floats
    n_hard: int
    warm = None

    @property
    def plan(self) -> PairPlan:
        """The features."""
        return self.potentials.plan

    def wrong_labels(self) -> Floats:
        """Mean number of wrong labels of each sentence."""
        problem = self.potentials.chain.problem
        total = np.bincount(problem.example_of, -self.at_truth, problem.text.n_sentences)
        return np.asarray(total / np.where(self.weights > 0.0, self.weights, 1.0))

    def mean_losses(self) -> Floats:
        """Mean loss of each sentence under exp(loss + score)."""
        return np.asarray(self.loss.costs * self.wrong_labels())


@dataclass(frozen=True, eq=False)
class PairPotentials:
    """Weights of a plan; `is_scan`: passes keep residuals; scores of pairs are up to `span` below `pairs.shift`."""

    chain: Chain
    plan: PairPlan
    w: Floats
    rows: FeatureRows
    pairs: SparsePairs
    is_scan: bool
    span: float

    def values(self, loss: TrainingLoss) -> Floats:
        """The log of the sum of each sentence, less the score of the truth."""
        weights = self.chain.problem.weights
        values = self._visit(loss, weights, Visit(values_only=True)).values
        if self.chain.problem.is_partial:
            values = values - self._visit(loss, weights, Visit(is_clamped=True, values_only=True)).values
        return values

    def sums(self, loss: TrainingLoss, weights: Floats) -> PairSums:
        """One pass, with so much weight on each sentence; one more over allowed labels where some are open."""
        problem, plan = self.chain.problem, self.plan
        asked = Visit(keeps_residuals=self.is_scan)
        free = self._visit(loss, weights, asked)
        values, at_truth, residuals, gradient = free.values, free.at_truth, free.residuals, free.by_feature
        expected, of_values = self._counts(loss, weights, free, asked)
        true = true_pairs(problem, np.where(problem.partial_sentences, 0.0, weights))
        counts = expected - true.reshape(-1)[plan.table_codes]
        of_values = of_values if plan.value_pairs is None else of_values - plan.value_pairs.label_sums(true)
        mass = self._mass(weights, free, False)
        if problem.is_partial:
            asked = asked._replace(is_clamped=True)
            truth = self._visit(loss, weights, asked)
            values, at_truth, gradient = values - truth.values, at_truth - truth.at_truth, gradient - truth.by_feature
            more, more_values = self._counts(loss, weights, truth, asked)
            counts, of_values = counts - more, of_values - more_values
            mass = np.maximum(mass, self._mass(weights, truth, True))
            if self.is_scan:
                sets = self.chain.label_sets
                kernels.cells.subtract_cells(
                    _for_kernels(sets.free), residuals, _for_kernels(sets.clamped), truth.residuals
                )
        gradient[plan.table_features] = counts
        if plan.value_pairs is not None:
            gradient[plan.value_pairs.features] = of_values
        return PairSums(self, loss, weights, values, gradient, at_truth, residuals, expected, mass, free.n_hard)

    def pairs_among(self, loss: TrainingLoss, weights: Floats, labels: Ints) -> tuple[Floats, Floats]:
        """Residuals of all pairs among some labels, and their expected counts, (n, n): one more pass."""
        problem, chosen = self.chain.problem, np.ix_(labels, labels)
        found = self._among(self._visit(loss, weights, Visit(among=labels)), labels)
        true = true_pairs(problem, np.where(problem.partial_sentences, 0.0, weights))[chosen]
        if problem.is_partial:
            true = true + self._among(self._visit(loss, weights, Visit(is_clamped=True, among=labels)), labels)
        return found - true, found

    def _mass(self, weights: Floats, found: Visited, is_clamped: bool) -> Floats:
        """Expected counts of labels, or true ones where these are more, (L,); of no use without residuals.

        A pair is no more often than each of its labels. Clamped, sentences whose labels are all known count by these:
        their residuals are 0.
        """
        problem = self.chain.problem
        true = np.bincount(problem.y, weights[problem.example_of], problem.n_labels)
        if not len(found.residuals):
            return np.asarray(true)
        residuals = np.zeros(problem.n_labels)
        sets = _for_kernels(self.chain.label_sets.of(is_clamped))
        kernels.cells.sum_labels(sets, found.residuals, residuals)
        return np.asarray(np.maximum(true, true + residuals))

    def curvature(self, sums: PairSums, variances: ArcVariances | KnownVariances | None) -> Floats:
        """See `Chain.curvature`: one more pass."""
        out = self._visit(sums.loss, np.maximum(sums.weights, 1e-300), Visit(is_squared=True)).by_feature
        plan = self.plan
        out[plan.table_features] = variances.of(plan) if variances is not None else 1.0
        if plan.value_pairs is not None:
            of_values = variances.of_values(plan.value_pairs) if isinstance(variances, ArcVariances) else 1.0
            out[plan.value_pairs.features] = of_values
        return out

    def _counts(self, loss: TrainingLoss, weights: Floats, found: Visited, asked: Visit) -> tuple[Floats, Floats]:
        """Expected counts of the plan's pairs of labels, and of its pairs of component values."""
        values, counts = self.plan.value_pairs, found.counts
        if len(found.in_logs):
            counts = counts + found.in_logs.reshape(-1)[self.plan.table_codes]
        if values is None:
            return counts, np.zeros(0)
        if self._cancels(values, found):
            every = np.arange(self.chain.problem.n_labels)
            found = self._visit(loss, weights, asked._replace(among=every, keeps_residuals=False))
            return counts, values.label_sums(self._among(found, every))
        of_values = values.sums(self._of_classes(values, found))
        return counts, of_values + values.label_sums(found.in_logs) if len(found.in_logs) else of_values

    def _among(self, found: Visited, labels: Ints) -> Floats:
        """Expected counts of the pairs among some labels that were asked for, (n, n)."""
        chosen = np.ix_(labels, labels)
        expected = found.outer * self._factors()[chosen]
        return expected + found.in_logs[chosen] if len(found.in_logs) else expected

    # ----- one forward-backward

    def _visit(self, loss: TrainingLoss, weights: Floats, asked: Visit) -> Visited:
        """Over all sentences; clamped, over those whose labels are not all known. Sums of tokens in `PARTS` parts."""
        problem, n_labels, n_pairs = self.chain.problem, self.chain.problem.n_labels, len(self.plan.table_features)
        label_sets = self.chain.label_sets.of(asked.is_clamped)
        sentences = kernels.blocks.Sentences(problem.sent_ptr, problem.y, loss.costs, weights, problem.allowed)
        sets, parts = _for_kernels(label_sets), cut(problem.sent_ptr, PARTS)
        among = np.zeros(0, np.int64) if asked.among is None else asked.among
        has_outer = asked.among is not None
        wants_classes = self.plan.value_pairs is not None and not has_outer and not asked.values_only
        shape = self.pairs.base.shape
        values, at_truth = np.zeros(problem.text.n_sentences), np.zeros(problem.n_tokens)
        hard = np.zeros(problem.text.n_sentences, np.uint32)
        residuals = scratch.zeros(int(label_sets.cells[-1]) if asked.keeps_residuals else 0)
        outer = np.zeros((len(parts), len(among), len(among)))
        of_classes = np.zeros((len(parts) if wants_classes else 0, *shape))
        found = {
            first: kernels.weighted_pairs.PairsFound(values, hard, at_truth, np.zeros(n_pairs), self.plan.zeros())
            for first in parts[:-1]
        }
        is_second = np.arange(problem.n_tokens) > problem.starts
        which = problem.partial_sentences if asked.is_clamped else np.ones(len(values), bool)

        def part(first: int, last: int) -> None:
            number = parts.index(first)
            for t0, t1, order in _blocks(problem, which, first, last):
                n_outer, n_classes = (t1 - t0 if wanted else 0 for wanted in (has_outer, wants_classes))
                kept = kernels.weighted_pairs.Kept(
                    t0, residuals, np.zeros((n_outer, n_labels)), np.zeros((n_outer, n_labels)),
                    np.zeros((n_classes, shape[0])), np.zeros((n_classes, shape[1])),
                )  # fmt: skip
                kernels.weighted_pairs.weighted_pass(
                    sentences, order, sets, asked.is_clamped, self.rows, self.pairs, self.span, asked.values_only,
                    asked.is_squared, kept, found[first],
                )  # fmt: skip
                of_token = weights[problem.example_of[t0:t1], None]
                if has_outer:
                    deep = of_token[1:] * is_second[t0 + 1 : t1, None]
                    outer[number] += (kept.messages[:-1, among] * deep).T @ kept.back[1:, among]
                if wants_classes:
                    of_classes[number] += (kept.before * of_token).T @ kept.here

        self.chain.workers.run(part, parts)
        in_logs = self._redo_hard(sentences, label_sets, asked, residuals, found[0])
        by_feature = np.sum([self.plan.gather(here.totals) for here in found.values()], axis=0)
        return Visited(
            values, at_truth, residuals, by_feature, np.sum([here.counts for here in found.values()], axis=0),
            outer.sum(axis=0), of_classes.sum(axis=0), in_logs,
            int(np.count_nonzero(hard)),
        )  # fmt: skip

    def _redo_hard(
        self, sentences: kernels.blocks.Sentences, sets: AllowedLabels, asked: Visit, residuals: Floats,
        found: PairsFound
    ) -> Floats:  # fmt: skip
        """Do the flagged sentences in the log domain; returns counts of all pairs in them, (L, L), empty if none."""
        problem, of_kernels = self.chain.problem, _for_kernels(sets)
        flagged = np.flatnonzero((found.hard != 0) & (np.diff(problem.sent_ptr) > 0))
        pairs = np.zeros((problem.n_labels, problem.n_labels)) if len(flagged) else np.zeros((0, 0))
        for i in flagged.tolist():
            t0, t1 = int(problem.sent_ptr[i]), int(problem.sent_ptr[i + 1])
            at, y, weight = sets.cells[t0 : t1 + 1], problem.y[t0:t1].astype(np.int64), float(sentences.weights[i])
            scores = np.empty(int(at[-1] - at[0]))
            kernels.weighted_pairs.cell_scores(self.rows, of_kernels, t0, t1, scores)
            labels = [sets.labels[sets.ptr[s] : sets.ptr[s + 1]] for s in sets.of_token[t0:t1].tolist()]
            by_token = np.split(scores, at[1:-1] - at[0])
            truth = true_score(labels, by_token, self._log_pairs, y)
            if not asked.is_clamped:
                by_token = [_with_loss(sentences, i, t0 + t, labels[t], row) for t, row in enumerate(by_token)]
            sums = sum_in_logs(labels, by_token, self._log_pairs)
            found.values[i] = sums.value - truth
            if asked.values_only:
                continue
            gold = np.array([at[t] - at[0] + np.searchsorted(labels[t], y[t]) for t in range(t1 - t0)], np.int64)
            cells = weight * sums.cells
            cells[gold] -= weight
            found.at_truth[t0:t1] = cells[gold]
            if asked.keeps_residuals:
                residuals[at[0] : at[-1]] = cells
            kernels.weighted_pairs.cell_totals(
                self.rows, of_kernels, t0, t1, cells, weight, asked.is_squared, found.totals
            )  # fmt: skip
            pairs += weight * sums.pairs
        return pairs

    @cached_property
    def _log_pairs(self) -> Floats:
        """Scores of all pairs, (L, L)."""
        values, n_labels = self.plan.value_pairs, self.chain.problem.n_labels
        out = np.zeros((n_labels, n_labels)) if values is None else values.label_scores(self.w)
        out.reshape(-1)[self.plan.table_codes] += self.w[self.plan.table_features]
        return out

    def _of_classes(self, values: ValuePairs, seen: Visited) -> Floats:
        """Expected counts of pairs of classes, (R, C); pairs with a weight of their own change those of theirs."""
        pairs = self.pairs
        oldest, newest = np.divmod(self.plan.table_codes.astype(np.int64), self.chain.problem.n_labels)
        of_pair = values.rows.of_label[oldest], values.columns.of_label[newest]
        out = pairs.base * seen.of_classes
        np.add.at(out, of_pair, seen.counts * (1.0 - pairs.base[of_pair] / pairs.factor))
        return out

    def _cancels(self, values: ValuePairs, seen: Visited) -> bool:
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


def _blocks(problem: Problem, which: Bools, first: int, last: int) -> list[tuple[int, int, Ints]]:
    """Blocks of sentences: their first token and the one after the last; the sentences asked for, longest first."""
    ptr = problem.sent_ptr[first : last + 1] - problem.sent_ptr[first]
    bounds = cut(ptr, max(int(ptr[-1]) // TOKENS, 1))
    out = []
    for a, b in pairwise(bounds):
        chosen = first + a + np.flatnonzero(which[first + a : first + b])
        lengths = problem.sent_ptr[chosen + 1] - problem.sent_ptr[chosen]
        order = chosen[np.argsort(-lengths, kind="stable")]
        out.append((int(problem.sent_ptr[first + a]), int(problem.sent_ptr[first + b]), order))
    return out


def _with_loss(sentences: kernels.blocks.Sentences, i: int, t: int, labels: UInts32, scores: Floats) -> Floats:
    """Scores of a token's labels plus the loss of wrong ones."""
    is_right = sentences.allowed[t, labels] == 1 if len(sentences.allowed) else labels == sentences.y[t]
    return np.asarray(np.where(is_right, scores, scores + sentences.costs[i]))


def pair_potentials(chain: Chain, plan: PairPlan, w: Floats, is_scan: bool) -> PairPotentials:
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
    pairs = kernels.sparse_pairs.SparsePairs(
        np.searchsorted(oldest, ends), newest.astype(np.uint32), factor, excess,
        np.searchsorted(newest[order], ends), oldest[order].astype(np.uint32), factor[order], excess[order],
        order.astype(np.int64), rows.astype(np.uint32), columns.astype(np.uint32), base, np.ascontiguousarray(base.T),
        of_classes, shift,
    )  # fmt: skip
    return PairPotentials(chain, plan, w, plan.rows(w), pairs, is_scan, shift - float(least))


def true_pairs(problem: Problem, weights: Floats) -> Floats:
    """Weighted counts of the true pairs of labels, (L, L)."""
    second: Ints = np.flatnonzero(np.arange(problem.n_tokens) > problem.starts)
    codes = problem.y[second - 1].astype(np.int64) * problem.n_labels + problem.y[second]
    found = np.bincount(codes, weights[problem.example_of[second]], problem.n_labels**2)
    return np.asarray(found, np.float64).reshape(problem.n_labels, problem.n_labels)
