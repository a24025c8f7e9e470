"""Passes on a pattern automaton: their cost follows the tag patterns in the working set, not n_labels**order.

With loss automata, states are pairs of a context and a state of the loss; see `kernels.pattern_sweeps`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.lattice import PatternAutomaton, PatternLattice, build_automaton
from vcrf.lattice.automaton import PASS_PRICES, find_arcs, make_graph
from vcrf.lattice.patterns import sentence_lattice
from vcrf.structures.hard import check_hard, with_loss
from vcrf.structures.plan import ArcPlan, ChainPlan
from vcrf.structures.sums import ChainSums, Found, make_sums
from vcrf.structures.tables import key_scores, slot_corrections
from vcrf.structures.training_loss import TrainingLoss
from vcrf.types import Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.kernels.blocks import PassOutput, Sentences
    from vcrf.kernels.scores import ArcFactors, LocalArcs, LocalFactors
    from vcrf.structures.chain import Chain


@dataclass(frozen=True, eq=False)
class ArcPotentials:
    """A plan at some weights: scores of single labels by key, of the automaton's arcs, and corrections of arcs."""

    chain: Chain
    plan: ChainPlan
    w: Floats
    scores: Floats
    arcs: ArcFactors
    corrections: LocalFactors
    local: LocalArcs

    @property
    def by_arcs(self) -> ArcPlan:
        """The automaton."""
        return arcs_of(self.plan)

    def values(self, loss: TrainingLoss) -> Floats:
        """The log of the sum of each sentence, less the score of the truth."""
        output, weights = self.chain.spare.output(len(self.corrections.score)), self.chain.problem.weights
        self._pass(output, loss, weights, values_only=True)
        values = output.values.copy()
        self.chain.spare.give_back(output)
        return values

    def sums(self, loss: TrainingLoss, weights: Floats) -> ChainSums:
        """One pass, with so much weight on each sentence."""
        chain, n_slots = self.chain, len(self.corrections.score)
        found, truth = self._pass(chain.spare.output(n_slots), loss, weights), None
        if loss.automata is None and chain.problem.is_partial:
            truth = self._pass(chain.empty_output(n_slots), loss, weights, clamp=True)
        sums = make_sums(self, loss, weights, found, truth, chain.spare)
        kernels.patterns.sum_counts(self.by_arcs.automaton.up, sums.counts)
        return sums

    def plain_gradient(self, counts: Floats) -> Floats:
        """Gradient of the plan's plain tag patterns from the counts of arcs."""
        return counts[self.by_arcs.table_arcs]

    def sentences(self, loss: TrainingLoss, weights: Floats) -> kernels.blocks.Sentences:
        """The sentences as the kernels take them."""
        problem = self.chain.problem
        return kernels.blocks.Sentences(
            problem.sent_ptr, problem.y, loss.costs, weights, problem.allowed, loss.arrays.bound
        )

    # ----- passes

    def _pass(
        self, output: PassOutput, loss: TrainingLoss, weights: Floats, *, clamp: bool = False, values_only: bool = False
    ) -> Found:
        """One forward-backward, with the counts of arcs; clamped, over the allowed labels of partial sentences."""
        chain, problem = self.chain, self.chain.problem
        sentences = self.sentences(loss, weights)
        number = {a: i for i, a in enumerate(chain.sentence_bounds)}
        counts = np.zeros((len(number), self.by_arcs.automaton.n_arcs))
        means = np.zeros(0 if loss.automata is None else problem.text.n_sentences)

        def block(first: int, last: int) -> None:
            if not clamp or np.any(problem.partial_sentences[first:last]):
                self._block(sentences, loss, first, last, clamp, values_only, counts[number[first]], means, output)

        chain.workers.run(block, chain.sentence_bounds)
        for i in np.flatnonzero(output.hard).tolist():
            self._redo_hard(sentences, loss, i, clamp, counts[-1], means, output)
        return self._found(output, counts, means)

    def _block(
        self, sentences: Sentences, loss: TrainingLoss, first: int, last: int, clamp: bool, values_only: bool,
        counts: Floats, means: Floats, output: PassOutput,
    ) -> None:  # fmt: skip
        """A pass over sentences first .. last-1."""
        kernels.pattern_pass.pattern_pass(
            sentences, loss.arrays, loss.picks, first, last, self.chain.problem.n_labels, self.plan.rows, self.scores,
            self.by_arcs.graph, self.arcs, self.corrections, self.local, clamp, values_only, counts, means, output,
        )  # fmt: skip

    def _redo_hard(
        self, sentences: Sentences, loss: TrainingLoss, i: int, clamp: bool, counts: Floats, means: Floats,
        output: PassOutput,
    ) -> None:  # fmt: skip
        """A sentence in the log domain."""
        if loss.automata is None:
            lattice = self.hard_lattice(sentences, i, clamp, int(sentences.ptr[i + 1] - sentences.ptr[i]))
            log_z, marginals = lattice.log_partition(), lattice.arc_marginals()
        else:
            automaton, final = loss.automaton(self.chain.problem, i)
            lattice = self.hard_lattice(sentences, i, False, int(automaton.state_ptr[-1]))
            log_z, marginals, mean = lattice.with_loss(automaton, final)
            means[i] = mean if log_z > -np.inf else 0.0
        _redo_hard_sentence(sentences, i, lattice, log_z, marginals, self.local, counts, output)

    def counts_by_sentence(self, sums: ChainSums) -> Iterator[Floats]:
        """The counts of arcs, as in `sums`, of one sentence after the other; with a Hamming loss, or none."""
        automaton, means = self.by_arcs.automaton, np.zeros(self.chain.problem.text.n_sentences)
        sentences = self.sentences(sums.loss, sums.weights)
        output = self.chain.empty_output(len(self.corrections.score))
        for i in range(self.chain.problem.text.n_sentences):
            counts = np.zeros(automaton.n_arcs)
            self._block(sentences, sums.loss, i, i + 1, False, False, counts, means, output)
            if output.hard[i]:
                self._redo_hard(sentences, sums.loss, i, False, counts, means, output)
            kernels.patterns.sum_counts(automaton.up, counts)
            yield counts

    def _found(self, output: PassOutput, counts: Floats, means: Floats) -> Found:
        """What a pass wrote; it keeps no messages."""
        residuals = output.residuals.reshape(-1, self.chain.problem.n_labels)
        n_hard = int(np.count_nonzero(output.hard))
        return Found(output.values, residuals, output.cor_residuals, counts.sum(axis=0), n_hard, means=means)

    # ----- sentences in the log domain

    def hard_rows(self, sums: ChainSums, i: int, clamp: bool) -> tuple[Floats, kernels.pattern_scan.LossRows]:
        """P(label | context, row of the loss automaton) of a hard sentence, flat, and the rows."""
        problem, sentences = self.chain.problem, self.sentences(sums.loss, sums.weights)
        if sums.loss.automata is None:
            lattice = self.hard_lattice(sentences, i, clamp, int(problem.sent_ptr[i + 1] - problem.sent_ptr[i]))
            return lattice._conditionals.reshape(-1), kernels.pattern_scan._plain_rows(lattice.n_positions)
        automaton, final = sums.loss.automaton(problem, i)
        ptr = automaton.state_ptr
        lattice = self.hard_lattice(sentences, i, False, int(ptr[-1]))
        successor = automaton.next.reshape(-1).astype(np.uint32)
        rows = kernels.pattern_scan.LossRows(np.diff(ptr), ptr[:-1], ptr[:-2], successor, np.zeros(0))
        return lattice.conditionals_with(automaton, final), rows

    def hard_lattice(self, sentences: Sentences, i: int, clamp: bool, n_rows: int) -> PatternLattice:
        """Sentence i, with a Hamming loss, in the log domain; `n_rows` states of the loss are kept over its tokens."""
        problem, plan = self.chain.problem, self.by_arcs
        t0, t1 = problem.sent_ptr[i], problem.sent_ptr[i + 1]
        check_hard(int(t1 - t0), n_rows, plan.automaton.n_states * problem.n_labels)
        node = np.empty((t1 - t0) * problem.n_labels)
        kernels.potentials.node_scores(self.plan.rows, self.scores, t0, t1, node)
        node = with_loss(sentences, i, node.reshape(-1, problem.n_labels), clamp)
        return sentence_lattice(plan.automaton, node, self.arcs.log, self.local, int(t0))


def arc_potentials(chain: Chain, plan: ChainPlan, w: Floats) -> ArcPotentials:
    """The plan's scores on the arcs of its automaton."""
    arcs = arcs_of(plan)
    corrections = slot_corrections(plan, w, chain.workers)
    found = ArcPotentials(
        chain, plan, w, key_scores(plan, w, chain.spare.rows(len(plan.row_ptr) - 1), chain.workers),
        arc_scores(arcs.automaton, arcs.table_arcs, w[plan.table_features]), corrections,
        local_arcs(corrections, arcs.cor_arcs),
    )  # fmt: skip
    chain.spare.lend_rows(found, found.scores)
    return found


def arcs_of(plan: ChainPlan) -> ArcPlan:
    """The plan's automaton."""
    if plan.arcs is None:
        raise TypeError("This plan was compiled for the dense lattice: it has no automaton.")
    return plan.arcs


def compile_arcs(plan: ChainPlan, n_labels: int, is_forced: bool) -> ArcPlan:
    """The automaton of a plan's patterns; forced, passes use it also where the dense lattice would be cheaper."""
    sizes = np.concatenate([plan.table_sizes, plan.slot_size])
    codes = np.concatenate([plan.table_codes, plan.slot_code])
    automaton = build_automaton(n_labels, sizes, codes)
    arcs = find_arcs(automaton, sizes, codes)
    n_table = len(plan.table_sizes)
    is_cheap = is_forced or (plan.order > 2 and automaton.is_cheaper(PASS_PRICES, plan.order))
    return ArcPlan(automaton, make_graph(automaton), arcs[:n_table], arcs[n_table:].astype(np.uint32), is_cheap)


def arc_scores(automaton: PatternAutomaton, arcs: Ints, w: Floats) -> ArcFactors:
    """Scores of all arcs from those of plain patterns, given by their arcs."""
    log = np.zeros(automaton.n_arcs)
    np.add.at(log, arcs, w)
    kernels.patterns.sum_scores(automaton.up, log)
    shift = float(log.max())
    factor = np.exp(np.maximum(log - shift, -700.0))
    return kernels.scores.ArcFactors(log, factor, shift, shift - float(log.min()), automaton.order)


def local_arcs(corrections: LocalFactors, arcs: UInts32) -> kernels.scores.LocalArcs:
    """Corrections by their arcs."""
    return kernels.scores.LocalArcs(corrections.ptr, arcs, corrections.score, corrections.factor)


def _redo_hard_sentence(
    sentences: Sentences,
    i: int,
    lattice: PatternLattice,
    log_z: float,
    marginals: Floats,
    local: LocalArcs,
    counts: Floats,
    out: PassOutput,
) -> None:
    """Value, residuals and counts of one sentence, as `pattern_pass` gives them, from its sum and posteriors."""
    start, stop = int(sentences.ptr[i]), int(sentences.ptr[i + 1])
    automaton, weight, n_labels = lattice.automaton, float(sentences.weights[i]), lattice.n_labels
    y = sentences.y[start:stop].astype(np.int64)
    out.values[i] = log_z - lattice.score(y)
    posterior = weight * marginals
    residuals = posterior.sum(axis=1)
    residuals[np.arange(len(y)), y] -= weight
    out.residuals[start * n_labels : stop * n_labels] = residuals.reshape(-1)
    states = lattice._path(y)[1]
    for t in range(len(y)):
        taken = np.zeros(automaton.n_arcs)
        if t > 0:
            np.add.at(taken, automaton.table, posterior[t])
            taken[automaton.table[states[t], y[t]]] -= weight
        counts += taken
        for j in range(local.ptr[start + t], local.ptr[start + t + 1]):
            ranks = slice(automaton.rank[local.arc[j]], automaton.rank_end[local.arc[j]])
            out.cor_residuals[j] = taken[automaton.by_rank[ranks]].sum()
