"""Sums of random signs: draws of V = sum over atoms of scale * (sum of the atom's signs), and of its norms.

An atom is a set of factors at which the same columns occur with the same scales, so that only the sum of its n signs
matters: n - 2 * (number of ones among n random bits), 64 bits at a time.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.types import Floats, Ints, UInts64

Bits: TypeAlias = Any  # one np.uint64

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_M1 = np.uint64(0x5555555555555555)
_M2 = np.uint64(0x3333333333333333)
_M4 = np.uint64(0x0F0F0F0F0F0F0F0F)
_H01 = np.uint64(0x0101010101010101)


@inner_kernel
def mixed(counter: Bits) -> Bits:
    """64 random bits from a counter that grows by `_GOLDEN` (splitmix64)."""
    z = (counter ^ (counter >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    bits: Bits = z ^ (z >> np.uint64(31))
    return bits


@inner_kernel
def count_ones(bits: Bits) -> int:
    """Number of ones among 64 bits."""
    x = bits - ((bits >> np.uint64(1)) & _M1)
    x = (x & _M2) + ((x >> np.uint64(2)) & _M2)
    x = (x + (x >> np.uint64(4))) & _M4
    return int((x * _H01) >> np.uint64(56))


@inner_kernel
def draw(
    atom_n: Ints, atom_ptr: Ints, atom_columns: Ints, atom_scales: Floats, counter: Bits, out: Floats
) -> Bits:  # fmt: skip
    """One V for all columns and one assignment, into `out` (n_columns,); the counter after it."""
    out[:] = 0.0
    for a in range(len(atom_n)):
        n, ones = atom_n[a], 0
        for _ in range(n // 64):
            counter += _GOLDEN
            ones += count_ones(mixed(counter))
        if n % 64 > 0:
            counter += _GOLDEN
            ones += count_ones(mixed(counter) >> np.uint64(64 - n % 64))
        total = n - 2 * ones
        for e in range(atom_ptr[a], atom_ptr[a + 1]):
            out[atom_columns[e]] += atom_scales[e] * total
    return counter


@kernel
def sample_maxima(
    atom_n: Ints, atom_ptr: Ints, atom_columns: Ints, atom_scales: Floats, n_columns: int, n_assignments: int,
    seeds: UInts64, out: Floats,
) -> None:  # fmt: skip
    """out[b] = max(out[b], max over columns and assignments of |V|), one draw for each seed."""
    v = np.empty(n_columns)
    for b in range(len(seeds)):
        counter = seeds[b]
        for _ in range(n_assignments):
            counter = draw(atom_n, atom_ptr, atom_columns, atom_scales, counter, v)
            for c in range(n_columns):
                out[b] = max(out[b], abs(v[c]))


@kernel
def sample_powers(
    atom_n: Ints, atom_ptr: Ints, atom_columns: Ints, atom_scales: Floats, multiplicities: Floats, n_assignments: int,
    q: float, seeds: UInts64, out: Floats,
) -> None:  # fmt: skip
    """out[b] += sum over features of |V|**q."""
    v = np.empty(len(multiplicities))
    for b in range(len(seeds)):
        counter = seeds[b]
        for _ in range(n_assignments):
            counter = draw(atom_n, atom_ptr, atom_columns, atom_scales, counter, v)
            for c in range(len(v)):
                out[b] += multiplicities[c] * abs(v[c]) ** q


@kernel
def sample_groups(
    atom_n: Ints, atom_ptr: Ints, atom_columns: Ints, atom_scales: Floats, multiplicities: Floats, n_assignments: int,
    by_column: bool, seeds: UInts64, out: Floats,
) -> None:  # fmt: skip
    """out[b] = max(out[b], max over groups of sum of V**2); a group is a column, or an assignment."""
    n_columns = len(multiplicities)
    v, squares = np.empty(n_columns), np.empty(n_columns)
    for b in range(len(seeds)):
        counter = seeds[b]
        squares[:] = 0.0
        for _ in range(n_assignments):
            counter = draw(atom_n, atom_ptr, atom_columns, atom_scales, counter, v)
            total = 0.0
            for c in range(n_columns):
                squares[c] += v[c] ** 2
                total += multiplicities[c] * v[c] ** 2
            if not by_column:
                out[b] = max(out[b], total)
        if by_column:
            out[b] = max(out[b], squares.max())
