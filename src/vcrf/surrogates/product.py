"""Smooth surrogates of any loss in training: crf, structboost and exponential on the product lattice.

    crf           (weighted) mean of f_i,   f_i = log sum_y exp(loss(y) + w.(Psi(x_i, y) - Psi(x_i, y_i)))
    exponential   log of the mean of exp(f_i)        = log(1 + mean of sum_{y != y_i} exp(loss(y) + w.delta(y)))
    structboost   log(1 + mean of F_i),     F_i = sum_y loss(y) exp(w.delta(y))

The last two take the logarithm of 1 + the paper's objective. It is increasing, so that the path of solutions is the
same; nothing overflows; and, unlike the logarithm of the objective alone, it is not negative, so that a minimum exists
for every positive strength and the certificate of `solvers.certificate` holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from vcrf.errors import BudgetError
from vcrf.lattice import DenseLattice
from vcrf.problem import Problem
from vcrf.surrogates import sentence
from vcrf.surrogates.active import ActiveSet
from vcrf.surrogates.compiled_loss import CompiledLoss
from vcrf.surrogates.crf import CrfSurrogate, Scan, _Found
from vcrf.surrogates.hard import check_hard, lattice_arcs, write_posterior
from vcrf.surrogates.log_mean_hessian import SimilarCrf, add_between, wrong_labels
from vcrf.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from vcrf.kernels.blocks import PassOutput, Sentences
    from vcrf.kernels.product import LossArrays

# The scan reads the posteriors of all arcs of all tokens.
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
            f"{problem.n_tokens:,} tokens; the budget is {MAX_ARC_BYTES / 2**30:.0f} GiB. Use inference='patterns', "
            "or a smaller `tags`."
        )


class ProductSurrogate(CrfSurrogate):
    """Value, gradient and scan of the crf surrogate with any loss; the contract is that of `CrfSurrogate`."""

    picks = False

    def __init__(self, problem: Problem, keep: Bools, loss: CompiledLoss, threads: int = 1) -> None:
        super().__init__(problem, keep, np.zeros(problem.text.n_sentences), threads)
        self.loss = loss
        self._similar: CrfSurrogate | None = None
        self._loss_arrays = _arrays(loss, self.picks)
        self._means = np.zeros(problem.text.n_sentences)
        self._wants_means = False

    def scan(self, active: ActiveSet, w: Floats, limits: dict[int, Floats]) -> tuple[float, Scan]:
        """As for `CrfSurrogate`; finds the mean losses as well."""
        with self._finding_means():
            return super().scan(active, w, limits)

    @contextmanager
    def _finding_means(self) -> Iterator[None]:
        """Passes in here write the mean losses; others leave those of the last scan alone."""
        self._wants_means = True
        try:
            yield
        finally:
            self._wants_means = False

    def _pass(self, active: ActiveSet, w: Floats, order: int, keep_messages: bool = False) -> None:
        # With one label a history the product is no smaller than with two.
        super()._pass(active, w, max(order, 2), keep_messages)

    def _chain(self, active: ActiveSet, scores: Floats, keep_messages: bool, clamp: bool) -> _Found:  # noqa: ARG002
        """Forward-backward on the product; never clamped, because all labels are known."""
        return self._product(active, scores, keep_messages, values_only=False)

    def _product(self, active: ActiveSet, scores: Floats, keep_arcs: bool, values_only: bool) -> _Found:
        from vcrf.kernels import blocks, product

        problem, n_labels, tables = self.problem, self.problem.n_labels, self._tables
        cor, bounds = self._corrections, self._sentence_bounds
        n_arcs = n_labels**tables.order
        if keep_arcs:
            check_arcs(problem, n_arcs)
        arcs = np.zeros((problem.n_tokens if keep_arcs else 0, n_arcs))
        number = {a: i for i, a in enumerate(bounds)}
        counts = np.zeros((len(bounds), len(tables.log)))
        variances = np.zeros((len(bounds), n_arcs if keep_arcs else 0))
        means = self._means if self._wants_means else np.zeros(0)
        output = self._output(len(cor.score), clamp=False)
        sentences = blocks.Sentences(
            problem.sent_ptr, problem.y, self.costs, self.weights, problem.allowed, self._loss_arrays.bound
        )

        def block(first: int, last: int) -> None:
            t0, t1 = problem.sent_ptr[first], problem.sent_ptr[last]
            kept = arcs[t0:t1] if keep_arcs else arcs
            product.product_pass(
                sentences, self._loss_arrays, first, last, n_labels, active.rows, scores, tables, cor, self.picks,
                values_only, counts[number[first]], kept, means, output,
            )  # fmt: skip
            if keep_arcs:
                product.arc_variances(
                    problem.sent_ptr, first, last, self.weights, tables.order, kept, variances[number[first]]
                )

        self.workers.run(block, bounds)
        if keep_arcs:
            self._arc_variances = variances.sum(axis=0)
        self._do_hard(active, scores, sentences, counts[-1], arcs, output)
        # The scan finds the posteriors of the arcs in a list, as it does for hard sentences; there are no messages.
        rows = np.arange(problem.n_tokens) if keep_arcs else np.full(problem.n_tokens, -1, np.int64)
        none = np.zeros((0, n_labels ** (tables.order - 1)))
        return _Found(
            output.values, output.residuals.reshape(-1, n_labels), output.cor_residuals, counts.sum(axis=0),
            (none, none, rows, arcs),
        )  # fmt: skip

    def _do_hard(
        self, active: ActiveSet, scores: Floats, sentences: Sentences, counts: Floats, arcs: Floats, output: PassOutput
    ) -> None:
        """Do the flagged sentences in the log domain."""
        from vcrf.kernels import potentials

        n_labels, tables = self.problem.n_labels, self._tables
        for i in np.flatnonzero(output.hard).tolist():
            t0, t1 = int(self.problem.sent_ptr[i]), int(self.problem.sent_ptr[i + 1])
            check_hard(t1 - t0, self._n_rows(i), n_labels**tables.order)
            node = np.empty((t1 - t0) * n_labels)
            potentials.node_scores(active.rows, scores, t0, t1, node)
            scored = lattice_arcs(node.reshape(-1, n_labels), t0, n_labels, tables, self._corrections)
            lattice = DenseLattice(scored, n_labels, tables.order)
            value, posterior, mean = self._log_domain(lattice, i)
            if self._wants_means:
                self._means[i] = mean
            output.values[i] = value - lattice.score(self.problem.y[t0:t1].astype(np.int64))
            flat = write_posterior(posterior, sentences, i, n_labels, tables, self._corrections, counts, output)
            for t, here in enumerate(flat if len(arcs) else []):
                arcs[t0 + t, : len(here)] = here

    def hessian(self, active: ActiveSet, w: Floats, chosen: Ints, stride: int = 1) -> Floats:
        """Hessian of a similar surrogate, with the largest loss spread evenly over the labels, as in a Hamming loss.

        Newton steps are then quasi-Newton steps: they are searched along, and certified, with the loss itself.
        """
        if self._similar is None:
            lengths = np.maximum(np.diff(self.problem.sent_ptr), 1)
            self._similar = CrfSurrogate(self.problem, self.keep, self.loss.largest / lengths, 1)
            self._similar.workers.close()
            self._similar.workers = self.workers
        self.n_passes += 1
        return self._similar.hessian(active, w, chosen, stride)

    def mean_losses(self) -> Floats:
        """Mean loss of each sentence under exp(loss + score) at the last scan."""
        return self._means.copy()

    def _n_rows(self, i: int) -> int:
        """States of the loss automaton of a sentence, over its tokens."""
        automaton = self.loss.automaton(self.problem, i)
        return int((automaton.with_values() if self.picks else automaton).state_ptr[-1])

    def _log_domain(self, lattice: DenseLattice, i: int) -> tuple[float, Floats, float]:
        """Log of the sum, posteriors of the arcs and mean loss of a hard sentence."""
        automaton, final = self.loss.automaton(self.problem, i), None
        if self.picks:
            automaton = automaton.with_values()
            final = sentence.log_losses(automaton)
        return sentence.arc_posteriors(lattice, automaton, final)


class _LogMean(CrfSurrogate):
    """The log of `rest` + the weighted sum of exp(value of a sentence): two sweeps, values first, then shares.

    A sentence weighs in the gradient with its share of the sum; shares sum to 1 at the most.
    """

    @property
    def rest(self) -> float:
        """What stands for the 1: exp(f_i) has it in each sentence, so that with weights of sum 1 nothing is left."""
        rest = 1.0 - float(self.problem.weights.sum())
        return rest if abs(rest) > 1e-12 else 0.0

    def _chain(self, active: ActiveSet, scores: Floats, keep_messages: bool, clamp: bool) -> _Found:
        self.weights = self.problem.weights
        with np.errstate(divide="ignore"):
            terms = self._find_values(active, scores) + np.log(self.problem.weights)
        peak = max(float(terms.max(initial=-np.inf)), 0.0 if self.rest else -np.inf)
        total = self.rest * np.exp(-peak) + float(np.exp(terms - peak).sum())
        # Not negative, but for rounding.
        self._log_mean = max(peak + float(np.log(total)), 0.0)
        self.weights = np.exp(terms - self._log_mean)
        return super()._chain(active, scores, keep_messages, clamp)

    def _find_values(self, active: ActiveSet, scores: Floats) -> Floats:
        return super()._chain(active, scores, False, False).values.copy()

    def _value(self) -> float:
        return self._log_mean


class ExponentialSurrogate(_LogMean):
    """The exponential surrogate with the Hamming loss, or none, on the plain lattice."""

    def hessian(self, active: ActiveSet, w: Floats, chosen: Ints, stride: int = 1) -> Floats:
        """Exact with stride 1: covariances within sentences, of sentences weighted by their shares, and between."""
        out = super().hessian(active, w, chosen, stride)
        add_between(self, active, chosen, out)
        return out


class _ProductLogMean(_LogMean, ProductSurrogate):
    _similar_crf: SimilarCrf | None = None

    def _find_values(self, active: ActiveSet, scores: Floats) -> Floats:
        return self._product(active, scores, keep_arcs=False, values_only=True).values.copy()

    def hessian(self, active: ActiveSet, w: Floats, chosen: Ints, stride: int = 1) -> Floats:
        """Hessian of a similar surrogate, with this one's shares of the sentences; see `log_mean_hessian`."""
        if self._similar_crf is None:
            self._similar_crf = SimilarCrf(self, is_given_wrong=self.picks)
        self._pass(active, w, 2)
        before = self._similar_crf.crf.n_passes
        out = self._similar_crf.hessian(active, w, chosen, stride, self.weights, wrong_labels(self))
        self.n_passes += self._similar_crf.crf.n_passes - before
        return out


class ExponentialProductSurrogate(_ProductLogMean):
    """The exponential surrogate with any loss."""


class StructBoostSurrogate(_ProductLogMean):
    """The structboost surrogate with any loss."""

    picks = True
    rest = 1.0


def largest_sentence_mass(problem: Problem) -> Floats:
    """Largest |gradient| of a feature of each column under `_LogMean`: its largest mass in one sentence."""
    columns = problem.columns
    size = np.abs(columns.values) if len(columns.values) else np.ones(len(columns.positions))
    if not len(size):
        return np.zeros(len(columns))
    number = np.searchsorted(problem.sent_ptr, columns.positions, side="right").astype(np.int64)
    column = np.repeat(np.arange(len(columns)), np.diff(columns.ptr))
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(number) != 0) | (np.diff(column) != 0)]))
    out = np.zeros(len(columns))
    np.maximum.at(out, column[begins], np.add.reduceat(size, begins))
    return out


def _arrays(loss: CompiledLoss, picks: bool) -> LossArrays:
    from vcrf.kernels.product import LossArrays

    def factors(cost: Floats) -> Floats:
        return cost if picks else np.exp(np.clip(cost, -700.0, 700.0))

    return LossArrays(
        loss.first, loss.width, loss.successor.reshape(-1), loss.cost.reshape(-1), factors(loss.cost).reshape(-1),
        loss.final_ptr, loss.final, factors(loss.final), factors(loss.init),
        np.zeros_like(loss.largest) if picks else loss.largest,
    )  # fmt: skip
