"""Clique trees: the tables that exact elimination makes, joined to a tree.

Eliminating v joins all that looks at v into a table over v and its neighbours, its clique. The table's sum over v goes
to the clique of that neighbour which is eliminated first. A clique inside one of those that send to it is left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

Scope = tuple[int, ...]


@dataclass(frozen=True)
class CliqueTree:
    """Cliques (sorted variables) and the parent of each, -1 for a root; a clique comes before its parent."""

    cliques: list[Scope]
    parents: list[int]

    def separator(self, i: int) -> Scope:
        """The variables that a clique shares with its parent."""
        above = set(self.cliques[self.parents[i]])
        return tuple(v for v in self.cliques[i] if v in above)


def neighbours(variables: Iterable[int], scopes: Iterable[Scope]) -> dict[int, set[int]]:
    """The variables that each variable shares a factor with."""
    near: dict[int, set[int]] = {v: set() for v in variables}
    for scope in scopes:
        for v in scope:
            near[v].update(scope)
    for v, others in near.items():
        others.discard(v)
    return near


def components(near: dict[int, set[int]]) -> list[list[int]]:
    """Connected components, each sorted, by their first variables."""
    left, found = set(near), []
    for v in near:
        if v not in left:
            continue
        left.discard(v)
        part, stack = [v], [v]
        while stack:
            new = near[stack.pop()] & left
            left -= new
            part += new
            stack += new
        found.append(sorted(part))
    return found


def elimination(
    near: dict[int, set[int]], cards: Sequence[int], max_table: int | None = None
) -> tuple[list[int], list[Scope]] | None:
    """Order by fewest new edges (min-fill) with the clique of each; None if a table has more than `max_table` entries.

    `near` is used up.
    """
    heap = [(*_cost(near, v, cards), v) for v in near]
    heapq.heapify(heap)
    order: list[int] = []
    cliques: list[Scope] = []
    known = {v: (fill, size) for fill, size, v in heap}
    while heap:
        fill, size, v = heapq.heappop(heap)
        if known.get(v) != (fill, size):
            continue
        if max_table is not None and size > max_table:
            return None
        del known[v]
        around = near.pop(v)
        order.append(v)
        cliques.append(tuple(sorted({v, *around})))
        touched = set(around)
        for u in around:
            # Where pairs are joined, the numbers of missing pairs change one step further out.
            touched |= near[u] if fill else set()
            near[u] |= around
            near[u] -= {u, v}
        for u in touched & near.keys():
            known[u] = _cost(near, u, cards)
            heapq.heappush(heap, (*known[u], u))
    return order, cliques


def clique_tree(near: dict[int, set[int]], cards: Sequence[int], max_table: int | None = None) -> CliqueTree | None:
    """The clique tree (or forest) of variables with these neighbours, which are used up; None beyond `max_table`."""
    found = elimination(near, cards, max_table)
    if found is None:
        return None
    order, scopes = found
    place = {v: i for i, v in enumerate(order)}
    cliques: list[Scope] = []
    waiting: dict[int, list[int]] = {}  # variable -> cliques whose sums go to its clique
    links: dict[int, int] = {}
    for v, scope in zip(order, scopes, strict=True):
        below = waiting.pop(v, [])
        home = next((i for i in below if set(scope) <= set(cliques[i])), None)
        if home is None:
            home = len(cliques)
            cliques.append(scope)
        links.update({i: home for i in below if i != home})
        above = [u for u in scope if place[u] > place[v]]
        if above:
            waiting.setdefault(min(above, key=place.__getitem__), []).append(home)
    return _sorted_tree(cliques, links)


def _sorted_tree(cliques: list[Scope], links: dict[int, int]) -> CliqueTree:
    """Children before parents."""
    below: dict[int, list[int]] = {}
    for child, parent in links.items():
        below.setdefault(parent, []).append(child)
    downwards = [i for i in range(len(cliques)) if i not in links]
    for i in downwards:
        downwards.extend(below.get(i, []))
    number = {i: n for n, i in enumerate(reversed(downwards))}
    ordered = sorted(number, key=number.__getitem__)
    return CliqueTree([cliques[i] for i in ordered], [number[links[i]] if i in links else -1 for i in ordered])


def _cost(near: dict[int, set[int]], v: int, cards: Sequence[int]) -> tuple[int, int]:
    """Pairs of neighbours that are not joined yet, and entries of the table."""
    around = near[v]
    missing = sum(len(around) - 1 - len(around & near[u]) for u in around) // 2
    return missing, cards[v] * prod(cards[u] for u in around)
