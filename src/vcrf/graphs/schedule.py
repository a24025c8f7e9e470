"""Schedules: what a pass does on a graph of one shape, compiled to arrays for the kernels.

A pass keeps one table for each clique of each block (Hugin's propagation). Passing from clique i to j over their
separator S sets s_new = sum of table i over what S lacks, multiplies table j by s_new / s_old, and s_old = s_new. Steps
towards a root make the root's table exact; from there, each step along the tree moves the root, and the table of the
new root is exact. So the root can walk to any variable, for its message to be updated, and at last to all cliques.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vcrf import kernels
from vcrf.graphs.blocks import GraphBlock, grid_columns, make_blocks
from vcrf.graphs.cliques import Scope
from vcrf.types import Floats, Ints, Ints32

# Programs of a shape: towards the roots; the roots along all variables, and back; from the roots to all cliques.
COLLECT, FORWARD, BACKWARD, DISTRIBUTE = range(4)


@dataclass(frozen=True)
class Shape:
    """What examples with one schedule have in common.

    cards : numbers of values of the variables
    scopes : the variables of each part
    symmetric : whether the table of a part (on two variables) has one entry for both orders of two values
    """

    cards: tuple[int, ...]
    scopes: tuple[Scope, ...]
    symmetric: tuple[bool, ...]


class Maps:
    """Maps from the entries of a clique's table to those of something smaller, each kept once."""

    def __init__(self) -> None:
        self.arrays: list[Ints32] = []
        self._numbers: dict[tuple[tuple[int, ...], tuple[int, ...], bool], int] = {}

    def number(self, cards: tuple[int, ...], axes: tuple[int, ...], is_symmetric: bool = False) -> int:
        """The number of the map from a table with these cards to the table on some of its axes."""
        key = cards, axes, is_symmetric
        if key not in self._numbers:
            self._numbers[key] = len(self.arrays)
            self.arrays.append(index_map(*key))
        return self._numbers[key]


def index_map(cards: tuple[int, ...], axes: tuple[int, ...], is_symmetric: bool = False) -> Ints32:
    """Entry of a table with these cards -> entry of the table on some of its axes, (prod(cards),).

    Of a symmetric table only the pairs (a, b) with a <= b are counted: b (b + 1) / 2 + a.
    """
    index = np.indices(cards, np.int32).reshape(len(cards), -1)
    if is_symmetric:
        low, high = np.minimum(index[axes[0]], index[axes[1]]), np.maximum(index[axes[0]], index[axes[1]])
        return np.asarray(high * (high + 1) // 2 + low, np.int32)
    out = np.zeros(index.shape[1] if cards else 1, np.int32)
    for axis in axes:
        out = out * np.int32(cards[axis]) + index[axis]
    return out


@dataclass(frozen=True)
class Schedule:
    """Arrays of one shape; blocks, cliques, separators and variables count from 0.

    Attributes
    ----------
    weights, roots : (n_blocks,) c, and the clique where its root stands first
    cliques : rows (first entry, size, block)
    terms, shares, term_ptr : rows (part, map) of each clique, and which share of the part's scores it has
    messages, message_ptr : rows (first entry among the example's messages, map) of the clique where they are added
    axes, axis_ptr : rows (first entry among the messages, number of values, stride) of each clique's shared variables
    separators : rows (clique, its parent, first entry, size, map of the clique, map of the parent)
    links : (n_cliques,) the separator to the parent, -1 for none
    homes : rows (clique, map) of each variable: one of those where it can be read
    visits, visit_ptr : rows (clique, map, first entry among the messages) of each variable that is in several blocks
    programs : steps 2 * separator + (0 to the parent, 1 from it), or -1 - variable
    cards : of the variables
    """

    weights: Floats
    roots: Ints
    cliques: Ints
    terms: Ints
    shares: Floats
    term_ptr: Ints
    messages: Ints
    message_ptr: Ints
    axes: Ints
    axis_ptr: Ints
    separators: Ints
    links: Ints
    homes: Ints
    visits: Ints
    visit_ptr: Ints
    programs: list[Ints]
    cards: Ints
    n_messages: int

    @property
    def is_exact(self) -> bool:
        """Whether there is one block a component."""
        return not len(self.visits)

    @property
    def work(self) -> int:
        """Entries of all tables."""
        return int(self.cliques[:, 1].sum())


def compile_shape(shape: Shape, maps: Maps, max_table: int, width: int) -> Schedule:
    """Blocks, cliques and programs of a shape."""
    return _Compiler(shape, make_blocks(shape.cards, shape.scopes, max_table, width), maps).schedule()


class _Compiler:
    """Collects the rows of a schedule, block by block."""

    def __init__(self, shape: Shape, blocks: list[GraphBlock], maps: Maps) -> None:
        self.shape, self.blocks, self.maps = shape, blocks, maps
        self.scopes: list[Scope] = []  # of the cliques
        self.cliques: list[tuple[int, int, int]] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.link: list[int] = []  # separator between a clique and its parent
        self.separators: list[tuple[int, ...]] = []
        self.terms: list[list[tuple[int, int, float]]] = []
        self.homes: list[dict[int, int]] = [{} for _ in shape.cards]  # variable -> block -> clique
        self.n_entries = self.n_separated = 0
        for number, block in enumerate(blocks):
            self._add(number, block)

    def _add(self, number: int, block: GraphBlock) -> None:
        first, tree = len(self.cliques), block.tree
        for scope in tree.cliques:
            size = self._size(scope)
            self.cliques.append((self.n_entries, size, number))
            self.scopes.append(scope)
            self.terms.append([])
            self.n_entries += size
        n = len(tree.cliques)
        self.parents += [first + p if p >= 0 else -1 for p in tree.parents]
        self.depths += [0] * n
        self.link += [-1] * n
        for i in reversed(range(n)):
            if tree.parents[i] >= 0:
                self._join(first + i, tree.separator(i))
        where: dict[int, list[int]] = {}
        for i in range(first, first + n):
            for v in self.scopes[i]:
                where.setdefault(v, []).append(i)
        for v, found in where.items():
            self.homes[v][number] = min(found, key=lambda i: (self.cliques[i][1], i))
        for f, share in block.shares.items():
            scope = self.shape.scopes[f]
            home = min((i for i in where[scope[0]] if set(scope) <= set(self.scopes[i])), key=self._size_of)
            self.terms[home].append((f, self._map(home, scope, self.shape.symmetric[f]), share))

    def _join(self, i: int, separator: Scope) -> None:
        parent = self.parents[i]
        self.depths[i] = self.depths[parent] + 1
        self.link[i] = len(self.separators)
        size = self._size(separator)
        maps = self._map(i, separator), self._map(parent, separator)
        self.separators.append((i, parent, self.n_separated, size, *maps))
        self.n_separated += size

    def _size(self, scope: Scope) -> int:
        return int(np.prod([self.shape.cards[v] for v in scope], dtype=np.int64))

    def _size_of(self, i: int) -> int:
        return self.cliques[i][1]

    def _map(self, clique: int, scope: Scope, is_symmetric: bool = False) -> int:
        """Number of the map from the entries of a clique's table to those of a table on some of its variables."""
        own = self.scopes[clique]
        cards = tuple(self.shape.cards[v] for v in own)
        return self.maps.number(cards, tuple(own.index(v) for v in scope), is_symmetric)

    # ----- programs

    def _way(self, a: int, b: int) -> list[int]:
        """Steps that move the root from clique a to clique b of the same tree."""
        up, down = [], []
        while a != b:
            if self.depths[a] >= self.depths[b]:
                up.append(2 * self.link[a])
                a = self.parents[a]
            else:
                down.append(2 * self.link[b] + 1)
                b = self.parents[b]
        return up + down[::-1]

    def _collect(self, root: int, of_block: list[int]) -> list[int]:
        """Steps from all cliques of a block towards the root; the other way round they lead away from it."""
        towards: dict[int, list[tuple[int, int]]] = {}
        for i in of_block:
            if self.link[i] >= 0:
                towards.setdefault(i, []).append((self.parents[i], 2 * self.link[i] + 1))
                towards.setdefault(self.parents[i], []).append((i, 2 * self.link[i]))
        steps: list[int] = []
        stack = [(root, -1)]
        while stack:
            i, before = stack.pop()
            for j, step in towards.get(i, []):
                if j != before:
                    steps.append(step)
                    stack.append((j, i))
        return steps[::-1]

    def _sweep_order(self) -> list[int]:
        """Variables in more than one block, in an order that walks along the first block's tree."""
        shared = [v for v, homes in enumerate(self.homes) if len(homes) > 1]
        first_tree = [v for i in reversed(range(len(self.scopes))) for v in self.scopes[i]]
        pairs = [scope for scope in self.shape.scopes if len(scope) == 2]
        if grid_columns(pairs, range(len(self.shape.cards))):
            return shared
        return [v for v in dict.fromkeys(first_tree) if len(self.homes[v]) > 1]

    def schedule(self) -> Schedule:
        """All rows as arrays."""
        order = self._sweep_order()
        roots = self._first_roots(order)
        by_block: list[list[int]] = [[] for _ in self.blocks]
        for i, (_, _, number) in enumerate(self.cliques):
            by_block[number].append(i)
        collect = [step for root, mine in zip(roots, by_block, strict=True) for step in self._collect(root, mine)]
        programs = [collect, self._walk(order, roots), [], [step ^ 1 for step in reversed(collect)]]
        ends = list(roots)
        for v in order:
            for number, home in self.homes[v].items():
                ends[number] = home
        programs[BACKWARD] = self._walk(order[::-1], ends)
        offsets = self._message_offsets(order)
        return self._arrays(programs, roots, offsets)

    def _first_roots(self, order: list[int]) -> list[int]:
        roots = [-1] * len(self.blocks)
        for v in [*order, *range(len(self.homes))]:
            for number, home in self.homes[v].items():
                roots[number] = home if roots[number] < 0 else roots[number]
        return roots

    def _walk(self, order: list[int], roots: list[int]) -> list[int]:
        """The roots from variable to variable; each is updated when the roots of all its blocks are there."""
        here, steps = list(roots), []
        for v in order:
            for number, home in self.homes[v].items():
                steps += self._way(here[number], home)
                here[number] = home
            steps.append(-1 - v)
        return steps

    def _message_offsets(self, order: list[int]) -> dict[tuple[int, int], int]:
        offsets, n = {}, 0
        for v in sorted(order):
            for number in self.homes[v]:
                offsets[v, number] = n
                n += self.shape.cards[v]
        return offsets

    def _arrays(self, programs: list[list[int]], roots: list[int], offsets: dict[tuple[int, int], int]) -> Schedule:
        visits: list[list[tuple[int, ...]]] = [[] for _ in self.shape.cards]
        messages: list[list[tuple[int, ...]]] = [[] for _ in self.cliques]
        for (v, number), offset in offsets.items():
            home = self.homes[v][number]
            to_value = self._map(home, (v,))
            visits[v].append((home, to_value, offset))
            messages[home].append((offset, to_value))
        axes = [self._axes(i, offsets) for i in range(len(self.cliques))]
        terms = [term for found in self.terms for term in found]
        homes = [self._home(v) for v in range(len(self.homes))]
        return Schedule(
            np.array([block.weight for block in self.blocks], np.float64), np.array(roots, np.int64),
            _rows(self.cliques, 3), _rows([(f, to) for f, to, _ in terms], 2),
            np.array([share for _, _, share in terms], np.float64), _ptr(self.terms),
            _joined(messages, 2), _ptr(messages), _joined(axes, 3), _ptr(axes), _rows(self.separators, 6),
            np.array(self.link, np.int64), _rows(homes, 2), _joined(visits, 3), _ptr(visits),
            [np.array(program, np.int64) for program in programs], np.array(self.shape.cards, np.int64),
            sum(self.shape.cards[v] for v, _ in offsets),
        )  # fmt: skip

    def _home(self, v: int) -> tuple[int, int]:
        home = next(iter(self.homes[v].values()))
        return home, self._map(home, (v,))

    def _axes(self, i: int, offsets: dict[tuple[int, int], int]) -> list[tuple[int, ...]]:
        """Messages, number of values and stride of each variable of a clique that is in several blocks."""
        found: list[tuple[int, ...]] = []
        stride = 1
        for v in reversed(self.scopes[i]):
            offset = offsets.get((v, self.cliques[i][2]))
            if offset is not None:
                found.append((offset, self.shape.cards[v], stride))
            stride *= self.shape.cards[v]
        return found


def _rows(rows: Sequence[tuple[int, ...]], width: int) -> Ints:
    return np.array(rows, np.int64).reshape(-1, width)


def _joined(lists: Sequence[Sequence[tuple[int, ...]]], width: int) -> Ints:
    return _rows([row for rows in lists for row in rows], width)


def _ptr(lists: Sequence[Sequence[object]]) -> Ints:
    return np.concatenate([[0], np.cumsum([len(found) for found in lists])]).astype(np.int64)


class Schedules:
    """The schedules of all shapes that examples have, compiled once each and joined for the kernels."""

    def __init__(self, max_table: int, width: int) -> None:
        self.max_table, self.width = max_table, width
        self.found: list[Schedule] = []
        self._maps = Maps()
        self._numbers: dict[Shape, int] = {}

    def number(self, shape: Shape) -> int:
        """The number of a shape; a new one is compiled."""
        if shape not in self._numbers:
            self._numbers[shape] = len(self.found)
            self.found.append(compile_shape(shape, self._maps, self.max_table, self.width))
        return self._numbers[shape]

    def shapes(self) -> kernels.graph_pass.Shapes:
        """All schedules in one."""
        found = self.found
        maps, sizes = self._maps.arrays, [len(s.cliques) for s in found]
        clique, block = _starts(sizes), _starts([len(s.weights) for s in found])
        separator, variable = _starts([len(s.separators) for s in found]), _starts([len(s.cards) for s in found])
        blocks = [_moved(s.cliques, (0, 0, b)) for s, b in zip(found, block, strict=False)]
        joins = [_moved(s.separators, (c, c, 0, 0, 0, 0)) for s, c in zip(found, clique, strict=False)]
        steps = [
            np.where(program >= 0, program + 2 * first, program - v)
            for s, first, v in zip(found, separator, variable, strict=False)
            for program in s.programs
        ]
        return kernels.graph_pass.Shapes(
            block, _all([s.weights for s in found], np.float64),
            _all([s.roots + c for s, c in zip(found, clique, strict=False)]),
            clique, _stack(blocks, 3), _ptrs([s.term_ptr for s in found]), _stack([s.terms for s in found], 2),
            _all([s.shares for s in found], np.float64), _ptrs([s.message_ptr for s in found]),
            _stack([s.messages for s in found], 2), _ptrs([s.axis_ptr for s in found]),
            _stack([s.axes for s in found], 3), separator, _stack(joins, 6),
            _all([np.where(s.links >= 0, s.links + first, -1) for s, first in zip(found, separator, strict=False)]),
            variable, _all([s.cards for s in found]),
            _stack([_moved(s.homes, (c, 0)) for s, c in zip(found, clique, strict=False)], 2),
            _ptrs([s.visit_ptr for s in found]),
            _stack([_moved(s.visits, (c, 0, 0)) for s, c in zip(found, clique, strict=False)], 3),
            _starts([len(program) for program in steps]), _all(steps), _starts([len(x) for x in maps]),
            _all(maps, np.int32), np.array([s.work for s in found], np.int64),
            np.array([int(s.separators[:, 3].sum()) for s in found], np.int64),
        )  # fmt: skip


def _moved(rows: Ints, by: tuple[int, ...]) -> Ints:
    """Rows of numbers of one shape, as numbers of all."""
    return rows + np.array(by, np.int64)


def _starts(sizes: Sequence[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _ptrs(ptrs: Sequence[Ints]) -> Ints:
    """Pointers one after the other as one."""
    return _starts([size for ptr in ptrs for size in np.diff(ptr)])


def _all(arrays: Sequence[NDArray[Any]], dtype: DTypeLike = np.int64) -> Any:
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)


def _stack(rows: Sequence[Ints], width: int) -> Ints:
    return np.concatenate([np.zeros((0, width), np.int64), *rows])
