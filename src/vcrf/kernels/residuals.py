"""Determinisation of layered tropical automata: a state is a vector of residual costs (Mohri 1997).

The alternatives of a loss (for edit distance, the cells of a column) are the nodes of a layered automaton that is not
deterministic. After t labels, value[k] is the least cost of reaching node k; a state of the deterministic automaton
is the vector value - min(value), and the minimum is paid on the arc. Costs are integers (a fine grid), so that equal
vectors are found equal. FAR stands for no path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.merging import row_hash, same_rows, table_size
from vcrf.types import Ints

FAR = np.int64(2**61)

DONE, TOO_MANY, NO_PATH = 0, 1, 2


class Nodes(NamedTuple):
    """A layered automaton over label classes; each layer has the same number of nodes.

    start : (n_nodes,) cost of beginning in a node
    final : (n_nodes,) cost of ending there
    arc_ptr : (length * n_classes + 1,); arcs of class c at position t are arc_ptr[t * n_classes + c] ..
    arc_src, arc_dst, arc_cost : (n_arcs,)
    silent_ptr : (length + 2,); arcs inside layer t, that read no label, are silent_ptr[t] ..; one sweep must suffice
    silent_src, silent_dst, silent_cost : (n_silent,)
    """

    start: Ints
    final: Ints
    arc_ptr: Ints
    arc_src: Ints
    arc_dst: Ints
    arc_cost: Ints
    silent_ptr: Ints
    silent_src: Ints
    silent_dst: Ints
    silent_cost: Ints


@inner_kernel
def after(value: np.int64, cost: np.int64) -> np.int64:
    """The sum, where no path stays no path; costs may be negative."""
    return FAR if value >= FAR else value + cost


@inner_kernel
def costs_to_go(nodes: Nodes, length: int, n_classes: int) -> tuple[Ints, Ints]:
    """Two bounds of the cost from each node to the end, over all labels that may follow; (length + 1, n_nodes).

    Of paths that go on by reading a label (or end): silent arcs are already followed when the bounds are used.

    least : the cheapest labels, the cheapest path
    most : the dearest labels, and a path chosen label by label without looking ahead: some path costs no more
    """
    _, final, arc_ptr, arc_src, arc_dst, arc_cost, silent_ptr, silent_src, silent_dst, silent_cost = nodes
    least = np.full((length + 1, len(final)), FAR)
    most = np.full((length + 1, len(final)), FAR)
    least[length], most[length] = final, final
    best = np.empty(len(final), np.int64)
    for t in range(length - 1, -1, -1):
        low, high = least[t + 1].copy(), most[t + 1].copy()  # with silent arcs
        for a in range(silent_ptr[t + 2] - 1, silent_ptr[t + 1] - 1, -1):
            k, to, cost = silent_src[a], silent_dst[a], silent_cost[a]
            low[k] = min(low[k], after(low[to], cost))
            high[k] = min(high[k], after(high[to], cost))
        most[t] = -FAR
        for c in range(n_classes):
            best[:] = FAR
            for a in range(arc_ptr[t * n_classes + c], arc_ptr[t * n_classes + c + 1]):
                k, to, cost = arc_src[a], arc_dst[a], arc_cost[a]
                least[t, k] = min(least[t, k], after(low[to], cost))
                best[k] = min(best[k], after(high[to], cost))
            for k in range(len(final)):
                most[t, k] = max(most[t, k], best[k])
    return least, most


@inner_kernel
def settle(value: Ints, t: int, nodes: Nodes, least: Ints, most: Ints) -> np.int64:
    """Follow the arcs that read nothing, drop useless nodes, subtract and return the minimum; FAR if no path is left.

    A node whose cheapest end is no cheaper than another node's dearest end can never matter.
    """
    silent_ptr, silent_src, silent_dst, silent_cost = (
        nodes.silent_ptr,
        nodes.silent_src,
        nodes.silent_dst,
        nodes.silent_cost,
    )
    for a in range(silent_ptr[t], silent_ptr[t + 1]):
        value[silent_dst[a]] = min(value[silent_dst[a]], after(value[silent_src[a]], silent_cost[a]))
    witness, sure = -1, FAR
    for k in range(len(value)):
        if value[k] < FAR and after(most[t, k], value[k]) < sure:
            witness, sure = k, value[k] + most[t, k]
    top = FAR
    for k in range(len(value)):
        if value[k] < FAR and (least[t, k] >= FAR or (k != witness and value[k] + least[t, k] >= sure)):
            value[k] = FAR
        top = min(top, value[k])
    if top < FAR:
        for k in range(len(value)):
            if value[k] < FAR:
                value[k] -= top
    return top


@inner_kernel
def find_state(value: Ints, rows: Ints, slots: Ints, n: int) -> int:
    """Number of a state of the new layer; a new one gets number n."""
    mask = np.uint64(len(slots) - 1)
    slot = row_hash(value) & mask
    while slots[slot] >= 0:
        if same_rows(rows[slots[slot]], value):
            return int(slots[slot])
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = n
    return n


@kernel
def determinise(
    nodes: Nodes, length: int, n_classes: int, max_states: int
) -> tuple[int, int, Ints, Ints, Ints, Ints, np.int64]:
    """Deterministic automaton with the same least costs.

    Returns
    -------
    status : DONE, TOO_MANY or NO_PATH
    t : layer where it went wrong
    state_ptr : (length + 2,)
    following, cost : (state_ptr[length], n_classes)
    final : (states of the last layer,)
    init
    """
    start, last, arc_ptr, arc_src, arc_dst, arc_cost, _, _, _, _ = nodes
    n_nodes = len(start)
    least, most = costs_to_go(nodes, length, n_classes)
    state_ptr = np.zeros(length + 2, np.int64)
    following = np.empty((64, n_classes), np.int64)
    cost = np.empty((64, n_classes), np.int64)
    layer = start.copy().reshape(1, n_nodes)
    nothing = np.empty(0, np.int64)
    init = settle(layer[0], 0, nodes, least, most)
    if init >= FAR:
        return NO_PATH, 0, state_ptr, following, cost, nothing, init
    value = np.empty(n_nodes, np.int64)
    for t in range(length):
        first, width = state_ptr[t], len(layer)
        state_ptr[t + 1] = first + width
        if state_ptr[t + 1] > len(following):
            n = 2 * state_ptr[t + 1]
            wider, dearer = np.empty((n, n_classes), np.int64), np.empty((n, n_classes), np.int64)
            wider[:first], dearer[:first] = following[:first], cost[:first]
            following, cost = wider, dearer
        room = min(width * n_classes, max_states - state_ptr[t + 1])
        rows = np.empty((room, n_nodes), np.int64)
        slots = np.full(table_size(room), -1, np.int64)
        n_new = 0
        for q in range(width):
            for c in range(n_classes):
                value[:] = FAR
                for a in range(arc_ptr[t * n_classes + c], arc_ptr[t * n_classes + c + 1]):
                    value[arc_dst[a]] = min(value[arc_dst[a]], after(layer[q, arc_src[a]], arc_cost[a]))
                paid = settle(value, t + 1, nodes, least, most)
                if paid >= FAR:
                    return NO_PATH, t + 1, state_ptr, following, cost, nothing, init
                found = find_state(value, rows, slots, n_new)
                if found == n_new:
                    if n_new == room:
                        return TOO_MANY, t + 1, state_ptr, following, cost, nothing, init
                    rows[n_new] = value
                    n_new += 1
                following[first + q, c], cost[first + q, c] = found, paid
        layer = rows[:n_new]
    n_arcs = state_ptr[length]
    state_ptr[length + 1] = n_arcs + len(layer)
    final = np.full(len(layer), FAR)
    for q in range(len(layer)):
        for k in range(n_nodes):
            if last[k] < FAR:
                final[q] = min(final[q], after(layer[q, k], last[k]))
    return DONE, length, state_ptr, following[:n_arcs].copy(), cost[:n_arcs].copy(), final, init
