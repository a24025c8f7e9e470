"""Chains of labels: the structure of sentences, on the dense lattice or on an automaton of tag patterns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vcrf.errors import BudgetError, InputError
from vcrf.families.keys import KeyGroup, group_columns
from vcrf.problem import MAX_ARCS, Problem
from vcrf.structures.arc_hessian import arc_hessian
from vcrf.structures.arcs import ArcPotentials, arc_potentials, arcs_of, compile_arcs
from vcrf.structures.ascent import ChainAscent, chain_ascent
from vcrf.structures.components import component_gradient, with_components
from vcrf.structures.dense import DensePotentials, dense_potentials, is_too_large
from vcrf.structures.effort import check_effort
from vcrf.structures.gradient import gradient_of
from vcrf.structures.hessian import arc_gradients, dense_gradients, dense_hessian
from vcrf.structures.level_scan import LevelScan
from vcrf.structures.pair_plan import PairPlan, compile_pairs
from vcrf.structures.pair_scan import scan_pairs
from vcrf.structures.pairs import (
    PAIRS_PER_SCAN,
    PairPotentials,
    PairSets,
    PairSums,
    is_sparse,
    may_use_pairs,
    pair_potentials,
)
from vcrf.structures.plan import ChainPlan, compile_features
from vcrf.structures.scan import Posteriors, scan_dense
from vcrf.structures.structure import Purpose, Scan, Strengths, Wanted, wanted
from vcrf.structures.sums import (
    ArcVariances,
    ChainPotentials,
    ChainSums,
    KnownVariances,
    Spare,
    Want,
    empty_output,
)
from vcrf.structures.training_loss import TrainingLoss
from vcrf.structures.triples import (
    TriplePotentials,
    has_plain_triples,
    is_by_triples,
    is_cheaper_by_triples,
    pair_rows,
    scan_triples,
    triple_potentials,
)
from vcrf.types import Bools, Floats, Ints, UInts32
from vcrf.workers import Workers, cut

if TYPE_CHECKING:
    from vcrf.kernels.blocks import PassOutput

LATTICES = ("auto", "dense", "patterns")
# With more labels the dense lattice's exact Hessians cost more than all passes; those of the automaton are drawn.
MOST_DENSE_LABELS = 16
# Up to so many labels a pass over plain pairs, which counts all of them, is the fastest scan of pairs.
MOST_COUNTED_LABELS = 32
_TOKENS_PER_BLOCK = 4096
_MAX_BLOCKS = 64


class Chain:
    """ChainSums over the label sequences of all sentences of a problem, best sequences, scans and Hessians.

    Parameters
    ----------
    problem : Problem
    keep : (n_columns,) bool, the columns that can carry weight (count screening)
    threads : number of threads; results do not depend on it
    lattice : "dense", "patterns", or "auto" for the one that costs less
    keeps_arcs : whether scans keep posteriors of all arcs, as with loss automata
    """

    def __init__(
        self, problem: Problem, keep: Bools, threads: int = 1, lattice: str = "auto", keeps_arcs: bool = False
    ) -> None:
        self.problem, self.keep = problem, keep
        self.n_blocks = int(np.clip(problem.n_tokens // _TOKENS_PER_BLOCK, 1, _MAX_BLOCKS))
        self.is_dense = is_dense(problem, lattice, keeps_arcs)
        if problem.known is not None and (lattice != "auto" or keeps_arcs):
            raise InputError(
                "`known_labels` go with `inference='auto'` and a cost for each wrong label as the loss, or none: the "
                "other ways to sum do not know them."
            )
        self.is_forced = lattice == "patterns"
        self.may_use_pairs = lattice == "auto" and self.is_dense and not keeps_arcs and may_use_pairs(problem)
        check_effort(problem, keep, threads, self.n_blocks, self.is_dense, self.may_use_pairs)
        self.workers = Workers(threads)
        self.sentence_bounds = cut(problem.sent_ptr, self.n_blocks)
        self.spare = Spare(problem.text.n_sentences, problem.n_tokens, problem.n_labels)
        may_count = lattice == "auto" and not keeps_arcs and problem.n_labels <= MOST_COUNTED_LABELS
        self.has_plain_pairs = (self.is_dense or may_count) and has_plain_pairs(problem, keep)
        may_have_triples = lattice == "auto" and not self.is_dense and not keeps_arcs
        self.has_plain_triples = may_have_triples and has_plain_triples(problem, keep)

    @cached_property
    def pair_rows(self) -> Ints:
        """See `structures.triples.pair_rows`."""
        return pair_rows(self.problem, self.keep)

    def close(self) -> None:
        """End the threads."""
        self.workers.close()

    @cached_property
    def groups(self) -> list[KeyGroup]:
        """What features of single labels are scored by."""
        return group_columns(self.problem.columns, self.keep, self.problem.partitions, self.problem.n_tokens)

    @cached_property
    def label_sets(self) -> PairSets:
        """Which labels tokens may have, for passes over weighted pairs."""
        return PairSets(self.problem)

    def compile(self, features: Ints) -> ChainPlan | PairPlan:
        """Arrays for a sorted set of features, with the automaton of their patterns if passes may use it."""
        self.spare.let_go()
        if self.may_use_pairs:
            return compile_pairs(self.problem, features, self.compile_dense)
        return self.compile_dense(features)

    def compile_dense(self, features: Ints) -> ChainPlan:
        """The same, never for passes over weighted pairs."""
        plan = compile_features(self.problem, self.groups, features)
        if self.is_dense:
            return plan
        arcs = compile_arcs(plan, self.problem.n_labels, self.is_forced)
        return replace(plan, arcs=arcs, by_triples=self.has_plain_triples and is_by_triples(plan))

    @property
    def is_convex(self) -> bool:
        """Labels left open make the log of a sum a difference of convex functions."""
        return not self.problem.is_partial

    def work(self, columns: UInts32, kinds: UInts32) -> Ints:
        """Entries that features add to each pass: a longer pattern with a word has one at each of its tokens."""
        if self.may_use_pairs:
            # A pair costs a little at each token: the worst come first, or passes would be those of all pairs.
            return np.where(kinds == 2, max(self.problem.n_tokens // PAIRS_PER_SCAN, 1), 0)
        is_costly = (self.problem.part_sizes(kinds) > 1) & (columns != self.problem.bias_column)
        return np.where(is_costly, np.diff(self.problem.columns.ptr)[columns], 0)

    # ----- sums

    def prepare(
        self,
        plan: ChainPlan | PairPlan,
        w: Floats,
        loss: TrainingLoss,
        purpose: Purpose = Purpose.GRADIENT,
        order: int = 1,
        warm: None = None,  # noqa: ARG002 - sums over chains need no start
    ) -> ChainPotentials | PairPotentials:
        """The plan at the weights; `order` is the length of the longest patterns that are asked for besides its own."""
        if isinstance(plan, PairPlan):
            is_plain = purpose is not Purpose.HESSIAN and loss.automata is None
            if is_plain and (self.problem.known is not None or is_sparse(plan, self.problem.n_labels)):
                return pair_potentials(self, plan, w, purpose is Purpose.SCAN)
            plan = plan.whole
        return self.prepare_dense(plan, w, loss, purpose, order)

    def prepare_dense(
        self, plan: ChainPlan, w: Floats, loss: TrainingLoss, purpose: Purpose = Purpose.GRADIENT, order: int = 1
    ) -> ChainPotentials:
        """The same, never for passes over weighted pairs."""
        if plan.by_triples and purpose is not Purpose.HESSIAN and loss.automata is None:
            is_scan = purpose is Purpose.SCAN
            if is_scan or is_cheaper_by_triples(plan):
                return triple_potentials(self, plan, w, is_scan)
        # Of plain pairs a scan finds all in the counts, which the automaton would look at word by word.
        is_counted = self.has_plain_pairs and purpose is not Purpose.HESSIAN and loss.automata is None
        if not self.is_dense and (arcs_of(plan).is_cheap if purpose is Purpose.GRADIENT else not is_counted):
            return arc_potentials(self, plan, w)
        order = 2 if purpose is Purpose.HESSIAN else max(plan.order, order)
        is_scan, has_automata = purpose is Purpose.SCAN, loss.automata is not None
        has_messages = purpose is Purpose.HESSIAN or (is_scan and order > 1 and not is_counted)
        if has_automata or is_counted:
            # With one label a history the product is no smaller than with two, and passes over pairs are the fastest.
            order = max(order, 2)
        return dense_potentials(self, plan, w, order, Want(has_messages, is_scan, is_scan))

    def empty_output(self, n_slots: int) -> PassOutput:
        """Zeros for a pass to write to."""
        problem = self.problem
        return empty_output(problem.text.n_sentences, problem.n_tokens, problem.n_labels, n_slots)

    def gradient(self, sums: ChainSums | PairSums) -> Floats:
        """Gradient of sum_i weight_i value_i on the plan's features."""
        if isinstance(sums, PairSums):
            return sums.gradient
        plain = sums.potentials.plain_gradient(sums.counts)
        g = gradient_of(sums.plan, sums.residuals, sums.slot_residuals, plain, self.spare, self.workers)
        if sums.plan.components is not None:
            component_gradient(sums.plan.components, sums.plan, sums.of_values, g, self.spare, self.workers)
        pairs = sums.plan.value_pairs
        if pairs is not None and len(pairs):
            g[pairs.features] = _on_pairs(sums).value_pair_gradient(pairs, sums)
        return g

    def curvature(self, sums: ChainSums | PairSums, variances: ArcVariances | KnownVariances | None) -> Floats:
        """Diagonal of the Hessian as if tokens were independent: a scale for steps, no more.

        A residual r = weight * (p - truth) has the variance weight * p (1 - p) = |r| - r^2 / weight.
        Plain tag patterns have the variances of the last scan, and 1 before the first.
        """
        if isinstance(sums, PairSums):
            return sums.potentials.curvature(sums, variances)
        plan, (residuals, slots) = sums.plan, sums.spread
        weights = np.maximum(sums.token_weights, 1e-300)
        per_slot = np.repeat(weights, np.diff(plan.slot_ptr))
        plain = np.ones(len(plan.table_features)) if variances is None else variances.of(plan)
        slots = np.abs(slots) - slots**2 / per_slot
        curvature = gradient_of(plan, residuals, slots, plain, self.spare, self.workers, weights)
        if plan.components is not None:
            spread = plan.components.table.sum_labels(residuals)
            component_gradient(plan.components, plan, spread, curvature, self.spare, self.workers, weights)
        if plan.value_pairs is not None:
            pairs = plan.value_pairs
            curvature[pairs.features] = variances.of_values(pairs) if isinstance(variances, ArcVariances) else 1.0
        return curvature

    # ----- scan

    def wanted(self, mass: Floats, limits: dict[int, Floats]) -> Wanted:
        """What a scan with these limits looks at; mass is the largest |gradient| of a feature of each column."""
        found = wanted(self.keep, mass, limits)
        beyond = 2 if any(len(found.columns.get(kind, ())) for kind in self.problem.pair_kinds) else 1
        return found._replace(longest=self.problem.order, beyond=beyond)

    def scan(self, sums: ChainSums | PairSums, gradient: Floats, wanted: Wanted, may_stop: bool = False) -> Scan:
        """All candidates whose |gradient| exceeds their limit, from sums for a scan and the gradient of their plan.

        On the automaton, longer patterns than 2 are only looked at if their parts have counts above the limits. A
        gradient found for them is the true one up to 1e-7 of the limit, which is added to its size (not in the plan).
        If it may stop, the scan ends where the working set could grow by one label: it is not complete.
        """
        if isinstance(sums, PairSums):
            return scan_pairs(self, sums, wanted)
        if isinstance(sums.potentials, TriplePotentials):
            found = scan_triples(self, sums, wanted)
        elif isinstance(sums.potentials, DensePotentials):
            found = scan_dense(self, Posteriors.of(sums), wanted)
            found = found._replace(variances=ArcVariances(self.problem.n_labels, sums.variances))
        else:
            found = LevelScan(self, sums, gradient, wanted).run(may_stop)
        if self.problem.components is None:
            return found
        of_pairs = _on_pairs(sums).pair_residuals(sums) if wanted.beyond > 1 else None
        return with_components(self, self.problem.components, sums, wanted, found, of_pairs)

    def ascent(self, loss: TrainingLoss, weights: Floats, strengths: Strengths) -> ChainAscent | None:
        """Dual ascent over the sentences; None if there is none."""
        return chain_ascent(self, loss, weights, strengths)

    # ----- second derivatives

    @property
    def has_hessian(self) -> bool:
        """Whether there is one: labels known, no components nor known labels, at most patterns of 2 if dense."""
        problem = self.problem
        is_there = problem.order <= 2 or not self.is_dense
        return is_there and not problem.is_partial and problem.components is None and problem.known is None

    @property
    def hessian_in_passes(self) -> float:
        """What a Hessian of thousands of features costs, about."""
        return 300.0 if self.is_dense else 50.0

    def hessian(self, sums: ChainSums | PairSums, chosen: Ints, stride: int = 1, scale: float = np.inf) -> Floats:
        """Weighted sum of the covariances of the chosen features (indices into the plan), from sums for a Hessian.

        Exact on the dense lattice with stride 1; else from one of `stride` sentences. On the automaton, fine enough for
        gradients of the size `scale`.
        """
        potentials = sums.potentials
        if isinstance(sums, PairSums):
            raise TypeError("No Hessian from passes over weighted pairs.")
        if isinstance(potentials, ArcPotentials):
            return arc_hessian(potentials, sums, chosen, stride, scale)
        if isinstance(potentials, DensePotentials):
            return dense_hessian(potentials, sums, chosen, stride)
        raise TypeError(f"No Hessian with {type(potentials).__name__}.")

    def sentence_gradients(self, sums: ChainSums, chosen: Ints) -> Iterator[tuple[Floats, Floats]]:
        """Weights of the sentences and their weighted gradients on the chosen features, some sentences at a time."""
        potentials = sums.potentials
        if isinstance(potentials, DensePotentials):
            return dense_gradients(potentials, sums, chosen)
        if isinstance(potentials, ArcPotentials):
            return arc_gradients(potentials, sums, chosen)
        raise TypeError(f"No gradients of single sentences with {type(potentials).__name__}.")


def has_plain_pairs(problem: Problem, keep: Bools) -> bool:
    """Whether no pattern is longer than two labels, none of two has a word, and all labels are known."""
    if problem.order != 2 or problem.is_partial:
        return False
    columns = np.flatnonzero(keep & problem.has_order(2))
    return bool(np.all(columns == problem.bias_column))


def _on_pairs(sums: ChainSums) -> DensePotentials:
    """Where pairs of component values are summed."""
    if isinstance(sums.potentials, DensePotentials):
        return sums.potentials
    raise TypeError(f"No pairs of component values with {type(sums.potentials).__name__}.")


def is_dense(problem: Problem, lattice: str, keeps_arcs: bool = False) -> bool:
    """Whether all passes are on the dense lattice; it is "dense", "patterns", or "auto" for the one that costs less.

    With "auto" problems of order 2 are dense up to `MOST_DENSE_LABELS`, and where passes may look at pairs alone,
    unless scans keep posteriors of all arcs and these are too many; else each working set has the cheaper of the two.
    """
    check_lattice(lattice)
    has_value_pairs = len(problem.pair_kinds) > 0
    if has_value_pairs and lattice == "patterns":
        raise InputError(
            "`inference='patterns'` does not know pairs of component values: use 'auto' or 'dense', or leave "
            "`component_pairs` out."
        )
    is_small = problem.order == 2 and (problem.n_labels <= MOST_DENSE_LABELS or may_use_pairs(problem))
    is_small = is_small and not (keeps_arcs and is_too_large(problem, problem.n_labels**2))
    if lattice == "dense" or problem.order < 2 or has_value_pairs or (lattice == "auto" and is_small):
        check_dense(problem.n_labels, problem.order)
        return True
    return False


def check_lattice(lattice: str) -> None:
    """Refuse what is no lattice."""
    if lattice not in LATTICES:
        raise InputError(f"`inference` must be one of {', '.join(map(repr, LATTICES))}, got {lattice!r}.")


def check_dense(n_labels: int, order: int) -> None:
    """Refuse a dense lattice that is too large."""
    if n_labels**order > MAX_ARCS:
        raise BudgetError(
            f"A dense lattice for tag patterns of length {order} over {n_labels} labels has {n_labels**order:,} arcs; "
            f"the budget is {MAX_ARCS:,}. Use `inference='patterns'` or 'auto', a smaller `tags`, or fewer labels."
        )
