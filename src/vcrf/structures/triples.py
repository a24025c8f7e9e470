"""Passes over pairs of labels with plain patterns of three labels: a token costs its pairs and the triples in use.

The lattice of order 3 has |labels|**3 arcs a token, and most triples have no weight. Sentences go side by side; see
`kernels.triples`. Nothing is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vcrf import kernels, scratch
from vcrf.structures.arcs import arcs_of
from vcrf.structures.hard import check_hard, redo_hard_sentence
from vcrf.structures.plan import ChainPlan
from vcrf.structures.scan import scan_labels
from vcrf.structures.structure import Scan, Wanted
from vcrf.structures.sums import ChainSums, Found, KnownVariances, make_sums
from vcrf.structures.tables import build_tables, fold, key_scores, slot_corrections
from vcrf.structures.training_loss import TrainingLoss
from vcrf.types import Bools, Floats, Ints
from vcrf.workers import cut

if TYPE_CHECKING:
    from vcrf.kernels.blocks import Sentences
    from vcrf.kernels.scores import FactorTables, LocalFactors
    from vcrf.kernels.triples import Triples
    from vcrf.problem import Problem
    from vcrf.structures.chain import Chain

# A token costs the square of the labels.
MOST_LABELS = 32


class _Prices(NamedTuple):
    """Nanoseconds a token: of a pair more than on the automaton, of a triple; of the automaton's arcs and contexts."""

    pair: float
    triple: float
    own_arc: float
    context: float


_PRICES = _Prices(1.1, 0.3, 0.8, 1.5)
# Parts of a scan, each with sums of all triples.
_PARTS = 8
# Attributes with pairs of labels that scans look at one by one, and what the posteriors at their tokens may take.
_MOST_COLUMNS, _MOST_BYTES = 64, 2**28
# A sum that is smaller than this share of what a difference is taken from has lost digits.
_CANCELS = 1e-4


class Triads(NamedTuple):
    """What a pass for a scan sums over tokens: gradients and variances of plain pairs and triples, by their codes.

    Row row_of[t] of `rows` has the posteriors of pairs, times weights, at a token that an attribute with pairs has.
    """

    pairs: Floats
    triples: Floats
    pair_variances: Floats
    triple_variances: Floats
    row_of: Ints
    rows: Floats


@dataclass(frozen=True, eq=False)
class TriplePotentials:
    """A plan at some weights. `places` are the entries of `triples.entering` of the plan's triples.

    `is_scan` says whether passes sum the posteriors of all triples.
    """

    chain: Chain
    plan: ChainPlan
    w: Floats
    scores: Floats
    triples: Triples
    places: Ints
    span: float
    corrections: LocalFactors
    is_scan: bool

    def values(self, loss: TrainingLoss) -> Floats:
        """The log of the sum of each sentence, less the score of the truth."""
        output = self.chain.spare.output(len(self.corrections.score))
        self._pass(output, loss, self.chain.problem.weights, values_only=True)
        values = output.values.copy()
        self.chain.spare.give_back(output)
        return values

    def sums(self, loss: TrainingLoss, weights: Floats) -> ChainSums:
        """One pass, with so much weight on each sentence."""
        output = self.chain.spare.output(len(self.corrections.score))
        found = self._pass(output, loss, weights, values_only=False)
        return make_sums(self, loss, weights, found, None, self.chain.spare)

    def plain_gradient(self, counts: Floats) -> Floats:
        """Gradient of the plan's plain tag patterns: their counts."""
        return counts

    @cached_property
    def _dense(self) -> FactorTables:
        """Tables of all triples, for sentences in the log domain."""
        return build_tables(self.plan, self.w, self.chain.problem.n_labels, 3)

    def _pass(self, output: kernels.blocks.PassOutput, loss: TrainingLoss, weights: Floats, values_only: bool) -> Found:
        problem, plan = self.chain.problem, self.plan
        n_labels, is_scan = problem.n_labels, self.is_scan and not values_only
        # A part of a scan has sums of all triples.
        bounds = cut(problem.sent_ptr, min(_PARTS, self.chain.n_blocks)) if is_scan else self.chain.sentence_bounds
        number = {a: i for i, a in enumerate(bounds)}
        pairs = np.zeros((len(bounds), n_labels**2))
        entries = np.zeros((len(bounds), len(self.triples.log)))
        row_of = self.chain.pair_rows if is_scan else np.full(0, -1, np.int64)
        rows = scratch.zeros((int(row_of.max(initial=-1)) + 1, n_labels**2))
        size = n_labels if is_scan else 0
        squares, shape = np.zeros((len(bounds), size**2)), (len(bounds), size, size, size)
        found, found_squares = np.zeros(shape), np.zeros(shape)
        sentences = kernels.blocks.Sentences(problem.sent_ptr, problem.y, loss.costs, weights, problem.allowed)

        def block(first: int, last: int) -> None:
            i = number[first]
            seen = kernels.triples.Seen(squares[i], found[i], found_squares[i], row_of, rows)
            kernels.triples.triple_pass(
                sentences, first, last, n_labels, plan.rows, self.scores, self.span, self.triples, self.corrections,
                values_only, seen, pairs[i], entries[i], output,
            )  # fmt: skip

        self.chain.workers.run(block, bounds)
        of_pairs, of_entries = pairs.sum(axis=0), entries.sum(axis=0)
        counts = np.empty(len(plan.table_features))
        is_pair = plan.table_sizes == 2
        counts[is_pair] = of_pairs[plan.table_codes[is_pair]]
        counts[~is_pair] = of_entries[self.places]
        triads = None
        if is_scan:
            known = np.where(output.hard == 0, weights, 0.0)
            factors = self._factors()
            expected = found.sum(axis=0).transpose(1, 0, 2).reshape(-1) * factors
            # The root first: squares of large factors may be no numbers any more.
            roots = np.sqrt(found_squares.sum(axis=0)).transpose(1, 0, 2).reshape(-1) * factors
            true_of_pairs = _true_counts(problem, 2, known)
            triads = Triads(
                of_pairs, expected - _true_counts(problem, 3, known),
                np.maximum(of_pairs + true_of_pairs - squares.sum(axis=0), 0.0),
                np.maximum(expected - roots**2, 0.0), row_of, rows,
            )  # fmt: skip
        self._redo_hard(sentences, output, counts, triads)
        return Found(
            output.values, output.residuals.reshape(-1, n_labels), output.cor_residuals, counts,
            int(np.count_nonzero(output.hard)), messages=triads,
        )  # fmt: skip

    def _factors(self) -> Floats:
        """Factors of all triples, (L**3,)."""
        n_labels, entering = self.chain.problem.n_labels, self.triples.entering
        out = np.ones(n_labels**3)
        states = np.repeat(np.arange(n_labels**2), np.diff(entering.ptr))
        out[entering.source.astype(np.int64) // n_labels * n_labels**2 + states] = self.triples.factor
        return out

    def _redo_hard(
        self, sentences: Sentences, output: kernels.blocks.PassOutput, counts: Floats, triads: Triads | None
    ) -> None:
        """Do the flagged sentences in the log domain, on the dense lattice."""
        problem, n_labels, plan = self.chain.problem, self.chain.problem.n_labels, self.plan
        for i in np.flatnonzero(output.hard).tolist():
            t0, t1 = int(problem.sent_ptr[i]), int(problem.sent_ptr[i + 1])
            check_hard(t1 - t0, t1 - t0, n_labels**3)
            node = np.empty((t1 - t0) * n_labels)
            kernels.potentials.node_scores(plan.rows, self.scores, t0, t1, node)
            tables = self._dense
            found = np.zeros(len(tables.log))
            arcs = redo_hard_sentence(
                sentences, i, n_labels, node.reshape(-1, n_labels), tables, self.corrections, False, found, output
            )
            folded, offsets = fold(found, n_labels, tables), tables.offsets
            counts += folded[offsets[plan.table_sizes] + plan.table_codes]
            if triads is not None:
                of_pairs, of_triples = folded[offsets[2] : offsets[3]], folded[offsets[3] :]
                _add_hard(triads, of_pairs, of_triples, arcs, t0, float(sentences.weights[i]))


def _true_counts(problem: Problem, kind: int, weights: Floats) -> Floats:
    """Weighted counts of the true tag patterns of so many labels, (L**kind,)."""
    ends = np.flatnonzero(problem.has_part(kind))
    codes = np.zeros(len(ends), np.int64)
    for i in range(kind - 1, -1, -1):
        codes = codes * problem.n_labels + problem.y[ends - i].astype(np.int64)
    return np.asarray(np.bincount(codes, weights[problem.example_of[ends]], problem.n_labels**kind), np.float64)


def _add_hard(triads: Triads, pairs: Floats, triples: Floats, arcs: list[Floats], start: int, weight: float) -> None:
    """Add a sentence from the log domain: gradients, and the posteriors of its arcs at each token."""
    triads.pairs[:] += pairs
    triads.triples[:] += triples
    for t in range(1, len(arcs)):
        here = arcs[t].reshape(-1, len(pairs)).sum(axis=0)
        triads.pair_variances[:] += weight * here * (1.0 - here)
        if triads.row_of[start + t] >= 0:
            triads.rows[triads.row_of[start + t]] = weight * here
        if t > 1:
            triads.triple_variances[:] += weight * arcs[t] * (1.0 - arcs[t])


def has_plain_triples(problem: Problem, keep: Bools) -> bool:
    """Whether labels are known, no pattern is longer than three, none of three has a word, and few of two have."""
    if problem.order != 3 or problem.n_labels > MOST_LABELS or len(problem.pair_kinds):
        return False
    if problem.is_partial or problem.known is not None:
        return False
    if np.any(np.flatnonzero(keep & problem.has_order(3)) != problem.bias_column):
        return False
    columns = _pair_columns(problem, keep)
    n_tokens = int(np.diff(problem.columns.ptr)[columns].sum())
    return len(columns) <= _MOST_COLUMNS and 8 * n_tokens * problem.n_labels**2 <= _MOST_BYTES


def _pair_columns(problem: Problem, keep: Bools) -> Ints:
    """Columns that have pairs of labels, the bias apart."""
    columns: Ints = np.flatnonzero(keep & problem.has_order(2))
    return np.asarray(columns[columns != problem.bias_column], np.int64)


def pair_rows(problem: Problem, keep: Bools) -> Ints:
    """For each token its number among those where a column with pairs of labels holds, else -1."""
    marked, table = np.zeros(problem.n_tokens, bool), problem.columns
    for column in _pair_columns(problem, keep):
        marked[table.positions[table.ptr[column] : table.ptr[column + 1]]] = True
    marked &= problem.has_part(2)
    return np.asarray(np.where(marked, np.cumsum(marked) - 1, -1), np.int64)


def is_by_triples(plan: ChainPlan) -> bool:
    """Whether passes may go over pairs of labels: patterns of two labels alone have words, if any."""
    return plan.order <= 3 and bool(np.all(plan.slot_size == 2))


def is_cheaper_by_triples(plan: ChainPlan) -> bool:
    """Whether a pass over pairs of labels costs less than on the automaton and on the dense lattice."""
    if plan.order < 3:
        return len(plan.slot_code) > 0
    automaton = arcs_of(plan).automaton
    n_pairs, n_triples = automaton.n_labels**2, int(np.count_nonzero(plan.table_sizes == 3))
    here = _PRICES.pair * n_pairs + _PRICES.triple * n_triples
    there = _PRICES.own_arc * (automaton.n_arcs - n_pairs) + _PRICES.context * (automaton.n_states - automaton.n_labels)
    return here < there or not arcs_of(plan).is_cheap


def scan_triples(chain: Chain, sums: ChainSums, wanted: Wanted) -> Scan:
    """All candidates whose |gradient| exceeds their limit, and norms of the gradients of each column."""
    problem, triads, bias = chain.problem, sums.messages, chain.problem.bias_column
    columns = wanted.columns[1].astype(np.uint32)
    features, gradients = scan_labels(chain, sums.residuals, columns, wanted.limits[1][columns])
    norms = {k: np.zeros(len(wanted.mass)) for k in problem.kinds}
    norms[1][features // problem.space.stride] = np.inf
    parts = [(features, gradients)]
    for k in (2, 3):
        for column in wanted.columns[k].tolist():
            if column == bias:
                gradient = triads.pairs if k == 2 else triads.triples
            else:
                gradient = _pair_gradient(problem, triads, sums.weights, column)
            norms[k][column] = float(np.linalg.norm(gradient))
            codes = np.flatnonzero(np.abs(gradient) > wanted.limits[k][column])
            if problem.observed_for(k):
                codes = np.intersect1d(codes, problem.observed(k) - column * problem.space.size(k))
            which = np.full(len(codes), column, np.uint32)
            parts.append((problem.join_features(which, k, codes.astype(np.uint32)), gradient[codes]))
    features, gradients = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(features, kind="stable")
    return Scan(features[order], gradients[order], norms=norms, variances=_known(problem, triads))


def _pair_gradient(problem: Problem, triads: Triads, weights: Floats, column: int) -> Floats:
    """Gradient of all pairs of labels with an attribute, (L * L,)."""
    table, n_labels = problem.columns, problem.n_labels
    entries = np.arange(table.ptr[column], table.ptr[column + 1])
    positions = table.positions[entries].astype(np.int64)
    deep = problem.has_part(2)[positions]
    entries, positions = entries[deep], positions[deep]
    values = table.values[entries] if len(table.values) else np.ones(len(entries))
    truth = problem.y[positions - 1].astype(np.int64) * n_labels + problem.y[positions]
    true = np.bincount(truth, values * weights[problem.example_of[positions]], n_labels**2)
    return np.asarray(values @ triads.rows[triads.row_of[positions]] - true, np.float64)


def _known(problem: Problem, triads: Triads) -> KnownVariances:
    """Variances of plain pairs and triples, for the curvatures of later passes."""
    bias, parts = problem.bias_column, [(np.zeros(0, np.int64), np.zeros(0))]
    for k, variances in ((2, triads.pair_variances), (3, triads.triple_variances)) if bias >= 0 else ():
        codes = np.arange(len(variances), dtype=np.uint32)
        parts.append((problem.join_features(np.full(len(codes), bias, np.uint32), k, codes), variances))
    features, variances = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(features)
    return KnownVariances(features[order], variances[order], 1.0)


def triple_potentials(chain: Chain, plan: ChainPlan, w: Floats, is_scan: bool) -> TriplePotentials:
    """The plan's scores, those of triples in lists; a pass for a scan sums the posteriors of all triples."""
    n_labels = chain.problem.n_labels
    weights, is_pair = w[plan.table_features], plan.table_sizes == 2
    codes = plan.table_codes.astype(np.int64)
    pair_log = np.zeros(n_labels**2)
    pair_log[codes[is_pair]] = weights[is_pair]
    shift = float(pair_log.max())
    log = np.zeros((n_labels, n_labels, n_labels))
    log.reshape(-1)[codes[~is_pair]] = weights[~is_pair]
    has_weight = np.zeros(log.shape, bool)
    has_weight.reshape(-1)[codes[~is_pair]] = True
    a, b, c = np.ogrid[:n_labels, :n_labels, :n_labels]
    # By (b, c, a), and by (a, b, c): the state whose sum it is comes first.
    turned = log.transpose(1, 2, 0)
    entering, listed = _lists(turned, has_weight.transpose(1, 2, 0), (c * n_labels + a) + 0 * b)
    leaving, _ = _lists(log, has_weight, (b * n_labels + c) + 0 * a)
    places = np.cumsum(listed) - 1
    number = codes[~is_pair] % n_labels**2 * n_labels + codes[~is_pair] // n_labels**2
    of_entries = turned.reshape(-1)[listed]
    triples = kernels.triples.Triples(
        pair_log,
        np.exp(np.maximum(pair_log - shift, -700.0)),
        shift,
        entering,
        leaving,
        of_entries,
        np.exp(np.minimum(of_entries, 700.0)),
    )
    span = float(shift - pair_log.min() + max(of_entries.max(initial=0.0), 0.0) - min(of_entries.min(initial=0.0), 0.0))
    found = TriplePotentials(
        chain, plan, w, key_scores(plan, w, chain.spare.rows(len(plan.row_ptr) - 1), chain.workers), triples,
        places[number], span, slot_corrections(plan, w, chain.workers), is_scan,
    )  # fmt: skip
    chain.spare.lend_rows(found, found.scores)
    return found


def _lists(log: Floats, has_weight: Floats, source: Ints) -> tuple[kernels.triples.Lists, Floats]:
    """The lists of states (first two axes) over the last axis, and which entries there are, flat."""
    n_labels = len(log)
    in_full = log.min(axis=2) < np.log(_CANCELS)
    listed = (has_weight | in_full[:, :, None]).reshape(-1)
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(listed.reshape(n_labels**2, -1).sum(axis=1))])
    coefficient = np.where(in_full[:, :, None], np.exp(np.minimum(log, 700.0)), np.expm1(np.minimum(log, 700.0)))
    return kernels.triples.Lists(
        np.where(in_full.reshape(-1), 0.0, 1.0), ptr, source.reshape(-1)[listed].astype(np.uint32),
        coefficient.reshape(-1)[listed],
    ), listed  # fmt: skip
