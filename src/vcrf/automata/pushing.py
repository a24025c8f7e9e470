"""Weight pushing: what every path must pay, it pays as early as possible."""

from __future__ import annotations

from vcrf.automata.automaton import EPSILON, Arc, Automaton
from vcrf.automata.distance import distance_to_end
from vcrf.automata.operations import connect


def push(automaton: Automaton) -> Automaton:
    """The same path weights, moved towards the start: from every other state the paths sum to one.

    With V(q) the sum over paths from q to the end, weight' = weight * V(to) / V(from), and the start keeps V(start).
    """
    kept = connect(automaton)
    if kept.start < 0:
        return kept
    semiring = kept.semiring
    times, quotient = semiring.times, semiring.quotient
    to_end = distance_to_end(kept)
    made = Automaton(semiring)
    made.start = kept.start
    made.arcs = [
        [arc._replace(weight=quotient(times(arc.weight, to_end[arc.to]), to_end[state])) for arc in arcs]
        for state, arcs in enumerate(kept.arcs)
    ]
    made.final = {state: quotient(weight, to_end[state]) for state, weight in kept.final.items()}
    return _with_initial(made, to_end[kept.start])


def _with_initial(automaton: Automaton, weight: object) -> Automaton:
    """Pay a weight at the start: on its arcs if no arc comes back to it, else on a new arc before it."""
    times, start = automaton.semiring.times, automaton.start
    if any(arc.to == start for _, arc in automaton.all_arcs()):
        automaton.start = automaton.add_state()
        automaton.arcs[automaton.start].append(Arc(EPSILON, EPSILON, weight, start))
        return automaton
    automaton.arcs[start] = [arc._replace(weight=times(weight, arc.weight)) for arc in automaton.arcs[start]]
    if start in automaton.final:
        automaton.final[start] = times(weight, automaton.final[start])
    return automaton
