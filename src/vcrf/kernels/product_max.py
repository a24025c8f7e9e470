"""Best label sequences on the product of a chain and a loss automaton: loss-augmented decoding of many sentences.

States are those of `kernels.product`, messages are best scores, the loss so far included. A sequence is worth its loss
plus its score less that of the truth (margin rescaling); for slack rescaling see `kernels.slack`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.kernels.blocks import Corrections, Tables
from vcrf.kernels.corrections import pattern_code, power
from vcrf.kernels.potentials import node_scores
from vcrf.types import Floats, Ints, UInts32


class Ends(NamedTuple):
    """The loss automata of all sentences, as in `kernels.product`."""

    first: Ints
    width: Ints
    successor: UInts32
    cost: Floats
    final_ptr: Ints
    final: Floats
    init: Floats


class Best(NamedTuple):
    """What is found: worth, loss, slope (sentences), and the labels (tokens); the truth and 0 if nothing is better."""

    values: Floats
    losses: Floats
    slopes: Floats
    labels: UInts32


@kernel
def _correct(cor: Corrections, t: int, n_labels: int, depth: int, base: int, table: Floats, original: Floats,
             undo: bool) -> None:  # fmt: skip
    """Add the corrections of a token to the table of its depth, or restore it."""
    for j in range(cor.ptr[t], cor.ptr[t + 1]):
        if cor.size[j] <= depth:
            step = power(n_labels, int(cor.size[j]))
            for arc in range(int(cor.code[j]), power(n_labels, depth), step):
                table[base + arc] = original[base + arc] if undo else table[base + arc] + cor.score[j]


@kernel
def _best_before(
    best: Floats, first: int, table: Floats, base: int, n_labels: int, n_hist: int, half: int, u: Floats
) -> None:
    """u[h, b] = max over the oldest label a of best[a, h] + table[a, h, b]; half >= n_hist keeps all of the history."""
    for k in range(min(half, n_hist) * n_labels):
        u[k] = -np.inf
    for s in range(n_hist):
        x, h, row = best[first + s], s % half * n_labels, base + s * n_labels
        for b in range(n_labels):
            z = x + table[row + b]
            u[h + b] = z if z > u[h + b] else u[h + b]


@kernel
def _move(
    u: Floats, node: Floats, at: int, ends: Ends, row: int, n_labels: int, n_states: int, n_next: int, best: Floats,
    first: int,
) -> None:  # fmt: skip
    """best[successor, h, b] = max with u[h, b] + node[b] + cost[b]."""
    for b in range(n_labels):
        dest = first + np.int64(ends.successor[row * n_labels + b]) * n_states + b
        x = node[at + b] + ends.cost[row * n_labels + b]
        for k in range(0, n_next, n_labels):
            z = u[k + b] + x
            best[dest + k] = z if z > best[dest + k] else best[dest + k]


@kernel
def _trace(
    ends: Ends, start: int, stop: int, n_labels: int, node: Floats, at: int, tables: Tables, cor: Corrections,
    table: Floats, rows: Ints, best: Floats, q: int, s: int, labels: UInts32,
) -> None:  # fmt: skip
    """Labels of a best path that ends in row q and history s, from the last token to the first."""
    order, offsets = tables.order, tables.offsets
    n_states = power(n_labels, order - 1)
    for t in range(stop - 1, start - 1, -1):
        depth = min(t - start + 1, order)
        base, n_hist = offsets[depth], power(n_labels, depth - 1)
        b = s % n_labels
        labels[t] = b
        # The histories before: at full depth the oldest label is free, else the rest of s is the history.
        n_olds = n_labels if depth == order else 1
        h = s // n_labels
        _correct(cor, t, n_labels, depth, base, table, tables.log, False)
        top, from_q, from_s = -np.inf, 0, 0
        for row in range(ends.width[t]):
            arc = (ends.first[t] + row) * n_labels + b
            if ends.successor[arc] != q:
                continue
            x = node[at + (t - start) * n_labels + b] + ends.cost[arc]
            for old in range(n_olds):
                before = old * (n_hist // n_labels) + h if depth == order else h
                z = best[(rows[t - start] + row) * n_states + before] + table[base + before * n_labels + b] + x
                if z > top:
                    top, from_q, from_s = z, row, before
        _correct(cor, t, n_labels, depth, base, table, tables.log, True)
        q, s = from_q, from_s


@kernel
def _path_loss(ends: Ends, i: int, start: int, stop: int, n_labels: int, labels: UInts32) -> float:
    loss, q = ends.init[i], 0
    for t in range(start, stop):
        arc = (ends.first[t] + q) * n_labels + labels[t]
        loss += ends.cost[arc]
        q = int(ends.successor[arc])
    return float(loss + ends.final[ends.final_ptr[i] + q])


@kernel
def number_rows(width: Ints, start: int, stop: int, numbers: Ints) -> int:
    """First row of each layer of a sentence, numbered from 0; returns the number of rows before the last layer."""
    n_rows = 0
    for t in range(start, stop):
        numbers[t - start] = n_rows
        n_rows += width[t]
    numbers[stop - start] = n_rows
    return n_rows


@kernel
def max_pass(
    sent_ptr: Ints, y: UInts32, first: int, last: int, n_labels: int, ends: Ends, rows: UInts32, scores: Floats,
    tables: Tables, cor: Corrections, out: Best,
) -> None:  # fmt: skip
    """The label sequences of sentences first .. last-1 that are worth the most; order 2 or more."""
    t0, t1 = sent_ptr[first], sent_ptr[last]
    order, offsets = tables.order, tables.offsets
    n_states = power(n_labels, order - 1)
    node = np.empty((t1 - t0) * n_labels)
    node_scores(rows, scores, t0, t1, node)
    table, u, best = tables.log.copy(), np.empty(n_states), np.empty(0)
    for i in range(first, last):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        out.values[i] = out.losses[i] = out.slopes[i] = 0.0
        if stop == start:
            continue
        f0, n_final = ends.final_ptr[i], ends.final_ptr[i + 1] - ends.final_ptr[i]
        numbers = np.empty(stop - start + 1, np.int64)
        n_rows = number_rows(ends.width, start, stop, numbers) + n_final
        if len(best) < n_rows * n_states:
            best = np.empty(n_rows * n_states)
        best[: n_rows * n_states] = -np.inf
        best[0] = ends.init[i]
        truth = 0.0
        for t in range(start, stop):
            depth = min(t - start + 1, order)
            base, n_hist = offsets[depth], power(n_labels, depth - 1)
            n_next = n_states if depth == order else n_hist * n_labels
            half = n_states // n_labels if depth == order else n_hist
            at = (t - t0) * n_labels
            _correct(cor, t, n_labels, depth, base, table, tables.log, False)
            truth += node[at + y[t]] + table[base + pattern_code(y, t - depth + 1, t, n_labels)]
            for row in range(ends.width[t]):
                _best_before(best, (numbers[t - start] + row) * n_states, table, base, n_labels, n_hist, half, u)
                _move(
                    u, node, at, ends, ends.first[t] + row, n_labels, n_states, n_next, best,
                    numbers[t - start + 1] * n_states,
                )  # fmt: skip
            _correct(cor, t, n_labels, depth, base, table, tables.log, True)
        # Of a long sentence L**length would overflow.
        n_hist = power(n_labels, min(stop - start, order - 1))
        worth, end_q, end_s = -np.inf, 0, 0
        for q in range(n_final):
            for s in range(n_hist):
                z = ends.final[f0 + q] + best[(numbers[stop - start] + q) * n_states + s] - truth
                if z > worth:
                    worth, end_q, end_s = z, q, s
        # The truth is worth 0 but for rounding.
        if worth > 1e-12 * (1.0 + abs(truth)):
            _trace(
                ends, start, stop, n_labels, node, (start - t0) * n_labels, tables, cor, table, numbers, best, end_q,
                end_s, out.labels,
            )  # fmt: skip
            out.values[i], out.slopes[i] = worth, 1.0
            out.losses[i] = _path_loss(ends, i, start, stop, n_labels, out.labels)
        else:
            for t in range(start, stop):
                out.labels[t] = y[t]
