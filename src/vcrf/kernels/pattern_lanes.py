"""One token on a pattern automaton, for several sentences side by side, one in each lane: what is added by its arcs.

The automaton is the same for all sentences, so that one look at an arc serves every lane, and the lanes lie next to
each other in memory: the innermost loops are over lanes and vectorised. Element x of lane l of w is at x * w + l.

    back[t, q] = node[t, last(q)] beta[t, q] / scale[t],    beta[t-1, p] = sum_b factor(p, b) back[t, target(p, b)]
    taken = alpha[t-1, p] factor(p, b),    alpha[t, q] = (sum of what enters q) node[t, last(q)] / scale[t]

with alpha scaled so that alpha * beta is the posterior; that of what takes an arc is taken * back. A context's row of
arcs is a copy of the row that it backs off to, with its own arcs overwritten. Both sums are therefore done by
differences, at the cost of the own arcs alone; where digits would be lost that way, a row is summed in full, over
positive numbers only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.kernels.pattern_alone import sum_row_alone, take_arcs_alone
from vcrf.kernels.patterns import CANCELS, PatternArrays
from vcrf.kernels.scores import LocalArcs
from vcrf.types import Floats, Ints, UInts32


class PairFactors(NamedTuple):
    """Factors of the pairs (a, b) that lead to the context b, zeros for the others, and the same transposed.

    At a token the messages of single labels are products of these matrices with those of the lanes.
    """

    matrix: Floats
    transposed: Floats


@kernel
def pair_factors(n_labels: int, long_pairs: UInts32, factor: Floats) -> PairFactors:
    """Copy the factors of pairs out of those of all arcs."""
    matrix = factor[: n_labels * n_labels].copy()
    for i in range(len(long_pairs)):
        matrix[long_pairs[i]] = 0.0
    square = matrix.reshape(n_labels, n_labels)
    return PairFactors(square, np.ascontiguousarray(square.T))


@inner_kernel
def _full_row(
    lanes: int, lane: int, t: int, p: int, n_labels: int, local: LocalArcs, graph: PatternArrays, factor: Floats,
    back: Floats, at: int,
) -> float:  # fmt: skip
    """The row of context p at token t, summed over positive numbers."""
    total = 0.0
    for b in range(n_labels):
        arc = np.int64(graph.table[p, b])
        value = factor[arc] * back[(at + np.int64(graph.arc_state[arc])) * lanes + lane]
        for j in range(local.ptr[t], local.ptr[t + 1]):
            pattern = local.arc[j]
            if graph.rank[pattern] <= graph.rank[arc] and graph.rank[arc] < graph.rank_end[pattern]:
                value *= local.factor[j]
        total += value
    return total


@inner_kernel
def _mend_row(
    lanes: int, tokens: Ints, p: int, n_labels: int, local: LocalArcs, graph: PatternArrays, factor: Floats,
    back: Floats, at: int, start: Floats, start_at: int, extra: Floats, beta: Floats,
) -> None:  # fmt: skip
    """Sum the row of p anew in the lanes where differences have lost digits: it is small beside what it came from."""
    for lane in range(lanes):
        x = p * lanes + lane
        if not beta[x] >= CANCELS * (start[start_at + lane] + abs(extra[x])):
            beta[x] = _full_row(lanes, lane, tokens[lane], p, n_labels, local, graph, factor, back, at)


@inner_fast_kernel
def _count_lost(lanes: int, p: int, start: Floats, start_at: int, extra: Floats, beta: Floats) -> int:
    """In how many lanes beta[p] is small beside what it came from."""
    w, n_lost = np.uint64(lanes), 0
    row, source = np.uint64(p) * w, np.uint64(start_at)
    for lane in range(w):
        n_lost += beta[row + lane] < CANCELS * (start[source + lane] + abs(extra[row + lane]))
    return n_lost


@inner_fast_kernel
def _add_long_pairs(
    lanes: int, n_labels: int, long_pairs: UInts32, arc_state: UInts32, factor: Floats, back: Floats, at: int,
    beta: Floats,
) -> None:  # fmt: skip
    """beta[a] += factor * back of the pairs (a, b) that lead to longer contexts."""
    w, n, here = np.uint64(lanes), np.uint64(n_labels), np.uint64(at)
    for i in range(len(long_pairs)):
        arc = np.uint64(long_pairs[i])
        z, to, source = factor[arc], arc // n * w, (here + np.uint64(arc_state[arc])) * w
        for lane in range(w):
            beta[to + lane] += z * back[source + lane]


@inner_fast_kernel
def _add_own_arcs(
    lanes: int, p: int, fail: Ints, arc_ptr: Ints, up: UInts32, arc_state: UInts32, factor: Floats, back: Floats,
    at: int, extra: Floats, beta: Floats,
) -> None:  # fmt: skip
    """beta[p] = beta of the context that p backs off to, and what p's own arcs change."""
    w, here, state = np.uint64(lanes), np.uint64(at), np.uint64(p)
    to, shorter = state * w, np.uint64(fail[state]) * w
    for lane in range(w):
        beta[to + lane] = beta[shorter + lane] + extra[to + lane]
    for arc in range(np.uint64(arc_ptr[state]), np.uint64(arc_ptr[state + np.uint64(1)])):
        old = np.uint64(up[arc])
        own, other = np.uint64(arc_state[arc]), np.uint64(arc_state[old])
        x, y = (here + own) * w, (here + other) * w
        if own == other:
            z = factor[arc] - factor[old]
            for lane in range(w):
                beta[to + lane] += z * back[x + lane]
        else:
            z, z_old = factor[arc], factor[old]
            for lane in range(w):
                beta[to + lane] += z * back[x + lane] - z_old * back[y + lane]


@kernel
def sum_rows(
    lanes: int, tokens: Ints, n_labels: int, graph: PatternArrays, factor: Floats, pairs: PairFactors, local: LocalArcs,
    back: Floats, at: int, extra: Floats, beta: Floats,
) -> None:  # fmt: skip
    """beta[p] = sum_b factor(p, b) back[at + target]: of labels in full, of others from what own arcs change.

    `tokens` has the token of each lane, `extra` what `change_rows` found; it is zeros afterwards.
    """
    if lanes == 1 and sum_row_alone(
        n_labels, graph.fail, graph.arc_ptr, graph.up, graph.arc_state, graph.long_pairs, factor, pairs.matrix, back,
        at, extra, beta,
    ):  # fmt: skip
        extra[: len(graph.fail)] = 0.0
        return
    shape = (n_labels, lanes)
    here = back[at * lanes : (at + n_labels) * lanes].reshape(shape)
    np.dot(pairs.matrix, here, beta[: n_labels * lanes].reshape(shape))
    _add_long_pairs(lanes, n_labels, graph.long_pairs, graph.arc_state, factor, back, at, beta)
    start = np.empty(lanes)
    for a in range(n_labels):
        for lane in range(lanes):
            start[lane] = beta[a * lanes + lane]
            beta[a * lanes + lane] += extra[a * lanes + lane]
        if _count_lost(lanes, a, start, 0, extra, beta) > 0:
            _mend_row(lanes, tokens, a, n_labels, local, graph, factor, back, at, start, 0, extra, beta)
    for p in range(n_labels, len(graph.fail)):
        _add_own_arcs(lanes, p, graph.fail, graph.arc_ptr, graph.up, graph.arc_state, factor, back, at, extra, beta)
        shorter = graph.fail[p] * lanes
        if _count_lost(lanes, p, beta, shorter, extra, beta) > 0:
            _mend_row(lanes, tokens, p, n_labels, local, graph, factor, back, at, beta, shorter, extra, beta)
    extra[: len(graph.fail) * lanes] = 0.0


@inner_fast_kernel
def hand_down(lanes: int, n_labels: int, fail: Ints, alpha: Floats) -> None:
    """alpha[p] = all the mass that ends in p: what is in longer contexts is handed to those they back off to."""
    w, n, one = np.uint64(lanes), np.uint64(n_labels), np.uint64(1)
    state = np.uint64(len(fail))
    while state > n:
        state -= one
        source, to = state * w, np.uint64(fail[state]) * w
        for lane in range(w):
            alpha[to + lane] += alpha[source + lane]


@inner_fast_kernel
def _overlap(w: np.uint64, alpha: Floats, source: np.uint64, back: Floats, x: np.uint64) -> float:
    """Sum over lanes of alpha * back."""
    total = 0.0
    for lane in range(w):
        total += alpha[source + lane] * back[x + lane]
    return total


@inner_fast_kernel
def _take_long_pairs(
    lanes: int, n_labels: int, long_pairs: UInts32, arc_state: UInts32, factor: Floats, alpha: Floats, back: Floats,
    at: int, new: Floats, counts: Floats,
) -> None:  # fmt: skip
    """All mass that ends in a takes the pairs (a, b) that lead to longer contexts."""
    w, n, here = np.uint64(lanes), np.uint64(n_labels), np.uint64(at)
    for i in range(len(long_pairs)):
        arc = np.uint64(long_pairs[i])
        state = np.uint64(arc_state[arc])
        z, source, to, x = factor[arc], arc // n * w, state * w, (here + state) * w
        for lane in range(w):
            new[to + lane] += z * alpha[source + lane]
        counts[arc] += z * _overlap(w, alpha, source, back, x)


@inner_fast_kernel
def _take_own_arcs(
    lanes: int, n_labels: int, arc_ptr: Ints, up: UInts32, arc_state: UInts32, factor: Floats, alpha: Floats,
    back: Floats, at: int, new: Floats, counts: Floats,
) -> None:  # fmt: skip
    """The mass in a context takes its own arcs, and not those that they overwrite."""
    w, here, one = np.uint64(lanes), np.uint64(at), np.uint64(1)
    for p in range(np.uint64(n_labels), np.uint64(len(arc_ptr)) - one):
        source = p * w
        for arc in range(np.uint64(arc_ptr[p]), np.uint64(arc_ptr[p + one])):
            old = np.uint64(up[arc])
            own, other = np.uint64(arc_state[arc]), np.uint64(arc_state[old])
            z, z_old, to, x = factor[arc], factor[old], own * w, (here + own) * w
            change = z - z_old if own == other else z
            for lane in range(w):
                new[to + lane] += change * alpha[source + lane]
            total = _overlap(w, alpha, source, back, x)
            counts[arc] += z * total
            if own != other:
                to, x = other * w, (here + other) * w
                for lane in range(w):
                    new[to + lane] -= z_old * alpha[source + lane]
                total = _overlap(w, alpha, source, back, x)
            counts[old] -= z_old * total


@inner_kernel
def take_arcs(
    lanes: int, n_labels: int, graph: PatternArrays, factor: Floats, pairs: PairFactors, alpha: Floats, back: Floats,
    at: int, new: Floats, pair_counts: Floats, counts: Floats,
) -> None:  # fmt: skip
    """new[target] = mass that enters it, and the posterior of taking each arc, summed over lanes, to counts.

    By differences. Short pairs are counted in `pair_counts`, without their factors. `alpha` is overwritten.
    """
    if lanes == 1:
        take_arcs_alone(
            n_labels, graph.fail, graph.arc_ptr, graph.up, graph.arc_state, graph.long_pairs, factor, pairs.matrix,
            alpha, back, at, new, pair_counts, counts,
        )  # fmt: skip
        return
    hand_down(lanes, n_labels, graph.fail, alpha)
    shape = (n_labels, lanes)
    mass = alpha[: n_labels * lanes].reshape(shape)
    new[n_labels * lanes : len(graph.fail) * lanes] = 0.0
    np.dot(pairs.transposed, mass, new[: n_labels * lanes].reshape(shape))
    pair_counts += np.dot(mass, back[at * lanes : (at + n_labels) * lanes].reshape(shape).T)
    _take_long_pairs(
        lanes, n_labels, graph.long_pairs, graph.arc_state, factor, alpha, back, at, new, counts
    )  # fmt: skip
    _take_own_arcs(
        lanes, n_labels, graph.arc_ptr, graph.up, graph.arc_state, factor, alpha, back, at, new, counts
    )  # fmt: skip


@inner_fast_kernel
def label_sums(
    lanes: int, n_labels: int, first: Ints, new: Floats, back: Floats, at: int, sums: Floats, whole: Floats
) -> None:
    """sums[b] = posterior of label b, and their sum; differences that rounding made negative are zeros."""
    w, one = np.uint64(lanes), np.uint64(1)
    for lane in range(w):
        whole[lane] = 0.0
    for b in range(np.uint64(n_labels)):
        to = b * w
        source = (np.uint64(at) + b) * w
        for lane in range(w):
            new[to + lane] = max(new[to + lane], 0.0)
            sums[to + lane] = new[to + lane] * back[source + lane]
        for q in range(np.uint64(first[b]), np.uint64(first[b + one])):
            x, source = q * w, (np.uint64(at) + q) * w
            for lane in range(w):
                new[x + lane] = max(new[x + lane], 0.0)
                sums[to + lane] += new[x + lane] * back[source + lane]
        for lane in range(w):
            whole[lane] += sums[to + lane]


@kernel
def add_pairs(pairs: PairFactors, pair_counts: Floats, counts: Floats) -> None:
    """Add the counts of short pairs."""
    n_labels = len(pair_counts)
    for a in range(n_labels):
        for b in range(n_labels):
            counts[a * n_labels + b] += pairs.matrix[a, b] * pair_counts[a, b]
