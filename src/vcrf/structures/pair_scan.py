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


def scan_pairs(chain: Chain, sums: PairSums, wanted: Wanted) -> Scan:
    """All candidates whose |gradient| exceeds their limit."""
    problem, table = chain.problem, chain.problem.components
    parts = [_scan_labels(chain, sums.residuals, wanted)]
    if problem.order > 1 and len(wanted.columns[2]):
        parts.append(_scan_pairs(chain, sums.pairs, wanted))
    if table is not None:
        parts.append(_scan_values(chain, sums.residuals, wanted))
        if wanted.beyond > 1:
            parts.append(scan_value_pairs(problem, table, sums.pairs, wanted))
    features, gradients = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(features, kind="stable")
    # Expected counts are no smaller than the variances that they stand for.
    variances = ArcVariances(problem.n_labels, sums.expected.reshape(-1))
    return Scan(features[order], gradients[order], variances=variances)


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


def _scan_pairs(chain: Chain, gradients: Floats, wanted: Wanted) -> tuple[Ints, Floats]:
    problem, bias, flat = chain.problem, chain.problem.bias_column, gradients.reshape(-1)
    codes = np.flatnonzero(np.abs(flat) > wanted.limits[2][bias])
    if problem.observed_for(2):
        codes = np.intersect1d(codes, problem.observed(2) - bias * problem.space.size(2))
    column = np.full(len(codes), bias, np.uint32)
    return problem.join_features(column, 2, codes.astype(np.uint32)), flat[codes]


def _scan_values(chain: Chain, residuals: Floats, wanted: Wanted) -> tuple[Ints, Floats]:
    problem, table = chain.problem, chain.problem.components
    kind = problem.component_kind
    columns = wanted.columns[kind].astype(np.uint32)
    if table is None or not len(columns):
        return np.zeros(0, np.int64), np.zeros(0)
    of_values = np.zeros((problem.n_tokens, len(table)))
    kernels.cells.sum_values(_for_kernels(chain.label_sets.free), *table.by_label, residuals, of_values)
    return scan_values(chain, kind, of_values, columns, wanted.limits[kind][columns])
