"""Loops that build a pattern automaton; see `vcrf.lattice.automaton` for its arrays."""

from __future__ import annotations

from vcrf.kernels._jit import kernel
from vcrf.types import Ints, UInts32


@kernel
def fill_table(
    n_labels: int, fail: Ints, arc_ptr: Ints, arc_label: Ints, arc_state: Ints, up: Ints, table: UInts32
) -> None:
    """Arcs taken from each context, shortest contexts first; writes `up`, and the states of arcs that have none."""
    for a in range(n_labels):
        for b in range(n_labels):
            table[a, b] = a * n_labels + b
    for p in range(n_labels, len(fail)):
        table[p] = table[fail[p]]
        for arc in range(arc_ptr[p], arc_ptr[p + 1]):
            over = int(table[p, arc_label[arc]])
            up[arc] = over
            if arc_state[arc] < 0:
                arc_state[arc] = arc_state[over]
            table[p, arc_label[arc]] = arc


@kernel
def subtree_ends(fail: Ints, end: Ints) -> None:
    """end[p] = one past the last context that backs off to p; contexts are in preorder."""
    for p in range(len(fail) - 1, -1, -1):
        if fail[p] >= 0:
            end[fail[p]] = max(end[fail[p]], end[p])


@kernel
def subtree_counts(up: Ints, count: Ints) -> None:
    """count[i] += counts of the arcs that overwrite i; they come after it."""
    for i in range(len(up) - 1, -1, -1):
        if up[i] >= 0:
            count[up[i]] += count[i]
