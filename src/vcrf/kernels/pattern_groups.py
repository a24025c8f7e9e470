"""Sentences side by side on a pattern automaton, and what a label does to each lane; see `kernels.pattern_sweeps`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel
from vcrf.kernels.pattern_alone import times_gain_alone
from vcrf.kernels.product import LossArrays
from vcrf.types import Bools, Floats, Ints, UInts32

# Lanes of a group; of sentences with more rows there is one alone.
LANES = 32


class Group(NamedTuple):
    """Sentences side by side.

    loss, picks : as in `kernels.product`; without a loss it has no rows
    number, start, length, weight : of each sentence
    node : exp(score - shift) of labels; those of a sentence begin at first_node
    lanes : (longest + 1, n + 1) sentence s has the lanes lanes[u, s] .. lanes[u, s+1]-1 before its token u
    place : (longest + 2,) sum of the lanes of earlier tokens
    """

    loss: LossArrays
    picks: bool
    number: Ints
    start: Ints
    length: Ints
    weight: Floats
    node: Floats
    first_node: Ints
    lanes: Ints
    place: Ints


class LabelMoves(NamedTuple):
    """What label b does to each lane of a token, at b * lanes + lane: next lane and factor; the same for picking.

    Without a loss every lane leads to itself, and there are only the factors: of all tokens, those of token u from
    place[u] * L on.
    """

    to: Ints
    gain: Floats
    pick: Ints
    bonus: Floats


@inner_kernel
def by_length(ptr: Ints, first: int, last: int, leave_out: Bools | UInts32) -> Ints:
    """Sentences first .. last-1 that are not to be left out and not empty, shortest first."""
    lengths = ptr[first + 1 : last + 1] - ptr[first:last]
    order = first + np.argsort(lengths, kind="mergesort")
    n = 0
    for i in order:
        if not leave_out[i] and ptr[i + 1] > ptr[i]:
            order[n] = i
            n += 1
    return order[:n]


@inner_kernel
def _most_lanes(loss: LossArrays, i: int, start: int, stop: int, picks: bool) -> int:
    """The most rows that sentence i has before a token or at its end."""
    if len(loss.width) == 0:
        return 1
    widest = max(1, loss.final_ptr[i + 1] - loss.final_ptr[i])
    for t in range(start, stop):
        widest = max(widest, loss.width[t])
    return int(widest) + (1 if picks else 0)


@inner_kernel
def group_bounds(loss: LossArrays, picks: bool, which: Ints, ptr: Ints) -> tuple[Ints, int, int]:
    """Group g has the sentences which[bounds[g]:bounds[g+1]]: as many as fit side by side, at least one.

    Also the most lanes of a group, and the most lanes times tokens.
    """
    bounds, n_groups, lanes, longest, most, largest = np.zeros(len(which) + 1, np.int64), 0, 0, 0, 0, 0
    for k in range(len(which)):
        i = which[k]
        here = _most_lanes(loss, i, ptr[i], ptr[i + 1], picks)
        if lanes > 0 and lanes + here > LANES:
            n_groups += 1
            bounds[n_groups] = k
            lanes, longest = 0, 0
        lanes, longest = lanes + here, max(longest, ptr[i + 1] - ptr[i])
        most, largest = max(most, lanes), max(largest, lanes * longest)
    bounds[n_groups + 1 if len(which) > 0 else 0] = len(which)
    return bounds[: n_groups + 2 if len(which) > 0 else 1], most, largest


@inner_kernel
def make_group(
    loss: LossArrays, picks: bool, numbers: Ints, ptr: Ints, weights: Floats, node: Floats, t0: int, n_labels: int
) -> Group:
    """Give the rows of the sentences lanes; `node` begins with token t0."""
    start, n = ptr[numbers], len(numbers)
    length = ptr[numbers + 1] - start
    longest = length.max()
    extra = 1 if picks else 0
    lanes, place = np.zeros((longest + 1, n + 1), np.int64), np.zeros(longest + 2, np.int64)
    for u in range(longest + 1):
        for s in range(n):
            width = 0
            if len(loss.width) == 0:
                width = 1
            elif u < length[s]:
                width = loss.width[start[s] + u] + extra
            elif u == length[s]:
                width = loss.final_ptr[numbers[s] + 1] - loss.final_ptr[numbers[s]] + extra
            lanes[u, s + 1] = lanes[u, s] + width
        place[u + 1] = place[u] + lanes[u, n]
    return Group(loss, picks, numbers, start, length, weights[numbers], node, (start - t0) * n_labels, lanes, place)


@inner_kernel
def set_moves(group: Group, u: int, n_labels: int, moves: LabelMoves) -> None:
    """Write the moves of token u, without scales; lanes of sentences that have ended lead nowhere."""
    n, loss, picks, lanes, node = len(group.start), group.loss, group.picks, group.lanes, group.node
    start, length, first_node = group.start, group.length, group.first_node
    to, gain, pick, bonus = moves
    w = lanes[u, n]
    to[: n_labels * w] = 0
    gain[: n_labels * w] = 0.0
    if picks:
        pick[: n_labels * w] = 0
        bonus[: n_labels * w] = 0.0
    for s in range(n):
        if u >= length[s]:
            continue
        t, first, picked = start[s] + u, lanes[u + 1, s], lanes[u + 1, s + 1] - 1
        for b in range(n_labels):
            x = node[first_node[s] + u * n_labels + b]
            at = b * w + lanes[u, s]
            for q in range(loss.width[t]):
                arc = (loss.first[t] + q) * n_labels + b
                to[at + q] = first + np.int64(loss.successor[arc])
                if picks:
                    gain[at + q] = x
                    pick[at + q], bonus[at + q] = picked, x * loss.factor[arc]
                else:
                    gain[at + q] = x * loss.factor[arc]
            if picks:
                last = at + loss.width[t]
                to[last], gain[last], pick[last] = picked, x, picked


@inner_kernel
def scale_moves(group: Group, u: int, n_labels: int, scale: Floats, moves: LabelMoves) -> None:
    """Divide the factors of each sentence by its scale."""
    n, lanes, picks, gain, bonus = len(group.start), group.lanes, group.picks, moves.gain, moves.bonus
    w = lanes[u, n]
    for s in range(n):
        inverse = 1.0 / scale[u * n + s]
        for b in range(n_labels):
            for lane in range(b * w + lanes[u, s], b * w + lanes[u, s + 1]):
                gain[lane] *= inverse
                if picks:
                    bonus[lane] *= inverse


@inner_kernel
def find_scales(group: Group, u: int, n_labels: int, moves: LabelMoves, beta: Floats, scale: Floats) -> None:
    """scale[u, s] = sum over labels and rows of what the contexts of one label will be; 1 where that is 0."""
    n, lanes, picks = len(group.start), group.lanes, group.picks
    to, gain, pick, bonus = moves
    w, w_next = lanes[u, n], lanes[u + 1, n]
    for s in range(n):
        total = 0.0
        for b in range(n_labels):
            for lane in range(b * w + lanes[u, s], b * w + lanes[u, s + 1]):
                total += gain[lane] * beta[b * w_next + to[lane]]
                if picks:
                    total += bonus[lane] * beta[b * w_next + pick[lane]]
        scale[u * n + s] = total if total > 0.0 else 1.0


@inner_kernel
def spread_nodes(u: int, n_labels: int, length: Ints, first_node: Ints, node: Floats, gain: Floats) -> None:
    """Node factors of token u, zeros after the end of a sentence: the moves without a loss, without scales."""
    w = len(length)
    for s in range(w):
        if u < length[s]:
            at = first_node[s] + u * n_labels
            for b in range(n_labels):
                gain[b * w + s] = node[at + b]
        else:
            for b in range(n_labels):
                gain[b * w + s] = 0.0


@inner_fast_kernel
def scale_gain(lanes: int, n_labels: int, beta: Floats, gain: Floats, scale: Floats, at: int) -> None:
    """`find_scales` and `scale_moves` without a loss."""
    w, here = np.uint64(lanes), np.uint64(at)
    for lane in range(w):
        scale[here + lane] = 0.0
    for b in range(np.uint64(n_labels)):
        for lane in range(w):
            scale[here + lane] += gain[b * w + lane] * beta[b * w + lane]
    for lane in range(w):
        scale[here + lane] = scale[here + lane] if scale[here + lane] > 0.0 else 1.0
    for b in range(np.uint64(n_labels)):
        for lane in range(w):
            gain[b * w + lane] *= 1.0 / scale[here + lane]


@inner_fast_kernel
def _times_label(lanes: int, b: int, begin: int, stop: int, gain: Floats, x: Floats, out: Floats) -> None:
    """Out = gain * x for the contexts begin .. stop-1, in label b."""
    w = np.uint64(lanes)
    label = np.uint64(b) * w
    for p in range(np.uint64(begin), np.uint64(stop)):
        at = p * w
        for lane in range(w):
            out[at + lane] = gain[label + lane] * x[at + lane]


@inner_kernel
def times_gain(lanes: int, n_labels: int, first: Ints, gain: Floats, x: Floats, out: Floats) -> None:
    """Out = gain * x for all contexts: what `pull_rows` and `push_rows` are without a loss."""
    if lanes == 1:
        times_gain_alone(n_labels, first, gain, x, out)
        return
    for b in range(n_labels):
        _times_label(lanes, b, b, b + 1, gain, x, out)
        _times_label(lanes, b, first[b], first[b + 1], gain, x, out)


@inner_fast_kernel
def _pull(
    w: int, w_next: int, b: int, begin: int, stop: int, picks: bool, moves: LabelMoves, beta: Floats, back: Floats,
    shares: Floats,
) -> None:  # fmt: skip
    """Write `back` of the contexts begin .. stop-1, in label b; `shares`, if not empty: what of it picks now."""
    for p in range(begin, stop):
        to, source = p * w, p * w_next
        for lane in range(w):
            back[to + lane] = moves.gain[b * w + lane] * beta[source + moves.to[b * w + lane]]
        if picks:
            for lane in range(w):
                x = moves.bonus[b * w + lane] * beta[source + moves.pick[b * w + lane]]
                back[to + lane] += x
                if len(shares) > 0:
                    shares[to + lane] = x / back[to + lane] if x > 0.0 else 0.0


@inner_fast_kernel
def _push(
    w: int, w_next: int, b: int, begin: int, stop: int, picks: bool, moves: LabelMoves, new: Floats, alpha: Floats
) -> None:
    """Add the mass of the contexts begin .. stop-1, which end in label b, to the lanes that follow."""
    for p in range(begin, stop):
        source, to = p * w, p * w_next
        for lane in range(w):
            alpha[to + moves.to[b * w + lane]] += moves.gain[b * w + lane] * new[source + lane]
            if picks:
                alpha[to + moves.pick[b * w + lane]] += moves.bonus[b * w + lane] * new[source + lane]


@inner_kernel
def pull_rows(
    group: Group, u: int, n_labels: int, first: Ints, moves: LabelMoves, beta: Floats, back: Floats, shares: Floats
) -> None:
    """`back` of token u in all lanes, from beta after it."""
    n = len(group.start)
    w, w_next = group.lanes[u, n], group.lanes[u + 1, n]
    for b in range(n_labels):
        _pull(w, w_next, b, b, b + 1, group.picks, moves, beta, back, shares)
        _pull(w, w_next, b, first[b], first[b + 1], group.picks, moves, beta, back, shares)


@inner_kernel
def push_rows(
    group: Group, u: int, n_labels: int, first: Ints, scale: Floats, moves: LabelMoves, new: Floats, alpha: Floats
) -> None:
    """Alpha after token u in all lanes, from the mass that entered it."""
    n = len(group.start)
    w, w_next = group.lanes[u, n], group.lanes[u + 1, n]
    set_moves(group, u, n_labels, moves)
    scale_moves(group, u, n_labels, scale, moves)
    alpha[: first[n_labels] * w_next] = 0.0
    for b in range(n_labels):
        _push(w, w_next, b, b, b + 1, group.picks, moves, new, alpha)
        _push(w, w_next, b, first[b], first[b + 1], group.picks, moves, new, alpha)
