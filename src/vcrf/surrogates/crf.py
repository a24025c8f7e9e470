"""The crf surrogate: (weighted) mean over sentences of log sum_y exp(loss(y) + w.(Psi(x,y) - Psi(x,y_i))).

`CrfSurrogate` evaluates value, gradient and Hessian on an `ActiveSet`, and scans the gradient of all candidates.
Work is cut into fixed blocks, whatever the number of threads, and every sum has a fixed order: the result does
not depend on the threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vcrf.families.keys import group_columns, take_rows
from vcrf.problem import Problem
from vcrf.surrogates.active import ActiveSet, compile_features, firing_of, zero_hessian
from vcrf.surrogates.hard import check_hard, redo_hard_sentence
from vcrf.surrogates.tables import build_tables, fold, slot_corrections
from vcrf.surrogates.workers import Workers, cut
from vcrf.types import Bools, Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.kernels.blocks import PassOutput, Sentences

_TOKENS_PER_BLOCK = 4096
_MAX_BLOCKS = 64
# Residuals of label pairs are kept during a scan that uses each of them so often, if they take no more than so much.
_PAIR_USES = 4
_PAIR_BYTES = 600_000_000


class Scan(NamedTuple):
    """Candidates whose |gradient| exceeds their limit: feature numbers (sorted) and gradients.

    A scan that is not complete has left out longer patterns: it finds violators, and certifies nothing.
    `norms`, of a scan by length, bounds the norm of all gradients of each column (and length) that can exceed a limit;
    of single labels it is inf where one exceeds its limit, and else 0.
    """

    features: Ints
    gradients: Floats
    is_complete: bool = True
    norms: dict[int, Floats] | None = None


class _Found(NamedTuple):
    """What one forward-backward finds; `messages` are the fields of `kernels.gradient.Messages`."""

    values: Floats
    residuals: Floats
    cor_residuals: Floats
    counts: Floats
    messages: tuple[Floats, Floats, Ints, Floats]


def n_blocks(problem: Problem) -> int:
    """Parts that the tokens are cut into, each with counts of its own."""
    return int(np.clip(problem.n_tokens // _TOKENS_PER_BLOCK, 1, _MAX_BLOCKS))


class CrfSurrogate:
    """Value, gradient and scan for one problem.

    Parameters
    ----------
    problem : Problem
    keep : (n_columns,) bool, the columns that can carry weight (count screening)
    cost : scale of the Hamming loss of each sentence, (n_sentences,); zeros for no loss
    threads : number of threads
    """

    has_hessian = True
    # Longest patterns that it is for; None: any.
    hessian_order: int | None = 2
    # Gradients that count, for Hessians that are not exact.
    hessian_scale = np.inf

    def __init__(self, problem: Problem, keep: Bools, costs: Floats, threads: int = 1) -> None:
        self.problem = problem
        self.keep = keep
        self.costs = costs
        # Of each sentence in the gradient; and the largest |gradient| that a feature of each column can have.
        self.weights, self.column_mass = problem.weights, problem.column_mass
        self.workers = Workers(threads)
        self.groups = group_columns(problem.columns, keep, problem.partitions, problem.n_tokens)
        self._n_blocks = n_blocks(problem)
        self._sentence_bounds = cut(problem.sent_ptr, self._n_blocks)
        n_sentences = problem.text.n_sentences
        # Values, residuals and flags of a pass.
        self._buffers = (
            np.zeros(n_sentences),
            np.zeros((problem.n_tokens, problem.n_labels)),
            np.zeros(n_sentences, np.uint32),
        )
        self._arc_variances = np.zeros(0)
        self._pairs: Floats | None = None
        self.n_passes = 0

    def compile(self, features: Ints) -> ActiveSet:
        """Arrays for a sorted set of features."""
        return compile_features(self.problem, self.groups, features)

    # ----- evaluate

    def value_and_gradient(self, active: ActiveSet, w: Floats) -> tuple[float, Floats]:
        """F(w) and its gradient on the active features."""
        self._pass(active, w, active.order)
        return self._value(), self._gradient(active)

    def _value(self) -> float:
        """F at the weights of the last pass."""
        return float(self.problem.weights @ self._values)

    @property
    def token_weights(self) -> Floats:
        """Weight of the sentence of each token, (n_tokens,)."""
        return np.repeat(self.weights, np.diff(self.problem.sent_ptr))

    def _pass(self, active: ActiveSet, w: Floats, order: int, keep_messages: bool = False) -> None:
        """Forward-backward over all sentences; leaves residuals, counts and (on request) messages.

        Where labels are not known, what a second pass over the allowed labels finds stands for the truth.
        """
        self.n_passes += 1
        problem, n_labels = self.problem, self.problem.n_labels
        scores = self._key_scores(active, w)
        self._tables, self._corrections = (
            build_tables(active, w, n_labels, order),
            slot_corrections(active, w, self.workers),
        )
        found = self._chain(active, scores, keep_messages, clamp=False)
        self._values, self._residuals, self._cor_residuals = found.values, found.residuals, found.cor_residuals
        self._counts, self._messages = found.counts, found.messages
        self._spread = found.residuals, found.cor_residuals
        if problem.is_partial:
            truth = self._chain(active, scores, keep_messages, clamp=True)
            self._values = found.values - truth.values
            self._residuals = found.residuals - truth.residuals
            self._cor_residuals = found.cor_residuals - truth.cor_residuals
            self._counts, self._clamped = found.counts - truth.counts, truth.messages

    def _key_scores(self, active: ActiveSet, w: Floats) -> Floats:
        """Scores of single labels by key, (n_rows, n_labels)."""
        from vcrf.kernels import potentials

        scores = np.empty((len(active.row_ptr) - 1, self.problem.n_labels))
        self.workers.run(
            lambda a, b: potentials.key_scores(
                active.row_ptr, active.row_labels, active.row_features, active.row_values, w, a, b, scores
            ),
            active.row_bounds,
        )
        return scores

    def _chain(self, active: ActiveSet, scores: Floats, keep_messages: bool, clamp: bool) -> _Found:
        """One forward-backward; clamped, over the allowed labels of the sentences whose labels are not all known."""
        from vcrf.kernels import blocks, chain

        problem, n_labels, tables = self.problem, self.problem.n_labels, self._tables
        corrections, bounds = self._corrections, self._sentence_bounds
        n_states = n_labels ** max(tables.order - 1, 1)
        n_kept = problem.n_tokens if keep_messages else 0
        kept = np.zeros((n_kept, n_states)), np.zeros((n_kept, n_states))
        number = {a: i for i, a in enumerate(bounds)}
        counts = np.zeros((len(bounds), len(tables.log)))
        is_varied = keep_messages and not clamp
        variances = np.zeros((len(bounds), n_labels**tables.order if is_varied else 0))
        output = self._output(len(corrections.score), clamp)
        sentences = blocks.Sentences(problem.sent_ptr, problem.y, self.costs, self.weights, problem.allowed)
        deep = np.where(problem.deep_weights(tables.order) > 0.0, self.token_weights, 0.0)

        def block(first: int, last: int) -> None:
            if clamp and not np.any(problem.partial_sentences[first:last]):
                return
            t0, t1 = problem.sent_ptr[first], problem.sent_ptr[last]
            if keep_messages:
                messages, back = kept[0][t0:t1], kept[1][t0:t1]
            else:
                # Zeros, because short histories leave a part of the rows unwritten.
                messages, back = np.zeros((t1 - t0, n_states)), np.zeros((t1 - t0, n_states))
            chain.chain_pass(
                sentences, first, last, n_labels, active.rows, scores, tables, corrections, deep[t0:t1], clamp,
                counts[number[first]], messages.reshape(-1), back.reshape(-1), output,
            )  # fmt: skip
            if is_varied:
                chain.arc_variances(
                    n_labels, tables, deep[t0:t1], messages.reshape(-1), back.reshape(-1), variances[number[first]]
                )

        self.workers.run(block, bounds)
        if is_varied:
            self._arc_variances = variances.sum(axis=0)
        hard_rows, hard_arcs = self._redo_hard(active, scores, sentences, clamp, counts[-1], output)
        return _Found(
            output.values, output.residuals.reshape(-1, n_labels), output.cor_residuals, counts.sum(axis=0),
            (*kept, hard_rows, hard_arcs),
        )  # fmt: skip

    def _output(self, n_corrections: int, clamp: bool) -> PassOutput:
        """Arrays for a pass to write to; a clamped one leaves out sentences whose labels are all known."""
        from vcrf.kernels.blocks import PassOutput

        values, residuals, hard = self._buffers
        if clamp:
            values, residuals, hard = np.zeros_like(values), np.zeros_like(residuals), np.zeros_like(hard)
        return PassOutput(values, residuals.reshape(-1), np.zeros(n_corrections), hard)

    def _redo_hard(
        self, active: ActiveSet, scores: Floats, sentences: Sentences, clamp: bool, counts: Floats, output: PassOutput
    ) -> tuple[Ints, Floats]:
        """Do the flagged sentences in the log domain; returns the posteriors of their arcs for the scan."""
        from vcrf.kernels import potentials

        n_labels, tables = self.problem.n_labels, self._tables
        hard_rows = np.full(self.problem.n_tokens, -1, np.int64)
        arcs: list[Floats] = []
        # The posteriors of all of them are kept.
        n_hard = int(np.diff(self.problem.sent_ptr)[output.hard == 1].sum())
        check_hard(n_hard, n_hard, n_labels**tables.order)
        for i in np.flatnonzero(output.hard):
            t0, t1 = self.problem.sent_ptr[i], self.problem.sent_ptr[i + 1]
            node = np.empty((t1 - t0) * n_labels)
            potentials.node_scores(active.rows, scores, t0, t1, node)
            hard_rows[t0:t1] = np.arange(len(arcs), len(arcs) + t1 - t0)
            arcs += redo_hard_sentence(
                sentences,
                int(i),
                n_labels,
                node.reshape(-1, n_labels),
                tables,
                self._corrections,
                clamp,
                counts,
                output,
            )
        hard_arcs = np.zeros((len(arcs), n_labels**tables.order))
        for row, here in enumerate(arcs):
            hard_arcs[row, : len(here)] = here
        return hard_rows, hard_arcs

    @property
    def n_hard(self) -> int:
        """Sentences that the last pass did in the log domain."""
        return int(np.count_nonzero(self._buffers[2]))

    def mean_losses(self) -> Floats:
        """Mean loss of each sentence under exp(loss + score) at the last pass: the cost times the wrong labels."""
        problem = self.problem
        at_truth = self._residuals[np.arange(problem.n_tokens), problem.y]
        wrong = -at_truth / np.where(self.token_weights > 0.0, self.token_weights, 1.0)
        numbers = np.repeat(np.arange(problem.text.n_sentences), np.diff(problem.sent_ptr))
        return self.costs * np.bincount(numbers, wrong, problem.text.n_sentences)

    def gradient_of_last_pass(self, active: ActiveSet) -> Floats:
        """Gradient on the active features at the weights of the last pass."""
        return self._gradient(active)

    def curvatures(self, active: ActiveSet) -> Floats:
        """Diagonal of the Hessian at the last pass as if tokens were independent: a scale for steps, no more.

        A residual r = weight * (p - truth) has the variance weight * p (1 - p) = |r| - r^2 / weight.
        Plain tag patterns have the variances of the last scan.
        """
        token_weights = np.maximum(self.token_weights, 1e-300)
        kept = self._residuals, self._cor_residuals
        residuals, cor_residuals = self._spread
        per_slot = np.repeat(token_weights, np.diff(active.slot_ptr))
        self._residuals = np.abs(residuals) - residuals**2 / token_weights[:, None]
        self._cor_residuals = np.abs(cor_residuals) - cor_residuals**2 / per_slot
        try:
            out = self._gradient(active, is_squared=True)
        finally:
            self._residuals, self._cor_residuals = kept
        out[active.table_features] = self._pattern_variances(active)
        return out

    def _pattern_variances(self, active: ActiveSet) -> Floats:
        """Variances of the plain tag patterns: those of the longest summed over the labels left out."""
        n_labels, out = self.problem.n_labels, np.zeros(len(active.table_features))
        variances = self._arc_variances
        for k in range(active.order, 1, -1):
            if len(variances) < n_labels**k:
                return np.ones(len(out))
            variances = variances.reshape(-1, n_labels**k).sum(axis=0)
            of_length = active.table_sizes == k
            out[of_length] = variances[active.table_codes[of_length]]
        return out

    def hessian(self, active: ActiveSet, w: Floats, chosen: Ints, stride: int = 1) -> Floats:
        """Hessian of F at w on the chosen features (indices into the active set); order 2 at the most.

        Exact with stride 1; else estimated from one of `stride` sentences.
        """
        from vcrf.kernels import hessian

        problem = self.problem
        self._pass(active, w, 2, keep_messages=True)
        prob, token_weights = self._residuals.copy(), self.token_weights
        prob[np.arange(problem.n_tokens), problem.y] += token_weights
        # A sentence of weight 0 has no residuals; its marginals do not matter.
        prob /= np.where(token_weights > 0.0, token_weights, 1.0)[:, None]
        firing = firing_of(active, chosen)
        per_token = np.diff(active.row_ptr)[active.rows].sum(axis=1) + np.diff(active.cor_ptr)
        most = int(per_token.max(initial=0)) + len(firing.table_code)
        out = zero_hessian(chosen)
        n_parts = self.workers.threads
        table = self._tables.exp[self._tables.offsets[2] :]
        self.workers.run(
            lambda part, _: hessian.covariance_half(
                problem.sent_ptr, self.weights, prob, self._messages[0], self._messages[1], table,
                self._corrections, firing, most, len(chosen) + 1, part, n_parts, stride, out,
            ),
            list(range(n_parts + 1)),
        )  # fmt: skip
        hessian.symmetrise(out)
        return out

    def _gradient(self, active: ActiveSet, is_squared: bool = False) -> Floats:
        """Sum the residuals of the last pass over the features' occurrences, times values or their squares."""
        from vcrf.kernels import gradient

        power = 2 if is_squared else 1

        g = np.zeros(len(active))
        key_residual = np.empty((len(active.row_ptr) - 1, self.problem.n_labels))
        self.workers.run(
            lambda a, b: gradient.key_residuals(
                active.key_ptr, active.key_positions, active.row_ptr, self._residuals, a, b, key_residual
            ),
            active.key_bounds,
        )
        for part in active.groups:
            self.workers.run(
                lambda a, b, part=part: gradient.feature_gradient(  # type: ignore[misc]
                    part.group.col_ptr, part.group.col_keys, part.group.col_values**power, part.first_feature,
                    part.n_features, active.labels, part.offset, key_residual, a, b, g,
                ),
                part.bounds,
            )  # fmt: skip
        if len(active.table_features):
            g[active.table_features] = self._table_gradient(active)
        if len(active.cor_features):
            out, values = np.empty(len(active.cor_features)), active.cor_feature_values**power
            self.workers.run(
                lambda a, b: gradient.sum_slots(
                    active.cor_feature_ptr, active.cor_feature_slots, values, self._cor_residuals, a, b, out
                ),
                active.cor_bounds,
            )
            g[active.cor_features] = out
        return g

    def _table_gradient(self, active: ActiveSet) -> Floats:
        """Gradient of the plain tag patterns at the last pass."""
        folded = fold(self._counts, self.problem.n_labels, self._tables)
        return np.asarray(folded[self._tables.offsets[active.table_sizes] + active.table_codes])

    # ----- scan

    def scan(self, active: ActiveSet, w: Floats, limits: dict[int, Floats]) -> tuple[float, Scan]:
        """Value at w, and all candidates whose |gradient| exceeds their limit.

        limits[k] is (n_columns,), the limit of patterns of length k with each column; inf = no candidate.
        Nothing is stored for the candidates that stay below it.
        """
        columns = {k: np.flatnonzero(self.keep & (self.column_mass > limit)) for k, limit in limits.items()}
        order = max([active.order, *(k for k, found in columns.items() if len(found))])
        self._pass(active, w, order, keep_messages=order > 1)
        self._pairs = self._pair_residuals(columns[2]) if self._tables.order == 2 and 2 in columns else None
        found = [self._scan_length(k, which.astype(np.uint32), limits[k][which]) for k, which in columns.items()]
        self._pairs = None
        features = np.concatenate([np.zeros(0, np.int64), *(f for f, _ in found)])
        gradients = np.concatenate([np.zeros(0), *(g for _, g in found)])
        by_number = np.argsort(features, kind="stable")
        return self._value(), Scan(features[by_number], gradients[by_number])

    def _pair_residuals(self, columns: Ints) -> Floats | None:
        """Residuals of label pairs at every token, if the columns to scan use them often and there is room."""
        from vcrf.kernels import gradient

        problem, n_labels = self.problem, self.problem.n_labels
        n_uses = int(np.diff(problem.columns.ptr)[columns].sum())
        is_often = n_uses > 0 and n_uses >= _PAIR_USES * problem.n_tokens
        if not is_often or 8 * problem.n_tokens * n_labels**2 > _PAIR_BYTES:
            return None
        out = np.empty((problem.n_tokens, n_labels, n_labels))
        clamped, is_open = self._open_messages()
        self.workers.run(
            lambda a, b: gradient.pair_residuals(
                problem.sent_ptr[a], problem.sent_ptr[b], problem.starts, problem.y, self.token_weights, n_labels,
                self._tables, self._corrections, gradient.Messages(*self._messages), gradient.Messages(*clamped),
                is_open, out,
            ),
            self._sentence_bounds,
        )  # fmt: skip
        return out

    def _open_messages(self) -> tuple[Any, Bools]:
        """Messages over the allowed labels, and which tokens are in sentences whose labels are not all known."""
        problem = self.problem
        if not problem.is_partial:
            return self._messages, np.zeros(0, bool)
        return self._clamped, np.repeat(problem.partial_sentences, np.diff(problem.sent_ptr))

    def allow_short_scans(self, is_allowed: bool) -> None:
        """Whether the next scans may be incomplete (see `Scan`); here none is."""

    def _scan_length(self, k: int, columns: UInts32, limits: Floats) -> tuple[Ints, Floats]:
        if len(columns) == 0:
            return np.zeros(0, np.int64), np.zeros(0)
        counts = np.diff(self.problem.columns.ptr)[columns]
        bounds = cut(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), self._n_blocks)
        allowed_ptr, allowed = self._allowed(k, columns)
        found: dict[int, tuple[UInts32, UInts32, Floats]] = {}

        def block(a: int, b: int) -> None:
            part = (allowed_ptr[a : b + 1], allowed) if len(allowed_ptr) else (allowed_ptr, allowed)
            room = max(4 * (b - a), 1024)
            while True:
                out = np.empty(room, np.uint32), np.empty(room, np.uint32), np.empty(room)
                n = self._scan_block(k, columns[a:b], limits[a:b], part, out)
                if n <= room:
                    break
                room = n
            found[a] = out[0][:n], out[1][:n], out[2][:n]

        self.workers.run(block, bounds)
        parts = [found[a] for a in sorted(found)]
        features = [self.problem.join_features(column, k, code) for column, code, _ in parts]
        return np.concatenate(features), np.concatenate([g for _, _, g in parts])

    def _scan_block(
        self,
        k: int,
        columns: UInts32,
        limits: Floats,
        allowed: tuple[Ints, UInts32],
        out: tuple[UInts32, UInts32, Floats],
    ) -> int:
        from vcrf.kernels import gradient

        problem, table = self.problem, self.problem.columns
        ptr, codes = allowed
        found_column, found_code, found_grad = out
        if k == 1:
            n = gradient.scan_labels(
                table.ptr, table.positions, table.values, columns, limits, ptr, codes, self._residuals,
                found_column, found_code, found_grad,
            )  # fmt: skip
        elif k == 2 and self._pairs is not None:
            n = gradient.scan_pairs(
                table.ptr, table.positions, table.values, columns, limits, ptr, codes, problem.y, self.token_weights,
                self._residuals, self._pairs, problem.is_partial, found_column, found_code, found_grad,
            )  # fmt: skip
        else:
            clamped, is_open = self._open_messages()
            n = gradient.scan_patterns(
                table.ptr, table.positions, table.values, columns, k, limits, ptr, codes, problem.starts, problem.y,
                self.token_weights, problem.n_labels, self._tables, self._corrections,
                gradient.Messages(*self._messages), gradient.Messages(*clamped), is_open,
                found_column, found_code, found_grad,
            )  # fmt: skip
        return int(n)

    def _allowed(self, k: int, columns: UInts32) -> tuple[Ints, UInts32]:
        """Candidate codes of the scanned columns if only observed pairs are candidates."""
        if not self.problem.observed_for(k):
            return np.zeros(0, np.int64), np.zeros(0, np.uint32)
        width = self.problem.n_labels**k
        codes = self.problem.observed(k)
        ptr = np.searchsorted(codes, np.arange(len(self.problem.columns) + 1) * width)
        out_ptr, picked, _ = take_rows(ptr, (codes % width).astype(np.uint32), np.zeros(0), columns.astype(np.int64))
        return out_ptr, picked
