"""A loss, given the reference, as a deterministic acyclic automaton: what every surrogate works with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf import kernels
from vcrf.errors import BudgetError, InputError
from vcrf.types import Floats, Ints

if TYPE_CHECKING:
    from vcrf.automata import Automaton

# Costs that differ by less are equal when states are merged.
TINY = 1e-9


@dataclass(frozen=True, eq=False)
class LossAutomaton:
    """Deterministic, complete, acyclic, one layer a position; the path cost of y is loss(y, y_true).

        init + sum_t cost[state_ptr[t] + q_t, y_t] + final[q_l],   q_0 = 0,  q_{t+1} = next[state_ptr[t] + q_t, y_t]

    Parameters
    ----------
    n_labels : int
    state_ptr : (l + 2,) int64
        Layer t = 0 .. l has the states state_ptr[t] .. state_ptr[t+1]-1; layer 0 has one.
    next : (state_ptr[l], n_labels) int64
        Number of the state inside layer t+1.
    cost : (state_ptr[l], n_labels) float64
    final : (states of layer l,) float64
    init : float
        0.0 after pushing when loss(y_true, y_true) = 0 and no loss is negative.
    """

    n_labels: int
    state_ptr: Ints
    next: Ints
    cost: Floats
    final: Floats
    init: float = 0.0

    def __post_init__(self) -> None:
        arcs = (int(self.state_ptr[-2]), self.n_labels)
        n_final = int(self.state_ptr[-1] - self.state_ptr[-2])
        if self.next.shape != arcs or self.cost.shape != arcs or self.final.shape != (n_final,):
            raise InputError(
                f"A loss automaton needs next and cost of shape {arcs} and final of length {n_final}, "
                f"got {self.next.shape}, {self.cost.shape} and {self.final.shape}."
            )
        if self.state_ptr[0] != 0 or self.state_ptr[1] != 1:
            raise InputError("A loss automaton needs exactly one state in layer 0: state_ptr must begin with 0, 1.")

    def __repr__(self) -> str:
        return (
            f"LossAutomaton(length={self.length}, n_labels={self.n_labels}, "
            f"n_states={self.n_states}, max_width={self.max_width})"
        )

    @property
    def length(self) -> int:
        """Number of labels in a sequence."""
        return len(self.state_ptr) - 2

    @property
    def n_states(self) -> int:
        return int(self.state_ptr[-1])

    @property
    def max_width(self) -> int:
        """States of the widest layer."""
        return int(np.diff(self.state_ptr).max())

    def check(self, truth: Ints) -> None:
        """Refuse what no surrogate bounds: a loss that is infinite, negative, or not 0 for the truth."""
        if not all(np.all(np.isfinite(part)) for part in (self.cost, self.final, self.init)):
            raise InputError(
                "The loss is infinite or not a number for some label sequence: surrogates need a finite one."
            )
        least, own = self.least(), self.path_cost(truth)
        if least < -TINY:
            raise InputError(f"The loss of some label sequence is negative, {least:.6g}: it must be at least 0.")
        if abs(own) > TINY:
            raise InputError(f"The loss of the true labels is {own:.6g}: it must be 0.")

    def log_losses(self) -> Floats:
        """Logarithm of the loss at each last state, where these tell it (see `with_values`); -inf where it is 0."""
        loss = self.final + self.init
        return np.log(loss, out=np.full(len(loss), -np.inf), where=loss > TINY)

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays."""
        return self.state_ptr.nbytes + self.next.nbytes + self.cost.nbytes + self.final.nbytes

    def path_cost(self, y: Sequence[int] | Ints) -> float:
        """Cost of one label sequence."""
        labels = _checked_labels(np.asarray(y, np.int64)[None], self.length, self.n_labels)[0].tolist()
        first = self.state_ptr.tolist()
        state, total = 0, self.init
        for t, b in enumerate(labels):
            row = first[t] + state
            total += float(self.cost[row, b])
            state = int(self.next[row, b])
        return total + float(self.final[state])

    def path_costs(self, sequences: Sequence[Sequence[int]] | Ints) -> Floats:
        """Cost of each of n label sequences; `sequences` is (n, l)."""
        rows = np.asarray(sequences, np.int64).reshape(len(sequences), -1)
        labels = _checked_labels(rows, self.length, self.n_labels)
        state = np.zeros(len(labels), np.int64)
        total = np.full(len(labels), self.init)
        for t in range(self.length):
            row = self.state_ptr[t] + state
            total += self.cost[row, labels[:, t]]
            state = self.next[row, labels[:, t]]
        return total + self.final[state]

    def minimal(self) -> LossAutomaton:
        """The smallest automaton with the same path costs: pushed towards the start, then merged (Mohri 2000)."""
        cost, final = self.cost.copy(), self.final.copy()
        init = self.init + float(kernels.merging.push(self.state_ptr, self.next, cost, final))
        return LossAutomaton(self.n_labels, self.state_ptr, self.next, cost, final, init)._merged()

    def with_values(self, max_states: int = 200_000) -> LossAutomaton:
        """The smallest automaton without costs on arcs: the last state alone tells the loss, `final`.

        Its states are pairs (state, cost so far), merged where the future is equal. For surrogates that are not
        additive in the loss (slack rescaling).
        """
        expanded = _expand(self, max_states)
        return expanded._merged()

    def spread(self, classes: Ints) -> LossAutomaton:
        """The automaton over labels, when this one is over classes of labels; classes[b] is the class of label b."""
        return LossAutomaton(
            len(classes), self.state_ptr, self.next[:, classes], self.cost[:, classes], self.final, self.init
        )

    def to_automaton(self, labels: Sequence[Any] | None = None) -> Automaton:
        """As a tropical automaton of `vcrf.automata`, for drawing and other tools; labels are numbers by default."""
        from vcrf.automata import TROPICAL, Automaton

        names = range(self.n_labels) if labels is None else labels
        rows = np.arange(len(self.next))
        arcs = [
            (int(q), name, name, float(w), int(to))
            for q, targets, costs in zip(rows, self._next_numbers(rows), self.cost, strict=True)
            for name, w, to in zip(names, costs, targets, strict=True)
        ]
        first = int(self.state_ptr[-2])
        final = {first + q: float(w) + (self.init if not self.length else 0.0) for q, w in enumerate(self.final)}
        if self.length:
            arcs = [(q, a, b, w + self.init if q == 0 else w, to) for q, a, b, w, to in arcs]
        return Automaton.from_arcs(arcs, final, TROPICAL)

    def scaled(self, factor: float) -> LossAutomaton:
        """The automaton of factor * loss."""
        cost, final = factor * self.cost, factor * self.final
        return LossAutomaton(self.n_labels, self.state_ptr, self.next, cost, final, factor * self.init)

    def plus(self, other: LossAutomaton, max_states: int = 200_000) -> LossAutomaton:
        """The automaton of the sum of two losses: pairs of states that some sequence reaches."""
        if (self.n_labels, self.length) != (other.n_labels, other.length):
            raise InputError(f"Cannot add {self} and {other}: lengths or numbers of labels differ.")
        return _product(self, other, max_states)

    def without(self, y: Sequence[int] | Ints) -> LossAutomaton:
        """The automaton without one sequence: one more state a layer that has read nothing else, and ends at -inf."""
        ptr, nexts, costs = self.state_ptr, [], []
        state = 0
        for t, label in enumerate(y):
            layer = slice(int(ptr[t]), int(ptr[t + 1]))
            own_next, own_cost = self.next[layer], self.cost[layer]
            alone = own_next[state].copy()
            alone[label] = ptr[t + 2] - ptr[t + 1]  # the new state of the next layer comes last
            # In the first layer it takes the place of the only state.
            nexts.append(alone[None] if t == 0 else np.concatenate([own_next, alone[None]]))
            costs.append(own_cost[state][None] if t == 0 else np.concatenate([own_cost, own_cost[state][None]]))
            state = int(own_next[state, label])
        final = np.append(self.final, -np.inf) if len(y) else np.array([-np.inf])
        widths = [len(layer) for layer in nexts] + [len(final)]
        state_ptr = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        none = np.zeros((0, self.n_labels))
        following = np.concatenate([none.astype(np.int64), *nexts])
        return LossAutomaton(self.n_labels, state_ptr, following, np.concatenate([none, *costs]), final, self.init)

    def least(self) -> float:
        """The smallest path cost."""
        return self._extreme(np.minimum)

    def largest(self) -> float:
        """The largest path cost: the exact bound of the loss for this reference."""
        return self._extreme(np.maximum)

    def n_zero_paths(self) -> float:
        """How many label sequences cost nothing; needs costs that are not negative, as in a minimal automaton."""
        return float(
            kernels.merging.count_zero_paths(self.state_ptr, self.next, self.cost, self.final + self.init, TINY)
        )

    def _extreme(self, better: Any) -> float:
        value = self.final
        for t in range(self.length - 1, -1, -1):
            layer = slice(self.state_ptr[t], self.state_ptr[t + 1])
            value = better.reduce(self.cost[layer] + value[self.next[layer]], axis=1)
        return self.init + float(value[0])

    def _merged(self) -> LossAutomaton:
        cost_key = np.rint(self.cost / TINY).astype(np.int64)
        final_key = np.rint(self.final / TINY).astype(np.int64)
        new_ptr, kept, number = kernels.merging.merge(self.state_ptr, self.next, cost_key, final_key)
        arcs, ends = kept[: new_ptr[-2]], kept[new_ptr[-2] :] - self.state_ptr[-2]
        following = number[self._next_numbers(arcs)]
        return LossAutomaton(self.n_labels, new_ptr, following, self.cost[arcs], self.final[ends], self.init)

    def _next_numbers(self, states: Ints) -> Ints:
        """Destinations of some states, numbered through all layers; (n, n_labels)."""
        layers = np.searchsorted(self.state_ptr, states, side="right")  # the layer after each
        numbers: Ints = self.next[states] + self.state_ptr[layers][:, None]
        return numbers


def _checked_labels(labels: Ints, length: int, n_labels: int) -> Ints:
    if labels.shape[1] != length:
        raise InputError(f"Expected sequences of {length} labels, got {labels.shape[1]}.")
    if labels.size and (labels.min() < 0 or labels.max() >= n_labels):
        raise InputError(f"Expected labels 0 .. {n_labels - 1}, got {labels.min()} .. {labels.max()}.")
    return labels


class LayerBuilder:
    """Collects the layers of an automaton; states are numbered in the order in which they are given.

    Parameters
    ----------
    n_labels : int
    max_states : int
        More are a BudgetError.
    advice : str
        What the error tells the user to do about it.
    """

    def __init__(self, n_labels: int, max_states: int, advice: str) -> None:
        self.n_labels, self.max_states, self.advice = n_labels, max_states, advice
        self._next: list[Ints] = []
        self._cost: list[Floats] = []
        self._n_states = 0

    def add(self, following: Ints, cost: Floats) -> None:
        """Add a layer: destinations in the next one, and costs, both (width, n_labels)."""
        self.reserve(len(following))
        self._n_states += len(following)
        self._next.append(following)
        self._cost.append(cost)

    def finish(self, final: Floats, init: float = 0.0) -> LossAutomaton:
        """The automaton, given the last layer's final costs."""
        self.reserve(len(final))
        widths = [len(layer) for layer in self._next] + [len(final)]
        state_ptr = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        following = np.concatenate([*self._next, np.empty((0, self.n_labels), np.int64)])
        cost = np.concatenate([*self._cost, np.empty((0, self.n_labels))])
        return LossAutomaton(self.n_labels, state_ptr, following, cost, final, init)

    def reserve(self, width: int) -> None:
        """Refuse a layer that would be too wide, before it is made."""
        if self._n_states + width > self.max_states:
            raise self.refusal()

    def refusal(self) -> BudgetError:
        """The error for too many states."""
        return BudgetError(
            f"The loss automaton has more than max_states={self.max_states} states "
            f"(at position {len(self._next)}). {self.advice}"
        )


_GROWN = "Use a loss with fewer states, shorter sequences, or raise max_states."


def _product(a: LossAutomaton, b: LossAutomaton, max_states: int) -> LossAutomaton:
    builder = LayerBuilder(a.n_labels, max_states, _GROWN)
    left, right = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for t in range(a.length):
        rows_a, rows_b = a.state_ptr[t] + left, b.state_ptr[t] + right
        width = int(b.state_ptr[t + 2] - b.state_ptr[t + 1])
        codes = a.next[rows_a] * width + b.next[rows_b]
        distinct, following = distinct_codes(codes)
        builder.add(following, a.cost[rows_a] + b.cost[rows_b])
        left, right = np.divmod(distinct, width)
    return builder.finish(a.final[left] + b.final[right], a.init + b.init)


def _expand(a: LossAutomaton, max_states: int) -> LossAutomaton:
    """States (state, cost so far), with all of the cost at the end."""
    builder = LayerBuilder(a.n_labels, max_states, _GROWN)
    state, spent = np.zeros(1, np.int64), np.full(1, a.init)
    for t in range(a.length):
        rows = a.state_ptr[t] + state
        total = spent[:, None] + a.cost[rows]
        _, value = distinct_codes(np.rint(total / TINY).astype(np.int64))
        _, following = distinct_codes(a.next[rows] * (value.max() + 1) + value)
        builder.add(following, np.zeros(total.shape))
        first = np.unique(following.ravel(), return_index=True)[1]  # a transition that leads to each new state
        state, spent = a.next[rows].ravel()[first], total.ravel()[first]
    return builder.finish(a.final[state] + spent)


def distinct_codes(codes: Ints) -> tuple[Ints, Ints]:
    """Distinct codes, sorted, and the number of each entry among them in the shape of `codes`."""
    distinct, inverse = np.unique(codes.ravel(), return_inverse=True)
    return distinct, inverse.reshape(codes.shape).astype(np.int64)
