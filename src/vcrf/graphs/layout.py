"""Where everything is in the arrays of many graphs: variables, parts, scores, messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vcrf import kernels
from vcrf.graphs.kinds import PartKinds
from vcrf.graphs.schedule import Schedules, Shape
from vcrf.types import Bools, Floats, Ints

# Entries of the largest table that training and labelling may make; `max_table` changes it.
MAX_TABLE = 200_000


class Skeleton(NamedTuple):
    """What a graph is without its attributes: the type of each variable, the kind and the variables of each part.

    The first parts are those of the single variables, in order.
    """

    types: Ints
    kinds: Ints
    scopes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class GraphLayout:
    """Many graphs side by side.

    Attributes
    ----------
    kinds : PartKinds
    skeletons : one an example
    schedules : of their shapes
    shape_of : (n_examples,) the shape of each
    """

    kinds: PartKinds
    skeletons: Sequence[Skeleton]
    schedules: Schedules
    shape_of: Ints

    @property
    def n_examples(self) -> int:
        return len(self.skeletons)

    @cached_property
    def variable_ptr(self) -> Ints:
        """Where the variables of each example begin."""
        return _ptr([len(s.types) for s in self.skeletons])

    @cached_property
    def part_ptr(self) -> Ints:
        """Where the parts of each example begin."""
        return _ptr([len(s.kinds) for s in self.skeletons])

    @cached_property
    def types(self) -> Ints:
        """Of each variable."""
        return np.concatenate([np.zeros(0, np.int64), *(s.types for s in self.skeletons)])

    @cached_property
    def cards(self) -> Ints:
        """Number of values of each variable."""
        return np.array([len(labels) for labels in self.kinds.labels], np.int64)[self.types]

    @cached_property
    def kind_of(self) -> Ints:
        """The kind of each part, 1, 2, ..."""
        return np.concatenate([np.zeros(0, np.int64), *(s.kinds for s in self.skeletons)])

    @cached_property
    def example_of(self) -> Ints:
        """The example of each part."""
        return np.repeat(np.arange(self.n_examples), np.diff(self.part_ptr))

    @cached_property
    def score_ptr(self) -> Ints:
        """Where the scores of each part begin: one an assignment."""
        return _ptr(np.array([0, *self.kinds.space.sizes], np.int64)[self.kind_of])

    @cached_property
    def node_parts(self) -> Ints:
        """The part of each single variable."""
        counts = np.diff(self.variable_ptr)
        starts = np.repeat(self.part_ptr[:-1] - self.variable_ptr[:-1], counts)
        return np.asarray(starts + np.arange(len(starts)))

    @cached_property
    def node_scores(self) -> Ints:
        """Where the scores of each value of each variable are, variable by variable."""
        first, cards = self.score_ptr[self.node_parts], self.cards
        inner = np.arange(int(cards.sum())) - np.repeat(np.cumsum(cards) - cards, cards)
        return np.asarray(np.repeat(first, cards) + inner)

    @cached_property
    def is_exact(self) -> Bools:
        """Whether sums over each example are exact."""
        return np.array([s.is_exact for s in self.schedules.found], bool)[self.shape_of]

    @cached_property
    def work(self) -> Ints:
        """Entries of all tables of each example."""
        return np.array([s.work for s in self.schedules.found], np.int64)[self.shape_of]

    @cached_property
    def message_ptr(self) -> Ints:
        """Where the messages of each example begin."""
        return _ptr(np.array([s.n_messages for s in self.schedules.found], np.int64)[self.shape_of])

    @cached_property
    def examples(self) -> kernels.graph_pass.Examples:
        """For the kernels."""
        return kernels.graph_pass.Examples(self.shape_of, self.part_ptr, self.message_ptr, self.score_ptr)

    @cached_property
    def shapes(self) -> kernels.graph_pass.Shapes:
        """For the kernels."""
        return self.schedules.shapes()

    @cached_property
    def scopes(self) -> kernels.graph_decode.Scopes:
        """For the kernels."""
        sizes = [len(scope) for s in self.skeletons for scope in s.scopes]
        first = np.repeat(self.variable_ptr[self.example_of], sizes)
        variables = np.array([v for s in self.skeletons for scope in s.scopes for v in scope], np.int64) + first
        order = np.argsort(variables, kind="stable")
        parts = np.repeat(np.arange(len(sizes)), sizes)[order]
        ptr = np.searchsorted(variables[order], np.arange(len(self.types) + 1)).astype(np.int64)
        is_symmetric = np.array([False, *self.kinds.symmetric], np.uint8)[self.kind_of]
        return kernels.graph_decode.Scopes(
            _ptr(sizes), variables, self.cards, is_symmetric, ptr, parts, self.variable_ptr
        )

    @cached_property
    def example_of_entry(self) -> Ints:
        """The example of each score."""
        return np.repeat(np.arange(self.n_examples), np.diff(self.score_ptr[self.part_ptr]))

    def entries(self, y: Ints) -> Ints:
        """Where the score of each part at an assignment of all variables is."""
        out = np.empty(len(self.kind_of), np.int64)
        kernels.graph_decode.entries(self.scopes, y, self.score_ptr, out)
        return out

    def sums_by_example(self, values: Floats) -> Floats:
        """Sum of values, one an entry of the scores, over each example."""
        return np.asarray(np.bincount(self.example_of_entry, values, self.n_examples), np.float64)


def make_layout(kinds: PartKinds, skeletons: Sequence[Skeleton], max_table: int, block_width: int) -> GraphLayout:
    """Compile the shapes of graphs."""
    schedules = Schedules(max_table, block_width)
    cards = [len(labels) for labels in kinds.labels]
    symmetric = [False, *kinds.symmetric]
    numbers = [
        schedules.number(
            Shape(tuple(cards[t] for t in s.types.tolist()), s.scopes, tuple(symmetric[k] for k in s.kinds.tolist()))
        )
        for s in skeletons
    ]
    return GraphLayout(kinds, skeletons, schedules, np.array(numbers, np.int64))


def _ptr(sizes: Sequence[int] | Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
