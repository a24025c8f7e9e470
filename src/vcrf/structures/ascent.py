"""Dual ascent on chains: weights to begin with, from visits to one sentence after another.

Order 1 and plain pairs of labels take part; longer patterns, and pairs with words, begin at zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels, scratch
from vcrf.structures.plan import compile_features
from vcrf.structures.structure import Strengths
from vcrf.structures.training_loss import TrainingLoss
from vcrf.types import Floats, Floats32, Ints, UInts8

if TYPE_CHECKING:
    from vcrf.structures.chain import Chain

# Bytes that an ascent may take for an entry (column, token) of the problem: a fraction of what steps take.
_MOST_BYTES = 64
_COLUMNS_AT_ONCE = 4096


class ChainAscent:
    """A distribution over the label sequences of each sentence, and the sums of features that follow from it."""

    def __init__(self, chain: Chain, loss: TrainingLoss, weights: Floats, strengths: Strengths) -> None:
        self.problem, self._chain = chain.problem, chain
        problem, n_labels = chain.problem, chain.problem.n_labels
        self._columns = np.flatnonzero(chain.keep & np.isfinite(strengths.limits[1]))
        of_label = compile_features(problem, chain.groups, self._features(1, self._columns, 0))
        self._rows = kernels.dual_ascent.TokenColumns(
            of_label.rows,
            of_label.row_ptr,
            of_label.row_features,
            of_label.row_values.astype(np.float32) if len(of_label.row_values) else np.ones(1, np.float32),
        )
        self._members = self._find_members(strengths)
        self._sentences = kernels.blocks.Sentences(problem.sent_ptr, problem.y, loss.costs, weights, problem.allowed)
        labels = scratch.zeros((problem.n_tokens, n_labels), np.float32)
        labels[np.arange(problem.n_tokens), problem.y] = 1.0
        has_pairs = self._members.pairs >= 0
        # After the last column there is room for what fills a register up.
        sums = scratch.zeros((len(self._columns) + kernels.registers.FLOATS, n_labels), np.float32)
        pair_sums = self._true_pairs() if has_pairs else np.zeros((0, 0), np.float32)
        self._dual = kernels.dual_ascent.Dual(
            sums, np.zeros((n_labels, n_labels)), labels, pair_sums, np.full(self.n_examples, np.inf)
        )

    @property
    def n_examples(self) -> int:
        """Sentences."""
        return self.problem.text.n_sentences

    @property
    def left(self) -> Floats:
        """How far the last visit to each sentence found its two posteriors apart, inf before the first."""
        return self._dual.left

    def visit(self, order: Ints) -> None:
        """Visit sentences, one after another."""
        longest = int(np.diff(self.problem.sent_ptr).max(initial=1))
        kernels.dual_ascent.visit(order, longest, self._sentences, self._rows, self._members, self._dual)

    def weights(self) -> tuple[Ints, Floats]:
        """Features, sorted, and weights that are not 0."""
        features, w = self._nonzero(1, self._columns, self._dual.columns[: len(self._columns)], self._members.group)
        if self._members.pairs < 0:
            return features, w
        bias, group = np.array([self.problem.bias_column]), np.array([self._members.pairs])
        pairs = self._dual.pairs.reshape(1, -1).astype(np.float32)
        more, more_w = self._nonzero(2, bias, pairs, group)
        features, w = np.concatenate([features, more]), np.concatenate([w, more_w])
        order = np.argsort(features)
        return features[order], w[order]

    def _nonzero(self, kind: int, columns: Ints, z: Floats32, group: Ints) -> tuple[Ints, Floats]:
        """Features of some columns, and their weights that are not 0; a part of the columns at a time, for memory."""
        features, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
        for first in range(0, len(z), _COLUMNS_AT_ONCE):
            part = slice(first, first + _COLUMNS_AT_ONCE)
            w = self._weights_of(z[part], group[part])
            row, assignment = np.nonzero(w)
            features.append(self._features(kind, columns[part][row], assignment))
            weights.append(w[row, assignment])
        return np.concatenate(features), np.concatenate(weights)

    def _weights_of(self, z: Floats32, group: Ints) -> Floats:
        """Sum over the members k of each row's group of soft(z, l1_k) / l2_k."""
        w, ptr = scratch.zeros(z.shape), self._members.ptr
        sizes = np.diff(ptr)[group]
        for k in range(int(sizes.max(initial=0))):
            some = np.flatnonzero(sizes > k)
            members, size = ptr[group[some]] + k, np.abs(z[some])
            excess = np.maximum(size - self._members.l1[members, None], 0.0) * self._members.inverse[members, None]
            w[some] += np.sign(z[some]) * excess
        return w

    def _features(self, kind: int, columns: Ints, assignments: Ints | int) -> Ints:
        each = np.broadcast_to(assignments, columns.shape).astype(np.uint32)
        return self.problem.join_features(columns.astype(np.uint32), kind, each)

    def _find_members(self, strengths: Strengths) -> kernels.dual_ascent.Members:
        problem, n_labels = self.problem, self.problem.n_labels
        bias = problem.bias_column
        # With components kind 2 are their values where tag patterns have one label.
        has_pairs = problem.order >= 2 and 2 in strengths.groups and bias >= 0
        has_pairs = has_pairs and bool(np.isfinite(strengths.limits[2][bias]))
        pair_labels = np.ones((n_labels, n_labels), np.uint8)
        if has_pairs and problem.observed_for(2):
            pair_labels[:] = _is_observed(problem.observed(2), np.array([bias]), n_labels**2).reshape(n_labels, -1)
        labels = np.ones((0, n_labels), np.uint8)
        if problem.observed_for(1):
            labels = _is_observed(problem.observed(1), self._columns, n_labels)
        return kernels.dual_ascent.Members(
            strengths.groups[1][self._columns], int(strengths.groups[2][bias]) if has_pairs else -1, strengths.ptr,
            strengths.l1.astype(np.float32), (1.0 / strengths.l2).astype(np.float32), labels, pair_labels,
        )  # fmt: skip

    def _true_pairs(self) -> Floats32:
        """How often each pair of labels stands in each sentence, (n_sentences, L * L)."""
        problem, n_labels = self.problem, self.problem.n_labels
        second = np.flatnonzero(problem.has_part(2))
        pairs = scratch.zeros((self.n_examples, n_labels * n_labels), np.float32)
        codes = problem.y[second - 1].astype(np.int64) * n_labels + problem.y[second]
        np.add.at(pairs, (problem.example_of[second], codes), np.float32(1.0))
        return pairs


def _is_observed(codes: Ints, columns: Ints, width: int) -> UInts8:
    """Which assignments of each column are among the codes column * width + assignment, (n_columns, width)."""
    wanted = columns[:, None] * width + np.arange(width)
    return np.isin(wanted, codes).astype(np.uint8)


def chain_ascent(chain: Chain, loss: TrainingLoss, weights: Floats, strengths: Strengths) -> ChainAscent | None:
    """The ascent of a problem; None where there is none, or where it would take too much memory.

    Labels left open have no concave dual, and a loss automaton no posteriors of single labels.
    """
    problem = chain.problem
    if problem.is_partial or problem.known is not None or loss.automata is not None or not np.any(chain.keep):
        return None
    n_labels, n_columns = problem.n_labels, int(np.count_nonzero(chain.keep))
    n_bytes = 4 * n_labels * (n_columns + problem.n_tokens + problem.text.n_sentences * n_labels)
    if n_bytes > _MOST_BYTES * len(problem.columns.positions):
        return None
    return ChainAscent(chain, loss, weights, strengths)
