"""The scan of all candidates after a pass over weighted pairs: single labels, component values, and pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.structures.pairs import PairSums, _for_kernels
from vcrf.structures.scan import in_blocks, observed_codes, rows_of, scan_values
from vcrf.structures.structure import Scan, Wanted
from vcrf.structures.sums import ArcVariances
from vcrf.structures.value_pairs import scan_value_pairs
from vcrf.types import Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.structures.chain import Chain


# Counts are sums: what rounding can add to them.
_ROUNDING = 1e-9


def scan_pairs(chain: Chain, sums: PairSums, wanted: Wanted) -> Scan:
    """All candidates whose |gradient| exceeds their limit."""
    problem, table = chain.problem, chain.problem.components
    n_labels, labels = problem.n_labels, _labels_in_pairs(chain, sums, wanted)
    parts = [_scan_labels(chain, sums.residuals, wanted)]
    # Expected counts are no smaller than the variances that they stand for.
    expected = np.zeros((n_labels, n_labels))
    if len(labels):
        pairs, expected[np.ix_(labels, labels)] = sums.potentials.pairs_among(sums.loss, sums.weights, labels)
        if problem.order > 1 and len(wanted.columns[2]):
            parts.append(_scan_pairs(chain, pairs, labels, wanted))
        if table is not None and wanted.beyond > 1:
            parts.append(scan_value_pairs(problem, table, pairs, wanted))
    if table is not None:
        parts.append(_scan_values(chain, sums.residuals, wanted))
    expected.reshape(-1)[sums.plan.table_codes] = sums.counts
    features, gradients = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(features, kind="stable")
    return Scan(features[order], gradients[order], variances=ArcVariances(n_labels, expected.reshape(-1)))


def _labels_in_pairs(chain: Chain, sums: PairSums, wanted: Wanted) -> Ints:
    """The labels that can be in a pair whose |gradient| exceeds its limit; all where pairs of values are looked at."""
    if wanted.beyond > 1:
        return np.arange(chain.problem.n_labels)
    if chain.problem.order < 2 or not len(wanted.columns[2]):
        return np.zeros(0, np.int64)
    return np.flatnonzero(sums.mass * (1.0 + _ROUNDING) > wanted.limits[2][chain.problem.bias_column])


def _scan_labels(chain: Chain, residuals: Floats, wanted: Wanted) -> tuple[Ints, Floats]:
    columns, table = wanted.columns[1].astype(np.uint32), chain.problem.columns
    limits, (allowed_ptr, allowed) = wanted.limits[1][columns], observed_codes(chain.problem, 1, columns)
    sets = _for_kernels(chain.label_sets.free)

    def block(a: int, b: int, out: tuple[UInts32, UInts32, Floats]) -> int:
        return kernels.cells.scan_cells(
            table.ptr, table.positions, table.values, columns[a:b], limits[a:b], rows_of(allowed_ptr, a, b), allowed,
            sets, chain.problem.n_labels, residuals, *out,
        )  # fmt: skip

    return in_blocks(chain, 1, columns, block)


def _scan_pairs(chain: Chain, gradients: Floats, labels: Ints, wanted: Wanted) -> tuple[Ints, Floats]:
    problem, bias = chain.problem, chain.problem.bias_column
    before, here = np.nonzero(np.abs(gradients) > wanted.limits[2][bias])
    codes, found = labels[before] * problem.n_labels + labels[here], gradients[before, here]
    if problem.observed_for(2):
        is_seen = np.isin(codes, problem.observed(2) - bias * problem.space.size(2))
        codes, found = codes[is_seen], found[is_seen]
    column = np.full(len(codes), bias, np.uint32)
    return problem.join_features(column, 2, codes.astype(np.uint32)), found


def _scan_values(chain: Chain, residuals: Floats, wanted: Wanted) -> tuple[Ints, Floats]:
    problem, table = chain.problem, chain.problem.components
    kind = problem.component_kind
    columns = wanted.columns[kind].astype(np.uint32)
    if table is None or not len(columns):
        return np.zeros(0, np.int64), np.zeros(0)
    of_values = np.zeros((problem.n_tokens, len(table)))
    kernels.cells.sum_values(_for_kernels(chain.label_sets.free), *table.by_label, residuals, of_values)
    return scan_values(chain, kind, of_values, columns, wanted.limits[kind][columns])
