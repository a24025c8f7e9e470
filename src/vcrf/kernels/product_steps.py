"""One row's steps on the product of a chain and a loss automaton, and sums over rows; see `kernels.product`."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel
from vcrf.kernels.corrections import power
from vcrf.kernels.vectors import dots
from vcrf.types import Floats, UInts32


@inner_fast_kernel
def move_forward(
    u: Floats, node: Floats, at: int, successor: UInts32, factor: Floats, row: int, n_labels: int, n_states: int,
    n_next: int, is_plain: bool, is_one: bool, out: Floats, out_first: int,
) -> None:  # fmt: skip
    """out[successor, h, b] += u[h, b] * node[b] * factor[b].

    `is_plain` leaves the factor out, `is_one` takes the row at out_first for every successor.
    """
    first = row * n_labels
    for b in range(n_labels):
        dest = out_first + (0 if is_one else np.int64(successor[first + b]) * n_states) + b
        x = node[at + b] if is_plain else node[at + b] * factor[first + b]
        for k in range(0, n_next, n_labels):
            out[dest + k] += x * u[k + b]


@inner_fast_kernel
def move_backward(
    beta: Floats, beta_first: int, node: Floats, at: int, successor: UInts32, factor: Floats, row: int, n_labels: int,
    n_states: int, n_next: int, scale: float, is_plain: bool, is_one: bool, out: Floats, out_first: int,
) -> None:  # fmt: skip
    """out[h, b] += scale * beta[successor, h, b] * node[b] * factor[b]; flags as in `move_forward`."""
    first = row * n_labels
    for b in range(n_labels):
        origin = beta_first + (0 if is_one else np.int64(successor[first + b]) * n_states) + b
        x = scale * node[at + b]
        x = x if is_plain else x * factor[first + b]
        for k in range(0, n_next, n_labels):
            out[out_first + k + b] += x * beta[origin + k]


@inner_kernel
def chain_forward(
    before: Floats, first: int, n_labels: int, depth: int, order: int, base: int, table: Floats, forward: Floats,
    column: Floats, u: Floats,
) -> None:  # fmt: skip
    """u[h, b] = sum over the oldest label a of before[a, h] * table[a, h, b]: one row's step of the plain chain."""
    if depth < order:
        for s in range(power(n_labels, depth - 1)):
            for b in range(n_labels):
                u[s * n_labels + b] = before[first + s] * table[base + s * n_labels + b]
        return
    half = power(n_labels, order - 2)
    if half == 1:
        dots(forward, 0, before, first, u, 0, n_labels)
        return
    for h in range(half):
        for a in range(n_labels):
            column[a] = before[first + a * half + h]
        dots(forward, h * n_labels * n_labels, column, 0, u, h * n_labels, n_labels)


@inner_kernel
def chain_backward(
    back: Floats, first: int, n_labels: int, depth: int, order: int, base: int, table: Floats, backward: Floats,
    column: Floats, beta: Floats, beta_first: int,
) -> None:  # fmt: skip
    """beta[a, h] = sum_b table[a, h, b] * back[h, b]: one row's step back."""
    if depth < order:
        for s in range(power(n_labels, depth - 1)):
            total = 0.0
            for b in range(n_labels):
                total += table[base + s * n_labels + b] * back[first + s * n_labels + b]
            beta[beta_first + s] = total
        return
    half = power(n_labels, order - 2)
    if half == 1:
        dots(backward, 0, back, first, beta, beta_first, n_labels)
        return
    for h in range(half):
        dots(backward, h * n_labels * n_labels, back, first + h * n_labels, column, 0, n_labels)
        for a in range(n_labels):
            beta[beta_first + a * half + h] = column[a]


@inner_fast_kernel
def pair_sums(
    before: Floats, back: Floats, first: int, n_rows: int, n_states: int, n_hist: int, half: int, n_labels: int,
    weight: float, out: Floats,
) -> None:  # fmt: skip
    """out[s, b] += weight * sum over rows of before[s] * back[s % half, b]; half >= n_hist keeps all of s."""
    n = np.uint64(n_labels)
    for row in range(n_rows):
        at = np.uint64(first + row * n_states)
        for s in range(n_hist):
            x = weight * before[at + np.uint64(s)]
            g, o = at + np.uint64(s % half) * n, np.uint64(s) * n
            for b in range(n):
                out[o + b] += x * back[g + b]


@inner_fast_kernel
def square_pairs(
    before: Floats, back: Floats, first: int, n_rows: int, n_labels: int, weight: float, out: Floats
) -> None:
    """`pair_sums` for order 2, four rows at a time: out[a, b] += weight * sum over rows of before[a] * back[b]."""
    n = np.uint64(n_labels)
    for row in range(0, n_rows, 4):
        # Past the end the last row is repeated with weight 0.
        i0 = np.uint64(first) + np.uint64(row) * n
        i1 = i0 + n if row + 1 < n_rows else i0
        i2 = i1 + n if row + 2 < n_rows else i1
        i3 = i2 + n if row + 3 < n_rows else i2
        w1 = weight if row + 1 < n_rows else 0.0
        w2 = weight if row + 2 < n_rows else 0.0
        w3 = weight if row + 3 < n_rows else 0.0
        for a in range(n):
            x0, x1, x2, x3 = weight * before[i0 + a], w1 * before[i1 + a], w2 * before[i2 + a], w3 * before[i3 + a]
            o = a * n
            for b in range(n):
                out[o + b] += x0 * back[i0 + b] + x1 * back[i1 + b] + x2 * back[i2 + b] + x3 * back[i3 + b]


@inner_fast_kernel
def sum_to_one(x: Floats, first: int, last: int) -> float:
    """Divide by the sum, and return it."""
    total = 0.0
    for k in range(first, last):
        total += x[k]
    inverse = 1.0 / total
    for k in range(first, last):
        x[k] *= inverse
    return total


@inner_fast_kernel
def label_sums(
    before: Floats, first: int, beta: Floats, n_rows: int, n_states: int, n_next: int, n_labels: int, out: Floats
) -> None:
    """out[b] = sum over rows and h of before[h, b] * beta[h, b]."""
    for b in range(n_labels):
        out[b] = 0.0
    for row in range(n_rows):
        for k in range(row * n_states, row * n_states + n_next, n_labels):
            for b in range(n_labels):
                out[b] += before[first + k + b] * beta[k + b]
