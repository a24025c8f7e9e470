"""The scan of all candidates on the dense lattice: gradients above their limits, nothing stored for the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf import kernels, scratch
from vcrf.families.keys import take_rows
from vcrf.problem import Problem
from vcrf.structures.structure import Scan, Wanted
from vcrf.structures.sums import ChainSums
from vcrf.types import Bools, Floats, Ints, UInts32
from vcrf.workers import cut

if TYPE_CHECKING:
    from vcrf.kernels.scores import FactorTables, LocalFactors
    from vcrf.structures.chain import Chain

# Residuals of label pairs are kept during a scan that uses each of them so often, if they take no more than so much.
_PAIR_USES = 4
_PAIR_BYTES = 600_000_000


@dataclass(frozen=True, eq=False)
class Posteriors:
    """What the scan reads of a pass: residuals of labels, and messages or posteriors of arcs for longer patterns.

    `clamped` are the messages over allowed labels, of the tokens in `is_open`. Instead of messages there may be
    `pairs`, the gradients of plain pairs of labels, if these are all the longer patterns.
    """

    residuals: Floats
    token_weights: Floats
    tables: FactorTables
    corrections: LocalFactors
    messages: Any
    clamped: Any
    is_open: Bools
    pairs: Floats | None = None

    @classmethod
    def of(cls, sums: ChainSums) -> Posteriors:
        """Those of a pass on the dense lattice that kept its messages."""
        potentials, problem = sums.potentials, sums.potentials.chain.problem
        clamped, is_open = sums.messages, np.zeros(0, bool)
        if problem.is_partial:
            clamped, is_open = sums.clamped, np.repeat(problem.partial_sentences, np.diff(problem.sent_ptr))
        tables: FactorTables = potentials.tables  # type: ignore[attr-defined]
        pairs = sums.counts[tables.offsets[2] :] if sums.messages is None else None
        return cls(
            sums.residuals, sums.token_weights, tables, potentials.corrections, sums.messages, clamped, is_open, pairs
        )  # fmt: skip


def scan_dense(chain: Chain, found: Posteriors, wanted: Wanted) -> Scan:
    """All candidates whose |gradient| exceeds their limit."""
    has_pairs = found.tables.order == 2 and 2 in wanted.columns and found.pairs is None
    pairs = _pair_residuals(chain, found, wanted.columns[2]) if has_pairs else None
    parts = [
        _scan_length(chain, found, pairs, k, which.astype(np.uint32), wanted.limits[k][which])
        for k, which in wanted.columns.items()
        if k <= wanted.longest
    ]
    features = np.concatenate([np.zeros(0, np.int64), *(f for f, _ in parts)])
    gradients = np.concatenate([np.zeros(0), *(g for _, g in parts)])
    by_number = np.argsort(features, kind="stable")
    return Scan(features[by_number], gradients[by_number])


def scan_labels(chain: Chain, residuals: Floats, columns: UInts32, limits: Floats) -> tuple[Ints, Floats]:
    """Single labels alone."""
    return scan_values(chain, 1, residuals, columns, limits)


def scan_values(
    chain: Chain, kind: int, residuals: Floats, columns: UInts32, limits: Floats
) -> tuple[Ints, Floats]:  # fmt: skip
    """Parts of one label whose residuals are at hand, (n_tokens, assignments)."""
    table, (allowed_ptr, allowed) = chain.problem.columns, observed_codes(chain.problem, kind, columns)

    def block(a: int, b: int, out: tuple[UInts32, UInts32, Floats]) -> int:
        return kernels.gradient.scan_labels(
            table.ptr, table.positions, table.values, columns[a:b], limits[a:b], rows_of(allowed_ptr, a, b), allowed,
            residuals, *out,
        )  # fmt: skip

    return in_blocks(chain, kind, columns, block)


def _scan_length(
    chain: Chain, found: Posteriors, pairs: Floats | None, k: int, columns: UInts32, limits: Floats
) -> tuple[Ints, Floats]:
    if k == 1:
        return scan_labels(chain, found.residuals, columns, limits)
    problem, table = chain.problem, chain.problem.columns
    allowed_ptr, allowed = observed_codes(problem, k, columns)
    if found.pairs is not None:
        return _scan_plain_pairs(problem, found.pairs, columns, limits, allowed)

    def block(a: int, b: int, out: tuple[UInts32, UInts32, Floats]) -> int:
        given = table.ptr, table.positions, table.values, columns[a:b]
        ptr = rows_of(allowed_ptr, a, b)
        if k == 2 and pairs is not None:
            return kernels.gradient.scan_pairs(
                *given, limits[a:b], ptr, allowed, problem.y, found.token_weights, found.residuals, pairs,
                problem.is_partial, *out,
            )  # fmt: skip
        return kernels.gradient.scan_patterns(
            *given, k, limits[a:b], ptr, allowed, problem.starts, problem.y, found.token_weights, problem.n_labels,
            found.tables, found.corrections, kernels.gradient.Messages(*found.messages),
            kernels.gradient.Messages(*found.clamped), found.is_open, *out,
        )  # fmt: skip

    return in_blocks(chain, k, columns, block)


def _scan_plain_pairs(
    problem: Problem, gradients: Floats, columns: UInts32, limits: Floats, allowed: UInts32
) -> tuple[Ints, Floats]:
    """Pairs of labels without words: the one column is that of the bias, if it is wanted at all.

    `allowed` are its observed pairs, because no other column has any.
    """
    is_bias = columns == problem.bias_column
    if not np.any(is_bias):
        return np.zeros(0, np.int64), np.zeros(0)
    codes = allowed if problem.observed_for(2) else np.arange(len(gradients), dtype=np.uint32)
    codes = codes[np.abs(gradients[codes]) > limits[is_bias]]
    return problem.join_features(np.repeat(columns[is_bias], len(codes)), 2, codes), gradients[codes]


def rows_of(ptr: Ints, a: int, b: int) -> Ints:
    """Part of a CSR pointer; one without rows stays."""
    return ptr[a : b + 1] if len(ptr) else ptr


def in_blocks(chain: Chain, k: int, columns: UInts32, block: Any) -> tuple[Ints, Floats]:
    """Features and gradients that `block(first, last, out)` finds, with more room where it says that it needs it."""
    if len(columns) == 0:
        return np.zeros(0, np.int64), np.zeros(0)
    counts = np.diff(chain.problem.columns.ptr)[columns]
    bounds = cut(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), chain.n_blocks)
    found: dict[int, tuple[UInts32, UInts32, Floats]] = {}

    def run(a: int, b: int) -> None:
        room = max(4 * (b - a), 1024)
        while True:
            out = np.empty(room, np.uint32), np.empty(room, np.uint32), np.empty(room)
            n = int(block(a, b, out))
            if n <= room:
                break
            room = n
        found[a] = out[0][:n].copy(), out[1][:n].copy(), out[2][:n].copy()  # the room is let go

    chain.workers.run(run, bounds)
    parts = [found[a] for a in sorted(found)]
    features = [chain.problem.join_features(column, k, code) for column, code, _ in parts]
    return np.concatenate(features), np.concatenate([g for _, _, g in parts])


def _pair_residuals(chain: Chain, found: Posteriors, columns: Ints) -> Floats | None:
    """Residuals of label pairs at every token, if the columns to scan use them often and there is room."""
    problem, n_labels = chain.problem, chain.problem.n_labels
    n_uses = int(np.diff(problem.columns.ptr)[columns].sum())
    is_often = n_uses > 0 and n_uses >= _PAIR_USES * problem.n_tokens
    if not is_often or 8 * problem.n_tokens * n_labels**2 > _PAIR_BYTES:
        return None
    out = scratch.empty((problem.n_tokens, n_labels, n_labels))
    chain.workers.run(
        lambda a, b: kernels.gradient.pair_residuals(
            problem.sent_ptr[a], problem.sent_ptr[b], problem.starts, problem.y, found.token_weights, n_labels,
            found.tables, found.corrections, kernels.gradient.Messages(*found.messages),
            kernels.gradient.Messages(*found.clamped), found.is_open, out,
        ),
        chain.sentence_bounds,
    )  # fmt: skip
    return out


def observed_codes(problem: Problem, k: int, columns: UInts32) -> tuple[Ints, UInts32]:
    """Candidate codes of the scanned columns if only observed pairs are candidates."""
    if not problem.observed_for(k):
        return np.zeros(0, np.int64), np.zeros(0, np.uint32)
    width = problem.space.size(k)
    codes = problem.observed(k)
    ptr = np.searchsorted(codes, np.arange(len(problem.columns) + 1) * width)
    out_ptr, picked, _ = take_rows(ptr, (codes % width).astype(np.uint32), np.zeros(0), columns.astype(np.int64))
    return out_ptr, picked
