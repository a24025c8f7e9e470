"""The complexities r_k of families that training penalises by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real

import numpy as np

from vcrf.arguments.parameters import check
from vcrf.complexity.closed import group_bound, l1_bound, l2_bound, lp_bound
from vcrf.complexity.counts import FamilyCounts, FeatureCounts
from vcrf.complexity.features import feature_complexities
from vcrf.complexity.sampling import group_rademacher, rademacher
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


def family_complexities(
    choice: str | Mapping[str, float], problem: Candidates, norm: str | Sequence[str] = "l1", power: float = 2.0
) -> Floats:
    """r_k of every family of a problem, (n_families,).

    Parameters
    ----------
    choice : how; a name, or a mapping from family name to number
        - "paper": sqrt(2 log|H_k| / m), the formula of the paper's experiments
        - "general": r_inf sqrt(2 log(2 N_k) mean|F_i|^2 / m), its r_inf |F| sqrt(log N), from the sample's sizes
        - "massart": the upper bound on the complexity of the norm's unit ball: r_inf sqrt(2 s_k log(2 N_k)) / m
          (Theorem 2), with norm "l2" sqrt(sum_j v_j) / m, with "group" that of H_{2,1} (`complexity.group_bound`)
        - "rademacher" or "estimate": the Monte-Carlo estimate of that complexity on the sample (seed 0)
        - "feature": the mean over the family's attributes: every feature has its own, see `feature_complexities`
    problem : families, text and columns
    norm : of the penalty, "l1", "l2", "elastic", "lp", "group" or "family": which ball Massart's bound and the
        estimate are about; elastic has those of l1, lp and family those of H_p; a list has that of each family
    power : that p

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
    of_ball = _BOUNDS if choice == "massart" else _ESTIMATES
    norms = [norm] * len(problem.families) if isinstance(norm, str) else norm
    measures = [of_ball.get({"family": "lp"}.get(name, name), of_ball["l1"]) for name in norms]
    pairs = zip(measures, counts, strict=True)
    return np.array([measure(c, power) if c.n_features else 0.0 for measure, c in pairs])


_Measure = Callable[[FeatureCounts, float], float]
_BOUNDS: dict[str, _Measure] = {
    "l1": lambda counts, _: l1_bound(counts),
    "l2": lambda counts, _: l2_bound(counts),
    "lp": lambda counts, p: l2_bound(counts) if p == 2.0 else lp_bound(counts, p),
    "group": lambda counts, _: group_bound(counts),
}
_ESTIMATES: dict[str, _Measure] = {
    "l1": lambda counts, _: rademacher(counts).value,
    "l2": lambda counts, _: rademacher(counts, 2.0).value,
    "lp": lambda counts, p: rademacher(counts, p).value,
    "group": lambda counts, _: group_rademacher(counts).value,
}


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
