"""Assignments of factor graphs: the best, drawn ones, their scores, and better ones nearby."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.graph_pass import (
    CliqueScratch,
    Examples,
    Shapes,
    begin,
    logs_for,
    most_blocks,
    reduce_table,
    run_program,
    scratch_for,
    total_value,
)
from vcrf.types import Floats, Ints, Ints32, UInts8

_DISTRIBUTE = 3


class Scopes(NamedTuple):
    """The variables of each part, and the parts of each variable; variables are numbered through all examples.

    is_symmetric : of each part, whether one entry serves both orders of its two values
    """

    ptr: Ints
    variables: Ints
    cards: Ints  # (n_variables,)
    is_symmetric: UInts8
    part_ptr: Ints  # of the variables
    parts: Ints
    variable_ptr: Ints  # of the examples


@inner_kernel
def entry_of(scopes: Scopes, p: int, y: Ints) -> int:
    """The entry of a part's scores at an assignment."""
    first, last = scopes.ptr[p], scopes.ptr[p + 1]
    if scopes.is_symmetric[p]:
        a, b = y[scopes.variables[first]], y[scopes.variables[first + 1]]
        return int(max(a, b) * (max(a, b) + 1) // 2 + min(a, b))
    entry = 0
    for k in range(first, last):
        v = scopes.variables[k]
        entry = entry * scopes.cards[v] + y[v]
    return entry


@kernel
def entries(scopes: Scopes, y: Ints, part_ptr: Ints, out: Ints) -> None:
    """Where the scores of all parts at an assignment are."""
    for p in range(len(out)):
        out[p] = part_ptr[p] + entry_of(scopes, p, y)


@inner_kernel
def choose(table: Floats, index: Ints32, wanted: int, draw: float) -> int:
    """The best entry among those that a map takes to `wanted` (-1: among all), or a drawn one if draw >= 0."""
    best, peak = -1, -np.inf
    for e in range(len(table)):
        if (wanted < 0 or index[e] == wanted) and table[e] > peak:
            best, peak = e, table[e]
    if draw < 0.0 or best < 0:
        return best
    total = 0.0
    for e in range(len(table)):
        if wanted < 0 or index[e] == wanted:
            total += np.exp(table[e] - peak)
    left = draw * total
    for e in range(len(table)):
        if wanted < 0 or index[e] == wanted:
            left -= np.exp(table[e] - peak)
            if left < 0.0:
                return e
    return best


@inner_kernel
def read_assignment(graphs: Shapes, shape: int, draws: Floats, room: CliqueScratch, chosen: Ints, y: Ints) -> None:
    """An assignment from the tables of an exact graph after they were collected; draws[c] < 0 takes the best."""
    base = graphs.clique_ptr[shape]
    nothing = graphs.maps[:0]
    for b in range(graphs.block_ptr[shape], graphs.block_ptr[shape + 1]):
        c = graphs.roots[b]
        first, size = graphs.cliques[c, 0], graphs.cliques[c, 1]
        chosen[c - base] = choose(room.tables[first : first + size], nothing, -1, draws[c - base])
    at = 4 * shape + _DISTRIBUTE
    for k in range(graphs.step_ptr[at], graphs.step_ptr[at + 1]):
        code = graphs.steps[k]
        row = graphs.separators[code >> 1]
        source, target, to, back = (row[1], row[0], row[5], row[4]) if code & 1 else (row[0], row[1], row[4], row[5])
        wanted = graphs.maps[graphs.map_ptr[to] + chosen[source - base]]
        first, size = graphs.cliques[target, 0], graphs.cliques[target, 1]
        index = graphs.maps[graphs.map_ptr[back] : graphs.map_ptr[back] + size]
        chosen[target - base] = choose(room.tables[first : first + size], index, wanted, draws[target - base])
    begin_v = graphs.variable_ptr[shape]
    for v in range(begin_v, graphs.variable_ptr[shape + 1]):
        c, to = graphs.homes[v]
        y[v - begin_v] = graphs.maps[graphs.map_ptr[to] + chosen[c - base]]


@kernel
def assign(
    graphs: Shapes, examples: Examples, i: int, scores: Floats, temperature: float, draws: Floats, y: Ints
) -> None:
    """Assignments of an exact graph: the best (temperature 0, draws below 0), or drawn (temperature 1).

    draws is (n, n_cliques), y (n, n_variables). Of equal assignments the first that the tables show is taken.
    """
    room, logs = scratch_for(graphs, examples, i, i + 1), logs_for(graphs, examples, i, i + 1)
    begin(graphs, examples, i, scores, np.zeros(0), temperature, 0, room, logs)
    chosen = np.zeros(draws.shape[1], np.int64)
    for k in range(len(draws)):
        read_assignment(graphs, examples.shapes[i], draws[k], room, chosen, y[k])


@kernel
def second_best(
    graphs: Shapes, examples: Examples, first: int, last: int, scores: Floats, y: Ints, variable_ptr: Ints, out: Floats
) -> None:
    """The best score of exact graphs without their best assignment y: the best with another value at some variable."""
    room, logs = scratch_for(graphs, examples, first, last), logs_for(graphs, examples, first, last)
    totals, nothing = np.empty(most_blocks(graphs, examples, first, last)), np.zeros(0)
    for i in range(first, last):
        shape = examples.shapes[i]
        begin(graphs, examples, i, scores, nothing, 0.0, 0, room, logs)
        value = total_value(graphs, shape, 0.0, room, totals)
        run_program(graphs, examples, i, _DISTRIBUTE, nothing, 0.0, room, logs)
        lead = -np.inf
        begin_v = graphs.variable_ptr[shape]
        for v in range(begin_v, graphs.variable_ptr[shape + 1]):
            at, size, block = graphs.cliques[graphs.homes[v, 0]]
            to = graphs.map_ptr[graphs.homes[v, 1]]
            reduce_table(room.tables[at : at + size], graphs.maps[to : to + size], graphs.cards[v], True, room)
            for x in range(graphs.cards[v]):
                if x != y[variable_ptr[i] + v - begin_v]:
                    lead = max(lead, room.sums[x] - totals[block - graphs.block_ptr[shape]])
        out[i] = value + lead


@inner_kernel
def value_at(scopes: Scopes, examples: Examples, scores: Floats, v: int, y: Ints) -> float:
    """Scores of the parts of a variable."""
    total = 0.0
    for k in range(scopes.part_ptr[v], scopes.part_ptr[v + 1]):
        p = scopes.parts[k]
        total += scores[examples.part_ptr[p] + entry_of(scopes, p, y)]
    return total


@kernel
def climb(scopes: Scopes, examples: Examples, first: int, last: int, scores: Floats, y: Ints, n_rounds: int) -> None:
    """Better assignments by changing one variable at a time, as long as that helps."""
    for i in range(first, last):
        for _ in range(n_rounds):
            is_changed = False
            for v in range(scopes.variable_ptr[i], scopes.variable_ptr[i + 1]):
                kept = y[v]
                found, peak = kept, value_at(scopes, examples, scores, v, y)
                for x in range(scopes.cards[v]):
                    y[v] = x
                    total = value_at(scopes, examples, scores, v, y)
                    # Ties stay: values would go round in circles.
                    if total > peak + 1e-12 * abs(peak):
                        found, peak = x, total
                y[v] = found
                is_changed = is_changed or found != kept
            if not is_changed:
                break
