"""All label sequences of one sentence with their scores, exactly: sums, posteriors, best sequences, draws."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.kernels.log_domain import ContextScores, SentenceLoss
    from vcrf.losses.automaton import LossAutomaton


class Lattice:
    """Weighted label sequences y of one sentence, on contexts: what the labels so far amount to.

    ``score(y) = sum_t score of (context before t, y_t)``, the posterior is ``q(y) = exp(score(y) - log_partition)``.
    `DenseLattice` has all runs of order - 1 labels as contexts, `PatternLattice` those of a pattern automaton.
    """

    if TYPE_CHECKING:  # fields of one of the classes, which must not find a default here

        @property
        def arcs(self) -> Floats:
            """Scores of arcs by position."""

        @property
        def n_labels(self) -> int:
            """Number of labels."""

        @property
        def order(self) -> int:
            """Number of labels that an arc sees, its own included."""

    @cached_property
    def steps(self) -> ContextScores:
        """The scores as the kernels read them."""
        raise NotImplementedError

    @property
    def n_positions(self) -> int:
        """Number of positions T."""
        return len(self.arcs)

    def allow(self, masks: npt.ArrayLike) -> Self:
        """Return the lattice restricted to the sequences with ``masks[t, y_t]`` true at every t.

        Parameters
        ----------
        masks : (n_positions, n_labels) bool
        """
        raise NotImplementedError

    # ---- sums over sequences ----

    def log_partition(self) -> float:
        """``log sum_y exp(score(y))``; 0 for no position, ``-inf`` when every sequence is forbidden."""
        return self._pushed[0]

    def arc_marginals(self) -> Floats:
        """Posterior of every context and label, (n_positions, n_contexts, n_labels): ``q(context and label b at t)``.

        Raises
        ------
        InputError
            When every sequence is forbidden; likewise everything below that needs the posterior.
        """
        return kernels.log_domain.posteriors(self.steps, self._no_loss, self._log_conditionals)[0]

    def label_marginals(self) -> Floats:
        """Posterior of every label, (n_positions, n_labels)."""
        return np.asarray(self.arc_marginals().sum(axis=1))

    def pattern_marginal(self, run: npt.ArrayLike) -> Floats:
        """Posterior of one run of labels of any length by its last position, (n_positions,)."""
        labels = np.asarray(run, np.int64)
        if labels.ndim != 1 or not len(labels) or labels.min() < 0 or labels.max() >= self.n_labels:
            raise InputError(f"A run is one or more labels in 0..{self.n_labels - 1}: got {run!r}.")
        out = np.zeros(self.n_positions)
        kernels.log_domain.run_posterior(self.steps, self.arc_marginals(), self._conditionals, labels, out)
        return out

    def expected(self, arc_values: npt.ArrayLike) -> float:
        """``E_q[sum_t arc_values[t, context, y_t]]``; values on impossible arcs do not count, even infinite ones.

        Parameters
        ----------
        arc_values : broadcastable to (n_positions, n_contexts, n_labels)
            For a value per position and label pass shape (n_positions, 1, n_labels).
        """
        values, shape = np.asarray(arc_values, np.float64), (self.n_positions, *self.steps.table.shape)
        try:
            values = np.broadcast_to(values, shape)
        except ValueError:
            raise InputError(
                f"Arc values must broadcast to the lattice's arcs {shape}: got {values.shape}. "
                "For one value per position and label pass values[:, None, :]."
            ) from None
        marginals = self.arc_marginals()
        return float(np.sum(marginals * np.where(marginals > 0.0, values, 0.0)))

    def entropy(self) -> float:
        """Entropy of the posterior in nats, ``H(q) = -sum_t E_q[log q(y_t | context)]``.

        A sum of terms of one sign: it does not cancel as ``log_partition - E_q[score]`` does.
        """
        return -self.expected(self._by_context(self._log_conditionals)) + 0.0  # no negative zero

    def sample(self, n: int, rng: np.random.Generator | int) -> Ints:
        """Independent draws from the posterior, (n, n_positions); rng is a generator or a seed."""
        uniforms = np.random.default_rng(rng).random((n, self.n_positions))
        return kernels.log_domain.sample(self.steps, self._conditionals, uniforms)

    def with_loss(self, automaton: LossAutomaton, final: Floats | None = None) -> tuple[float, Floats, float]:
        """``log sum_y exp(score(y) + loss(y))``, posterior of the arcs under it, mean loss; `final` replaces its own.

        If all is forbidden the posterior is 0 and there is no mean, nan.
        """
        loss = sentence_loss(automaton, final)
        log_z, log_cond = kernels.log_domain.push(self.steps, loss)
        if log_z == -np.inf:
            return log_z, np.zeros((self.n_positions, *self.steps.table.shape)), np.nan
        return log_z, *kernels.log_domain.posteriors(self.steps, loss, log_cond)

    def conditionals_with(self, automaton: LossAutomaton, final: Floats | None = None) -> Floats:
        """P(label | context, state of the loss) of that posterior, flat: see `kernels.log_domain`."""
        return np.exp(kernels.log_domain.push(self.steps, sentence_loss(automaton, final))[1]).reshape(-1)

    # ---- best sequences ----

    def viterbi(self) -> tuple[Ints, float]:
        """Find the best label sequence, (n_positions,), and its score; of equal ones, the first by labels."""
        sequences, scores = self.kbest(1)
        if not len(sequences):
            raise self._impossible()
        return sequences[0], float(scores[0])

    def kbest(self, k: int) -> tuple[Ints, Floats]:
        """Find the k best label sequences, (n, n_positions), and their scores, (n,), best first.

        Distinct; equal scores in lexicographic order. n < k when fewer sequences exist or are allowed.
        """
        check_at_least_one("kbest", k)
        scores, sequences = kernels.log_domain.kbest(self.steps, min(k, self.n_labels**self.n_positions))
        return sequences, scores

    # ---- one sequence ----

    def score(self, labels: npt.ArrayLike) -> float:
        """Score of a label sequence of shape (n_positions,)."""
        y, contexts = self._path(labels)
        t = np.arange(len(y))
        taken = self.steps.arcs[t, self.steps.table[contexts, y]]
        return float(self.steps.node[t, y].sum() + taken[1:].sum())

    def log_prob(self, labels: npt.ArrayLike) -> float:
        """``log q(y) = sum_t log q(y_t | context)`` of a label sequence; ``-inf`` when it is forbidden."""
        y, contexts = self._path(labels)
        return float(self._by_context(self._log_conditionals)[np.arange(len(y)), contexts, y].sum())

    # ---- internal ----

    @cached_property
    def _pushed(self) -> tuple[float, Floats]:
        """Log partition, and ``log q(b | context)`` as the kernels lay it out."""
        return kernels.log_domain.push(self.steps, self._no_loss)

    @property
    def _no_loss(self) -> SentenceLoss:
        return _no_loss(self.n_positions, self.n_labels)

    @property
    def _log_conditionals(self) -> Floats:
        log_z, log_cond = self._pushed
        if log_z == -np.inf:
            raise self._impossible()
        return log_cond

    @property
    def _conditionals(self) -> Floats:
        """``q(b | context)``, (n_positions, n_contexts, n_labels)."""
        return self._by_context(np.exp(self._log_conditionals))

    def _by_context(self, flat: Floats) -> Floats:
        return flat.reshape(self.n_positions, *self.steps.table.shape)

    def _path(self, labels: npt.ArrayLike) -> tuple[Ints, Ints]:
        """Labels, and the context before each."""
        y = self._checked_labels(labels)
        return y, kernels.log_domain.path_contexts(self.steps, y)

    def _checked_labels(self, labels: npt.ArrayLike) -> Ints:
        given = np.asarray(labels)
        if given.shape != (self.n_positions,):
            raise InputError(f"A label sequence of this lattice has shape ({self.n_positions},): got {given.shape}.")
        # An empty list has a float dtype and is still a sequence of labels.
        if given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= self.n_labels):
            raise InputError(
                f"Labels are integers in 0..{self.n_labels - 1}: got {given.dtype} "
                f"from {given.min()} to {given.max()}. Pass label indices, not names."
            )
        return given.astype(np.int64)

    def _checked_mask(self, masks: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        allowed, shape = np.asarray(masks), (self.n_positions, self.n_labels)
        if allowed.shape != shape or allowed.dtype != np.bool_:
            raise InputError(
                f"allow needs a bool mask of shape {shape}: got {allowed.dtype} of shape {allowed.shape}. "
                "Pass True where a label may stand."
            )
        return allowed

    def _checked_pairs(self, transitions: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        pairs = list(transitions)
        for before, after in pairs:
            if not (0 <= before < self.n_labels and 0 <= after < self.n_labels):
                raise InputError(
                    f"A transition is a pair of labels in 0..{self.n_labels - 1}: got ({before}, {after})."
                )
        return pairs

    def _impossible(self) -> InputError:
        """Make the error for a lattice without any allowed sequence, naming where the last one ends."""

        def is_dead(t: int) -> bool:
            head = self.steps._replace(node=self.steps.node[: t + 1], arcs=self.steps.arcs[: t + 1])
            return kernels.log_domain.best_score(head, _no_loss(t + 1, self.n_labels)) == -np.inf

        dead_at = bisect_left(range(self.n_positions), True, key=is_dead)
        return InputError(
            "Every label sequence of this lattice is forbidden, so it has no posterior and no best sequence: "
            f"expected one with a score above -inf, got none that passes position {dead_at} (from 0). "
            "Loosen allow(), forbid() or the -inf scores there."
        )


def sentence_loss(automaton: LossAutomaton, final: Floats | None = None) -> kernels.log_domain.SentenceLoss:
    """A loss automaton as the kernels read it; `final` replaces its own."""
    a = automaton
    return kernels.log_domain.SentenceLoss(
        a.state_ptr, a.next, a.cost, a.final if final is None else final, float(a.init)
    )


def _no_loss(n_positions: int, n_labels: int) -> kernels.log_domain.SentenceLoss:
    """The automaton of one state a layer that costs nothing."""
    shape = (n_positions, n_labels)
    return kernels.log_domain.SentenceLoss(
        np.arange(n_positions + 2), np.zeros(shape, np.int64), np.zeros(shape), np.zeros(1), 0.0
    )


def check_at_least_one(what: str, k: int) -> None:
    """Refuse a number of labels or sequences below 1."""
    if k < 1:
        raise InputError(f"{what} needs k of at least 1: got {k}.")
