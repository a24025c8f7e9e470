"""All label sequences of one sentence on the states of a pattern automaton: a `DenseLattice` without its size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from vcrf.errors import InputError
from vcrf.lattice.automaton import PatternAutomaton
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.kernels.patterns import LocalArcs


@dataclass(frozen=True, eq=False)
class PatternLattice:
    """Weighted label sequences of one sentence.

    ``score(y) = sum_t node[t, y_t] + sum_{t >= 1} arcs[t, arc taken at t]``, where the arc is the one that the
    automaton takes from the state of y_1 .. y_{t-1} with y_t.

    Parameters
    ----------
    automaton : PatternAutomaton
    node : (n_positions, n_labels) float64
    arcs : (n_positions, n_arcs) float64; an arc has the summed scores of all patterns that end with it. Row 0 is not
        read. -inf forbids.
    """

    automaton: PatternAutomaton
    node: Floats
    arcs: Floats

    def __post_init__(self) -> None:
        n = len(self.node)
        if self.node.shape != (n, self.n_labels) or self.arcs.shape != (n, self.automaton.n_arcs):
            raise InputError(
                f"A lattice on this automaton needs node scores (n_positions, {self.n_labels}) and arc scores "
                f"(n_positions, {self.automaton.n_arcs}): got {self.node.shape} and {self.arcs.shape}."
            )
        if not (np.all(self.node < np.inf) and np.all(self.arcs[1:] < np.inf)):
            raise InputError("Lattice weights must be finite or -inf (forbidden): got NaN or +inf.")

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.automaton.n_labels

    @property
    def order(self) -> int:
        """Length of the longest pattern."""
        return self.automaton.order

    @property
    def n_positions(self) -> int:
        """Number of positions T."""
        return len(self.node)

    # ---- restrictions ----

    def allow(self, masks: npt.ArrayLike) -> PatternLattice:
        """Return the lattice restricted to the sequences with ``masks[t, y_t]`` true at every t."""
        allowed = np.asarray(masks)
        if allowed.shape != self.node.shape or allowed.dtype != np.bool_:
            raise InputError(
                f"allow needs a bool mask of shape {self.node.shape}: got {allowed.dtype} of shape {allowed.shape}. "
                "Pass True where a label may stand."
            )
        return PatternLattice(self.automaton, np.where(allowed, self.node, -np.inf), self.arcs)

    def forbid(self, transitions: Iterable[tuple[int, int]]) -> PatternLattice:
        """Return a lattice without the sequences where some ``(y_{t-1}, y_t)`` is one of the given pairs."""
        arcs, automaton = self.arcs.copy(), self.automaton
        for before, after in transitions:
            if not (0 <= before < self.n_labels and 0 <= after < self.n_labels):
                raise InputError(
                    f"A transition is a pair of labels in 0..{self.n_labels - 1}: got ({before}, {after})."
                )
            pair = before * self.n_labels + after
            arcs[:, automaton.by_rank[automaton.rank[pair] : automaton.rank_end[pair]]] = -np.inf
        return PatternLattice(automaton, self.node, arcs)

    # ---- sums over sequences ----

    def log_partition(self) -> float:
        """``log sum_y exp(score(y))``; 0 for no position, ``-inf`` when every sequence is forbidden."""
        return self._pushed[0]

    def arc_marginals(self) -> Floats:
        """Posterior of every state and label, (n_positions, n_states, n_labels); before position 0 the state is 0."""
        from vcrf.kernels import state_log

        return state_log.posteriors(self._conditionals, *self._moves)

    def label_marginals(self) -> Floats:
        """Posterior of every label, (n_positions, n_labels)."""
        return np.asarray(self.arc_marginals().sum(axis=1))

    def pattern_marginal(self, run: npt.ArrayLike) -> Floats:
        """Posterior of one run of labels of any length by its last position, (n_positions,)."""
        from vcrf.kernels import state_log

        labels = np.asarray(run, np.int64)
        if labels.ndim != 1 or not len(labels) or labels.min() < 0 or labels.max() >= self.n_labels:
            raise InputError(f"A run is one or more labels in 0..{self.n_labels - 1}: got {run!r}.")
        out = np.zeros(self.n_positions)
        state_log.run_posterior(self.arc_marginals(), self._conditionals, labels, *self._moves, out)
        return out

    def expected(self, arc_values: npt.ArrayLike) -> float:
        """``E_q[sum_t arc_values[t, p_t, y_t]]``; values broadcast to (n_positions, n_states, n_labels)."""
        marginals = self.arc_marginals()
        values = np.broadcast_to(np.asarray(arc_values, np.float64), marginals.shape)
        return float(np.sum(marginals * np.where(marginals > 0.0, values, 0.0)))

    def entropy(self) -> float:
        """Entropy of the posterior in nats, ``H(q) = -sum_t E_q[log q(y_t | p_t)]``."""
        self._check_possible()
        return -self.expected(self._pushed[1]) + 0.0  # no negative zero

    def sample(self, n: int, rng: np.random.Generator | int) -> Ints:
        """Independent draws from the posterior, (n, n_positions); rng is a generator or a seed."""
        from vcrf.kernels import state_log

        uniforms = np.random.default_rng(rng).random((n, self.n_positions))
        return state_log.sample(self._conditionals, *self._moves, uniforms)

    # ---- best sequences ----

    def viterbi(self) -> tuple[Ints, float]:
        """Find the best label sequence, (n_positions,), and its score; of equal ones, the first by labels."""
        sequences, scores = self.kbest(1)
        if not len(sequences):
            self._check_possible()
        return sequences[0], float(scores[0])

    def kbest(self, k: int) -> tuple[Ints, Floats]:
        """Find the k best label sequences, (n, n_positions), and their scores, (n,), best first.

        Distinct; equal scores in lexicographic order. n < k when fewer sequences exist or are allowed.
        """
        from vcrf.kernels import state_log

        if k < 1:
            raise InputError(f"kbest needs k of at least 1: got {k}.")
        n_wanted = min(k, self.n_labels**self.n_positions)
        scores, sequences = state_log.kbest(self.node, self.arcs, self.automaton.size, *self._moves, n_wanted)
        return sequences, scores

    # ---- one sequence ----

    def score(self, labels: npt.ArrayLike) -> float:
        """Sum of the scores along a label sequence of shape (n_positions,)."""
        y, states = self._path(labels)
        t = np.arange(len(y))
        taken = self.arcs[t, self.automaton.table[states, y]]
        return float(self.node[t, y].sum() + taken[1:].sum())

    def log_prob(self, labels: npt.ArrayLike) -> float:
        """``log q(y)`` of a label sequence; ``-inf`` when it is forbidden."""
        self._check_possible()
        y, states = self._path(labels)
        return float(self._pushed[1][np.arange(len(y)), states, y].sum())

    # ---- internal ----

    @property
    def _moves(self) -> tuple[npt.NDArray[np.uint32], Ints]:
        return self.automaton.table, self.automaton.arc_state

    @cached_property
    def _pushed(self) -> tuple[float, Floats]:
        from vcrf.kernels import state_log

        return state_log.push(self.node, self.arcs, self.automaton.size, *self._moves)

    @property
    def _conditionals(self) -> Floats:
        self._check_possible()
        return np.asarray(np.exp(self._pushed[1]))

    def _check_possible(self) -> None:
        if self.log_partition() == -np.inf:
            raise InputError(
                "Every label sequence of this lattice is forbidden, so it has no posterior and no best sequence: "
                "expected one with a score above -inf. Loosen allow(), forbid() or the -inf scores."
            )

    def _path(self, labels: npt.ArrayLike) -> tuple[Ints, Ints]:
        from vcrf.kernels import state_log

        y = np.asarray(labels)
        if y.shape != (self.n_positions,) or (len(y) and (y.min() < 0 or y.max() >= self.n_labels)):
            raise InputError(
                f"A label sequence of this lattice has shape ({self.n_positions},) and labels in "
                f"0..{self.n_labels - 1}: got {y.shape}."
            )
        y = y.astype(np.int64)
        return y, state_log.path_states(y, *self._moves)


def sentence_lattice(
    automaton: PatternAutomaton, node: Floats, log: Floats, local: LocalArcs, start: int
) -> PatternLattice:
    """Lattice of the sentence whose tokens begin at `start`, from scores of arcs and of local patterns."""
    arcs = np.tile(log, (len(node), 1))
    for t in range(len(node)):
        for j in range(local.ptr[start + t], local.ptr[start + t + 1]):
            ranks = slice(automaton.rank[local.arc[j]], automaton.rank_end[local.arc[j]])
            arcs[t, automaton.by_rank[ranks]] += local.score[j]
    return PatternLattice(automaton, node, arcs)
