"""Gradients for many labels: residuals are summed by key for one group of columns after another.

A number for each label at each key of all groups would be most of the memory. The sums, and their order, are those of
`gradient.gradient_of`.
"""

from __future__ import annotations

import numpy as np

from vcrf import kernels
from vcrf.structures.plan import ChainPlan
from vcrf.types import Floats
from vcrf.workers import Workers, cut

_BLOCKS = 4


def gradient_by_groups(plan: ChainPlan, residuals: Floats, plain: Floats, workers: Workers, power: int = 1) -> Floats:
    """One number for each feature of a plan without corrections; see `gradient_of`."""
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
        workers.run(
            lambda a, b, part=part, by_key=by_key: kernels.gradient.feature_gradient(  # type: ignore[misc]
                part.group.col_ptr, part.group.col_keys, part.group.col_values**power, part.first_feature,
                part.n_features, plan.labels, 0, by_key, a, b, g,
            ),
            part.bounds,
        )  # fmt: skip
    g[plan.table_features] = plain
    return g
