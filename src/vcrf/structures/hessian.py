"""Covariances of features on the dense lattice, patterns of 2 labels at the most; gradients of single sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels
from vcrf.structures.plan import firing_of, zero_hessian
from vcrf.structures.sums import ChainSums
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.kernels.gradient import Messages
    from vcrf.kernels.hessian import PairFiring
    from vcrf.structures.arcs import ArcPotentials
    from vcrf.structures.dense import DensePotentials

# Sentences whose gradients are found at a time.
_BLOCK = 256


def dense_hessian(potentials: DensePotentials, sums: ChainSums, chosen: Ints, stride: int) -> Floats:
    """Weighted sum of the covariances of the chosen features (indices into the plan); see `Chain.hessian`."""
    chain, plan = potentials.chain, potentials.plan
    problem, token_weights = chain.problem, sums.token_weights
    prob = sums.residuals.copy()
    prob[np.arange(problem.n_tokens), problem.y] += token_weights
    # A sentence of weight 0 has no residuals; its marginals do not matter.
    prob /= np.where(token_weights > 0.0, token_weights, 1.0)[:, None]
    firing = firing_of(plan, chosen)
    per_token = np.diff(plan.row_ptr)[plan.rows].sum(axis=1) + np.diff(plan.cor_ptr)
    most = int(per_token.max(initial=0)) + len(firing.table_code)
    out = zero_hessian(chosen)
    n_parts, tables = chain.workers.threads, potentials.tables
    chain.workers.run(
        lambda part, _: kernels.hessian.covariance_half(
            problem.sent_ptr, sums.weights, prob, sums.messages[0], sums.messages[1], tables.exp[tables.offsets[2] :],
            potentials.corrections, firing, most, len(chosen) + 1, part, n_parts, stride, out,
        ),
        list(range(n_parts + 1)),
    )  # fmt: skip
    kernels.hessian.symmetrise(out)
    return out


def dense_gradients(potentials: DensePotentials, sums: ChainSums, chosen: Ints) -> Iterator[tuple[Floats, Floats]]:
    """Weights of the sentences and their weighted gradients on the chosen features, some sentences at a time."""
    messages = kernels.gradient.Messages(*sums.messages)
    return _gradients(sums, firing_of(sums.plan, chosen), potentials.tables.backward, messages, len(chosen))


def arc_gradients(potentials: ArcPotentials, sums: ChainSums, chosen: Ints) -> Iterator[tuple[Floats, Floats]]:
    """The same on the automaton: plain patterns of any length are counted sentence by sentence."""
    by_arcs, firing = potentials.by_arcs, firing_of(sums.plan, chosen)
    arc = np.full(len(sums.plan), -1, np.int64)
    arc[sums.plan.table_features] = by_arcs.table_arcs
    plain = np.flatnonzero(arc[chosen] >= 0)
    none = np.zeros(0, np.int64)
    nothing = kernels.gradient.Messages(np.zeros((0, 0)), np.zeros((0, 0)), none, np.zeros((0, 0)))
    firing = firing._replace(table_code=none, table_index=none)
    counts = potentials.counts_by_sentence(sums)
    for weights, rows in _gradients(sums, firing, np.zeros(0), nothing, len(chosen)):
        for row in rows:
            row[plain] = next(counts)[arc[chosen[plain]]]
        yield weights, rows


def _gradients(
    sums: ChainSums, firing: PairFiring, backward: Floats, messages: Messages, n: int
) -> Iterator[tuple[Floats, Floats]]:
    problem, plan = sums.potentials.chain.problem, sums.plan
    for first in range(0, problem.text.n_sentences, _BLOCK):
        weights = sums.weights[first : first + _BLOCK]
        rows = np.empty((len(weights), n))
        kernels.sentence_gradients.sentence_gradients(
            first, problem.sent_ptr, problem.y, sums.weights, problem.n_labels, backward, sums.potentials.corrections,
            messages, sums.residuals, sums.slot_residuals, plan.cor_slot, firing, rows,
        )  # fmt: skip
        yield weights, rows
