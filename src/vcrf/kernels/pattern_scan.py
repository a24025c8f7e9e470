"""Expected and true counts of all tag patterns that can matter, length by length, none of the others.

A pattern's counts, in every column, are at most those of any part of it. So patterns of length k are looked at only if
both parts of length k - 1 have counts above the least strength: they are kept in a `Trie`. At each token the posterior
of a pattern (z, b) that is longer than the automaton's contexts is

    P(z, b at t) = P(z at t-1) P(b | state after z)

because a run of labels that is no context has one state. Such runs are handed from token to token in lists; of those
with a posterior below `least` the continuations are left out, which the caller allows for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import fast_kernel, kernel
from vcrf.kernels.chain import Corrections, PassOutput, Sentences
from vcrf.kernels.patterns import (
    ArcScores,
    Graph,
    LocalArcs,
    apply_local,
    backward_sentence,
    longest_of,
    prepare_nodes,
    undo_local,
)
from vcrf.types import Bools, Floats, Ints, UInts32


class Trie(NamedTuple):
    """Patterns kept, of lengths 0 .. k-1: those of length j are node_ptr[j] .. node_ptr[j+1]-1; node 0 is empty.

    Attributes
    ----------
    parent : the pattern without its oldest label
    oldest : the oldest label
    is_context : whether the automaton has it as a context
    right_ptr, right_label, right_node : CSR, patterns with one label more at the end that are kept
    node_of : (n_states,) the pattern of each context, -1 if it is not kept
    """

    node_ptr: Ints
    parent: Ints
    oldest: Ints
    is_context: Bools
    right_ptr: Ints
    right_label: UInts32
    right_node: Ints
    node_of: Ints


class ColumnPairs(NamedTuple):
    """Columns with kept patterns of length k - 1: pairs of a column and a pattern.

    Attributes
    ----------
    token_ptr, token_column, token_value : CSR over tokens, columns that occur there
    pair_ptr : pairs pair_ptr[c] .. pair_ptr[c+1]-1 belong to column c
    pair_node : number of the pattern among those of its length
    """

    token_ptr: Ints
    token_column: UInts32
    token_value: Floats
    pair_ptr: Ints
    pair_node: Ints


class LevelSums(NamedTuple):
    """Sums over tokens by (pattern of length k - 1, label before it), flat: what a level adds up.

    `expected`, `observed`, `squares` are over all tokens; `pair_expected`, `pair_observed` those of the pairs
    (with absolute values), `pair_gradient` the pairs' expected less observed, with signs.
    """

    expected: Floats
    observed: Floats
    squares: Floats
    pair_expected: Floats
    pair_observed: Floats
    pair_gradient: Floats


class Runs(NamedTuple):
    """Patterns that are no contexts and end at a token: node, state, posterior; those of length j from node_ptr[j]."""

    node: Ints
    state: UInts32
    mass: Floats
    n_listed: Ints


@fast_kernel
def conditional_rows(
    n_labels: int, fail: Ints, arc_ptr: Ints, arc_label: UInts32, arc_state: UInts32, factor: Floats, back: Floats,
    at: int, cond: Floats,
) -> None:  # fmt: skip
    """cond[p * L + b] = P(b | p) = factor(p, b) * back[at + target(p, b)], normalised."""
    n = np.uint64(n_labels)
    for a in range(n):
        for b in range(n):
            pair = a * n + b
            cond[pair] = factor[pair] * back[np.uint64(at) + np.uint64(arc_state[pair])]
    for p in range(n_labels, len(fail)):
        row, shorter = np.uint64(p) * n, np.uint64(fail[p]) * n
        for b in range(n):
            cond[row + b] = cond[shorter + b]
        for arc in range(arc_ptr[p], arc_ptr[p + 1]):
            cond[row + np.uint64(arc_label[arc])] = factor[arc] * back[np.uint64(at) + np.uint64(arc_state[arc])]
    for p in range(len(fail)):
        row = np.uint64(p) * n
        total = 0.0
        for b in range(n):
            total += cond[row + b]
        inverse = 1.0 / total if total > 0.0 else 0.0
        for b in range(n):
            cond[row + b] *= inverse


@fast_kernel
def joint_rows(
    n_labels: int, fail: Ints, arc_state: UInts32, table: UInts32, cond: Floats, state: Floats, state_next: Floats,
    joint: Floats,
) -> None:  # fmt: skip
    """joint[p * L + b] = P(the labels before end in p, then b), and the distribution of the next state."""
    n = np.uint64(n_labels)
    state_next[:] = 0.0
    for p in range(len(fail)):
        row = np.uint64(p) * n
        mass = state[p]
        for b in range(n):
            joint[row + b] = mass * cond[row + b]
        if mass > 0.0:
            for b in range(n):
                state_next[arc_state[table[p, b]]] += joint[row + b]
    for p in range(len(fail) - 1, n_labels - 1, -1):
        row, shorter = np.uint64(p) * n, np.uint64(fail[p]) * n
        for b in range(n):
            joint[shorter + b] += joint[row + b]


@kernel
def add_row(
    n_labels: int, right_ptr: Ints, right_label: UInts32, right_node: Ints, parent: int, first: int, oldest: int,
    mass: float, row: Floats, at: int, weight: float, sums: Floats, squares: Floats, here: Floats, touched: Ints,
    n_touched: int,
) -> int:  # fmt: skip
    """Add the patterns (oldest, parent, b), whose posteriors are mass * row[at + b], to the sums.

    `here`, if not empty, keeps the token's own posteriors, and `touched` the places of those that are not zero.
    """
    for i in range(right_ptr[parent], right_ptr[parent + 1]):
        z = mass * row[at + right_label[i]]
        slot = (right_node[i] - first) * n_labels + oldest
        sums[slot] += weight * z
        if len(squares) > 0:
            squares[slot] += weight * z * z
        if len(here) > 0 and z > 0.0:
            here[slot] = z
            touched[n_touched] = slot
            n_touched += 1
    return n_touched


@kernel
def extend_run(
    right_ptr: Ints, right_label: UInts32, right_node: Ints, is_context: Bools, node: int, state: int,
    mass: float, row: Floats, at: int, least: float, table: UInts32, arc_state: UInts32, n: int, first: int,
    out_node: Ints, out_state: UInts32, out_mass: Floats,
) -> int:  # fmt: skip
    """List the continuations of a pattern that are no contexts, from place first + n on; returns the new n."""
    for i in range(right_ptr[node], right_ptr[node + 1]):
        z = mass * row[at + right_label[i]]
        to = right_node[i]
        if z >= least and z > 0.0 and not is_context[to]:
            out_node[first + n] = to
            out_state[first + n] = arc_state[table[state, right_label[i]]]
            out_mass[first + n] = z
            n += 1
    return n


@kernel
def level_token(
    k: int, n_labels: int, table: UInts32, arc_state: UInts32, trie: Trie, by_size: Ints,
    size_ptr: Ints, cond: Floats, joint: Floats, old: Runs, new: Runs, least: float, weight: float, is_deep: bool,
    sums: Floats, squares: Floats, here: Floats, touched: Ints,
) -> int:  # fmt: skip
    """Patterns of length k that end at a token, from the rows of its contexts and the runs before it; lists new runs.

    `by_size` are the contexts with a kept pattern, by size. Returns the number of `touched` places.
    """
    node_ptr, parent, oldest, is_context, right_ptr, right_label, right_node, node_of = trie
    first = node_ptr[k - 1]
    n_touched = 0
    if is_deep:
        for i in range(size_ptr[k - 1], size_ptr[k]):
            g = node_of[by_size[i]]
            n_touched = add_row(
                n_labels, right_ptr, right_label, right_node, parent[g], first, oldest[g], 1.0, joint,
                by_size[i] * n_labels, weight, sums, squares, here, touched, n_touched,
            )  # fmt: skip
        for i in range(node_ptr[k - 1], node_ptr[k - 1] + old.n_listed[k - 1]):
            g = old.node[i]
            n_touched = add_row(
                n_labels, right_ptr, right_label, right_node, parent[g], first, oldest[g], old.mass[i], cond,
                int(old.state[i]) * n_labels, weight, sums, squares, here, touched, n_touched,
            )  # fmt: skip
    for j in range(2, k):
        n, at = 0, node_ptr[j]
        for i in range(size_ptr[j - 1], size_ptr[j]):
            p = by_size[i]
            n = extend_run(
                right_ptr, right_label, right_node, is_context, node_of[p], p, 1.0, joint, p * n_labels,
                least, table, arc_state, n, at, new.node, new.state, new.mass,
            )  # fmt: skip
        for i in range(node_ptr[j - 1], node_ptr[j - 1] + old.n_listed[j - 1]):
            p = int(old.state[i])
            n = extend_run(
                right_ptr, right_label, right_node, is_context, old.node[i], p, old.mass[i], cond,
                p * n_labels, least, table, arc_state, n, at, new.node, new.state, new.mass,
            )  # fmt: skip
        new.n_listed[j] = n
    return n_touched


@kernel
def add_pairs(
    t: int, n_labels: int, pairs: ColumnPairs, weight: float, here: Floats, sign: float, sums: Floats, gradient: Floats
) -> None:
    """Add a token's posteriors to the pairs of its columns: |value| times to the sums, sign * value to the gradient."""
    for i in range(pairs.token_ptr[t], pairs.token_ptr[t + 1]):
        c, value = pairs.token_column[i], pairs.token_value[i] * weight
        for pair in range(pairs.pair_ptr[c], pairs.pair_ptr[c + np.uint32(1)]):
            source, to = pairs.pair_node[pair] * n_labels, pair * n_labels
            for a in range(n_labels):
                z = value * here[source + a]
                sums[to + a] += abs(z)
                gradient[to + a] += sign * z


@kernel
def observe_sentence(
    k: int, start: int, stop: int, n_labels: int, y: UInts32, weight: float, trie: Trie, pairs: ColumnPairs,
    sums: LevelSums,
) -> None:  # fmt: skip
    """Count the true patterns of length k of a sentence."""
    first = trie.node_ptr[k - 1]
    for t in range(start + k - 1, stop):
        node = 0
        for u in range(t - k + 2, t + 1):
            node = _right(node, y[u], trie.right_ptr, trie.right_label, trie.right_node)
            if node < 0:
                break
        if node < 0:
            continue
        before = np.int64(y[t - k + 1])
        sums.observed[(node - first) * n_labels + before] += weight
        for i in range(pairs.token_ptr[t], pairs.token_ptr[t + 1]):
            c, value = pairs.token_column[i], pairs.token_value[i] * weight
            for pair in range(pairs.pair_ptr[c], pairs.pair_ptr[c + np.uint32(1)]):
                if pairs.pair_node[pair] == node - first:
                    sums.pair_observed[pair * n_labels + before] += abs(value)
                    sums.pair_gradient[pair * n_labels + before] -= value


@kernel
def _right(node: int, label: int, right_ptr: Ints, right_label: UInts32, right_node: Ints) -> int:
    """The kept pattern with one label more at the end, or -1."""
    for i in range(right_ptr[node], right_ptr[node + 1]):
        if right_label[i] == label:
            return int(right_node[i])
    return -1


@kernel
def level_sentence(
    k: int, start: int, stop: int, n_labels: int, graph: Graph, fail: Ints, original: Floats, factor: Floats,
    local: LocalArcs, trie: Trie, by_size: Ints, size_ptr: Ints, back: Floats, given: Floats, weight: float,
    least: float, pairs: ColumnPairs, sums: Floats, squares: Floats, pair_sums: Floats, pair_gradient: Floats,
    sign: float, here: Floats, touched: Ints, runs: Runs, runs_next: Runs,
) -> None:  # fmt: skip
    """Add the posteriors of patterns of length k of one sentence to the sums.

    `back` is that of `backward_sentence`, or `given` (n_positions, n_states, L), if not empty, has the conditionals.
    """
    n_states = len(fail)
    cond, joint = np.empty(n_states * n_labels), np.empty(n_states * n_labels)
    state, state_next = np.zeros(n_states), np.zeros(n_states)
    flat = given.reshape(-1)
    ptr, arcs = local.ptr, local.arc
    old, new = runs, runs_next
    old.n_listed[:] = 0
    new.n_listed[:] = 0
    for u in range(stop - start):
        t = start + u
        if u == 0:
            total = 0.0
            for b in range(n_labels):
                state[b] = flat[b] if len(flat) > 0 else back[b]
                total += state[b]
            for b in range(n_labels):
                state[b] /= total
            continue
        if len(flat) > 0:
            cond[:] = flat[u * n_states * n_labels : (u + 1) * n_states * n_labels]
        else:
            if ptr[t + 1] > ptr[t]:
                apply_local(arcs, local.factor, ptr[t], ptr[t + 1], graph.rank, graph.rank_end, graph.by_rank, factor)
            conditional_rows(
                n_labels, fail, graph.arc_ptr, graph.arc_label, graph.arc_state, factor, back, u * n_states, cond
            )
            if ptr[t + 1] > ptr[t]:
                undo_local(arcs, ptr[t], ptr[t + 1], graph.rank, graph.rank_end, graph.by_rank, original, factor)
        joint_rows(n_labels, fail, graph.arc_state, graph.table, cond, state, state_next, joint)
        has_pairs = pairs.token_ptr[t + 1] > pairs.token_ptr[t]
        n_touched = level_token(
            k, n_labels, graph.table, graph.arc_state, trie, by_size, size_ptr, cond, joint, old, new,
            least, weight, u >= k - 1, sums, squares, here if has_pairs else here[:0], touched,
        )  # fmt: skip
        if has_pairs:
            if n_touched > 0:
                add_pairs(t, n_labels, pairs, weight, here, sign, pair_sums, pair_gradient)
            for i in range(n_touched):
                here[touched[i]] = 0.0
        state, state_next = state_next, state
        old, new = new, old


@kernel
def column_pairs(
    ptr: Ints, positions: UInts32, values: Floats, columns: UInts32, marginals: Floats, truth: Floats,
    floors: Floats, has_signs: bool, found_column: Ints, found_label: Ints,
) -> int:  # fmt: skip
    """Pairs of a column (by place in `columns`) and a label whose counts exceed the column's floor; how many.

    `marginals`, `truth` : (n_tokens, L), times the weights. Expected and true counts bound their difference by the
    larger one, or by their sum if values have both signs. Writes as many as fit.
    """
    n_labels = marginals.shape[1]
    expected, observed = np.empty(n_labels), np.empty(n_labels)
    n = 0
    for i in range(len(columns)):
        expected[:] = 0.0
        observed[:] = 0.0
        for j in range(ptr[columns[i]], ptr[columns[i] + np.uint32(1)]):
            value = abs(values[j]) if len(values) > 0 else 1.0
            for b in range(n_labels):
                expected[b] += value * marginals[positions[j], b]
                observed[b] += value * truth[positions[j], b]
        for b in range(n_labels):
            size = expected[b] + observed[b] if has_signs else max(expected[b], observed[b])
            if size > floors[i]:
                if n < len(found_column):
                    found_column[n], found_label[n] = i, b
                n += 1
    return n


@kernel
def level_block(
    sentences: Sentences, first: int, last: int, n_labels: int, k: int, rows: UInts32, scores: Floats,
    graph: Graph, fail: Ints, arc_scores: ArcScores, cor: Corrections, local: LocalArcs, clamp: bool, is_open: Bools,
    trie: Trie, by_size: Ints, size_ptr: Ints, least: float, pairs: ColumnPairs, out: PassOutput, sums: LevelSums,
) -> None:  # fmt: skip
    """Add the patterns of length k of sentences first .. last-1, hard ones left out, to the sums.

    Clamped, the posteriors over the allowed labels of open sentences are added to what is observed; else all
    posteriors to what is expected, and the true labels of the other sentences to what is observed.
    """
    t0 = sentences.ptr[first]
    node, _ = prepare_nodes(sentences, first, last, n_labels, rows, scores, arc_scores.tables, cor, clamp, out)
    n_states, longest = len(graph.size), longest_of(sentences.ptr, first, last)
    original = arc_scores.factor
    back, scale, factor = np.empty(longest * n_states), np.empty(longest), original.copy()
    values, beta = np.empty(len(factor)), np.empty(n_states)
    here, touched, old, new = level_scratch(k, n_labels, trie, len(pairs.pair_node) > 0)
    given = np.empty((0, 0, 0))
    for i in range(first, last):
        start, stop, weight = sentences.ptr[i], sentences.ptr[i + 1], sentences.weights[i]
        if stop - start < k or (clamp and not is_open[i]):
            continue
        if not clamp and not is_open[i]:
            observe_sentence(k, start, stop, n_labels, sentences.y, weight, trie, pairs, sums)
        if out.hard[i] == 1:
            continue
        at = (start - t0) * n_labels
        backward_sentence(start, stop, n_labels, graph, original, factor, local, node, at, back, scale, values, beta)
        level_sentence(
            k, start, stop, n_labels, graph, fail, original, factor, local, trie, by_size, size_ptr, back, given,
            weight, least, pairs, sums.observed if clamp else sums.expected,
            sums.squares[:0] if clamp else sums.squares, sums.pair_observed if clamp else sums.pair_expected,
            sums.pair_gradient, -1.0 if clamp else 1.0, here, touched, old, new,
        )  # fmt: skip


@kernel
def level_scratch(k: int, n_labels: int, trie: Trie, has_pairs: bool) -> tuple[Floats, Ints, Runs, Runs]:
    """Arrays that `level_sentence` works on."""
    n_slots = (trie.node_ptr[k] - trie.node_ptr[k - 1]) * n_labels if has_pairs else 0
    n = len(trie.parent)
    old = Runs(np.empty(n, np.int64), np.empty(n, np.uint32), np.empty(n), np.zeros(k + 1, np.int64))
    new = Runs(np.empty(n, np.int64), np.empty(n, np.uint32), np.empty(n), np.zeros(k + 1, np.int64))
    return np.zeros(n_slots), np.empty(n_slots, np.int64), old, new
