"""The complexity of what is trained, and bounds on its risk."""

from vcrf.complexity.bound import Bound
from vcrf.complexity.bounds import (
    best_margin,
    concentration,
    concentration_of_scores,
    heldout,
    margin_grid,
    theorem1,
    theorem1_any_margin,
    theorem1_any_norm,
    weighted_l1,
)
from vcrf.complexity.choices import family_complexities
from vcrf.complexity.closed import (
    group_bound,
    khintchine_constant,
    l1_bound,
    l1_formula,
    l2_bound,
    lp_bound,
    moment_bound,
)
from vcrf.complexity.corollaries import (
    linear_l1,
    linear_l2,
    linear_lp,
    multiclass_group,
    multiclass_l1,
    multiclass_l2,
    pairwise_network,
)
from vcrf.complexity.counts import Block, FamilyCounts, FeatureCounts, Incidence
from vcrf.complexity.dense import dense_complexity
from vcrf.complexity.features import FeatureComplexities, feature_complexities
from vcrf.complexity.graphs import dense_features, graph_counts
from vcrf.complexity.integral import gaussian_integral
from vcrf.complexity.margins import MarginFrontier, additive_losses, margin_frontier
from vcrf.complexity.report import FamilyShare, RiskReport, risk_report
from vcrf.complexity.sampling import Estimate, group_rademacher, rademacher
from vcrf.complexity.voted import theorem3, theorem3_any_norm, voting_term

__all__ = [
    "Block",
    "Bound",
    "Estimate",
    "FamilyCounts",
    "FamilyShare",
    "FeatureComplexities",
    "FeatureCounts",
    "Incidence",
    "MarginFrontier",
    "RiskReport",
    "additive_losses",
    "best_margin",
    "concentration",
    "concentration_of_scores",
    "dense_complexity",
    "dense_features",
    "family_complexities",
    "feature_complexities",
    "gaussian_integral",
    "graph_counts",
    "group_bound",
    "group_rademacher",
    "heldout",
    "khintchine_constant",
    "l1_bound",
    "l1_formula",
    "l2_bound",
    "linear_l1",
    "linear_l2",
    "linear_lp",
    "lp_bound",
    "margin_frontier",
    "margin_grid",
    "moment_bound",
    "multiclass_group",
    "multiclass_l1",
    "multiclass_l2",
    "pairwise_network",
    "rademacher",
    "risk_report",
    "theorem1",
    "theorem1_any_margin",
    "theorem1_any_norm",
    "theorem3",
    "theorem3_any_norm",
    "voting_term",
    "weighted_l1",
]
