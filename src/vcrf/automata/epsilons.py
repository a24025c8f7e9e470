"""Removal of arcs that read and write nothing."""

from __future__ import annotations

from vcrf.automata.automaton import EPSILON, Arc, Automaton
from vcrf.automata.distance import distances_along
from vcrf.automata.operations import connect


def remove_epsilons(automaton: Automaton) -> Automaton:
    """The same weighted sequences without arcs that read and write nothing.

    Each state gets the arcs, and the final weight, of the states it reaches by epsilons, times the sum of the weights
    of the ways there. Cycles of epsilons are summed until they change by less than 1e-12.
    """
    semiring = automaton.semiring
    silent = [[arc for arc in arcs if _is_silent(arc)] for arcs in automaton.arcs]
    made = Automaton(semiring)
    made.start = automaton.start
    made.arcs = [[] for _ in automaton.arcs]
    for state in range(automaton.n_states):
        reached = distances_along(silent, state, semiring) if silent[state] else {state: semiring.one}
        for other, weight in reached.items():
            made.arcs[state] += [
                arc._replace(weight=semiring.times(weight, arc.weight))
                for arc in automaton.arcs[other]
                if not _is_silent(arc)
            ]
            if other in automaton.final:
                end = semiring.times(weight, automaton.final[other])
                made.final[state] = semiring.plus(made.final.get(state, semiring.zero), end)
    return connect(made)


def _is_silent(arc: Arc) -> bool:
    return arc.input == arc.output == EPSILON
