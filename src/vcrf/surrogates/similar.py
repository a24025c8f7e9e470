"""Hessians where the loss is an automaton, or the objective the log of a mean: those of a similar Hamming loss.

    F = log(rest + sum_i v_i exp(f_i)),    s_i = v_i exp(f_i - F)    (shares; their sum is 1 - rest exp(-F))
    H = sum_i s_i (Cov_i + mu_i mu_i') - mu mu',    mu = sum_i s_i mu_i

mu_i and Cov_i are the mean and the covariance of Psi(x_i, y) - Psi(x_i, y_i) under the distribution whose log-partition
is f_i. With the Hamming loss, or none, and exponential it is exact. With other losses, and for structboost, the
distribution is that of a similar crf: a Hamming loss of each sentence with as many wrong labels on average, for
structboost given that some label is wrong. For crf with another loss: the largest loss spread evenly over the labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from vcrf.structures.structure import FeaturePlan, Purpose, Structure, Sums
from vcrf.structures.training_loss import TrainingLoss
from vcrf.types import Floats

# Passes to match the numbers of wrong labels; the costs of wrong labels stay within +- this.
_MATCHES = 5
_LARGEST_COST = 12.0
# Least probability that some label is wrong.
_LEAST = 1e-9


def add_between(out: Floats, gradients: Iterator[tuple[Floats, Floats]]) -> None:
    """Add sum_i s_i mu_i mu_i' - mu mu' to `out`, from shares s_i and gradients s_i mu_i, some at a time."""
    mean = np.zeros(len(out))
    for weights, rows in gradients:
        mean += rows.sum(axis=0)
        used = weights > 0.0
        scaled = rows[used] / np.sqrt(weights[used])[:, None]
        out += scaled.T @ scaled
    out -= np.outer(mean, mean)


class SimilarLoss:
    """Hamming losses that stand for another loss; the last costs that matched are where the next match begins."""

    def __init__(self, loss: TrainingLoss) -> None:
        self.loss = loss
        self._costs = np.zeros(len(loss.costs))

    @cached_property
    def even(self) -> TrainingLoss:
        """The largest loss of each sentence, spread evenly over its labels."""
        return self.loss.spread_evenly()

    def sums(self, structure: Structure, plan: FeaturePlan, w: Floats, weights: Floats, like: Sums) -> tuple[Sums, int]:
        """Sums for a Hessian with as many wrong labels as `like` has, and with its shares; and the passes made."""
        wrong, lengths = like.wrong_labels(), self.loss.lengths
        least = 0.99 if self.loss.picks else 0.0
        potentials = structure.prepare(plan, w, TrainingLoss(self._costs), Purpose.GRADIENT, 2)
        for _ in range(_MATCHES):
            sums = potentials.sums(TrainingLoss(self._costs), weights)
            found = sums.wrong_labels() / self._some_wrong(sums)
            # For independent labels the logarithm of the odds of a wrong label moves by as much as the cost.
            odds, target = (np.clip(x - least, 1e-9, None) / np.maximum(lengths - x, 1e-2) for x in (found, wrong))
            move = np.clip(np.log(target) - np.log(odds), -3.0, 3.0)
            self._costs = np.clip(self._costs + move, -_LARGEST_COST, _LARGEST_COST)
        matched = TrainingLoss(self._costs)
        shares = like.weights / self._some_wrong(potentials.sums(matched, weights))
        return structure.prepare(plan, w, matched, Purpose.HESSIAN).sums(matched, shares), _MATCHES + 2

    def _some_wrong(self, sums: Sums) -> Floats:
        """Probability that not all labels are right, or 1 where the loss is not picked."""
        return np.maximum(-np.expm1(-sums.values), _LEAST) if self.loss.picks else np.ones(len(sums.values))
