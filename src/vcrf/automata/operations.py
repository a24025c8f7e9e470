"""Simple operations: each gives a new automaton."""

from __future__ import annotations

import math

from vcrf.automata.automaton import EPSILON, Arc, Automaton
from vcrf.automata.semiring import EXPECTATION, LOG, PROBABILITY, TROPICAL, Semiring, Weight, get_semiring
from vcrf.errors import InputError


def connect(automaton: Automaton) -> Automaton:
    """Keep the states on some path from the start to a final state; numbers follow the old order, the start first."""
    if automaton.start < 0:
        return Automaton(automaton.semiring)
    useful = _reached(automaton, [automaton.start]) & _reached(reverse_arcs(automaton), list(automaton.final))
    made = Automaton(automaton.semiring)
    if automaton.start not in useful:
        return made
    order = [automaton.start, *sorted(useful - {automaton.start})]
    number = {state: made.add_state() for state in order}
    for state in order:
        made.arcs[number[state]] = [
            arc._replace(to=number[arc.to]) for arc in automaton.arcs[state] if arc.to in number
        ]
        if state in automaton.final:
            made.final[number[state]] = automaton.final[state]
    return made


def invert(automaton: Automaton) -> Automaton:
    """Exchange input and output."""
    return _relabelled(automaton, lambda arc: arc._replace(input=arc.output, output=arc.input))


def project(automaton: Automaton, side: str) -> Automaton:
    """Keep the labels of one side, "input" or "output"."""
    if side not in ("input", "output"):
        raise InputError(f'side must be "input" or "output", got {side!r}.')
    if side == "input":
        return _relabelled(automaton, lambda arc: arc._replace(output=arc.input))
    return _relabelled(automaton, lambda arc: arc._replace(input=arc.output))


def union(first: Automaton, second: Automaton) -> Automaton:
    """Paths of both; a new start leads to both by epsilons."""
    check_semirings(first, second)
    made = Automaton(first.semiring)
    made.add_state()
    for part in (first, second):
        shift = made.n_states
        for state in range(part.n_states):
            made.add_state()
            made.arcs[shift + state] = [arc._replace(to=shift + arc.to) for arc in part.arcs[state]]
        made.final.update({shift + state: weight for state, weight in part.final.items()})
        if part.start >= 0:
            made.arcs[0].append(Arc(EPSILON, EPSILON, made.semiring.one, shift + part.start))
    return made


def convert(automaton: Automaton, semiring: str | Semiring) -> Automaton:
    """The same paths over another semiring: log and tropical weights are minus the log of probabilities.

    A probability p becomes (p, 0) in the expectation semiring; a pair's value is dropped on the way back.
    """
    target = get_semiring(semiring)
    made = _relabelled(
        automaton, lambda arc: arc._replace(weight=_converted(arc.weight, automaton.semiring, target)), target
    )
    made.final = {state: _converted(weight, automaton.semiring, target) for state, weight in automaton.final.items()}
    return made


def reverse_arcs(automaton: Automaton) -> Automaton:
    """All arcs turned around. The start and the final states stay: for following arcs backwards."""
    made = _relabelled(automaton, lambda arc: arc)
    made.arcs = [[] for _ in automaton.arcs]
    for state, arc in automaton.all_arcs():
        made.arcs[arc.to].append(arc._replace(to=state))
    return made


def check_semirings(first: Automaton, second: Automaton) -> None:
    """Refuse to mix semirings."""
    if first.semiring is not second.semiring:
        raise InputError(
            f"Both automata must be over one semiring, got {first.semiring.name} and {second.semiring.name}. "
            "Use convert first."
        )


def _relabelled(automaton: Automaton, change: object, semiring: Semiring | None = None) -> Automaton:
    made = Automaton(semiring or automaton.semiring)
    made.start = automaton.start
    made.arcs = [[change(arc) for arc in arcs] for arcs in automaton.arcs]  # type: ignore[operator]
    made.final = dict(automaton.final)
    return made


def _reached(automaton: Automaton, states: list[int]) -> set[int]:
    found, todo = set(states), list(states)
    while todo:
        for arc in automaton.arcs[todo.pop()]:
            if arc.to not in found:
                found.add(arc.to)
                todo.append(arc.to)
    return found


def _converted(weight: Weight, source: Semiring, target: Semiring) -> Weight:
    if source is target or {source, target} == {LOG, TROPICAL}:
        return weight
    if source is EXPECTATION:
        return _converted(weight[0], PROBABILITY, target)
    if target is EXPECTATION:
        return (_converted(weight, source, PROBABILITY), 0.0)
    if target is PROBABILITY:
        return math.exp(-weight)
    return -math.log(weight) if weight else TROPICAL.zero
