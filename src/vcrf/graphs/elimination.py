"""Exact sums and maxima over all assignments, one variable after the other (bucket elimination)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from vcrf.errors import BudgetError
from vcrf.types import Floats, Ints

# Entries of the largest table that elimination may make: 80 MB.
MAX_TABLE = 10_000_000
# All tables together, which marginals and the best assignment need, may have so many times as many.
_MAX_TABLES = 10

Scope = tuple[int, ...]


def elimination_order(cards: Sequence[int], scopes: Sequence[Scope]) -> tuple[list[int], int]:
    """Order by fewest new edges (min-fill), and the number of entries of the largest table on the way."""
    order, sizes = _order_and_sizes(cards, scopes)
    return order, max(sizes, default=1)


def _order_and_sizes(cards: Sequence[int], scopes: Sequence[Scope]) -> tuple[list[int], list[int]]:
    """The order, and the number of entries of each variable's table."""
    near: list[set[int]] = [set() for _ in cards]
    for scope in scopes:
        for v in scope:
            near[v] |= set(scope) - {v}
    order: list[int] = []
    sizes: list[int] = []
    left = set(range(len(cards)))
    while left:
        v = min(left, key=lambda u: (_missing_edges(near, u), len(near[u]), u))
        sizes.append(prod(cards[u] for u in near[v]) * cards[v])
        for u in near[v]:
            near[u] |= near[v] - {u}
            near[u].discard(v)
        near[v] = set()
        left.remove(v)
        order.append(v)
    return order, sizes


def _missing_edges(near: list[set[int]], v: int) -> int:
    listed = sorted(near[v])
    return sum(b not in near[a] for i, a in enumerate(listed) for b in listed[:i])


@dataclass
class _Step:
    """Elimination of a variable: the joined table (the variable is the last axis), its message, what was joined."""

    variable: int
    scope: Scope
    joined: Floats
    message: Floats
    used: list[tuple[Scope, int]]
    number: int


class Elimination:
    """All variables of a graph eliminated, in the log or the max-plus semiring.

    Tables are numbered: those of the factors first, then the messages.
    """

    def __init__(
        self, cards: Sequence[int], scopes: Sequence[Scope], tables: Sequence[Floats], is_sum: bool, max_table: int
    ) -> None:
        order, sizes = _order_and_sizes(cards, scopes)
        total_budget = _MAX_TABLES * max(max_table, MAX_TABLE)
        for what, needed, budget in (
            ("a table of", max(sizes, default=1), max_table), ("tables that have together", sum(sizes), total_budget)
        ):  # fmt: skip
            if needed > budget:
                raise BudgetError(
                    f"Exact inference on this graph needs {what} {needed:,} entries; the budget is {budget:,}. "
                    "Use fewer loops or labels (chains and trees need small tables), or raise `max_table`."
                )
        self.cards = tuple(cards)
        self.n_factors = len(tables)
        self.steps: list[_Step] = []
        pool = {i: (scope, table) for i, (scope, table) in enumerate(zip(scopes, tables, strict=True))}
        for v in order:
            self._eliminate(v, pool, is_sum)
        # What is left looks at no variable.
        self.value = float(sum(table for _, table in pool.values()))

    def _eliminate(self, v: int, pool: dict[int, tuple[Scope, Floats]], is_sum: bool) -> None:
        used = [i for i, (scope, _) in pool.items() if v in scope]
        parts = [pool.pop(i) for i in used]
        scope = (*dict.fromkeys(u for part, _ in parts for u in part if u != v), v)
        joined = np.zeros([self.cards[u] for u in scope])
        for part, table in parts:
            joined = joined + _spread(table, part, scope)
        message = _log_sum(joined) if is_sum else joined.max(axis=-1)
        number = self.n_factors + len(self.steps)
        listed = [(part, i) for (part, _), i in zip(parts, used, strict=True)]
        self.steps.append(_Step(v, scope, joined, message, listed, number))
        pool[number] = (scope[:-1], message)

    def gradients(self) -> list[Floats]:
        """D value / d table of every factor: its marginals, by the chain rule backwards over the messages."""
        found: dict[int, Floats] = {}
        for step in reversed(self.steps):
            above = found.pop(step.number, np.ones(step.message.shape))
            total = np.where(np.isfinite(step.message), step.message, 0.0)  # -inf: all forbidden, and joined is -inf
            share = np.exp(step.joined - total[..., None]) * above[..., None]
            for scope, number in step.used:
                found[number] = _collapse(share, step.scope, scope)
        return [found.get(i, np.ones(())) for i in range(self.n_factors)]

    def best(self) -> Ints:
        """A best assignment, from the last variable eliminated back to the first; for max-plus."""
        y = np.zeros(len(self.cards), np.int64)
        for step in reversed(self.steps):
            row = step.joined[tuple(y[u] for u in step.scope[:-1])]
            y[step.variable] = int(np.argmax(row))
        return y


def _spread(table: Floats, part: Scope, scope: Scope) -> Floats:
    """A table on some variables of a scope, with axes in the scope's order, to broadcast."""
    axes = sorted(range(len(part)), key=lambda i: scope.index(part[i]))
    shape = [table.shape[part.index(u)] if u in part else 1 for u in scope]
    return np.transpose(table, axes).reshape(shape)


def _collapse(table: Floats, scope: Scope, part: Scope) -> Floats:
    """Sum a table over the variables that a part does not have; axes in the part's order."""
    summed = table.sum(axis=tuple(i for i, u in enumerate(scope) if u not in part))
    rest = [u for u in scope if u in part]
    return np.asarray(np.transpose(summed, [rest.index(u) for u in part]))


def _log_sum(joined: Floats) -> Floats:
    peak = joined.max(axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore"):  # where everything is forbidden the sum is 0
        return np.asarray((peak + np.log(np.exp(joined - peak).sum(axis=-1, keepdims=True)))[..., 0])
