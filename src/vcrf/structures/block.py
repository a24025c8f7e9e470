"""One block of sentences on a worker: a chain of its own, whose features have the numbers of the whole problem.

A task asks for something at some weights of a plan, and has both with it: what a block keeps between tasks saves time,
and nothing is lost with it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from vcrf.graphs.parts import PartSpace
from vcrf.problem.gathered import BlockProblem
from vcrf.structures.chain import Chain
from vcrf.structures.pair_plan import PairPlan
from vcrf.structures.pairs import PairSums, may_use_pairs
from vcrf.structures.plan import ChainPlan
from vcrf.structures.structure import Purpose, wanted
from vcrf.structures.sums import ArcVariances, ChainSums
from vcrf.structures.training_loss import TrainingLoss
from vcrf.types import Bools, Floats, Ints
from vcrf.workers import one_blas_thread

_BINS = 1 << 14  # of excesses


class Asked(NamedTuple):
    """What a task is about: numbers of the plan and of the weights, and what a pass is for, see `Chain.prepare`."""

    plan: int
    weights: int
    purpose: Purpose
    order: int


class Passed(NamedTuple):
    """What passes over some blocks find: the value of each, and the gradient of their sum."""

    values: Floats
    gradient: Floats

    @property
    def nbytes(self) -> int:
        """Of both."""
        return int(self.values.nbytes + self.gradient.nbytes)


class ScanLimits(NamedTuple):
    """Limits of a scan: for each kind of parts the values that occur; columns have numbers of these."""

    values: dict[int, Floats]
    space: PartSpace

    def of_features(self, codes: dict[int, Ints], features: Ints) -> Floats:
        """The limit of each feature."""
        column, kinds, _ = self.space.split(features)
        out = np.empty(len(features))
        for kind, values in self.values.items():
            here = kinds == kind
            out[here] = values[codes[kind][column[here]]]
        return out


class FoundFeatures(NamedTuple):
    """Features, in order, and their gradients; `n_bytes` are those of shared columns, `arcs` variances for later."""

    features: Ints
    gradients: Floats
    arcs: Floats
    n_bytes: int = 0


class ScanPart(NamedTuple):
    """What a scan of a block finds: violators of columns of its own, and for ranges of columns what others share."""

    found: FoundFeatures
    ranges: list[FoundFeatures]

    def own(self) -> FoundFeatures:
        """Of columns that no other block has."""
        return self.found

    def of_ranges(self) -> list[FoundFeatures]:
        """Of the others."""
        return self.ranges


class ChainBlock:
    """The chain of a block.

    Parameters
    ----------
    problem : its sentences and columns
    numbers : (n_columns,) number of each column in the whole problem, sorted
    is_shared : (n_columns,) whether other blocks have the column too
    loss : of its sentences
    """

    def __init__(self, problem: BlockProblem, numbers: Ints, is_shared: Bools, loss: TrainingLoss) -> None:
        self.problem, self.numbers, self.is_shared, self.loss = problem, numbers, is_shared, loss
        self._lock = threading.RLock()
        self._plan: tuple[int, Ints, ChainPlan | PairPlan] | None = None
        self._sums: tuple[int, ChainSums | PairSums] | None = None

    def __reduce__(self) -> Any:
        return ChainBlock, (self.problem, self.numbers, self.is_shared, self.loss)

    def __sizeof__(self) -> int:
        """For a scheduler, which would rather move a task than its data."""
        problem = self.problem
        arrays = problem.columns.positions, problem.columns.ptr, problem.text.word_ids, problem.y, self.numbers
        return 8 * problem.n_tokens * problem.n_labels + sum(map(sys.getsizeof, arrays))

    @cached_property
    def chain(self) -> Chain:
        """Dense: its scans find the gradients of all candidates; with very many labels, of those that are pairs."""
        lattice = "auto" if may_use_pairs(self.problem) else "dense"
        return Chain(self.problem, np.ones(len(self.numbers), bool), 1, lattice)

    # ----- what tasks ask for

    def passed(self, asked: Asked, features: Ints, w: Floats) -> Passed:
        """One pass."""
        with self._alone():
            index, _ = self._compiled(asked, features)
            sums = self._at(asked, features, w)
            gradient = np.zeros(len(features))
            gradient[index] = self.chain.gradient(sums)
            return Passed(np.array([float(self.problem.weights @ sums.values)]), gradient)

    def curvature(self, asked: Asked, features: Ints, w: Floats) -> Floats:
        """A diagonal for the scale of steps; that of plain patterns is known elsewhere."""
        with self._alone():
            out = np.zeros(len(features))
            out[self._compiled(asked, features)[0]] = self.chain.curvature(self._at(asked, features, w), None)
            return out

    def hessian(
        self, asked: Asked, features: Ints, w: Floats, chosen: Ints, stride: int, scale: float
    ) -> Floats:  # fmt: skip
        """Weighted sum of the covariances of the chosen features."""
        with self._alone():
            index, _ = self._compiled(asked, features)
            place = np.full(len(features), -1, np.int64)
            place[index] = np.arange(len(index))
            here = np.flatnonzero(place[chosen] >= 0)
            found = self.chain.hessian(self._at(asked, features, w), place[chosen[here]], stride, scale)
            if len(here) == len(chosen):
                return found
            out = np.zeros((len(chosen), len(chosen)), found.dtype)
            out[np.ix_(here, here)] = found
            return out

    def scan(
        self, asked: Asked, features: Ints, w: Floats, limits: ScanLimits, codes: dict[int, Ints], n_ranges: int
    ) -> ScanPart:
        """Violators of columns of its own, and all gradients of the others that the scan looks at."""
        with self._alone():
            sums = self._at(asked, features, w)
            of_block = {kind: values[codes[kind][self.numbers]] for kind, values in limits.values.items()}
            for limit in of_block.values():
                limit[self.is_shared & np.isfinite(limit)] = -1.0
            every = np.full(len(self.numbers), np.inf)
            looked_at = wanted(np.ones(len(every), bool), every, of_block)._replace(longest=self.problem.order)
            found = self.chain.scan(sums, self.chain.gradient(sums), looked_at)
        column = found.features // self.problem.space.stride
        global_features = found.features + (self.numbers[column] - column) * self.problem.space.stride
        own, arcs = ~self.is_shared[column], _arcs_of(found.variances)
        shared = FoundFeatures(global_features[~own], found.gradients[~own], np.zeros(0))
        ends = self.problem.space.stride * (len(codes[1]) * np.arange(1, n_ranges) // n_ranges)
        cuts = np.searchsorted(shared.features, ends)
        ranges = [
            FoundFeatures(f, g, np.zeros(0))
            for f, g in zip(np.split(shared.features, cuts), np.split(shared.gradients, cuts), strict=True)
        ]
        return ScanPart(
            FoundFeatures(global_features[own], found.gradients[own], arcs, 16 * len(shared.features)), ranges
        )

    # ----- what is kept for the next task

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One task at a time, and one BLAS thread."""
        with self._lock, one_blas_thread():
            yield

    def _compiled(self, asked: Asked, features: Ints) -> tuple[Ints, ChainPlan | PairPlan]:
        """The features of the block, as indices into all, and their plan."""
        if self._plan is None or self._plan[0] != asked.plan:
            self._sums = self._plan = None
            stride = self.problem.space.stride
            column = features // stride
            at = np.searchsorted(self.numbers, column)
            known = np.append(self.numbers, -1)[at] == column
            index = np.flatnonzero(known)
            own = features[index] + (at[index] - column[index]) * stride
            self._plan = asked.plan, index, self.chain.compile(own)
        return self._plan[1:]

    def _at(self, asked: Asked, features: Ints, w: Floats) -> ChainSums | PairSums:
        """The sums at the weights: of the task before, or of a pass."""
        index, plan = self._compiled(asked, features)
        if self._sums is None or self._sums[0] != asked.weights:
            self._sums = None
            potentials = self.chain.prepare(plan, w[index], self.loss, asked.purpose, asked.order)
            self._sums = asked.weights, potentials.sums(self.loss, self.problem.weights)
        return self._sums[1]


def _arcs_of(variances: Any) -> Floats:
    """What the structure remembers of a scan, as an array."""
    return variances.arcs if isinstance(variances, ArcVariances) else np.zeros(0)


def add_passes(parts: Sequence[Passed]) -> Passed:
    """Several passes as one."""
    return Passed(np.concatenate([part.values for part in parts]), add_arrays([part.gradient for part in parts]))


def add_arrays(parts: Sequence[Floats]) -> Floats:
    """Their sum, one after the other."""
    out = parts[0].copy()
    for part in parts[1:]:
        out += part
    return out


def count_excess(found: FoundFeatures, limits: ScanLimits, codes: dict[int, Ints]) -> Ints:
    """How many gradients exceed their limits by how much, in bins of an eighth of an octave, (_BINS,)."""
    return np.bincount(_bins(found, limits, codes), minlength=_BINS)


def largest(found: FoundFeatures, limits: ScanLimits, codes: dict[int, Ints], first_bin: int) -> FoundFeatures:
    """What exceeds its limit by so much at the least."""
    kept = _bins(found, limits, codes) >= first_bin
    return found._replace(features=found.features[kept], gradients=found.gradients[kept])


def _bins(found: FoundFeatures, limits: ScanLimits, codes: dict[int, Ints]) -> Ints:
    """The exponents of the excesses with three bits of what follows."""
    excess = np.maximum(np.abs(found.gradients) - limits.of_features(codes, found.features), 0.0)
    return excess.view(np.int64) >> 49


def sum_range(parts: Sequence[FoundFeatures], limits: ScanLimits, codes: dict[int, Ints]) -> FoundFeatures:
    """Gradients of shared columns, added up in the order of the blocks; those above their limits."""
    features = np.concatenate([part.features for part in parts])
    distinct, which = np.unique(features, return_inverse=True)
    gradients = np.concatenate([part.gradients for part in parts])
    sums: Floats = np.zeros(len(distinct))
    np.add.at(sums, which.reshape(-1), gradients)
    kept = np.abs(sums) > limits.of_features(codes, distinct)
    return FoundFeatures(distinct[kept], sums[kept], np.zeros(0))
