"""What solvers ask of a penalty, whatever its form: of one by itself, and of that of a problem's features."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple, Protocol

from vcrf.problem import Candidates
from vcrf.types import Floats, Ints


class Squares(NamedTuple):
    """A penalty of linear and quadratic parts: the members of group g pay l1 |w| + l2 w^2 / 2, all l2 > 0.

    The members of group g are ptr[g] .. ptr[g + 1] - 1.
    """

    ptr: Ints
    l1: Floats
    l2: Floats


class FeaturePenalty(Protocol):
    """The penalty of a problem's features: a sum over these, convex, even, and 0 at 0.

    Features of equal penalty are a group, a number. A class that derives from this one has the rest of its methods.

    Attributes
    ----------
    is_smooth_part : bool
        Whether `smooth` is ever above 0. Without it the penalty is `group_thresholds` times |w|.
    group_thresholds : (n_groups,) float64
        Slope of each group's penalty at 0, on the right: a gradient below it leaves the weight at 0. inf where a group
        has no member, and its features no weight.
    """

    is_smooth_part: bool
    group_thresholds: Floats

    @abstractmethod
    def groups_of(self, features: Ints) -> Ints:
        """Group of each feature."""

    @abstractmethod
    def column_groups(self, k: int) -> Ints:
        """Group of parts of kind k with each column, (n_columns,)."""

    @abstractmethod
    def smooth(self, groups: Ints, w: Floats) -> tuple[float, Floats]:
        """Value and gradient of the penalty less its threshold times |w|."""

    @abstractmethod
    def conjugate_along(self, groups: Ints, size: Floats, theta: float) -> tuple[float, float]:
        """With s = theta size: the sum of sup_w (s w - penalty(w)), and its derivative by theta.

        Only asked where there is a smooth part, and for slopes s up to `largest_slopes`.
        """

    @property
    def largest_slopes(self) -> Floats | None:
        """Slope of each group's penalty at infinity, beyond which its conjugate is; None if no group has one."""
        return None

    @property
    def squares(self) -> Squares | None:
        """The penalty as linear and quadratic parts, if that is its form: dual ascent knows no other."""
        return None

    def thresholds(self, features: Ints) -> Floats:
        """Threshold of each feature."""
        return self.group_thresholds[self.groups_of(features)]

    def column_thresholds(self, k: int) -> Floats:
        """Threshold of parts of kind k with each column, inf where there is no such family."""
        return self.group_thresholds[self.column_groups(k)]


class SharedPenalty(FeaturePenalty, Protocol):
    """The same, with what a model asks besides: how a column's weight is shared out among its attributes.

    Attributes
    ----------
    member_sources : (n_members,) int64
        Source of each member, whatever its group.
    """

    member_sources: Ints

    @abstractmethod
    def split(self, groups: Ints, w: Floats) -> tuple[Ints, Ints, Floats]:
        """How the weights of many features are split: (feature, member of all members, weight) arrays."""

    @property
    @abstractmethod
    def family_strengths(self) -> tuple[Floats, Floats]:
        """Linear and quadratic strength of each family, for the model's facts, (n_families,)."""


class Penalty(Protocol):
    """A penalty of any form, which a problem makes one of its features."""

    def bind(self, problem: Candidates) -> FeaturePenalty:
        """The penalty of a problem's features."""
