"""Scores of all label sequences of a text under a model, and what follows from them: best sequences, probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from vcrf import kernels
from vcrf.errors import BudgetError
from vcrf.lattice import DenseLattice, Lattice
from vcrf.types import Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.kernels.scores import LocalScores, ScoreTables

# A gigabyte of arcs in one lattice.
MAX_LATTICE = 1 << 27

Number = TypeVar("Number", np.float64, np.uint32)


@dataclass(frozen=True, eq=False)
class Potentials:
    """Scores of all sentences of a text under a model.

    Attributes
    ----------
    sent_ptr : (n_sentences + 1,) int64
    node : (n_tokens, n_labels) float64, scores of single labels; -inf where a label is forbidden
    tables : pattern length k >= 2 -> (n_labels**k,) float64, scores of plain tag patterns by code
    local : patterns of length 2 or more that fire at one token only, CSR over tokens
    order : longest pattern with a weight, at least 1
    arcs : the tables summed up, if they are at hand: see `sum_tables`
    """

    sent_ptr: Ints
    node: Floats
    tables: dict[int, Floats]
    local: LocalScores
    order: int
    arcs: ScoreTables | None = None

    def __len__(self) -> int:
        return len(self.sent_ptr) - 1

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.node.shape[1])

    def decode(self) -> list[UInts32]:
        """Best labels of each sentence, as label numbers; of equal sequences the first by labels."""
        return self._by_sentence(self.decode_tokens())

    def decode_tokens(self) -> UInts32:
        """The same for all tokens in one array."""
        flat = np.empty(len(self.node), np.uint32)
        if self.order == 1:
            flat[:] = self.node.argmax(axis=1)
        elif self.order == 2 and not len(self.local.code):
            table, node = self._arc_tables.natural[self.n_labels :], np.ascontiguousarray(self.node).reshape(-1)
            kernels.plain_decode.best_labels(self.sent_ptr, self.n_labels, node, table, flat)
        elif len(flat):
            kernels.decode.viterbi(self.sent_ptr, self.order, self.node, self._arc_tables, self.local, flat)
        return flat

    def lattice(self, i: int) -> Lattice:
        """All label sequences of sentence i.

        Raises
        ------
        BudgetError
            When the sentence is too long for a table of all arcs.
        """
        first, last = self.sent_ptr[i], self.sent_ptr[i + 1]
        if int(last - first) * self.n_labels**self.order > MAX_LATTICE:
            raise BudgetError(
                f"A sentence of {last - first:,} tokens with {self.n_labels} labels and tag patterns of length "
                f"{self.order} has more than {MAX_LATTICE:,} arcs. Split the sentence, or ask for less: labels and "
                "marginals need no table of arcs."
            )
        arcs = np.zeros((last - first, self.n_labels**self.order))
        kernels.posterior.dense_arcs(first, self.order, self.node, self._arc_tables, self.local, arcs)
        shape = (last - first, self.n_labels ** (self.order - 1), self.n_labels)
        return DenseLattice(arcs.reshape(shape), self.n_labels, self.order)

    def label_marginals(self) -> list[Floats]:
        """Posterior of every label, one array (n_positions, n_labels) a sentence."""
        marginals = np.empty(self.node.shape)
        self._posterior(marginals)
        return self._by_sentence(marginals)

    def log_partitions(self) -> Floats:
        """Log of the sum over label sequences of exp(score), (n_sentences,); -inf where all are forbidden."""
        return self._posterior(np.empty((0, self.n_labels)))

    def take(self, sentences: Ints) -> Potentials:
        """The potentials of some sentences, in any order and as often as asked for."""
        ptr, node, local = take_tokens(self, sentences)
        return Potentials(ptr, node, self.tables, local, self.order)

    def scaled(self, factor: float) -> Self:
        """All scores times a positive factor: 1 / temperature. The order of the sequences stays."""
        tables = {k: table * factor for k, table in self.tables.items()}
        local = self.local._replace(score=self.local.score * factor)
        return replace(self, node=self.node * factor, tables=tables, local=local, arcs=None)

    # ---- internal ----

    def _posterior(self, marginals: Floats) -> Floats:
        """Log partitions; the marginals are written unless they have no rows."""
        if self.order == 1:
            return self._independent(marginals)
        log_z = np.zeros(len(self))
        if len(self.node):
            tables = self._arc_tables
            kernels.posterior.label_marginals(
                self.sent_ptr, self.order, self.node, tables, self.local, log_z, marginals
            )
        return log_z

    def _independent(self, marginals: Floats) -> Floats:
        """The same at order 1, where tokens are independent."""
        peak = self.node.max(axis=1, initial=-np.inf)
        weights = np.exp(self.node - np.where(peak > -np.inf, peak, 0.0)[:, None])
        total = weights.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # a token where everything is forbidden
            if len(marginals):
                np.divide(weights, total[:, None], out=marginals)
            log_total = peak + np.log(total)
        log_z = np.zeros(len(self))
        np.add.at(log_z, np.repeat(np.arange(len(self)), np.diff(self.sent_ptr)), log_total)
        return log_z

    def _by_sentence(self, flat: NDArray[Number]) -> list[NDArray[Number]]:
        return [flat[first:last] for first, last in pairwise(self.sent_ptr.tolist())]

    @cached_property
    def _arc_tables(self) -> ScoreTables:
        return sum_tables(self.tables, self.n_labels, self.order) if self.arcs is None else self.arcs


def sum_tables(tables: dict[int, Floats], n_labels: int, order: int) -> kernels.scores.ScoreTables:
    """Scores of plain tag patterns of all lengths, summed for arcs of each depth."""
    depths = [np.zeros(n_labels)]
    for k in range(2, order + 1):
        # Patterns that fit at depth k - 1 fit here too: the same score whatever the oldest label.
        depths.append(np.tile(depths[-1], n_labels) + tables.get(k, 0.0))
    offsets = np.cumsum([0, 0, *map(len, depths)], dtype=np.int64)
    full = np.ascontiguousarray(depths[-1].reshape(n_labels, -1).T).reshape(-1)
    return kernels.scores.ScoreTables(offsets, np.concatenate(depths), full)


def take_tokens(scores: Potentials, sentences: Ints) -> tuple[Ints, Floats, kernels.scores.LocalScores]:
    """Pointers, node scores and local patterns of the chosen sentences."""
    ptr, tokens = _rows(scores.sent_ptr, sentences)
    local_ptr, entries = _rows(scores.local.ptr, tokens)
    size, code, score = scores.local.size[entries], scores.local.code[entries], scores.local.score[entries]
    return ptr, scores.node[tokens], kernels.scores.LocalScores(local_ptr, size, code, score)


def _rows(ptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Pointers of the chosen rows of a CSR array, and where their entries are."""
    counts = np.diff(ptr)[rows]
    new = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return new, np.repeat(ptr[rows] - new[:-1], counts) + np.arange(new[-1])
