"""A penalty that is not by linear and quadratic strengths: all that a new form has to be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.penalties import FamilyPenalty, SharedPenalty


class Berhu(NamedTuple):
    """a |w| + b max(|w| - d, 0)^2 for every feature: weights beyond d cost more and more."""

    a: float
    b: float
    d: float

    def bind(self, problem):
        return BoundBerhu(self, problem)


class BoundBerhu(SharedPenalty):
    """Of n twins each takes w / n, which is the cheapest: a |w| + b max(|w| - n d, 0)^2 / n."""

    is_smooth_part = True

    def __init__(self, berhu, problem):
        n = len(problem.families)
        # Its linear part alone knows the groups and their members already.
        self.berhu, self.linear = berhu, FamilyPenalty(np.full(n, berhu.a), np.zeros(n)).bind(problem)
        self.group_thresholds, self.member_sources = self.linear.group_thresholds, self.linear.member_sources
        self.n_twins = np.diff(self.linear.ptr)

    def groups_of(self, features):
        return self.linear.groups_of(features)

    def column_groups(self, k):
        return self.linear.column_groups(k)

    def smooth(self, groups, w):
        n, b = self.n_twins[groups], self.berhu.b
        beyond = np.maximum(np.abs(w) - n * self.berhu.d, 0.0)
        return float(np.sum(b * beyond**2 / n)), np.sign(w) * 2.0 * b * beyond / n

    def conjugate_along(self, groups, size, theta):
        n, b = self.n_twins[groups], self.berhu.b
        above = np.maximum(theta * size - self.group_thresholds[groups], 0.0)  # the weight is n (d + above / 2b)
        weight = np.where(above > 0.0, n * (self.berhu.d + above / (2.0 * b)), 0.0)
        return float(np.sum(above * weight - n * above**2 / (4.0 * b))), float(size @ weight)

    def split(self, groups, w):
        return self.linear.split(groups, w)  # in equal parts, as members of equal strengths are

    @property
    def family_strengths(self):
        return self.linear.family_strengths
