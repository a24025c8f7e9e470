"""The dense lattice: all label sequences of one sentence under weights of any order, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.lattice.lattice import Lattice, check_at_least_one
from vcrf.types import Floats

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class DenseLattice(Lattice):
    """All label sequences y of one sentence, with scores of order p.

    ``score(y) = sum_t arcs[t, s_t, y_t]`` with ``s_t`` the code of the last ``min(t, p - 1)`` labels, and the
    posterior is ``q(y) = exp(score(y) - log_partition)``. Codes are base-L digits, the oldest label most
    significant: ``(y_{t-2}, y_{t-1})`` has the code ``y_{t-2} * L + y_{t-1}``, and a pattern of k labels that
    ends at t has the code of ``(y_{t-k+1}, ..., y_t)``.

    Parameters
    ----------
    arcs : (n_positions, n_labels**(order - 1), n_labels) float64
        ``-inf`` forbids an arc. At ``t < order - 1`` only the first ``n_labels**t`` rows are read.
    n_labels : int
    order : int
        Number of labels an arc sees, its own included: 1 for independent positions, 2 for a chain of pairs.

    Raises
    ------
    InputError
        When the shape does not fit, or a weight is NaN or +inf.

    Examples
    --------
    >>> lattice = DenseLattice.from_scores([[0.0, 1.0], [0.0, 0.0]], tables={2: [[0.0, 0.0], [2.0, 0.0]]})
    >>> labels, score = lattice.viterbi()
    >>> labels.tolist(), score
    ([1, 0], 3.0)
    """

    arcs: Floats
    n_labels: int
    order: int

    def __post_init__(self) -> None:
        if self.n_labels < 1 or self.order < 1:
            raise InputError(
                f"A lattice needs at least 1 label and order 1: got n_labels={self.n_labels}, order={self.order}."
            )
        n_states = self.n_labels ** (self.order - 1)
        dtype = getattr(self.arcs, "dtype", "no array")
        if dtype != np.float64 or self.arcs.shape != (len(self.arcs), n_states, self.n_labels):
            raise InputError(
                f"A lattice of {self.n_labels} labels and order {self.order} needs float64 arcs of shape "
                f"(n_positions, {n_states}, {self.n_labels}): got {dtype} of shape {np.shape(self.arcs)}. "
                "Pass n_labels**(order - 1) histories, or build it with from_scores."
            )
        self._check_weights()

    @classmethod
    def from_scores(
        cls,
        node: npt.ArrayLike,
        tables: Mapping[int, npt.ArrayLike] | None = None,
        order: int | None = None,
    ) -> DenseLattice:
        """Build a lattice from scores of labels per position and of label patterns anywhere.

        ``score(y) = sum_t node[t, y_t] + sum_k sum_{t >= k-1} tables[k][y_{t-k+1}, ..., y_t]``

        Parameters
        ----------
        node : (n_positions, n_labels)
        tables : mapping from k to an array of n_labels**k scores, optional
            Indexed by pattern code; the shape ``(n_labels,) * k`` has the same memory order.
        order : int, optional
            Default: the longest pattern. A larger one gives the same scores on more histories.
        """
        node_scores = np.asarray(node, dtype=np.float64)
        if node_scores.ndim != 2 or node_scores.shape[1] < 1:
            raise InputError(
                f"Node scores must have shape (n_positions, n_labels): got {node_scores.shape}. "
                "Pass one row per position; an empty sentence is np.zeros((0, n_labels))."
            )
        n_positions, n_labels = node_scores.shape
        flat_tables = {k: _checked_table(k, table, n_labels) for k, table in (tables or {}).items()}
        longest = max(flat_tables, default=1)
        order = longest if order is None else order
        if order < longest:
            raise InputError(
                f"The order must cover the longest pattern: expected at least {longest}, got {order}. "
                "Raise order= or drop the longer table."
            )
        arcs = np.zeros((n_positions, n_labels ** (order - 1), n_labels)) + node_scores[:, None, :]
        for k, table in flat_tables.items():
            arcs[k - 1 :] += _repeat_over_older(table[None], order - k, n_labels)
        return cls(arcs, n_labels, order)

    @cached_property
    def steps(self) -> kernels.log_domain.ContextScores:
        """The scores as the kernels read them: the arc of history s and label b has the number s * L + b.

        It enters the history of the last digits: the remainder drops the oldest label.
        """
        n_positions, n_states, n_labels = self.arcs.shape
        numbers, size = np.arange(n_states * n_labels), np.zeros(n_states, np.int64)
        for k in range(self.order - 1):
            size[n_labels**k :] = k + 1
        node = np.zeros((n_positions, n_labels))
        node[:1] = self.arcs[:1, 0]
        table = numbers.reshape(n_states, n_labels).astype(np.uint32)
        return kernels.log_domain.ContextScores(
            node, self._flat(), size, table, numbers % n_states, np.arange(n_labels) % n_states
        )

    # ---- restrictions ----

    def to_order(self, order: int) -> DenseLattice:
        """Put the same scores on longer histories: for every y, ``score(y)`` is unchanged."""
        if order < self.order:
            raise InputError(
                f"A lattice can only be raised to a higher order: it has {self.order}, got {order}. "
                "Build a new one with from_scores."
            )
        arcs = _repeat_over_older(self._flat(), order - self.order, self.n_labels)
        return DenseLattice(arcs, self.n_labels, order)

    def forbid(self, transitions: Iterable[tuple[int, int]]) -> DenseLattice:
        """Return a lattice without the sequences where some ``(y_{t-1}, y_t)`` is one of the given pairs.

        A lattice of order 1 is raised to order 2, the least that sees a pair.
        """
        order = max(self.order, 2)
        arcs = self.to_order(order).arcs  # a new array, even at the same order
        # At t >= 1 the last two digits of an arc's code are (y_{t-1}, y_t).
        by_pair = arcs.reshape(self.n_positions, -1 if arcs.size else 1, self.n_labels, self.n_labels)
        for before, after in self._checked_pairs(transitions):
            by_pair[1:, :, before, after] = -np.inf
        return DenseLattice(arcs, self.n_labels, order)

    def allow(self, masks: npt.ArrayLike) -> Self:
        """Return the lattice restricted to the sequences with ``masks[t, y_t]`` true at every t."""
        allowed = self._checked_mask(masks)
        return replace(self, arcs=np.where(allowed[:, None, :], self.arcs, -np.inf))

    # ---- sums over sequences ----

    def pattern_marginals(self, k: int) -> Floats:
        """Posterior of every run of k labels by its last position, (n_positions, n_labels**k).

        Rows ``t < k - 1`` are zero: no run of k labels ends there. For k > order the posterior is a Markov
        chain on histories, so
        ``q(y_{t-k+1}, ..., y_t) = q(first `order` labels) * prod of q(label | its history)``, exactly.
        """
        check_at_least_one("pattern_marginals", k)
        posteriors = self.arc_marginals()
        marginals = np.zeros((self.n_positions, self.n_labels**k))
        if k > self.order:
            marginals[k - 1 :] = self._long_patterns(posteriors, self._conditionals, k)
        else:
            # Codes are read from the newest label, so older labels are the leading axis to sum out.
            shape = (self.n_positions, self.n_labels ** (self.order - k), self.n_labels**k)
            marginals[k - 1 :] = posteriors.reshape(shape).sum(axis=1)[k - 1 :]
        return marginals

    # ---- internal ----

    def _flat(self) -> Floats:
        """Arrange the arcs by code, (n_positions, n_states * n_labels), as the kernels read them."""
        return np.ascontiguousarray(self.arcs).reshape(self.n_positions, self.n_labels**self.order)

    def _long_patterns(self, posteriors: Floats, cond: Floats, k: int) -> Floats:
        """Posterior of runs of k > order labels that end at t = k-1, ..., (n_positions - k + 1, L**k)."""
        n_runs = max(self.n_positions - k + 1, 0)
        n_states = self.n_labels ** (self.order - 1)
        runs = posteriors[self.order - 1 :][:n_runs]
        for end in range(self.order, k):
            step = cond[end : end + n_runs].reshape(n_runs, 1, n_states, self.n_labels)
            length = end + 1
            older = self.n_labels ** (length - self.order)
            runs = (runs.reshape(n_runs, older, n_states, 1) * step).reshape(n_runs, self.n_labels**length)
        return runs

    def _check_weights(self) -> None:
        """Refuse NaN and +inf on the arcs that are read."""
        n_growing = min(self.order - 1, self.n_positions)  # positions where histories are still short
        blocks = [self.arcs[t : t + 1, : self.n_labels**t] for t in range(n_growing)]
        for t, alive in enumerate([*blocks, self.arcs[n_growing:]]):
            is_bad = ~(alive < np.inf).all(axis=(1, 2))
            if is_bad.any():
                raise InputError(
                    f"Lattice weights must be finite or -inf (forbidden): got NaN or +inf at position "
                    f"{t + is_bad.argmax()} (from 0). Check the scores that built it."
                )


def _repeat_over_older(flat: Floats, n_older: int, n_labels: int) -> Floats:
    """Repeat scores by code for every choice of n_older labels before: (n, L**(p - 1), L) arcs."""
    repeated = np.tile(flat, (1, n_labels**n_older))
    return repeated.reshape(len(flat), repeated.shape[1] // n_labels, n_labels)


def _checked_table(k: int, table: npt.ArrayLike, n_labels: int) -> Floats:
    """Check the scores of patterns of k labels and flatten them by code, (n_labels**k,)."""
    check_at_least_one("A pattern table", k)
    scores = np.asarray(table, dtype=np.float64)
    if scores.size != n_labels**k:
        raise InputError(
            f"The table of patterns of length {k} needs {n_labels}**{k} = {n_labels**k} scores: "
            f"got shape {scores.shape}. Give one score per pattern, the oldest label first."
        )
    return scores.reshape(-1)
