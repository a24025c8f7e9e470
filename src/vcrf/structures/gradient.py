"""Residuals summed over the occurrences of features."""

from __future__ import annotations

import numpy as np

from vcrf import kernels
from vcrf.structures.plan import ChainPlan
from vcrf.structures.sums import Spare
from vcrf.types import Floats
from vcrf.workers import Workers


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
        workers.run(
            lambda a, b, part=part: kernels.gradient.feature_gradient(  # type: ignore[misc]
                part.group.col_ptr, part.group.col_keys, part.group.col_values**power, part.first_feature,
                part.n_features, plan.labels, part.offset, key_residual, a, b, g,
            ),
            part.bounds,
        )  # fmt: skip
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
