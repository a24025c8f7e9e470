"""Problems with labels that are not all known, and their objective by enumeration."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import oracles
from enumeration import Enumeration
from small_problems import cases


class PartialEnumeration(Enumeration):
    """The objective where `problem.allowed` says which labels each token may have."""

    def __init__(self, problem, features, costs=None):
        super().__init__(problem, features, costs)
        self.is_allowed = []
        for i, n in enumerate(self.lengths):
            sequences = oracles.all_sequences(n, problem.n_labels)
            rows = problem.allowed[problem.sent_ptr[i] : problem.sent_ptr[i + 1]]
            right = rows[np.arange(n), sequences] == 1
            self.is_allowed.append(right.all(axis=1))
            self.losses[i] = self.costs[i] * (~right).sum(axis=1)

    def clamped(self, i, w):
        """Scores of the allowed sequences without the loss, minus infinity for the others."""
        return np.where(self.is_allowed[i], self.scores(i, w) - self.losses[i], -np.inf)

    def value(self, w):
        """Return the weighted sum of log sum exp over all less log sum exp over the allowed."""
        return super().value(w) - sum(p * oracles.log_partition(self.clamped(i, w)) for i, p in enumerate(self.weights))

    def gradient(self, w):
        """Return the weighted sum of E[counts] - E[counts | allowed]."""
        out = np.zeros(len(self.features))
        for i, p in enumerate(self.weights):
            allowed = oracles.probabilities(self.clamped(i, w))
            out += p * (self.probabilities(i, w) - allowed) @ self.counts[i]
        return out


class RestrictedEnumeration(Enumeration):
    """The objective where `problem.known` says which labels words may have, and `problem.allowed` what is known."""

    def __init__(self, problem, features, costs=None):
        super().__init__(problem, features, costs)
        masks = problem.known.masks(problem.text)
        allowed = problem.allowed if problem.is_partial else np.eye(problem.n_labels, dtype=np.uint8)[problem.y]
        self.is_possible, self.is_right = [], []
        for i, n in enumerate(self.lengths):
            sequences = oracles.all_sequences(n, problem.n_labels)
            here = slice(problem.sent_ptr[i], problem.sent_ptr[i + 1])
            right = allowed[here][np.arange(n), sequences] == 1
            self.is_possible.append(masks[here][np.arange(n), sequences].all(axis=1))
            self.is_right.append(self.is_possible[-1] & right.all(axis=1))
            self.losses[i] = self.costs[i] * (~right).sum(axis=1)

    def _restricted(self, i, w):
        """Scores of what is possible with the loss, and of what is right without; minus infinity elsewhere."""
        scores = self.counts[i] @ w
        possible = np.where(self.is_possible[i], scores + self.losses[i], -np.inf)
        return possible, np.where(self.is_right[i], scores, -np.inf)

    def value(self, w):
        """Return the weighted sum of log sum exp over the possible less that over the right."""
        total = 0.0
        for i, p in enumerate(self.weights):
            possible, right = self._restricted(i, w)
            total += p * (oracles.log_partition(possible) - oracles.log_partition(right))
        return total

    def gradient(self, w):
        """Return the weighted sum of E[counts] - E[counts | right]."""
        out = np.zeros(len(self.features))
        for i, p in enumerate(self.weights):
            possible, right = self._restricted(i, w)
            out += p * (oracles.probabilities(possible) - oracles.probabilities(right)) @ self.counts[i]
        return out


@st.composite
def partial_cases(draw, **options):
    """Cases in which some tokens have several labels or any."""
    case = draw(cases(candidates="all", **options))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    allowed = (rng.random((len(case.y), case.n_labels)) < draw(st.sampled_from([0.0, 0.3, 1.0]))).astype(np.uint8)
    # Whole sentences stay known, so that both kinds are there.
    known = np.repeat(rng.random(case.text.n_sentences) < 0.4, np.diff(case.problem.sent_ptr))
    allowed[known] = 0
    allowed[np.arange(len(case.y)), case.y] = 1
    return case.rebuilt(allowed=allowed)
