"""Sums of path weights: from the start to each state, from each state to the end, of all paths (Mohri 2002)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from vcrf.automata.automaton import Arc, Automaton
from vcrf.automata.operations import reverse_arcs
from vcrf.automata.semiring import Semiring, Weight
from vcrf.errors import InputError

# Sums over cycles stop when they change by less.
_DELTA = 1e-12
_MAX_VISITS = 10_000


def distance_from_start(automaton: Automaton) -> list[Weight]:
    """Sum over paths from the start to each state; zero where there is none."""
    begin = {automaton.start: automaton.semiring.one} if automaton.start >= 0 else {}
    return _distances(automaton.arcs, begin, automaton.semiring, automaton.topological_order())


def distance_to_end(automaton: Automaton) -> list[Weight]:
    """Sum over paths from each state to the end, with the final weights."""
    order = automaton.topological_order()
    backwards = None if order is None else order[::-1]
    return _distances(reverse_arcs(automaton).arcs, automaton.final, automaton.semiring, backwards)


def total_weight(automaton: Automaton) -> Weight:
    """Sum over all paths from the start to the end."""
    return automaton.semiring.zero if automaton.start < 0 else distance_to_end(automaton)[automaton.start]


def distances_along(arcs: list[list[Arc]], source: int, semiring: Semiring) -> dict[int, Weight]:
    """Sum over paths from one state to every state they reach; there may be cycles."""
    return _relax(arcs, {source: semiring.one}, semiring)


def _distances(
    arcs: list[list[Arc]], begin: dict[int, Weight], semiring: Semiring, order: Iterable[int] | None
) -> list[Weight]:
    if order is None:
        found = _relax(arcs, begin, semiring)
        return [found.get(state, semiring.zero) for state in range(len(arcs))]
    total = [begin.get(state, semiring.zero) for state in range(len(arcs))]
    plus, times = semiring.plus, semiring.times
    for state in order:
        here = total[state]
        if not semiring.is_zero(here):
            for arc in arcs[state]:
                total[arc.to] = plus(total[arc.to], times(here, arc.weight))
    return total


def _relax(arcs: list[list[Arc]], begin: dict[int, Weight], semiring: Semiring) -> dict[int, Weight]:
    """The generic single-source algorithm: what is new at a state is passed on until nothing changes."""
    total, new = dict(begin), dict(begin)
    queue = deque(begin)
    n_visits = dict.fromkeys(begin, 0)
    plus, times = semiring.plus, semiring.times
    while queue:
        state = queue.popleft()
        n_visits[state] = n_visits.get(state, 0) + 1
        if n_visits[state] > _MAX_VISITS:
            raise InputError(
                f"The sum over the cycles through state {state} does not converge in the {semiring.name} semiring: "
                "a cycle must cost something (tropical), or have a probability below 1."
            )
        fresh = new.pop(state)
        for arc in arcs[state]:
            through = times(fresh, arc.weight)
            before = total.get(arc.to, semiring.zero)
            after = plus(before, through)
            if not semiring.close(before, after, _DELTA):
                total[arc.to] = after
                if arc.to not in new:
                    queue.append(arc.to)
                new[arc.to] = plus(new.get(arc.to, semiring.zero), through)
    return total
