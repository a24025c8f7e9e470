"""The Hessian of the crf surrogate on a pattern automaton, patterns of any length; see `kernels.pattern_hessian`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf.surrogates.active import ActiveSet, zero_hessian
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.kernels.pattern_hessian import ArcFiring, Least
    from vcrf.surrogates.patterns import ArcPlan, PatternSurrogate

# See `kernels.pattern_hessian.Least`. Products with a direction are then right to a percent or so, where gradients that
# count are those of a whole token.
LEAST = 1e-3, 3e-3
# Where smaller ones count, a draw is to be this share of them, and not finer than the second.
_SHARE, _FINEST = 2e-3, 1e-6


def pattern_hessian(surrogate: PatternSurrogate, active: ActiveSet, plan: ArcPlan, chosen: Ints, stride: int) -> Floats:
    """Hessian at the weights of the last pass on the chosen features, from one of `stride` sentences."""
    from vcrf.kernels import hessian, pattern_hessian
    from vcrf.kernels.blocks import PassOutput

    problem, workers = surrogate.problem, surrogate.workers
    n_sentences, n_labels = problem.text.n_sentences, problem.n_labels
    firing = _firing(active, plan, chosen)
    max_current = int(np.diff(active.row_ptr)[active.rows].sum(axis=1).max(initial=0)) + 1
    max_fired = int(np.diff(active.cor_ptr).max(initial=0)) + plan.automaton.order
    out = zero_hessian(chosen)
    sentences, n_parts, least = surrogate._sentences(), workers.threads, _least(surrogate, active)
    results = [
        PassOutput(np.zeros(n_sentences), np.zeros(0), np.zeros(0), np.zeros(n_sentences, np.uint32))
        for _ in range(n_parts)
    ]
    workers.run(
        lambda part, _: pattern_hessian.covariance_half(
            sentences, n_labels, active.rows, surrogate._scores, plan.graph, surrogate._arcs, surrogate._corrections,
            surrogate._local, firing, max_current, max_fired, part, n_parts, stride,
            least, results[part], out,
        ),
        list(range(n_parts + 1)),
    )  # fmt: skip
    factor = surrogate._arcs.factor
    for i in np.flatnonzero(results[0].hard):
        given = surrogate._hard_lattice(active, plan, int(i), False)._conditionals.reshape(-1)
        work = pattern_hessian.scratch(n_labels, plan.automaton.n_states, len(chosen), max_current, max_fired)
        pattern_hessian.sentence_covariances(
            int(problem.sent_ptr[i]), int(problem.sent_ptr[i + 1]), n_labels, plan.graph, factor, factor.copy(),
            surrogate._local, np.zeros(0), given, stride * float(problem.weights[i]),
            firing, least, work, 0, 1, out,
        )  # fmt: skip
    hessian.symmetrise(out)
    return out


def _least(surrogate: PatternSurrogate, active: ActiveSet) -> Least:
    """What is small for the gradients that count: a draw at a token changes one by its posterior times the value."""
    from vcrf.kernels.pattern_hessian import Least

    posterior, memory = LEAST
    values = [np.abs(values).max(initial=1.0) for values in (active.row_values, active.cor_values)]
    unit = float(surrogate.weights.max(initial=0.0)) * max(map(float, values))
    if unit > 0.0 and surrogate.hessian_scale < np.inf:
        posterior = min(posterior, max(_SHARE * surrogate.hessian_scale / unit, _FINEST))
    return Least(posterior, memory)


def _firing(active: ActiveSet, plan: ArcPlan, chosen: Ints) -> ArcFiring:
    from vcrf.kernels.pattern_hessian import ArcFiring

    row = np.full(len(active), -1, np.int64)
    row[chosen] = np.arange(len(chosen))
    arc_row = np.full(plan.automaton.n_arcs, -1, np.int64)
    arc_row[plan.table_arcs] = row[active.table_features]
    return ArcFiring(
        active.rows, active.row_ptr, active.row_labels, active.row_features, active.row_values, active.cor_ptr,
        active.cor_feature, active.cor_values, plan.cor_arcs[active.cor_slot], arc_row, plan.automaton.up, row,
    )  # fmt: skip
