"""What every task loss offers: its value, its bound, and its automaton for a reference."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from vcrf.errors import InputError
from vcrf.losses.automaton import TINY, LossAutomaton
from vcrf.types import Floats, Ints

# An automaton of 30 tokens and 17 labels takes about 0.1 MB with edit distance, 2 kB with Hamming.
_CACHE_BYTES = 128 * 2**20


class IndefiniteLossWarning(UserWarning):
    """Some wrong label sequence has loss 0: training does not see it as wrong."""


class Loss:
    """A task loss L(y, y_true) >= 0 between label sequences: first the candidate, then the reference.

    A subclass writes `_value`, `_automaton` and `_bound`. Sequences are numbers of labels, 0 .. n_labels-1. A loss
    that only asks whether labels are equal takes any labels when it is called.
    """

    # Whether the loss only asks which labels are equal.
    is_symmetric = False
    # What to do when the automaton is too large; see `LayerBuilder`.
    max_states = 50_000

    def __call__(self, y: Sequence[Any] | Ints, y_true: Sequence[Any] | Ints) -> float:
        """Loss of the candidate y when y_true is right."""
        candidate, reference = self._numbers(y, y_true)
        self._check_lengths(candidate, reference)
        return float(self._value(candidate, reference))

    def automaton(self, y_true: Sequence[Any] | Ints, n_labels: int | None = None) -> LossAutomaton:
        """The minimal automaton of L(., y_true) over label sequences as long as y_true.

        Parameters
        ----------
        y_true : the reference, numbers of labels
        n_labels : int, optional
            As many as the loss knows (a cost matrix), or else as y_true needs.

        Raises
        ------
        InputError
            When the loss is negative or infinite for some sequence, or L(y_true, y_true) is not 0.
        BudgetError
            When the automaton has too many states; the message names what makes it smaller.
        """
        reference = self._reference(y_true)
        n_labels = self._n_labels(reference, n_labels)
        key = (reference.tobytes(), n_labels)
        if key not in self._cached_automata:
            self._store(key, self._built(reference, n_labels))
        return self._cached_automata[key]

    def bound(self, length: int, n_labels: int | None = None) -> float:
        """M: no loss between two sequences of this length is larger.

        By default `n_labels` is as many as the loss knows; where labels only differ or not, any number above 1.
        """
        known = self._known_labels()
        if n_labels is None and known is None and not self.is_symmetric:
            raise InputError(f"The bound of {type(self).__name__} depends on the number of labels: pass n_labels.")
        return float(self._bound(length, self._n_labels(np.empty(0, np.int64), n_labels or known or 2)))

    def token_costs(self, n_labels: int) -> Floats | None:  # noqa: ARG002
        """Costs (candidate, reference) if the loss is their sum over tokens, up to a factor; None if it is not."""
        return None

    def for_labels(self, labels: Sequence[Hashable]) -> Loss:  # noqa: ARG002
        """The loss for labels numbered in this order; only losses that name labels differ."""
        return self

    def __add__(self, other: object) -> Loss:
        from vcrf.losses.combined import SumLoss

        return SumLoss((self, other)) if isinstance(other, Loss) else NotImplemented

    def __mul__(self, factor: object) -> Loss:
        from vcrf.losses.combined import ScaledLoss

        return ScaledLoss(self, float(factor)) if isinstance(factor, int | float) else NotImplemented

    __rmul__ = __mul__

    def __getstate__(self) -> dict[str, Any]:
        # Copies (scikit-learn's clone) and pickles leave the automata behind.
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_cached")}

    # What a subclass writes.

    def _bound(self, length: int, n_labels: int) -> float:
        """M, see `bound`."""
        raise NotImplementedError

    def _value(self, y: Ints, y_true: Ints) -> float:
        raise NotImplementedError

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        """Any deterministic automaton of the loss; it is made minimal and checked by the caller."""
        raise NotImplementedError

    def _known_labels(self) -> int | None:
        """Number of labels that the loss is defined for, None = any."""
        return None

    # Arguments.

    def _numbers(self, y: Sequence[Any] | Ints, y_true: Sequence[Any] | Ints) -> tuple[Ints, Ints]:
        if _are_numbers(y) and _are_numbers(y_true):
            return self._in_range(y), self._in_range(y_true)
        names = getattr(self, "labels", None)
        if names is None and not self.is_symmetric:
            raise InputError(
                f"{type(self).__name__} needs numbers of labels, 0, 1, ...: got {_first_odd(y, y_true)!r}. "
                "Number them in the order of the estimator's classes_."
            )
        number = {label: i for i, label in enumerate(names if names is not None else {*y, *y_true})}
        unknown = [label for label in (*y, *y_true) if label not in number]
        if unknown:
            raise InputError(f"{type(self).__name__} has labels {names}, got {unknown[0]!r}.")
        candidate, reference = ([number[label] for label in part] for part in (y, y_true))
        return np.array(candidate, np.int64), np.array(reference, np.int64)

    def _in_range(self, y: Sequence[Any] | Ints) -> Ints:
        numbers = np.asarray(y, np.int64).reshape(-1)
        known = self._known_labels()
        if numbers.size and (numbers.min() < 0 or (known is not None and numbers.max() >= known)):
            raise InputError(
                f"{type(self).__name__} expects labels {'from 0 on' if known is None else f'0 .. {known - 1}'}, "
                f"got {numbers.min()} .. {numbers.max()}."
            )
        return numbers

    def _check_lengths(self, y: Ints, y_true: Ints) -> None:
        if len(y) != len(y_true):
            raise InputError(
                f"{type(self).__name__} compares sequences of equal length, got {len(y)} labels for {len(y_true)}."
            )

    def _reference(self, y_true: Sequence[Any] | Ints) -> Ints:
        if not _are_numbers(y_true):
            raise InputError(f"automaton(y_true) needs numbers of labels, 0, 1, ...: got {_first_odd(y_true)!r}.")
        return self._in_range(y_true)

    def _n_labels(self, reference: Ints, n_labels: int | None) -> int:
        known = self._known_labels()
        if n_labels is None:
            n_labels = known if known is not None else int(reference.max(initial=0)) + 1
        if known is not None and n_labels != known:
            raise InputError(f"{type(self).__name__} is defined for {known} labels, got n_labels={n_labels}.")
        if n_labels < 1 or reference.max(initial=0) >= n_labels:
            raise InputError(
                f"The reference has label {reference.max(initial=0)}, but n_labels is {n_labels}: "
                "labels are 0 .. n_labels-1."
            )
        return n_labels

    # Cache and checks.

    @cached_property
    def _cached_automata(self) -> dict[tuple[bytes, int], LossAutomaton]:
        return {}

    def _store(self, key: tuple[bytes, int], automaton: LossAutomaton) -> None:
        cache = self._cached_automata
        used = self.__dict__.get("_cached_bytes", 0) + automaton.n_bytes
        while used > _CACHE_BYTES and cache:
            used -= cache.pop(next(iter(cache))).n_bytes  # the oldest
        self.__dict__["_cached_bytes"] = used
        cache[key] = automaton

    def _built(self, reference: Ints, n_labels: int) -> LossAutomaton:
        if not self.is_symmetric:
            return self._checked(self._automaton(reference, n_labels), reference)
        # Labels that the reference does not have are all alike: one class stands for them.
        present, numbers = np.unique(reference, return_inverse=True)
        classes = np.full(n_labels, len(present))
        classes[present] = np.arange(len(present))
        n_classes = min(len(present) + 1, n_labels)
        return self._checked(self._automaton(numbers, n_classes), numbers).spread(classes)

    def _checked(self, built: LossAutomaton, reference: Ints) -> LossAutomaton:
        """Make it minimal. Refuse what no surrogate can use: it needs L(y, y) = 0, L >= 0 and a finite bound."""
        name = type(self).__name__
        if not (np.isfinite(built.cost).all() and np.isfinite(built.final).all() and np.isfinite(built.init)):
            raise InputError(f"{name} is infinite or not a number for some sequence; surrogates need a finite bound.")
        automaton = built.minimal()
        # Pushed: init is the least loss of all.
        if automaton.init < -TINY:
            raise InputError(
                f"{name} is negative, {automaton.init:.6g}, for some sequence; a loss must be at least 0. "
                "Add a constant for each reference so that L(y_true, y_true) = 0 is the least value."
            )
        own = automaton.path_cost(reference)
        if abs(own) > TINY:
            raise InputError(f"{name} is {own:.6g} for the reference itself; L(y_true, y_true) must be 0.")
        self._warn_if_indefinite(automaton)
        return automaton

    def _warn_if_indefinite(self, automaton: LossAutomaton) -> None:
        if "_cached_warning" in self.__dict__ or automaton.n_zero_paths() <= 1.0:
            return
        self.__dict__["_cached_warning"] = True  # once for each loss
        warnings.warn(
            f"{type(self).__name__} is 0 for a sequence that differs from the reference: training will not tell them "
            "apart. Add a little Hamming loss, as in loss + 0.01 * HammingLoss(), if it should.",
            IndefiniteLossWarning,
            stacklevel=5,
        )


def _are_numbers(y: Sequence[Any] | Ints) -> bool:
    if isinstance(y, np.ndarray):
        return bool(np.issubdtype(y.dtype, np.integer)) or y.size == 0
    return all(isinstance(label, int | np.integer) and not isinstance(label, bool) for label in y)


def _first_odd(*sequences: Sequence[Any] | Ints) -> Any:
    return next(label for part in sequences for label in part if not _are_numbers([label]))
