"""Residuals summed over the occurrences of features."""

from __future__ import annotations

import numpy as np

from vcrf import kernels
from vcrf.structures.plan import ChainPlan, GroupEntries
from vcrf.structures.sums import Spare
from vcrf.types import Floats
from vcrf.workers import Workers

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
