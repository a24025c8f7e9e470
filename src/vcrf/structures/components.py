"""Features of component values on chains: their scores go to labels before a pass, their residuals come after it.

Passes know labels alone: whatever sums over label sequences, sums over components too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.structures.gradient import sum_groups
from vcrf.structures.scan import scan_values
from vcrf.structures.structure import Scan, Wanted
from vcrf.structures.value_pairs import scan_value_pairs
from vcrf.types import Floats
from vcrf.workers import Workers, cut

if TYPE_CHECKING:
    from vcrf.problem import Components
    from vcrf.structures.chain import Chain
    from vcrf.structures.plan import ChainPlan, ComponentPlan
    from vcrf.structures.sums import ChainSums, Spare


def add_component_scores(components: ComponentPlan, w: Floats, scores: Floats, workers: Workers) -> None:
    """scores[key, l] += the score of each value that label l has, (n_rows, n_labels)."""
    table = components.table
    workers.run(
        lambda a, b: kernels.components.add_scores(
            components.row_ptr, components.row_values, components.row_features, components.row_factors, w, table.ptr,
            table.labels, a, b, scores,
        ),
        cut(components.row_ptr, 4),
    )  # fmt: skip


def component_gradient(
    components: ComponentPlan, plan: ChainPlan, of_values: Floats, g: Floats, spare: Spare, workers: Workers,
    weights: Floats | None = None,
) -> None:  # fmt: skip
    """Write the sums of `of_values`, (n_tokens, n_values), of the features on components; see `gradient_of`."""
    sum_groups(components.groups, components.keys, plan, of_values, g, spare, workers, weights)


def with_components(
    chain: Chain, components: Components, sums: ChainSums, wanted: Wanted, found: Scan, of_pairs: Floats | None
) -> Scan:
    """A scan, with the features of component values that exceed their limit too, and of pairs of these.

    `of_pairs` (L, L) are residuals of pairs of labels, if pairs are looked at.
    """
    kind = chain.problem.component_kind
    columns = wanted.columns[kind].astype(np.uint32)
    parts = [(found.features, found.gradients)]
    if len(columns):
        parts.append(scan_values(chain, kind, sums.of_values, columns, wanted.limits[kind][columns]))
    if of_pairs is not None:
        parts.append(scan_value_pairs(chain.problem, components, of_pairs, wanted))
    features, gradients = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(features, kind="stable")
    return found._replace(features=features[order], gradients=gradients[order])
