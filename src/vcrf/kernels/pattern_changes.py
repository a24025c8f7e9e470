"""Patterns with a word, which fire at their token alone: what they change in the sums of `kernels.pattern_lanes`.

They multiply the arcs that end with them. The sums of a token are made without them, and the differences added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.patterns import PatternArrays
from vcrf.kernels.scores import LocalArcs
from vcrf.types import Floats, Ints


class Changes(NamedTuple):
    """Scratch for the patterns of a token alone, one number an arc, all zeros between two uses; `listed` for arcs."""

    times: Floats
    value: Floats
    listed: Ints


@kernel
def make_changes(n_arcs: int) -> Changes:
    """Scratch for an automaton of so many arcs."""
    return Changes(np.zeros(n_arcs), np.zeros(n_arcs), np.empty(n_arcs, np.int64))


@inner_kernel
def list_changes(t: int, local: LocalArcs, graph: PatternArrays, changes: Changes) -> int:
    """List the arcs that end with the patterns of token t alone, and the product of these patterns' factors.

    Arcs that overwrite a listed one end with the same pattern: they are listed too.
    """
    n = 0
    for j in range(local.ptr[t], local.ptr[t + 1]):
        for r in range(graph.rank[local.arc[j]], graph.rank_end[local.arc[j]]):
            arc = np.int64(graph.by_rank[r])
            if changes.times[arc] == 0.0:
                changes.times[arc] = local.factor[j]
                changes.listed[n] = arc
                n += 1
            else:
                changes.times[arc] *= local.factor[j]
    return n


@kernel
def change_rows(
    lanes: int, lane: int, t: int, n_labels: int, local: LocalArcs, graph: PatternArrays, factor: Floats, back: Floats,
    at: int, changes: Changes, extra: Floats,
) -> None:  # fmt: skip
    """extra[p] += what the patterns of token t alone add to p's row, less what they add to the row p backs off to."""
    n = list_changes(t, local, graph, changes)
    for x in range(n):
        arc = changes.listed[x]
        value = factor[arc] * back[(at + np.int64(graph.arc_state[arc])) * lanes + lane]
        changes.value[arc] = (changes.times[arc] - 1.0) * value
    for x in range(n):
        arc = changes.listed[x]
        change = changes.value[arc]
        if arc >= n_labels * n_labels:
            change -= changes.value[graph.up[arc]]
        extra[np.int64(graph.arc_source[arc]) * lanes + lane] += change
    for x in range(n):
        changes.times[changes.listed[x]] = 0.0
        changes.value[changes.listed[x]] = 0.0


@inner_kernel
def take_changes(
    lanes: int, lane: int, t: int, n_labels: int, local: LocalArcs, graph: PatternArrays, factor: Floats, alpha: Floats,
    back: Floats, at: int, changes: Changes, new: Floats, counts: Floats, out: Floats,
) -> None:  # fmt: skip
    """What the patterns of token t alone change after `take_arcs`; out[j] += their posteriors."""
    n = list_changes(t, local, graph, changes)
    for x in range(n):
        arc = changes.listed[x]
        mass, up = alpha[np.int64(graph.arc_source[arc]) * lanes + lane], np.int64(graph.up[arc])
        changes.value[arc] += mass
        # `value` of an arc that is not listed is left alone: what overwrites it may be listed, it is not.
        if arc >= n_labels * n_labels and changes.times[up] != 0.0:
            changes.value[up] -= mass
    for x in range(n):
        arc = changes.listed[x]
        mass, state = max(changes.value[arc], 0.0) * factor[arc], np.int64(graph.arc_state[arc])
        posterior = mass * back[(at + state) * lanes + lane]
        new[state * lanes + lane] += (changes.times[arc] - 1.0) * mass
        counts[arc] += (changes.times[arc] - 1.0) * posterior
        changes.value[arc] = changes.times[arc] * posterior
    for j in range(local.ptr[t], local.ptr[t + 1]):
        for r in range(graph.rank[local.arc[j]], graph.rank_end[local.arc[j]]):
            out[j] += changes.value[graph.by_rank[r]]
    for x in range(n):
        changes.times[changes.listed[x]] = 0.0
        changes.value[changes.listed[x]] = 0.0
