"""Weights of component values as weights of the labels that have them: what scores sentences knows labels alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.problem import Components
from vcrf.types import Floats, Ints, UInts32


class Rows(NamedTuple):
    """CSR from rows (attributes) to kinds of parts, codes and weights."""

    ptr: Ints
    lengths: UInts32
    codes: UInts32
    weights: Floats


def spread_components(
    components: Components, kind: int, ptr: Ints, lengths: UInts32, codes: UInts32, weights: Floats
) -> Rows:  # fmt: skip
    """Entries of a kind handed to the labels of their values; what a row has for a label is summed up."""
    row = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    is_value = lengths == kind
    values, others = np.flatnonzero(is_value), np.flatnonzero(~is_value)
    index, labels = components.expand(codes[values].astype(np.int64))
    rows = np.concatenate([row[others], row[values][index]])
    sizes = np.concatenate([lengths[others], np.ones(len(index), np.uint32)])
    found = np.concatenate([codes[others], labels])
    summands = np.concatenate([weights[others], weights[values][index]])
    order = np.lexsort((found, sizes, rows))
    rows, sizes, found, summands = rows[order], sizes[order], found[order], summands[order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (sizes[1:] != sizes[:-1]) | (found[1:] != found[:-1])
    sums = np.asarray(np.bincount(np.cumsum(is_first) - 1, summands, int(is_first.sum())), np.float64)
    counts = np.bincount(rows[is_first], minlength=len(ptr) - 1)
    return Rows(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), sizes[is_first], found[is_first], sums)
