"""The label sequences that cutting planes have found, and where the features of a working set fire on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.problem import Problem
from vcrf.structures.plan import ChainPlan
from vcrf.types import Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.kernels.cuts import PathFiring


@dataclass
class Cuts:
    """Label sequences found, sorted by sentence, with multipliers."""

    sentence: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    label_ptr: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    labels: UInts32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    intercept: Floats = field(default_factory=lambda: np.zeros(0))
    slope: Floats = field(default_factory=lambda: np.zeros(0))
    lam: Floats = field(default_factory=lambda: np.zeros(0))
    age: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.sentence)

    def take(self, which: Ints) -> Cuts:
        """Some of the cuts, in the order given."""
        lengths = np.diff(self.label_ptr)[which]
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        at = np.repeat(self.label_ptr[:-1][which] - ptr[:-1], lengths) + np.arange(ptr[-1])
        intercept, slope, lam = (part[which] for part in (self.intercept, self.slope, self.lam))
        return Cuts(self.sentence[which], ptr, self.labels[at], intercept, slope, lam, self.age[which])

    def plus(self, other: Cuts) -> Cuts:
        """Both, sorted by sentence."""
        joined = Cuts(
            np.concatenate([self.sentence, other.sentence]),
            np.concatenate([self.label_ptr, self.label_ptr[-1] + other.label_ptr[1:]]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.intercept, other.intercept]),
            np.concatenate([self.slope, other.slope]),
            np.concatenate([self.lam, other.lam]),
            np.concatenate([self.age, other.age]),
        )
        return joined.take(np.argsort(joined.sentence, kind="stable"))


def firing_of_cuts(problem: Problem, active: ChainPlan) -> kernels.cuts.PathFiring:
    """Rows, plain patterns as a sorted map, and corrections of the working set, for `kernels.cuts.cut_rows`."""
    order = max(active.order, 1)
    sizes = np.array([problem.n_labels**d for d in range(1, order + 1)], np.int64)
    offsets = np.concatenate([np.zeros(2, np.int64), np.cumsum(sizes)])
    numbers = offsets[active.table_sizes] + active.table_codes.astype(np.int64)
    by_number = np.argsort(numbers)
    return kernels.cuts.PathFiring(
        active.rows, active.row_ptr, active.row_labels, active.row_features, active.row_values, offsets,
        numbers[by_number], active.table_features[by_number], order, active.cor_ptr, active.cor_size,
        active.cor_code, active.cor_feature, active.cor_values,
    )  # fmt: skip


def rows_of_cuts(
    problem: Problem, firing: PathFiring, n_features: int, cuts: Cuts, room: int = 0
) -> tuple[Ints, Ints, Floats]:
    """CSR rows d_k = slope_k * (Psi(y_k) - Psi(y_i)) on the working set: row_ptr, columns, values.

    `room` is a guess of their number of entries: if it is too small, the work is done twice.
    """
    row_ptr = np.zeros(len(cuts) + 1, np.int64)
    room = max(1024, room)
    while True:
        index, value = np.empty(room, np.int64), np.empty(room)
        n = kernels.cuts.cut_rows(
            firing, n_features, problem.sent_ptr, problem.y, problem.n_labels, cuts.sentence, cuts.label_ptr,
            cuts.labels, cuts.slope, row_ptr, index, value,
        )  # fmt: skip
        if n <= room:
            return row_ptr, index[:n], value[:n]
        room = n
