"""Content hashes of words and affixes; they are parts of the keys of attributes, see `kernels.hashing`."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.types import Ints, UInts32, UInts64

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)

# The key of a template begins with this, and each part is mixed in.
TEMPLATE_SEED = _GOLDEN


@inner_kernel
def mix64(x: np.uint64) -> np.uint64:
    """Finaliser of splitmix64: a bijection whose output bits all depend on all input bits."""
    x = np.uint64(x) + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@kernel
def hash_strings(ptr: Ints, code_points: UInts32, out: UInts64) -> None:
    """Hash of each string; string i is code_points[ptr[i]:ptr[i+1]]. Never 0."""
    for i in range(len(ptr) - 1):
        h = np.uint64(ptr[i + 1] - ptr[i] + 1)
        for j in range(ptr[i], ptr[i + 1]):
            h = mix64(h ^ np.uint64(code_points[j]))
        out[i] = h | _ONE


@kernel
def hash_affixes(ptr: Ints, code_points: UInts32, length: int, suffix: bool, out: UInts64) -> None:
    """Hash of the prefix or suffix of the given length of each string; 0 where the string is shorter."""
    for i in range(len(ptr) - 1):
        if ptr[i + 1] - ptr[i] < length:
            out[i] = _ZERO
            continue
        start = ptr[i + 1] - length if suffix else ptr[i]
        h = np.uint64(length)
        for j in range(start, start + length):
            h = mix64(h ^ np.uint64(code_points[j]))
        out[i] = h | _ONE
