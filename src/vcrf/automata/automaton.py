"""Weighted automata and transducers: states, arcs with an input and an output label, final weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from vcrf.automata.semiring import TROPICAL, Semiring, Weight, get_semiring
from vcrf.errors import InputError

Label = Hashable

# No label: an arc that reads, or writes, nothing.
EPSILON = "<eps>"


class Arc(NamedTuple):
    """An arc out of a state; `output` equals `input` in an automaton that is not a transducer."""

    input: Label
    output: Label
    weight: Weight
    to: int


class Path(NamedTuple):
    """Labels that a path reads and writes, without epsilons, and its weight."""

    inputs: tuple[Label, ...]
    outputs: tuple[Label, ...]
    weight: Weight

    def followed(self, arc: Arc, weight: Weight) -> Path:
        """The path with one more arc, and its weight then."""
        more, out = (() if label == EPSILON else (label,) for label in (arc.input, arc.output))
        return Path(self.inputs + more, self.outputs + out, weight)


class Automaton:
    """A weighted automaton, or transducer when some arc's output differs from its input.

    Attributes
    ----------
    semiring : Semiring
    start : int
        -1 for the automaton without states, which accepts nothing.
    arcs : list of list of Arc
        Those out of each state.
    final : dict
        Weight of ending in a state; states that are not in it are not final.
    """

    def __init__(self, semiring: str | Semiring = TROPICAL) -> None:
        self.semiring = get_semiring(semiring)
        self.start = -1
        self.arcs: list[list[Arc]] = []
        self.final: dict[int, Weight] = {}

    @classmethod
    def from_arcs(
        cls,
        arcs: Iterable[tuple[int, Label, Label, Weight, int]],
        final: Mapping[int, Weight] | Iterable[int],
        semiring: str | Semiring = TROPICAL,
        start: int = 0,
    ) -> Automaton:
        """Build from arcs (from, input, output, weight, to) and final states, with weights or without."""
        made = cls(semiring)
        listed = list(arcs)
        weights = dict(final) if isinstance(final, Mapping) else dict.fromkeys(final, made.semiring.one)
        made._grow(max([start, *weights, *(max(arc[0], arc[4]) for arc in listed)]))
        made.start = start
        for source, read, write, weight, to in listed:
            made.add_arc(source, read, write, weight, to)
        for state, weight in weights.items():
            made.set_final(state, weight)
        return made

    @classmethod
    def from_labels(cls, labels: Sequence[Any], semiring: str | Semiring = TROPICAL) -> Automaton:
        """The automaton that accepts one sequence, with weight one."""
        one = get_semiring(semiring).one
        arcs = [(t, label, label, one, t + 1) for t, label in enumerate(labels)]
        return cls.from_arcs(arcs, [len(labels)], semiring)

    @property
    def n_states(self) -> int:
        return len(self.arcs)

    @property
    def n_arcs(self) -> int:
        return sum(map(len, self.arcs))

    def __repr__(self) -> str:
        return f"Automaton({self.semiring.name}, n_states={self.n_states}, n_arcs={self.n_arcs})"

    def add_state(self) -> int:
        """Add a state and return its number; the first becomes the start."""
        self.arcs.append([])
        if self.start < 0:
            self.start = 0
        return self.n_states - 1

    def add_arc(self, source: int, read: Label, write: Label, weight: Weight, to: int) -> None:
        """Add an arc between states that exist; one with weight zero is no arc, and is left out."""
        for state in (source, to):
            self._check_state(state)
        checked = self.semiring.checked(weight)
        if not self.semiring.is_zero(checked):
            self.arcs[source].append(Arc(read, write, checked, to))

    def set_final(self, state: int, weight: Weight = None) -> None:
        """Make a state final, with weight one if none is given; with weight zero it is not final."""
        self._check_state(state)
        self.final[state] = self.semiring.one if weight is None else self.semiring.checked(weight)
        if self.semiring.is_zero(self.final[state]):
            del self.final[state]

    @property
    def is_acceptor(self) -> bool:
        """Whether every arc writes what it reads."""
        return all(arc.input == arc.output for _, arc in self.all_arcs())

    @property
    def has_epsilons(self) -> bool:
        """Whether some arc reads and writes nothing."""
        return any(arc.input == arc.output == EPSILON for _, arc in self.all_arcs())

    @property
    def is_deterministic(self) -> bool:
        """Whether no state has two arcs that read the same label, and none reads nothing."""
        reads = [[arc.input for arc in arcs] for arcs in self.arcs]
        return all(len(set(labels)) == len(labels) and EPSILON not in labels for labels in reads)

    @property
    def is_acyclic(self) -> bool:
        return self.topological_order() is not None

    def all_arcs(self) -> Iterator[tuple[int, Arc]]:
        """Every arc with the state it leaves."""
        for state, arcs in enumerate(self.arcs):
            for arc in arcs:
                yield state, arc

    def topological_order(self) -> list[int] | None:
        """States in an order in which arcs only go forward; None if there is a cycle."""
        n_before = [0] * self.n_states
        for _, arc in self.all_arcs():
            n_before[arc.to] += 1
        order = [state for state, n in enumerate(n_before) if n == 0]
        for state in order:  # grows
            for arc in self.arcs[state]:
                n_before[arc.to] -= 1
                if n_before[arc.to] == 0:
                    order.append(arc.to)
        return order if len(order) == self.n_states else None

    def paths(self) -> Iterator[Path]:
        """Every path of an acyclic automaton; there may be very many."""
        if not self.is_acyclic:
            raise InputError("paths() needs an acyclic automaton: this one has a cycle.")
        times = self.semiring.times
        todo = [(self.start, Path((), (), self.semiring.one))] if self.start >= 0 else []
        while todo:
            state, path = todo.pop()
            if state in self.final:
                yield path._replace(weight=times(path.weight, self.final[state]))
            todo += [(arc.to, path.followed(arc, times(path.weight, arc.weight))) for arc in self.arcs[state][::-1]]

    def _grow(self, last: int) -> None:
        while self.n_states <= last:
            self.add_state()

    def _check_state(self, state: int) -> None:
        if not 0 <= state < self.n_states:
            raise InputError(f"State {state} does not exist: there are {self.n_states}, numbered from 0.")
