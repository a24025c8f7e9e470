"""Reading attributes: keys of templates, interning, twins.

A key is a 64-bit hash of an attribute's content, so that training and tagging agree without sharing ids.
Key 0 means "no attribute here". Among ten million attributes two share a key with probability 3e-6.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.kernels.strings import TEMPLATE_SEED, mix64
from vcrf.types import Ints, UInts32, UInts64

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xD6E8FEB86659FD93)
_ZERO = np.uint64(0)
_BITS_OF_ONE = np.uint64(0x3FF0000000000000)
_ONE = np.uint64(1)


@kernel
def template_keys(
    sent_ptr: Ints,
    word_ids: UInts32,
    boundary: int,
    offsets: Ints,
    readings: UInts64,
    pad: bool,
    out: UInts64,
) -> None:
    """Key of one template at every position.

    `readings` is (n_parts, n_types + 1): the hash of part i for each word type, 0 = absent; the last row
    entry is the type `boundary`, read outside the sentence if `pad`, else such a window has no attribute.
    """
    for i in range(len(sent_ptr) - 1):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        for t in range(start, stop):
            h = TEMPLATE_SEED
            for j in range(len(offsets)):
                u = t + offsets[j]
                if u >= start and u < stop:
                    part = readings[j, word_ids[u]]
                elif pad:
                    part = readings[j, boundary]
                else:
                    part = _ZERO
                if part == _ZERO:
                    h = _ZERO
                    break
                h = mix64(h ^ part)
            out[t] = h if h == _ZERO else h | _ONE


@kernel
def intern_keys(keys: UInts64, slots_key: UInts64, slots_id: UInts32, ids: UInts32) -> int:
    """Number the distinct keys 0, 1, ... in order of first occurrence; returns how many there are.

    `slots_*` are empty tables whose length is a power of two above len(keys).
    """
    mask = np.uint64(len(slots_key) - 1)
    n = 0
    for i in range(len(keys)):
        key = keys[i]
        slot = (key * _GOLDEN) >> np.uint64(20) & mask
        while slots_key[slot] != _ZERO and slots_key[slot] != key:
            slot = (slot + _ONE) & mask
        if slots_key[slot] == _ZERO:
            slots_key[slot] = key
            slots_id[slot] = n
            n += 1
        ids[i] = slots_id[slot]
    return n


@kernel
def find_keys(keys: UInts64, slots_key: UInts64, slots_id: UInts32, absent: int, ids: UInts32) -> None:
    """Look keys up in a table filled by `intern_keys`; `absent` where a key is unknown or 0."""
    mask = np.uint64(len(slots_key) - 1)
    for i in range(len(keys)):
        key = keys[i]
        ids[i] = absent
        if key == _ZERO:
            continue
        slot = (key * _GOLDEN) >> np.uint64(20) & mask
        while slots_key[slot] != _ZERO:
            if slots_key[slot] == key:
                ids[i] = slots_id[slot]
                break
            slot = (slot + _ONE) & mask


@kernel
def signatures(positions: UInts32, value_bits: UInts64, ids: UInts32, sig: UInts64, count: UInts32) -> None:
    """128-bit signature of each attribute's set of (position, value): equal sets, equal signatures.

    The sum of random words is order-free; two different sets collide with probability 2**-128.
    `value_bits` is empty for indicators.
    """
    for i in range(len(positions)):
        h = mix64(np.uint64(positions[i]) * _SECOND)
        if len(value_bits) > 0 and value_bits[i] != _BITS_OF_ONE:
            h = mix64(h ^ value_bits[i])
        sig[ids[i], 0] += h
        sig[ids[i], 1] += mix64(h ^ _SECOND)
        count[ids[i]] += np.uint32(1)


@kernel
def merge_twins(sig: UInts64, table_sig: UInts64, slots: UInts32, n_columns: int, columns: UInts32) -> int:
    """Column of each signature: an old one if the signature is known, else the next free number.

    `slots` holds column + 1 (0 = free) and is a power of two long; `table_sig` has room for the new columns.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(sig.shape[0]):
        slot = sig[i, 0] & mask
        while slots[slot] != 0:
            j = slots[slot] - np.uint32(1)
            if table_sig[j, 0] == sig[i, 0] and table_sig[j, 1] == sig[i, 1]:
                break
            slot = (slot + _ONE) & mask
        if slots[slot] == 0:
            table_sig[n_columns, 0] = sig[i, 0]
            table_sig[n_columns, 1] = sig[i, 1]
            n_columns += 1
            slots[slot] = n_columns
        columns[i] = slots[slot] - np.uint32(1)
    return n_columns


@kernel
def rehash(table_sig: UInts64, n_columns: int, slots: UInts32) -> None:
    """Fill an empty, larger slot table with the signatures of columns 0..n_columns-1."""
    mask = np.uint64(len(slots) - 1)
    for j in range(n_columns):
        slot = table_sig[j, 0] & mask
        while slots[slot] != 0:
            slot = (slot + _ONE) & mask
        slots[slot] = j + 1


@kernel
def representable(
    col_ptr: Ints, col_pos: UInts32, pos_key: UInts32, key_count: UInts32, seen: UInts32, out: UInts32
) -> None:
    """out[c] = 1 where column c is a union of whole keys: each key is inside the column or outside it.

    `seen` is (n_keys,) zeros; it holds the last column + 1 that touched the key.
    """
    for c in range(len(col_ptr) - 1):
        covered = 0
        for j in range(col_ptr[c], col_ptr[c + 1]):
            key = pos_key[col_pos[j]]
            if seen[key] != c + 1:
                seen[key] = c + 1
                covered += key_count[key]
        out[c] = 1 if covered == col_ptr[c + 1] - col_ptr[c] else 0


@kernel
def distinct_keys(
    col_ptr: Ints,
    col_pos: UInts32,
    pos_key: UInts32,
    seen: UInts32,
    which: UInts32,
    key_ptr: Ints,
    keys: UInts32,
) -> int:
    """List the distinct keys of each column in `which` (for a group that represents them)."""
    n = 0
    for i in range(len(which)):
        c = which[i]
        for j in range(col_ptr[c], col_ptr[c + 1]):
            key = pos_key[col_pos[j]]
            if seen[key] != i + 1:
                seen[key] = i + 1
                keys[n] = key
                n += 1
        key_ptr[i + 1] = n
    return n


@kernel
def is_function_of(leader: UInts32, follower: UInts32, first: Ints) -> bool:
    """Whether `follower` is constant on every class of `leader`; `first` is (n_leaders,) of -1."""
    for t in range(len(leader)):
        u = leader[t]
        if first[u] < 0:
            first[u] = follower[t]
        elif first[u] != follower[t]:
            return False
    return True
