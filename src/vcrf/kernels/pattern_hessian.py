"""Hessian of the log-partition on a few features, on a pattern automaton: the covariance of the feature counts.

As in `kernels.hessian`, with contexts in place of labels: K[q, j] = Cov(count of j so far, [state = q]) moves from
token to token with the conditional probabilities of the arcs. Most arcs have next to no probability at a token, but
what is rare at each of many tokens adds up: it is all that a weight far below zero is about. So arcs with a posterior
below a limit are drawn: the result is the exact covariance of a chain close to the true one, with the right mean for
what is rare. It serves as a quadratic model, and steps are checked on the objective itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel
from vcrf.kernels.blocks import PassOutput, Sentences
from vcrf.kernels.pattern_groups import make_group
from vcrf.kernels.pattern_sweeps import backward, make_messages, weighted
from vcrf.kernels.patterns import PatternArrays, apply_local, prepare_nodes, undo_local
from vcrf.kernels.product import no_loss
from vcrf.kernels.scores import ArcFactors, LocalArcs, LocalFactors
from vcrf.types import Floats, Ints, UInts32

# Contexts that a token may have at the most.
_MAX_LIVE = 256


class ArcFiring(NamedTuple):
    """Which chosen features fire where; they are given by their row of the Hessian, -1 = not chosen.

    rows, row_ptr, row_labels, row_features, row_values : single-label features by key, as in the active set;
    entry_ptr, entry_feature, entry_values, entry_arc : features of patterns with a word by token, and their arcs;
    arc_row : (n_arcs,) row of the plain pattern of each arc; up : the arc that it overwrites, -1 for none;
    chosen : row of each feature of the active set.
    """

    rows: UInts32
    row_ptr: Ints
    row_labels: UInts32
    row_features: UInts32
    row_values: Floats
    entry_ptr: Ints
    entry_feature: UInts32
    entry_values: Floats
    entry_arc: UInts32
    arc_row: Ints
    up: Ints
    chosen: Ints


class Least(NamedTuple):
    """What is small enough to be treated as such; zeros for the exact covariances.

    posterior : below it arcs are drawn at a token;
    memory : a past feature is dropped when its covariances are below this share of their largest so far.
    """

    posterior: float
    memory: float


class Moves(NamedTuple):
    """The live arcs of a token: place of the context before (-1 at the start) and after, label, arc, probabilities.

    `features` lists the patterns that fire with move m: ptr[m] .. ptr[m+1]-1 of row and value.
    """

    source: Ints
    target: Ints
    label: Ints
    arc: Ints
    conditional: Floats
    joint: Floats
    ptr: Ints
    row: Ints
    value: Floats


class Past(NamedTuple):
    """Covariances K[place of a live context, slot] of the counts so far, before and after a move.

    slots[j] is the row of the Hessian of slot j, slot_of its inverse, peak[j] the largest covariance so far.
    """

    cov: Floats
    moved: Floats
    slots: Ints
    slot_of: Ints
    peak: Floats


class Current(NamedTuple):
    """Features of a token: single-label ones by label (linked lists), and the means of all that fire."""

    head: Ints
    next: Ints
    row: Ints
    value: Floats
    mean: Floats
    listed: Ints


@inner_kernel
def _label_features(firing: ArcFiring, t: int, current: Current) -> None:
    """List the chosen single-label features of token t by their labels."""
    current.head[:] = -1
    n = 0
    for group in range(firing.rows.shape[1]):
        row = firing.rows[t, group]
        if row == 0:
            continue
        for e in range(firing.row_ptr[row], firing.row_ptr[row + 1]):
            j = firing.chosen[firing.row_features[e]]
            if j >= 0:
                label = np.int64(firing.row_labels[e])
                current.row[n] = j
                current.value[n] = firing.row_values[e] if len(firing.row_values) > 0 else 1.0
                current.next[n] = current.head[label]
                current.head[label] = n
                n += 1


@kernel
def _uniform(t: int, k: int) -> float:
    """A number in [0, 1) that only depends on the token and the context's place: two runs draw the same arcs."""
    mixed = np.uint64(t) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(k) * np.uint64(0xD1B54A32D192ED03)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    mixed = mixed ^ (mixed >> np.uint64(32))
    return np.float64(mixed >> np.uint64(11)) / 9007199254740992.0


@kernel
def _draw(prob: float, values: Floats, live: float, offset: float, source: int, n: int, moves: Moves) -> int:
    """Moves from one context by their labels: all above `live`, and of the others some, each for so much of them.

    Systematic sampling: a move of posterior p < live is drawn with probability p / live and then has the posterior
    `live`, so that in the mean over many tokens all is as it was. The likeliest move makes up for the difference;
    where that is below `live` too, the moves drawn share the context's posterior.
    """
    whole, likeliest = values.sum(), 0
    for b in range(len(values)):
        likeliest = b if values[b] > values[likeliest] else likeliest
    is_rare = prob * values[likeliest] < live * whole
    unit = prob / max(np.floor(prob / live), 1.0) if is_rare else live
    left, others, first, best = offset * unit, 0.0, n, -1
    for b in range(len(values)):
        joint = prob * values[b] / whole
        if joint < unit:
            left += joint
            if left < unit:
                continue
            left -= unit
            joint = unit
        best = n if b == likeliest else best
        others += joint if b != likeliest else 0.0
        moves.source[n], moves.label[n], moves.joint[n] = source, b, joint
        n += 1
    if not is_rare:
        moves.joint[best] = max(prob - others, 0.0)
    elif n == first:
        # Rounding: the whole was not quite reached.
        moves.source[n], moves.label[n], moves.joint[n] = source, likeliest, prob
        n += 1
    for m in range(first, n):
        moves.conditional[m] = moves.joint[m] / prob if prob > 0.0 else 1.0 / (n - first)
    return n


@inner_kernel
def _first_moves(t: int, n_labels: int, given: Floats, live: float, moves: Moves) -> int:
    """Moves of the first token: its labels, whose masses are given."""
    n = _draw(1.0, given[:n_labels], live, _uniform(t, 0), -1, 0, moves)
    for m in range(n):
        moves.target[m], moves.arc[m] = moves.label[m], -1
    return n


@inner_kernel
def _later_moves(
    t: int, n_labels: int, live: float, contexts: Ints, prob: Floats, n_live: int, table: UInts32, arc_state: UInts32,
    factor: Floats, back: Floats, at: int, given: Floats, moves: Moves,
) -> int:  # fmt: skip
    """Moves from the live contexts; targets are states. `given`, if not empty, has the conditionals, from at * L on."""
    n = 0
    values = np.empty(n_labels)
    for k in range(n_live):
        p, first = contexts[k], n
        for b in range(n_labels):
            if len(given) > 0:
                values[b] = given[(at + p) * n_labels + b]
            else:
                arc = table[p, b]
                values[b] = factor[arc] * back[at + np.int64(arc_state[arc])]
        n = _draw(prob[k], values, live, _uniform(t, k), k, n, moves)
        for m in range(first, n):
            arc = np.int64(table[p, moves.label[m]])
            moves.target[m], moves.arc[m] = arc_state[arc], arc
    return n


@inner_kernel
def _n_targets(moves: Moves, n: int, place: Ints) -> int:
    """How many states moves lead to. `place` is -1 everywhere, and left so."""
    found = 0
    for m in range(n):
        found += place[moves.target[m]] == -1
        place[moves.target[m]] = -2
    for m in range(n):
        place[moves.target[m]] = -1
    return found


@inner_kernel
def _enter(moves: Moves, n: int, place: Ints, live: Ints, prob: Floats) -> int:
    """Give the states that moves lead to places; returns how many there are. `place` is -1 everywhere, and left so."""
    n_live = 0
    for m in range(n):
        q = moves.target[m]
        if place[q] < 0:
            place[q] = n_live
            live[n_live] = q
            prob[n_live] = 0.0
            n_live += 1
        prob[place[q]] += moves.joint[m]
        moves.target[m] = place[q]
    for k in range(n_live):
        place[live[k]] = -1
    return n_live


@inner_kernel
def _patterns_of_moves(firing: ArcFiring, t: int, rank: Ints, rank_end: Ints, n: int, moves: Moves) -> None:
    """List the chosen patterns that fire with each move: plain ones by their arcs, those with words by token."""
    at = 0
    for m in range(n):
        moves.ptr[m] = at
        arc = moves.arc[m]
        if arc < 0:
            continue
        up = arc
        while up >= 0:
            if firing.arc_row[up] >= 0:
                moves.row[at], moves.value[at] = firing.arc_row[up], 1.0
                at += 1
            up = firing.up[up]
        for e in range(firing.entry_ptr[t], firing.entry_ptr[t + 1]):
            j, pattern = firing.chosen[firing.entry_feature[e]], firing.entry_arc[e]
            if j >= 0 and rank[pattern] <= rank[arc] and rank[arc] < rank_end[pattern]:
                moves.row[at] = j
                moves.value[at] = firing.entry_values[e] if len(firing.entry_values) > 0 else 1.0
                at += 1
    moves.ptr[n] = at


@inner_fast_kernel
def _add_scaled(source: Floats, scale: float, n: int, out: Floats) -> None:
    for j in range(n):
        out[j] += scale * source[j]


@inner_kernel
def _add_past(source: Floats, scale: float, slots: Ints, n: int, out: Floats) -> None:
    """out[slots[j]] += scale * source[j]."""
    for j in range(n):
        out[slots[j]] += scale * source[j]


@inner_kernel
def _past_and_present(
    weight: float, n: int, moves: Moves, n_live: int, live: Ints, last: UInts32, past: Past, n_slots: int,
    current: Current, part: int, n_parts: int, out: Floats,
) -> None:  # fmt: skip
    """Covariances of past counts with the features of this token; moves K to it."""
    for k in range(n_live):
        past.moved[k, :n_slots] = 0.0
    for m in range(n):
        k, z = moves.source[m], moves.conditional[m]
        if k < 0:
            continue
        _add_scaled(past.cov[k], z, n_slots, past.moved[moves.target[m]])
        for i in range(moves.ptr[m], moves.ptr[m + 1]):
            if moves.row[i] % n_parts == part:
                _add_past(past.cov[k], weight * z * moves.value[i], past.slots, n_slots, out[moves.row[i]])
    for k in range(n_live):
        i = current.head[np.int64(last[live[k]])]
        while i >= 0:
            if current.row[i] % n_parts == part:
                _add_past(past.moved[k], weight * current.value[i], past.slots, n_slots, out[current.row[i]])
            i = current.next[i]


@inner_kernel
def _note_mean(row: int, z: float, current: Current, n: int) -> int:
    """mean[row] += z, listed at its first time (means are NaN before); returns the new number of listed rows."""
    if np.isnan(current.mean[row]):
        current.mean[row] = 0.0
        current.listed[n] = row
        n += 1
    current.mean[row] += z
    return n


@inner_kernel
def _present(
    weight: float, n: int, moves: Moves, n_labels: int, current: Current, part: int, n_parts: int, out: Floats
) -> int:
    """Half the second moments of the features of this token, and their means; returns how many have one."""
    label_prob = np.zeros(n_labels)
    n_listed = 0
    for m in range(n):
        z = moves.joint[m]
        label_prob[moves.label[m]] += z
        for i in range(moves.ptr[m], moves.ptr[m + 1]):
            n_listed = _note_mean(moves.row[i], z * moves.value[i], current, n_listed)
            if moves.row[i] % n_parts != part:
                continue
            row, v = out[moves.row[i]], weight * z * moves.value[i]
            for j in range(moves.ptr[m], moves.ptr[m + 1]):
                row[moves.row[j]] += 0.5 * v * moves.value[j]
            j = current.head[moves.label[m]]
            while j >= 0:
                row[current.row[j]] += v * current.value[j]
                j = current.next[j]
    for b in range(n_labels):
        if label_prob[b] == 0.0:
            continue
        i = current.head[b]
        while i >= 0:
            n_listed = _note_mean(current.row[i], label_prob[b] * current.value[i], current, n_listed)
            if current.row[i] % n_parts == part:
                row, v = out[current.row[i]], 0.5 * weight * label_prob[b] * current.value[i]
                j = current.head[b]
                while j >= 0:
                    row[current.row[j]] += v * current.value[j]
                    j = current.next[j]
            i = current.next[i]
    for x in range(n_listed):
        if current.listed[x] % n_parts == part:
            row, v = out[current.listed[x]], 0.5 * weight * current.mean[current.listed[x]]
            for y in range(n_listed):
                row[current.listed[y]] -= v * current.mean[current.listed[y]]
    return n_listed


@inner_kernel
def _remember(
    n: int, moves: Moves, n_live: int, live: Ints, prob: Floats, last: UInts32, n_listed: int, current: Current,
    past: Past, n_slots: int,
) -> int:  # fmt: skip
    """K[:, j] += covariances of this token's features with its state; new features get a slot."""
    slot_of, moved = past.slot_of, past.moved
    for x in range(n_listed):
        row = current.listed[x]
        if slot_of[row] < 0:
            slot_of[row] = n_slots
            past.slots[n_slots] = row
            past.peak[n_slots] = 0.0
            for k in range(n_live):
                moved[k, n_slots] = 0.0
            n_slots += 1
        for k in range(n_live):
            moved[k, slot_of[row]] -= current.mean[row] * prob[k]
        current.mean[row] = np.nan
    for m in range(n):
        for i in range(moves.ptr[m], moves.ptr[m + 1]):
            moved[moves.target[m], slot_of[moves.row[i]]] += moves.joint[m] * moves.value[i]
    for k in range(n_live):
        i = current.head[np.int64(last[live[k]])]
        while i >= 0:
            moved[k, slot_of[current.row[i]]] += prob[k] * current.value[i]
            i = current.next[i]
    return n_slots


@inner_kernel
def _forget(past: Past, n_live: int, n_slots: int, forgotten: float) -> int:
    """Drop slots whose covariances have died out; returns the new number of slots."""
    j = 0
    while j < n_slots:
        largest = 0.0
        for k in range(n_live):
            largest = max(largest, abs(past.moved[k, j]))
        past.peak[j] = max(past.peak[j], largest)
        if largest > forgotten * past.peak[j]:
            j += 1
            continue
        past.slot_of[past.slots[j]] = -1
        n_slots -= 1
        if j < n_slots:
            past.slots[j], past.peak[j] = past.slots[n_slots], past.peak[n_slots]
            past.slot_of[past.slots[j]] = j
            for k in range(n_live):
                past.moved[k, j] = past.moved[k, n_slots]
    return n_slots


@kernel
def scratch(
    n_labels: int, n_states: int, n_rows: int, max_current: int, max_fired: int
) -> tuple[Moves, Past, Current, Ints, Ints, Floats]:
    """Arrays that `sentence_covariances` works on; `max_fired` bounds the patterns that fire with one move."""
    n_live = min(n_states, _MAX_LIVE)
    n = n_live * n_labels
    moves = Moves(
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n),
        np.empty(n), np.empty(n + 1, np.int64), np.empty(n * max_fired, np.int64), np.empty(n * max_fired),
    )  # fmt: skip
    past = Past(
        np.empty((n_live, n_rows + 1)), np.empty((n_live, n_rows + 1)), np.empty(n_rows + 1, np.int64),
        np.full(n_rows, -1, np.int64), np.empty(n_rows + 1),
    )  # fmt: skip
    current = Current(
        np.empty(n_labels, np.int64), np.empty(max_current, np.int64), np.empty(max_current, np.int64),
        np.empty(max_current), np.full(n_rows, np.nan), np.empty(n_rows, np.int64),
    )  # fmt: skip
    return moves, past, current, np.full(n_states, -1, np.int64), np.empty(n_live, np.int64), np.empty(n_live)


@kernel
def sentence_covariances(
    start: int, stop: int, n_labels: int, graph: PatternArrays, original: Floats, factor: Floats, local: LocalArcs,
    back: Floats, given: Floats, weight: float, firing: ArcFiring, least: Least,
    work: tuple[Moves, Past, Current, Ints, Ints, Floats], part: int, n_parts: int, out: Floats,
) -> None:  # fmt: skip
    """Add one sentence: out + out.T is the Hessian. `back` or `given` as in `pattern_scan.level_sentence`."""
    moves, past, current, place, live, prob = work
    ptr, arcs = local.ptr, local.arc
    n_states, n_slots, n_live = len(graph.size), 0, 0
    for u in range(stop - start):
        t = start + u
        posterior = least.posterior
        if u > 0:
            apply_local(arcs, local.factor, ptr[t], ptr[t + 1], graph.rank, graph.rank_end, graph.by_rank, factor)
        while True:
            if u == 0:
                n = _first_moves(t, n_labels, given if len(given) > 0 else back, posterior, moves)
            else:
                n = _later_moves(
                    t, n_labels, posterior, live, prob, n_live, graph.table, graph.arc_state, factor, back,
                    u * n_states, given, moves,
                )  # fmt: skip
            if _n_targets(moves, n, place) <= len(live):
                break
            # No room for so many contexts: more is drawn. At 1 every context has one move.
            posterior = max(4.0 * posterior, 1e-5)
        if u > 0:
            undo_local(arcs, ptr[t], ptr[t + 1], graph.rank, graph.rank_end, graph.by_rank, original, factor)
        n_live = _enter(moves, n, place, live, prob)
        _patterns_of_moves(firing, t, graph.rank, graph.rank_end, n, moves)
        _label_features(firing, t, current)
        _past_and_present(
            weight, n, moves, n_live, live, graph.last, past, n_slots, current, part, n_parts, out
        )  # fmt: skip
        n_listed = _present(weight, n, moves, n_labels, current, part, n_parts, out)
        n_slots = _remember(n, moves, n_live, live, prob, graph.last, n_listed, current, past, n_slots)
        n_slots = _forget(past, n_live, n_slots, least.memory)
        past.cov[:n_live, :n_slots] = past.moved[:n_live, :n_slots]
    for j in range(n_slots):
        past.slot_of[past.slots[j]] = -1


@kernel
def covariance_half(
    sentences: Sentences, n_labels: int, rows: UInts32, scores: Floats, graph: PatternArrays, arc_scores: ArcFactors,
    cor: LocalFactors, local: LocalArcs, firing: ArcFiring, max_current: int, max_fired: int, part: int, n_parts: int,
    stride: int, least: Least, result: PassOutput, out: Floats,
) -> None:  # fmt: skip
    """Out + out.T is the Hessian, but for hard sentences, which are flagged in `result`.

    Fills the rows i with i % n_parts == part. Of `stride` sentences the first stands for all.
    """
    original, n_states = arc_scores.factor, len(graph.size)
    factor, arcs, loss = original.copy(), weighted(n_labels, graph, original, local), no_loss()
    work = scratch(n_labels, n_states, out.shape[0], max_current, max_fired)
    none = np.zeros(0)
    for i in range(0, len(sentences.ptr) - 1, stride):
        start, stop, weight = sentences.ptr[i], sentences.ptr[i + 1], stride * sentences.weights[i]
        if start == stop or weight == 0.0:
            continue
        node, _ = prepare_nodes(sentences, i, i + 1, n_labels, rows, scores, arc_scores, cor, False, result)
        if result.hard[i] == 1:
            continue
        alone = make_group(loss, False, np.full(1, i), sentences.ptr, sentences.weights, node, start, n_labels)
        m = make_messages(n_labels, n_states, 1, stop - start, False)
        backward(alone, n_labels, arcs, m, none)
        sentence_covariances(
            start, stop, n_labels, graph, original, factor, local, m.back, none, weight, firing, least, work, part,
            n_parts, out,
        )  # fmt: skip
