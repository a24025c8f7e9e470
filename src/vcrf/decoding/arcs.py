"""Potentials on a pattern automaton: what `Potentials` offers for models whose longest tag patterns are few."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from vcrf import kernels
from vcrf.decoding.potentials import MAX_LATTICE, Potentials, take_tokens
from vcrf.errors import BudgetError
from vcrf.lattice import PatternAutomaton, PatternLattice, build_automaton
from vcrf.lattice.automaton import DECODING_PRICES, find_arcs, make_graph
from vcrf.lattice.patterns import sentence_lattice
from vcrf.problem import MAX_ARCS
from vcrf.types import Bools, Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.kernels.patterns import PatternArrays


@dataclass(frozen=True, eq=False)
class TagPatterns:
    """The tag patterns of a model as an automaton; `own` (n_arcs,) are the scores of plain ones of 3 labels or more."""

    automaton: PatternAutomaton
    graph: PatternArrays
    own: Floats


def choose_patterns(
    n_labels: int, sizes: UInts32, codes: UInts32, weights: Floats, is_plain: Bools
) -> TagPatterns | None:
    """The automaton of a model's patterns, if tagging on it is expected to be faster than on all arcs; else None."""
    order = int(sizes.max(initial=1))
    if order < 3:
        return None
    long = sizes > 1
    patterns = tag_patterns(n_labels, sizes[long], codes[long], weights[long], is_plain[long])
    is_cheaper = patterns.automaton.is_cheaper(DECODING_PRICES, order)
    return patterns if n_labels**order > MAX_ARCS or is_cheaper else None


def tag_patterns(n_labels: int, sizes: UInts32, codes: UInts32, weights: Floats, is_plain: Bools) -> TagPatterns:
    """The automaton of patterns of two labels or more."""
    automaton = build_automaton(n_labels, sizes, codes)
    own = np.zeros(automaton.n_arcs)
    scored = np.flatnonzero(is_plain & (sizes > 2))
    np.add.at(own, find_arcs(automaton, sizes[scored], codes[scored]), weights[scored])
    return TagPatterns(automaton, make_graph(automaton), own)


@dataclass(frozen=True, eq=False)
class PatternPotentials(Potentials):
    """Scores of all sentences of a text; `tables` holds pairs only, the longer patterns are in `patterns`."""

    patterns: TagPatterns | None = None

    def decode_tokens(self) -> UInts32:
        """Best labels of all tokens; of equal sequences the first by labels."""
        flat = np.empty(len(self.node), np.uint32)
        if len(flat):
            kernels.pattern_decode.viterbi(
                self.sent_ptr, self.node, self._plan.graph, self._arc_scores, self._local_arcs, flat
            )
        return flat

    def lattice(self, i: int) -> PatternLattice:
        """All label sequences of sentence i; a BudgetError when the sentence is too long."""
        first, last = int(self.sent_ptr[i]), int(self.sent_ptr[i + 1])
        automaton = self._plan.automaton
        n_arcs = automaton.n_arcs + 2 * automaton.n_states * self.n_labels
        if (last - first) * n_arcs > MAX_LATTICE:
            raise BudgetError(
                f"A sentence of {last - first:,} tokens on an automaton of {n_arcs:,} arcs is beyond the budget of "
                f"{MAX_LATTICE:,}. Split the sentence, or ask for labels only."
            )
        return sentence_lattice(automaton, self.node[first:last], self._arc_scores, self._local_arcs, first)

    def take(self, sentences: Ints) -> PatternPotentials:
        """The potentials of some sentences, in any order and as often as asked for."""
        ptr, node, local = take_tokens(self, sentences)
        return PatternPotentials(ptr, node, self.tables, local, self.order, None, self.patterns)

    def scaled(self, factor: float) -> Self:
        """All scores times a positive factor, those of the automaton's arcs too."""
        return replace(super().scaled(factor), patterns=replace(self._plan, own=self._plan.own * factor))

    def _posterior(self, marginals: Floats) -> Floats:
        log_z, is_hard = np.zeros(len(self)), self._hard_sentences()
        if len(self.node):
            score = self._arc_scores
            shift = float(score.max())
            factor = np.exp(np.maximum(score - shift, -700.0))
            kernels.pattern_decode.label_marginals(
                self.sent_ptr, self.node, self._plan.graph, factor, shift, self._local_arcs, is_hard, log_z,
                marginals,
            )  # fmt: skip
        for i in np.flatnonzero(is_hard).tolist():
            first, last = self.sent_ptr[i], self.sent_ptr[i + 1]
            if last > first:
                lattice = self.lattice(i)
                log_z[i] = lattice.log_partition()
                if len(marginals) and log_z[i] > -np.inf:
                    marginals[first:last] = lattice.label_marginals()
        return log_z

    def _hard_sentences(self) -> Bools:
        """Sentences that need the log domain: something is forbidden, or scores span too much."""
        local = np.concatenate([np.zeros(1), np.cumsum(np.abs(self.local.score))])
        with np.errstate(invalid="ignore"):  # -inf less -inf: not a number, and so not below the limit
            span = self._arc_scores.max() - self._arc_scores.min()
            nodes = self.node.max(axis=1, initial=-np.inf) - self.node.min(axis=1, initial=np.inf)
            nodes += local[self.local.ptr[1:]] - local[self.local.ptr[:-1]]
            is_wide = ~((nodes + span) * max(self.order - 1, 1) < kernels.potentials.MAX_RANGE)
        total = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_wide)])
        return np.asarray(total[self.sent_ptr[1:]] > total[self.sent_ptr[:-1]])

    @property
    def _plan(self) -> TagPatterns:
        if self.patterns is None:
            raise TypeError("PatternPotentials needs the automaton of its patterns.")
        return self.patterns

    @cached_property
    def _arc_scores(self) -> Floats:
        """Summed scores of the arcs; a forbidden pair forbids all arcs that end with it."""
        score = self._plan.own.copy()
        if 2 in self.tables:
            score[: self.n_labels**2] = self.tables[2]
        kernels.patterns.sum_scores(self._plan.automaton.up, score)
        return score

    @cached_property
    def _local_arcs(self) -> kernels.scores.LocalArcs:
        arcs = find_arcs(self._plan.automaton, self.local.size, self.local.code)
        factor = np.exp(np.clip(self.local.score, -700.0, 700.0))
        return kernels.scores.LocalArcs(self.local.ptr, arcs.astype(np.uint32), self.local.score, factor)
