"""Losses on how often each run of n labels occurs, wherever it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vcrf.errors import InputError
from vcrf.losses.automaton import LayerBuilder, LossAutomaton, distinct_codes
from vcrf.losses.loss import Loss
from vcrf.losses.ngram import check_n
from vcrf.types import Floats, Ints

Gram = tuple[int, ...]


@dataclass(frozen=True)
class NgramCountLoss(Loss):
    """The rational n-gram loss: minus the log of how many pairs of equal n-grams the sequences share, made finite.

        S(y, y') = sum over n-grams u of count_u(y) count_u(y')
        L(y, y_true) = log((S_true + kappa) / (min(S(y, y_true), S_true) + kappa)),   S_true = S(y_true, y_true)

    With kappa = 0 it would be infinite where no n-gram is shared. It is 0 for some sequences that differ from the
    reference: add a little Hamming loss where that matters.

    Parameters
    ----------
    n : int
    kappa : float
        Above 0; the smaller, the dearer it is to share nothing.
    normalised : bool
        Divide by the reference's bound log(1 + S_true / kappa): the loss is between 0 and 1.
    max_states : int
        Budget of the automaton before it is made minimal: it has about l^3 / 3 states for n = 2.
    """

    n: int = 2
    kappa: float = 1.0
    normalised: bool = False
    max_states: int = 50_000

    is_symmetric = True

    def __post_init__(self) -> None:
        check_n(self.n)
        if not (np.isfinite(self.kappa) and self.kappa > 0):
            raise InputError(
                f"The loss needs a positive number as kappa, got {self.kappa!r}: with 0 the loss would be infinite "
                "for sequences that share no n-gram with the reference."
            )

    def _bound(self, length: int, n_labels: int) -> float:
        """M: log(1 + S / kappa) for the largest S, that of a reference of one label; 1 if normalised."""
        windows = max(length - self.n + 1, 0)
        if not windows or n_labels < 2:
            return 0.0
        return 1.0 if self.normalised else float(np.log1p(windows**2 / self.kappa))

    def _value(self, y: Ints, y_true: Ints) -> float:
        counts = _grams(y_true, self.n)
        shared = sum(count * counts[gram] for gram, count in _grams(y, self.n).items())
        own = sum(count**2 for count in counts.values())
        return float(self._levels(own)[min(shared, own)])

    def _levels(self, own: int) -> Floats:
        """Loss for S = 0 .. S_true."""
        levels: Floats = np.log((own + self.kappa) / (np.arange(own + 1) + self.kappa))
        return levels / float(levels[0]) if self.normalised and own else levels

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        """State: the context that may begin a known n-gram, and S so far."""
        counts = _grams(y_true, self.n)
        contexts = _Contexts(list(counts), n_labels)
        own = sum(count**2 for count in counts.values())
        added = np.array([*counts.values(), 0], np.int64)[contexts.gram]  # (n_contexts, n_labels)
        levels = self._levels(own)

        def step(context: Ints, shared: Ints) -> tuple[Ints, Floats]:
            total = np.minimum(shared[:, None] + added[context], own)
            return total, levels[total] - levels[shared[:, None]]

        builder = LayerBuilder(
            n_labels, self.max_states, "Use the aligned n-gram loss, a smaller n, or raise max_states."
        )
        return contexts.explore(len(y_true), builder, own + 1, step, float(levels[0]))


@dataclass(frozen=True)
class ClippedNgramLoss(Loss):
    """Share of the candidate's n-grams that the reference does not have as often (as in BLEU), for short sequences.

        L(y, y_true) = 1 - sum over n-grams u of min(count_u(y), count_u(y_true)) / (l - n + 1)

    It is 0 for some sequences that differ from the reference, and its automaton grows exponentially with the length.

    Parameters
    ----------
    n : int
    max_states : int
        Budget of the automaton before it is made minimal.
    """

    n: int = 2
    max_states: int = 50_000

    is_symmetric = True

    def __post_init__(self) -> None:
        check_n(self.n)

    def _bound(self, length: int, n_labels: int) -> float:
        """M: 1."""
        return float(length >= self.n and n_labels > 1)

    def _value(self, y: Ints, y_true: Ints) -> float:
        windows = len(y_true) - self.n + 1
        shared = (_grams(y, self.n) & _grams(y_true, self.n)).total()
        return 1.0 - shared / windows if windows > 0 else 0.0

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        """State: the context that may begin a known n-gram, and the clipped counts as a number in mixed radix."""
        counts = _grams(y_true, self.n)
        contexts = _Contexts(list(counts), n_labels)
        limits = np.array([*counts.values(), 0], np.int64)  # of the n-gram that is none: nothing counts
        place = np.cumprod(limits + 1) // (limits + 1)
        advice = "It grows exponentially: use it up to 10 labels, or use AlignedNgramLoss or NgramCountLoss."
        n_counts = float(np.prod(limits + 1.0))
        if n_counts * len(contexts) > 2**62:
            raise LayerBuilder(n_labels, self.max_states, advice).refusal()
        windows = max(len(y_true) - self.n + 1, 1)

        def step(context: Ints, code: Ints) -> tuple[Ints, Floats]:
            gram = contexts.gram[context]  # (n, n_labels)
            counted = code[:, None] // place[gram] % (limits[gram] + 1)
            is_new = counted < limits[gram]
            return code[:, None] + is_new * place[gram], -1.0 * is_new / windows

        builder = LayerBuilder(n_labels, self.max_states, advice)
        return contexts.explore(len(y_true), builder, int(n_counts), step, float(len(y_true) >= self.n))


class _Contexts:
    """Which n-grams of the reference a sequence is in the middle of.

    A context is the longest run of last labels that begins one of the n-grams (a proper prefix); the empty one is 0.

    Attributes
    ----------
    following : (n_contexts, n_labels) int64
    gram : (n_contexts, n_labels) int64
        Number of the n-gram that the label completes; -1, the last, if none.
    """

    def __init__(self, grams: list[Gram], n_labels: int) -> None:
        prefixes: dict[Gram, int] = {(): 0}
        for gram in grams:
            for size in range(1, len(gram)):
                prefixes.setdefault(gram[:size], len(prefixes))
        number = {gram: i for i, gram in enumerate(grams)}
        n = len(grams[0]) if grams else 1
        self.following = np.empty((len(prefixes), n_labels), np.int64)
        self.gram = np.full((len(prefixes), n_labels), -1, np.int64)
        for prefix, i in prefixes.items():
            for b in range(n_labels):
                run = (*prefix, b)
                self.gram[i, b] = number.get(run, -1)
                run = run[-(n - 1) :] if n > 1 else ()
                while run not in prefixes:
                    run = run[1:]
                self.following[i, b] = prefixes[run]

    def __len__(self) -> int:
        return len(self.following)

    def explore(
        self,
        length: int,
        builder: LayerBuilder,
        n_values: int,
        step: Callable[[Ints, Ints], tuple[Ints, Floats]],
        init: float,
    ) -> LossAutomaton:
        """States (context, value) that sequences reach; `step` gives the new values and the costs, (n, n_labels)."""
        context, value = np.zeros(1, np.int64), np.zeros(1, np.int64)
        for _ in range(length):
            new_value, cost = step(context, value)
            distinct, following = distinct_codes(self.following[context] * n_values + new_value)
            builder.add(following, cost)
            context, value = np.divmod(distinct, n_values)
        return builder.finish(np.zeros(len(context)), init)


def _grams(y: Ints, n: int) -> Counter[Gram]:
    labels = y.tolist()
    return Counter(tuple(labels[t : t + n]) for t in range(len(labels) - n + 1))
