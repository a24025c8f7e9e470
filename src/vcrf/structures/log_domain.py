"""ChainSums with a loss automaton in the log domain, one sentence at a time: nothing overflows, at a price."""

from __future__ import annotations

import math

import numpy as np

from vcrf.lattice import DenseLattice, PatternLattice
from vcrf.losses.automaton import LossAutomaton
from vcrf.types import Floats


def arc_posteriors(
    lattice: DenseLattice, automaton: LossAutomaton, final: Floats | None = None
) -> tuple[float, Floats, float]:
    """Log of the sum over y of exp(loss + score), posterior of the arcs, mean loss."""
    from vcrf.kernels import product_log as kernels

    arcs, n_labels, ptr = lattice._flat(), lattice.n_labels, automaton.state_ptr
    final = automaton.final if final is None else final
    if not len(arcs):
        return automaton.init + float(final[0]), np.zeros_like(lattice.arcs), automaton.init + float(final[0])
    bwd = kernels.backward(arcs, n_labels, ptr, automaton.next, automaton.cost, final)
    log_z = automaton.init + float(bwd[0, 0])
    posterior = np.zeros_like(arcs)
    if log_z == -math.inf:
        return log_z, posterior.reshape(lattice.arcs.shape), math.nan
    at_end = np.zeros(len(final))
    mean = kernels.posteriors(arcs, n_labels, ptr, automaton.next, automaton.cost, bwd, posterior, at_end)
    mean += automaton.init + float(np.sum(at_end * np.where(at_end > 0.0, final, 0.0)))
    return log_z, posterior.reshape(lattice.arcs.shape), mean


def push(lattice: PatternLattice, automaton: LossAutomaton, final: Floats) -> tuple[float, Floats]:
    """Log of the sum on an automaton of patterns, and P(label | context, state of the loss), flat."""
    from vcrf.kernels import state_rows_log

    return state_rows_log.push(
        lattice.node, lattice.arcs, lattice.automaton.size, *lattice._moves, automaton.state_ptr, automaton.next,
        automaton.cost, final, float(automaton.init),
    )  # fmt: skip


def posteriors(lattice: PatternLattice, automaton: LossAutomaton, final: Floats, cond: Floats) -> tuple[Floats, float]:
    """Posteriors of a context and a label at each token, and the mean loss, from what `push` gives."""
    from vcrf.kernels import state_rows_log

    return state_rows_log.posteriors(
        cond, lattice.n_labels, lattice.automaton.n_states, *lattice._moves, automaton.state_ptr, automaton.next,
        automaton.cost, final, float(automaton.init),
    )  # fmt: skip
