"""The hash of CRFsuite's string tables: Bob Jenkins' lookup3, `hashlittle`, which is in the public domain."""

from __future__ import annotations

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.types import Ints, UInts8, UInts32

_MASK = 0xFFFFFFFF
_START = 0xDEADBEEF


@inner_kernel
def rotated(x: int, k: int) -> int:
    """The 32 bits of x, turned left by k."""
    return ((x << k) | (x >> (32 - k))) & _MASK


@inner_kernel
def mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    """Mix three 32-bit numbers reversibly."""
    a = ((a - c) & _MASK) ^ rotated(c, 4)
    c = (c + b) & _MASK
    b = ((b - a) & _MASK) ^ rotated(a, 6)
    a = (a + c) & _MASK
    c = ((c - b) & _MASK) ^ rotated(b, 8)
    b = (b + a) & _MASK
    a = ((a - c) & _MASK) ^ rotated(c, 16)
    c = (c + b) & _MASK
    b = ((b - a) & _MASK) ^ rotated(a, 19)
    a = (a + c) & _MASK
    c = ((c - b) & _MASK) ^ rotated(b, 4)
    b = (b + a) & _MASK
    return a, b, c


@inner_kernel
def final(a: int, b: int, c: int) -> int:
    """The hash of three numbers."""
    c = ((c ^ b) - rotated(b, 14)) & _MASK
    a = ((a ^ c) - rotated(c, 11)) & _MASK
    b = ((b ^ a) - rotated(a, 25)) & _MASK
    c = ((c ^ b) - rotated(b, 16)) & _MASK
    a = ((a ^ c) - rotated(c, 4)) & _MASK
    b = ((b ^ a) - rotated(a, 14)) & _MASK
    return ((c ^ b) - rotated(b, 24)) & _MASK


@kernel
def hash_all(ptr: Ints, data: UInts8, out: UInts32) -> None:
    """out[i] = hash of data[ptr[i]:ptr[i + 1]], 12 bytes at a time; at least one byte each."""
    words = [0, 0, 0]
    for i in range(len(out)):
        at, left = ptr[i], ptr[i + 1] - ptr[i]
        a = b = c = (_START + left) & _MASK
        while True:
            n = min(left, 12)
            for k in range(3):
                words[k] = 0
            for k in range(n):
                words[k // 4] |= int(data[at + k]) << (8 * (k % 4))
            a, b, c = (a + words[0]) & _MASK, (b + words[1]) & _MASK, (c + words[2]) & _MASK
            if left <= 12:
                break
            a, b, c = mixed(a, b, c)
            at, left = at + 12, left - 12
        out[i] = final(a, b, c)
