"""From residuals of positions to gradients of features, through keys; and the scan of all candidates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel, kernel, outer_fast_kernel
from vcrf.kernels.corrections import (
    apply_corrections,
    multiply_pairs,
    pattern_code,
    power,
    restore_pairs,
    undo_corrections,
)
from vcrf.kernels.rows import sum_rows
from vcrf.kernels.scores import FactorTables, LocalFactors
from vcrf.types import Bools, Floats, Ints, UInts32

# Tag patterns of one length up to which a table says which were seen.
MARKS = 1 << 20


@kernel
def fill_entries(
    col_ptr: Ints, col_keys: UInts32, col_values: Floats, first_feature: Ints, n_features: Ints,
    feature_label: UInts32, row_offset: int, at: Ints, labels: UInts32, features: UInts32, values: Floats,
) -> None:  # fmt: skip
    """Write (label, feature, value) entries of each row; `at` holds where each row goes on."""
    for c in range(len(col_ptr) - 1):
        for j in range(col_ptr[c], col_ptr[c + 1] if n_features[c] > 0 else col_ptr[c]):
            row = row_offset + col_keys[j]
            for f in range(first_feature[c], first_feature[c] + n_features[c]):
                labels[at[row]] = feature_label[f]
                features[at[row]] = f
                if len(values) > 0:
                    values[at[row]] = col_values[j] if len(col_values) > 0 else 1.0
                at[row] += 1


@outer_fast_kernel
def key_residuals(
    key_ptr: Ints,
    key_positions: UInts32,
    row_ptr: Ints,
    residuals: Floats,
    first: int,
    last: int,
    out: Floats,
) -> None:
    """out[row] = sum of the residual rows of the positions of each key that has an entry."""
    n = np.uint64(residuals.shape[1])
    flat, target = residuals.reshape(-1), out.reshape(-1)
    for row in range(first, last):
        if row_ptr[row + 1] == row_ptr[row]:
            continue
        j = np.uint64(key_ptr[row])
        sum_rows(flat, key_positions, j, np.uint64(key_ptr[row + 1]) - j, target, np.uint64(row) * n, n)


@inner_fast_kernel
def _dense_gradient(
    first: int, last: int, col_keys: UInts32, value: Floats, step: int, row_offset: int, flat: Floats, out: Floats
) -> None:
    """Residuals of a column for all labels: cheaper than picking when most labels have a feature."""
    n = np.uint64(len(out))
    for b in range(n):
        out[b] = 0.0
    for j in range(first, last):
        at, v = np.uint64(row_offset + col_keys[j]) * n, value[j * step]
        for b in range(n):
            out[b] += v * flat[at + b]


@outer_fast_kernel
def feature_gradient(
    col_ptr: Ints, col_keys: UInts32, col_values: Floats, first_feature: Ints, n_features: Ints,
    feature_label: UInts32, row_offset: int, key_residual: Floats, first: int, last: int, out: Floats,
) -> None:  # fmt: skip
    """Gradient of the single-label features of columns first .. last-1 of a group."""
    n_labels, flat = key_residual.shape[1], key_residual.reshape(-1)
    one = np.empty(1)
    one[0] = 1.0
    value, step = (col_values, 1) if len(col_values) else (one, 0)
    row = np.empty(n_labels)
    for c in range(first, last):
        n = n_features[c]
        if n == 0:
            continue
        f0 = first_feature[c]
        if 3 * n > n_labels:
            _dense_gradient(col_ptr[c], col_ptr[c + 1], col_keys, value, step, row_offset, flat, row)
            for f in range(f0, f0 + n):
                out[f] = row[feature_label[f]]
            continue
        for f in range(f0, f0 + n):
            out[f] = 0.0
        for j in range(col_ptr[c], col_ptr[c + 1]):
            at, v = np.uint64((row_offset + col_keys[j]) * n_labels), value[j * step]
            for f in range(f0, f0 + n):
                out[f] += v * flat[at + feature_label[f]]


@outer_fast_kernel
def scan_labels(
    ptr: Ints, positions: UInts32, values: Floats, columns: UInts32, limits: Floats,
    allowed_ptr: Ints, allowed: UInts32, residuals: Floats, found_column: UInts32, found_code: UInts32,
    found_grad: Floats,
) -> int:  # fmt: skip
    """Single-label candidates whose |gradient| exceeds their column's limit; returns how many there are.

    `allowed` lists the candidate labels of each scanned column if only observed pairs are candidates (else it
    has no rows). Writes as many as fit; the caller calls again with more room.
    """
    n_labels, flat = np.uint64(residuals.shape[1]), residuals.reshape(-1)
    one = np.empty(1)
    one[0] = 1.0
    value, step = (values, 1) if len(values) else (one, 0)
    g = np.empty(n_labels)
    n = 0
    for i in range(len(columns)):
        for b in range(n_labels):
            g[b] = 0.0
        for j in range(ptr[columns[i]], ptr[columns[i] + np.uint32(1)]):
            at, v = np.uint64(positions[j]) * n_labels, value[j * step]
            for b in range(n_labels):
                g[b] += v * flat[at + b]
        n = _emit(g, columns[i], limits[i], i, allowed_ptr, allowed, n, found_column, found_code, found_grad)
    return n


@inner_kernel
def _emit(
    g: Floats, column: int, limit: float, i: int, allowed_ptr: Ints, allowed: UInts32, n: int,
    found_column: UInts32, found_code: UInts32, found_grad: Floats,
) -> int:  # fmt: skip
    restricted = len(allowed_ptr) > 0
    first = allowed_ptr[i] if restricted else 0
    last = allowed_ptr[i + 1] if restricted else len(g)
    for j in range(first, last):
        code = np.int64(allowed[j]) if restricted else j
        if abs(g[code]) > limit:
            if n < len(found_column):
                found_column[n] = column
                found_code[n] = code
                found_grad[n] = g[code]
            n += 1
    return n


@inner_fast_kernel
def _add_posterior(
    n_labels: int,
    n_hist: int,
    half: int,
    alpha: Floats,
    weighted: Floats,
    table: Floats,
    value: float,
    out: Floats,
) -> None:
    """out[s, b] += value * alpha[s] * table[s, b] * weighted[next(s, b)]."""
    for first in range(0, n_hist, half):
        for h in range(min(half, n_hist)):
            s = first + h
            x = alpha[s] * value
            g = weighted[h * n_labels : (h + 1) * n_labels]
            e = table[s * n_labels : (s + 1) * n_labels]
            o = out[s * n_labels : (s + 1) * n_labels]
            for b in range(n_labels):
                o[b] += x * e[b] * g[b]


@inner_kernel
def _fold(n_labels: int, order: int, offsets: Ints, buffer: Floats) -> None:
    """Sums of longer patterns over their oldest label are added to the shorter ones."""
    for depth in range(order, 1, -1):
        size = n_labels ** (depth - 1)
        for oldest in range(n_labels):
            for code in range(size):
                buffer[offsets[depth - 1] + code] += buffer[offsets[depth] + oldest * size + code]


class Messages(NamedTuple):
    """Messages of a pass: posteriors of arcs are alpha[t-1] * table * back[t]; of hard sentences they are listed."""

    alpha: Floats
    back: Floats
    hard_rows: Ints
    hard_arcs: Floats


@inner_kernel
def _add_arcs(
    messages: Messages, t: int, depth: int, n_labels: int, half: int, one: Floats, table: Floats, value: float,
    out: Floats,
) -> None:  # fmt: skip
    """out[arc] += value * posterior of each arc of the token; `table` and `out` are those of its depth."""
    n_hist = power(n_labels, depth - 1)
    if messages.hard_rows[t] >= 0:
        for arc in range(n_hist * n_labels):
            out[arc] += value * messages.hard_arcs[messages.hard_rows[t], arc]
    else:
        before = messages.alpha[t - 1] if depth > 1 else one
        _add_posterior(n_labels, n_hist, half, before, messages.back[t], table, value, out)


@kernel
def scan_patterns(
    ptr: Ints, positions: UInts32, values: Floats, columns: UInts32, size: int, limits: Floats,
    allowed_ptr: Ints, allowed: UInts32, starts: Ints, y: UInts32, weights: Floats, n_labels: int,
    tables: FactorTables, cor: LocalFactors, messages: Messages, clamped: Messages, is_open: Bools,
    found_column: UInts32, found_code: UInts32, found_grad: Floats,
) -> int:  # fmt: skip
    """Candidates with patterns of length `size` >= 2 whose |gradient| exceeds their column's limit.

    Arc posteriors are rebuilt from the messages of each token, summed over the column's positions, folded to
    the pattern length and compared; nothing is stored. `starts` is (n_tokens,) the first position of the
    sentence, `weights` (n_tokens,) its weight. `is_open` (n_tokens,), or empty, marks tokens of sentences whose labels
    are not all known: the clamped posterior stands there for the truth. Returns how many there are, like
    `scan_labels`.
    """
    half = power(n_labels, max(tables.order - 2, 0))
    buffer = np.empty(len(tables.exp))
    order, offsets, original = tables.order, tables.offsets, tables.exp
    cor_ptr, cor_sizes, cor_codes, factor = cor.ptr, cor.size, cor.code, cor.factor
    table, forward, backward = original.copy(), tables.forward.copy(), tables.backward.copy()
    one = np.ones(1)
    n = 0
    for i in range(len(columns)):
        buffer[:] = 0.0
        for j in range(ptr[columns[i]], ptr[columns[i] + 1]):
            t = positions[j]
            depth = min(t - starts[t] + 1, order)
            if depth < size:
                continue
            value = weights[t] * (values[j] if len(values) > 0 else 1.0)
            base, end = offsets[depth], offsets[depth] + power(n_labels, depth)
            has_corrections = cor_ptr[t + 1] > cor_ptr[t]
            is_pairs = has_corrections and order == 2
            if is_pairs:
                multiply_pairs(cor_ptr[t], cor_ptr[t + 1], cor_codes, factor, backward)
            elif has_corrections:
                apply_corrections(
                    cor_ptr, cor_sizes, cor_codes, factor, t, n_labels, depth, order, base, table, forward, backward
                )
            here, out = backward if is_pairs else table[base:end], buffer[base:end]
            _add_arcs(messages, t, depth, n_labels, half, one, here, value, out)
            if len(is_open) > 0 and is_open[t]:
                _add_arcs(clamped, t, depth, n_labels, half, one, here, -value, out)
            else:
                out[pattern_code(y, t - depth + 1, t, n_labels)] -= value
            if is_pairs:
                restore_pairs(cor_ptr[t], cor_ptr[t + 1], cor_codes, tables.backward, backward)
            elif has_corrections:
                undo_corrections(
                    cor_ptr, cor_sizes, cor_codes, t, n_labels, depth, order, base, original, table, forward, backward
                )
        _fold(n_labels, order, offsets, buffer)
        first = offsets[size]
        g = buffer[first : first + power(n_labels, size)]
        n = _emit(g, columns[i], limits[i], i, allowed_ptr, allowed, n, found_column, found_code, found_grad)
    return n


@kernel
def pair_residuals(
    first: int, last: int, starts: Ints, y: UInts32, weights: Floats, n_labels: int, tables: FactorTables,
    cor: LocalFactors, messages: Messages, clamped: Messages, is_open: Bools, out: Floats,
) -> None:  # fmt: skip
    """out[t, b, a] = weight * (posterior - truth) of the labels b at t and a before it, for tokens first .. last-1.

    The order is 2. Arguments as for `scan_patterns`; the first token of a sentence has no pair: zeros.
    """
    table, plain = tables.backward.copy(), tables.backward
    posterior = np.empty(n_labels * n_labels)
    one = np.ones(1)
    for t in range(first, last):
        posterior[:] = 0.0
        if t > starts[t]:
            multiply_pairs(cor.ptr[t], cor.ptr[t + 1], cor.code, cor.factor, table)
            _add_arcs(messages, t, 2, n_labels, 1, one, table, weights[t], posterior)
            if len(is_open) > 0 and is_open[t]:
                _add_arcs(clamped, t, 2, n_labels, 1, one, table, -weights[t], posterior)
            else:
                posterior[y[t - 1] * n_labels + y[t]] -= weights[t]
            restore_pairs(cor.ptr[t], cor.ptr[t + 1], cor.code, plain, table)
        for a in range(n_labels):
            for b in range(n_labels):
                out[t, b, a] = posterior[a * n_labels + b]


@inner_fast_kernel
def _add_scaled(x: Floats, scale: float, out: Floats) -> None:
    for i in range(np.uint64(len(x))):
        out[i] += scale * x[i]


@kernel
def scan_pairs(
    ptr: Ints, positions: UInts32, values: Floats, columns: UInts32, limits: Floats, allowed_ptr: Ints,
    allowed: UInts32, y: UInts32, weights: Floats, residuals: Floats, pairs: Floats, is_partial: bool,
    found_column: UInts32, found_code: UInts32, found_grad: Floats,
) -> int:  # fmt: skip
    """What `scan_patterns` finds with label pairs, from the residuals of labels and of pairs (`pair_residuals`).

    |gradient of (a, b)| is at most what the column expects of b and what it has of b, whichever is larger (the sum of
    both if values may be negative): most labels need not be looked at.
    """
    n_labels = residuals.shape[1]
    expected, seen, g = np.empty(n_labels), np.empty(n_labels), np.empty((n_labels, n_labels))
    by_code, live = np.empty(n_labels * n_labels), np.empty(n_labels, np.int64)
    n = 0
    for i in range(len(columns)):
        first, last = ptr[columns[i]], ptr[columns[i] + 1]
        expected[:] = 0.0
        seen[:] = 0.0
        is_signed = False
        for j in range(first, last):
            t = positions[j]
            value = values[j] if len(values) > 0 else 1.0
            is_signed = is_signed or value < 0.0
            _add_scaled(residuals[t], abs(value), expected)
            seen[y[t]] += abs(value) * weights[t]
        n_live = 0
        for b in range(n_labels):
            # The residual is expected less seen.
            bound = max(expected[b] + seen[b], seen[b]) + (seen[b] if is_signed else 0.0)
            if is_partial or bound * (1.0 + 1e-9) > limits[i]:
                live[n_live] = b
                n_live += 1
        if n_live == 0:
            continue
        g[:] = 0.0
        for j in range(first, last):
            t = positions[j]
            value = values[j] if len(values) > 0 else 1.0
            for k in range(n_live):
                _add_scaled(pairs[t, live[k]], value, g[live[k]])
        for a in range(n_labels):
            for b in range(n_labels):
                by_code[a * n_labels + b] = g[b, a]
        n = _emit(by_code, columns[i], limits[i], i, allowed_ptr, allowed, n, found_column, found_code, found_grad)
    return n


@kernel
def observed_codes(
    ptr: Ints, positions: UInts32, starts: Ints, y: UInts32, size: int, n_labels: int, wanted: Bools, out: Ints
) -> int:
    """Column * n_labels**size + code of the true patterns at the occurrences of wanted columns; few repeats."""
    n = 0
    width = n_labels**size
    last = np.full(width if width <= MARKS else 0, -1, np.int64)  # the last column that each code was seen with
    for c in range(len(ptr) - 1):
        if not wanted[c]:
            continue
        for j in range(ptr[c], ptr[c + 1]):
            t = positions[j]
            if t - starts[t] + 1 < size:
                continue
            code = 0
            for u in range(t - size + 1, t + 1):
                code = code * n_labels + y[u]
            if len(last):
                if last[code] == c:
                    continue
                last[code] = c
            out[n] = c * width + code
            n += 1
    return n


@kernel
def count_corrections(ptr: Ints, positions: UInts32, columns: UInts32, counts: Ints) -> None:
    """counts[t + 1] += 1 for each feature (given by its column) and position where it can fire."""
    for f in range(len(columns)):
        for j in range(ptr[columns[f]], ptr[columns[f] + 1]):
            counts[positions[j] + 1] += 1


@kernel
def fill_corrections(
    ptr: Ints,
    positions: UInts32,
    columns: UInts32,
    at: Ints,
    entry_feature: UInts32,
    entry_of_feature: UInts32,
) -> None:
    """Position-major list of features, and for each feature (feature-major) the numbers of its entries."""
    n = 0
    for f in range(len(columns)):
        for j in range(ptr[columns[f]], ptr[columns[f] + 1]):
            t = positions[j]
            entry_feature[at[t]] = f
            entry_of_feature[n] = at[t]
            at[t] += 1
            n += 1


@kernel
def fill_slots(
    ptr: Ints, sizes: UInts32, codes: UInts32, offsets: Ints, seen: Ints, slot_ptr: Ints, slot: UInts32, first: Ints
) -> int:
    """Number the distinct patterns of each token; returns how many there are.

    `offsets` : where patterns of each length begin in a table of all
    `seen` : such a table, filled with -1; if it is empty, every entry has a slot of its own
    `slot_ptr` : (n_tokens + 1,) slots of each token
    `slot` : (n_entries,) slot of each entry
    `first` : an entry of each slot, room for n_entries
    """
    is_looked_up = len(seen) > 0
    n = 0
    for t in range(len(ptr) - 1):
        slot_ptr[t] = n
        for j in range(ptr[t], ptr[t + 1]):
            at = offsets[sizes[j] - 1] + codes[j]
            if is_looked_up and seen[at] >= slot_ptr[t]:
                slot[j] = seen[at]
                continue
            if is_looked_up:
                seen[at] = n
            slot[j] = n
            first[n] = j
            n += 1
    slot_ptr[len(ptr) - 1] = n
    return n


@outer_fast_kernel
def sum_slots(
    feature_ptr: Ints, slots: UInts32, values: Floats, residuals: Floats, first: int, last: int, out: Floats
) -> None:
    """out[f] = sum of the residuals of the feature's slots, times the values if there are any."""
    for f in range(first, last):
        total = 0.0
        a, z = np.uint64(feature_ptr[f]), np.uint64(feature_ptr[f + 1])
        if len(values) == 0:
            for j in range(a, z):
                total += residuals[slots[j]]
        else:
            for j in range(a, z):
                total += residuals[slots[j]] * values[j]
        out[f] = total
