"""Features of pairs of component values, as Case=Nom before Case=Nom: each is a set of pairs of labels.

    score(a, b) = sum over components c of w_c(value of a, value of b),    0 where a label has no value

Labels with the same values, as far as features tell them apart, are a class: as the label before (R classes) and as the
label here (C classes). A pass needs the table of classes (R, C) alone, however many labels there are; so do sums,

    expected(v, v') = sum over classes r with v and c with v' of expected(r, c).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vcrf.problem import Components, Problem
from vcrf.structures.structure import Wanted
from vcrf.types import Floats, Ints, UInts32


@dataclass(frozen=True, eq=False)
class ValuePairs:
    """Features of a plan that are pairs of component values.

    Attributes
    ----------
    table : the components
    features : their indices in the plan
    components, before, here : of each which of `table.pairs`, and which of its values the two labels have
    """

    table: Components
    features: Ints
    components: Ints
    before: Ints
    here: Ints

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def rows(self) -> Classes:
        """Classes of the label before."""
        return self._classes(self.before)

    @cached_property
    def columns(self) -> Classes:
        """Classes of the label here."""
        return self._classes(self.here)

    def _classes(self, which: Ints) -> Classes:
        """Labels told apart by the values that features name."""
        value_of = self.table.value_of.copy()
        for component, values in enumerate(value_of):
            named = which[self.components == component]
            values[~np.isin(values, named)] = -1
        distinct, of_label = np.unique(value_of, axis=1, return_inverse=True)
        return Classes(of_label.reshape(-1), distinct)

    def scores(self, w: Floats) -> Floats:
        """Scores of pairs of classes, (R, C), from the weights of the plan."""
        out = np.zeros((self.rows.n, self.columns.n))
        for component, values in enumerate(self.table.pair_values):
            mine = self.components == component
            if np.any(mine):
                # One more row and column, of zeros, are for labels without a value: -1.
                table = np.zeros((len(values) + 1, len(values) + 1))
                table[self.before[mine], self.here[mine]] = w[self.features[mine]]
                out += table[self.rows.values[component][:, None], self.columns.values[component]]
        return out

    def label_scores(self, w: Floats) -> Floats:
        """Scores of pairs of labels, (L, L)."""
        return np.asarray(self.scores(w)[self.rows.of_label[:, None], self.columns.of_label])

    def sums(self, of_classes: Floats) -> Floats:
        """A number for each feature: the sum of those of its pairs of classes, given as (R, C)."""
        out = np.zeros(len(self))
        for component, values in enumerate(self.table.pair_values):
            mine = self.components == component
            if np.any(mine):
                of_values = sum_values(
                    of_classes, self.rows.values[component], self.columns.values[component], len(values)
                )
                out[mine] = of_values[self.before[mine], self.here[mine]]
        return out

    def label_sums(self, of_labels: Floats) -> Floats:
        """The same from numbers of pairs of labels, (L, L)."""
        out = np.zeros(len(self))
        for component, values in enumerate(self.table.pair_values):
            mine = self.components == component
            if np.any(mine):
                value_of = self.table.value_of[component]
                of_values = sum_values(of_labels, value_of, value_of, len(values))
                out[mine] = of_values[self.before[mine], self.here[mine]]
        return out


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of labels: the class of each label, and the values of each class, (n_components, n), -1 = none."""

    of_label: Ints
    values: Ints

    @property
    def n(self) -> int:
        """How many there are."""
        return int(self.values.shape[1])

    def members(self) -> tuple[Ints, UInts32]:
        """CSR from classes to their labels."""
        order = np.argsort(self.of_label, kind="stable").astype(np.uint32)
        return np.searchsorted(self.of_label[order], np.arange(self.n + 1)), order


def sum_values(table: Floats, before: Ints, here: Ints, n_values: int) -> Floats:
    """Sums of a table by the values of its rows and of its columns, (n_values, n_values); -1 is left out."""
    rows, columns = _indicators(before, n_values), _indicators(here, n_values)
    return np.asarray(rows @ table @ columns.T)


def _indicators(values: Ints, n_values: int) -> Floats:
    """0-1 matrix (n_values, len(values))."""
    return np.asarray(np.arange(n_values)[:, None] == values, np.float64)


def value_pairs(problem: Problem, kind: UInts32, code: UInts32) -> ValuePairs | None:
    """Those among features with these kinds and assignments; None where no family has any."""
    if problem.components is None or not problem.components.pairs:
        return None
    features = np.flatnonzero(kind >= problem.pair_kinds.start)
    components = kind[features].astype(np.int64) - problem.pair_kinds.start
    n_values = np.array([len(values) for values in problem.components.pair_values], np.int64)
    before, here = np.divmod(code[features].astype(np.int64), n_values[components])
    return ValuePairs(problem.components, features, components, before, here)


def scan_value_pairs(
    problem: Problem, table: Components, of_labels: Floats, wanted: Wanted
) -> tuple[Ints, Floats]:  # fmt: skip
    """Features and gradients of the pairs of values that exceed their limit; `of_labels` are residuals, (L, L)."""
    found, gradients, bias = [np.zeros(0, np.int64)], [np.zeros(0)], problem.bias_column
    for component, kind in enumerate(problem.pair_kinds):
        if not len(wanted.columns[kind]):
            continue
        value_of = table.value_of[component]
        g = sum_values(of_labels, value_of, value_of, len(table.pair_values[component])).reshape(-1)
        codes = np.flatnonzero(np.abs(g) > wanted.limits[kind][bias])
        if problem.observed_for(kind):
            codes = np.intersect1d(codes, problem.observed(kind) - bias * problem.space.size(kind))
        found.append(problem.join_features(np.full(len(codes), bias, np.uint32), kind, codes.astype(np.uint32)))
        gradients.append(g[codes])
    return np.concatenate(found), np.concatenate(gradients)
