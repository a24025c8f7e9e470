"""Norms of a model's weights, as the bounds weigh them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.complexity.counts import FamilyCounts
from vcrf.complexity.features import family_factors
from vcrf.model import Model
from vcrf.types import Floats, Ints

# A norm between the two of the paper's corollaries, fixed before any sample.
BETWEEN = 1.5


class WeightNorms(NamedTuple):
    """Norms over all weights, and by family (n_families,).

    `between` is the p-norm with p = `BETWEEN`; `group` is sum_G ||w_G||_2, a group being an attribute with the tag
    patterns of one length; `weighted` has sum_j r_j |w_j| of each family, with the r_j of `complexity.features`.
    """

    l1: float
    l2: float
    between: float
    group: float
    by_family: Floats
    weighted: Floats


def weight_norms(model: Model, counts: FamilyCounts) -> WeightNorms:
    """Norms of a model's weights, with the r_j of a sample."""
    rows = np.repeat(np.arange(len(model.keys)), np.diff(model.ptr))
    sources = np.searchsorted(model.source_ptr, rows, side="right") - 1
    families = model.family_of[sources, model.lengths]
    size = np.abs(model.weights)
    groups = np.unique(rows * (model.order + 1) + model.lengths, return_inverse=True)[1]
    n, m = len(model.families), len(counts.problem.weights)
    r = family_factors(counts)[families] * np.sqrt(_variances(model, counts, rows, sources)) / m
    return WeightNorms(
        float(size.sum()),
        float(np.sqrt(size @ size)),
        float((size**BETWEEN).sum() ** (1.0 / BETWEEN)),
        float(np.sqrt(np.bincount(groups, size**2)).sum()),
        np.bincount(families, size, n).astype(np.float64),
        np.bincount(families, r * size, n).astype(np.float64),
    )


def _variances(model: Model, counts: FamilyCounts, rows: Ints, sources: Ints) -> Floats:
    """v_j of every weight on the sample; 0 where the attribute does not occur."""
    out = np.zeros(len(model.weights))
    for s in np.unique(sources).tolist():
        found = model.sources[s].read(counts.problem.text)
        keys, ids = np.unique(found.keys, return_inverse=True)
        squares = np.ones(len(ids)) if found.values is None else found.values**2
        mine = np.flatnonzero(sources == s)
        for k in np.unique(model.lengths[mine]).tolist() if len(keys) else []:
            chosen = mine[model.lengths[mine] == k]
            wanted = model.keys[rows[chosen]]
            of_key = np.bincount(ids, squares * counts.factor_sizes(k)[found.positions], len(keys))
            place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            out[chosen] = np.where(keys[place] == wanted, of_key[place], 0.0)
    return out
