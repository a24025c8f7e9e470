"""Sentences whose potentials span too many nats for scaled messages, done in the log domain.

They are rare (weights in the hundreds), so this path is plain: one dense lattice a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from vcrf.errors import BudgetError
from vcrf.lattice import DenseLattice
from vcrf.types import Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.kernels.blocks import PassOutput, Sentences
    from vcrf.kernels.scores import FactorTables, LocalFactors


# What the log domain may take; as much as the posteriors of arcs in a scan.
MAX_HARD_BYTES = 4 * 2**30


def check_hard(n_tokens: int, n_rows: int, n_arcs: int) -> None:
    """Refuse to do sentences in the log domain beyond the budget: scores and posteriors of arcs in so many rows."""
    n_bytes = 2 * 8 * n_rows * n_arcs
    if n_bytes > MAX_HARD_BYTES:
        raise BudgetError(
            f"{n_tokens:,} tokens whose scores span more than 600 nats are summed in the log domain, which needs "
            f"{n_bytes / 2**30:.1f} GiB for {n_arcs:,} arcs in {n_rows:,} rows; the budget is "
            f"{MAX_HARD_BYTES / 2**30:.0f} GiB. Use greater strengths, so that the weights stay smaller, a smaller "
            "`tags`, or shorter sentences."
        )


def redo_hard_sentence(
    sentences: Sentences,
    i: int,
    n_labels: int,
    node: Floats,
    tables: FactorTables,
    cor: LocalFactors,
    clamp: bool,
    counts: Floats,
    out: PassOutput,
) -> list[Floats]:
    """Value, residuals and counts of one sentence; returns the arcs' posteriors of each token, flat.

    `node` is (length, n_labels), the scores of single labels without the loss.
    """
    start, stop = int(sentences.ptr[i]), int(sentences.ptr[i + 1])
    y = sentences.y[start:stop].astype(np.int64)
    node = with_loss(sentences, i, node, clamp)
    lattice = DenseLattice(lattice_arcs(node, start, n_labels, tables, cor), n_labels, tables.order)
    out.values[i] = lattice.log_partition() - lattice.score(y)
    return write_posterior(lattice.arc_marginals(), sentences, i, n_labels, tables, cor, counts, out)


def write_posterior(
    posterior: Floats,
    sentences: Sentences,
    i: int,
    n_labels: int,
    tables: FactorTables,
    cor: LocalFactors,
    counts: Floats,
    out: PassOutput,
) -> list[Floats]:
    """Residuals and counts of one sentence from its arcs' posteriors, which are returned token by token, flat."""
    start, stop = int(sentences.ptr[i]), int(sentences.ptr[i + 1])
    y, weight = sentences.y[start:stop].astype(np.int64), float(sentences.weights[i])
    flat = []
    for t in range(len(y)):
        depth = min(t + 1, tables.order)
        here = posterior[t, : n_labels ** (depth - 1)].reshape(-1)
        truth = _code(y, t, depth, n_labels)
        out.residuals[(start + t) * n_labels : (start + t + 1) * n_labels] = weight * posterior[t].sum(axis=0)
        out.residuals[(start + t) * n_labels + y[t]] -= weight
        first = tables.offsets[depth]
        counts[first : first + len(here)] += weight * here
        counts[first + truth] -= weight
        for k, where in _corrections_at(cor, start + t, depth):
            mass = here.reshape(-1, n_labels**k).sum(axis=0)
            mass[_code(y, t, k, n_labels)] -= 1.0
            out.cor_residuals[where] = weight * mass[cor.code[where]]
        flat.append(here)
    return flat


def with_loss(sentences: Sentences, i: int, node: Floats, clamp: bool) -> Floats:
    """Node scores plus the loss of wrong labels, or, clamped, minus infinity at labels that are not allowed."""
    start, stop = int(sentences.ptr[i]), int(sentences.ptr[i + 1])
    if len(sentences.allowed):
        is_right = sentences.allowed[start:stop] == 1
    else:
        is_right = np.arange(node.shape[1]) == sentences.y[start:stop, None]
    return np.where(is_right, node, -np.inf if clamp else node + sentences.costs[i])


def lattice_arcs(node: Floats, start: int, n_labels: int, tables: FactorTables, cor: LocalFactors) -> Floats:
    """Scores of all arcs, (length, n_states, n_labels)."""
    arcs = np.zeros((len(node), n_labels ** (tables.order - 1), n_labels))
    for t in range(len(node)):
        depth = min(t + 1, tables.order)
        n_hist = n_labels ** (depth - 1)
        first = tables.offsets[depth]
        here = tables.log[first : first + n_hist * n_labels].reshape(n_hist, n_labels) + node[t]
        for k, where in _corrections_at(cor, start + t, depth):
            added = np.bincount(cor.code[where], cor.score[where], n_labels**k)
            here.reshape(-1, n_labels**k)[:] += added
        arcs[t, :n_hist] = here
    return arcs


def _corrections_at(cor: LocalFactors, t: int, depth: int) -> Iterator[tuple[int, Ints]]:
    """The corrections at a token by the length of their patterns, up to what has room: (length, their numbers)."""
    first, last = int(cor.ptr[t]), int(cor.ptr[t + 1])
    size = cor.size[first:last]
    for k in range(1, depth + 1):
        where = first + np.flatnonzero(size == k)
        if len(where):
            yield k, where


def _code(y: UInts32 | np.ndarray, t: int, k: int, n_labels: int) -> int:
    """Base-L number of the true pattern of length k that ends at t."""
    code = 0
    for u in range(t - k + 1, t + 1):
        code = code * n_labels + int(y[u])
    return code
