"""Scores of words: what a word type adds around it is summed once, a token's score is a sum of a few such rows.

A template that looks at one offset is a function of the word type there. For each of the G distinct offsets a type
has one row of n_labels scores, the sum over all such templates, and a list of longer tag patterns. Templates that
look at several offsets (windows) are looked up at every token. Type 0 is the boundary, which lies around a sentence.

Attributes with weights have rows 1, 2, ...; row 0 stands for all others, and has no weights.

Loops take plain arrays and index them: a tuple's array, or a view, is counted as a reference every time it is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.scores import LocalScores
from vcrf.kernels.strings import TEMPLATE_SEED, mix64
from vcrf.types import Bools, Floats, Ints, UInts32, UInts64

# What every reading gives at the boundary, see `Text.reading`.
BOUNDARY = np.uint64(2)
_ABSENT = np.uint64(0)
_ONE = np.uint64(1)
_SHIFT = np.uint64(20)


class Templates(NamedTuple):
    """Some templates, and where their attributes are found.

    Template j has parts part_ptr[j] .. part_ptr[j+1]-1, each an offset and the number of a reading. Its attributes
    are in slots slot_ptr[j] .. slot_ptr[j+1]-1: a hash table from keys to rows whose size is a power of two.
    """

    part_ptr: Ints
    offsets: Ints
    readings: UInts32
    pad: Bools
    slot_ptr: Ints
    slots_key: UInts64
    slots_row: UInts32


class KnownTypes(NamedTuple):
    """What is known of each word type.

    readings : (n_types, n_readings) uint64, 0 = nothing; what windows look at
    node : (n_types, G, n_labels) float64
    local : longer patterns; those of type i for offset number g are in row i * G + g
    """

    readings: UInts64
    node: Floats
    local: LocalScores


@inner_kernel
def find_slot(key: np.uint64, first: np.uint64, mask: np.uint64, slots_key: UInts64) -> np.uint64:
    """Slot of a key in the table that starts at slot `first`, or the empty one where it would be."""
    slot = key >> _SHIFT & mask
    while slots_key[first + slot] != key and slots_key[first + slot] != _ABSENT:
        slot = (slot + _ONE) & mask
    return first + slot


@kernel
def fill_slots(keys: UInts64, first_row: int, slots_key: UInts64, slots_row: UInts32) -> None:
    """Fill the empty table of one template; key i has row first_row + i."""
    for i in range(len(keys)):
        slot = find_slot(keys[i], _ABSENT, np.uint64(len(slots_key) - 1), slots_key)
        if slots_key[slot] == _ABSENT:
            slots_key[slot] = keys[i]
            slots_row[slot] = first_row + i


@kernel
def score_types(
    readings: UInts64,
    is_boundary: bool,
    templates: Templates,
    groups: UInts32,
    single: LocalScores,
    longer_ptr: Ints,
    rows: UInts32,
    node: Floats,
    counts: Ints,
) -> None:
    """Rows of the attributes of word types, their summed scores of single labels, how many longer patterns they have.

    Parameters
    ----------
    readings : (n_readings, n_types) uint64
    is_boundary : whether this is the boundary, which only templates with `pad` see
    templates : those that look at one offset
    groups : (n_templates,) number of that offset
    single : patterns of one label, by row
    longer_ptr : where the longer patterns of each row are
    rows : (n_types, n_templates), written
    node : (n_types, G, n_labels), written
    counts : (n_types, G), written
    """
    part_ptr, _, part_readings, pad, slot_ptr, slots_key, slots_row = templates
    ptr, _, labels, scores = single
    node[:] = 0.0
    counts[:] = 0
    for j in range(len(groups)):
        first = np.uint64(slot_ptr[j])
        mask = np.uint64(slot_ptr[j + 1]) - first - _ONE
        is_seen = pad[j] or not is_boundary
        for i in range(len(rows)):
            key = TEMPLATE_SEED if is_seen else _ABSENT
            for part in range(part_ptr[j], part_ptr[j + 1]):
                read = readings[part_readings[part], i]
                key = _ABSENT if key == _ABSENT or read == _ABSENT else mix64(key ^ read)
            rows[i, j] = np.uint32(0) if key == _ABSENT else slots_row[find_slot(key | _ONE, first, mask, slots_key)]
    for i in range(len(rows)):
        for j in range(len(groups)):
            row = rows[i, j]
            for k in range(ptr[row], ptr[row + np.uint32(1)]):
                node[i, groups[j], labels[k]] += scores[k]
            counts[i, groups[j]] += longer_ptr[row + np.uint32(1)] - longer_ptr[row]


@inner_kernel
def add_types(
    start: int, stop: int, types: UInts32, offsets: Ints, type_node: Floats, local_ptr: Ints, node: Floats, counts: Ints
) -> None:
    """Scores from templates of one offset in the sentence start .. stop-1, and how many longer patterns they have."""
    n_offsets, n_labels = len(offsets), node.shape[1]
    for t in range(start, stop):
        for b in range(n_labels):
            node[t, b] = 0.0
        for g in range(n_offsets):
            u = t + offsets[g]
            word = int(types[u]) if u >= start and u < stop else 0
            for b in range(n_labels):
                node[t, b] += type_node[word, g, b]
            counts[t] += local_ptr[word * n_offsets + g + 1] - local_ptr[word * n_offsets + g]


@inner_kernel
def add_windows(
    start: int, stop: int, types: UInts32, readings: UInts64, part_ptr: Ints, part_offsets: Ints,
    part_readings: UInts32, pad: Bools, slot_ptr: Ints, slots_key: UInts64, slots_row: UInts32,
    single_ptr: Ints, labels: UInts32, scores: Floats, longer_ptr: Ints, rows: UInts32, node: Floats, counts: Ints,
) -> None:  # fmt: skip
    """Add the scores and counts of templates of several offsets in a sentence; writes rows (n_tokens, n_windows)."""
    for j in range(len(pad)):
        first = np.uint64(slot_ptr[j])
        mask = np.uint64(slot_ptr[j + 1]) - first - _ONE
        outside = BOUNDARY if pad[j] else _ABSENT
        for t in range(start, stop):
            key = TEMPLATE_SEED
            for part in range(part_ptr[j], part_ptr[j + 1]):
                u = t + part_offsets[part]
                read = readings[types[u], part_readings[part]] if u >= start and u < stop else outside
                key = _ABSENT if key == _ABSENT or read == _ABSENT else mix64(key ^ read)
            row = np.uint32(0) if key == _ABSENT else slots_row[find_slot(key | _ONE, first, mask, slots_key)]
            rows[t, j] = row
            if row > 0:
                for k in range(single_ptr[row], single_ptr[row + np.uint32(1)]):
                    node[t, labels[k]] += scores[k]
                counts[t] += longer_ptr[row + np.uint32(1)] - longer_ptr[row]


@inner_kernel
def list_patterns(
    start: int, stop: int, types: UInts32, offsets: Ints,
    local_ptr: Ints, local_size: UInts32, local_code: UInts32, local_score: Floats,
    rows: UInts32, longer_ptr: Ints, longer_size: UInts32, longer_code: UInts32, longer_score: Floats,
    ptr: Ints, size: UInts32, code: UInts32, score: Floats,
) -> None:  # fmt: skip
    """Copy the longer patterns of each token: of the types around it by offset, then of its windows."""
    n_offsets = len(offsets)
    for t in range(start, stop):
        at = ptr[t]
        if at == ptr[t + 1]:
            continue
        for g in range(n_offsets):
            u = t + offsets[g]
            word = int(types[u]) if u >= start and u < stop else 0
            for k in range(local_ptr[word * n_offsets + g], local_ptr[word * n_offsets + g + 1]):
                size[at], code[at], score[at] = local_size[k], local_code[k], local_score[k]
                at += 1
        for j in range(rows.shape[1]):
            for k in range(longer_ptr[rows[t, j]], longer_ptr[rows[t, j] + np.uint32(1)]):
                size[at], code[at], score[at] = longer_size[k], longer_code[k], longer_score[k]
                at += 1


@kernel
def score_labels(
    sent_ptr: Ints, types: UInts32, offsets: Ints, type_node: Floats, readings: UInts64, windows: Templates,
    single: LocalScores, node: Floats,
) -> None:  # fmt: skip
    """What `score_tokens` writes to `node`, for models without longer patterns at single tokens."""
    part_ptr, part_offsets, part_readings, pad, slot_ptr, slots_key, slots_row = windows
    single_ptr, _, labels, scores = single
    n_labels, n_offsets = np.uint64(node.shape[1]), len(offsets)
    flat, rows = node.reshape(-1), type_node.reshape(-1)
    for i in range(len(sent_ptr) - 1):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        for t in range(start, stop):
            at = np.uint64(t) * n_labels
            for b in range(n_labels):
                flat[at + b] = 0.0
            for g in range(n_offsets):
                u = t + offsets[g]
                word = int(types[u]) if u >= start and u < stop else 0
                row = np.uint64(word * n_offsets + g) * n_labels
                for b in range(n_labels):
                    flat[at + b] += rows[row + b]
            for j in range(len(pad)):
                outside = BOUNDARY if pad[j] else _ABSENT
                key = TEMPLATE_SEED
                for part in range(part_ptr[j], part_ptr[j + 1]):
                    u = t + part_offsets[part]
                    read = readings[types[u], part_readings[part]] if u >= start and u < stop else outside
                    key = _ABSENT if key == _ABSENT or read == _ABSENT else mix64(key ^ read)
                if key != _ABSENT:
                    first = np.uint64(slot_ptr[j])
                    mask = np.uint64(slot_ptr[j + 1]) - first - _ONE
                    found = slots_row[find_slot(key | _ONE, first, mask, slots_key)]
                    for k in range(single_ptr[found], single_ptr[found + np.uint32(1)]):
                        flat[at + labels[k]] += scores[k]


@kernel
def score_tokens(
    sent_ptr: Ints,
    types: UInts32,
    offsets: Ints,
    known: KnownTypes,
    windows: Templates,
    single: LocalScores,
    longer: LocalScores,
    node: Floats,
) -> LocalScores:
    """Scores of single labels, and the longer tag patterns, at every token.

    Parameters
    ----------
    sent_ptr : (n_sentences + 1,) int64
    types : (n_tokens,) uint32
    offsets : (G,) int64
    known : what the types add
    windows : templates that look at several offsets
    single, longer : patterns of one label and of more, by row
    node : (n_tokens, n_labels), written

    Returns
    -------
    LocalScores
        CSR over tokens.
    """
    readings, type_node, local = known
    part_ptr, part_offsets, part_readings, pad, slot_ptr, slots_key, slots_row = windows
    single_ptr, _, labels, scores = single
    longer_ptr, longer_size, longer_code, longer_score = longer
    local_ptr, local_size, local_code, local_score = local
    rows = np.empty((len(types), len(pad)), np.uint32)
    ptr = np.zeros(len(types) + 1, np.int64)
    counts = ptr[1:]
    for i in range(len(sent_ptr) - 1):
        start, stop = sent_ptr[i], sent_ptr[i + 1]
        add_types(start, stop, types, offsets, type_node, local_ptr, node, counts)
        add_windows(
            start, stop, types, readings, part_ptr, part_offsets, part_readings, pad, slot_ptr, slots_key, slots_row,
            single_ptr, labels, scores, longer_ptr, rows, node, counts,
        )  # fmt: skip
    for t in range(len(types)):
        ptr[t + 1] += ptr[t]
    size, code, score = np.empty(ptr[-1], np.uint32), np.empty(ptr[-1], np.uint32), np.empty(ptr[-1])
    for i in range(len(sent_ptr) - 1):
        list_patterns(
            sent_ptr[i], sent_ptr[i + 1], types, offsets, local_ptr, local_size, local_code, local_score,
            rows, longer_ptr, longer_size, longer_code, longer_score, ptr, size, code, score,
        )  # fmt: skip
    return LocalScores(ptr, size, code, score)
