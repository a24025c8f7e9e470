"""Penalties weighted by family: sum_k l1_k ||w_k||_1 + l2_k ||w_k||^2 / 2, on merged columns.

A merged column stands for several attributes, perhaps of several families. Its weight W is the sum of theirs,
and its penalty the cheapest way to split W among them (infimal convolution), so that the optimum is
that of the unmerged problem:

    L1        min_k l1_k |W|, all weight on the cheapest members, ties shared equally
    L2        W^2 / (2 sum_k 1/l2_k), shares proportional to 1/l2_k
    elastic   slope mu(W) with sum_k (mu - l1_k)_+ / l2_k = |W|, shares (mu - l1_k)_+ / l2_k
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vcrf.errors import InputError
from vcrf.families.keys import take_rows
from vcrf.problem import Problem
from vcrf.types import Floats, Ints


@dataclass(frozen=True)
class FamilyPenalty:
    """Strengths per family.

    Parameters
    ----------
    l1, l2 : (n_families,) float64, not negative. `inf` in l1 switches a family off.
        l2 is zero for all families or positive for all.
    count_power : float
        The l2 strength of a feature is that of its family times n ** count_power, n the number of tokens that have
        its attribute. Frequent attributes are the complex ones (their Rademacher sums grow with sqrt(n)), and the
        more tokens decide a weight, the more strength it takes to matter.
    """

    l1: Floats
    l2: Floats
    count_power: float = 0.0

    def __post_init__(self) -> None:
        for name, strengths in (("l1", self.l1), ("l2", self.l2)):
            if np.any(~(strengths >= 0.0)):
                raise InputError(f"Strengths must not be negative: got {name} = {strengths.min()}.")
        if np.any(self.l2 > 0.0) and not np.all(self.l2 > 0.0):
            raise InputError("The l2 strengths must be zero for all families or positive for all.")
        if not np.isfinite(self.count_power):
            raise InputError(f"count_power must be a number, got {self.count_power}.")

    @classmethod
    def from_strengths(
        cls, strengths: Floats, norm: str, l1_ratio: float = 0.5, count_power: float = 0.0
    ) -> FamilyPenalty:
        """c_k |w| (norm "l1"), c_k w^2 / 2 ("l2"), or c_k (l1_ratio |w| + (1 - l1_ratio) w^2 / 2) ("elastic").

        For the group norm ("group") l1 has the strengths of the groups; see `solvers.group`.
        """
        ratios = {"l1": 1.0, "l2": 0.0, "elastic": l1_ratio, "group": 1.0}
        if norm not in ratios:
            raise InputError(f"norm must be 'l1', 'l2', 'elastic' or 'group', got {norm!r}.")
        if norm == "elastic" and not 0.0 < l1_ratio < 1.0:
            raise InputError(f"l1_ratio must lie between 0 and 1 for the elastic net, got {l1_ratio}.")
        # A family that is switched off (inf) stays off under every norm, and 0 * inf is not a number.
        off = np.isinf(strengths)
        finite = np.where(off, 1.0, strengths)
        l1 = np.where(off, np.inf, ratios[norm] * finite)
        return cls(l1, (1.0 - ratios[norm]) * finite, count_power)

    def bind(self, problem: Problem) -> BoundPenalty:
        """The penalty of a problem's merged features."""
        if not len(self.l1) == len(self.l2) == len(problem.families):
            names = ", ".join(family.name for family in problem.families)
            raise InputError(
                f"FamilyPenalty needs one strength per family: expected {len(problem.families)} ({names}), "
                f"got {len(self.l1)}."
            )
        return BoundPenalty(self, problem)


class BoundPenalty:
    """The penalty of a problem's merged features.

    Features of one sort of columns and one pattern length share a penalty: group = sort * (order + 1) + k. Columns are
    of one sort if they are of one class, and, where counts matter, have the same count.
    """

    def __init__(self, penalty: FamilyPenalty, problem: Problem) -> None:
        self.penalty = penalty
        self.problem = problem
        self.is_smooth_part = bool(np.any(penalty.l2 > 0.0))
        members, ptr = _members_of_classes(problem, penalty.l1)
        scales = self._sort_columns()
        # The members of each class, once for every sort of it.
        width = problem.order + 1
        groups = (self._class_of_sort[:, None] * width + np.arange(width)).reshape(-1)
        self.ptr, of_class, _ = take_rows(ptr, np.arange(len(members), dtype=np.uint32), np.zeros(0), groups)
        self.member_families = members[of_class]
        scale = np.repeat(np.repeat(scales, width), np.diff(self.ptr))
        self.member_l1 = penalty.l1[self.member_families]
        self.member_l2 = penalty.l2[self.member_families] * scale

    def _sort_columns(self) -> Floats:
        """Number the sorts of columns; returns the factor of the l2 strengths of each."""
        columns = self.problem.columns
        if self.penalty.count_power == 0.0 or not self.is_smooth_part:
            self._class_of_sort, self._sorts = np.arange(len(columns.class_sources)), columns.classes.astype(np.int64)
            return np.ones(len(self._class_of_sort))
        counts = np.diff(columns.ptr)
        most = int(counts.max(initial=0)) + 1
        sorts, self._sorts = np.unique(columns.classes * most + counts, return_inverse=True)
        self._class_of_sort = sorts // most
        # A numeric attribute of zeros only occurs nowhere.
        return np.asarray(np.maximum(sorts % most, 1) ** float(self.penalty.count_power))

    @cached_property
    def group_thresholds(self) -> Floats:
        """Smallest l1 of each group's members, inf where the group has none."""
        out = np.full(len(self.ptr) - 1, np.inf)
        filled = self.ptr[1:] > self.ptr[:-1]
        out[filled] = self.member_l1[self.ptr[:-1][filled]]
        return out

    def groups_of(self, features: Ints) -> Ints:
        column, length, _ = self.problem.split_features(features)
        return np.asarray(self._sorts[column] * (self.problem.order + 1) + length)

    def thresholds(self, features: Ints) -> Floats:
        """The l1 part of each feature's merged penalty."""
        return self.group_thresholds[self.groups_of(features)]

    def column_thresholds(self, k: int) -> Floats:
        """Threshold of patterns of length k with each column, inf where there is no such family."""
        return self.group_thresholds[self._sorts * (self.problem.order + 1) + k]

    def smooth(self, groups: Ints, w: Floats) -> tuple[float, Floats]:
        """Value and gradient of the penalty less its l1 part: zero for a pure L1 penalty."""
        if not self.is_smooth_part:
            return 0.0, np.zeros(len(w))
        from vcrf.kernels import penalty

        size, slope, value = np.abs(w), np.empty(len(w)), np.empty(len(w))
        penalty.slopes(groups, size, self.ptr, self.member_l1, self.member_l2, slope, value)
        threshold = self.group_thresholds[groups]
        return float(value.sum() - threshold @ size), np.sign(w) * (slope - threshold)

    def conjugate(self, groups: Ints, g: Floats) -> float:
        """Sum of conjugates at the gradient: 0 inside the L1 box, else finite only with an l2 part."""
        size = np.abs(g)
        if self.is_smooth_part:
            from vcrf.kernels import penalty

            return float(penalty.conjugates(groups, size, self.ptr, self.member_l1, self.member_l2))
        return 0.0 if np.all(size <= self.group_thresholds[groups]) else np.inf

    def shares(self, group: int, w: float) -> list[tuple[int, float]]:
        """How the weight of a merged feature is split: (member number inside the group, weight)."""
        first, last = self.ptr[group], self.ptr[group + 1]
        l1, l2 = self.member_l1[first:last], self.member_l2[first:last]
        if not self.is_smooth_part:
            cheapest = np.flatnonzero(l1 == l1[0])
            return [(int(i), w / len(cheapest)) for i in cheapest]
        from vcrf.kernels import penalty

        slope, value = np.empty(1), np.empty(1)
        penalty.slopes(np.array([group]), np.array([abs(w)]), self.ptr, self.member_l1, self.member_l2, slope, value)
        parts = np.sign(w) * np.maximum(slope[0] - l1, 0.0) / l2
        return [(int(i), float(parts[i])) for i in np.flatnonzero(parts)]

    def member_sources(self, group: int) -> list[int]:
        """Sources of a group's members, in the order of `shares`."""
        sort, k = divmod(group, self.problem.order + 1)
        members = self.problem.columns.class_sources[self._class_of_sort[sort]]
        sources = [s for s in members if self.problem.family_of[s, k] >= 0]
        return sorted(
            sources,
            key=lambda s: (self.penalty.l1[self.problem.family_of[s, k]], self.problem.family_of[s, k]),
        )


def _members_of_classes(problem: Problem, l1: Floats) -> tuple[Ints, Ints]:
    """Families of each class of columns and pattern length, the cheapest first: (families, ptr of the groups)."""
    width = problem.order + 1
    lists = problem.columns.class_sources
    sources = np.array([s for listed in lists for s in listed], np.int64)
    classes = np.repeat(np.arange(len(lists)), [len(listed) for listed in lists])
    families = problem.family_of[sources]  # (n, width); no family has patterns of length 0
    groups = classes[:, None] * width + np.arange(width)
    is_member = (families >= 0) & (np.arange(width) > 0)
    families, groups = families[is_member], groups[is_member]
    order = np.lexsort((families, l1[families], groups))
    counts = np.bincount(groups, minlength=len(lists) * width)
    return families[order], np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
