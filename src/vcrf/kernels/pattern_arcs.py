"""Values and masses of all arcs of a token, lane by lane: what the scan of `kernels.pattern_levels` reads.

Passes do without them, see `kernels.pattern_lanes`, but where differences lose digits. Element x of lane l of w is at
x * w + l here too.
"""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import inner_fast_kernel, inner_kernel
from vcrf.kernels.pattern_lanes import hand_down
from vcrf.kernels.scores import LocalArcs
from vcrf.types import Floats, Ints, UInts32


@inner_fast_kernel
def arc_values(lanes: int, arc_state: UInts32, factor: Floats, back: Floats, at: int, values: Floats) -> None:
    """values[arc] = factor[arc] * back[at + target]."""
    w, here = np.uint64(lanes), np.uint64(at)
    for arc in range(np.uint64(len(factor))):
        z, to, source = factor[arc], arc * w, (here + np.uint64(arc_state[arc])) * w
        for lane in range(w):
            values[to + lane] = z * back[source + lane]


@inner_kernel
def scale_values(
    lanes: int, lane: int, t: int, local: LocalArcs, rank: Ints, rank_end: Ints, by_rank: UInts32, values: Floats
) -> None:
    """Multiply the patterns of token t alone into the values of the arcs that end with them."""
    for j in range(local.ptr[t], local.ptr[t + 1]):
        z, arc = local.factor[j], local.arc[j]
        for r in range(rank[arc], rank_end[arc]):
            values[by_rank[r] * lanes + lane] *= z


@inner_fast_kernel
def mass_of_arcs(
    lanes: int, n_labels: int, fail: Ints, arc_ptr: Ints, up: UInts32, alpha: Floats, taken: Floats
) -> None:
    """Mass that takes each arc: all that ends in its context less what takes arcs that overwrite it.

    `alpha` is overwritten.
    """
    hand_down(lanes, n_labels, fail, alpha)
    w, n, one = np.uint64(lanes), np.uint64(n_labels), np.uint64(1)
    for a in range(n):
        source = a * w
        for b in range(n):
            to = (a * n + b) * w
            for lane in range(w):
                taken[to + lane] = alpha[source + lane]
    for p in range(n, np.uint64(len(fail))):
        source = p * w
        for arc in range(np.uint64(arc_ptr[p]), np.uint64(arc_ptr[p + one])):
            to, old = arc * w, np.uint64(up[arc]) * w
            for lane in range(w):
                taken[to + lane] = alpha[source + lane]
            for lane in range(w):
                taken[old + lane] -= alpha[source + lane]


@inner_kernel
def mass_in_full(lanes: int, n_labels: int, table: UInts32, alpha: Floats, taken: Floats) -> None:
    """What `mass_of_arcs` finds, as sums of positive numbers."""
    taken[:] = 0.0
    for p in range(len(table)):
        for b in range(n_labels):
            to, source = np.int64(table[p, b]) * lanes, p * lanes
            for lane in range(lanes):
                taken[to + lane] += alpha[source + lane]


@inner_fast_kernel
def take_posteriors(
    lanes: int, arc_state: UInts32, factor: Floats, taken: Floats, back: Floats, at: int, new: Floats
) -> None:
    """new[target] += taken * factor; the posterior of taking each arc in the place of the mass `taken`."""
    w, here = np.uint64(lanes), np.uint64(at)
    for arc in range(np.uint64(len(factor))):
        z, x, to = factor[arc], arc * w, np.uint64(arc_state[arc]) * w
        source = here * w + to
        for lane in range(w):
            mass = max(taken[x + lane], 0.0) * z
            new[to + lane] += mass
            taken[x + lane] = mass * back[source + lane]
