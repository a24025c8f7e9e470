"""Passes on the dense lattice: all n_labels**order arcs at every token, plain or multiplied with loss automata.

Work is cut into fixed blocks, whatever the number of threads, and every sum has a fixed order: the result does
not depend on the threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels, scratch
from vcrf.errors import BudgetError
from vcrf.lattice import DenseLattice
from vcrf.problem import Problem
from vcrf.structures.hard import check_hard, lattice_arcs, redo_hard_sentence, write_posterior
from vcrf.structures.plan import ChainPlan
from vcrf.structures.sums import ChainSums, Found, Want, make_sums
from vcrf.structures.tables import build_tables, fold, key_scores, slot_corrections
from vcrf.structures.training_loss import TrainingLoss
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.kernels.blocks import PassOutput, Sentences
    from vcrf.kernels.scores import FactorTables, LocalFactors
    from vcrf.structures.chain import Chain
    from vcrf.structures.value_pairs import ValuePairs

# Scans with a loss automaton read the posteriors of all arcs of all tokens.
MAX_ARC_BYTES = 4 * 2**30


def is_too_large(problem: Problem, n_arcs: int) -> bool:
    """Whether posteriors of arcs at every token are beyond the budget."""
    return 8 * n_arcs * problem.n_tokens > MAX_ARC_BYTES


def check_arcs(problem: Problem, n_arcs: int) -> None:
    """Refuse to keep posteriors of arcs at every token beyond the budget."""
    n_bytes = 8 * n_arcs * problem.n_tokens
    if is_too_large(problem, n_arcs):
        raise BudgetError(
            f"With this surrogate and loss the scan needs {n_bytes / 2**30:.1f} GiB for {n_arcs:,} arcs at each of "
            f"{problem.n_tokens:,} tokens; the budget is {MAX_ARC_BYTES / 2**30:.0f} GiB. Use `inference='patterns'`, "
            "or a smaller `tags`."
        )


@dataclass(frozen=True, eq=False)
class DensePotentials:
    """A plan at some weights: scores of single labels by key, tables of plain patterns, corrections by token."""

    chain: Chain
    plan: ChainPlan
    w: Floats
    scores: Floats
    tables: FactorTables
    corrections: LocalFactors
    want: Want

    def values(self, loss: TrainingLoss) -> Floats:
        """The log of the sum of each sentence, less the score of the truth."""
        output, weights = self.chain.spare.output(len(self.corrections.score)), self.chain.problem.weights
        if loss.automata is None:
            self._plain(output, loss, weights, keep=False, clamp=False, values_only=True)
        else:
            self._product(output, loss, weights, Want(), values_only=True)
        values = output.values.copy()
        self.chain.spare.give_back(output)
        return values

    def sums(self, loss: TrainingLoss, weights: Floats) -> ChainSums:
        """One pass, with so much weight on each sentence."""
        want, chain, n_slots = self.want, self.chain, len(self.corrections.score)
        output, truth = chain.spare.output(n_slots), None
        if loss.automata is not None:
            found = self._product(output, loss, weights, want, values_only=False)
        else:
            found = self._plain(output, loss, weights, want.messages, clamp=False)
            if chain.problem.is_partial:
                truth = self._plain(chain.empty_output(n_slots), loss, weights, want.messages, clamp=True)
        return make_sums(self, loss, weights, found, truth, chain.spare)

    def plain_gradient(self, counts: Floats) -> Floats:
        """Gradient of the plan's plain tag patterns from the counts of arcs at each depth."""
        if not len(self.plan.table_features):
            return np.zeros(0)
        folded = fold(counts, self.chain.problem.n_labels, self.tables)
        return np.asarray(folded[self.tables.offsets[self.plan.table_sizes] + self.plan.table_codes])

    def pair_residuals(self, sums: ChainSums) -> Floats:
        """Expected less true counts of all pairs of labels, (L, L)."""
        n_labels, offsets = self.chain.problem.n_labels, self.tables.offsets
        folded = fold(sums.counts, n_labels, self.tables)
        return np.asarray(folded[offsets[2] : offsets[3]].reshape(n_labels, n_labels))

    def value_pair_gradient(self, pairs: ValuePairs, sums: ChainSums) -> Floats:
        """Gradient of pairs of component values."""
        return pairs.label_sums(self.pair_residuals(sums))

    # ----- the plain lattice

    def _plain(
        self,
        output: PassOutput,
        loss: TrainingLoss,
        weights: Floats,
        keep: bool,
        clamp: bool,
        values_only: bool = False,
    ) -> Found:
        """One forward-backward; clamped, over the allowed labels of the sentences whose labels are not all known."""
        problem, tables, bounds = self.chain.problem, self.tables, self.chain.sentence_bounds
        n_labels = problem.n_labels
        if self.has_plain_pairs and not keep:
            return self._pairs(output, loss, weights, values_only)
        n_states = n_labels ** max(tables.order - 1, 1)
        n_kept = problem.n_tokens if keep else 0
        kept = scratch.zeros((n_kept, n_states)), scratch.zeros((n_kept, n_states))
        number = {a: i for i, a in enumerate(bounds)}
        counts = np.zeros((len(bounds), len(tables.log)))
        is_varied = keep and not clamp
        variances = np.zeros((len(bounds), n_labels**tables.order if is_varied else 0))
        sentences = kernels.blocks.Sentences(problem.sent_ptr, problem.y, loss.costs, weights, problem.allowed)
        token_weights = weights[problem.example_of]
        deep = np.where(problem.deep_weights(tables.order) > 0.0, token_weights, 0.0)

        def block(first: int, last: int) -> None:
            if clamp and not np.any(problem.partial_sentences[first:last]):
                return
            t0, t1 = problem.sent_ptr[first], problem.sent_ptr[last]
            if keep:
                messages, back = kept[0][t0:t1], kept[1][t0:t1]
            else:
                # Zeros, because short histories leave a part of the rows unwritten.
                messages, back = np.zeros((t1 - t0, n_states)), np.zeros((t1 - t0, n_states))
            kernels.chain.chain_pass(
                sentences, first, last, n_labels, self.plan.rows, self.scores, tables, self.corrections, deep[t0:t1],
                clamp, counts[number[first]], messages.reshape(-1), back.reshape(-1), output,
            )  # fmt: skip
            if is_varied:
                kernels.chain.arc_variances(
                    n_labels, tables, deep[t0:t1], messages.reshape(-1), back.reshape(-1), variances[number[first]]
                )

        self.chain.workers.run(block, bounds)
        hard_rows, hard_arcs = self._redo_hard(sentences, clamp, counts[-1], output)
        return Found(
            output.values, output.residuals.reshape(-1, n_labels), output.cor_residuals, counts.sum(axis=0),
            int(np.count_nonzero(output.hard)), (*kept, hard_rows, hard_arcs), variances.sum(axis=0),
        )  # fmt: skip

    def _pairs(self, output: PassOutput, loss: TrainingLoss, weights: Floats, values_only: bool) -> Found:
        """The same with plain pairs of labels alone, and variances instead of messages."""
        problem, tables, bounds = self.chain.problem, self.tables, self.chain.sentence_bounds
        n_labels = problem.n_labels
        number = {a: i for i, a in enumerate(bounds)}
        counts = np.zeros((len(bounds), len(tables.log)))
        variances = np.zeros((len(bounds), n_labels**2 if self.want.variances else 0))
        sentences = kernels.blocks.Sentences(problem.sent_ptr, problem.y, loss.costs, weights, problem.allowed)
        longest = int(np.diff(problem.sent_ptr).max(initial=0))

        def block(first: int, last: int) -> None:
            i = number[first]
            kernels.pairs.pair_pass(
                sentences, first, last, n_labels, longest, self.plan.rows, self.scores, tables, values_only, counts[i],
                variances[i], output,
            )  # fmt: skip

        self.chain.workers.run(block, bounds)
        self._redo_hard(sentences, False, counts[-1], output)
        return Found(
            output.values, output.residuals.reshape(-1, n_labels), output.cor_residuals, counts.sum(axis=0),
            int(np.count_nonzero(output.hard)), None, variances.sum(axis=0),
        )  # fmt: skip

    @property
    def has_plain_pairs(self) -> bool:
        """Whether pairs of labels have no words."""
        return self.tables.order == 2 and not len(self.corrections.score) and not self.chain.problem.is_partial

    def _redo_hard(self, sentences: Sentences, clamp: bool, counts: Floats, output: PassOutput) -> tuple[Ints, Floats]:
        """Do the flagged sentences in the log domain; returns the posteriors of their arcs for the scan."""
        problem, n_labels, tables = self.chain.problem, self.chain.problem.n_labels, self.tables
        hard_rows = np.full(problem.n_tokens, -1, np.int64)
        arcs: list[Floats] = []
        # The posteriors of all of them are kept.
        n_hard = int(np.diff(problem.sent_ptr)[output.hard == 1].sum())
        check_hard(n_hard, n_hard, n_labels**tables.order)
        for i in np.flatnonzero(output.hard).tolist():
            t0, t1 = problem.sent_ptr[i], problem.sent_ptr[i + 1]
            hard_rows[t0:t1] = np.arange(len(arcs), len(arcs) + t1 - t0)
            node = self._node_scores(i)
            arcs += redo_hard_sentence(sentences, i, n_labels, node, tables, self.corrections, clamp, counts, output)
        hard_arcs = np.zeros((len(arcs), n_labels**tables.order))
        for row, here in enumerate(arcs):
            hard_arcs[row, : len(here)] = here
        return hard_rows, hard_arcs

    def _node_scores(self, i: int) -> Floats:
        """Scores of single labels in one sentence, (length, n_labels)."""
        problem = self.chain.problem
        t0, t1 = problem.sent_ptr[i], problem.sent_ptr[i + 1]
        node = np.empty((t1 - t0) * problem.n_labels)
        kernels.potentials.node_scores(self.plan.rows, self.scores, t0, t1, node)
        return node.reshape(-1, problem.n_labels)

    # ----- with loss automata

    def _product(self, output: PassOutput, loss: TrainingLoss, weights: Floats, want: Want, values_only: bool) -> Found:
        """Forward-backward on the product; never clamped, because all labels are known."""
        problem, tables, bounds = self.chain.problem, self.tables, self.chain.sentence_bounds
        n_labels, keep_arcs = problem.n_labels, want.messages
        n_arcs = n_labels**tables.order
        if keep_arcs:
            check_arcs(problem, n_arcs)
        arcs = scratch.zeros((problem.n_tokens if keep_arcs else 0, n_arcs))
        number = {a: i for i, a in enumerate(bounds)}
        counts = np.zeros((len(bounds), len(tables.log)))
        variances = np.zeros((len(bounds), n_arcs if keep_arcs else 0))
        means = np.zeros(problem.text.n_sentences if want.means else 0)
        sentences = kernels.blocks.Sentences(
            problem.sent_ptr, problem.y, loss.costs, weights, problem.allowed, loss.arrays.bound
        )

        def block(first: int, last: int) -> None:
            t0, t1 = problem.sent_ptr[first], problem.sent_ptr[last]
            kept = arcs[t0:t1] if keep_arcs else arcs
            kernels.product.product_pass(
                sentences, loss.arrays, first, last, n_labels, self.plan.rows, self.scores, tables, self.corrections,
                loss.picks, values_only, counts[number[first]], kept, means, output,
            )  # fmt: skip
            if keep_arcs:
                kernels.product.arc_variances(
                    problem.sent_ptr, first, last, weights, tables.order, kept, variances[number[first]]
                )

        self.chain.workers.run(block, bounds)
        self._do_hard(sentences, loss, counts[-1], arcs, means, output)
        # The scan finds the posteriors of the arcs in a list, as it does for hard sentences; there are no messages.
        rows = np.arange(problem.n_tokens) if keep_arcs else np.full(problem.n_tokens, -1, np.int64)
        none = np.zeros((0, n_labels ** (tables.order - 1)))
        return Found(
            output.values, output.residuals.reshape(-1, n_labels), output.cor_residuals, counts.sum(axis=0),
            int(np.count_nonzero(output.hard)), (none, none, rows, arcs), variances.sum(axis=0), means,
        )  # fmt: skip

    def _do_hard(
        self, sentences: Sentences, loss: TrainingLoss, counts: Floats, arcs: Floats, means: Floats, output: PassOutput
    ) -> None:
        """Do the flagged sentences in the log domain."""
        problem, n_labels, tables = self.chain.problem, self.chain.problem.n_labels, self.tables
        for i in np.flatnonzero(output.hard).tolist():
            t0, t1 = int(problem.sent_ptr[i]), int(problem.sent_ptr[i + 1])
            automaton, final = loss.automaton(problem, i)
            check_hard(t1 - t0, int(automaton.state_ptr[-1]), n_labels**tables.order)
            scored = lattice_arcs(self._node_scores(i), t0, n_labels, tables, self.corrections)
            lattice = DenseLattice(scored, n_labels, tables.order)
            value, posterior, mean = lattice.with_loss(automaton, final)
            if len(means):
                means[i] = mean
            output.values[i] = value - lattice.score(problem.y[t0:t1].astype(np.int64))
            flat = write_posterior(posterior, sentences, i, n_labels, tables, self.corrections, counts, output)
            for t, here in enumerate(flat if len(arcs) else []):
                arcs[t0 + t, : len(here)] = here


def dense_potentials(chain: Chain, plan: ChainPlan, w: Floats, order: int, want: Want) -> DensePotentials:
    """The plan's scores in tables of patterns up to so many labels."""
    found = DensePotentials(
        chain, plan, w, key_scores(plan, w, chain.spare.rows(len(plan.row_ptr) - 1), chain.workers),
        build_tables(plan, w, chain.problem.n_labels, order), slot_corrections(plan, w, chain.workers), want,
    )  # fmt: skip
    chain.spare.lend_rows(found, found.scores)
    return found
