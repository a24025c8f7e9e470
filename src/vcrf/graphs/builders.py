"""Ready factor graphs: one output, chains, chains with skips, trees, grids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vcrf.errors import InputError
from vcrf.graphs.graph import Factor, FactorGraph


def multiclass(n_classes: int) -> FactorGraph:
    """One variable and one factor: |F| = 1."""
    return FactorGraph((n_classes,), (_factor((0,), "class"),))


def chain(n_variables: int, n_labels: int, lengths: Iterable[int] = (1, 2)) -> FactorGraph:
    """A chain with a factor on every run of k labels, for each k in `lengths`.

    Parameters
    ----------
    n_variables : number of positions
    n_labels : number of labels
    lengths : (1, 2) for single labels and pairs; (1, 2, 3) for a chain of second order; a run that does not fit
        has no factor
    """
    _check_positive("n_variables", n_variables)
    factors = []
    for k in sorted(set(lengths)):
        _check_positive("lengths", k)
        factors += [_factor(tuple(range(t - k + 1, t + 1)), f"labels:{k}") for t in range(k - 1, n_variables)]
    return FactorGraph((n_labels,) * n_variables, tuple(factors))


def skip_chain(
    n_variables: int, n_labels: int, skips: Iterable[tuple[int, int]], lengths: Iterable[int] = (1, 2)
) -> FactorGraph:
    """A chain with further factors on pairs of distant positions, for instance those of equal words."""
    return chain(n_variables, n_labels, lengths).with_factors(_factor((min(pair), max(pair)), "skip") for pair in skips)


def tree(parents: Sequence[int], n_labels: int) -> FactorGraph:
    """A tree with a factor on every variable and every edge; parents[v] < v is the parent of v, -1 for a root."""
    factors = [_factor((v,), "node") for v in range(len(parents))]
    for v, parent in enumerate(parents):
        if not -1 <= parent < v:
            raise InputError(f"parents[{v}] is {parent}: expected -1 (a root) or a number below {v}.")
        if parent >= 0:
            factors.append(_factor((parent, v), "edge"))
    return FactorGraph((n_labels,) * len(parents), tuple(factors), places=_tree_places(parents))


def grid(n_rows: int, n_columns: int, n_labels: int) -> FactorGraph:
    """A grid with a factor on every variable and on every pair of neighbours; variables row by row."""
    _check_positive("n_rows", n_rows)
    _check_positive("n_columns", n_columns)
    cells = [(r, c) for r in range(n_rows) for c in range(n_columns)]
    factors = [_factor((r * n_columns + c,), "node") for r, c in cells]
    factors += [_factor((r * n_columns + c, r * n_columns + c + 1), "row") for r, c in cells if c + 1 < n_columns]
    factors += [_factor((r * n_columns + c, (r + 1) * n_columns + c), "column") for r, c in cells if r + 1 < n_rows]
    return FactorGraph((n_labels,) * len(cells), tuple(factors), places=tuple((float(c), float(-r)) for r, c in cells))


def _factor(scope: tuple[int, ...], kind: str) -> Factor:
    # One attribute by default: the factors of a kind share their weights.
    return Factor(scope, kind, ((kind, 1.0),))


def _tree_places(parents: Sequence[int]) -> tuple[tuple[float, float], ...]:
    """Depth downwards; leaves beside each other, parents above the middle of their children."""
    children: list[list[int]] = [[] for _ in parents]
    for v, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(v)
    x, depth = [0.0] * len(parents), [0] * len(parents)
    for v, parent in enumerate(parents):
        depth[v] = depth[parent] + 1 if parent >= 0 else 0
    for i, v in enumerate(_leaves(parents, children)):
        x[v] = float(i)
    for v in reversed(range(len(parents))):
        if children[v]:
            x[v] = sum(x[child] for child in children[v]) / len(children[v])
    return tuple((x[v], float(-depth[v])) for v in range(len(parents)))


def _leaves(parents: Sequence[int], children: list[list[int]]) -> list[int]:
    """Leaves in the order of a walk that finishes one branch before the next."""
    found: list[int] = []
    stack = [v for v in reversed(range(len(parents))) if parents[v] < 0]
    while stack:
        v = stack.pop()
        if not children[v]:
            found.append(v)
        stack += reversed(children[v])
    return found


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise InputError(f"{name} must be at least 1, got {value}.")
