"""Weights of component values as weights of the labels that have them: what scores sentences knows labels alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.problem import Components
from vcrf.types import Floats, Ints, UInts32


class WeightRows(NamedTuple):
    """CSR from rows (attributes) to kinds of parts, codes and weights."""

    ptr: Ints
    lengths: UInts32
    codes: UInts32
    weights: Floats


def spread_components(
    components: Components, kind: int, ptr: Ints, lengths: UInts32, codes: UInts32, weights: Floats
) -> WeightRows:  # fmt: skip
    """Entries of component values, and of pairs of these, handed to labels and pairs of labels.

    `kind` is that of values; those of pairs come after it. What a row has for a label, or a pair, is summed up.
    """
    row = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    values, others = np.flatnonzero(lengths == kind), np.flatnonzero(lengths < kind)
    index, labels = components.expand(codes[values].astype(np.int64))
    parts = [
        (row[others], lengths[others], codes[others], weights[others]),
        (row[values][index], np.ones(len(index), np.uint32), labels, weights[values][index]),
    ]
    for component in range(len(components.pairs)):
        mine = np.flatnonzero(lengths == kind + 1 + component)
        index, pairs = components.expand_pairs(component, codes[mine].astype(np.int64))
        parts.append((row[mine][index], np.full(len(index), 2, np.uint32), pairs, weights[mine][index]))
    rows, sizes, found, summands = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((found, sizes, rows))
    rows, sizes, found, summands = rows[order], sizes[order], found[order], summands[order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (sizes[1:] != sizes[:-1]) | (found[1:] != found[:-1])
    sums = np.asarray(np.bincount(np.cumsum(is_first) - 1, summands, int(is_first.sum())), np.float64)
    counts = np.bincount(rows[is_first], minlength=len(ptr) - 1)
    return WeightRows(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), sizes[is_first], found[is_first], sums
    )
