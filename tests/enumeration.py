"""Value, gradient, Hessian, dual value and optimum of a small training problem by enumeration.

Written from the definition: the score of a label sequence is the sum, over features (column, pattern) and the
positions t where the column occurs, of weight * value if the pattern ends at t. Of vcrf only the columns and the
numbering of features are used (see tests/test_problem.py and tests/families for these).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

import oracles
from vcrf.problem import Problem


class Feature(NamedTuple):
    """A column and a pattern of k labels with its base-L number."""

    column: int
    k: int
    code: int


@lru_cache(maxsize=4096)
def codes_at(n_positions, n_labels, t, k):
    """Return the code of the k labels that end at index t in each sequence; None before there are k."""
    if t < k - 1:
        return None
    return oracles.pattern_codes(oracles.all_sequences(n_positions, n_labels), t - k + 1, t + 1, n_labels)


def column_of(problem, c):
    """Return {position: value} of a column."""
    part = slice(problem.columns.ptr[c], problem.columns.ptr[c + 1])
    positions = problem.columns.positions[part].tolist()
    values = problem.columns.values[part].tolist() if len(problem.columns.values) else [1.0] * len(positions)
    return dict(zip(positions, values, strict=True))


def sources_of(problem, c):
    """Return the sources that the column has a member in."""
    return [problem.sources[s] for s in problem.columns.class_sources[problem.columns.classes[c]]]


def families_of(problem, c, k):
    """Return the numbers of the families of the column's members that have patterns of length k."""
    members = sources_of(problem, c)
    return [
        i
        for i, family in enumerate(problem.families)
        for source in family.sources
        if family.tags == k and source in members
    ]


def number_of(problem, feature):
    """Return the number of a feature: column * stride + patterns of shorter lengths + code."""
    sizes = [problem.n_labels**k for k in range(1, problem.order + 1)]
    return feature.column * sum(sizes) + sum(sizes[: feature.k - 1]) + feature.code


def feature_of(problem, number):
    """Return the feature with a number."""
    sizes = [problem.n_labels**k for k in range(1, problem.order + 1)]
    column, code = divmod(int(number), sum(sizes))
    k = 1
    while code >= sizes[k - 1]:
        code -= sizes[k - 1]
        k += 1
    return Feature(column, k, code)


def true_code(problem, position, k):
    """Return the code of the k true labels that end at a position; None if the sentence has fewer there."""
    start = max(int(p) for p in problem.sent_ptr if p <= position)
    if position - start < k - 1:
        return None
    code = 0
    for label in problem.y[position - k + 1 : position + 1].tolist():
        code = code * problem.n_labels + label
    return code


def all_candidates(problem):
    """Return every candidate feature, in order of number; restricted to observed pairs where asked for."""
    found = []
    for c in range(len(problem.columns)):
        for k in range(1, problem.order + 1):
            if not families_of(problem, c, k):
                continue
            seen = {true_code(problem, t, k) for t in column_of(problem, c)}
            if k == 1:  # value 0 counts as seen
                seen |= {true_code(problem, int(t), 1) for at, t in zip(*problem.columns.zeros, strict=True) if at == c}
            restricted = problem.candidates[0 if k == 1 else 1] == "observed"
            found += [Feature(c, k, z) for z in range(problem.n_labels**k) if not restricted or z in seen]
    return found


class Enumeration:
    """The CRF objective of a problem on some features: one row of counts for every label sequence.

    Parameters
    ----------
    problem : Problem
    features : list of Feature
    costs : loss of one wrong label in each sentence, none by default
    """

    def __init__(self, problem: Problem, features, costs=None):
        self.problem, self.features = problem, list(features)
        n = len(problem.sent_ptr) - 1
        self.costs = np.zeros(n) if costs is None else np.asarray(costs)
        self.weights = problem.weights
        # Sentences of zero length have one label sequence, the empty one: value, gradient and entropy are 0.
        self.lengths = np.diff(problem.sent_ptr).tolist()
        self.truths = [
            tuple(problem.y[a:z].tolist()) for a, z in zip(problem.sent_ptr, problem.sent_ptr[1:], strict=False)
        ]
        self.columns = [column_of(problem, c) for c in range(len(problem.columns))]
        self.gold = [int(np.ravel_multi_index(y, [problem.n_labels] * len(y))) if y else 0 for y in self.truths]
        self.counts = [self._counts(i) for i in range(n)]
        self.losses = [self._losses(i) for i in range(n)]

    def _counts(self, i):
        n, n_labels = self.lengths[i], self.problem.n_labels
        first = int(self.problem.sent_ptr[i])
        counts = np.zeros((n_labels**n, len(self.features)))
        for j, (column, k, code) in enumerate(self.features):
            for position, value in self.columns[column].items():
                if first + k - 1 <= position < first + n:
                    counts[:, j] += value * (codes_at(n, n_labels, position - first, k) == code)
        return counts

    def _losses(self, i):
        sequences = oracles.all_sequences(self.lengths[i], self.problem.n_labels)
        return self.costs[i] * (sequences != np.array(self.truths[i], np.int64)).sum(axis=1)

    def scores(self, i, w):
        """Return loss + w . (counts - true counts) of every label sequence of a sentence."""
        score = self.counts[i] @ w
        return self.losses[i] + score - score[self.gold[i]]

    def probabilities(self, i, w):
        """Return the distribution of the label sequences of a sentence."""
        return oracles.probabilities(self.scores(i, w))

    def value(self, w):
        """Return the weighted sum of log sum_y exp(loss + w . delta)."""
        return sum(p * oracles.log_partition(self.scores(i, w)) for i, p in enumerate(self.weights))

    def gradient(self, w):
        """Return the weighted sum of E[counts] - true counts."""
        out = np.zeros(len(self.features))
        for i, p in enumerate(self.weights):
            out += p * (self.probabilities(i, w) @ self.counts[i] - self.counts[i][self.gold[i]])
        return out

    def hessian(self, w):
        """Return the weighted sum of the covariances of the counts."""
        out = np.zeros((len(self.features), len(self.features)))
        for i, p in enumerate(self.weights):
            probs = self.probabilities(i, w)
            centred = self.counts[i] - probs @ self.counts[i]
            out += p * (centred.T * probs) @ centred
        return out

    def dual_value(self, w):
        """Return the weighted sum of E[loss] + entropy."""
        return sum(p * oracles.dual_value(self.probabilities(i, w), self.losses[i]) for i, p in enumerate(self.weights))

    def gradients(self, w, candidates):
        """Return the gradient of other features than the enumerated ones, through marginals of patterns."""
        n_labels = self.problem.n_labels
        residuals = {}
        for i, p in enumerate(self.weights):
            first, scores = int(self.problem.sent_ptr[i]), self.scores(i, w)
            for k in {feature.k for feature in candidates}:
                marginals = oracles.pattern_marginals(scores, self.lengths[i], n_labels, k)
                for t in range(k - 1, self.lengths[i]):
                    residuals[first + t, k] = p * marginals[t]
                    residuals[first + t, k][true_code(self.problem, first + t, k)] -= p
        nothing = np.zeros(n_labels**self.problem.order)
        return np.array(
            [
                sum(value * residuals.get((t, k), nothing)[code] for t, value in self.columns[column].items())
                for column, k, code in candidates
            ]
        )

    def minimum(self, l1, l2):
        """Return the least value + l1 . |w| + l2 . w^2 / 2 and its w: L-BFGS-B on w = p - q with p, q >= 0."""
        n = len(self.features)
        sizes = [len(counts) for counts in self.counts]
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        of = np.repeat(np.arange(len(sizes)), sizes)
        deltas = np.concatenate([c - c[gold] for c, gold in zip(self.counts, self.gold, strict=True)])
        losses = np.concatenate(self.losses)

        def objective(z):
            w = z[:n] - z[n:]
            scores = deltas @ w + losses
            peaks = np.maximum.reduceat(scores, first)
            mass = np.exp(scores - peaks[of])
            totals = np.add.reduceat(mass, first)
            g = (self.weights[of] * mass / totals[of]) @ deltas + l2 * w
            value = self.weights @ (peaks + np.log(totals)) + l1 @ (z[:n] + z[n:]) + 0.5 * l2 @ w**2
            return value, np.concatenate([g + l1, l1 - g])

        options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 2_000, "maxfun": 2_000, "maxcor": 30}
        z = np.zeros(2 * n)
        if n:
            # Restarts with a fresh memory: one run may stop short.
            for _ in range(3):
                z = minimize(
                    objective, z, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * (2 * n), options=options
                ).x
        w = z[:n] - z[n:]
        return self.value(w) + l1 @ np.abs(w) + 0.5 * l2 @ w**2, w


class LossEnumeration(Enumeration):
    """Values of every label sequence with any loss, and the sums that the surrogates take of them."""

    def __init__(self, problem, features, loss):
        self.loss = loss
        super().__init__(problem, features)

    def _losses(self, i):
        sequences = oracles.all_sequences(self.lengths[i], self.problem.n_labels)
        if not self.lengths[i]:
            return np.zeros(1)
        return np.array([self.loss(y, self.truths[i]) for y in sequences])

    def mean_exponential(self, w, is_boosting):
        """Log of 1 + the mean of sum_{y != y_i} of exp(L + w.delta), or of L exp(w.delta), and its gradient."""
        peak = max(float(self.scores(i, w).max()) for i in range(len(self.weights)))
        total, gradient = np.exp(-peak), np.zeros(len(w))
        for i, p in enumerate(self.weights):
            losses = self.losses[i]
            with np.errstate(over="ignore"):
                terms = np.exp(self.scores(i, w) - peak - (losses if is_boosting else 0.0))
            terms = p * terms * (losses if is_boosting else np.arange(len(losses)) != self.gold[i])
            total += terms.sum()
            gradient += terms @ (self.counts[i] - self.counts[i][self.gold[i]])
        return peak + np.log(total), gradient / total
