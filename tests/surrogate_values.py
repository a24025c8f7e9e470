"""The surrogates of small training problems by enumeration, and their least objectives by general solvers."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, minimize

import oracles
from enumeration import Enumeration


class Losses(Enumeration):
    """Enumeration with any loss; None is 0."""

    def __init__(self, problem, features, loss):
        self.loss = loss
        super().__init__(problem, features)

    def _losses(self, i):
        if not self.lengths[i] or self.loss is None:
            return np.zeros(self.problem.n_labels ** self.lengths[i])
        return self.loss.automaton(self.truths[i], self.problem.n_labels).path_costs(
            oracles.all_sequences(self.lengths[i], self.problem.n_labels)
        )

    def cuts(self, kind):
        """Sentence, intercept and row of every label sequence's bound: value_i >= intercept + row.w."""
        for i in range(len(self.weights)):
            deltas = self.counts[i] - self.counts[i][self.gold[i]]
            slope = np.ones(len(deltas)) if kind == "m3n" else self.losses[i]
            yield i, self.losses[i], slope[:, None] * deltas

    def surrogate(self, kind, w):
        """Value of the training's surrogate and its gradient (None for the maximum ones)."""
        if kind == "crf":
            return self.value(w), self.gradient(w)
        if kind in ("m3n", "structsvm"):
            found = [max(0.0, (intercept + rows @ w).max()) for _, intercept, rows in self.cuts(kind)]
            return self.weights @ found, None
        total, gradient = 1.0, np.zeros(len(w))
        for i, p in enumerate(self.weights):
            d = (self.counts[i] - self.counts[i][self.gold[i]]) @ w
            terms = self.losses[i] * np.exp(d) if kind == "structboost" else np.exp(self.losses[i] + d)
            terms = p * terms * (np.arange(len(d)) != self.gold[i])
            total += terms.sum()
            gradient += terms @ (self.counts[i] - self.counts[i][self.gold[i]])
        return np.log(total), gradient / total


def smooth_minimum(truth, kind, l1, l2):
    """Least surrogate + l1.|w| + l2.w^2/2 by L-BFGS-B on w = p - q."""
    n = len(l1)

    def objective(z):
        w = z[:n] - z[n:]
        value, g = truth.surrogate(kind, w)
        return value + l1 @ (z[:n] + z[n:]) + 0.5 * l2 @ w**2, np.concatenate([g + l2 * w + l1, -g - l2 * w + l1])

    z = np.zeros(2 * n)
    for _ in range(3 if n else 0):
        z = minimize(objective, z, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * (2 * n),
                     options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2_000}).x  # fmt: skip
    return objective(z)[0]


def linear_minimum(truth, kind, l1):
    """Least surrogate + l1.|w| of a maximum surrogate, by linear programming."""
    n, m = len(l1), len(truth.weights)
    if not n:
        return truth.surrogate(kind, np.zeros(0))[0]
    rows, limits = [], []
    for i, intercept, cut in truth.cuts(kind):
        slack = np.zeros((len(cut), m))
        slack[:, i] = -1.0
        rows.append(np.hstack([cut, -cut, slack]))
        limits.append(-intercept)
    cost = np.concatenate([l1, l1, truth.weights])
    return linprog(cost, A_ub=np.vstack(rows), b_ub=np.concatenate(limits), bounds=(0.0, None), method="highs").fun


def soft_maximum(truth, kind, w, temperature):
    """A maximum surrogate with T log(1 + sum exp(. / T)) for the maximum, and its gradient."""
    total, gradient = 0.0, np.zeros(len(w))
    for i, intercept, rows in truth.cuts(kind):
        scores = np.append(intercept + rows @ w, 0.0) / temperature
        top = scores.max()
        shares = np.exp(scores - top)
        total += truth.weights[i] * temperature * (top + np.log(shares.sum()))
        gradient += truth.weights[i] * (shares[:-1] / shares.sum()) @ rows
    return total, gradient


def least_found(truth, kind, l1, l2, groups=None):
    """Smallest objective that a general solver finds: not below the optimum, and as a rule close to it.

    With `groups` (number of each feature's group, l1 the strength of each group) the penalty is the group norm.
    Corners are rounded off less and less: |w| is split into its two signs, or a norm is sqrt(|w|^2 + s^2); a maximum
    is a soft one. What counts is the objective itself at the points reached.
    """
    n = len(truth.features)
    is_max = kind in ("m3n", "structsvm")

    def surrogate(w, smoothing):
        return soft_maximum(truth, kind, w, smoothing) if is_max and smoothing > 0.0 else truth.surrogate(kind, w)

    def objective(w, smoothing=0.0):
        value, g = surrogate(w, smoothing)
        g = np.zeros(n) if g is None else g
        if groups is None:
            return value + l1 @ np.abs(w) + 0.5 * l2 @ w**2, g + l2 * w
        norms = np.sqrt(np.bincount(groups, w**2, len(l1)) + smoothing**2)
        return value + l1 @ norms, g + (l1 / np.maximum(norms, 1e-300))[groups] * w

    def split(z, smoothing):
        w = z[:n] - z[n:]
        _, g = objective(w, smoothing)
        value = surrogate(w, smoothing)[0] + l1 @ (z[:n] + z[n:]) + 0.5 * l2 @ w**2
        return value, np.concatenate([g + l1, l1 - g])

    best, w = objective(np.zeros(n))[0], np.zeros(n)
    for smoothing in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5) if n else ():
        options = {"maxiter": 300, "ftol": 1e-14, "gtol": 1e-10}
        if groups is None:
            z, bounds = np.concatenate([np.maximum(w, 0.0), np.maximum(-w, 0.0)]), [(0.0, None)] * (2 * n)
            z = minimize(split, z, (smoothing,), jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
            w = z[:n] - z[n:]
        else:
            w = minimize(objective, w, (smoothing,), jac=True, method="L-BFGS-B", options=options).x
        best = min(best, objective(w)[0])
        if not is_max and groups is None:
            break
    return best
