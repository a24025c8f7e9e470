"""Covariances of features on a pattern automaton, patterns of any length; see `kernels.pattern_hessian`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.structures.plan import ArcPlan, ChainPlan, zero_hessian
from vcrf.structures.sums import ChainSums
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.structures.arcs import ArcPotentials

# See `kernels.pattern_hessian.Least`. Products with a direction are then right to a percent or so, where gradients that
# count are those of a whole token.
LEAST = 1e-3, 3e-3
# Where smaller ones count, a draw is to be this share of them, and not finer than the second.
_SHARE, _FINEST = 2e-3, 1e-6


def arc_hessian(potentials: ArcPotentials, sums: ChainSums, chosen: Ints, stride: int, scale: float) -> Floats:
    """Weighted sum of the covariances of the chosen features, from one of `stride` sentences.

    `scale` is the size of the gradients that count: what is small beside them is left out.
    """
    chain, plan, by_arcs = potentials.chain, potentials.plan, potentials.by_arcs
    problem, workers = chain.problem, chain.workers
    n_sentences, n_labels = problem.text.n_sentences, problem.n_labels
    firing = _firing(plan, by_arcs, chosen)
    max_current = int(np.diff(plan.row_ptr)[plan.rows].sum(axis=1).max(initial=0)) + 1
    max_fired = int(np.diff(plan.cor_ptr).max(initial=0)) + by_arcs.automaton.order
    out, sentences = zero_hessian(chosen), potentials.sentences(sums.loss, sums.weights)
    n_parts, least = workers.threads, _least(plan, sums.weights, scale)
    results = [
        kernels.blocks.PassOutput(np.zeros(n_sentences), np.zeros(0), np.zeros(0), np.zeros(n_sentences, np.uint32))
        for _ in range(n_parts)
    ]
    workers.run(
        lambda part, _: kernels.pattern_hessian.covariance_half(
            sentences, n_labels, plan.rows, potentials.scores, by_arcs.graph, potentials.arcs, potentials.corrections,
            potentials.local, firing, max_current, max_fired, part, n_parts, stride, least, results[part], out,
        ),
        list(range(n_parts + 1)),
    )  # fmt: skip
    factor = potentials.arcs.factor
    for i in np.flatnonzero(results[0].hard).tolist():
        start, stop = int(problem.sent_ptr[i]), int(problem.sent_ptr[i + 1])
        given = potentials.hard_lattice(sentences, i, False, stop - start)._conditionals.reshape(-1)
        work = kernels.pattern_hessian.scratch(
            n_labels, by_arcs.automaton.n_states, len(chosen), max_current, max_fired
        )
        kernels.pattern_hessian.sentence_covariances(
            start, stop, n_labels, by_arcs.graph, factor, factor.copy(), potentials.local, np.zeros(0), given,
            stride * float(sums.weights[i]), firing, least, work, 0, 1, out,
        )  # fmt: skip
    kernels.hessian.symmetrise(out)
    return out


def _least(plan: ChainPlan, weights: Floats, scale: float) -> kernels.pattern_hessian.Least:
    """What is small for the gradients that count: a draw at a token changes one by its posterior times the value."""
    posterior, memory = LEAST
    values = [np.abs(values).max(initial=1.0) for values in (plan.row_values, plan.cor_values)]
    unit = float(weights.max(initial=0.0)) * max(map(float, values))
    if unit > 0.0 and scale < np.inf:
        posterior = min(posterior, max(_SHARE * scale / unit, _FINEST))
    return kernels.pattern_hessian.Least(posterior, memory)


def _firing(plan: ChainPlan, by_arcs: ArcPlan, chosen: Ints) -> kernels.pattern_hessian.ArcFiring:
    row = np.full(len(plan), -1, np.int64)
    row[chosen] = np.arange(len(chosen))
    arc_row = np.full(by_arcs.automaton.n_arcs, -1, np.int64)
    arc_row[by_arcs.table_arcs] = row[plan.table_features]
    return kernels.pattern_hessian.ArcFiring(
        plan.rows, plan.row_ptr, plan.row_labels, plan.row_features, plan.row_values, plan.cor_ptr,
        plan.cor_feature, plan.cor_values, by_arcs.cor_arcs[plan.cor_slot], arc_row, by_arcs.automaton.up, row,
    )  # fmt: skip
