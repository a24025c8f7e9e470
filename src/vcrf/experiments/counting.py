"""What carries weight: features by family, attributes, columns. Nothing is listed: there may be many millions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vcrf.types import Bools, Ints

if TYPE_CHECKING:
    from vcrf.penalties.separable import BoundPenalty
    from vcrf.problem import Problem

# Features at a time.
_CHUNK = 1 << 22


class Used(NamedTuple):
    """Features with a weight in each family, with attributes that occur together counted each; attributes; columns."""

    families: Ints
    n_attributes: int
    n_columns: int


def count_used(problem: Problem, penalty: BoundPenalty, features: Ints) -> Used:
    """Count what an L1 penalty, or any other one, lets carry weight of these merged features."""
    counts = np.zeros(len(penalty.ptr) - 1, np.int64)
    column_used = np.zeros((problem.order + 1, len(problem.columns)), bool)
    for first in range(0, len(features), _CHUNK):
        part = features[first : first + _CHUNK]
        column, kind, _ = problem.split_features(part)
        counts += np.bincount(penalty.groups_of(part), minlength=len(counts))
        column_used[kind, column] = True
    group = np.repeat(np.arange(len(counts)), np.diff(penalty.ptr))
    carries = penalty.is_smooth_part | (penalty.member_l1 == penalty.group_thresholds[group])
    families = np.bincount(
        penalty.member_families[carries], counts[group[carries]], minlength=len(problem.families)
    ).astype(np.int64)
    return Used(families, _count_attributes(penalty, column_used, carries), int(column_used.any(axis=0).sum()))


def _count_attributes(penalty: BoundPenalty, column_used: Bools, carries: Bools) -> int:
    """Attributes are pairs of a column and a source: one that has weights of several kinds counts once."""
    total = 0
    n_kinds = len(column_used)
    by_kind = [penalty.column_groups(k) for k in range(n_kinds)]
    patterns = column_used.T @ (1 << np.arange(n_kinds))
    # Columns of one sort that are used by the same kinds have the same number of attributes with a weight.
    _, first, n = np.unique(by_kind[0] * (1 << n_kinds) + patterns, return_index=True, return_counts=True)
    for column, times in zip(first.tolist(), n.tolist(), strict=True):
        sources: set[int] = set()
        for k in np.flatnonzero(column_used[:, column]).tolist():
            members = slice(penalty.ptr[by_kind[k][column]], penalty.ptr[by_kind[k][column] + 1])
            sources.update(penalty.member_sources[members][carries[members]].tolist())
        total += times * len(sources)
    return total
