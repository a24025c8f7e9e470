"""Passes over factor graphs: sums and maxima on clique trees, messages between blocks, marginals of parts.

All tables are in the log domain. See `graphs.schedule` for what the arrays mean and `graphs.blocks` for the bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.exponential import exp_inplace
from vcrf.types import Floats, Ints, Ints32, UInts64

_COLLECT, _FORWARD, _BACKWARD, _DISTRIBUTE = 0, 1, 2, 3


class Shapes(NamedTuple):
    """Schedules of all shapes, one after the other; see `graphs.schedule.Schedule` for the columns.

    `*_ptr` say where the rows of a shape (or of a clique, a variable, a program) begin. Cliques, blocks, separators and
    variables are numbered through all shapes; entries of tables, parts and messages count from 0 in each.
    """

    block_ptr: Ints
    weights: Floats
    roots: Ints
    clique_ptr: Ints
    cliques: Ints
    term_ptr: Ints
    terms: Ints
    shares: Floats
    message_ptr: Ints
    messages: Ints
    axis_ptr: Ints
    axes: Ints
    separator_ptr: Ints
    separators: Ints
    links: Ints
    variable_ptr: Ints
    cards: Ints
    homes: Ints
    visit_ptr: Ints
    visits: Ints
    step_ptr: Ints
    steps: Ints
    map_ptr: Ints
    maps: Ints32
    n_entries: Ints  # of all tables of a shape
    n_separated: Ints  # of all its separators


class Examples(NamedTuple):
    """The shape of each example, its first part, its first message, and where the scores of each part are."""

    shapes: Ints
    parts: Ints
    messages: Ints
    part_ptr: Ints


class CliqueScratch(NamedTuple):
    """Tables and separators of one example, and room for sums."""

    tables: Floats
    separators: Floats
    old: Floats
    sums: Floats
    peaks: Floats
    work: Floats
    bits: UInts64
    power: Floats


@kernel
def scratch_for(graphs: Shapes, examples: Examples, first: int, last: int) -> CliqueScratch:
    """Room for the largest of some examples."""
    n_tables, n_separated, largest = 1, 1, 1
    for i in range(first, last):
        shape = examples.shapes[i]
        n_tables = max(n_tables, graphs.n_entries[shape])
        n_separated = max(n_separated, graphs.n_separated[shape])
        for c in range(graphs.clique_ptr[shape], graphs.clique_ptr[shape + 1]):
            largest = max(largest, graphs.cliques[c, 1])
    bits = np.empty(largest, np.uint64)
    return CliqueScratch(
        np.empty(n_tables), np.empty(n_separated), np.empty(largest), np.empty(largest), np.empty(largest),
        np.empty(largest), bits, bits.view(np.float64),
    )  # fmt: skip


@inner_kernel
def reduce_table(table: Floats, to: Ints32, n: int, is_max: bool, room: CliqueScratch) -> None:
    """room.sums[s] = log of the sum (or the maximum) of exp(table) over the entries that a map takes to s < n."""
    peaks, sums, work = room.peaks, room.sums, room.work[: len(table)]
    for s in range(n):
        peaks[s] = -np.inf
    for e in range(len(table)):
        peaks[to[e]] = max(peaks[to[e]], table[e])
    if is_max:
        sums[:n] = peaks[:n]
        return
    for s in range(n):
        sums[s] = 0.0
        # Where all is forbidden any finite peak does: the sum is set to -inf below.
        if peaks[s] == -np.inf:
            peaks[s], sums[s] = 0.0, -np.inf
    for e in range(len(table)):
        work[e] = max(table[e] - peaks[to[e]], -700.0)
    exp_inplace(work, room.bits[: len(table)], room.power[: len(table)])
    for e in range(len(table)):
        sums[to[e]] += work[e]
    for s in range(n):
        sums[s] = peaks[s] + np.log(sums[s]) if sums[s] > 0.0 else -np.inf


@inner_kernel
def log_total(table: Floats, is_max: bool) -> float:
    """Log of the sum of exp(table), or its maximum."""
    peak = -np.inf
    for e in range(len(table)):
        peak = max(peak, table[e])
    if is_max or peak == -np.inf:
        return float(peak)
    total = 0.0
    for e in range(len(table)):
        total += np.exp(table[e] - peak)
    return float(peak + np.log(total))


@inner_kernel
def assemble(
    graphs: Shapes,
    examples: Examples,
    i: int,
    scores: Floats,
    messages: Floats,
    temperature: float,
    room: CliqueScratch,
) -> None:
    """Tables of the cliques: shares of the parts' scores and messages, over c T (temperature 0: as they are)."""
    shape = examples.shapes[i]
    tables = room.tables
    tables[: graphs.n_entries[shape]] = 0.0
    room.separators[: graphs.n_separated[shape]] = 0.0
    for c in range(graphs.clique_ptr[shape], graphs.clique_ptr[shape + 1]):
        first, size = graphs.cliques[c, 0], graphs.cliques[c, 1]
        scale = 1.0 / (temperature * graphs.weights[graphs.cliques[c, 2]]) if temperature > 0.0 else 1.0
        for k in range(graphs.term_ptr[c], graphs.term_ptr[c + 1]):
            at = examples.part_ptr[examples.parts[i] + graphs.terms[k, 0]]
            to = graphs.map_ptr[graphs.terms[k, 1]]
            share = scale * graphs.shares[k]
            for e in range(size):
                tables[first + e] += share * scores[at + graphs.maps[to + e]]
        for k in range(graphs.message_ptr[c], graphs.message_ptr[c + 1]):
            at = examples.messages[i] + graphs.messages[k, 0]
            to = graphs.map_ptr[graphs.messages[k, 1]]
            for e in range(size):
                tables[first + e] += scale * messages[at + graphs.maps[to + e]]


@inner_kernel
def step(graphs: Shapes, number: int, is_down: bool, is_max: bool, room: CliqueScratch) -> None:
    """Pass from a clique to its parent, or from the parent to it."""
    row = graphs.separators[number]
    source, target, to, back = (row[1], row[0], row[5], row[4]) if is_down else (row[0], row[1], row[4], row[5])
    n = row[3]
    first, size = graphs.cliques[source, 0], graphs.cliques[source, 1]
    index = graphs.maps[graphs.map_ptr[to] : graphs.map_ptr[to] + size]
    reduce_table(room.tables[first : first + size], index, n, is_max, room)
    held = room.separators[row[2] : row[2] + n]
    for s in range(n):
        new = room.sums[s]
        # Where nothing was allowed before, nothing is now.
        room.old[s] = new - held[s] if held[s] > -np.inf else 0.0
        held[s] = new
    first, size = graphs.cliques[target, 0], graphs.cliques[target, 1]
    index = graphs.maps[graphs.map_ptr[back] : graphs.map_ptr[back] + size]
    table = room.tables[first : first + size]
    for e in range(size):
        table[e] += room.old[index[e]]


@inner_kernel
def update(
    graphs: Shapes,
    examples: Examples,
    i: int,
    v: int,
    messages: Floats,
    temperature: float,
    room: CliqueScratch,
    logs: Floats,
) -> float:
    """Set the messages of a variable to the best for its blocks, whose roots stand there; returns the change of U.

    log b = sum_T c_T log mu_T, n_T += T c_T (log b - log mu_T): then all blocks have the same marginal, and U changes
    by T log sum_k b(k) <= 0.
    """
    n = graphs.cards[v]
    mean = logs[:n]
    mean[:] = 0.0
    begin, end = graphs.visit_ptr[v], graphs.visit_ptr[v + 1]
    for k in range(begin, end):
        c = graphs.visits[k, 0]
        first, size, weight = graphs.cliques[c, 0], graphs.cliques[c, 1], graphs.weights[graphs.cliques[c, 2]]
        to = graphs.map_ptr[graphs.visits[k, 1]]
        reduce_table(room.tables[first : first + size], graphs.maps[to : to + size], n, False, room)
        total = log_total(room.sums[:n], False)
        own = logs[(1 + k - begin) * n : (2 + k - begin) * n]
        for x in range(n):
            own[x] = room.sums[x] - total
            mean[x] += weight * own[x]
    for k in range(begin, end):
        c = graphs.visits[k, 0]
        first, size, weight = graphs.cliques[c, 0], graphs.cliques[c, 1], graphs.weights[graphs.cliques[c, 2]]
        own = logs[(1 + k - begin) * n : (2 + k - begin) * n]
        at = examples.messages[i] + graphs.visits[k, 2]
        for x in range(n):
            # A value that is forbidden stays so.
            own[x] = mean[x] - own[x] if own[x] > -np.inf and mean[x] > -np.inf else 0.0
            messages[at + x] += temperature * weight * own[x]
        to = graphs.map_ptr[graphs.visits[k, 1]]
        for e in range(size):
            room.tables[first + e] += own[graphs.maps[to + e]]
    return temperature * log_total(mean, False)


@kernel
def run_program(
    graphs: Shapes, examples: Examples, i: int, program: int, messages: Floats, temperature: float, room: CliqueScratch,
    logs: Floats,
) -> float:  # fmt: skip
    """All steps of a program; returns the change of U."""
    at, change = 4 * examples.shapes[i] + program, 0.0
    for k in range(graphs.step_ptr[at], graphs.step_ptr[at + 1]):
        code = graphs.steps[k]
        if code >= 0:
            step(graphs, code >> 1, (code & 1) == 1, temperature == 0.0, room)
        else:
            change += update(graphs, examples, i, -1 - code, messages, temperature, room, logs)
    return change


@kernel
def logs_for(graphs: Shapes, examples: Examples, first: int, last: int) -> Floats:
    """Room for the log marginals of a variable in all its blocks."""
    most = 1
    for i in range(first, last):
        shape = examples.shapes[i]
        for v in range(graphs.variable_ptr[shape], graphs.variable_ptr[shape + 1]):
            most = max(most, graphs.cards[v] * (1 + graphs.visit_ptr[v + 1] - graphs.visit_ptr[v]))
    return np.empty(most)


@inner_kernel
def total_value(graphs: Shapes, shape: int, temperature: float, room: CliqueScratch, totals: Floats) -> float:
    """U from the tables of the roots; totals[b] is log Z_T of each block."""
    value = 0.0
    begin = graphs.block_ptr[shape]
    for b in range(begin, graphs.block_ptr[shape + 1]):
        c = graphs.roots[b]
        first, size = graphs.cliques[c, 0], graphs.cliques[c, 1]
        total = log_total(room.tables[first : first + size], temperature == 0.0)
        totals[b - begin] = total
        value += temperature * graphs.weights[b] * total if temperature > 0.0 else total
    return value


@inner_kernel
def most_blocks(graphs: Shapes, examples: Examples, first: int, last: int) -> int:
    """Blocks of the example that has most."""
    most = 1
    for i in range(first, last):
        most = max(most, graphs.block_ptr[examples.shapes[i] + 1] - graphs.block_ptr[examples.shapes[i]])
    return most


@kernel
def begin(
    graphs: Shapes, examples: Examples, i: int, scores: Floats, messages: Floats, temperature: float, n_sweeps: int,
    room: CliqueScratch, logs: Floats,
) -> None:  # fmt: skip
    """Tables with the roots at their first places, after so many sweeps there and back over the messages."""
    assemble(graphs, examples, i, scores, messages, temperature, room)
    run_program(graphs, examples, i, _COLLECT, messages, temperature, room, logs)
    for _ in range(n_sweeps):
        run_program(graphs, examples, i, _FORWARD, messages, temperature, room, logs)
        run_program(graphs, examples, i, _BACKWARD, messages, temperature, room, logs)


@inner_kernel
def exp_belief(graphs: Shapes, shape: int, c: int, totals: Floats, room: CliqueScratch) -> Floats:
    """The marginals of a clique: exp(table - log Z)."""
    first, size = graphs.cliques[c, 0], graphs.cliques[c, 1]
    total = totals[graphs.cliques[c, 2] - graphs.block_ptr[shape]]
    work = room.work[:size]
    for e in range(size):
        work[e] = max(room.tables[first + e] - total, -700.0)
    exp_inplace(work, room.bits[:size], room.power[:size])
    return work


@inner_kernel
def add_parts(graphs: Shapes, examples: Examples, i: int, c: int, belief: Floats, parts: Floats) -> None:
    """A clique's shares in the marginals of its parts."""
    for k in range(graphs.term_ptr[c], graphs.term_ptr[c + 1]):
        at = examples.part_ptr[examples.parts[i] + graphs.terms[k, 0]]
        to = graphs.map_ptr[graphs.terms[k, 1]]
        share = graphs.shares[k]
        for e in range(len(belief)):
            parts[at + graphs.maps[to + e]] += share * belief[e]
