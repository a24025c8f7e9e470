"""Residuals summed over the occurrences of features."""

from __future__ import annotations

import numpy as np

from vcrf import kernels
from vcrf.structures.plan import ChainPlan, GroupEntries
from vcrf.structures.sums import Spare
from vcrf.types import Floats
from vcrf.workers import Workers, cut

_BLOCKS = 4


def gradient_of(
    plan: ChainPlan, residuals: Floats, slots: Floats, plain: Floats, spare: Spare, workers: Workers, power: int = 1
) -> Floats:
    """One number for each feature of a plan: its residuals times its values to a power, summed.

    residuals (n_tokens, n_labels) are those of single labels, `slots` those of corrections; `plain` are the sums for
    plain tag patterns.
    """
    g = np.zeros(len(plan))
    key_residual = spare.rows(len(plan.row_ptr) - 1)
    workers.run(
        lambda a, b: kernels.gradient.key_residuals(
            plan.key_ptr, plan.key_positions, plan.row_ptr, residuals, a, b, key_residual
        ),
        plan.key_bounds,
    )
    for part in plan.groups:
        sum_columns(part, plan, part.offset, key_residual, g, workers, power)
    spare.give_back_rows(key_residual)
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


def gradient_by_groups(plan: ChainPlan, residuals: Floats, plain: Floats, workers: Workers, power: int = 1) -> Floats:
    """The same, to the last bit, of a plan without corrections, with sums by key for one group after another.

    A number for each of many labels at each key of all groups would be most of the memory.
    """
    g = np.zeros(len(plan))
    for part in plan.groups:
        if not np.any(part.n_features):
            continue
        first, n_keys = part.offset, part.group.n_keys
        ptr, row_ptr = plan.key_ptr[first : first + n_keys + 1], plan.row_ptr[first : first + n_keys + 1]
        by_key = np.empty((n_keys, residuals.shape[1]))  # row 0 is no key
        workers.run(
            lambda a, b, ptr=ptr, row_ptr=row_ptr, by_key=by_key: kernels.gradient.key_residuals(  # type: ignore[misc]
                ptr, plan.key_positions, row_ptr, residuals, a, b, by_key
            ),
            [1 + bound for bound in cut(ptr[1:] - ptr[1], _BLOCKS)],
        )
        sum_columns(part, plan, 0, by_key, g, workers, power)
    g[plan.table_features] = plain
    return g


def sum_columns(
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
