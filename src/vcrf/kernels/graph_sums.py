"""Sums over graphs: values, marginals, and marginals that agree between blocks, which the certificate needs.

After some sweeps the blocks' marginals mu_T(v) still differ. With b_v = sum_T c_T mu_T(v), a value k of v in block T
stays with probability keep(k) = min(1, b(k) / mu(k)) and is else drawn anew from p, the part of b above mu. Done to
every axis of every table, all marginals of v are b_v. It is what happens to one joint distribution of each block, so
that tables which share several variables agree on them too. Any such marginals give a lower bound of the relaxed sum:

    min over messages of U >= sum_f theta_f . mu_f + sum_T c_T H_T
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.graph_pass import (
    CliqueScratch,
    Examples,
    Shapes,
    add_parts,
    begin,
    exp_belief,
    logs_for,
    most_blocks,
    reduce_table,
    run_program,
    scratch_for,
    total_value,
)
from vcrf.types import Floats

_DISTRIBUTE = 3


@inner_kernel
def entropy(table: Floats) -> float:
    """Minus the sum of p log p."""
    total = 0.0
    for e in range(len(table)):
        if table[e] > 0.0:
            total -= table[e] * np.log(table[e])
    return total


@inner_kernel
def find_changes(graphs: Shapes, shape: int, totals: Floats, room: CliqueScratch, keep: Floats, fresh: Floats) -> None:
    """How the marginals of each shared variable are changed, in the layout of the example's messages."""
    mean = np.empty(1)
    for v in range(graphs.variable_ptr[shape], graphs.variable_ptr[shape + 1]):
        n = graphs.cards[v]
        if len(mean) < n:
            mean = np.empty(n)
        mean[:n] = 0.0
        for k in range(graphs.visit_ptr[v], graphs.visit_ptr[v + 1]):
            c, at = graphs.visits[k, 0], graphs.visits[k, 2]
            first, size, block = graphs.cliques[c]
            to = graphs.map_ptr[graphs.visits[k, 1]]
            reduce_table(room.tables[first : first + size], graphs.maps[to : to + size], n, False, room)
            for x in range(n):
                fresh[at + x] = np.exp(room.sums[x] - totals[block - graphs.block_ptr[shape]])
                mean[x] += graphs.weights[block] * fresh[at + x]
        for k in range(graphs.visit_ptr[v], graphs.visit_ptr[v + 1]):
            at, gained = graphs.visits[k, 2], 0.0
            for x in range(n):
                own = fresh[at + x]
                keep[at + x] = min(1.0, mean[x] / own) if own > 0.0 else 1.0
                fresh[at + x] = max(mean[x] - own, 0.0)
                gained += fresh[at + x]
            for x in range(n):
                fresh[at + x] = fresh[at + x] / gained if gained > 0.0 else mean[x]


@inner_kernel
def change_axis(table: Floats, n: int, stride: int, keep: Floats, fresh: Floats) -> None:
    """Values along an axis stay with probability keep, and are else drawn anew from fresh."""
    for outer in range(0, len(table), n * stride):
        for inner in range(outer, outer + stride):
            moved = 0.0
            for x in range(n):
                moved += table[inner + x * stride] * (1.0 - keep[x])
            for x in range(n):
                table[inner + x * stride] = table[inner + x * stride] * keep[x] + moved * fresh[x]


@inner_kernel
def repair_clique(graphs: Shapes, c: int, table: Floats, keep: Floats, fresh: Floats, room: CliqueScratch) -> float:
    """Change all axes of a clique's marginals; returns its entropy less that of its separator."""
    for k in range(graphs.axis_ptr[c], graphs.axis_ptr[c + 1]):
        at, n, stride = graphs.axes[k]
        change_axis(table, n, stride, keep[at : at + n], fresh[at : at + n])
    found, link = entropy(table), graphs.links[c]
    if link >= 0:
        n, to = graphs.separators[link, 3], graphs.map_ptr[graphs.separators[link, 4]]
        sums = room.sums[:n]
        sums[:] = 0.0
        for e in range(len(table)):
            sums[graphs.maps[to + e]] += table[e]
        found -= entropy(sums)
    return found


@kernel
def sums(
    graphs: Shapes, examples: Examples, first: int, last: int, scores: Floats, messages: Floats, temperature: float,
    n_sweeps: int, out: Floats, parts: Floats, agreed: Floats, entropies: Floats,
) -> None:  # fmt: skip
    """U of each example at a temperature (0: the sum of the blocks' maxima) after so many sweeps there and back.

    Messages are updated in place. `parts` gets the marginals of every part, a mean over its blocks; `agreed` those on
    which the blocks agree, and `entropies` their sum_T c_T H_T. Both are zero before, or empty where not wanted.
    """
    room, logs = scratch_for(graphs, examples, first, last), logs_for(graphs, examples, first, last)
    totals = np.empty(most_blocks(graphs, examples, first, last))
    for i in range(first, last):
        shape = examples.shapes[i]
        begin(graphs, examples, i, scores, messages, temperature, n_sweeps, room, logs)
        out[i] = total_value(graphs, shape, temperature, room, totals)
        if len(parts) == 0:
            continue
        run_program(graphs, examples, i, _DISTRIBUTE, messages, temperature, room, logs)
        n_messages = examples.messages[i + 1] - examples.messages[i] if len(agreed) else 0
        keep, fresh = np.ones(n_messages), np.zeros(n_messages)
        if len(agreed):
            find_changes(graphs, shape, totals, room, keep, fresh)
            entropies[i] = 0.0
        for c in range(graphs.clique_ptr[shape], graphs.clique_ptr[shape + 1]):
            belief = exp_belief(graphs, shape, c, totals, room)
            add_parts(graphs, examples, i, c, belief, parts)
            if len(agreed):
                own = repair_clique(graphs, c, belief, keep, fresh, room)
                entropies[i] += graphs.weights[graphs.cliques[c, 2]] * own
                add_parts(graphs, examples, i, c, belief, agreed)
