"""The structure whose sums come from blocks of sentences, on workers (`vcrf.cluster`).

Its examples are the blocks: the value of one is the weighted sum of its sentences' values, so that the mean of the
solver's side has the weight 1 for each. What blocks find is added in a tree over their numbers, whoever found it.

A scan asks each block for all gradients of the columns that it shares with others, and for the violators among those
that are its own. The parts of shared columns meet in ranges of columns, and violators alone come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from vcrf.cluster import Runner, same, shuffle, tree
from vcrf.problem.gathered import Gathered
from vcrf.structures.block import (
    Asked,
    ChainBlock,
    FoundFeatures,
    Passed,
    ScanLimits,
    ScanPart,
    add_arrays,
    add_passes,
    count_excess,
    largest,
    sum_range,
)
from vcrf.structures.structure import Purpose, Scan, Strengths, Wanted, wanted
from vcrf.structures.sums import ArcVariances
from vcrf.types import Bools, Floats, Ints, UInts32

# Blocks to a range in which gradients of shared columns meet.
_BLOCKS_PER_RANGE = 4
# Candidates that a scan which may stop returns, about: at zero weights nearly all are violated.
_MOST_FOUND = 20_000_000


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """A sorted set of features; blocks compile their own. `shared` are the features as a task."""

    features: Ints
    number: int
    shared: Any
    order: int
    work: int
    table_features: Ints
    table_sizes: UInts32
    table_codes: UInts32

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True, eq=False)
class BlockPotentials:
    """A plan at some weights."""

    structure: Blocks
    plan: BlockPlan
    w: Floats
    asked: Asked
    shared: Any

    def values(self, loss: Any) -> Floats:  # noqa: ARG002
        """Blocks have no values of single sentences."""
        raise TypeError("An objective that is no mean needs the values of all sentences in one place.")

    def sums(self, loss: Any, weights: Floats) -> BlockSums:  # noqa: ARG002 - blocks have loss and weights
        """One pass; for a Hessian it comes with the Hessian itself."""
        n_blocks = len(self.structure.blocks)
        if self.asked.purpose is Purpose.HESSIAN:
            return BlockSums(self, weights, np.zeros(n_blocks), np.zeros(0))
        found: Passed = self.structure.over_blocks(ChainBlock.passed, self, add_passes)
        return BlockSums(self, weights, found.values, found.gradient)


@dataclass(frozen=True, eq=False)
class BlockSums:
    """What a pass over all blocks finds: the value of each, and the gradient of their sum."""

    potentials: BlockPotentials
    weights: Floats
    values: Floats
    gradient: Floats
    warm = None

    @property
    def plan(self) -> BlockPlan:
        """The features."""
        return self.potentials.plan

    def wrong_labels(self) -> Floats:
        """Blocks have no counts of single sentences."""
        raise TypeError("The wrong labels of single sentences are with the blocks.")


class _Codes(NamedTuple):
    """Limits of columns as numbers of a few values: these numbers are sent once."""

    codes: dict[int, Ints]
    shared: Any


@dataclass
class Blocks:
    """Sums over the blocks of a gathered problem.

    Attributes
    ----------
    keep : the columns that can carry weight
    blocks : a task for each block, whose result is a `ChainBlock`
    """

    problem: Gathered
    keep: Bools
    runner: Runner
    blocks: list[Any]
    is_convex: bool = True
    _n_asked: int = 0
    _codes: _Codes | None = field(default=None, repr=False)

    def close(self) -> None:
        """Let the blocks go."""
        self.blocks = []

    @property
    def has_hessian(self) -> bool:
        """Those of blocks add up."""
        return self.problem.order <= 2

    @property
    def hessian_in_passes(self) -> float:
        """As on the dense lattice of one machine."""
        return 300.0

    def compile(self, features: Ints) -> BlockPlan:
        """The features for all blocks."""
        problem = self.problem
        column, length, code = problem.split_features(features)
        is_plain = column == problem.bias_column
        in_table = np.flatnonzero((length > 1) & is_plain)
        self._n_asked += 1
        return BlockPlan(
            features, self._n_asked, self.share(features), int(length.max(initial=1)),
            int(self.work(column, length).sum()), in_table, length[in_table], code[in_table],
        )  # fmt: skip

    def share(self, array: Any) -> Any:
        """An array for all workers."""
        self.runner.n_bytes += self.runner.n_workers * array.nbytes
        return self.runner.submit(same, array)

    def work(self, columns: UInts32, kinds: UInts32) -> Ints:
        """Entries that features add to each pass: a pair with a word has one at each of its tokens."""
        is_costly = (kinds > 1) & (columns != self.problem.bias_column)
        return np.where(is_costly, np.diff(self.problem.columns.ptr)[columns], 0)

    # ----- sums

    def prepare(
        self, plan: BlockPlan, w: Floats, loss: Any,  # noqa: ARG002
        purpose: Purpose = Purpose.GRADIENT, order: int = 1, warm: None = None,  # noqa: ARG002
    ) -> BlockPotentials:  # fmt: skip
        """The plan at the weights."""
        self._n_asked += 1
        return BlockPotentials(self, plan, w, Asked(plan.number, self._n_asked, purpose, order), self.share(w))

    def over_blocks(self, function: Any, at: BlockPotentials, add: Any, *more: Any) -> Any:
        """What a function of every block finds at some weights, added up."""
        tasks = [
            self.runner.submit(function, block, at.asked, at.plan.shared, at.shared, *more) for block in self.blocks
        ]
        found = self.runner.gather([tree(self.runner, tasks, add)])[0]
        self.runner.n_bytes += len(tasks) * found.nbytes
        return found

    def gradient(self, sums: BlockSums) -> Floats:
        """Gradient of the sum of all values on the plan's features."""
        return sums.gradient

    def curvature(self, sums: BlockSums, variances: ArcVariances | None) -> Floats:
        """Diagonal of the Hessian as if tokens were independent; plain pairs have the variances of the last scan."""
        plan = sums.plan
        out: Floats = self.over_blocks(ChainBlock.curvature, sums.potentials, add_arrays)
        known: Any = plan
        out[plan.table_features] = 1.0 if variances is None else variances.of(known)
        return out

    # ----- scan

    def wanted(self, mass: Floats, limits: dict[int, Floats]) -> Wanted:
        """What a scan with these limits looks at."""
        return wanted(self.keep, mass, limits)._replace(longest=self.problem.order)

    def scan(self, sums: BlockSums, gradient: Floats, wanted: Wanted, may_stop: bool = False) -> Scan:  # noqa: ARG002
        """All candidates whose |gradient| exceeds their limit; if it may stop, the worst where they are too many."""
        n_ranges, limits = 1 + (len(self.blocks) - 1) // _BLOCKS_PER_RANGE, self._limits(wanted)
        at, submit = sums.potentials, self.runner.submit
        tasks = [
            submit(ChainBlock.scan, block, at.asked, at.plan.shared, at.shared, *limits, n_ranges)
            for block in self.blocks
        ]
        ranges = shuffle(self.runner, [submit(ScanPart.of_ranges, task) for task in tasks], n_ranges)
        parts = [submit(ScanPart.own, task) for task in tasks]
        parts += [submit(sum_range, of_range, *limits) for of_range in ranges]
        is_complete = True
        if may_stop:
            counts: Ints = sum(self.runner.gather([submit(count_excess, part, *limits) for part in parts]))
            is_complete = int(counts.sum()) <= _MOST_FOUND
            if not is_complete:
                first_bin = int(np.flatnonzero(np.cumsum(counts[::-1])[::-1] >= _MOST_FOUND)[-1])
                parts = [submit(largest, part, *limits, first_bin) for part in parts]
        found: list[FoundFeatures] = self.runner.gather(parts)
        self.runner.n_bytes += sum(part.n_bytes + 16 * len(part.features) for part in found)
        features = np.concatenate([part.features for part in found])
        gradients = np.concatenate([part.gradients for part in found])
        order = np.argsort(features, kind="stable")
        variances = _variances(self.problem.n_labels, found[: len(tasks)])
        return Scan(features[order], gradients[order], is_complete, variances=variances)

    def _limits(self, wanted: Wanted) -> tuple[ScanLimits, Any]:
        """Limits of all columns that are looked at: their values, and, as a task, the number of each column's value."""
        values, codes = {}, {}
        for kind, limit in wanted.limits.items():
            looked_at = np.full(len(limit), np.inf)
            if kind <= wanted.longest:
                looked_at[wanted.columns[kind]] = limit[wanted.columns[kind]]
            values[kind], numbers = np.unique(looked_at, return_inverse=True)
            codes[kind] = numbers.reshape(-1).astype(np.min_scalar_type(len(values[kind])))
        old = self._codes
        if old is None or any(not np.array_equal(codes[kind], old.codes[kind]) for kind in codes):
            self.runner.n_bytes += self.runner.n_workers * sum(array.nbytes for array in codes.values())
            old = self._codes = _Codes(codes, self.runner.submit(same, codes))
        return ScanLimits(values, self.problem.space), old.shared

    # ----- second derivatives

    def hessian(self, sums: BlockSums, chosen: Ints, stride: int = 1, scale: float = np.inf) -> Floats:
        """Weighted sum of the covariances of the chosen features."""
        found: Floats = self.over_blocks(ChainBlock.hessian, sums.potentials, add_arrays, chosen, stride, scale)
        return found

    def sentence_gradients(self, sums: BlockSums, chosen: Ints) -> Iterator[tuple[Floats, Floats]]:  # noqa: ARG002
        """Blocks keep them."""
        raise TypeError("An objective that is no mean needs the gradients of all sentences in one place.")

    def ascent(self, loss: Any, weights: Floats, strengths: Strengths) -> None:  # noqa: ARG002
        """No dual ascent: its visits follow each other, from one end of the corpus to the other."""
        return


def _variances(n_labels: int, parts: Sequence[FoundFeatures]) -> ArcVariances | None:
    """Variances of arcs, added up in the order of the blocks."""
    arcs = [part.arcs for part in parts]
    if not all(len(found) == len(arcs[0]) for found in arcs):
        return None
    total = arcs[0].copy()
    for found in arcs[1:]:
        total += found
    return ArcVariances(n_labels, total)
