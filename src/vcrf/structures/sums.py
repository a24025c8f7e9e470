"""What one pass over the data finds: a value that belongs to its weights for ever."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from vcrf import kernels, scratch
from vcrf.structures.plan import ChainPlan
from vcrf.structures.training_loss import TrainingLoss
from vcrf.types import Floats, Ints, UInts32

if TYPE_CHECKING:
    from vcrf.kernels.blocks import PassOutput
    from vcrf.kernels.scores import LocalFactors
    from vcrf.structures.chain import Chain
    from vcrf.structures.value_pairs import ValuePairs


# Arrays of rows that are kept for the next pass.
_MOST_KEPT = 2


class Want(NamedTuple):
    """What a pass keeps besides values and residuals: messages, for scans and Hessians; mean losses; variances."""

    messages: bool = False
    means: bool = False
    variances: bool = False


class ChainPotentials(Protocol):
    """A plan at some weights: all that a pass reads. Dense tables, or arcs of an automaton."""

    @property
    def chain(self) -> Chain: ...
    @property
    def plan(self) -> ChainPlan: ...
    @property
    def w(self) -> Floats: ...
    @property
    def corrections(self) -> LocalFactors: ...

    def values(self, loss: TrainingLoss) -> Floats:
        """The log of the sum of each sentence, less the score of the truth."""

    def sums(self, loss: TrainingLoss, weights: Floats) -> ChainSums:
        """One pass, with so much weight on each sentence."""

    def plain_gradient(self, counts: Floats) -> Floats:
        """Gradient of the plan's plain tag patterns from what a pass counted."""


@dataclass(frozen=True, eq=False)
class ChainSums:
    """ChainSums over all label sequences of each sentence.

    Attributes
    ----------
    potentials, loss : what was summed
    weights : (n_sentences,) of each sentence in the residuals
    values : (n_sentences,) log of the sum, less the score of the truth
    residuals : (n_tokens, n_labels) weight * (posterior - truth)
    slot_residuals : the same for the slots of the plan's corrections
    counts : the same summed over tokens for plain patterns, as `Potentials.plain_gradient` takes them
    spread : residuals and slot residuals before the posterior over allowed labels took the place of the truth
    n_hard : sentences that were done in the log domain
    messages, clamped : the fields of `kernels.gradient.Messages`, of all labels and of the allowed ones, if wanted
    variances : of the longest arcs, with the messages
    means : (n_sentences,) mean loss under exp(loss + score), if wanted and there are automata
    """

    potentials: ChainPotentials
    loss: TrainingLoss
    weights: Floats
    values: Floats
    residuals: Floats
    slot_residuals: Floats
    counts: Floats
    spread: tuple[Floats, Floats]
    n_hard: int
    messages: Any = None
    clamped: Any = None
    variances: Floats = field(default_factory=lambda: np.zeros(0))
    means: Floats = field(default_factory=lambda: np.zeros(0))
    warm = None

    @cached_property
    def of_values(self) -> Floats:
        """Residuals summed over the labels of each component value, (n_tokens, n_values)."""
        components = self.potentials.chain.problem.components
        if components is None:
            raise TypeError("These labels have no components.")
        return components.sum_labels(self.residuals)

    @property
    def plan(self) -> ChainPlan:
        """The features."""
        return self.potentials.plan

    @property
    def token_weights(self) -> Floats:
        """Weight of the sentence of each token, (n_tokens,)."""
        return self.weights[self.potentials.chain.problem.example_of]

    def wrong_labels(self) -> Floats:
        """Mean number of wrong labels of each sentence."""
        problem = self.potentials.chain.problem
        at_truth = self.residuals[np.arange(problem.n_tokens), problem.y]
        total = np.bincount(problem.example_of, -at_truth, problem.text.n_sentences)
        return np.asarray(total / np.where(self.weights > 0.0, self.weights, 1.0))

    def mean_losses(self) -> Floats:
        """Mean loss of each sentence under exp(loss + score)."""
        return self.loss.costs * self.wrong_labels() if self.loss.automata is None else self.means


class Found(NamedTuple):
    """What one forward-backward finds: fields of `Sums`; a second one, over allowed labels, may be subtracted."""

    values: Floats
    residuals: Floats
    slot_residuals: Floats
    counts: Floats
    n_hard: int
    messages: Any = None
    variances: Floats = np.zeros(0)
    means: Floats = np.zeros(0)


def make_sums(
    potentials: ChainPotentials, loss: TrainingLoss, weights: Floats, found: Found, truth: Found | None, spare: Spare
) -> ChainSums:
    """A pass as a value; what a pass over the allowed labels finds stands for the truth where labels are not known."""
    if truth is None:
        values, residuals, slots, counts = found.values, found.residuals, found.slot_residuals, found.counts
    else:
        values, residuals = found.values - truth.values, found.residuals - truth.residuals
        slots, counts = found.slot_residuals - truth.slot_residuals, found.counts - truth.counts
    sums = ChainSums(
        potentials, loss, weights, values, residuals, slots, counts, (found.residuals, found.slot_residuals),
        found.n_hard, found.messages, None if truth is None else truth.messages, found.variances, found.means,
    )  # fmt: skip
    spare.lend(sums, found)
    return sums


class Spare:
    """Arrays of passes whose sums nobody holds any more, for the next pass: fresh pages cost a twentieth of one."""

    def __init__(self, n_sentences: int, n_tokens: int, n_labels: int) -> None:
        self._shape, self._n_labels = (n_sentences, n_tokens * n_labels), n_labels
        self._free: list[tuple[Floats, Floats]] = []
        self._rows: list[Floats] = []
        self._room = np.zeros(0)

    def output(self, n_slots: int) -> kernels.blocks.PassOutput:
        """Arrays for a pass to write to: it writes all of them."""
        n_sentences, n_residuals = self._shape
        values, residuals = self._free.pop() if self._free else (np.zeros(n_sentences), scratch.zeros(n_residuals))
        return kernels.blocks.PassOutput(values, residuals, scratch.zeros(n_slots), np.zeros(n_sentences, np.uint32))

    def lend(self, owner: object, found: Found) -> None:
        """Take the arrays back when their owner is gone."""
        weakref.finalize(owner, self._free.append, (found.values, found.residuals.reshape(-1))).atexit = False

    def let_go(self) -> None:
        """Keep no arrays: before something large is made of which passes know nothing yet."""
        self._free.clear()
        self._rows.clear()
        self._room = np.zeros(0)

    def room(self, n_rows: int, width: int) -> Floats:
        """An array of any content for a moment: the next one is in the same place."""
        if len(self._room) < n_rows * width:
            self._room = np.zeros(0)  # the old one goes before the new one comes
            self._room = scratch.empty(n_rows * width)
        return self._room[: n_rows * width].reshape(n_rows, width)

    def rows(self, n_rows: int) -> Floats:
        """An array (n_rows, n_labels) of any content, to be lent or given back."""
        if self._rows and len(self._rows[-1]) != n_rows:
            self._rows.clear()
        return self._rows.pop() if self._rows else scratch.empty((n_rows, self._n_labels))

    def lend_rows(self, owner: object, rows: Floats) -> None:
        """Take such an array back when its owner is gone."""
        weakref.finalize(owner, self.give_back_rows, rows).atexit = False

    def give_back_rows(self, rows: Floats) -> None:
        """Take back an array that nobody uses any more."""
        if len(self._rows) < _MOST_KEPT:
            self._rows.append(rows)

    def give_back(self, output: PassOutput) -> None:
        """Take back arrays that no sums were made of."""
        self._free.append((output.values, output.residuals))


def empty_output(n_sentences: int, n_tokens: int, n_labels: int, n_slots: int) -> kernels.blocks.PassOutput:
    """Zeros for a clamped pass, which leaves out sentences whose labels are all known."""
    return kernels.blocks.PassOutput(
        np.zeros(n_sentences), scratch.zeros(n_tokens * n_labels), scratch.zeros(n_slots),
        np.zeros(n_sentences, np.uint32),
    )  # fmt: skip


class Tabled(Protocol):
    """The plain tag patterns of a plan: indices of the features, lengths and codes; the longest of them."""

    @property
    def features(self) -> Ints: ...
    @property
    def order(self) -> int: ...
    @property
    def table_features(self) -> Ints: ...
    @property
    def table_sizes(self) -> UInts32: ...
    @property
    def table_codes(self) -> UInts32: ...


@dataclass(frozen=True, eq=False)
class ArcVariances:
    """Of all arcs of a dense lattice, (n_labels**order,)."""

    n_labels: int
    arcs: Floats

    def of(self, plan: Tabled) -> Floats:
        """Those of the longest patterns, summed over the labels left out."""
        out, variances = np.zeros(len(plan.table_features)), self.arcs
        for k in range(plan.order, 1, -1):
            if len(variances) < self.n_labels**k:
                return np.ones(len(out))
            variances = variances.reshape(-1, self.n_labels**k).sum(axis=0)
            of_length = plan.table_sizes == k
            out[of_length] = variances[plan.table_codes[of_length]]
        return out

    def of_values(self, pairs: ValuePairs) -> Floats:
        """Those of pairs of component values: sums over their pairs of labels, no smaller than the variances."""
        n_pairs = self.n_labels**2
        if len(self.arcs) < n_pairs:
            return np.ones(len(pairs))
        return pairs.label_sums(self.arcs.reshape(-1, n_pairs).sum(axis=0).reshape(self.n_labels, -1))


@dataclass(frozen=True, eq=False)
class KnownVariances:
    """Of the patterns that a scan by length looked at: feature numbers (sorted) and variances; and of all others."""

    features: Ints
    variances: Floats
    others: float

    def of(self, plan: Tabled) -> Floats:
        features = plan.features[plan.table_features]
        if not len(self.features):
            return np.ones(len(features))
        at = np.minimum(np.searchsorted(self.features, features), len(self.features) - 1)
        return np.where(self.features[at] == features, self.variances[at], self.others)
