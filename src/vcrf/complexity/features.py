"""A complexity for every feature.

    r_j = sqrt(2 v_j log(2 / pi_j)) / m,     pi_j = 1 / (p N_k)

v_j = sum_i |F_i| n_ij is the variance of the feature's Rademacher sum in the graph of the whole model, k its family
among p and N_k the number of that family's features. The class {w : sum_j r_j |w_j| <= 1} then has a complexity of at
most 1.51 (see `bounds.weighted_l1`): sum_j r_j |w_j|, which training penalises, is what that bound has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vcrf.complexity.counts import FamilyCounts
from vcrf.problem import Candidates
from vcrf.types import Floats


@dataclass(frozen=True, eq=False)
class FeatureComplexities:
    """r_j = factors[family] * sizes[length, column], for patterns of that length with that column.

    Attributes
    ----------
    factors : (n_families,) sqrt(2 log(2 p N_k))
    sizes : (order + 1, n_columns) sqrt(v_j) / m; 1 / m, as for one factor alone, where the feature occurs at no factor
    mean_sizes : (n_families,) mean size of a family's attributes, 0 if it has none
    """

    factors: Floats
    sizes: Floats
    mean_sizes: Floats

    @property
    def means(self) -> Floats:
        """Mean r_j of each family, (n_families,)."""
        return self.factors * self.mean_sizes


def feature_complexities(problem: Candidates) -> FeatureComplexities:
    """r_j of every feature of a problem."""
    counts = FamilyCounts(problem, "joint")
    m = len(problem.weights)
    sizes = np.full((problem.n_kinds + 1, len(problem.columns)), 1.0 / m)
    for k in counts.lengths:
        variances = counts.variances(k)
        sizes[k] = np.sqrt(np.where(variances > 0.0, variances, 1.0)) / m
    means = np.zeros(len(counts))
    for f, (family, features) in enumerate(zip(problem.families, counts, strict=True)):
        (block,) = features.blocks
        if len(block.columns):
            means[f] = np.average(sizes[family.tags, block.columns], weights=block.multiplicities)
    return FeatureComplexities(family_factors(counts), sizes, means)


def family_factors(counts: FamilyCounts) -> Floats:
    """sqrt(2 log(2 p N_k)) of each family, (n_families,)."""
    n_features = np.array([max(family.n_features, 1) for family in counts], np.float64)
    return np.sqrt(2.0 * np.log(2.0 * len(counts) * n_features))
