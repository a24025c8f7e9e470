"""Blocks: parts of a graph on which sums are exact, and which together bound the sum over the whole graph.

    log Z <= U = sum_T c_T log Z_T(theta^T / c_T),    theta^T = sum_f share_Tf theta_f + sum_v n_T(v, .)

for blocks T with weights c_T > 0 that sum to 1 at every variable, shares that sum to 1 at every factor, and messages n
that sum to 0 at every variable (Hoelder's inequality). U is convex in weights and messages. One block with c = 1 is the
graph itself: the sum is exact. It is taken wherever the tables of its elimination fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vcrf.errors import BudgetError
from vcrf.graphs.cliques import CliqueTree, Scope, clique_tree, components, neighbours


@dataclass(frozen=True)
class GraphBlock:
    """A connected part of a graph: its weight c, the shares of its factors, and its clique tree."""

    weight: float
    shares: dict[int, float]
    tree: CliqueTree


def make_blocks(cards: Sequence[int], scopes: Sequence[Scope], max_table: int, width: int) -> list[GraphBlock]:
    """Blocks of a graph: one for each connected component whose elimination fits, else strips or forests.

    Parameters
    ----------
    cards, scopes : numbers of values of the variables; the variables of each factor
    max_table : entries of the largest table
    width : rows and columns of a strip, where the component is a grid
    """
    near = neighbours(range(len(cards)), scopes)
    part_of = {v: i for i, part in enumerate(components(near)) for v in part}
    members: list[list[int]] = [[] for _ in range(max(part_of.values(), default=-1) + 1)]
    for v, i in part_of.items():
        members[i].append(v)
    factors: list[list[int]] = [[] for _ in members]
    for f, scope in enumerate(scopes):
        if scope:
            factors[part_of[scope[0]]].append(f)
    found: list[GraphBlock] = []
    for variables, mine in zip(members, factors, strict=True):
        tree = clique_tree({v: set(near[v]) for v in variables}, cards, max_table)
        if tree is not None:
            found.append(GraphBlock(1.0, dict.fromkeys(mine, 1.0), tree))
        else:
            found += _relaxed(variables, mine, cards, scopes, max_table, width)
    return found


def _relaxed(
    variables: list[int], factors: list[int], cards: Sequence[int], scopes: Sequence[Scope], max_table: int, width: int
) -> list[GraphBlock]:
    """Layers of strips or forests, all of the same weight; each has every variable, and all cover every factor."""
    joint = [f for f in factors if len(scopes[f]) > 1]
    layers = _strips(joint, scopes, variables, width) or list(_forests(joint, scopes))
    cover = dict.fromkeys(factors, len(layers))
    cover.update({f: sum(f in layer for layer in layers) for f in joint})
    weight = 1.0 / len(layers)
    found: list[GraphBlock] = []
    alone = dict.fromkeys(variables, 0.0)
    for layer in layers:
        near = neighbours(variables, [scopes[f] for f in layer])
        for members in components(near):
            if len(members) == 1:
                # Variables that a layer leaves alone get one block for all such layers.
                alone[members[0]] += weight
                continue
            tree = clique_tree({v: near[v] for v in members}, cards, max_table)
            if tree is None:
                raise BudgetError(
                    f"A block of this graph needs a table of more than {max_table:,} entries. Raise `max_table`, "
                    "lower `block_width`, or use factors on fewer variables."
                )
            inside = set(members)
            mine = [f for f in factors if scopes[f][0] in inside and (f in layer or len(scopes[f]) == 1)]
            found.append(GraphBlock(weight, {f: 1.0 / cover[f] for f in mine}, tree))
    unary = {v: [f for f in factors if scopes[f] == (v,)] for v, c in alone.items() if c > 0.0}
    return found + [
        GraphBlock(alone[v], dict.fromkeys(mine, alone[v]), CliqueTree([(v,)], [-1])) for v, mine in unary.items()
    ]


def grid_columns(scopes: Sequence[Scope], variables: Sequence[int]) -> int:
    """Number of columns if the factors join neighbours on a grid whose cells are numbered row by row, else 0."""
    if any(len(scope) != 2 for scope in scopes) or list(variables) != list(range(len(variables))):
        return 0
    steps = {abs(a - b) for a, b in scopes}
    width = max(steps, default=0)
    is_grid = len(steps) == 2 and 1 in steps and len(variables) % width == 0
    return width if is_grid and all(abs(a - b) == width or max(a, b) % width for a, b in scopes) else 0


def _strips(joint: list[int], scopes: Sequence[Scope], variables: list[int], width: int) -> list[set[int]]:
    """Pairs inside strips of `width` rows, and inside strips of `width` columns; nothing where there is no grid."""
    n_columns = grid_columns([scopes[f] for f in joint], variables)
    if not n_columns:
        return []
    rows = {f for f in joint if len({v // n_columns // width for v in scopes[f]}) == 1}
    columns = {f for f in joint if len({v % n_columns // width for v in scopes[f]}) == 1}
    return [rows, columns]


def _forests(joint: list[int], scopes: Sequence[Scope]) -> Iterator[set[int]]:
    """Factors without a cycle, as many as go, until every factor is in one of the forests; new ones first."""
    left = list(joint)
    while left:
        root: dict[int, int] = {}
        forest: set[int] = set()
        for f in [*left, *joint]:
            ends = {_find(root, v) for v in scopes[f]}
            if len(ends) == len(scopes[f]):
                forest.add(f)
                top = min(ends)
                root.update(dict.fromkeys(ends, top))
        yield forest
        left = [f for f in left if f not in forest]


def _find(root: dict[int, int], v: int) -> int:
    """The representative of a variable's tree; the way is shortened."""
    top = v
    while root.get(top, top) != top:
        top = root[top]
    while root.get(v, v) != top:
        root[v], v = top, root[v]
    return top
