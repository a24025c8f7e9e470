"""Smooth surrogates of any loss on a pattern automaton: states are pairs of a context and a state of the loss.

What `surrogates.product` does with all n_labels**order arcs, at the cost of the tag patterns in the working set; see
`kernels.pattern_rows`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf.lattice import PatternLattice
from vcrf.losses.automaton import LossAutomaton
from vcrf.surrogates.active import ActiveSet
from vcrf.surrogates.crf import Scan, _Found
from vcrf.surrogates.patterns import ArcPlan, PatternSurrogate, _plan_of, redo_hard_sentence
from vcrf.surrogates.product import (
    ExponentialProductSurrogate,
    ExponentialSurrogate,
    ProductSurrogate,
    StructBoostSurrogate,
)
from vcrf.surrogates.sentence import log_losses
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.kernels.pattern_scan import Rows
    from vcrf.kernels.product import LossArrays


class PatternProductSurrogate(PatternSurrogate, ProductSurrogate):
    """The crf surrogate with any loss; parameters as for `ProductSurrogate`, and `is_forced`."""

    def scan(self, active: ActiveSet, w: Floats, limits: dict[int, Floats]) -> tuple[float, Scan]:
        """As for `PatternSurrogate`; finds the mean losses as well."""
        with self._finding_means():
            return super().scan(active, w, limits)

    def _arc_chain(self, active: ActiveSet, plan: ArcPlan, clamp: bool) -> _Found:  # noqa: ARG002
        """Forward-backward with the loss; never clamped, because all labels are known."""
        return self._arc_product(active, plan, values_only=False)

    def _product(self, active: ActiveSet, scores: Floats, keep_arcs: bool, values_only: bool) -> _Found:
        if self._is_by_arcs:
            return self._arc_product(active, _plan_of(active), values_only)
        return super()._product(active, scores, keep_arcs, values_only)

    def _arc_product(self, active: ActiveSet, plan: ArcPlan, values_only: bool) -> _Found:
        from vcrf.kernels import pattern_rows

        problem, sentences = self.problem, self._sentences()
        output = self._output(len(self._corrections.score), clamp=False)
        number = {a: i for i, a in enumerate(self._sentence_bounds)}
        counts = np.zeros((len(number), plan.automaton.n_arcs))
        means = self._means if self._wants_means else np.empty_like(self._means)

        def block(first: int, last: int) -> None:
            pattern_rows.rows_pass(
                sentences, self._loss_arrays, first, last, problem.n_labels, active.rows, self._scores, plan.graph,
                self._arcs, self._corrections, self._local, self.picks, values_only, counts[number[first]],
                means, output,
            )  # fmt: skip

        self.workers.run(block, self._sentence_bounds)
        for i in np.flatnonzero(output.hard).tolist():
            lattice, automaton, final = self._hard_product(active, plan, i)
            log_z, marginals, mean = lattice.with_loss(automaton, final)
            means[i] = mean if log_z > -np.inf else 0.0
            redo_hard_sentence(sentences, i, lattice, log_z, marginals, self._local, counts[-1], output)
        return self._found(output, counts)

    def _hard_product(self, active: ActiveSet, plan: ArcPlan, i: int) -> tuple[PatternLattice, LossAutomaton, Floats]:
        """Scores and loss of sentence i for the log domain; the end has the log of the loss if costs are picked."""
        lattice = self._hard_lattice(active, plan, i, clamp=False)
        automaton = self.loss.automaton(self.problem, i)
        if self.picks:
            automaton = automaton.with_values()
            return lattice, automaton, log_losses(automaton)
        return lattice, automaton, automaton.final

    def _n_rows(self, i: int) -> int:
        return ProductSurrogate._n_rows(self, i)

    @property
    def _loss_bounds(self) -> Floats:
        return self._loss_arrays.bound

    def _loss_rows(self) -> tuple[LossArrays, bool]:
        return self._loss_arrays, self.picks

    def _hard_rows(self, active: ActiveSet, plan: ArcPlan, i: int, clamp: bool) -> tuple[Floats, Rows]:  # noqa: ARG002
        from vcrf.kernels.pattern_scan import Rows

        lattice, automaton, final = self._hard_product(active, plan, i)
        ptr = automaton.state_ptr
        successor = automaton.next.reshape(-1).astype(np.uint32)
        return lattice.conditionals_with(automaton, final), Rows(
            np.diff(ptr), ptr[:-1], ptr[:-2], successor, np.zeros(0)
        )

    def hessian(self, active: ActiveSet, w: Floats, chosen: Ints, stride: int = 1) -> Floats:
        """Hessian of a similar surrogate, as in `ProductSurrogate`, on the automaton."""
        if self._similar is None:
            lengths = np.maximum(np.diff(self.problem.sent_ptr), 1)
            self._similar = PatternSurrogate(self.problem, self.keep, self.loss.largest / lengths, 1, is_forced=True)
            self._similar.workers.close()
            self._similar.workers = self.workers
        self.n_passes += 1
        return self._similar.hessian(active, w, chosen, stride)


class PatternExponential(ExponentialSurrogate, PatternSurrogate):
    """The exponential surrogate with the Hamming loss, or none."""

    has_hessian = False


class PatternExponentialProduct(ExponentialProductSurrogate, PatternProductSurrogate):
    """The exponential surrogate with any loss."""

    has_hessian = False


class PatternStructBoost(StructBoostSurrogate, PatternProductSurrogate):
    """The structboost surrogate with any loss."""

    has_hessian = False
