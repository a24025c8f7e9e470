"""The gradient of each sentence on a few features: what the Hessian of a log of a mean needs beside covariances."""

from __future__ import annotations

import numpy as np

from vcrf.kernels._jit import kernel
from vcrf.kernels.corrections import multiply_pairs, restore_pairs
from vcrf.kernels.gradient import Messages, _add_arcs
from vcrf.kernels.hessian import PairFiring
from vcrf.kernels.scores import LocalFactors
from vcrf.types import Floats, Ints, UInts32


@kernel
def sentence_gradients(
    first: int, sent_ptr: Ints, y: UInts32, weights: Floats, n_labels: int, backward: Floats, cor: LocalFactors,
    messages: Messages, residuals: Floats, cor_residuals: Floats, cor_slot: UInts32, firing: PairFiring, out: Floats,
) -> None:  # fmt: skip
    """out[i] = gradient of sentence first + i on the chosen features, times its weight; chains of order 2.

    residuals (n_tokens, L) and cor_residuals (n_slots,) are those of a pass, weights times (posterior - truth); those
    of plain label pairs are summed here from the messages; `backward` as in `FactorTables`.
    """
    table, one = backward.copy(), np.ones(1)
    pairs = np.empty(n_labels * n_labels)
    out[:] = 0.0
    for i in range(len(out)):
        row, weight = out[i], weights[first + i]
        start, stop = sent_ptr[first + i], sent_ptr[first + i + 1]
        pairs[:] = 0.0
        for t in range(start, stop):
            for group in range(firing.rows.shape[1]):
                key = firing.rows[t, group]
                for e in range(firing.row_ptr[key], firing.row_ptr[key + 1] if key > 0 else firing.row_ptr[key]):
                    j = firing.chosen[firing.row_features[e]]
                    if j >= 0:
                        value = firing.row_values[e] if len(firing.row_values) > 0 else 1.0
                        row[j] += value * residuals[t, firing.row_labels[e]]
            if t == start:
                continue
            for e in range(firing.cor_ptr[t], firing.cor_ptr[t + 1]):
                j = firing.chosen[firing.cor_feature[e]]
                if j >= 0:
                    value = firing.cor_values[e] if len(firing.cor_values) > 0 else 1.0
                    row[j] += value * cor_residuals[cor_slot[e]]
            if len(firing.table_code) > 0:
                multiply_pairs(cor.ptr[t], cor.ptr[t + 1], cor.code, cor.factor, table)
                _add_arcs(messages, t, 2, n_labels, 1, one, table, weight, pairs)
                restore_pairs(cor.ptr[t], cor.ptr[t + 1], cor.code, backward, table)
                pairs[y[t - 1] * n_labels + y[t]] -= weight
        for x in range(len(firing.table_code)):
            row[firing.table_index[x]] += pairs[firing.table_code[x]]
