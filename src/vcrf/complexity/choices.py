"""The complexities r_k of families that training penalises by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

import numpy as np

from vcrf.arguments.parameters import check
from vcrf.complexity.closed import l1_formula
from vcrf.complexity.counts import FamilyCounts, FeatureCounts
from vcrf.complexity.features import feature_complexities
from vcrf.complexity.sampling import rademacher
from vcrf.errors import InputError
from vcrf.families.family import Family
from vcrf.problem import Candidates
from vcrf.types import Floats


def check_complexities(choice: str | Mapping[str, float], families: list[Family]) -> None:
    """Refuse a choice that there is not, or a mapping that does not have every family."""
    check("complexities", choice)
    if isinstance(choice, str):
        return
    if not isinstance(choice, Mapping):
        raise InputError(f"`complexities` must be a name or a mapping from family name to number, got {choice!r}.")
    names = {family.name for family in families}
    missing, unknown = names - set(choice), set(choice) - names
    if missing or unknown:
        raise InputError(
            f"`complexities` needs one number for each of the {len(names)} families: "
            f"missing {_listing(missing)}; unknown {_listing(unknown)}."
        )
    for name, value in choice.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 <= value < math.inf:
            raise InputError(
                f"`complexities` must be finite numbers that are not negative; that of {name!r} is {value!r}."
            )


def family_complexities(choice: str | Mapping[str, float], problem: Candidates) -> Floats:
    """r_k of every family of a problem, (n_families,).

    Parameters
    ----------
    choice : how; a name, or a mapping from family name to number
        - "paper": sqrt(2 log|H_k| / m), the formula of the paper's experiments
        - "general": r_inf sqrt(2 log(2 N_k) mean|F_i|^2 / m), its r_inf |F| sqrt(log N), from the sample's sizes
        - "massart": r_inf sqrt(2 s_k log(2 N_k)) / m, the upper bound of Theorem 2
        - "rademacher" or "estimate": the Monte-Carlo estimate of the empirical complexity of {||w_k||_1 <= 1} (seed 0)
        - "feature": the mean over the family's attributes: every feature has its own, see `feature_complexities`
    problem : families, text and columns

    Notes
    -----
    The numbers are what they say: nothing is normalised. They differ in scale, so the same `complexity_strength` means
    something else under each; `tune` searches relative to their mean.
    """
    check_complexities(choice, problem.families)
    if not isinstance(choice, str):
        return np.array([choice[family.name] for family in problem.families], np.float64)
    if choice == "paper":
        return problem.paper_complexities()
    if choice == "feature":
        return feature_complexities(problem).means
    counts = FamilyCounts(problem)
    if choice == "general":
        return np.array([general_complexity(c, counts.graph_sizes(f.tags)) for c, f in _pairs(counts)])
    if choice == "massart":
        return np.array([l1_formula(c.r_inf, c.sparsity, c.n_features, c.n_examples) for c, _ in _pairs(counts)])
    return np.array([rademacher(c).value for c, _ in _pairs(counts)])


def general_complexity(counts: FeatureCounts, graph_sizes: Floats) -> float:
    """r_inf sqrt(2 log(2 N) sum_i |F_i|^2) / m: Theorem 2 with s at its largest for indicators."""
    if not counts.n_features:
        return 0.0
    total = float(graph_sizes @ graph_sizes)
    return counts.r_inf * math.sqrt(2.0 * total * math.log(2.0 * counts.n_features)) / counts.n_examples


def _pairs(counts: FamilyCounts) -> list[tuple[FeatureCounts, Family]]:
    return list(zip(counts, counts.problem.families, strict=True))


def _listing(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
