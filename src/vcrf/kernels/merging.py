"""Minimal loss automata: potentials are pushed towards the start, then equal states of a layer are merged.

States are numbered through all layers: those of layer t are state_ptr[t] .. state_ptr[t+1]-1, and `next` gives the
number inside layer t+1. Every state has an arc for every label.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.strings import mix64
from vcrf.types import Bools, Floats, Ints

_SEED = np.uint64(0x9E3779B97F4A7C15)


@kernel
def push(state_ptr: Ints, following: Ints, cost: Floats, final: Floats) -> float:
    """Move costs towards the start, in place; returns what reaches the start, the least path cost.

    With V(q) the least cost of a path from q to the end, cost' = cost + V(next) - V(q) and final' = 0.
    """
    n_layers, n_labels = len(state_ptr) - 1, cost.shape[1]
    least = final.copy()
    final[:] = 0.0
    for t in range(n_layers - 2, -1, -1):
        first, width = state_ptr[t], state_ptr[t + 1] - state_ptr[t]
        here = np.empty(width)
        for q in range(width):
            top = np.inf
            for b in range(n_labels):
                value = cost[first + q, b] + least[following[first + q, b]]
                cost[first + q, b] = value
                top = min(top, value)
            for b in range(n_labels):
                cost[first + q, b] -= top
            here[q] = top
        least = here
    return float(least[0])


@inner_kernel
def reachable(state_ptr: Ints, following: Ints) -> Bools:
    """Which states some path from the start passes."""
    found = np.zeros(state_ptr[-1], np.bool_)
    found[0] = True
    for t in range(len(state_ptr) - 2):
        for q in range(state_ptr[t], state_ptr[t + 1]):
            if found[q]:
                for b in range(following.shape[1]):
                    found[state_ptr[t + 1] + following[q, b]] = True
    return found


@inner_kernel
def table_size(n: int) -> int:
    """Least power of two that is at least 2 n."""
    size = 4
    while size < 2 * n:
        size *= 2
    return size


@inner_kernel
def row_hash(row: Ints) -> np.uint64:
    """Hash of a row of integers."""
    h = _SEED
    for value in row:
        h = mix64(h ^ np.uint64(value))
    return h


@inner_kernel
def same_rows(row: Ints, other: Ints) -> bool:
    """Whether two rows are equal."""
    for i in range(len(row)):  # noqa: SIM110
        if row[i] != other[i]:
            return False
    return True


@inner_kernel
def find_row(row: Ints, rows: Ints, slots: Ints) -> int:
    """Slot of a row in a table of row numbers, -1 = empty, or the empty slot where it belongs."""
    mask = np.uint64(len(slots) - 1)
    slot = row_hash(row) & mask
    while slots[slot] >= 0 and not same_rows(rows[slots[slot]], row):
        slot = (slot + np.uint64(1)) & mask
    return int(slot)


@inner_kernel
def distinct_rows(rows: Ints, keep: Bools, number: Ints) -> Ints:
    """Number equal rows alike, in order of first occurrence; -1 for those not kept. Returns the first of each."""
    slots = np.full(table_size(len(rows)), -1, np.int64)
    chosen = np.empty(len(rows), np.int64)
    n = 0
    for i in range(len(rows)):
        number[i] = -1
        if keep[i]:
            slot = find_row(rows[i], rows, slots)
            if slots[slot] < 0:
                slots[slot] = i
                chosen[n] = i
                number[i] = n
                n += 1
            else:
                number[i] = number[slots[slot]]
    return chosen[:n].copy()


@kernel
def merge(state_ptr: Ints, following: Ints, cost_key: Ints, final_key: Ints) -> tuple[Ints, Ints, Ints]:
    """Merge states with equal futures: the same labels lead to equal costs and to merged states.

    Parameters
    ----------
    state_ptr : (l + 2,)
    following : (state_ptr[l], n_labels)
    cost_key : (state_ptr[l], n_labels) costs as integers
    final_key : (states of layer l,) final costs as integers

    Returns
    -------
    new_ptr : (l + 2,)
    kept : one old state for each new one, by layer and then in order of its number
    number : (n_states,) number of each old state inside its layer
    """
    n_layers, n_labels = len(state_ptr) - 1, following.shape[1]
    live = reachable(state_ptr, following)
    number = np.empty(state_ptr[-1], np.int64)
    kept = np.empty(state_ptr[-1], np.int64)
    widths = np.zeros(n_layers, np.int64)
    at = len(kept)  # filled from the end
    for t in range(n_layers - 1, -1, -1):
        first, last = state_ptr[t], state_ptr[t + 1]
        if t == n_layers - 1:
            rows = final_key.reshape(-1, 1)
        else:
            rows = np.empty((last - first, 2 * n_labels), np.int64)
            for q in range(last - first):
                for b in range(n_labels):
                    rows[q, b] = number[last + following[first + q, b]] if live[first + q] else -1
                    rows[q, n_labels + b] = cost_key[first + q, b]
        chosen = distinct_rows(rows, live[first:last], number[first:last])
        widths[t] = len(chosen)
        at -= len(chosen)
        kept[at : at + len(chosen)] = chosen + first
    new_ptr = np.zeros(n_layers + 1, np.int64)
    for t in range(n_layers):
        new_ptr[t + 1] = new_ptr[t] + widths[t]
    return new_ptr, kept[at:].copy(), number


@kernel
def count_zero_paths(state_ptr: Ints, following: Ints, cost: Floats, final: Floats, tiny: float) -> float:
    """How many label sequences cost nothing, in an automaton whose costs are not negative."""
    count = np.zeros(state_ptr[-1])
    count[0] = 1.0
    for t in range(len(state_ptr) - 2):
        for q in range(state_ptr[t], state_ptr[t + 1]):
            if count[q] > 0.0:
                for b in range(following.shape[1]):
                    if cost[q, b] <= tiny:
                        count[state_ptr[t + 1] + following[q, b]] += count[q]
    total = 0.0
    for q in range(len(final)):
        if final[q] <= tiny:
            total += count[state_ptr[-2] + q]
    return total
