"""Tag patterns as base-L numbers, and the corrections of single tokens multiplied into the tables and out again."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel
from vcrf.types import Floats, Ints, UInts32


@inner_kernel
def power(base: int, exponent: int) -> int:
    """Base ** exponent for small non-negative exponents."""
    out = 1
    for _ in range(exponent):
        out *= base
    return out


@inner_kernel
def pattern_code(y: UInts32, first: int, last: int, n_labels: int) -> int:
    """Base-L number of the labels at positions first .. last."""
    code = 0
    for u in range(first, last + 1):
        code = code * n_labels + y[u]
    return code


@inner_kernel
def multiply_pairs(first: int, last: int, codes: UInts32, factor: Floats, table: Floats) -> None:
    """table[code] *= factor for the slots first .. last-1: label pairs, order 2."""
    for j in range(np.uint64(first), np.uint64(last)):
        table[codes[j]] *= factor[j]


@inner_kernel
def restore_pairs(first: int, last: int, codes: UInts32, original: Floats, table: Floats) -> None:
    """Undo `multiply_pairs`."""
    for j in range(np.uint64(first), np.uint64(last)):
        table[codes[j]] = original[codes[j]]


@inner_kernel
def apply_corrections(
    ptr: Ints, sizes: UInts32, codes: UInts32, factor: Floats, t: int, n_labels: int, depth: int, order: int,
    base: int, table: Floats, forward: Floats, backward: Floats,
) -> None:  # fmt: skip
    """Multiply the corrections of token t into the scratch tables (`base` = offsets[depth])."""
    half = power(n_labels, max(order - 2, 0))
    for j in range(ptr[t], ptr[t + 1]):
        if sizes[j] > depth:
            continue
        step = power(n_labels, sizes[j])
        for prefix in range(power(n_labels, depth - sizes[j])):
            arc = prefix * step + codes[j]
            table[base + arc] *= factor[j]
            if depth == order:
                s, b = arc // n_labels, arc % n_labels
                a, h = s // half, s % half
                forward[(h * n_labels + b) * n_labels + a] = table[base + arc]
                backward[(h * n_labels + a) * n_labels + b] = table[base + arc]


@inner_kernel
def undo_corrections(
    ptr: Ints, sizes: UInts32, codes: UInts32, t: int, n_labels: int, depth: int, order: int,
    base: int, original: Floats, table: Floats, forward: Floats, backward: Floats,
) -> None:  # fmt: skip
    """Restore what the corrections of token t touched."""
    half = power(n_labels, max(order - 2, 0))
    for j in range(ptr[t], ptr[t + 1]):
        if sizes[j] > depth:
            continue
        step = power(n_labels, sizes[j])
        for prefix in range(power(n_labels, depth - sizes[j])):
            arc = prefix * step + codes[j]
            table[base + arc] = original[base + arc]
            if depth == order:
                s, b = arc // n_labels, arc % n_labels
                a, h = s // half, s % half
                forward[(h * n_labels + b) * n_labels + a] = original[base + arc]
                backward[(h * n_labels + a) * n_labels + b] = original[base + arc]


@inner_kernel
def take_off_truth(
    sent_ptr: Ints, first: int, last: int, y: UInts32, weights: Floats, hard: UInts32, n_labels: int, order: int,
    offsets: Ints, log: Floats, ptr: Ints, sizes: UInts32, codes: UInts32, score: Floats, counts: Floats,
    values: Floats,
) -> None:  # fmt: skip
    """Take the true sequences' longer patterns off the values (their score) and off the counts of arcs."""
    suffix = np.zeros(order + 1, np.int64)
    for i in range(first, last):
        if hard[i] == 1:
            continue
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        for t in range(start, stop):
            depth = min(t - start + 1, order)
            code = pattern_code(y, t - depth + 1, t, n_labels)
            values[i] -= log[offsets[depth] + code]
            counts[offsets[depth] + code] -= weights[i]
            if ptr[t + 1] > ptr[t]:
                for k in range(depth + 1):
                    suffix[k] = code % power(n_labels, k)
            for j in range(ptr[t], ptr[t + 1]):
                if sizes[j] <= depth and suffix[sizes[j]] == codes[j]:
                    values[i] -= score[j]
