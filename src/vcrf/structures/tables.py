"""Scores of the tag patterns in a working set, as the kernels take them: plain ones in tables, others by token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcrf import kernels, scratch
from vcrf.structures.components import add_component_scores
from vcrf.structures.plan import ChainPlan
from vcrf.types import Floats
from vcrf.workers import Workers

if TYPE_CHECKING:
    from vcrf.kernels.scores import FactorTables, LocalFactors


def key_scores(plan: ChainPlan, w: Floats, scores: Floats, workers: Workers) -> Floats:
    """Write the scores of single labels by key to an array (n_rows, n_labels) of any content, and return it."""
    workers.run(
        lambda a, b: kernels.potentials.key_scores(
            plan.row_ptr, plan.row_labels, plan.row_features, plan.row_values, w, a, b, scores
        ),
        plan.row_bounds,
    )
    if plan.components is not None:
        add_component_scores(plan.components, w, scores, workers)
    return scores


def build_tables(plan: ChainPlan, w: Floats, n_labels: int, order: int) -> kernels.scores.FactorTables:
    """Summed scores of plain tag patterns for each depth, and their exponentials shifted to maximum 1."""
    sizes = np.array([n_labels**d for d in range(1, order + 1)], np.int64)
    offsets = np.concatenate([np.zeros(2, np.int64), np.cumsum(sizes)])
    log = np.zeros(int(offsets[-1]))
    log[offsets[plan.table_sizes] + plan.table_codes] = w[plan.table_features]
    if plan.value_pairs is not None and order > 1:
        log[offsets[2] : offsets[3]] += plan.value_pairs.label_scores(w).reshape(-1)
    shift, span = np.zeros(order + 1), 0.0
    exp = np.empty_like(log)
    for depth in range(1, order + 1):
        here = log[offsets[depth] : offsets[depth + 1]]
        if depth > 1:
            # Patterns that fit at depth - 1 fit here too: the same score whatever the oldest label.
            here += np.tile(log[offsets[depth - 1] : offsets[depth]], n_labels)
        shift[depth] = here.max()
        span = max(span, shift[depth] - here.min())
        exp[offsets[depth] : offsets[depth + 1]] = np.exp(np.maximum(here - shift[depth], -700.0))
    full = exp[offsets[order] :].reshape(n_labels if order > 1 else 1, -1, n_labels)
    forward, backward = full.transpose(1, 2, 0).ravel(), full.transpose(1, 0, 2).ravel()
    return kernels.scores.FactorTables(order, offsets, log, exp, forward, backward, shift, float(span))


def fold(counts: Floats, n_labels: int, tables: FactorTables) -> Floats:
    """Counts of patterns of each length from counts of arcs at each depth."""
    folded, offsets = counts.copy(), tables.offsets
    for depth in range(tables.order, 1, -1):
        here = folded[offsets[depth] : offsets[depth + 1]].reshape(n_labels, -1)
        folded[offsets[depth - 1] : offsets[depth]] += here.sum(axis=0)
    return folded


def slot_corrections(plan: ChainPlan, w: Floats, workers: Workers) -> LocalFactors:
    """What the features of longer patterns with lexical columns add at each token."""
    score, factor = scratch.empty(len(plan.slot_code)), scratch.empty(len(plan.slot_code))
    workers.run(
        lambda a, b: kernels.potentials.slot_scores(
            plan.cor_ptr, plan.cor_feature, plan.cor_values, plan.cor_slot, w, plan.slot_ptr, a, b, score,
            factor,
        ),
        plan.token_bounds if len(score) else [],
    )  # fmt: skip
    return kernels.scores.LocalFactors(plan.slot_ptr, plan.slot_size, plan.slot_code, plan.slot_flip, score, factor)
