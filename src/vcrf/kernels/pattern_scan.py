"""Expected and true counts of all tag patterns that can matter, length by length, none of the others.

A pattern's counts, in every column, are at most those of any part of it. So patterns of length k are looked at only if
both parts of length k - 1 have counts above the least strength: they are kept in a `Trie`. At each token the posterior
of a pattern (z, b) that is longer than the automaton's contexts is

    P(z, b at t) = P(z at t-1) P(b | state after z)

because a run of labels that is no context has one state. Such runs are handed from token to token in lists; of those
with a posterior below `least` the continuations are left out, which the caller allows for. This is done here for
sentences with a loss and those in the log domain, one by one; for all others see `kernels.pattern_levels`.

With a loss automaton the posterior is Markov in (context, row of the automaton), and a run has a posterior for each
row. Index (p, row) stands for context p where there is a loss: p * rows + row, with one row if there is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.kernels.blocks import PassOutput, Sentences
from vcrf.kernels.pattern_counts import ColumnPairs, LevelSums, Trie, add_pairs
from vcrf.kernels.pattern_groups import make_group
from vcrf.kernels.pattern_sweeps import Weighted, backward, make_messages, weighted
from vcrf.kernels.patterns import PatternArrays, apply_local, prepare_nodes, undo_local
from vcrf.kernels.product import LossArrays
from vcrf.kernels.scores import ArcFactors, LocalArcs, LocalFactors
from vcrf.types import Bools, Floats, Ints, UInts32


class LossRows(NamedTuple):
    """Rows of the loss automaton of one sentence of n tokens.

    lanes : (n + 1,) how many before each token and at the end, the row of those that have picked included
    place : (n + 1,) how many before earlier tokens
    first, successor : row (u, q) of `successor`, flat, is first[u] + q, and tells the next row by label; empty: no loss
    shares : like `back`, how much of what takes a label in (context, row) picks its cost; empty if nothing does
    """

    lanes: Ints
    place: Ints
    first: Ints
    successor: UInts32
    shares: Floats


class Runs(NamedTuple):
    """Patterns that are no contexts and end at a token: node, state, posterior; those of length j from node_ptr[j].

    The posterior in row q of run i is mass[i * stride + q].
    """

    node: Ints
    state: UInts32
    mass: Floats
    n_listed: Ints
    stride: int


@inner_kernel
def add_moved(
    z: float,
    rows: LossRows,
    u: int,
    n_states: int,
    n_labels: int,
    state: int,
    lane: int,
    label: int,
    out: Floats,
    at: int,
) -> None:
    """Add a posterior z in a row before token u, which goes on to context `state` by a label, to out[at + next row]."""
    if len(rows.successor) == 0:
        out[at] += z
        return
    picked = at + rows.lanes[u + 1] - 1
    if len(rows.shares) > 0:
        w = rows.lanes[u]
        if lane == w - 1:
            out[picked] += z
            return
        share = rows.shares[rows.place[u] * n_states + state * w + lane] * z
        out[picked] += share
        z -= share
    out[at + np.int64(rows.successor[(rows.first[u] + lane) * n_labels + label])] += z


@inner_fast_kernel
def conditional_rows(
    n_labels: int, w: int, fail: Ints, arc_ptr: Ints, arc_label: UInts32, arc_state: UInts32, factor: Floats,
    back: Floats, cond: Floats,
) -> None:  # fmt: skip
    """cond[(p, row) * L + b] = P(b | p, row) = factor(p, b) * back[target(p, b), row], normalised; w rows."""
    n, lanes = np.uint64(n_labels), np.uint64(w)
    for a in range(n):
        for lane in range(lanes):
            row = (a * lanes + lane) * n
            for b in range(n):
                cond[row + b] = factor[a * n + b] * back[np.uint64(arc_state[a * n + b]) * lanes + lane]
    for p in range(n_labels, len(fail)):
        row, shorter = np.uint64(p) * n * lanes, np.uint64(fail[p]) * n * lanes
        for x in range(n * lanes):
            cond[row + x] = cond[shorter + x]
        for arc in range(arc_ptr[p], arc_ptr[p + 1]):
            to = np.uint64(arc_state[arc]) * lanes
            for lane in range(lanes):
                cond[row + lane * n + np.uint64(arc_label[arc])] = factor[arc] * back[to + lane]
    for p in range(len(fail) * w):
        row = np.uint64(p) * n
        total = 0.0
        for b in range(n):
            total += cond[row + b]
        inverse = 1.0 / total if total > 0.0 else 0.0
        for b in range(n):
            cond[row + b] *= inverse


@inner_fast_kernel
def joint_rows(
    n_labels: int, rows: LossRows, u: int, fail: Ints, arc_state: UInts32, table: UInts32, cond: Floats, state: Floats,
    state_next: Floats, joint: Floats,
) -> None:  # fmt: skip
    """joint[(p, row) * L + b] = P(the labels before end in p, in the row, then b), and the next distribution."""
    n, w, w_next = np.uint64(n_labels), rows.lanes[u], rows.lanes[u + 1]
    state_next[: len(fail) * w_next] = 0.0
    for p in range(len(fail)):
        for lane in range(w):
            row, mass = np.uint64(p * w + lane) * n, state[p * w + lane]
            for b in range(n):
                joint[row + b] = mass * cond[row + b]
            if mass > 0.0 and len(rows.successor) == 0:
                for b in range(n):
                    state_next[arc_state[table[p, b]]] += joint[row + b]
            elif mass > 0.0:
                for b in range(n_labels):
                    to = int(arc_state[table[p, b]])
                    add_moved(
                        joint[row + np.uint64(b)], rows, u, len(fail), n_labels, to, lane, b, state_next, to * w_next
                    )
    for p in range(len(fail) - 1, n_labels - 1, -1):
        row, shorter = np.uint64(p * w) * n, np.uint64(fail[p] * w) * n
        for x in range(n * np.uint64(w)):
            joint[shorter + x] += joint[row + x]


@inner_kernel
def add_row(
    n_labels: int, w: int, right_ptr: Ints, right_label: UInts32, right_node: Ints, parent: int, first: int,
    oldest: int, mass: Floats, mass_first: int, row: Floats, state: int, weight: float, sums: Floats, squares: Floats,
    here: Floats, touched: Ints, n_touched: int,
) -> int:  # fmt: skip
    """Add the patterns (oldest, parent, b), whose posteriors are the sums over rows of mass * row[b], to the sums.

    `here`, if not empty, keeps the token's own posteriors, and `touched` the places of those that are not zero.
    """
    for i in range(right_ptr[parent], right_ptr[parent + 1]):
        at = state * w * n_labels + right_label[i]
        z = mass[mass_first] * row[at]
        for lane in range(1, w):
            z += mass[mass_first + lane] * row[at + lane * n_labels]
        slot = (right_node[i] - first) * n_labels + oldest
        sums[slot] += weight * z
        if len(squares) > 0:
            squares[slot] += weight * z * z
        if len(here) > 0 and z > 0.0:
            here[slot] = z
            touched[n_touched] = slot
            n_touched += 1
    return n_touched


@inner_kernel
def extend_run(
    n_labels: int, n_states: int, rows: LossRows, u: int, right_ptr: Ints, right_label: UInts32, right_node: Ints,
    is_context: Bools, node: int, state: int, mass: Floats, mass_first: int, row: Floats, least: float, table: UInts32,
    arc_state: UInts32, n: int, first: int, out: Runs,
) -> int:  # fmt: skip
    """List the continuations of a pattern that are no contexts, from place first + n on; returns the new n."""
    w = rows.lanes[u]
    for i in range(right_ptr[node], right_ptr[node + 1]):
        if is_context[right_node[i]]:
            continue
        at = state * w * n_labels + right_label[i]
        z = mass[mass_first] * row[at]
        for lane in range(1, w):
            z += mass[mass_first + lane] * row[at + lane * n_labels]
        if z >= least and z > 0.0:
            to, place = int(arc_state[table[state, right_label[i]]]), (first + n) * out.stride
            out.node[first + n] = right_node[i]
            out.state[first + n] = to
            if len(rows.successor) == 0:
                out.mass[place] = z
                n += 1
                continue
            out.mass[place : place + rows.lanes[u + 1]] = 0.0
            for lane in range(w):
                add_moved(
                    mass[mass_first + lane] * row[at + lane * n_labels], rows, u, n_states, n_labels, to, lane,
                    int(right_label[i]), out.mass, place,
                )  # fmt: skip
            n += 1
    return n


@inner_kernel
def level_token(
    k: int, n_labels: int, rows: LossRows, u: int, table: UInts32, arc_state: UInts32, trie: Trie, by_size: Ints,
    size_ptr: Ints, cond: Floats, joint: Floats, ones: Floats, old: Runs, new: Runs, least: float, weight: float,
    sums: Floats, squares: Floats, here: Floats, touched: Ints,
) -> int:  # fmt: skip
    """Patterns of length k that end at token u, from the rows of its contexts and the runs before it; lists new runs.

    `by_size` are the contexts with a kept pattern, by size. Returns the number of `touched` places.
    """
    node_ptr, parent, oldest, is_context, node_of = (
        trie.node_ptr,
        trie.parent,
        trie.oldest,
        trie.is_context,
        trie.node_of,
    )
    right_ptr, right_label, right_node = trie.right_ptr, trie.right_label, trie.right_node
    first, w, n_states = node_ptr[k - 1], rows.lanes[u], len(table)
    n_touched = 0
    if u >= k - 1:
        for i in range(size_ptr[k - 1], size_ptr[k]):
            g = node_of[by_size[i]]
            n_touched = add_row(
                n_labels, w, right_ptr, right_label, right_node, parent[g], first, oldest[g], ones, 0, joint,
                by_size[i], weight, sums, squares, here, touched, n_touched,
            )  # fmt: skip
        for i in range(node_ptr[k - 1], node_ptr[k - 1] + old.n_listed[k - 1]):
            g = old.node[i]
            n_touched = add_row(
                n_labels, w, right_ptr, right_label, right_node, parent[g], first, oldest[g], old.mass,
                i * old.stride, cond, int(old.state[i]), weight, sums, squares, here, touched, n_touched,
            )  # fmt: skip
    for j in range(2, k):
        n, at = 0, node_ptr[j]
        for i in range(size_ptr[j - 1], size_ptr[j]):
            p = by_size[i]
            n = extend_run(
                n_labels, n_states, rows, u, right_ptr, right_label, right_node, is_context, node_of[p], p, ones, 0,
                joint, least, table, arc_state, n, at, new,
            )  # fmt: skip
        for i in range(node_ptr[j - 1], node_ptr[j - 1] + old.n_listed[j - 1]):
            n = extend_run(
                n_labels, n_states, rows, u, right_ptr, right_label, right_node, is_context, old.node[i],
                int(old.state[i]), old.mass, i * old.stride, cond, least, table, arc_state, n, at, new,
            )  # fmt: skip
        new.n_listed[j] = n
    return n_touched


@inner_kernel
def first_state(rows: LossRows, n_labels: int, n_states: int, init: float, first: Floats, state: Floats) -> None:
    """Distribution of the states after the first token, from the posterior mass first[b * rows + row], any scale.

    `init` is the factor of picking before the first token.
    """
    w, w_next = rows.lanes[0], rows.lanes[1]
    state[: n_states * w_next] = 0.0
    total = 0.0
    for lane in range(w):
        z = init if lane > 0 else 1.0
        for b in range(n_labels):
            total += z * first[b * w + lane]
            add_moved(z * first[b * w + lane], rows, 0, n_states, n_labels, b, lane, b, state, b * w_next)
    state[: n_states * w_next] /= total


@kernel
def level_sentence(
    k: int, start: int, n_labels: int, graph: PatternArrays, fail: Ints, original: Floats, factor: Floats,
    local: LocalArcs, rows: LossRows, init: float, trie: Trie, by_size: Ints, size_ptr: Ints, back: Floats,
    given: Floats, weight: float, least: float, pairs: ColumnPairs, sums: Floats, squares: Floats, pair_sums: Floats,
    pair_gradient: Floats, sign: float, here: Floats, touched: Ints, runs: Runs, runs_next: Runs,
) -> None:  # fmt: skip
    """Add the posteriors of patterns of length k of one sentence to the sums.

    `back` is that of `pattern_sweeps.backward`, or `given`, if not empty, has the conditionals of all
    (context, row) of all tokens, flat.
    """
    n_states, most = len(fail), rows.lanes.max()
    cond, joint = np.empty(n_states * most * n_labels), np.empty(n_states * most * n_labels)
    state, state_next, ones = np.zeros(n_states * most), np.zeros(n_states * most), np.ones(most)
    ptr, arcs = local.ptr, local.arc
    old, new = runs, runs_next
    old.n_listed[:] = 0
    new.n_listed[:] = 0
    first_state(rows, n_labels, n_states, init, given if len(given) > 0 else back, state)
    for u in range(1, len(rows.lanes) - 1):
        t, begin, stop = start + u, rows.place[u] * n_states, rows.place[u + 1] * n_states
        if len(given) > 0:
            cond[: (stop - begin) * n_labels] = given[begin * n_labels : stop * n_labels]
        else:
            if ptr[t + 1] > ptr[t]:
                apply_local(arcs, local.factor, ptr[t], ptr[t + 1], graph.rank, graph.rank_end, graph.by_rank, factor)
            conditional_rows(
                n_labels, rows.lanes[u], fail, graph.arc_ptr, graph.arc_label, graph.arc_state, factor,
                back[begin:stop], cond,
            )  # fmt: skip
            if ptr[t + 1] > ptr[t]:
                undo_local(arcs, ptr[t], ptr[t + 1], graph.rank, graph.rank_end, graph.by_rank, original, factor)
        joint_rows(n_labels, rows, u, fail, graph.arc_state, graph.table, cond, state, state_next, joint)
        has_pairs = pairs.token_ptr[t + 1] > pairs.token_ptr[t]
        n_touched = level_token(
            k, n_labels, rows, u, graph.table, graph.arc_state, trie, by_size, size_ptr, cond, joint, ones, old, new,
            least, weight, sums, squares, here if has_pairs else here[:0], touched,
        )  # fmt: skip
        if has_pairs:
            if n_touched > 0:
                add_pairs(t, n_labels, pairs, weight, here, sign, pair_sums, pair_gradient)
            for i in range(n_touched):
                here[touched[i]] = 0.0
        state, state_next = state_next, state
        old, new = new, old


@kernel
def _plain_rows(length: int) -> LossRows:
    """One row a token."""
    return LossRows(
        np.ones(length + 1, np.int64), np.arange(length + 1), np.zeros(0, np.int64), np.zeros(0, np.uint32), np.zeros(0)
    )


@inner_kernel
def _loss_rows(
    i: int, sentences: Sentences, loss: LossArrays, t0: int, n_labels: int, arcs: Weighted, node: Floats, picks: bool
) -> tuple[LossRows, Floats]:
    """Rows of a sentence, and `back` with them."""
    group = make_group(loss, picks, np.full(1, i), sentences.ptr, sentences.weights, node, t0, n_labels)
    lanes, n_states = group.lanes[:, 1].copy(), len(arcs.graph.size)
    longest = len(lanes) - 1
    m = make_messages(n_labels, n_states, lanes.max(), group.place[longest], True)
    shares = np.empty(len(m.back) if picks else 0)
    backward(group, n_labels, arcs, m, shares)
    start = group.start[0]
    return LossRows(lanes, group.place[:-1].copy(), loss.first[start : start + longest], loss.successor, shares), m.back


@kernel
def level_block(
    sentences: Sentences, loss: LossArrays, picks: bool, first: int, last: int, n_labels: int, k: int, rows: UInts32,
    scores: Floats, graph: PatternArrays, fail: Ints, arc_scores: ArcFactors, cor: LocalFactors, local: LocalArcs,
    trie: Trie, by_size: Ints, size_ptr: Ints, least: float, pairs: ColumnPairs, out: PassOutput, sums: LevelSums,
) -> None:  # fmt: skip
    """Add the expected patterns of length k of sentences first .. last-1 with a loss, hard ones left out."""
    t0, original = sentences.ptr[first], arc_scores.factor
    node, _ = prepare_nodes(sentences, first, last, n_labels, rows, scores, arc_scores, cor, False, out)
    factor, arcs = original.copy(), weighted(n_labels, graph, original, local)
    most = max(loss.width.max(), (loss.final_ptr[1:] - loss.final_ptr[:-1]).max()) + 2
    here, touched, old, new = level_scratch(k, n_labels, trie, len(pairs.pair_node) > 0, most)
    for i in range(first, last):
        start, weight = sentences.ptr[i], sentences.weights[i]
        if sentences.ptr[i + 1] - start < k or out.hard[i] == 1 or weight == 0.0:
            continue
        own, back = _loss_rows(i, sentences, loss, t0, n_labels, arcs, node, picks)
        level_sentence(
            k, start, n_labels, graph, fail, original, factor, local, own, loss.init[i], trie, by_size, size_ptr, back,
            np.zeros(0), weight, least, pairs, sums.expected, sums.squares, sums.pair_expected, sums.pair_gradient, 1.0,
            here, touched, old, new,
        )  # fmt: skip


@kernel
def level_scratch(k: int, n_labels: int, trie: Trie, has_pairs: bool, most: int) -> tuple[Floats, Ints, Runs, Runs]:
    """Arrays that `level_sentence` works on, for up to so many rows."""
    n_slots = (trie.node_ptr[k] - trie.node_ptr[k - 1]) * n_labels if has_pairs else 0
    n = len(trie.parent)
    old = Runs(np.empty(n, np.int64), np.empty(n, np.uint32), np.empty(n * most), np.zeros(k + 1, np.int64), most)
    new = Runs(np.empty(n, np.int64), np.empty(n, np.uint32), np.empty(n * most), np.zeros(k + 1, np.int64), most)
    return np.zeros(n_slots), np.empty(n_slots, np.int64), old, new
