"""The Hessian of the log of a mean of exponentials, for Newton steps with structboost and exponential.

    F = log(rest + sum_i v_i exp(f_i)),    s_i = v_i exp(f_i - F)    (shares; their sum is 1 - rest exp(-F))
    H = sum_i s_i (Cov_i + mu_i mu_i') - mu mu',    mu = sum_i s_i mu_i

mu_i and Cov_i are the mean and the covariance of Psi(x_i, y) - Psi(x_i, y_i) under the distribution whose log-partition
is f_i. With the Hamming loss, or none, and exponential it is exact. With other losses, and for structboost, the
distribution is that of a similar crf: a Hamming loss of each sentence with as many wrong labels on average, for
structboost given that some label is wrong. Steps are then quasi-Newton: they are searched along, and certified, with
the surrogate itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vcrf.surrogates.active import ActiveSet, firing_of
from vcrf.surrogates.crf import CrfSurrogate
from vcrf.types import Floats, Ints

# Sentences whose gradients are multiplied at a time.
_BLOCK = 256
# Passes to match the numbers of wrong labels; the costs of wrong labels stay within +- this.
_MATCHES = 5
_LARGEST_COST = 12.0
# Least probability that some label is wrong.
_LEAST = 1e-9


def add_between(surrogate: CrfSurrogate, active: ActiveSet, chosen: Ints, out: Floats) -> None:
    """Add sum_i s_i mu_i mu_i' - mu mu' to `out`, of the last pass, with the surrogate's weights as shares."""
    from vcrf.kernels import gradient
    from vcrf.kernels.sentence_gradients import sentence_gradients

    problem, firing = surrogate.problem, firing_of(active, chosen)
    messages = gradient.Messages(*surrogate._messages)
    n_sentences = problem.text.n_sentences
    mean = np.zeros(len(chosen))
    for first in range(0, n_sentences, _BLOCK):
        weights = surrogate.weights[first : first + _BLOCK]
        rows = np.empty((len(weights), len(chosen)))
        sentence_gradients(
            first, problem.sent_ptr, problem.y, surrogate.weights, problem.n_labels, surrogate._tables,
            surrogate._corrections, messages, surrogate._residuals, surrogate._cor_residuals, active.cor_slot, firing,
            rows,
        )  # fmt: skip
        mean += rows.sum(axis=0)
        used = weights > 0.0
        scaled = rows[used] / np.sqrt(weights[used])[:, None]
        out += scaled.T @ scaled
    out -= np.outer(mean, mean)


def wrong_labels(surrogate: CrfSurrogate) -> Floats:
    """Mean number of wrong labels of each sentence under the distributions of the last pass."""
    problem = surrogate.problem
    at_truth = surrogate._residuals[np.arange(problem.n_tokens), problem.y]
    numbers = np.repeat(np.arange(problem.text.n_sentences), np.diff(problem.sent_ptr))
    total = np.bincount(numbers, -at_truth, problem.text.n_sentences)
    return np.asarray(total / np.where(surrogate.weights > 0.0, surrogate.weights, 1.0))


class SimilarCrf:
    """The Hessian by a crf with a Hamming loss of each sentence that has `wrong` labels wrong on average.

    `is_given_wrong`: of its distribution given that the labels are not all right.
    """

    def __init__(self, like: CrfSurrogate, is_given_wrong: bool) -> None:
        costs = np.zeros(like.problem.text.n_sentences)
        self.crf = CrfSurrogate(like.problem, like.keep, costs, 1)
        self.crf.workers.close()
        self.crf.workers = like.workers
        self.is_given_wrong = is_given_wrong

    def hessian(self, active: ActiveSet, w: Floats, chosen: Ints, stride: int, shares: Floats, wrong: Floats) -> Floats:
        """The Hessian for the shares of the sentences."""
        crf = self.crf
        crf.weights = crf.problem.weights
        lengths = np.diff(crf.problem.sent_ptr)
        least = 0.99 if self.is_given_wrong else 0.0
        for _ in range(_MATCHES):
            crf._pass(active, w, 2)
            found = wrong_labels(crf) / self._some_wrong()
            # For independent labels the logarithm of the odds of a wrong label moves by as much as the cost.
            odds, target = (np.clip(x - least, 1e-9, None) / np.maximum(lengths - x, 1e-2) for x in (found, wrong))
            move = np.clip(np.log(target) - np.log(odds), -3.0, 3.0)
            crf.costs = np.clip(crf.costs + move, -_LARGEST_COST, _LARGEST_COST)
        crf._pass(active, w, 2)
        crf.weights = shares / self._some_wrong()
        out = crf.hessian(active, w, chosen, stride)
        add_between(crf, active, chosen, out)
        return out

    def _some_wrong(self) -> Floats:
        """Probability that not all labels are right at the last pass, or 1."""
        values: Any = self.crf._values
        return np.maximum(-np.expm1(-values), _LEAST) if self.is_given_wrong else np.ones(len(values))
