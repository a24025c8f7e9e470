"""Hypothesis strategies for the objects of vcrf."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from vcrf.decoding.arcs import PatternPotentials, tag_patterns
from vcrf.decoding.potentials import Potentials
from vcrf.kernels.scores import LocalScores
from vcrf.lattice import DenseLattice

# Multiples of 1/8: sums of a few are exact in floating point, so ties are ties in any order of summation.
_EIGHTHS = 8


def weights(bound: float) -> st.SearchStrategy[float]:
    """Multiples of 1/8 within the bound."""
    limit = int(bound * _EIGHTHS)
    return st.integers(-limit, limit).map(lambda n: n / _EIGHTHS)


# Few different values per lattice: ties are common, and so are forbidden arcs and dominant ones.
palettes = st.lists(st.one_of(weights(4), weights(4), weights(1e5), st.just(-np.inf)), min_size=1, max_size=6)


@st.composite
def lattices(
    draw: st.DrawFn,
    max_labels: int = 4,
    max_positions: int = 6,
    orders: tuple[int, int] = (1, 4),
    feasible: bool = True,
) -> DenseLattice:
    """Lattices small enough to enumerate, with one label, one position, ties, -inf arcs and weights of 1e5.

    With `feasible` at least one sequence is allowed. Rows of histories that do not exist hold NaN, which
    any computation that reads them returns.
    """
    n_labels = draw(st.integers(1, max_labels))
    n_positions = draw(st.integers(1, max_positions))
    order = draw(st.integers(*orders))
    n_states = n_labels ** (order - 1)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arcs = rng.choice(np.array(draw(palettes)), size=(n_positions, n_states, n_labels))
    history = 0
    for t in range(n_positions):
        label = int(rng.integers(n_labels))
        if feasible and arcs[t, history, label] == -np.inf:
            arcs[t, history, label] = 0.0
        history = (history * n_labels + label) % n_states
        arcs[t, n_labels ** min(t, order - 1) :] = np.nan
    return DenseLattice(arcs, n_labels, order)


@st.composite
def potentials(draw: st.DrawFn) -> Potentials:
    """Random scores with ties, some of them large; tables of some lengths, local patterns of length 2 to the order."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    order, n_labels = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    palette = np.array(draw(st.lists(st.one_of(weights(2), weights(2), weights(1e4)), min_size=1, max_size=5)))
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n_tokens = int(ptr[-1])
    tables = {k: rng.choice(palette, n_labels**k) for k in range(2, order + 1) if draw(st.booleans())}
    counts = rng.integers(0, 4, n_tokens) if order > 1 else np.zeros(n_tokens, np.int64)
    n = int(counts.sum())
    size = rng.integers(2, order + 1, n) if order > 1 else np.zeros(0, np.int64)
    code = rng.integers(n_labels**size) if n else np.zeros(0, np.int64)
    local = LocalScores(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        size.astype(np.uint32),
        code.astype(np.uint32),
        rng.choice(palette, n),
    )
    return Potentials(ptr, rng.choice(palette, (n_tokens, n_labels)), tables, local, order)


def on_automaton(dense: Potentials) -> PatternPotentials:
    """The same potentials on the automaton of the patterns that score."""
    sizes, codes, weights = [], [], []
    for k, table in dense.tables.items():
        scored = np.flatnonzero(table)
        sizes.append(np.full(len(scored), k))
        codes.append(scored)
        weights.append(table[scored])
    n_plain = sum(map(len, sizes))
    patterns = tag_patterns(
        dense.n_labels,
        np.concatenate([np.zeros(0, int), *sizes, dense.local.size]).astype(np.uint32),
        np.concatenate([np.zeros(0, int), *codes, dense.local.code]).astype(np.uint32),
        np.concatenate([np.zeros(0), *weights, dense.local.score]),
        np.arange(n_plain + len(dense.local.size)) < n_plain,
    )
    tables = {k: table for k, table in dense.tables.items() if k == 2}
    return PatternPotentials(dense.sent_ptr, dense.node, tables, dense.local, max(dense.order, 2), None, patterns)
