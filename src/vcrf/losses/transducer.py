"""Any weighted transducer as a loss: composed with the reference, then made deterministic."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vcrf.automata import (
    EPSILON,
    LOG,
    PROBABILITY,
    TROPICAL,
    Automaton,
    compose,
    connect,
    convert,
    project,
    remove_epsilons,
    total_weight,
)
from vcrf.errors import InputError
from vcrf.losses.alternatives import Alternatives
from vcrf.losses.automaton import LayerBuilder, LossAutomaton
from vcrf.losses.loss import Loss
from vcrf.types import Bools, Floats, Ints

_ADVICE = "Raise max_states, shorten the sequences, or make the transducer's weights multiples of one number."

# Sums of weights that differ by less are equal.
_DECIMALS = 9


@dataclass(frozen=True, eq=False)
class TransducerLoss(Loss):
    """The weight U(y, y_true) that a transducer gives to a pair; it reads the candidate and writes the reference.

    Over the tropical semiring the loss is the least cost, U itself. Over the probability (or log) semiring U is a sum
    over paths, for instance the number of n-grams that both have, and the loss is

        L(y, y_true) = log((U_true + kappa) / (min(U, U_true) + kappa)),   U_true = U(y_true, y_true)

    or what `function` makes of U and U_true.

    Parameters
    ----------
    transducer : vcrf.automata.Automaton
        Its labels are numbers of labels, or names when `labels` is given. It must accept every pair of sequences
        of equal length (tropical), and L(y, y) must be 0.
    labels : sequence, optional
        Names of the labels in order; `for_labels` and the estimators set it.
    kappa : float
        Above 0: the smaller, the dearer is U = 0.
    function : callable, optional
        (U, U_true) -> loss, instead of the formula; not for the tropical semiring.
    largest : float, optional
        The bound M, if it is known.
    max_states : int
        Budget of the automaton before it is made minimal.
    """

    transducer: Automaton
    labels: Sequence[Hashable] | None = None
    kappa: float = 1.0
    function: Callable[[float, float], float] | None = None
    largest: float | None = None
    max_states: int = 50_000

    def __post_init__(self) -> None:
        semiring = self.transducer.semiring
        if semiring not in (TROPICAL, PROBABILITY, LOG):
            raise InputError(f"A loss needs a tropical, probability or log transducer, got {semiring.name}.")
        if connect(self.transducer).n_states == 0:
            raise InputError("The transducer accepts nothing: no path leads from its start to a final state.")
        if not (np.isfinite(self.kappa) and self.kappa > 0):
            raise InputError(f"The loss needs a positive number as kappa, got {self.kappa!r}.")
        if semiring is TROPICAL and self.function is not None:
            raise InputError("function is for sums over paths: a tropical transducer's weight is the loss itself.")

    def _bound(self, length: int, n_labels: int) -> float:  # noqa: ARG002
        """M, if `largest` gives it."""
        if self.largest is None:
            raise InputError(
                "The bound of a transducer's loss is not known: pass largest=. "
                "(automaton(y_true).largest() is exact for one reference.)"
            )
        return self.largest

    def for_labels(self, labels: Sequence[Hashable]) -> TransducerLoss:
        """The loss for labels in this order; a transducer over their numbers stays as it is."""
        return self if self._alphabet <= set(range(len(labels))) else replace(self, labels=tuple(labels))

    @cached_property
    def _alphabet(self) -> set[Hashable]:
        """Labels that the transducer reads or writes."""
        arcs = [arc for _, arc in self.transducer.all_arcs()]
        return {label for arc in arcs for label in (arc.input, arc.output)} - {EPSILON}

    def _known_labels(self) -> int | None:
        return None if self.labels is None else len(self.labels)

    @cached_property
    def _machine(self) -> Automaton:
        """The transducer over the tropical or the probability semiring."""
        is_log = self.transducer.semiring is LOG
        return convert(self.transducer, PROBABILITY) if is_log else self.transducer

    def _named(self, y: Ints) -> list[Hashable]:
        return y.tolist() if self.labels is None else [self.labels[b] for b in y.tolist()]

    def _candidates(self, y_true: Ints) -> Automaton:
        """Automaton of all candidates with their weights, given the reference."""
        named = self._named(y_true)
        written = {arc.output for _, arc in self._machine.all_arcs()}
        for t, label in enumerate(named):
            if label not in written:
                raise InputError(
                    f"The reference has label {label!r} at position {t}, outside the transducer's alphabet: "
                    f"it writes {_listed(written - {EPSILON})}. Add arcs for it."
                )
        reference = Automaton.from_labels(named, self._machine.semiring)
        paired = compose(self._machine, reference)
        return remove_epsilons(project(paired, "input"))

    def _weight(self, y: Ints, candidates: Automaton) -> float:
        named = Automaton.from_labels(self._named(y), candidates.semiring)
        return float(total_weight(compose(named, candidates)))

    def _value(self, y: Ints, y_true: Ints) -> float:
        candidates = self._candidates(y_true)
        weight = self._weight(y, candidates)
        if self._machine.semiring is TROPICAL:
            if weight == TROPICAL.zero:
                raise InputError("The loss is infinite: the transducer does not accept this pair of sequences.")
            return weight
        return self._loss_of(weight, self._weight(y_true, candidates))

    def _loss_of(self, weight: float, own: float) -> float:
        if self.function is not None:
            return float(self.function(weight, own))
        return float(np.log((own + self.kappa) / (min(weight, own) + self.kappa)))

    def _automaton(self, y_true: Ints, n_labels: int) -> LossAutomaton:
        candidates = self._candidates(y_true)
        if candidates.start < 0 and self._machine.semiring is TROPICAL:
            raise InputError("The loss is infinite: the transducer accepts no sequence for this reference.")
        arcs = _Arcs(candidates, self._named(np.arange(n_labels)))
        if self._machine.semiring is TROPICAL:
            self._check_readable(n_labels)
            return _cheapest(candidates, arcs, len(y_true), self.max_states)
        own = self._weight(y_true, candidates)
        return _summed(candidates, arcs, len(y_true), self.max_states, lambda weight: self._loss_of(weight, own))

    def _check_readable(self, n_labels: int) -> None:
        read = {arc.input for _, arc in self._machine.all_arcs()}
        missing = [label for label in self._named(np.arange(n_labels)) if label not in read]
        if missing:
            raise InputError(
                f"The loss is infinite for labels outside the transducer's alphabet: it does not read "
                f"{_listed(missing)}. Add arcs that read them."
            )


class _Arcs:
    """Arcs of an automaton as arrays, of the labels of interest; labels are numbered."""

    def __init__(self, automaton: Automaton, labels: list[Hashable]) -> None:
        number = {label: b for b, label in enumerate(labels)}
        arcs = [
            (state, number[arc.input], arc.to, arc.weight) for state, arc in automaton.all_arcs() if arc.input in number
        ]
        columns = list(zip(*arcs, strict=True)) or [(), (), (), ()]
        self.source, self.label, self.to = (np.array(column, np.int64) for column in columns[:3])
        self.weight = np.array(columns[3], np.float64)
        self.n_labels = len(labels)


def _cheapest(automaton: Automaton, arcs: _Arcs, length: int, max_states: int) -> LossAutomaton:
    """Deterministic automaton of the least cost."""
    start, final = np.full(automaton.n_states, np.inf), np.full(automaton.n_states, np.inf)
    start[automaton.start] = 0.0
    final[list(automaton.final)] = list(automaton.final.values())
    ways = Alternatives(length, arcs.n_labels, start, final)
    group = np.arange(length)[:, None] * arcs.n_labels + arcs.label  # the same arcs at every position
    ways.reading.add(group, arcs.source, arcs.to, arcs.weight, np.broadcast_to(np.isfinite(arcs.weight), group.shape))
    return ways.build(max_states, _ADVICE)


def _summed(
    automaton: Automaton, arcs: _Arcs, length: int, max_states: int, loss_of: Callable[[float], float]
) -> LossAutomaton:
    """Deterministic automaton of a function of the summed weight: a state is the vector of sums so far."""
    n_nodes = max(automaton.n_states, 1)
    moves = np.zeros((arcs.n_labels, n_nodes, n_nodes))
    np.add.at(moves, (arcs.label, arcs.source, arcs.to), arcs.weight)
    final = np.zeros(n_nodes)
    final[list(automaton.final)] = list(automaton.final.values())
    matters = _can_finish(moves, final, length)
    rows = np.zeros((1, n_nodes))
    rows[0, max(automaton.start, 0)] = float(automaton.start >= 0)
    builder = LayerBuilder(arcs.n_labels, max_states, _ADVICE)
    for t in range(length):
        reached = np.einsum("nk,bkm->nbm", rows, moves) * matters[t + 1]
        rows, following = _distinct_rows(reached.reshape(-1, n_nodes))
        builder.add(following.reshape(-1, arcs.n_labels), np.zeros((len(following) // arcs.n_labels, arcs.n_labels)))
    return builder.finish(np.array([loss_of(float(weight)) for weight in rows @ final]))


def _can_finish(moves: Floats, final: Floats, length: int) -> Bools:
    """Whether a node can end after the labels that remain; (length + 1, n_nodes)."""
    step = moves.any(axis=0)
    matters = [final != 0.0]
    for _ in range(length):
        matters.append((step & matters[-1]).any(axis=1))
    return np.array(matters[::-1])


def _distinct_rows(rows: Floats) -> tuple[Floats, Ints]:
    keys = np.round(rows, _DECIMALS) + 0.0
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return rows[first], inverse.reshape(-1).astype(np.int64)


def _listed(labels: object) -> str:
    names = sorted(map(str, labels))  # type: ignore[call-overload]
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
