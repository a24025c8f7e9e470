"""How the marginals of exact graphs move as the scores move along a direction: sums with a derivative beside each.

Every table t has a companion dt/de at scores + e * direction. A sum's log moves by the mean of what its terms move by.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.graph_pass import (
    CliqueScratch,
    Examples,
    Shapes,
    assemble,
    exp_belief,
    log_total,
    most_blocks,
    reduce_table,
    scratch_for,
)
from vcrf.types import Floats

_COLLECT, _DISTRIBUTE = 0, 3


@inner_kernel
def move_step(graphs: Shapes, number: int, is_down: bool, room: CliqueScratch, moves: Floats, held: Floats) -> None:
    """As `graph_pass.step`, with the derivatives of the tables (`moves`) and of the separators (`held`)."""
    row = graphs.separators[number]
    source, target, to, back = (row[1], row[0], row[5], row[4]) if is_down else (row[0], row[1], row[4], row[5])
    n = row[3]
    first, size = graphs.cliques[source, 0], graphs.cliques[source, 1]
    index = graphs.maps[graphs.map_ptr[to] : graphs.map_ptr[to] + size]
    table = room.tables[first : first + size]
    reduce_table(table, index, n, False, room)
    means = np.zeros(n)
    for e in range(size):
        if room.sums[index[e]] > -np.inf:
            means[index[e]] += np.exp(table[e] - room.sums[index[e]]) * moves[first + e]
    separator, own = room.separators[row[2] : row[2] + n], held[row[2] : row[2] + n]
    first, size = graphs.cliques[target, 0], graphs.cliques[target, 1]
    index = graphs.maps[graphs.map_ptr[back] : graphs.map_ptr[back] + size]
    for e in range(size):
        s = index[e]
        if separator[s] > -np.inf:
            room.tables[first + e] += room.sums[s] - separator[s]
            moves[first + e] += means[s] - own[s]
    separator[:] = room.sums[:n]
    own[:] = means


@inner_kernel
def run_moves(graphs: Shapes, shape: int, program: int, room: CliqueScratch, moves: Floats, held: Floats) -> None:
    """All steps of a program."""
    at = 4 * shape + program
    for k in range(graphs.step_ptr[at], graphs.step_ptr[at + 1]):
        code = graphs.steps[k]
        move_step(graphs, code >> 1, (code & 1) == 1, room, moves, held)


@kernel
def moved_marginals(
    graphs: Shapes, examples: Examples, first: int, last: int, scores: Floats, direction: Floats, out: Floats
) -> None:
    """Derivatives of the marginals of every part of some exact graphs; out is zero before."""
    room = scratch_for(graphs, examples, first, last)
    totals = np.empty(most_blocks(graphs, examples, first, last))
    nothing = np.zeros(0)
    for i in range(first, last):
        shape = examples.shapes[i]
        n, n_separated = graphs.n_entries[shape], graphs.n_separated[shape]
        assemble(graphs, examples, i, direction, nothing, 1.0, room)
        moves, held = room.tables[:n].copy(), np.zeros(n_separated)
        assemble(graphs, examples, i, scores, nothing, 1.0, room)
        run_moves(graphs, shape, _COLLECT, room, moves, held)
        run_moves(graphs, shape, _DISTRIBUTE, room, moves, held)
        begin = graphs.block_ptr[shape]
        for b in range(begin, graphs.block_ptr[shape + 1]):
            at, size = graphs.cliques[graphs.roots[b], 0], graphs.cliques[graphs.roots[b], 1]
            totals[b - begin] = log_total(room.tables[at : at + size], False)
        for c in range(graphs.clique_ptr[shape], graphs.clique_ptr[shape + 1]):
            belief = exp_belief(graphs, shape, c, totals, room)
            add_moves(graphs, examples, i, c, belief, moves, out)


@inner_kernel
def add_moves(graphs: Shapes, examples: Examples, i: int, c: int, belief: Floats, moves: Floats, out: Floats) -> None:
    """The change of a clique's marginals p (dt - mean of dt), added to its parts."""
    first, mean = graphs.cliques[c, 0], 0.0
    for e in range(len(belief)):
        mean += belief[e] * moves[first + e]
    for k in range(graphs.term_ptr[c], graphs.term_ptr[c + 1]):
        at = examples.part_ptr[examples.parts[i] + graphs.terms[k, 0]]
        to = graphs.map_ptr[graphs.terms[k, 1]]
        for e in range(len(belief)):
            out[at + graphs.maps[to + e]] += graphs.shares[k] * belief[e] * (moves[first + e] - mean)
