"""Penalties weighted by family: sum_k l1_k ||w_k||_1 + l2_k ||w_k||^2 / 2, on merged columns.

Where families have norms of their own, or l2_k |w|^p / p takes the place of the square: see `kernels.mixed_penalty`.

A merged column stands for several attributes, perhaps of several families. Its weight W is the sum of theirs,
and its penalty the cheapest way to split W among them (infimal convolution), so that the optimum is
that of the unmerged problem:

    L1        min_k l1_k |W|, all weight on the cheapest members, ties shared equally
    L2        W^2 / (2 sum_k 1/l2_k), shares proportional to 1/l2_k
    elastic   slope mu(W) with sum_k (mu - l1_k)_+ / l2_k = |W|, shares (mu - l1_k)_+ / l2_k

    in general    slope mu(W) with sum_k ((mu - l1_k)_+ / l2_k)^(1 / (p_k - 1)) = |W|, but no more than the least l1_k
                  of members without an l2 part, which share what is left

Strengths are those of families, or of families and columns: l2 may grow with the column's count, and a feature may pay
a part of its own. Members of a column occur at the same tokens, so that what the column adds is one number for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.families.keys import take_rows
from vcrf.penalties.penalty import SharedPenalty, Squares
from vcrf.problem import Candidates
from vcrf.types import Floats, Ints

NORMS = ("l1", "l2", "elastic", "lp")
DEFAULT_POWER = 1.5


def check_norm(norm: str, l1_ratio: float, power: float) -> None:
    """Refuse a norm that there is not, or one whose number it cannot have."""
    if norm not in (*NORMS, "group", "family"):
        raise InputError(f"`norm` must be 'l1', 'l2', 'elastic', 'lp', 'group' or 'family', got {norm!r}.")
    if norm == "elastic" and not 0.0 < l1_ratio < 1.0:
        raise InputError(
            f"`l1_ratio` must lie between 0 and 1, both excluded, for the elastic net, got {l1_ratio}. "
            "At 0 that is `norm='l2'`, at 1 `norm='l1'`."
        )
    if norm == "family" and not 1.0 < power <= 2.0:
        raise InputError(f"`power` must lie above 1 and be at most 2 for `norm='family'`, got {power}.")
    if norm == "lp" and not 1.0 < power < 2.0:
        raise InputError(
            f"`power` must lie between 1 and 2, both excluded, for `norm='lp'`, got {power}. At 1 that is `norm='l1'`, "
            "at 2 `norm='l2'`."
        )


class OwnPart(NamedTuple):
    """What a feature pays besides its family's strength: l1[family] * sizes[length, column], and l2 alike.

    Attributes
    ----------
    l1, l2 : (n_families,) float64, not negative
    sizes : (n_kinds + 1, n_columns) float64, positive
    mean_sizes : (n_families,) float64, mean size of a family's attributes
    """

    l1: Floats
    l2: Floats
    sizes: Floats
    mean_sizes: Floats


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
    own : OwnPart, optional
        What features pay each on their own, added to their family's strengths (before l2 is multiplied).
    powers : (n_families,) float64 in (1, 2], optional
        The p of each family: it pays l2 |w|^p / p in place of the square, or nothing but l1 where its l2 is 0.
    """

    l1: Floats
    l2: Floats
    count_power: float = 0.0
    own: OwnPart | None = None
    powers: Floats | None = None

    def __post_init__(self) -> None:
        parts = [("l1", self.l1), ("l2", self.l2)]
        is_quadratic = self.l2 > 0.0
        if self.own is not None:
            parts += [("own l1", self.own.l1), ("own l2", self.own.l2)]
            is_quadratic = is_quadratic | (self.own.l2 > 0.0)
        for name, strengths in parts:
            if np.any(~(strengths >= 0.0)):
                raise InputError(f"Strengths must not be negative: got {name} = {strengths.min()}.")
        if self.powers is not None:
            if np.any(~((self.powers > 1.0) & (self.powers <= 2.0))):
                raise InputError(f"Powers must lie in (1, 2]: got {self.powers.tolist()}.")
            if np.any(self.typical_l1 + self.typical_l2 == 0.0):
                raise InputError("Some family has strength 0: with norms by family, or lp, all must be positive.")
        elif np.any(is_quadratic) and not np.all(is_quadratic):
            raise InputError("The l2 strengths must be zero for all families or positive for all.")
        if not np.isfinite(self.count_power):
            raise InputError(f"`count_power` must be a number, got {self.count_power}.")

    @property
    def has_l2(self) -> bool:
        """Whether some strength is quadratic."""
        return bool(np.any(self.l2 > 0.0)) or (self.own is not None and bool(np.any(self.own.l2 > 0.0)))

    @property
    def is_l2_alone(self) -> bool:
        """Whether no strength but infinite ones, which switch a family off, is linear."""
        has_l1 = np.any(self.l1[np.isfinite(self.l1)] > 0.0) or (self.own is not None and np.any(self.own.l1 > 0.0))
        return self.has_l2 and not has_l1 and self.powers is None

    @property
    def typical_l1(self) -> Floats:
        """l1 of each family; the mean over its attributes, where they differ."""
        return self.l1 if self.own is None else self.l1 + self.own.l1 * self.own.mean_sizes

    @property
    def typical_l2(self) -> Floats:
        """l2 of each family without the factor of counts; the mean over its attributes, where they differ."""
        return self.l2 if self.own is None else self.l2 + self.own.l2 * self.own.mean_sizes

    def with_l2_times(self, factor: float) -> FamilyPenalty:
        """The same with other l2 strengths."""
        own = None if self.own is None else self.own._replace(l2=factor * self.own.l2)
        return replace(self, l2=factor * self.l2, own=own)

    def times(self, factors: float | Floats) -> FamilyPenalty:
        """The same with all strengths times a factor, or times one for each family."""
        own = self.own
        if own is not None:
            own = own._replace(l1=factors * own.l1, l2=factors * own.l2)
        return replace(self, l1=factors * self.l1, l2=factors * self.l2, own=own)

    @classmethod
    def from_strengths(
        cls,
        strengths: Floats,
        norm: str | Sequence[str],
        l1_ratio: float = 0.5,
        count_power: float = 0.0,
        own: tuple[Floats, Floats, Floats] | None = None,
        power: float = DEFAULT_POWER,
    ) -> FamilyPenalty:
        """c_k |w| (norm "l1"), c_k w^2 / 2 ("l2"), or c_k (l1_ratio |w| + (1 - l1_ratio) w^2 / 2) ("elastic").

        "lp" is c_k |w|^p / p, p the `power`; a list of these has the norm of each family. For the group norm ("group")
        l1 has the strengths of the groups, see `solvers.group`; for norms of whole families ("family") it is that of
        lp, see `solvers.family_norms`. With `own` = (strengths, sizes, mean_sizes) the c of a
        feature is that of its family + own strength[family] * sizes[length, column].
        """
        names = [norm] * len(strengths) if isinstance(norm, str) else list(norm)
        for name in dict.fromkeys(names):
            check_norm(name, l1_ratio, power)
        # A family that is switched off (inf) stays off under every norm: it has that of the others.
        off = np.isinf(strengths)
        on = [name for name, is_off in zip(names, off, strict=True) if not is_off]
        names = [on[0] if on and is_off else name for name, is_off in zip(names, off, strict=True)]
        shares = {"l1": 1.0, "l2": 0.0, "elastic": l1_ratio, "group": 1.0, "lp": 0.0, "family": 0.0}
        ratio = np.array([shares[name] for name in names])
        powers = None
        is_power = "lp" in names or ("family" in names and power < 2.0)
        if is_power or len(set(on)) > 1:
            powers = np.array([power if name in ("lp", "family") else 2.0 for name in names])
        finite = np.where(off, 1.0, strengths)  # 0 * inf is not a number
        l1 = np.where(off, np.inf, ratio * finite)
        part = None
        if own is not None:
            part = OwnPart(ratio * own[0], (1.0 - ratio) * own[0], own[1], own[2])
        return cls(l1, (1.0 - ratio) * finite, count_power, part, powers)

    def bind(self, problem: Candidates) -> BoundPenalty:
        """The penalty of a problem's merged features."""
        if not len(self.l1) == len(self.l2) == len(problem.families):
            names = ", ".join(family.name for family in problem.families)
            raise InputError(
                f"FamilyPenalty needs one strength per family: expected {len(problem.families)} ({names}), "
                f"got {len(self.l1)}."
            )
        shape = (problem.n_kinds + 1, len(problem.columns))
        if self.own is not None and self.own.sizes.shape != shape:
            raise InputError(f"The own parts of strengths are of another problem: {self.own.sizes.shape}, not {shape}.")
        return BoundPenalty(self, problem)


def need_families(penalty: object, what: str) -> None:
    """Refuse a penalty of another form, where a solver needs the strengths of families."""
    if not isinstance(penalty, FamilyPenalty):
        raise InputError(
            f"{what} needs strengths of families, expected a FamilyPenalty, got {type(penalty).__name__}. Penalties of "
            "other forms are for `solve` and `solve_path` with a smooth surrogate."
        )


class BoundPenalty(SharedPenalty):
    """The penalty of a problem's merged features.

    Features of one sort of columns and one kind of parts share a penalty: group = sort * (n_kinds + 1) + k. Columns are
    of one sort if they are of one class, and, where these matter, have the same count and the same sizes. The members
    of group g are ptr[g] .. ptr[g + 1] - 1, the cheapest first.
    """

    def __init__(self, penalty: FamilyPenalty, problem: Candidates) -> None:
        self.penalty = penalty
        self.problem = problem
        self.is_smooth_part = penalty.has_l2
        self.is_mixed = penalty.powers is not None
        uses_counts = penalty.count_power != 0.0 and self.is_smooth_part
        # A numeric attribute of zeros only occurs nowhere.
        counts = np.maximum(np.diff(problem.columns.ptr), 1)
        sizes = [] if penalty.own is None else list(penalty.own.sizes)
        first = self._sort_columns([counts, *sizes] if uses_counts else sizes)
        # The members of each class, once for every sort of it.
        width = problem.n_kinds + 1
        members, sources, ptr = _members_of_classes(problem, penalty.l1)
        groups = (problem.columns.classes[first][:, None] * width + np.arange(width)).reshape(-1)
        self.ptr, of_class, _ = take_rows(ptr, np.arange(len(members), dtype=np.uint32), np.zeros(0), groups)
        self.member_families, self.member_sources = members[of_class], sources[of_class]
        group = np.repeat(np.arange(len(groups)), np.diff(self.ptr))
        self.member_l1, self.member_l2 = penalty.l1[self.member_families], penalty.l2[self.member_families]
        self.member_powers = np.full(len(self.member_l1), 2.0)
        if penalty.powers is not None:
            self.member_powers = penalty.powers[self.member_families]
        if penalty.own is not None:
            self._add_own(penalty.own, penalty.own.sizes[group % width, first[group // width]], group)
        if uses_counts:
            self.member_l2 = self.member_l2 * (counts[first] ** float(penalty.count_power))[group // width]
        self.group_thresholds = self._least_l1()

    def _sort_columns(self, keys: list[Ints | Floats]) -> Ints:
        """Number the sorts of columns: those that agree in their class and all keys; returns a column of each."""
        sorts = self.problem.columns.classes.astype(np.int64)
        for key in keys:
            values, numbers = np.unique(key, return_inverse=True)
            sorts = np.unique(sorts * len(values) + numbers, return_inverse=True)[1]
        self._sorts = sorts
        return np.unique(sorts, return_index=True)[1]

    def _add_own(self, own: OwnPart, sizes: Floats, group: Ints) -> None:
        """Add the features' own part to the members' strengths; which member is cheapest may then differ by sort."""
        self.member_l1 = self.member_l1 + own.l1[self.member_families] * sizes
        self.member_l2 = self.member_l2 + own.l2[self.member_families] * sizes
        order = np.lexsort((self.member_families, self.member_l1, group))
        self.member_families, self.member_sources = self.member_families[order], self.member_sources[order]
        self.member_l1, self.member_l2 = self.member_l1[order], self.member_l2[order]
        self.member_powers = self.member_powers[order]

    @cached_property
    def group_caps(self) -> Floats:
        """Least l1 of each group's members that pay nothing else, inf without one: no slope is larger."""
        out = np.full(len(self.ptr) - 1, np.inf)
        group = np.repeat(np.arange(len(out)), np.diff(self.ptr))
        np.minimum.at(out, group, np.where(self.member_l2 == 0.0, self.member_l1, np.inf))
        return out

    @property
    def largest_slopes(self) -> Floats | None:
        """`group_caps`, where families have norms of their own."""
        return self.group_caps if self.is_mixed else None

    @property
    def squares(self) -> Squares | None:
        """The members, where all have an l2 part."""
        has_squares = self.is_smooth_part and not self.is_mixed
        return Squares(self.ptr, self.member_l1, self.member_l2) if has_squares else None

    @property
    def family_strengths(self) -> tuple[Floats, Floats]:
        return self.penalty.typical_l1, self.penalty.typical_l2

    def _least_l1(self) -> Floats:
        """Smallest l1 of each group's members, inf where the group has none."""
        out = np.full(len(self.ptr) - 1, np.inf)
        filled = self.ptr[1:] > self.ptr[:-1]
        out[filled] = self.member_l1[self.ptr[:-1][filled]]
        return out

    def groups_of(self, features: Ints) -> Ints:
        column, length, _ = self.problem.split_features(features)
        return np.asarray(self._sorts[column] * (self.problem.n_kinds + 1) + length)

    def inverse_l2(self, features: Ints) -> Floats:
        """Sum over each feature's members of 1 / l2, of those that are not switched off: with l2 alone, w = -that g."""
        share = np.where(np.isfinite(self.member_l1), 1.0 / self.member_l2, 0.0)
        group = np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))
        return np.asarray(np.bincount(group, share, len(self.ptr) - 1), np.float64)[self.groups_of(features)]

    def column_groups(self, k: int) -> Ints:
        """Group of parts of kind k with each column."""
        return np.asarray(self._sorts * (self.problem.n_kinds + 1) + k)

    def smooth(self, groups: Ints, w: Floats) -> tuple[float, Floats]:
        """Value and gradient of the penalty less its l1 part: zero for a pure L1 penalty."""
        if not self.is_smooth_part:
            return 0.0, np.zeros(len(w))

        size = np.abs(w)
        slope, value = self._slopes(groups, size)
        threshold = self.group_thresholds[groups]
        return float(value.sum() - threshold @ size), np.sign(w) * (slope - threshold)

    def _slopes(self, groups: Ints, size: Floats) -> tuple[Floats, Floats]:
        """Slope and value of the merged penalties at |w|, with an l2 part."""
        slope, value = np.empty(len(size)), np.empty(len(size))
        given = groups, size, self.ptr, self.member_l1, self.member_l2
        if self.is_mixed:
            kernels.mixed_penalty.slopes(*given, self.member_powers, self.group_caps, slope, value)
        else:
            kernels.penalty.slopes(*given, slope, value)
        return slope, value

    def conjugate(self, groups: Ints, g: Floats) -> float:
        """Sum of conjugates at the gradient: 0 inside the L1 box, else finite only with an l2 part."""
        size = np.abs(g)
        if self.is_smooth_part:
            return self.conjugate_along(groups, size, 1.0)[0]
        return 0.0 if np.all(size <= self.group_thresholds[groups]) else np.inf

    def conjugate_along(self, groups: Ints, size: Floats, theta: float) -> tuple[float, float]:
        """With an l2 part: the sum of conjugates at theta times |g|, and its derivative by theta."""
        given = groups, size, theta, self.ptr, self.member_l1, self.member_l2
        if self.is_mixed:
            total, slope = kernels.mixed_penalty.conjugates(*given, self.member_powers)
        else:
            total, slope = kernels.penalty.conjugates(*given)
        return float(total), float(slope)

    def shares(self, group: int, w: float) -> list[tuple[int, float]]:
        """How the weight of a merged feature is split: (member number inside the group, weight)."""
        _, member, parts = self.split(np.array([group]), np.array([w], np.float64))
        return [(int(i - self.ptr[group]), float(part)) for i, part in zip(member, parts, strict=True)]

    def split(self, groups: Ints, w: Floats) -> tuple[Ints, Ints, Floats]:
        """How the weights of many features are split: (feature, member of all members, weight) arrays."""
        counts = np.diff(self.ptr)[groups]
        feature = np.repeat(np.arange(len(w)), counts)
        starts = np.cumsum(counts) - counts
        member = np.repeat(self.ptr[groups] - starts, counts) + np.arange(len(feature))
        l1, l2 = self.member_l1[member], self.member_l2[member]
        sizes = np.zeros(len(feature))
        if self.is_smooth_part:
            slope, _ = self._slopes(groups, np.abs(w))
            excess = np.maximum(slope[feature] - l1, 0.0)
            if self.is_mixed:
                with np.errstate(divide="ignore", invalid="ignore"):
                    sizes = np.where(l2 > 0.0, (excess / l2) ** (1.0 / (self.member_powers[member] - 1.0)), 0.0)
            else:
                sizes = excess / l2
        if not self.is_smooth_part or self.is_mixed:
            # What the others leave, to the cheapest of those that pay l1 alone; ties share equally.
            takes = (l2 == 0.0) & (l1 == self.group_caps[groups][feature]) & np.isfinite(l1)
            left = np.abs(w) - np.bincount(feature, sizes, len(w))
            each = np.maximum(left, 0.0) / np.maximum(np.bincount(feature, takes, len(w)), 1.0)
            sizes = np.where(takes, each[feature], sizes)
        parts = np.sign(w)[feature] * sizes
        kept = np.flatnonzero(parts)
        return feature[kept], member[kept], parts[kept]


def _members_of_classes(problem: Candidates, l1: Floats) -> tuple[Ints, Ints, Ints]:
    """Families and sources of each class of columns and kind of parts, the cheapest first, and ptr of the groups."""
    width = problem.n_kinds + 1
    lists = problem.columns.class_sources
    sources = np.array([s for listed in lists for s in listed], np.int64)
    classes = np.repeat(np.arange(len(lists)), [len(listed) for listed in lists])
    families = problem.family_of[sources]  # (n, width); no family has patterns of length 0
    groups = classes[:, None] * width + np.arange(width)
    is_member = (families >= 0) & (np.arange(width) > 0)
    families, groups = families[is_member], groups[is_member]
    of_source = np.repeat(sources, is_member.sum(axis=1))
    order = np.lexsort((families, l1[families], groups))
    counts = np.bincount(groups, minlength=len(lists) * width)
    return families[order], of_source[order], np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
