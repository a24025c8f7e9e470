"""Residuals summed over the occurrences of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vcrf import kernels
from vcrf.structures.plan import ChainPlan, GroupEntries
from vcrf.structures.sums import Spare
from vcrf.types import Floats, Ints, UInts32
from vcrf.workers import Workers, cut

_BLOCKS = 4
# Sums by key are made for groups in a row that have no more numbers than these together, or for one.
_AT_ONCE = 1 << 20


def gradient_of(
    plan: ChainPlan, residuals: Floats, slots: Floats, plain: Floats, spare: Spare, workers: Workers,
    weights: Floats | None = None,
) -> Floats:  # fmt: skip
    """One number for each feature of a plan: its residuals times its values, summed.

    residuals (n_tokens, n_labels) are those of single labels, `slots` those of corrections; `plain` are the sums for
    plain tag patterns. With weights (n_tokens,) the sum is of the variances |r| - r^2 / weight of residuals, times
    squares of values; `slots` are variances then.
    """
    g, power = np.zeros(len(plan)), 1 if weights is None else 2
    sum_groups(plan.groups, plan.keys, plan, residuals, g, spare, workers, weights)
    g[plan.table_features] = plain
    if len(plan.cor_features):
        out, values = np.empty(len(plan.cor_features)), plan.cor_feature_values**power
        workers.run(
            lambda a, b: kernels.gradient.sum_slots(
                plan.cor_feature_ptr, plan.cor_feature_slots, values, slots, a, b, out
            ),
            plan.cor_bounds,
        )
        g[plan.cor_features] = out
    return g


def sum_groups(
    groups: Sequence[GroupEntries], keys: Ints, plan: ChainPlan, residuals: Floats, g: Floats, spare: Spare,
    workers: Workers, weights: Floats | None = None,
) -> None:  # fmt: skip
    """Write the sums of groups' features, see `gradient_of`; residuals are (n_tokens, assignments).

    `keys` point to the lists of features of keys. A number for each assignment at each key of all groups would be more
    than all else of a pass.
    """
    for parts in _batches(groups, residuals.shape[1]):
        first, last = parts[0].offset, parts[-1].offset + parts[-1].group.n_keys
        ptr, lists = plan.key_ptr[first : last + 1], keys[first : last + 1]
        by_key = spare.room(last - first, residuals.shape[1])  # row 0 is no key, or of the batch before
        _sum_keys(ptr, lists, plan.key_positions, residuals, weights, by_key, workers)
        for part in parts:
            _sum_columns(part, plan, part.offset - first, by_key, g, workers, 1 if weights is None else 2)


def _sum_keys(
    ptr: Ints, lists: Ints, positions: UInts32, residuals: Floats, weights: Floats | None, out: Floats, workers: Workers
) -> None:
    """Write the sums of the residuals, or of their variances, of the positions of each key but the first."""

    def block(a: int, b: int) -> None:
        if weights is None:
            kernels.gradient.key_residuals(ptr, positions, lists, residuals, a, b, out)
        else:
            kernels.keys.key_variances(ptr, positions, lists, residuals, weights, a, b, out)

    workers.run(block, [1 + bound for bound in cut(ptr[1:], _BLOCKS)])


def _batches(groups: Sequence[GroupEntries], n_assignments: int) -> Iterator[list[GroupEntries]]:
    """Groups with features, some in a row at a time."""
    batch: list[GroupEntries] = []
    for part in groups:
        if batch and (part.offset + part.group.n_keys - batch[0].offset) * n_assignments > _AT_ONCE:
            yield batch
            batch = []
        if batch or np.any(part.n_features):
            batch.append(part)
    if batch:
        yield batch


def _sum_columns(
    part: GroupEntries, plan: ChainPlan, offset: int, by_key: Floats, g: Floats, workers: Workers, power: int
) -> None:
    """Write the sums over keys of the features of one group; by_key (n_keys, assignments) begins at its `offset`."""
    values = part.group.col_values**power
    workers.run(
        lambda a, b: kernels.gradient.feature_gradient(
            part.group.col_ptr, part.group.col_keys, values, part.first_feature, part.n_features, plan.labels, offset,
            by_key, a, b, g,
        ),
        part.bounds,
    )  # fmt: skip
